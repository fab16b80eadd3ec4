/*
 * tenon launch: from the command line to a job.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define RESTARTS_DEFAULT 3
#define RESTARTS_MAX 1000000
#define GRACE_DEFAULT_MS 10000
#define GRACE_MAX_MS 86400000
#define LOOPBACK "127.0.0.1"

const char *const launch_how_names[LAUNCH_HOW_COUNT] = {"local", "ssh",  "mpi",  "slurm",
                                                        "sge",   "yarn", "rank", "pipe"};

/* ---- the environment of a process ---- */

/* NAME=VALUE, MXNet's NAME:VALUE, or NAME: with the value that it has here, if it has one. */
static void env_take(launch_list *env, const char *text)
{
    const size_t length = launch_name(text);
    char *name = cli_format("%.*s", (int)length, text);
    const char *value = name && !text[length] ? getenv(name) : text + length + 1;

    if (name && value)
        launch_list_set(env, name, "%s", value);
    env->failed = env->failed || !name;
    free(name);
}

static void env_options(const launch_job *job, cli_option_id id, launch_list *env)
{
    const char *text;

    for (size_t at = 0; (text = cli_args_each(job->args, id, &at));)
        env_take(env, text);
}

/* --set section.key=value reaches all processes as TENON_SECTION__KEY. */
static void env_settings(const launch_job *job, launch_list *env)
{
    for (size_t i = 0; i < job->args->setting_count; i++) {
        const char *text = job->args->settings[i], *equals = strchr(text, '='), *dot = equals;
        char name[256] = "TENON_";
        size_t used = strlen(name);

        while (dot > text && *dot != '.')
            dot--;
        for (const char *c = text; c < equals && used + 3 < sizeof name; c++) {
            if (c == dot)
                name[used++] = '_';
            name[used++] = *c >= 'a' && *c <= 'z'                ? (char)(*c - 'a' + 'A')
                           : *c == '.' || *c == '-' || *c == '@' ? '_'
                                                                 : *c;
        }
        name[used] = '\0';
        launch_list_set(env, name, "%s", equals + 1);
    }
}

/* The transport that the command sets for its workers is that of the scheduler and the servers, too. */
static void env_transport(const launch_job *job, launch_role role, launch_list *env)
{
    static const char key[] = "kvstore.transport=";

    for (char *const *word = job->command; launch_serves_itself(job, role) && *word && word[1]; word++)
        if (!strcmp(*word, "--set") && !strncmp(word[1], key, sizeof key - 1))
            launch_list_set(env, "TENON_KVSTORE__TRANSPORT", "%s", word[1] + sizeof key - 1);
}

/* What a lost process means to the store follows from what it means here: only a restart brings it back. */
static void env_on_fail(const launch_job *job, launch_list *env)
{
    static const struct {
        const char *name, *values[3];
    } losses[] = {{"TENON_KVSTORE__ON_WORKER_LOSS", {NULL, "wait:60", "shrink"}},
                  {"TENON_KVSTORE__ON_SERVER_LOSS", {"wait:1", NULL, "wait:1"}}};

    for (size_t i = 0; i < sizeof losses / sizeof *losses && job->servers; i++) {
        const char *loss = losses[i].values[job->on_fail];

        if (loss && !getenv(losses[i].name))
            launch_list_set(env, losses[i].name, "%s", loss);
    }
}

static void env_job(const launch_job *job, launch_list *env)
{
    launch_list_set(env, "DMLC_NUM_WORKER", "%u", job->workers);
    launch_list_set(env, "DMLC_NUM_SERVER", "%u", job->servers);
    if (job->how != LAUNCH_RANK) { /* one rank of a job has the launch's number from outside */
        launch_list_set(env, "DMLC_JOB_CLUSTER", "%s", launch_how_names[job->how]);
        launch_list_set(env, CLI_LAUNCH_VARIABLE, "%s", job->number);
    }
    if (!*job->address)
        return;
    launch_list_set(env, "DMLC_PS_ROOT_URI", "%s", job->address);
    if (job->args->value[OPT_PLAN] && !job->all_roles)
        launch_list_set(env, "DMLC_PS_ROOT_PORT", "PORT");
    else if (job->port != LAUNCH_ANY_PORT)
        launch_list_set(env, "DMLC_PS_ROOT_PORT", "%d", job->port);
    if (*job->number)
        launch_list_set(env, "TENON_KV_JOB", "%s", job->number);
    if (job->secret_file)
        launch_list_set(env, "TENON_KVSTORE__SECRET_FILE", "%s", job->secret_file);
}

