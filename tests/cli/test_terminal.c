/*
 * What the tool looks like: to a pipe, on terminals of several widths and abilities, with its output closed
 * or full, interrupted once and twice. What it said is masked (numbers, hashes, the parts of a bar that move)
 * and compared with tests/golden/terminal/NAME.txt; TENON_TEST_GOLDEN_UPDATE=1 writes these files anew.
 *
 * On a terminal one line of the golden file is what stood between two carriage returns or newlines; what is
 * drawn again with other numbers counts once.
 */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TRAIN "\"$T\" train zoo:lenet --data ./d --epochs 1 --set train.batch=16 --set plugins.load=cpu "
#define CLEAN                                                                                                \
    "env -u TENON_RUNS -u TENON_SEED -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE -u NO_COLOR LC_ALL=C.UTF-8 "   \
    "TERM=xterm "

/* ---- masking ---- */

static bool is_hash(const char *c)
{
    return strspn(c, "0123456789abcdef") >= 64;
}

static size_t escape_length(const char *c)
{
    return *c == '\033' ? strcspn(c, "m") + 1 : 0;
}

/* Bytes of a bar of at least ten cells, with its colours; 0: there is none. */
static size_t bar_length(const char *c)
{
    static const char *const cells[] = {"━", "─", "#", "."};
    size_t n = 0, count = 0, more = 1;

    while (more) {
        more = escape_length(c + n);
        for (size_t i = 0; !more && i < sizeof cells / sizeof *cells; i++)
            if (!strncmp(c + n, cells[i], strlen(cells[i]))) {
                more = strlen(cells[i]);
                count++;
            }
        n += more;
    }
    return count >= 10 ? n : 0;
}

static size_t time_length(const char *c)
{
    const char *pattern = "0000-00-00T00:00:00Z";

    for (size_t i = 0; pattern[i]; i++)
        if (pattern[i] == '0' ? !isdigit((unsigned char)c[i]) : c[i] != pattern[i])
            return 0;
    return strlen(pattern);
}

static size_t number_length(const char *c)
{
    size_t n = strspn(c, "0123456789");

    while (n && c[n] == ',' && strspn(c + n + 1, "0123456789") == 3) /* 1,234 */
        n += 4;
    if (n && c[n] == '.' && isdigit((unsigned char)c[n + 1]))
        n += 1 + strspn(c + n + 1, "0123456789");
    return n;
}

static size_t curve_length(const char *c)
{
    static const char *const curve[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇"};

    for (size_t i = 0; i < sizeof curve / sizeof *curve; i++)
        if (!strncmp(c, curve[i], strlen(curve[i])))
            return strlen(curve[i]);
    return 0;
}

/* One piece of masking: how many bytes of `c` it takes, and what stands for them. */
static size_t mask_one(const char *c, bool in_word, const char **out)
{
    size_t n;

    *out = *c == '\033' ? "COLOURED" : "BAR";
    if ((n = bar_length(c)))
        return n;
    *out = "CURVE";
    if ((n = curve_length(c)))
        return n;
    if (in_word)
        return 0;
    *out = "HASH";
    if (is_hash(c))
        return strspn(c, "0123456789abcdef");
    *out = "TIME";
    if ((n = time_length(c)))
        return n;
    *out = "N";
    return number_length(c);
}

/* Whether the letters and digits before `c` are a word such as sha256. */
static bool is_in_word(const char *text, const char *c)
{
    while (c > text && isdigit((unsigned char)c[-1]))
        c--;
    return c > text && (isalpha((unsigned char)c[-1]) || c[-1] == '_');
}

static void mask(const char *text, char *out, size_t bytes)
{
    size_t used = 0;
    const char *stands;

    for (const char *c = text; *c && used + 16 < bytes;) {
        size_t n = mask_one(c, is_in_word(text, c), &stands);

        if (n) {
            used += (size_t)snprintf(out + used, bytes - used, "%s", stands);
            c += n;
        } else if (*c == ' ' && used && out[used - 1] == ' ') {
            c++; /* columns are as wide as the names in them */
        } else {
            for (n = escape_length(c) ? escape_length(c) : 1; n && *c; n--)
                out[used++] = *c++;
        }
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

/* ---- lines ---- */

typedef struct lines {
    char text[65536];
    size_t used;
    char last[1024];
    bool
        no_epochs; /* how many epochs were done is a matter of time: their lines are no part of the picture */
} lines;

/* A bar's line ends behind the loss: which numbers fit behind it depends on how long they are. */
static void bar_cut(char *line)
{
    char *loss = strncmp(line, "epoch N/N", 9) ? NULL : strstr(line, "loss N");

    if (loss && loss[6])
        memcpy(loss + 6, " ...", 5);
}

static void line_add(lines *l, const char *text, const char *only)
{
    char masked[1024];
    char visible[sizeof masked * 2];
    size_t used = 0;

    mask(text, masked, sizeof masked);
    bar_cut(masked);
    if (!strncmp(masked, "TIME train", 10) && !strstr(masked, "valid_loss"))
        return; /* one line each ten seconds, on a slow machine */
    if (l->no_epochs && !strncmp(masked + (*masked == ' '), "N/N loss ", 9))
        return;
    if (!*masked || !strcmp(masked, l->last) || (only && !strstr(masked, only)))
        return;
    (void)snprintf(l->last, sizeof l->last, "%s", masked);
    for (const char *c = masked; *c && used + 8 < sizeof visible; c++) /* escapes as text */
        used += (size_t)snprintf(visible + used, 8, *c == '\033' ? "<ESC>" : "%c", *c);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s\n", visible);
}

static void lines_add(lines *l, const char *head, const char *text, const char *only)
{
    char line[4096];

    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "--- %s\n", head);
    l->last[0] = '\0';
    while (*text) {
        size_t n = strcspn(text, "\r\n");

        (void)snprintf(line, sizeof line, "%.*s", (int)n, text);
        line_add(l, line, only);
        text += n + (text[n] != '\0');
    }
}

/* Compares with the golden file, or writes it. */
static void golden(const char *name, const lines *l)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char path[600], *expected;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/golden/terminal/%s.txt", source ? source : ".", name);
    if (getenv("TENON_TEST_GOLDEN_UPDATE")) {
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(l->text, file);
        fclose(file);
        return;
    }
    expected = tool_file(path);
    if (strcmp(expected, l->text))
        fail_msg("%s differs\nexpected:\n%s\nsaid:\n%s", path, expected, l->text);
    free(expected);
}

static void code_add(lines *l, int code)
{
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "code %d\n", code);
}

