/*
 * A guard stands between the launcher and each process that it starts. It is the parent of the process,
 * adopts what the process leaves behind (PR_SET_CHILD_SUBREAPER), and ends all of it once the process has
 * ended, or its channel closes: whatever the launcher dies of, nothing stays. Should the guard itself be
 * killed, its process dies with it (PR_SET_PDEATHSIG), and the launcher adopts the rest.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

#define CHANNEL 3      /* descriptor of the channel in a guard */
#define AWAY 16        /* descriptors that are moved lie here meanwhile */
#define NO_NEWS_MS 100 /* between looks at the process where no signalfd can be had */

typedef struct guard {
    int channel;
    bool far; /* the channel is stdin, and brings bytes */
    int gentle_ms;
    int news; /* signalfd of SIGCHLD, or -1 */
    pid_t child;
    int status; /* of the child, once it was waited for */
    int64_t ended_ns;
} guard;

int64_t launch_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int launch_code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- ending what is below ---- */

/* The parent of a process; 0: it is gone. A name in /proc/N/stat may hold anything: its last ')' counts. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    const char *rest;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    rest = n > 0 ? strrchr(text, ')') : NULL;
    return rest && strlen(rest) > 4 ? (pid_t)strtol(rest + 4, NULL, 10) : 0;
}

static bool listed(const launch_pids *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == pid)
            return true;
    return false;
}

static void note(launch_pids *list, pid_t pid)
{
    if (list->count < sizeof list->items / sizeof *list->items)
        list->items[list->count++] = pid;
}

/* Kills the children that are not spared, or lists all in `noted`. How many; -1: /proc is not there. */
static int children_each(const launch_pids *spared, launch_pids *noted)
{
    DIR *all = opendir("/proc");
    int count = all ? 0 : -1;

    for (const struct dirent *entry; all && (entry = readdir(all));) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || parent_of(entry->d_name) != getpid() || (spared && listed(spared, pid)))
            continue;
        if (noted)
            note(noted, pid);
        else
            (void)kill(pid, SIGKILL);
        count++;
    }
    if (all)
        (void)closedir(all);
    return count;
}

void launch_children_note(launch_pids *noted)
{
    noted->count = 0;
    (void)children_each(NULL, noted);
}

/* A child that dies hands its own children to us, so this ends when there are none. */
void launch_children_end(const launch_pids *spared)
{
    while (children_each(spared, NULL) > 0)
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
            ;
}

/* The group goes first, while the child's number cannot be given away: it is not waited for yet. */
static void below_end(guard *g)
{
    (void)kill(-g->child, SIGKILL);
    (void)kill(g->child, SIGKILL);
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (!pid) {
            if (children_each(NULL, NULL) < 0)
                pid = waitpid(g->child, &status, 0);
            else
                pid = waitpid(-1, &status, 0);
        }
        if (pid == g->child)
            g->status = status;
        if (pid < 0 && errno != EINTR)
            return;
    }
}

/* ---- the process ---- */

static void child_become(const launch_start *s, pid_t parent, int refused)
{
    int why;

    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        _exit(127);
    (void)signal(SIGPIPE, SIG_DFL); /* the tool ignores them; a program expects their defaults */
    (void)signal(SIGXFSZ, SIG_DFL);
    if (s->files)
        (void)setrlimit(RLIMIT_NOFILE, s->files);
    if (!s->folder || !chdir(s->folder)) {
        (void)sigprocmask(SIG_SETMASK, s->mask, NULL);
        (void)execvpe(s->argv[0], s->argv, s->env);
    }
    why = errno;
    (void)!write(refused, &why, sizeof why);
    _exit(why == ENOENT ? 127 : 126);
}

/* Starts the process; 0, or why it does not run. */
static int child_start(guard *g, const launch_start *s)
{
    const pid_t self = getpid();
    int refused[2], why = 0;
    ssize_t n;

    if (pipe2(refused, O_CLOEXEC))
        return errno;
    g->child = fork();
    if (!g->child)
        child_become(s, self, refused[1]);
    if (g->child < 0)
        why = errno;
    (void)close(refused[1]);
    do
        n = why ? 0 : read(refused[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    (void)close(refused[0]);
    if (why && g->child > 0)
        (void)waitpid(g->child, NULL, 0);
    return why;
}

/* Also waits for what it left behind and has ended. The child itself stays to be waited for. */
static bool child_ended(guard *g)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
            return false;
        if (info.si_pid == g->child)
            break;
        (void)waitpid(info.si_pid, NULL, 0);
    }
    g->ended_ns = launch_now();
    return true;
}

/* ---- the channel ---- */

static void signal_pass(const guard *g, int sig)
{
    if (sig <= 0 || sig >= NSIG)
        return;
    (void)kill(-g->child, sig);
    if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT)
        (void)kill(-g->child, SIGCONT); /* one that is stopped must not sleep through it */
}

