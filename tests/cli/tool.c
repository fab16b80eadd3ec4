/*
 * Running the built tool. A line runs in /bin/sh with its output in files, so that nothing blocks.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/scratch.h"

static tool_said said;
static char folder[] = "/tmp/tenon-cli-XXXXXX";
static char absent[sizeof folder + 8]; /* is not there: no file of the user is read */
static char home[PATH_MAX];

static void shell(const char *command)
{
    if (system(command))
        fprintf(stderr, "failed: %s\n", command);
}

/* What the tool would read is what a test says. A locale that is not installed, of which every shell would
 * speak, is none. */
static void environment_clear(void)
{
    static const char *const begins[] = {
        "MXNET_", "DMLC_", "PS_", "OMP_NUM_THREADS=", "COLUMNS=", "LINES=", NULL};

    scratch_environment_clear(begins);
    if (!setlocale(LC_ALL, "") && !unsetenv("LC_ALL") && !setlocale(LC_ALL, ""))
        (void)setenv("LC_ALL", "C", 1);
    (void)setlocale(LC_ALL, "C");
    unsetenv("NO_COLOR");
}

void tool_setup(void)
{
    const char *path = getenv("TENON_TEST_TOOL");

    if (!path || access(path, X_OK)) {
        printf("skipped: the tool is not built\n");
        exit(77);
    }
    setenv("T", path, 1);
    environment_clear();
    (void)umask(022); /* what may be written by a group is refused as a plugin */
    if (!getcwd(home, sizeof home) || !mkdtemp(folder) || chdir(folder))
        exit(1);
    (void)snprintf(absent, sizeof absent, "%s/absent", folder);
    setenv("XDG_CONFIG_HOME", absent, 1);
}

void tool_teardown(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    if (!chdir(home))
        shell(command);
}

char *tool_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    if (text && file && !fread(text, 1, (1 << 20) - 1, file))
        *text = '\0';
    if (file)
        fclose(file);
    return text;
}

static void file_into(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, bytes - 1, file) : 0;

    text[n] = '\0';
    if (file)
        fclose(file);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void tool_signals_reset(void)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
}

pid_t tool_start(const char *line)
{
    /* Here and not in the child: nobody finds in them what another command said. */
    int out = open("out.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int err = open("err.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        tool_signals_reset();
        if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    (void)close(out);
    (void)close(err);
    return pid;
}

const tool_said *tool_wait(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said.code = code_of(status);
    file_into("out.txt", said.out, sizeof said.out);
    file_into("err.txt", said.err, sizeof said.err);
    return &said;
}

const tool_said *tool(const char *line)
{
    return tool_wait(tool_start(line));
}

void tool_needs_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    const char *name = NULL;

    if (master >= 0 && !grantpt(master) && !unlockpt(master) && (name = ptsname(master)))
        slave = open(name, O_RDWR | O_NOCTTY);
    if (slave < 0)
        printf("skipped: no terminal can be opened (is /dev/pts mounted?): %s\n", strerror(errno));
    if (master >= 0)
        (void)close(master);
    if (slave < 0)
        skip();
    (void)close(slave);
}

const tool_said *tool_terminal(int columns, const char *line)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    size_t used = 0;
    int master, status = 0;
    ssize_t n;
    pid_t pid;

    fflush(stdout);
    pid = forkpty(&master, NULL, NULL, &size);
    if (pid == 0) {
        tool_signals_reset();
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    while (used + 1 < sizeof said.out && (n = read(master, said.out + used, sizeof said.out - used - 1)) > 0)
        used += (size_t)n;
    said.out[used] = said.err[0] = '\0';
    close(master);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said.code = code_of(status);
    return &said;
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool tool_clock_fine(void)
{
    bool fine = false;

    for (int i = 0; i < 100 && !fine; i++) { /* a step that was held up looks coarse */
        const double before = now();
        double after;

        while ((after = now()) <= before)
            ;
        fine = after - before < 1e-4;
    }
    return fine;
}

static int lines_of(const char *path)
{
    char *text = tool_file(path);
    int lines = 0;

    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    free(text);
    return lines;
}

/* Waits for a moment; false: the process has ended. */
static bool lives(pid_t pid)
{
    const struct timespec moment = {0, 5000000};
    siginfo_t gone = {0};

    if (waitid(P_PID, (id_t)pid, &gone, WEXITED | WNOHANG | WNOWAIT) || gone.si_pid)
        return false;
    nanosleep(&moment, NULL);
    return true;
}

bool tool_lines(pid_t pid, const char *path, int lines)
{
    while (lines_of(path) < lines)
        if (!lives(pid))
            return lines_of(path) >= lines;
    return true;
}

bool tool_until(pid_t pid, const char *line)
{
    while (system(line))
        if (!lives(pid))
            return !system(line);
    return true;
}

static void number_write(FILE *file, uint32_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(n >> shift & 255), file);
}

/* Class c lights the row c mod 8, and for c above 7 the columns, too; some noise. */
static void part_write(const char *data, const char *part, int count, uint32_t random)
{
    char path[256];
    FILE *images, *labels;

    (void)snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", data, part);
    images = fopen(path, "w");
    (void)snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", data, part);
    labels = fopen(path, "w");
    assert_non_null(images);
    assert_non_null(labels);
    number_write(images, 0x803);
    number_write(images, (uint32_t)count);
    number_write(images, 8);
    number_write(images, 8);
    number_write(labels, 0x801);
    number_write(labels, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        int c = i * 7 % 10;

        for (int k = 0; k < 64; k++) {
            random = random * 1664525u + 1013904223u;
            fputc((k / 8 == c % 8 || (c > 7 && k % 8 == c - 7) ? 200 : 0) + (int)(random >> 27), images);
        }
        fputc(c, labels);
    }
    fclose(images);
    fclose(labels);
}

void tool_data(const char *data, int count)
{
    assert_true(!mkdir(data, 0777) || errno == EEXIST);
    part_write(data, "train", count, 7);
    part_write(data, "t10k", count, 8);
}

json_t *tool_json(const tool_said *s, int from_end)
{
    size_t end = strlen(s->out), begin;
    json_t *value;

    for (;; from_end--) {
        while (end && s->out[end - 1] == '\n')
            end--;
        begin = end;
        while (begin && s->out[begin - 1] != '\n')
            begin--;
        if (!from_end)
            break;
        end = begin;
    }
    value = json_loadb(s->out + begin, end - begin, JSON_REJECT_DUPLICATES, NULL);
    if (!value)
        fail_msg("no JSON: %.*s; stderr: %s", (int)(end - begin), s->out + begin, s->err);
    return value;
}
