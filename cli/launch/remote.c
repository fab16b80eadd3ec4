/*
 * A process on another host: ssh starts `tenon launch --launcher pipe` there, which reads from its stdin
 * what to run, with environment and secret, so that none of it shows in a list of processes. Then each byte
 * on stdin is a signal or a sign of life. When stdin closes, or is silent for a minute, all that it started
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define HEAD_FORMAT "tenon-launch-1 %zu %zu %zu\n" /* bytes behind it, variables, words */
#define HEAD_BYTES 96
#define BODY_MAX 61440 /* with the head it fits into an empty pipe */
#define SSH_DEFAULT "ssh"

extern char **environ;

static const char *ssh_of(const launch_job *job)
{
    return job->args->value[OPT_SSH] ? job->args->value[OPT_SSH] : SSH_DEFAULT;
}

static char *quoted(const char *text)
{
    char *out = NULL;
    size_t bytes;
    FILE *file = open_memstream(&out, &bytes);

    if (!file)
        return NULL;
    launch_quote(file, text);
    return fclose(file) ? NULL : out;
}

void launch_remote_command(const launch_job *job, const launch_host *host, launch_list *words)
{
    char *ssh = cli_format("%s", ssh_of(job)), *tool = quoted(job->tool), *rest = NULL;

    words->failed = words->failed || !ssh || !tool;
    for (char *word = strtok_r(ssh, " ", &rest); ssh && word; word = strtok_r(NULL, " ", &rest))
        launch_list_add(words, "%s", word);
    for (const char *const *o =
             (const char *const[]){"-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o",
                                   "ServerAliveCountMax=4", NULL};
         *o; o++)
        launch_list_add(words, "%s", *o);
    if (host->port) {
        launch_list_add(words, "-p");
        launch_list_add(words, "%s", host->port);
    }
    launch_list_add(words, "%s", host->name);
    launch_list_add(words, "%s launch --launcher pipe", tool ? tool : "");
    free(ssh);
    free(tool);
}

void launch_sync_command(const launch_job *job, const launch_host *host, launch_list *words)
{
    const bool colons = strchr(host->name, ':');

    launch_list_add(words, "rsync");
    launch_list_add(words, "-az");
    launch_list_add(words, "-e");
    launch_list_add(words, "%s -o BatchMode=yes%s%s", ssh_of(job), host->port ? " -p " : "",
                    host->port ? host->port : "");
    launch_list_add(words, "./");
    launch_list_add(words, "%s%s%s:%s/", colons ? "[" : "", host->name, colons ? "]" : "",
                    job->args->value[OPT_SYNC_DST_DIR]);
}

static size_t list_bytes(const launch_list *l)
{
    size_t bytes = 0;

    for (size_t i = 0; i < l->count; i++)
        bytes += strlen(l->items[i]) + 1;
    return bytes;
}

bool launch_remote_send(const launch_job *job, int fd, const launch_list *env, const launch_list *words)
{
    const char *to = job->args->value[OPT_SYNC_DST_DIR], *secret = job->folder ? job->secret : "";
    char here[4096] = "/", *text = NULL;
    size_t body, bytes = 0;
    FILE *file = NULL;
    bool ok;

    if (!to && getcwd(here, sizeof here))
        to = here;
    body = strlen(to ? to : "/") + strlen(secret) + 2 + list_bytes(env) + list_bytes(words);
    if (body > BODY_MAX) {
        cli_error("command and environment have %zu bytes, and another host takes %d", body, BODY_MAX);
        return false;
    }
    if (!(file = open_memstream(&text, &bytes)))
        return false;
    (void)fprintf(file, HEAD_FORMAT, body, env->count, words->count);
    (void)fprintf(file, "%s%c%s%c", to ? to : "/", '\0', secret, '\0');
    for (size_t i = 0; i < env->count; i++)
        (void)fprintf(file, "%s%c", env->items[i], '\0');
    for (size_t i = 0; i < words->count; i++)
        (void)fprintf(file, "%s%c", words->items[i], '\0');
    ok = !fclose(file) && write(fd, text, bytes) == (ssize_t)bytes;
    free(text);
    return ok;
}