void launch_env_of(const launch_job *job, launch_role role, uint32_t rank, const launch_host *host,
                   uint32_t attempt, launch_list *env)
{
    const char *own = host                       ? launch_host_bare(host)
                      : job->how == LAUNCH_LOCAL ? LOOPBACK
                      : role == LAUNCH_SCHEDULER ? job->address
                                                 : NULL;
    const char *security;

    env_job(job, env);
    env_on_fail(job, env);
    env_settings(job, env);
    env_transport(job, role, env);
    if (role != LAUNCH_OTHER) {
        launch_list_set(env, "DMLC_ROLE", "%s", launch_role_names[role]);
        launch_list_set(env, "DMLC_TASK_ID", "%u", rank);
        launch_list_set(env, "DMLC_NUM_ATTEMPT", "%u", attempt);
        if (role != LAUNCH_SCHEDULER)
            launch_list_set(env, role == LAUNCH_WORKER ? "DMLC_WORKER_ID" : "DMLC_SERVER_ID", "%u", rank);
        if (own)
            launch_list_set(env, "DMLC_NODE_HOST", "%s", own);
    }
    env_options(job, OPT_ENV, env);
    if (role == LAUNCH_SERVER)
        env_options(job, OPT_ENV_SERVER, env);
    if (role == LAUNCH_WORKER)
        env_options(job, OPT_ENV_WORKER, env);
    security = launch_list_get(env, "TENON_KVSTORE__SECURITY");
    security = security ? security : getenv("TENON_KVSTORE__SECURITY");
    if (security && !strcmp(security, "none")) /* with a secret that is refused */
        launch_list_unset(env, "TENON_KVSTORE__SECRET_FILE");
}

/* ---- its command ---- */

bool launch_serves_itself(const launch_job *job, launch_role role)
{
    return role != LAUNCH_WORKER && !job->all_roles;
}

void launch_command_of(const launch_job *job, launch_role role, launch_list *words)
{
    if (!launch_serves_itself(job, role)) {
        for (char *const *word = job->command; *word; word++)
            launch_list_add(words, "%s", *word);
        return;
    }
    launch_list_add(words, "%s", job->tool);
    launch_list_add(words, "kv");
    launch_list_add(words, "%s", role == LAUNCH_SERVER ? "serve" : "schedule");
    if (role == LAUNCH_SCHEDULER) {
        launch_list_add(words, "--port");
        launch_list_add(words, "0");
        launch_list_add(words, "--address-file");
        launch_list_add(words, "%s", job->address_file ? job->address_file : "FILE");
    }
    if (job->args->value[OPT_CONFIG]) {
        launch_list_add(words, "--config");
        launch_list_add(words, "%s", job->args->value[OPT_CONFIG]);
    }
}

/* ---- the command line ---- */

static bool number_of(const cli_args *args, cli_option_id id, uint32_t least, uint32_t most, uint32_t *number)
{
    const char *text = args->value[id];
    char *end = NULL;
    long long n;

    if (!text)
        return true;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || *end || errno || n < least || n > most) {
        cli_error("--%s %s: a number from %u to %u is needed", cli_options[id].name, text, least, most);
        return false;
    }
    *number = (uint32_t)n;
    return true;
}

static const char *how_name(const void *from, size_t index)
{
    (void)from;
    return index < LAUNCH_HOW_COUNT ? launch_how_names[index] : NULL;
}