/* False: end all that is below. */
static bool orders_take(const guard *g)
{
    unsigned char bytes[64];
    ssize_t n = read(g->channel, bytes, sizeof bytes);
    int32_t sig;

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (!n)
        return false;
    if (!g->far) {
        memcpy(&sig, bytes, sizeof sig);
        if (n == sizeof sig && sig != SIGKILL)
            signal_pass(g, sig);
        return n != sizeof sig || sig != SIGKILL;
    }
    for (ssize_t i = 0; i < n; i++)
        if (bytes[i] == SIGKILL)
            return false;
        else if (bytes[i] != LAUNCH_BEAT)
            signal_pass(g, bytes[i]);
    return true;
}

/* Waits for news of the process or of the channel (-1: not of it); false: there were none. */
static bool news_wait(const guard *g, struct pollfd *channel, int timeout)
{
    struct pollfd fds[] = {*channel, {g->news, POLLIN, 0}};
    const int n = poll(fds, 2, g->news < 0 ? NO_NEWS_MS : timeout);
    struct signalfd_siginfo info;

    *channel = fds[0];
    if (n > 0 && fds[1].revents)
        (void)!read(g->news, &info, sizeof info);
    return n || g->news < 0;
}

/* Until the process has ended or has to. */
static void watch(guard *g)
{
    sigset_t ends;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGCHLD);
    g->news = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    while (!child_ended(g)) {
        struct pollfd channel = {g->channel, POLLIN, 0};

        if (!news_wait(g, &channel, g->far ? LAUNCH_SILENCE_MS : -1))
            return; /* the launcher's host is gone, and nobody told us */
        if (channel.revents && !orders_take(g))
            return;
    }
}

/* What has processes elsewhere ends them when it is asked to, never when it is killed. */
static void gently_end(guard *g)
{
    const int64_t until = launch_now() + (int64_t)g->gentle_ms * LAUNCH_MS;
    int64_t now = launch_now();

    if (g->gentle_ms && !child_ended(g))
        signal_pass(g, SIGTERM);
    for (; g->gentle_ms && now < until && !child_ended(g); now = launch_now())
        (void)news_wait(g, &(struct pollfd){-1, 0, 0}, (int)((until - now) / LAUNCH_MS) + 1);
}

static void say(const guard *g, int32_t kind, int32_t value, int64_t at_ns)
{
    const launch_said said = {kind, value, at_ns};

    (void)!send(g->channel, &said, sizeof said, MSG_NOSIGNAL);
}

/* Signals are for the process; a guard ends when its work is done. */
static void guard_settle(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "tenon-guard");
}

/* Descriptors 0 to 3 are these, and there are no others: neither guard nor process holds another's. */
static bool descriptors_take(const int wanted[4])
{
    int away[4];

    for (int i = 0; i < 4; i++) {
        const int null = wanted[i] < 0 ? open("/dev/null", O_RDWR) : wanted[i];

        if ((away[i] = fcntl(null, F_DUPFD, AWAY)) < 0)
            return false;
    }
    for (int i = 0; i < 4; i++)
        if (dup2(away[i], i) < 0)
            return false;
    if (close_range(CHANNEL + 1, ~0u, 0))
        for (int fd = CHANNEL + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
            (void)close(fd);
    return !fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
}

/* A guard keeps no end of its process's pipes: their readers wait for the end. */
static void descriptors_leave(void)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
}

static void guard_main(const launch_start *s, int channel)
{
    guard g = {.channel = CHANNEL, .gentle_ms = s->gentle_ms};
    int why;

    (void)setpgid(0, 0); /* what a terminal sends to the launcher's group is not for guards */
    guard_settle();
    if (!descriptors_take((const int[]){s->in, s->out, s->err, channel}))
        _exit(1);
    why = child_start(&g, s);
    descriptors_leave();
    if (why) {
        say(&g, LAUNCH_REFUSED, why, launch_now());
        _exit(0);
    }
    say(&g, LAUNCH_STARTED, (int32_t)g.child, launch_now());
    watch(&g);
    gently_end(&g);
    below_end(&g);
    say(&g, LAUNCH_ENDED, g.status, g.ended_ns ? g.ended_ns : launch_now());
    _exit(0);
}

pid_t launch_guard_start(const launch_start *start, int *channel)
{
    int pair[2], why;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -1;
    pid = fork();
    if (!pid)
        guard_main(start, pair[1]);
    why = errno;
    (void)close(pair[1]);
    if (pid < 0)
        (void)close(pair[0]);
    else
        *channel = pair[0];
    errno = why;
    return pid;
}

void launch_guard_signal(int channel, int sig)
{
    const int32_t order = sig;

    (void)!send(channel, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int launch_guard_run(const launch_start *start)
{
    guard g = {.channel = STDIN_FILENO, .far = true};
    int why, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    guard_settle();
    if ((g.channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, AWAY)) < 0 || dup2(null, STDIN_FILENO) < 0)
        why = errno;
    else
        why = child_start(&g, start);
    if (why) {
        cli_error("cannot run %s: %s", start->argv[0], strerror(why));
        return why == ENOENT ? 127 : 126;
    }
    watch(&g);
    below_end(&g);
    return launch_code_of(g.status);
}