/* ---- terminals ---- */

/* What is done to the program once it has drawn a bar: its signal handlers are there from the
 * first step on. */
typedef struct act {
    char key;   /* typed */
    int signal; /* sent */
    bool held;  /* what it prints is held from here on, and the signal comes until the program has ended */
} act;

typedef struct session {
    char said[1 << 18];
    size_t used;
    int master, code;
    double seconds;
    pid_t pid;
} session;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads what there is within `ms` (-1: whenever it comes); false at the end. */
static bool session_read(session *s, int ms)
{
    struct pollfd fd = {.fd = s->master, .events = POLLIN};
    ssize_t n;

    if (poll(&fd, 1, ms) <= 0)
        return true;
    n = read(s->master, s->said + s->used, sizeof s->said - s->used - 1);
    if (n <= 0)
        return false;
    s->used += (size_t)n;
    s->said[s->used] = '\0';
    return true;
}

/* As ^S does, but done when this returns. */
static void session_hold(const session *s)
{
    int slave = open(ptsname(s->master), O_RDWR | O_NOCTTY | O_CLOEXEC);

    assert_true(slave >= 0);
    assert_int_equal(tcflow(slave, TCOOFF), 0);
    (void)close(slave);
}

static void session_act(session *s, const act *a)
{
    while (!strstr(s->said, "ETA ")) /* of a bar, behind its loss */
        if (!session_read(s, -1))
            return;
    if (a->held)
        session_hold(s);
    if (a->key)
        assert_int_equal(write(s->master, &a->key, 1), 1);
    do {
        if (a->signal)
            (void)kill(s->pid, a->signal);
    } while (a->held && session_read(s, 300));
}

/* In the child: ^C throws nothing away, or what was printed while the other side was busy would be
 * missing. */
static void flush_never(void)
{
    struct termios t;

    if (tcgetattr(STDIN_FILENO, &t))
        _exit(126);
    t.c_lflag |= NOFLSH;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &t))
        _exit(126);
}

/* The terminal shows each ^C that is typed, wherever the line happens to be. */
static void keys_remove(char *text)
{
    for (char *at = text; (at = strstr(at, "^C"));)
        memmove(at, at + 2, strlen(at + 2) + 1);
}

