/*
 * What a plugin may not change in its process (rule R8). Everything is read as the system shows it, so it
 * does not matter by which call it was changed.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define TEXT_BYTES 512u
#define FILES_MAX 1024
#define SIGNALS 65
#define TIMERS 3                           /* ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF */
#define READ_BYTES_MAX ((uint64_t)4 << 20) /* a "large file" */

struct chk_process {
    chk_env *env;
    struct sigaction actions[SIGNALS];
    sigset_t mask;
    char **variables; /* NULL-ended */
    cpu_set_t affinity;
    int rounding, exceptions, priority;
    uint32_t float_control;
    char locale[TEXT_BYTES], folder[TEXT_BYTES], creation[32];
    bool files[FILES_MAX];
    struct itimerval timers[TIMERS];
    struct rlimit limits[RLIM_NLIMITS];
    stack_t signal_stack;
    locale_t thread_locale;
    char name[16]; /* of the thread */
    uint32_t threads, exits, sockets;
    int omp_threads, omp_found; /* of OpenMP: as it is, and as it was before the kit set another number */
    uint64_t read_bytes;
};

extern char **environ;

/* ---- reading ---- */

/* The line of /proc/self/FILE that begins with `key`, what follows it. */
static bool proc_line(const char *path, const char *key, char *out, size_t bytes)
{
    FILE *f = fopen(path, "re");
    char line[256];
    bool found = false;

    out[0] = '\0';
    while (f && !found && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) {
            (void)snprintf(out, bytes, "%s", line + strlen(key));
            found = true;
        }
    if (f)
        (void)fclose(f);
    return found;
}

static void files_read(bool files[FILES_MAX])
{
    DIR *folder = opendir("/proc/self/fd");

    memset(files, 0, FILES_MAX * sizeof *files);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        int fd = atoi(e->d_name);

        if (e->d_name[0] != '.' && fd != dirfd(folder) && fd >= 0 && fd < FILES_MAX)
            files[fd] = true;
    }
    if (folder)
        (void)closedir(folder);
}

static uint32_t threads_read(void)
{
    DIR *folder = opendir("/proc/self/task");
    uint32_t count = 0;

    for (const struct dirent *e; folder && (e = readdir(folder));)
        count += e->d_name[0] != '.';
    if (folder)
        (void)closedir(folder);
    return count;
}

static char **variables_copy(void)
{
    size_t count = 0;
    char **copy;

    while (environ && environ[count])
        count++;
    copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = strdup(environ[i]);
    return copy;
}

static uint32_t float_control_read(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu; /* without the flags of what happened */
#else
    return 0;
#endif
}

/* A function of the OpenMP runtime that the plugin brought, if it did. */
static void *omp_symbol(chk_env *env, const char *name)
{
    void *handle = chk_case_of(env)->handle;

    return handle ? dlsym(handle, name) : NULL;
}

static int omp_threads_read(chk_env *env)
{
    union {
        void *symbol;
        int (*call)(void);
    } get = {.symbol = omp_symbol(env, "omp_get_max_threads")};

    return get.symbol ? get.call() : 0;
}

static void omp_threads_set(chk_env *env, int count)
{
    union {
        void *symbol;
        void (*call)(int count);
    } set = {.symbol = omp_symbol(env, "omp_set_num_threads")};

    if (set.symbol)
        set.call(count);
}

/* What nobody sets by chance: more than the kit grants, and no part of the processors. */
static int omp_threads_odd(const chk_process *p)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN), all = sysconf(_SC_NPROCESSORS_CONF);
    const int own = CPU_COUNT(&p->affinity);
    int count = 13;

    while (count == p->omp_found || online % count == 0 || all % count == 0 || own % count == 0)
        count++;
    return count;
}

static void settings_read(chk_process *p)
{
    for (int i = 0; i < TIMERS; i++)
        (void)getitimer((__itimer_which_t)i, &p->timers[i]);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit((__rlimit_resource_t)i, &p->limits[i]);
    (void)sigaltstack(NULL, &p->signal_stack);
    p->thread_locale = uselocale((locale_t)0);
    (void)prctl(PR_GET_NAME, p->name, 0, 0, 0);
    p->sockets = chk_imports_sockets();
}

static chk_process *process_read(chk_env *env)
{
    chk_process *p = calloc(1, sizeof *p);
    char text[64];

    if (!p)
        chk_fail(env, "kit", "out of memory");
    p->env = env;
    for (int i = 1; i < SIGNALS; i++)
        (void)sigaction(i, NULL, &p->actions[i]);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    p->variables = variables_copy();
    (void)sched_getaffinity(0, sizeof p->affinity, &p->affinity);
    p->rounding = fegetround();
    p->exceptions = fegetexcept();
    p->float_control = float_control_read();
    p->priority = getpriority(PRIO_PROCESS, 0);
    (void)snprintf(p->locale, sizeof p->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(p->folder, sizeof p->folder))
        p->folder[0] = '\0';
    (void)proc_line("/proc/self/status", "Umask:", p->creation, sizeof p->creation);
    files_read(p->files);
    p->threads = threads_read();
    p->exits = chk_imports_exits();
    settings_read(p);
    p->omp_threads = omp_threads_read(env);
    if (proc_line("/proc/self/io", "rchar:", text, sizeof text))
        p->read_bytes = strtoull(text, NULL, 10);
    return p;
}

/* The number of threads that a plugin would set is mostly the one that is there: so it is another one while
 * the plugin is watched. */
chk_process *chk_process_snapshot(chk_env *env)
{
    chk_process *p = process_read(env);

    p->omp_found = p->omp_threads;
    if (p->omp_found) {
        omp_threads_set(env, omp_threads_odd(p));
        p->omp_threads = omp_threads_read(env);
    }
    return p;
}

