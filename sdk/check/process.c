/*
 * What a plugin may not change in its process (rule R8). Everything is read as the system shows it, so it
 * does not matter by which call it was changed. A state is a text: a line for each thing that may change,
 * with what its change is called and, behind a tab, its value.
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
#include <unistd.h>

#include "internal.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#define FLOAT_CONTROL (_mm_getcsr() & ~0x3fu) /* without the flags of what happened */
#else
#define FLOAT_CONTROL 0u
#endif

#define SIGNALS 65
#define READ_BYTES_MAX ((uint64_t)4 << 20) /* a "large file" */

struct chk_process {
    chk_env *env;
    char *settings, *files; /* lines */
    uint32_t threads;
    int omp_found; /* threads of OpenMP before the kit set another number; 0: it has none */
    uint64_t read_bytes;
};

extern char **environ;

/* ---- reading ---- */

/* The line of a file that begins with `key`, what follows it; "": there is none. */
static void proc_line(const char *path, const char *key, char *out, size_t bytes)
{
    FILE *f = fopen(path, "re");
    char line[256];

    out[0] = '\0';
    while (f && !*out && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            (void)snprintf(out, bytes, "%s", line + strlen(key));
    if (f)
        (void)fclose(f);
}

static char *files_read(void)
{
    DIR *folder = opendir("/proc/self/fd");
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    for (const struct dirent *e; f && folder && (e = readdir(folder));) {
        char to[512] = "";

        if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(folder))
            continue;
        (void)!readlinkat(dirfd(folder), e->d_name, to, sizeof to - 1);
        (void)fprintf(f, "file %s (%s)\n", e->d_name, to);
    }
    if (folder)
        (void)closedir(folder);
    if (f)
        (void)fclose(f);
    return text;
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

/* A function of the OpenMP runtime that the plugin brought, if it did. */
typedef union omp_function {
    void *symbol;
    int (*get)(void);
    void (*set)(int count);
} omp_function;

static omp_function omp_find(chk_env *env, const char *name)
{
    void *handle = chk_case_of(env)->handle;

    return (omp_function){.symbol = handle ? dlsym(handle, name) : NULL};
}

static int omp_threads_read(chk_env *env)
{
    const omp_function f = omp_find(env, "omp_get_max_threads");

    return f.symbol ? f.get() : 0;
}

static void omp_threads_set(chk_env *env, int count)
{
    const omp_function f = omp_find(env, "omp_set_num_threads");

    if (f.symbol)
        f.set(count);
}

/* What nobody sets by chance: more than the kit grants, and no part of the processors. */
static int omp_threads_odd(int found)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN), all = sysconf(_SC_NPROCESSORS_CONF);
    cpu_set_t set;
    int own = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), count = 13;

    while (count == found || online % count == 0 || all % count == 0 || own % count == 0)
        count++;
    return count;
}

static void signals_write(FILE *f)
{
    struct sigaction action;
    sigset_t mask;
    stack_t stack;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < SIGNALS; i++) {
        if (!sigaction(i, NULL, &action))
            (void)fprintf(f, "changes the handler of signal %d (%s)\t%p %x\n", i, strsignal(i),
                          (void *)(uintptr_t)action.sa_sigaction, (unsigned)action.sa_flags);
        (void)fprintf(f, "changes the mask of signal %d (%s)\t%d\n", i, strsignal(i), sigismember(&mask, i));
    }
    (void)sigaltstack(NULL, &stack);
    (void)fprintf(f, "changes the stack of signal handlers\t%p\n", stack.ss_sp);
}