/* ---- the far end ---- */

static bool bytes_read(char *to, size_t count)
{
    while (count) {
        const ssize_t n = read(STDIN_FILENO, to, count);

        if (n <= 0 && (n == 0 || errno != EINTR))
            return false;
        if (n > 0) {
            to += n;
            count -= (size_t)n;
        }
    }
    return true;
}

/* What came, NUL-ended texts, in `body` (free()); false: it is not such a message. */
static bool message_read(char **body, size_t *bytes, size_t *env, size_t *words)
{
    char head[HEAD_BYTES] = "", again[HEAD_BYTES];
    size_t used = 0;

    do
        if (used + 1 >= sizeof head || !bytes_read(head + used, 1))
            return false;
    while (head[used++] != '\n');
    if (sscanf(head, HEAD_FORMAT, bytes, env, words) != 3 || *bytes > BODY_MAX || *env > BODY_MAX ||
        *words > BODY_MAX || !*words)
        return false;
    (void)snprintf(again, sizeof again, HEAD_FORMAT, *bytes, *env, *words);
    if (strcmp(head, again) || !*bytes || !(*body = malloc(*bytes)))
        return false;
    return bytes_read(*body, *bytes) && !(*body)[*bytes - 1];
}

/* The text behind `*at`, which moves on; NULL: there is none. */
static const char *text_next(const char *body, size_t bytes, size_t *at)
{
    const char *text = body + *at;

    if (*at >= bytes)
        return NULL;
    *at += strlen(text) + 1;
    return text;
}

static bool texts_take(const char *body, size_t bytes, size_t *at, size_t count, launch_list *list,
                       bool pairs)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = text_next(body, bytes, at);
        const size_t name = text ? launch_name(text) : 0;
        char *copy;

        if (!text || (pairs && (!name || text[name] != '=')))
            return false;
        if (!pairs) {
            launch_list_add(list, "%s", text);
            continue;
        }
        if (!(copy = cli_format("%.*s", (int)name, text)))
            return false;
        launch_list_set(list, copy, "%s", text + name + 1);
        free(copy);
    }
    return !list->failed;
}

/* In the folder that was sent, with the secret in a file of our own. */
static int far_run(launch_job *job, const char *folder, const char *secret, launch_list *env,
                   const launch_list *words)
{
    launch_start start = {.argv = words->items, .in = -1, .out = -1, .err = -1};
    int keeper = -1, code = 0;
    sigset_t mask;

    if (chdir(folder)) {
        cli_error("%s: %s", folder, strerror(errno));
        return CLI_EXIT_FAILED;
    }
    if (*secret) {
        (void)snprintf(job->secret, sizeof job->secret, "%s", secret);
        code = launch_folder_open(job, &keeper);
        if (!code)
            launch_list_set(env, "TENON_KVSTORE__SECRET_FILE", "%s", job->secret_file);
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    start.mask = &mask;
    start.env = env->items;
    if (!code)
        code = env->failed ? CLI_EXIT_MEMORY : launch_guard_run(&start);
    launch_folder_close(job, keeper);
    return code;
}

int launch_remote_run(void)
{
    launch_job job = {.how = LAUNCH_SSH};
    launch_list env = {0}, words = {0};
    char *body = NULL;
    const char *folder = NULL, *secret = NULL;
    size_t bytes = 0, env_count = 0, word_count = 0, at = 0;
    int code = CLI_EXIT_USAGE;
    bool good = message_read(&body, &bytes, &env_count, &word_count);

    for (char **own = environ; good && own && *own; own++)
        launch_list_add(&env, "%s", *own);
    good = good && (folder = text_next(body, bytes, &at)) && (secret = text_next(body, bytes, &at)) &&
           texts_take(body, bytes, &at, env_count, &env, true) &&
           texts_take(body, bytes, &at, word_count, &words, false) && at == bytes;
    if (good)
        code = far_run(&job, folder, secret, &env, &words);
    else
        cli_error("launch --launcher pipe: no message of `tenon launch` is on standard input");
    launch_list_fini(&env);
    launch_list_fini(&words);
    free(body);
    return code;
}
