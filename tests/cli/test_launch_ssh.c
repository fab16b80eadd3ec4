/*
 * tenon launch over ssh, against a real sshd with keys of its own. The test listens on a free port of
 * loopback itself and gives each connection to `sshd -i`, so no port is raced for and nothing is waited for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#define SSHD "/usr/sbin/sshd"
#define RUN "exec \"$T\" launch -H hosts --ssh 'ssh -F config' --host-ip 127.0.0.1 --grace 60 "

static pid_t listener;
static int port;

static void make(const char *line)
{
    const tool_said *s = tool(line);

    if (s->code)
        fail_msg("%s: code %d, %s", line, s->code, s->err);
}

static void serve(int socket)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        const int fd = accept(socket, NULL, NULL);

        if (fd < 0 && errno != EINTR)
            _exit(1);
        if (fd >= 0 && !fork()) {
            const int null = open("sshd.log", O_WRONLY | O_CREAT | O_APPEND, 0600);

            (void)signal(SIGCHLD, SIG_DFL);
            (void)signal(SIGPIPE, SIG_DFL);
            (void)dup2(fd, 0);
            (void)dup2(fd, 1);
            (void)dup2(null, 2);
            (void)close(fd);
            (void)close(socket);
            execl(SSHD, SSHD, "-i", "-e", "-f", "sshd_config", (char *)NULL);
            _exit(1);
        }
        if (fd >= 0)
            (void)close(fd);
    }
}

static void listen_here(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    port = ntohs(address.sin_port);
    listener = fork();
    if (!listener) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fd);
    }
    (void)close(fd);
}

/* Hosts that are this one, by two names; the third is known by no key. */
static int setup(void **state)
{
    char text[512];

    (void)state;
    listen_here();
    make("ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f user && "
         "cp user.pub authorized && mkfifo hold alive && mkdir tmp");
    make("printf '%s\\n' \"HostKey $PWD/host\" \"AuthorizedKeysFile $PWD/authorized\" 'StrictModes no' "
         "'UsePAM no' "
         "'PasswordAuthentication no' 'PidFile none' \"SetEnv TMPDIR=$PWD/tmp\" >sshd_config");
    make("printf '%s\\n' 'Host *' \"IdentityFile $PWD/user\" 'IdentitiesOnly yes' 'IdentityAgent none' "
         "\"UserKnownHostsFile $PWD/known\" 'GlobalKnownHostsFile none' 'LogLevel ERROR' >config");
    (void)snprintf(
        text, sizeof text,
        "for h in localhost 127.0.0.1; do echo \"[$h]:%d $(cut -d ' ' -f 1,2 host.pub)\"; done >known; "
        "printf 'localhost:%d slots=2 # two\\n\\n127.0.0.1:%d\\n' >hosts; "
        "test ! -d /run || mkdir -p /run/sshd",
        port, port, port);
    make(text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)kill(listener, SIGKILL);
    (void)waitpid(listener, NULL, 0);
    return 0;
}

static void log_show(const tool_said *s)
{
    char *log = tool_file("sshd.log");

    if (s->code)
        printf("%s\n%s", s->err, log);
    free(log);
}

static void places(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(RUN "-n 3 -s 1 --all-roles --env 'A=b c' --env-worker W='it''s' -- sh -c 'echo \"$DMLC_ROLE "
                 "$DMLC_NODE_HOST "
                 "$A $W\"; echo \"{}\"'");
    log_show(s);
    assert_int_equal(s->code, 0);
    assert_says(s->err, "[sched] scheduler 127.0.0.1 b c \n");
    assert_says(s->err, "[s0 localhost] server localhost b c \n");
    assert_says(s->out, "[w0 localhost] worker localhost b c its\n");
    assert_says(s->out, "[w1 127.0.0.1] worker 127.0.0.1 b c its\n");
    assert_says(s->out, "[w2 localhost] worker localhost b c its\n");
    assert_says(s->out, "{\"rank\": 2}\n");
}

/* Same folder, same secret in a file for the user alone; neither it nor the command is in an argument. */
static void secrets(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(RUN
             "-n 1 -s 1 --all-roles -- sh -c 'cat $TENON_KVSTORE__SECRET_FILE >secret-$DMLC_ROLE; "
             "ls -l $TENON_KVSTORE__SECRET_FILE | cut -c 1-10; pwd; dirname $TENON_KVSTORE__SECRET_FILE; "
             "test $DMLC_ROLE = scheduler || grep -q \"echo\\|secret\" /proc/$PPID/cmdline || echo clean'");
    log_show(s);
    assert_int_equal(s->code, 0);
    assert_says(s->out, "] clean\n");
    assert_says(s->out, "] -rw-------\n");
    assert_says(s->out, "/tmp/tenon-job-");
    make("cmp secret-worker secret-server && cmp secret-worker secret-scheduler && test $(wc -c "
         "<secret-worker) = 65");
    make("test -z \"$(ls tmp)\"");
}