void chk_process_free(chk_process *p)
{
    if (!p)
        return;
    if (p->omp_found)
        omp_threads_set(p->env, p->omp_found);
    for (size_t i = 0; p->variables && p->variables[i]; i++)
        free(p->variables[i]);
    free(p->variables);
    free(p);
}

/* ---- comparing: each returns NULL or says what changed ---- */

static char text[TEXT_BYTES * 2];

static bool has_variable(char *const *variables, const char *one)
{
    while (*variables && strcmp(*variables, one) != 0)
        variables++;
    return *variables != NULL;
}

static const char *variable_changed(const chk_process *a, const chk_process *b)
{
    const char *what = NULL;

    for (size_t i = 0; !what && b->variables[i]; i++)
        if (!has_variable(a->variables, b->variables[i]))
            what = b->variables[i];
    for (size_t i = 0; !what && a->variables[i]; i++)
        if (!has_variable(b->variables, a->variables[i]))
            what = a->variables[i];
    if (!what)
        return NULL;
    (void)snprintf(text, sizeof text, "changes the environment: %.100s", what);
    return text;
}

static const char *signals_changed(const chk_process *a, const chk_process *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (a->actions[i].sa_sigaction != b->actions[i].sa_sigaction ||
            a->actions[i].sa_flags != b->actions[i].sa_flags) {
            (void)snprintf(text, sizeof text, "changes the handler of signal %d (%s)", i, strsignal(i));
            return text;
        }
    for (int i = 1; i < SIGNALS; i++)
        if (sigismember(&a->mask, i) != sigismember(&b->mask, i)) {
            (void)snprintf(text, sizeof text, "changes the mask of signal %d (%s)", i, strsignal(i));
            return text;
        }
    return NULL;
}

static const char *files_changed(const chk_process *a, const chk_process *b)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (a->files[i] != b->files[i]) {
            char path[64], to[TEXT_BYTES];
            ssize_t n;

            (void)snprintf(path, sizeof path, "/proc/self/fd/%d", i);
            n = readlink(path, to, sizeof to - 1);
            to[n > 0 ? n : 0] = '\0';
            (void)snprintf(text, sizeof text, "%s file %d (%s)", b->files[i] ? "leaves open" : "closes", i,
                           to);
            return text;
        }
    if (b->read_bytes - a->read_bytes > READ_BYTES_MAX) {
        (void)snprintf(text, sizeof text, "reads %llu bytes of files",
                       (unsigned long long)(b->read_bytes - a->read_bytes));
        return text;
    }
    return NULL;
}

static const char *threads_changed(const chk_process *a, const chk_process *b)
{
    uint32_t now = b->threads;
    chk_time t;

    chk_time_begin(&t); /* a joined thread is gone from the system's list a little later */
    while (now > a->threads && chk_time_sleep(&t, CHK_THREADS_STEP_US) < CHK_THREADS_US)
        now = threads_read();
    if (now <= a->threads)
        return NULL;
    (void)snprintf(text, sizeof text, "leaves %u threads running", (unsigned)(now - a->threads));
    return text;
}

/* A timer that runs down is another one each time. */
static bool timers_differ(const chk_process *a, const chk_process *b)
{
    bool differ = false;

    for (int i = 0; i < TIMERS; i++) {
        const struct itimerval *one = &a->timers[i], *two = &b->timers[i];

        differ |= timerisset(&one->it_value) != timerisset(&two->it_value) ||
                  timercmp(&one->it_interval, &two->it_interval, !=);
    }
    return differ;
}

static const char *modes_changed(const chk_process *a, const chk_process *b)
{
    const struct {
        bool changed;
        const char *what;
    } modes[] = {
        {!CPU_EQUAL(&a->affinity, &b->affinity), "changes the thread's affinity"},
        {a->rounding != b->rounding, "changes the rounding of floating point numbers"},
        {a->exceptions != b->exceptions, "changes the traps of floating point numbers"},
        {a->float_control != b->float_control, "changes the floating point mode (rounding, denormals)"},
        {a->priority != b->priority, "changes the priority"},
        {strcmp(a->locale, b->locale) != 0, "changes the locale"},
        {a->thread_locale != b->thread_locale, "changes the thread's locale"},
        {strcmp(a->name, b->name) != 0, "changes the thread's name"},
        {timers_differ(a, b), "sets a timer"},
        {memcmp(a->limits, b->limits, sizeof a->limits) != 0, "changes a limit of the process"},
        {a->signal_stack.ss_sp != b->signal_stack.ss_sp, "changes the stack of signal handlers"},
        {a->sockets != b->sockets, "opens a socket"},
        {strcmp(a->folder, b->folder) != 0, "changes the current folder"},
        {strcmp(a->creation, b->creation) != 0, "changes the umask"},
        {a->exits != b->exits, "registers a function with atexit"},
        {a->omp_threads && a->omp_threads != b->omp_threads, "changes OpenMP's number of threads"},
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (modes[i].changed)
            return modes[i].what;
    return NULL;
}

const char *chk_process_changed(const chk_process *before, uint32_t ignore)
{
    chk_process *now = process_read(before->env);
    const char *what = signals_changed(before, now);

    if (!what)
        what = variable_changed(before, now);
    if (!what)
        what = modes_changed(before, now);
    if (!what && !(ignore & CHK_PROCESS_FILES))
        what = files_changed(before, now);
    if (!what && !(ignore & CHK_PROCESS_THREADS))
        what = threads_changed(before, now);
    chk_process_free(now);
    return what;
}