static bool how_read(launch_job *job)
{
    const char *text = job->args->value[OPT_LAUNCHER], *similar;
    int how = 0;

    job->how = job->args->value[OPT_HOSTFILE] ? LAUNCH_SSH : LAUNCH_LOCAL;
    if (!text)
        return true;
    while (how < LAUNCH_HOW_COUNT && strcmp(text, launch_how_names[how]))
        how++;
    if (how < LAUNCH_HOW_COUNT) {
        job->how = (launch_how)how;
        return true;
    }
    similar = cli_nearest(text, how_name, NULL);
    cli_error("--launcher %s: local, ssh, mpi, slurm, sge, yarn, rank or pipe is needed%s%s%s", text,
              similar ? "; did you mean " : "", similar ? similar : "", similar ? "?" : "");
    return false;
}

static bool on_fail_read(launch_job *job)
{
    const char *text = job->args->value[OPT_ON_FAIL];
    char *end = NULL;
    long count = RESTARTS_DEFAULT;

    if (!text || !strcmp(text, "stop"))
        return true;
    if (!strcmp(text, "shrink")) {
        job->on_fail = LAUNCH_SHRINK;
        return true;
    }
    if (!strncmp(text, "restart", 7) && (!text[7] || text[7] == ':')) {
        if (text[7])
            count = text[8] >= '0' && text[8] <= '9' ? strtol(text + 8, &end, 10) : -1;
        job->on_fail = LAUNCH_RESTART;
        job->restarts_max = (uint32_t)count;
        if (count >= 0 && count <= RESTARTS_MAX && (!end || !*end))
            return true;
    }
    cli_error("--on-fail %s: stop, restart, restart:N (up to %d) or shrink is needed", text, RESTARTS_MAX);
    return false;
}

static bool env_check(const cli_args *args, cli_option_id id)
{
    const char *text;

    for (size_t at = 0; (text = cli_args_each(args, id, &at));) {
        const size_t name = launch_name(text);

        if (name && (!text[name] || text[name] == '=' || text[name] == ':'))
            continue;
        cli_error("--%s %s: NAME or NAME=VALUE is needed; a name has letters, digits and _",
                  cli_options[id].name, text);
        return false;
    }
    return true;
}

static bool grace_read(launch_job *job)
{
    const char *text = job->args->value[OPT_GRACE];
    double seconds = GRACE_DEFAULT_MS / 1000.0;
    char rest;

    if (text &&
        (sscanf(text, "%lf%c", &seconds, &rest) != 1 || !(seconds >= 0) || seconds > GRACE_MAX_MS / 1000.0)) {
        cli_error("--grace %s: seconds from 0 to %d are needed", text, GRACE_MAX_MS / 1000);
        return false;
    }
    job->grace_ns = (int64_t)(seconds * 1e9);
    return true;
}

/* Options that only some launchers have. */
static bool fits(const launch_job *job)
{
    const cli_args *args = job->args;
    const bool hosts = job->how == LAUNCH_SSH || job->how == LAUNCH_MPI;
    const char *wrong = NULL;

    if (job->how == LAUNCH_SSH && !args->value[OPT_HOSTFILE])
        wrong = "--launcher ssh: --hostfile FILE is missing";
    else if (args->value[OPT_HOSTFILE] && !hosts)
        wrong = "--hostfile is for the launchers ssh and mpi: others choose the hosts themselves";
    else if (args->value[OPT_SYNC_DST_DIR] && job->how != LAUNCH_SSH)
        wrong = "--sync-dst-dir is for the launcher ssh";
    else if (job->on_fail == LAUNCH_RESTART && job->how != LAUNCH_LOCAL && job->how != LAUNCH_SSH)
        wrong = "--on-fail restart is for the launchers local and ssh: others start processes themselves";
    else if (args->value[OPT_EMIT] && strcmp(args->value[OPT_EMIT], "k8s"))
        wrong = "--emit: k8s is needed";
    if (wrong)
        cli_error("%s", wrong);
    return !wrong;
}