/* Runs the line on a terminal. One that hangs is the time limit's of the test. */
static session *on_terminal(int columns, const char *line, const act *a)
{
    static session s;
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    double began = now();
    int status = 0;

    memset(&s, 0, sizeof s);
    fflush(stdout);
    s.pid = forkpty(&s.master, NULL, NULL, &size);
    if (s.pid == 0) {
        tool_signals_reset();
        flush_never();
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    if (a)
        session_act(&s, a);
    while (session_read(&s, -1))
        ;
    while (waitpid(s.pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)close(s.master);
    s.seconds = now() - began;
    s.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    keys_remove(s.said);
    return &s;
}

/* No line that is drawn is wider than the terminal, and a bar is drawn ten times a second at most. */
static void bar_is_modest(const session *s, int columns)
{
    int draws = 0, width = 0;
    bool bar = false;

    for (const char *c = s->said; *c; c++) {
        if (*c == '\r' || *c == '\n') {
            width = 0;
            bar = !strncmp(c + 1, "epoch ", 6);
            draws += bar;
            continue;
        }
        if (*c == '\033') {
            c += strcspn(c, "m");
            continue;
        }
        width += ((unsigned char)*c & 0xc0) != 0x80;
        if (bar)
            assert_true(width < columns);
    }
    assert_true(draws <= (int)(s->seconds * 10) + 2);
}

/* ---- cases ---- */

#define LOOK_AT(name, columns, line, only)                                                                   \
    {                                                                                                        \
        name "-" #columns, columns, "exec " CLEAN "\"$T\" " line, only                                       \
    }
#define LOOK(name, line, only)                                                                               \
    LOOK_AT(name, 40, line, only), LOOK_AT(name, 60, line, only), LOOK_AT(name, 80, line, only),             \
        LOOK_AT(name, 120, line, only)

static const struct {
    const char *name;
    int columns; /* 0: to files, as to a pipe */
    const char *line, *only;
} cases[] = {
    {"train-pipe", 0, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-quiet", 0, "rm -rf r; exec " CLEAN TRAIN "--out r --quiet", NULL},
    {"train-terminal", 120, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-40-columns", 40, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-20-columns", 20, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-5-columns", 5, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-dumb", 80, "rm -rf r; exec " CLEAN "TERM=dumb " TRAIN "--out r", NULL},
    {"train-no-term", 80,
     "rm -rf r; exec env -u TENON_RUNS -u TENON_SEED -u TERM LC_ALL=C.UTF-8 " TRAIN "--out r", NULL},
    {"train-no-color", 120, "rm -rf r; exec " CLEAN "NO_COLOR=1 " TRAIN "--out r", NULL},
    {"train-no-utf8", 120, "rm -rf r; exec " CLEAN "LC_ALL=C " TRAIN "--out r", NULL},
    {"train-closed-stdout", 0, "rm -rf r; exec " CLEAN TRAIN "--out r >&-", NULL},
    {"train-full-stdout", 0, "rm -rf r; exec " CLEAN TRAIN "--out r >/dev/full", NULL},
    {"train-closed-stderr", 0, "rm -rf r; exec " CLEAN TRAIN "--out r 2>&-", NULL},
    {"plugins-pipe", 0, "exec " CLEAN "\"$T\" plugins list --set plugins.load=mempool", "mempool"},
    {"plugins-terminal", 80, "exec " CLEAN "\"$T\" plugins list --set plugins.load=mempool", "mempool"},
    {"train-60-columns", 60, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    {"train-80-columns", 80, "rm -rf r; exec " CLEAN TRAIN "--out r", NULL},
    LOOK("ops", "ops --family conv --set plugins.load=cpu", NULL),
    LOOK("zoo", "zoo mobilenet", NULL),
    LOOK("runs", "runs list --runs .", NULL),
    LOOK("plugins", "plugins list --set plugins.load=mempool", "mempool"),
    LOOK("help", "zoo --help", NULL),
    LOOK("help-group", "help runs", NULL),
    LOOK("mistake", "train zoo:lente", NULL),
    {"plugins-closed-stdout", 0, "exec " CLEAN "\"$T\" plugins list >&-", NULL},
    {"plugins-full-stdout", 0, "exec " CLEAN "\"$T\" plugins list >/dev/full", NULL},
    {"error-pipe", 0, "exec " CLEAN "\"$T\" train zoo:lente", NULL},
    {"error-terminal", 80, "exec " CLEAN "\"$T\" train zoo:lente", NULL},
    {"error-option-terminal", 40, "exec " CLEAN "\"$T\" train zoo:lenet --set train.epchs=1", NULL},
    {"error-no-color", 80, "exec " CLEAN "NO_COLOR=1 \"$T\" train zoo:lente", NULL},
    {"error-closed-stderr", 0, "exec " CLEAN "\"$T\" train zoo:lente 2>&-", NULL},
    {"doctor-pipe", 0, "exec " CLEAN "OPENBLAS_CORETYPE=Haswell \"$T\" doctor", "OPENBLAS_CORETYPE"},
    {"doctor-terminal", 80, "exec " CLEAN "OPENBLAS_CORETYPE=Haswell \"$T\" doctor", "OPENBLAS_CORETYPE"},
    {"doctor-no-color", 80, "exec " CLEAN "NO_COLOR=1 OPENBLAS_CORETYPE=Haswell \"$T\" doctor",
     "OPENBLAS_CORETYPE"},
    {"doctor-no-utf8", 20, "exec " CLEAN "LC_ALL=C OPENBLAS_CORETYPE=Haswell \"$T\" doctor",
     "OPENBLAS_CORETYPE"},
    {"doctor-full-stdout", 0, "exec " CLEAN "\"$T\" doctor >/dev/full", NULL},
};

static void looks(bool terminal)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static lines l;

        if (terminal != (cases[i].columns != 0))
            continue;
        memset(&l, 0, sizeof l);
        if (cases[i].columns) {
            const session *s = on_terminal(cases[i].columns, cases[i].line, NULL);

            code_add(&l, s->code);
            lines_add(&l, "terminal", s->said, cases[i].only);
            bar_is_modest(s, cases[i].columns);
        } else {
            const tool_said *s = tool(cases[i].line);

            assert_null(strchr(s->out, '\033'));
            assert_null(strchr(s->err, '\033'));
            assert_null(strchr(s->err, '\r'));
            code_add(&l, s->code);
            lines_add(&l, "stdout", s->out, cases[i].only);
            lines_add(&l, "stderr", s->err, cases[i].only);
        }
        golden(cases[i].name, &l);
    }
}

static void looks_on_terminal(void **state)
{
    (void)state;
    tool_needs_terminal();
    looks(true);
}

static void looks_in_files(void **state)
{
    (void)state;
    looks(false);
}

/* As script(1) records it: a terminal, too. */
static void in_script(void **state)
{
    static lines l;
    char *said;

    (void)state;
    tool_needs_terminal();
    if (tool("command -v script")->code) {
        printf("skipped: script is not installed\n");
        skip();
    }
    assert_int_equal(tool("rm -rf r; " CLEAN "script -qec 'stty cols 90; " TRAIN
                          "--out r' typescript >all.txt"
                          " </dev/null; sed '/^Script /d' typescript >said.txt")
                         ->code,
                     0);
    memset(&l, 0, sizeof l);
    said = tool_file("said.txt");
    lines_add(&l, "typescript", said, NULL);
    free(said);
    golden("train-script", &l);
}

/* Number 9: a pipe from which nobody reads any more. */
static int reader_gone(void)
{
    int ends[2] = {-1, -1};

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], 9), 9);
    (void)close(ends[0]);
    if (ends[1] != 9)
        (void)close(ends[1]);
    return 9;
}

