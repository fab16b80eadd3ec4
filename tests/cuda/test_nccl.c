/*
 * Plugin kv-nccl on the doubles of NCCL and of the driver: ranks as processes, sums with the bits of type
 * `device`, and ranks that are late, dead, hang or come in another order, each of which is named.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda.h"
#include "nccl_rank.h"
#include "support/runs.h"

#define RANKS 8

typedef struct job {
    pid_t pids[RANKS];
    FILE *says[RANKS];
    char text[RANKS][1024]; /* the last line of each */
    int codes[RANKS];
    uint32_t ranks;
} job;

static char self[4096], root[64]; /* root: where rank 0 of the last job is */

/* All of 127/8 is this host: each test program has an address of its own. */
static void root_choose(void)
{
    static uint32_t count;
    const uint32_t n = (uint32_t)getpid();

    (void)snprintf(root, sizeof root, "127.%u.%u.%u:%u", 1 + n / 65536 % 250, n / 256 % 256, 1 + n % 250,
                   20000 + count++ % 9000);
}

static void child(job *j, const char *script, const char *settings, uint32_t rank, uint32_t ms)
{
    char line[8192];

    (void)snprintf(line, sizeof line,
                   "R=%u; export LD_LIBRARY_PATH=\"$TENON_TEST_DRIVER:$TENON_TEST_DRIVER/../nccl\" "
                   "TNEMU_DEVICES=8 %s; exec '%s' "
                   "rank %s %u %u %s %u 2>/dev/null",
                   rank, settings, self, script, rank, j->ranks, root, ms);
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    (void)fflush(stdout);
    j->pids[rank] = fork();
    assert_true(j->pids[rank] >= 0);
    if (!j->pids[rank]) {
        (void)dup2(ends[1], 1);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    j->says[rank] = fdopen(ends[0], "r");
    assert_non_null(j->says[rank]);
}

/* `stopped` (or RANKS) is killed when all others have ended. */
static void job_end(job *j, uint32_t stopped)
{
    const uint32_t ranks = j->ranks;

    for (uint32_t n = 0; n < 2 * ranks; n++) {
        const uint32_t r = n % ranks;
        char line[1024];
        int status;

        if ((r == stopped) != (n >= ranks))
            continue;
        if (r == stopped)
            (void)kill(j->pids[r], SIGKILL);
        while (fgets(line, sizeof line, j->says[r]))
            (void)snprintf(j->text[r], sizeof j->text[r], "%s", line);
        (void)fclose(j->says[r]);
        assert_int_equal(waitpid(j->pids[r], &status, 0), j->pids[r]);
        j->codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void job_run(job *j, const char *script, const char *settings, uint32_t ranks, uint32_t ms,
                    uint32_t stopped)
{
    memset(j, 0, sizeof *j);
    j->ranks = ranks;
    root_choose();
    for (uint32_t r = 0; r < ranks; r++)
        child(j, script, settings, r, ms);
    job_end(j, stopped);
}

static void sums(void **state)
{
    static const uint32_t sizes[] = {2, 8, 3, 5, 4, 7, 6}; /* others than the first two with each commit */
    const uint64_t runs = test_runs(3), first = test_rotation(5);
    job j;

    (void)state;
    for (uint64_t i = 0; i < runs; i++) {
        char settings[120];

        (void)snprintf(settings, sizeof settings, "TNEMU_SEED=%u TNNCCL_SEED=%u", (unsigned)i, (unsigned)i);
        job_run(&j, "sums", settings, sizes[i < 2 ? i : 2 + (i - 2 + first) % 5], 60000, RANKS);
        for (uint32_t r = 0; r < j.ranks; r++)
            if (strcmp(j.text[r], "ok\n") != 0 || j.codes[r])
                fail_msg("rank %u of %u: %d, %s", r, j.ranks, j.codes[r], j.text[r]);
    }
}

#define TRIES 4 /* a busy machine may make others late, too */

/* Rank `who` says both, and fails, unless it says "ok". */
static void says_in(const char *script, const char *settings, uint32_t ranks, uint32_t ms, uint32_t gone,
                    uint32_t who, const char *const says[2])
{
    bool found = false;
    job j;

    for (int n = 0; n < TRIES && !found; n++) {
        job_run(&j, script, settings, ranks, ms, gone);
        found = strstr(j.text[who], says[0]) && strstr(j.text[who], says[1]);
    }
    if (!found)
        fail_msg("%s %s: rank %u says nothing of '%s' and '%s': %s", script, settings, who, says[0], says[1],
                 j.text[who]);
    if (strcmp(says[0], "ok") != 0)
        assert_int_not_equal(j.codes[who], 0);
}

static void named(void **state)
{
    static const struct {
        const char *script, *fault;
        uint32_t ranks, ms, gone; /* gone: a rank that says nothing */
        const char *says[2];      /* rank 0 does, or rank 1 where rank 0 is gone */
    } rows[] = {
        {"buckets", "late:1:3:50", 3, 60000, RANKS, {"ok", "ok"}},
        {"buckets",
         "late:1:3:60000",
         3,
         300,
         RANKS,
         {"all-reduce of bucket 3 (w3) did not end", "all ranks"}},
        {"absent",
         "",
         4,
         300,
         RANKS,
         {"bucket 3 (w3) did not end within 0.3 s", "rank 3 has not come to it"}},
        {"swapped", "", 3, 60000, RANKS, {"call 3 of rank", "all-reduce of bucket 4 (w4)"}},
        {"leaves", "", 3, 60000, RANKS, {"rank 2 has left before all-reduce of bucket 3 (w3)", "rank 2"}},
        {"buckets", "die:2:3", 5, 60000, 2, {"rank 2 has died", "bucket "}},
        {"buckets", "die:0:3", 3, 60000, 0, {"rank 0 has died", "bucket "}},
        {"buckets", "stop:1:3", 3, 300, 1, {"bucket 3 (w3) did not end", "rank 1 is silent"}},
        {"buckets", "stop:0:3", 2, 300, 0, {"bucket 3 (w3) did not end", "rank 0 is silent"}},
        {"buckets",
         "hang:1:3",
         3,
         300,
         RANKS,
         {"bucket 3 (w3) did not end", "rank 1 has come to it, but its NCCL"}},
        {"buckets", "stuck:1:3", 3, 300, RANKS, {"bucket 3 (w3) did not end", "all ranks have begun it"}},
        {"buckets",
         "hang:1:3,abort:1",
         3,
         300,
         RANKS,
         {"bucket 3 (w3) did not end", "rank 1 has come to it"}},
        {"buckets", "error:1:3", 3, 60000, RANKS, {"rank 1 has given up: NCCL fails", "bucket 3 (w3)"}},
        {"opens", "init:1", 3, 300, RANKS, {"communicator", "within 0.3 s"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t who = rows[i].gone == 0 ? 1 : 0;
        char settings[120];

        (void)snprintf(settings, sizeof settings, "TNEMU_SEED=%zu TNNCCL_SEED=%zu TNNCCL_FAULT=%s", i, i,
                       rows[i].fault);
        says_in(rows[i].script, settings, rows[i].ranks, rows[i].ms, rows[i].gone, who, rows[i].says);
    }
}

/* Who does not come, and what does not fit together, before NCCL is asked. */
static void meetings(void **state)
{
    static const struct {
        const char *settings;
        uint32_t ranks, ms, gone, who;
        const char *says[2];
    } rows[] = {
        {"TNEMU_DEVICES=1", 2, 60000, RANKS, 0, {"ranks 0 and 1 have one GPU", ""}},
        {"TNEMU_DEVICES=1", 2, 60000, RANKS, 1, {"ranks 0 and 1 have one GPU", ""}},
        {"TNNCCL_VERSION=21705",
         1,
         60000,
         RANKS,
         0,
         {"libnccl.so.2 is NCCL number 21705; install", "2.18 or later"}},
        {"TNNCCL_VERSION=2280$R",
         2,
         60000,
         0,
         1,
         {"rank 1 has NCCL 22801, rank 0 22800: all need the same", ""}},
        {"; test $R = 2 && exit 0", 3, 300, RANKS, 0, {"of 3 ranks these did not come within 0.3 s: 2", ""}},
        {"; test $R = 2 && exit 0", 3, 300, RANKS, 1, {"of 3 ranks these did not come within 0.3 s: 2", ""}},
        {"TEST_JOB=job$R", 2, 60000, 0, 1, {"rank 0 here is of another job than \"job0\"", ""}},
        {"; test $R = 0 && exit 0",
         2,
         300,
         RANKS,
         1,
         {"rank 0 did not come within 0.3 s: nobody answers at 127.", ""}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        says_in("opens", rows[i].settings, rows[i].ranks, rows[i].ms, rows[i].gone, rows[i].who,
                rows[i].says);
}

/* ---- what others send ---------------------------------------------------------------------------------- */

typedef struct note { /* as plugins/kv-nccl/kv_nccl.h has it */
    uint32_t magic, kind, rank, status;
    uint64_t number, hash, issued;
    char text[472];
} note;
#define MAGIC 0x4c434e54u
#define NO_JOB 0xcbf29ce484222325u /* the hash of "" */
enum { HELLO = 1, PLACE, DEVICE, GO, CALL };
#define CROWD 70 /* more than STRANGERS_MAX of plugins/kv-nccl/meet.c */

static int connected(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    const char *port = strchr(root, ':');
    int fd = -1;

    (void)snprintf(host, sizeof host, "%.*s", (int)(port - root), root);
    to.sin_port = htons((uint16_t)atoi(port + 1));
    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    for (;;) { /* rank 0 listens soon */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        if (!connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to))
            return fd;
        (void)close(fd);
        (void)sched_yield();
    }
}

static void note_send(int fd, const note *n, size_t bytes)
{
    assert_int_equal(send(fd, n, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

/* False: the link has ended. */
static bool note_get(int fd, note *out)
{
    return recv(fd, out, sizeof *out, MSG_WAITALL) == (ssize_t)sizeof *out;
}

static note hello(uint32_t rank, uint64_t job_hash, uint32_t ranks)
{
    return (note){.magic = MAGIC,
                  .kind = HELLO,
                  .rank = rank,
                  .number = job_hash,
                  .issued = (uint64_t)22809 << 32 | ranks};
}

/* Those who do not belong to the job are told so, or left; the job meets all the same. */
static void strangers(void **state)
{
    const struct {
        note n;
        size_t bytes;
        const char *says; /* NULL: the link ends */
    } rows[] = {
        {hello(1, NO_JOB, 2), 100, ""}, /* no more comes of it */
        {{.magic = 7, .kind = HELLO}, sizeof(note), NULL},
        {{.magic = MAGIC, .kind = 99}, sizeof(note), NULL},
        {{.magic = MAGIC, .kind = CALL}, sizeof(note), "another job"},
        {hello(1, 5, 2), sizeof(note), "another job"},
        {hello(1, NO_JOB, 3), sizeof(note), "rank 0 is of 2 ranks"},
        {hello(2, NO_JOB, 2), sizeof(note), "rank 2 of 2"},
        {hello(0, NO_JOB, 2), sizeof(note), "rank 0 of 2"},
    };
    job j = {.ranks = 2};
    int half = -1;

    (void)state;
    root_choose();
    child(&j, "opens", "TNNCCL_VERSION=22809", 0, 60000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = connected();
        note answer = {0};

        note_send(fd, &rows[i].n, rows[i].bytes);
        if (!i)
            half = fd;
        else if (note_get(fd, &answer) != (rows[i].says != NULL))
            fail_msg("row %zu is %s", i, rows[i].says ? "not answered" : "answered");
        else if (rows[i].says && !strstr(answer.text, rows[i].says))
            fail_msg("row %zu: %s", i, answer.text);
        if (i)
            (void)close(fd);
    }
    child(&j, "opens", "TNNCCL_VERSION=22809", 1, 60000);
    job_end(&j, RANKS);
    (void)close(half);
    assert_string_equal(j.text[0], "ok\n");
    assert_string_equal(j.text[1], "ok\n");
}

/* More than rank 0 keeps, all silent: ranks behind them at the door come in. */
static void crowd(void **state)
{
    job j = {.ranks = 2};
    int idle[CROWD];

    (void)state;
    root_choose();
    child(&j, "opens", "", 0, 60000);
    for (int i = 0; i < CROWD; i++)
        idle[i] = connected();
    child(&j, "opens", "", 1, 60000);
    job_end(&j, RANKS);
    for (int i = 0; i < CROWD; i++)
        (void)close(idle[i]);
    assert_string_equal(j.text[0], "ok\n");
    assert_string_equal(j.text[1], "ok\n");
}

/* A network of this process alone, where the system chooses among four ports. */
static bool network_make(void)
{
    static const char ports[] = "20000 20003";
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd, file;
    bool made;

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return false;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    file = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);
    made = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &loopback) && file >= 0 &&
           write(file, ports, sizeof ports - 1) == (ssize_t)sizeof ports - 1;
    if (fd >= 0)
        (void)close(fd);
    if (file >= 0)
        (void)close(file);
    return made;
}

/* Where nobody listens at a port that the system chooses, too, a rank does not take itself for rank 0. */
static void itself(void **state)
{
    const pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (!pid) {
        job j = {.ranks = 2};

        if (!network_make())
            _exit(77);
        (void)snprintf(root, sizeof root, "127.0.0.1:20002");
        child(&j, "opens", "", 1, 1000);
        while (fgets(j.text[1], sizeof j.text[1], j.says[1]))
            ;
        (void)printf("%s", j.text[1]);
        (void)fflush(stdout);
        _exit(!strstr(j.text[1], "rank 0 did not come within 1 s: nobody answers at 127."));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: no network of its own may be made\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* A rank that has met the others, and goes wrong then. */
static void liars(void **state)
{
    static const struct {
        note n;
        const char *says;
    } rows[] = {
        {{.magic = MAGIC, .kind = PLACE}, "rank 1 says what it may not"},
        {{.magic = MAGIC, .kind = CALL, .number = 7}, "rank 1 counts its calls wrongly"},
        {{.magic = 7, .kind = CALL, .number = 1}, "rank 1 has died before all had come"},
        {{.magic = MAGIC, .kind = 10, .text = "enough"}, "rank 1 has given up: enough"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const note first = hello(1, NO_JOB, 2),
                   device = {.magic = MAGIC, .kind = DEVICE, .rank = 1, .text = "mine"};
        job j = {.ranks = 1};
        note n;
        int fd;

        root_choose();
        j.ranks = 2;
        child(&j, "opens", "TNNCCL_VERSION=22809", 0, 60000);
        j.ranks = 1;
        fd = connected();
        note_send(fd, &first, sizeof first);
        assert_true(note_get(fd, &n) && n.kind == PLACE);
        note_send(fd, &device, sizeof device);
        assert_true(note_get(fd, &n) && n.kind == GO);
        note_send(fd, &rows[i].n, sizeof rows[i].n);
        job_end(&j, RANKS);
        (void)close(fd);
        if (!strstr(j.text[0], rows[i].says))
            fail_msg("row %zu: %s", i, j.text[0]);
    }
}

/* ---- as a user sees it --------------------------------------------------------------------------------- */

#define TRAIN                                                                                                \
    "\"$T\" train zoo:mlp --data digits --epochs 1 --seed 3 --progress none --set "                          \
    "run.deterministic=threads "
#define JOB                                                                                                  \
    "--set kvstore.type=nccl --set kvstore.workers=2 --set kvstore.scheduler=%s --set "                      \
    "kvstore.scheduler_port=%s "

/* Two processes with a GPU each have the bits of one process with both and of its store `device`. */
static void trainings(void **state)
{
    char command[4096], *port, hashes[3][80];
    const said *s;
    const char *at;

    (void)state;
    root_choose();
    port = strchr(root, ':');
    *port++ = '\0';
    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d); trap 'rm -r $D' EXIT; export "
                   "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$TENON_TEST_DRIVER/../nccl; " TRAIN
                   "--out $D/one --set device.default=cuda:0,cuda:1 --set kvstore.type=device || exit 1; "
                   "{ " TRAIN "--out $D/a --set device.default=cuda:0 --set kvstore.rank=0 " JOB
                   "|| echo failed; } & " TRAIN
                   "--out $D/b --set device.default=cuda:1 --set kvstore.rank=1 " JOB "|| exit 1; wait",
                   root, port, root, port);
    s = cuda_say("TNEMU_DELAY_US=0", command);
    assert_int_equal(s->code, 0);
    at = s->out;
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "params_sha256 ");
        if (!at)
            fail_msg("%d of 3 trainings end: %s", i, s->out);
        (void)snprintf(hashes[i], sizeof hashes[i], "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
        at++;
    }
    assert_string_equal(hashes[0], hashes[1]);
    assert_string_equal(hashes[0], hashes[2]);
}

/* What a user sees where something is not there. */
static void absent(void **state)
{
    const said *s = cuda_say_without("", TRAIN "--set kvstore.type=nccl");

    (void)state;
    assert_int_equal(s->code, 3);
    cuda_said(s, "there is no NVIDIA driver: libcuda.so.1 was not found; install");
    cuda_said(cuda_say_without("", "\"$T\" doctor --set kvstore.type=nccl"),
              "kvstore.type is nccl, but there is no NVIDIA driver");
    assert_int_equal(cuda_say_without("", "\"$T\" plugins list")->code, 0);
    s = cuda_say("", "d=$(mktemp -d); : >$d/libnccl.so.2; LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH:$d\"; " TRAIN
                     "--set kvstore.type=nccl; c=$?; rm -r $d; exit $c");
    assert_int_equal(s->code, 3);
    cuda_said(s, "there is no NCCL: libnccl.so.2 cannot be opened; install NCCL 2.18 or later");
}

/* One of two does not train as if it were alone. */
static void without_rank(void **state)
{
    const said *s = cuda_say("", "LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH:$TENON_TEST_DRIVER/../nccl\"; " TRAIN
                                 "--set kvstore.type=nccl --set kvstore.workers=2");

    (void)state;
    assert_int_equal(s->code, 2);
    cuda_said(s, "nothing says which of 2 ranks this is: kvstore.rank, or a launcher's variables");
}

/* The conformance kit, its ranks as threads. */
static void kit(void **state)
{
    const said *s =
        cuda_say("TNEMU_DEVICES=3", "LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH:$TENON_TEST_DRIVER/../nccl\"; "
                                    "\"$T\" plugins check kv-nccl");

    (void)state;
    if (s->code)
        fail_msg("the kit ends with %d\n%s", s->code, s->out);
    cuda_said(s, ", 0 failed, 0 crashed, "); /* with a sanitizer, load/constructors is skipped, too */
    cuda_said(s, "PASS  collective/sum/nccl");
    cuda_said(s, "PASS  collective/refused/nccl");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),      cmocka_unit_test(named), cmocka_unit_test(meetings),
        cmocka_unit_test(strangers), cmocka_unit_test(crowd), cmocka_unit_test(itself),
        cmocka_unit_test(liars),     cmocka_unit_test(trainings), cmocka_unit_test(absent),
        cmocka_unit_test(without_rank), cmocka_unit_test(kit),
    };

    if (argc == 7 && !strcmp(argv[1], "rank"))
        return nccl_rank_main(argv[2], (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]), argv[5],
                              (uint32_t)atoi(argv[6]));
    cuda_setup();
    (void)snprintf(self, sizeof self, "%s/kv-nccl.so", getenv("TENON_TEST_PLUGINS"));
    if (access(self, R_OK)) {
        printf("skipped: the plugin kv-nccl is not built\n");
        return 77;
    }
    memset(self, 0, sizeof self);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 77;
    return cmocka_run_group_tests_name("nccl", tests, NULL, NULL);
}