static void limits_write(FILE *f)
{
    struct itimerval timer;
    struct rlimit limit;

    for (int i = ITIMER_REAL; i <= ITIMER_PROF; i++) /* one that runs down is another one each time */
        if (!getitimer((__itimer_which_t)i, &timer))
            (void)fprintf(f, "sets a timer\t%d %d %ld.%ld\n", i, timerisset(&timer.it_value),
                          (long)timer.it_interval.tv_sec, (long)timer.it_interval.tv_usec);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (!getrlimit((__rlimit_resource_t)i, &limit))
            (void)fprintf(f, "changes a limit of the process\t%d %llu %llu\n", i,
                          (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void modes_write(FILE *f)
{
    char text[512] = "";
    cpu_set_t set;

    (void)fprintf(f, "changes the thread's affinity\t");
    for (size_t i = 0; !sched_getaffinity(0, sizeof set, &set) && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            (void)fprintf(f, "%zu ", i);
    (void)fprintf(f, "\nchanges the rounding of floating point numbers\t%d\n", fegetround());
    (void)fprintf(f, "changes the traps of floating point numbers\t%d\n", fegetexcept());
    (void)fprintf(f, "changes the floating point mode (rounding, denormals)\t%x\n", FLOAT_CONTROL);
    (void)fprintf(f, "changes the priority\t%d\n", getpriority(PRIO_PROCESS, 0));
    (void)fprintf(f, "changes the locale\t%s\n", setlocale(LC_ALL, NULL));
    (void)fprintf(f, "changes the thread's locale\t%p\n", (void *)uselocale((locale_t)0));
    (void)prctl(PR_GET_NAME, text, 0, 0, 0);
    (void)fprintf(f, "changes the thread's name\t%s\n", text);
    (void)fprintf(f, "opens a socket\t%u\n", chk_imports_sockets());
    (void)fprintf(f, "changes the current folder\t%s\n", getcwd(text, sizeof text) ? text : "");
    proc_line("/proc/self/status", "Umask:", text, sizeof text);
    (void)fprintf(f, "changes the umask\t%s\n", text);
    (void)fprintf(f, "registers a function with atexit\t%u\n", chk_imports_exits());
}

/* `omp`: it was there before. */
static char *settings_read(chk_env *env, bool omp)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    chk_fail_if(env, !f, "kit", "out of memory");
    signals_write(f);
    for (size_t i = 0; environ && environ[i]; i++)
        (void)fprintf(f, "changes the environment: %.100s\t%s\n", environ[i], environ[i]);
    modes_write(f);
    if (omp)
        (void)fprintf(f, "changes OpenMP's number of threads\t%d\n", omp_threads_read(env));
    limits_write(f);
    (void)fclose(f);
    return text;
}

static chk_process *process_read(chk_env *env, int omp_found)
{
    chk_process *p = calloc(1, sizeof *p);
    char text[64];

    chk_fail_if(env, !p, "kit", "out of memory");
    *p = (chk_process){.env = env,
                       .settings = settings_read(env, omp_found > 0),
                       .files = files_read(),
                       .threads = threads_read()};
    chk_fail_if(env, !p->settings || !p->files, "kit", "out of memory");
    proc_line("/proc/self/io", "rchar:", text, sizeof text);
    p->read_bytes = strtoull(text, NULL, 10);
    return p;
}

/* The number of threads that a plugin would set is mostly the one that is there: so it is another one while
 * the plugin is watched. */
chk_process *chk_process_snapshot(chk_env *env)
{
    const int found = omp_threads_read(env);
    chk_process *p;

    if (found)
        omp_threads_set(env, omp_threads_odd(found));
    p = process_read(env, found);
    p->omp_found = found;
    return p;
}

void chk_process_free(chk_process *p)
{
    if (!p)
        return;
    if (p->omp_found)
        omp_threads_set(p->env, p->omp_found);
    free(p->settings);
    free(p->files);
    free(p);
}

/* ---- comparing: each returns NULL or says what changed ---- */

static char said[700];

/* The first line of `lines` that `others` lack, up to its value. */
static const char *line_lacking(const char *lines, const char *others, const char *before)
{
    if (!strcmp(lines, others)) /* mostly; the search takes lines times lines */
        return NULL;
    for (size_t length; *lines; lines += length) {
        const char *at = others;

        length = strcspn(lines, "\n") + 1;
        while (*at && strncmp(at, lines, length) != 0)
            at += strcspn(at, "\n") + 1;
        if (!*at) {
            (void)snprintf(said, sizeof said, "%s%.*s", before, (int)strcspn(lines, "\t\n"), lines);
            return said;
        }
    }
    return NULL;
}

static const char *files_changed(const chk_process *a, const chk_process *b)
{
    const char *what = line_lacking(b->files, a->files, "leaves open ");

    if (!what)
        what = line_lacking(a->files, b->files, "closes ");
    if (what || b->read_bytes - a->read_bytes <= READ_BYTES_MAX)
        return what;
    (void)snprintf(said, sizeof said, "reads %llu bytes of files",
                   (unsigned long long)(b->read_bytes - a->read_bytes));
    return said;
}

static const char *threads_changed(const chk_process *a, const chk_process *b)
{
    const struct timespec end = chk_deadline(CHK_THREADS_MS);
    uint32_t now = b->threads;

    while (now > a->threads && chk_pause(&end)) /* a joined thread leaves the system's list a little later */
        now = threads_read();
    if (now <= a->threads)
        return NULL;
    (void)snprintf(said, sizeof said, "leaves %u threads running", now - a->threads);
    return said;
}

const char *chk_process_changed(const chk_process *before, uint32_t ignore)
{
    chk_process *now = process_read(before->env, before->omp_found);
    const char *what = line_lacking(now->settings, before->settings, "");

    if (!what)
        what = line_lacking(before->settings, now->settings, "");
    if (!what && !(ignore & CHK_PROCESS_FILES))
        what = files_changed(before, now);
    if (!what && !(ignore & CHK_PROCESS_THREADS))
        what = threads_changed(before, now);
    chk_process_free(now);
    return what;
}