/* Whoever reads the output may stop reading: no message, no signal. */
static void reader_leaves(void **state)
{
    static const char *const commands[] = {"exec \"$T\" version >&9", "exec \"$T\" manual tenon.ini >&9"};
    int left;
    const tool_said *s = tool("( \"$T\" manual tenon.ini; echo $? >code.txt ) | head -n 1; cat code.txt");

    (void)state;
    assert_string_equal(s->err, "");
    assert_says(s->out, ".TH TENON.INI");
    assert_true(strstr(s->out, "\n0\n") || strstr(s->out, "\n1\n"));
    /* Who has left before the first byte; then inside a long output, where stdio alone sees the error. */
    left = reader_gone();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        s = tool(commands[i]);
        assert_string_equal(s->err, "");
        assert_int_equal(s->code, 1);
    }
    (void)close(left);
    s = tool("\"$T\" manual tenon.ini >/dev/full");
    assert_int_equal(s->code, 1);
    assert_says(s->err, "No space left on device");
}

#define LONG "rm -rf r; exec " CLEAN TRAIN "--epochs 100000 --out r"

/* ^C: the step is finished, the state saved, and said how to go on. */
static void interrupted(void **state)
{
    static const struct {
        const char *name, *line;
        act act;
    } rows[] = {
        {"interrupt-once", LONG, {.key = 'C' & 31}},
        {"resume", "exec " CLEAN "\"$T\" train --resume r --set plugins.load=cpu", {.key = 'C' & 31}},
        {"terminate", LONG, {.signal = SIGTERM}},
        /* The first ^C cannot come to its end. One that comes while the one before waits to be taken is lost,
         * as is one within a moment of it: so there are more than two. */
        {"interrupt-twice", LONG, {.signal = SIGINT, .held = true}},
    };

    (void)state;
    tool_needs_terminal();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static lines l;
        const session *s = on_terminal(100, rows[i].line, &rows[i].act);

        memset(&l, 0, sizeof l);
        l.no_epochs = true;
        code_add(&l, s->code);
        lines_add(&l, "terminal", s->said, NULL);
        bar_is_modest(s, 100);
        golden(rows[i].name, &l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_on_terminal),
        cmocka_unit_test(looks_in_files),
        cmocka_unit_test(in_script),
        cmocka_unit_test(reader_leaves),
        cmocka_unit_test(interrupted),
    };
    int failed;

    tool_setup();
    tool_data("d", 160);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