static void failures(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool(RUN "-n 2 -s 0 -- sh -c 'echo why >&2; test $DMLC_WORKER_ID = 1 && exit 7; read x <hold'");
    assert_int_equal(s->code, 7);
    assert_says(s->err, "tenon: worker 1 on localhost failed: exit code 7; its last lines:\n  | why\n");
    s = tool(RUN "-n 1 -s 0 -- sh -c 'kill -9 $$'");
    assert_int_equal(s->code, 137);
    assert_says(s->err, "tenon: worker 0 on localhost failed: signal 9");
    s = tool(RUN "-n 1 -s 0 -- ./absent");
    assert_int_equal(s->code, 127);
    assert_says(s->err, "cannot run ./absent: No such file");
    s = tool(RUN "-n 1 -s 0 --tool /absent/tenon -- true");
    assert_int_equal(s->code, 127);
    s = tool(
        "exec \"$T\" launch -H hosts --ssh 'ssh -F config -o UserKnownHostsFile=none' -n 1 -s 0 -- true");
    assert_int_equal(s->code, 255);
    assert_says(s->err, "Host key verification failed");
    s = tool("sed 's/^IdentityFile.*//' config >no-key; exec \"$T\" launch -H hosts --ssh 'ssh -F no-key' -n "
             "1 -s 0 -- true");
    assert_int_equal(s->code, 255);
    assert_says(s->err, "Permission denied");
    s = tool("exec \"$T\" launch -H hosts --ssh ./absent -n 1 -s 0 -- true");
    assert_int_equal(s->code, 127);
    assert_says(s->err, "cannot run ./absent");
}

static const char family[] = "exec 9>alive\n"
                             "trap '' HUP TERM\n"
                             "setsid sh -c 'trap \"\" TERM HUP INT; read x <hold' &\n"
                             "(setsid sh -c 'sh -c \"read x <hold\" & read x <hold' &)\n"
                             "echo ready\n"
                             "read x <hold\n";

static int alive_open(void)
{
    const int fd = open("alive", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fopen("family", "w");

    assert_non_null(file);
    fputs(family, file);
    fclose(file);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    return fd;
}

/* Until nobody holds `alive` for writing. */
static void gone_wait(int alive)
{
    char byte;
    ssize_t n;

    do
        n = read(alive, &byte, 1);
    while (n < 0 && errno == EINTR);
    assert_int_equal(n, 0);
    close(alive);
}

/* The far processes, in sessions of their own or not, end with the launcher, or with the connection. */
static void ends(void **state)
{
    const int alive = alive_open();
    const pid_t pid = tool_start(RUN "-n 3 -s 0 -- sh family");

    (void)state;
    assert_true(tool_lines(pid, "out.txt", 3));
    assert_int_equal(kill(pid, SIGKILL), 0);
    gone_wait(alive);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void stops(void **state)
{
    const tool_said *s;
    pid_t pid;

    (void)state;
    pid = tool_start(
        RUN
        "-n 2 -s 0 -- sh -c 'trap \"echo saved; exit 130\" TERM; echo up; while :; do read x <hold; done'");
    assert_true(tool_lines(pid, "out.txt", 2));
    assert_int_equal(kill(pid, SIGTERM), 0);
    s = tool_wait(pid);
    assert_int_equal(s->code, 130);
    assert_says(s->out, "[w0 localhost] saved\n");
    assert_says(s->out, "[w1 localhost] saved\n");
    /* ssh itself is killed: the job fails, and its far processes are gone */
    const int alive = alive_open();

    make("printf '#!/bin/sh\\necho $$ >>pids\\nexec ssh -F config \"$@\"\\n' >noting && chmod +x noting");
    pid = tool_start("exec \"$T\" launch -H hosts --ssh ./noting --grace 0.1 -n 2 -s 0 -- sh family");
    assert_true(tool_lines(pid, "out.txt", 2));
    {
        char *pids = tool_file("pids");

        assert_int_equal(kill((pid_t)strtol(pids, NULL, 10), SIGKILL), 0);
        free(pids);
    }
    s = tool_wait(pid);
    assert_int_equal(s->code, 137);
    gone_wait(alive);
}

static void syncs(void **state)
{
    const tool_said *s;

    (void)state;
    if (system("command -v rsync >/dev/null")) {
        printf("skipped: rsync is not installed\n");
        skip();
    }
    make("mkdir -p from to && echo data >from/file");
    s = tool("cd from && exec \"$T\" launch -H ../hosts --ssh 'ssh -F ../config' --sync-dst-dir \"$(cd "
             "../to; pwd)/new\" "
             "-n 2 -s 0 -- cat file");
    log_show(s);
    assert_int_equal(s->code, 0);
    assert_says(s->out, "[w0 localhost] data\n");
    make("test -f to/new/file");
    s = tool("cd from && exec \"$T\" launch -H ../hosts --ssh 'ssh -F ../config' --sync-dst-dir /dev/null/x "
             "-n 2 -s 0 "
             "-- echo never");
    assert_true(s->code != 0);
    assert_null(strstr(s->out, "never"));
    assert_says(s->err, "tenon: rsync on ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places), cmocka_unit_test(secrets), cmocka_unit_test(failures),
        cmocka_unit_test(ends),   cmocka_unit_test(stops),   cmocka_unit_test(syncs),
    };
    int failed;

    tool_setup();
    if (access(SSHD, X_OK) || system("command -v ssh ssh-keygen >/dev/null")) {
        printf("skipped: no sshd and ssh (Debian: openssh-server)\n");
        tool_teardown();
        return 77;
    }
    failed = cmocka_run_group_tests(tests, setup, teardown);
    tool_teardown();
    return failed;
}