static bool tool_find(launch_job *job)
{
    const ssize_t n = readlink("/proc/self/exe", job->self, sizeof job->self - 1);

    job->self[n > 0 ? n : 0] = '\0';
    job->tool = job->args->value[OPT_TOOL] ? job->args->value[OPT_TOOL] : n > 0 ? job->self : "tenon";
    return true;
}

static bool options_read(launch_job *job)
{
    const cli_args *args = job->args;

    if (!args->value[OPT_NUM_WORKERS]) {
        cli_error("launch: -n N, the number of workers, is missing");
        return false;
    }
    if (!number_of(args, OPT_NUM_WORKERS, 1, LAUNCH_PROCESSES_MAX, &job->workers))
        return false;
    job->servers = job->workers; /* as MXNet's launch.py */
    if (!number_of(args, OPT_NUM_SERVERS, 0, LAUNCH_PROCESSES_MAX, &job->servers))
        return false;
    if (!args->rest_count) {
        cli_error("launch: the command is missing: tenon launch -n %u -- COMMAND", job->workers);
        return false;
    }
    job->command = args->rest;
    job->all_roles = args->value[OPT_ALL_ROLES];
    return on_fail_read(job) && grace_read(job) && env_check(args, OPT_ENV) &&
           env_check(args, OPT_ENV_SERVER) && env_check(args, OPT_ENV_WORKER) && fits(job) && tool_find(job);
}

/* Where the scheduler is, which runs here. Without servers there is none. */
static bool address_find(launch_job *job)
{
    const char *given = job->args->value[OPT_HOST_IP];

    if (!job->servers || job->how == LAUNCH_RANK)
        return true;
    if (given && strlen(given) >= sizeof job->address) {
        cli_error("--host-ip %s: this is too long", given);
        return false;
    }
    if (given)
        (void)snprintf(job->address, sizeof job->address, "%s", given);
    else if (job->how == LAUNCH_LOCAL || (job->how == LAUNCH_MPI && !job->hosts.count))
        (void)snprintf(job->address, sizeof job->address, "%s", LOOPBACK);
    else
        launch_own_address(&job->hosts, job->address);
    if (job->all_roles && !(job->port = launch_free_port(job->address))) {
        cli_error("no port of %s can be had: %s", job->address, strerror(errno));
        return false;
    }
    return true;
}

static int job_run(launch_job *job)
{
    const cli_args *args = job->args;

    if (args->value[OPT_HOSTFILE]) {
        const int code = launch_hosts_read(args->value[OPT_HOSTFILE], &job->hosts);

        if (code)
            return code;
    }
    if (args->value[OPT_EMIT])
        return launch_emit_k8s(job);
    if (!address_find(job) || (job->how == LAUNCH_RANK && !launch_rank_find(job)))
        return CLI_EXIT_USAGE;
    if (args->value[OPT_PLAN]) { /* made up when it runs */
        (void)snprintf(job->number, sizeof job->number, "JOB");
        job->secret_file = *job->address ? cli_format("SECRET-FILE") : NULL;
        return launch_dry_run(job);
    }
    if (!launch_random(job->number, 8) || (*job->address && !launch_random(job->secret, 32)))
        return CLI_EXIT_FAILED;
    if ((job->how == LAUNCH_SGE || job->how == LAUNCH_YARN) && !args->value[OPT_QUIET])
        cli_say(stderr, "tenon: --launcher %s has not been tested on a live cluster\n",
                launch_how_names[job->how]);
    return launch_supervise(job);
}

int cmd_launch(const cli_args *args)
{
    launch_job job = {.args = args};
    int code;

    if (!how_read(&job))
        return CLI_EXIT_USAGE;
    if (job.how == LAUNCH_PIPE)
        return launch_remote_run();
    code = options_read(&job) ? job_run(&job) : CLI_EXIT_USAGE;
    launch_hosts_fini(&job.hosts);
    free(job.secret_file);
    return code;
}
