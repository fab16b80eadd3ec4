/*
 * A job of real processes over kv-zmq that trains on while a seeded driver kills, stops and starts again all
 * of its members: every value is that of an undisturbed job, and no process gains memory, descriptors or
 * threads. TENON_RUNS faults of TENON_SEED, or TENON_SECONDS of them. TENON_FULL=1 paces them, and looks at
 * the memory of processes that live long: scripts/campaign --only kv-soak.
 */
#include "tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "context/context.h"
#include "kv/plan.h"
#include "kv/process.h"
#include "support/runs.h"

#define WORKERS 2u
#define SERVERS 2u
#define MEMBERS (1 + SERVERS + WORKERS) /* scheduler, servers, workers */
#define SCHEDULER 0u
#define SERVER(i) (1 + (i))
#define WORKER(i) (1 + SERVERS + (i))

/* What workers tell the driver, and it them: a file that all map. */
typedef struct board {
    atomic_uint round[WORKERS], again[WORKERS]; /* complete; how often the program went back by itself */
    atomic_uint end, last;                      /* no round behind `last`, which worker 0 says after `end` */
} board;

static board *board_map(bool create)
{
    const int fd = open("board", O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && !(create && ftruncate(fd, sizeof(board))))
        at = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* ---- a worker ------------------------------------------------------------------------------------------ */

#define KEYS 2u
#define COUNT 8000u
#define SAVE_EVERY 10u

static const uint32_t counts[KEYS] = {100, COUNT};
static float values[KEYS][COUNT], gradients[KEYS][COUNT];
static uint32_t rank, rounds[KEYS], pieces[KEYS]; /* pieces: elements of a part */

/* The first element of each part counts the rounds; the others swing about their first value. */
static float gradient(uint32_t round, uint32_t key, uint32_t i)
{
    return i % pieces[key] == 0 ? -0.5f : (float)(rank + 1) * ((float)((round + key + i) % 5) - 2);
}

static float first(uint32_t key, uint32_t i)
{
    return i % pieces[key] == 0 ? 0 : (float)(key + i % 7);
}

/* Of an element that counts nothing: five rounds in a row make 0. */
static float wanted(uint32_t round, uint32_t key, uint32_t i)
{
    float value = (float)(key + i % 7);

    for (uint32_t s = round - round % 5 + 1; s <= round; s++)
        value -= 3 * ((float)((s + key + i) % 5) - 2);
    return value;
}

static tn_status check(uint32_t key)
{
    float expected[35]; /* they repeat */

    for (uint32_t i = 0; i < 35; i++)
        expected[i] = wanted(rounds[key], key, i);
    for (uint32_t i = 0; i < counts[key]; i++) {
        const float want = i % pieces[key] ? expected[i % 35] : (float)rounds[key];

        if (values[key][i] != want)
            return tni_error(TN_E_INTERNAL, "worker %u, round %u: key %u has %g at %u, not %g", rank,
                             rounds[key], key, (double)values[key][i], i, (double)want);
    }
    return TN_OK;
}

static tn_status key_call(tni_kv_process *p, tni_kv_kind kind, uint32_t key)
{
    const tni_kv_request r = {.kind = kind,
                              .key = key,
                              .in = kind == TNI_KV_DO_INIT ? values[key] : gradients[key],
                              .out = values[key],
                              .any = kind == TNI_KV_DO_PULL};

    return tni_kv_process_call(p, &r);
}

/* First values, unless the servers have some; then theirs, which tell in which round each key is. */
static tn_status begin(tni_kv_process *p)
{
    static const char words[] = "optimizer\0sgd\0lr\0001";
    const tni_kv_request optimizer = {.kind = TNI_KV_DO_COMMAND, .in = words, .bytes = sizeof words};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < KEYS && !st; k++) {
        for (uint32_t i = 0; i < counts[k]; i++)
            values[k][i] = first(k, i);
        st = key_call(p, TNI_KV_DO_INIT, k);
    }
    for (uint32_t k = 0; k < KEYS && !st; k++) {
        st = key_call(p, TNI_KV_DO_PULL, k);
        rounds[k] = UINT32_MAX;
        for (uint32_t i = 0; i < counts[k]; i += pieces[k])
            if ((uint32_t)values[k][i] < rounds[k])
                rounds[k] = (uint32_t)values[k][i];
    }
    return !st && rank == 0 && !rounds[0] && !rounds[1] ? tni_kv_process_call(p, &optimizer) : st;
}

static uint32_t least(void)
{
    return rounds[0] < rounds[1] ? rounds[0] : rounds[1];
}

/* The round that follows, of each key that has not had it. */
static tn_status step(tni_kv_process *p)
{
    const uint32_t round = least() + 1;
    const tni_kv_request save = {.kind = TNI_KV_DO_SNAPSHOT, .step = round};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < KEYS && !st; k++) {
        if (rounds[k] >= round)
            continue;
        for (uint32_t i = 0; i < counts[k]; i++)
            gradients[k][i] = gradient(round, k, i);
        st = key_call(p, TNI_KV_DO_PUSHPULL, k);
        if (!st) {
            rounds[k]++;
            st = check(k);
        }
    }
    return !st && round % SAVE_EVERY == 0 ? tni_kv_process_call(p, &save) : st;
}

static tn_status train(tni_kv_process *p, board *b)
{
    const useconds_t pace = test_full() ? 250000 : 1000;
    const tni_kv_request barrier = {.kind = TNI_KV_DO_BARRIER};
    uint32_t epochs = 0, now;
    tn_status st;

    (void)tni_kv_process_cut(p, &epochs);
    st = begin(p);
    if (!st && !least() && !atomic_load(&b->round[rank]))
        st = tni_kv_process_call(p, &barrier);
    for (uint32_t last = 0; !last || least() < last; last = atomic_load(&b->last)) {
        st = st ? st : step(p);
        (void)tni_kv_process_cut(p, &now);
        if (st == TN_E_STATE && now != epochs) {
            epochs = now;
            st = begin(p);
            atomic_fetch_add(&b->again[rank], 1);
            continue;
        }
        if (st)
            return st;
        atomic_store(&b->round[rank], least());
        if (rank == 0 && atomic_load(&b->end) && !atomic_load(&b->last))
            atomic_store(&b->last, least() + 1); /* worker 1 sees it behind that round, if not before */
        (void)usleep(pace);
    }
    return TN_OK;
}

static int worker(void)
{
    char path[8192];
    const char *const settings[] = {path, "kvstore.transport=zmq", NULL};
    const tni_context_options o = {.settings = settings, .environment = true};
    const char *plugins = getenv("TENON_TEST_PLUGINS"), *number = getenv("DMLC_WORKER_ID");
    board *b = board_map(false);
    tni_kv_process *p = NULL;
    tni_context *c = NULL;
    tn_status st, left;

    (void)snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    rank = number && *number == '1';
    if (!b)
        return 1;
    if (!(st = tni_context_open(&o, &c)) && !(st = tni_kv_process_join(c, false, &p))) {
        const tni_kv_settings *s = tni_kv_process_settings(p);
        const tni_kv_plan_options by = {s->servers, s->bound, s->part_bytes};
        tni_kv_plan plan;

        for (uint32_t k = 0; k < KEYS && !st; k++) {
            st = tni_kv_plan_make(&by, k, counts[k], sizeof(float), &plan);
            pieces[k] = st ? 1 : (uint32_t)(plan.piece / sizeof(float));
            st = st ? st : tni_kv_process_key(p, k, TN_F32, counts[k], sizeof(float));
        }
        st = st ? st : train(p, b);
    }
    if (st)
        fprintf(stderr, "worker %u, round %u: %s: %s\n", rank, least(), tn_status_name(st),
                tni_error_message());
    left = tni_kv_process_leave(p);
    if (!st && left)
        fprintf(stderr, "worker %u leaves: %s\n", rank, tni_error_message());
    if (c)
        (void)tni_context_close(c, 0);
    return st || left;
}

/* ---- its members --------------------------------------------------------------------------------------- */

#define SAMPLES_MAX 4096u
#define LINK_FILES 8u /* descriptors of a link, which may be on its way out */

typedef struct sample {
    uint32_t kib, files, threads;
} sample;

typedef struct member {
    pid_t pid;
    uint32_t lives, count; /* count: of samples of this life */
    sample samples[SAMPLES_MAX];
    uint32_t early_kib[2]; /* the fewest and most that a life had at its third sample */
} member;

static member members[MEMBERS];
static const char *const names[MEMBERS] = {"scheduler", "server 0", "server 1", "worker 0", "worker 1"};
static board *shared;

static void member_start(uint32_t which, const char *more)
{
    member *m = &members[which];
    char line[1024], own[4096], number[2] = "0";
    const bool works = which >= WORKER(0);
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    assert_true(length > 0);
    own[length] = '\0';
    number[0] = (char)('0' + (which - (works ? WORKER(0) : SERVER(0))));
    if (which != SCHEDULER)
        (void)setenv(works ? "DMLC_WORKER_ID" : "DMLC_SERVER_ID", number, 1);
    if (works)
        (void)snprintf(line, sizeof line, "exec '%.800s' worker >>%u.err 2>&1", own, which);
    else
        (void)snprintf(line, sizeof line,
                       "exec \"$T\" kv %s --set plugins.path=\"$TENON_TEST_PLUGINS\" --set "
                       "kvstore.transport=zmq %s >>%u.err 2>&1",
                       which == SCHEDULER ? "schedule" : "serve", more, which);
    m->pid = tool_start(line);
    (void)unsetenv("DMLC_WORKER_ID");
    (void)unsetenv("DMLC_SERVER_ID");
    m->lives++;
    m->count = 0;
}

static void text_show(uint32_t which)
{
    char name[16];
    char *text;

    (void)snprintf(name, sizeof name, "%u.err", which);
    text = tool_file(name);
    printf("%s, process %u: %s\n", names[which], members[which].lives,
           strlen(text) > 4000 ? text + strlen(text) - 4000 : text);
    free(text);
}

static uint32_t status_line(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

static uint32_t entries(const char *folder)
{
    DIR *d = opendir(folder);
    uint32_t count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        (void)closedir(d);
    return count;
}

static void sample_take(member *m)
{
    char path[40];
    char *text;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)m->pid);
    text = tool_file(path);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)m->pid);
    if (m->count < SAMPLES_MAX)
        m->samples[m->count++] =
            (sample){status_line(text, "VmRSS:"), entries(path), status_line(text, "Threads:")};
    free(text);
    if (m->count != 3)
        return;
    if (!m->early_kib[0] || m->samples[2].kib < m->early_kib[0])
        m->early_kib[0] = m->samples[2].kib;
    if (m->samples[2].kib > m->early_kib[1])
        m->early_kib[1] = m->samples[2].kib;
}

static int by_kib(const void *a, const void *b)
{
    return (((const sample *)a)->kib > ((const sample *)b)->kib) -
           (((const sample *)a)->kib < ((const sample *)b)->kib);
}

/* Of a third of a life: the median of the memory, of which a worker keeps a few rounds more or fewer to send
 * again; the most of all else. Puts the third in order. */
static sample third(member *m, uint32_t number)
{
    const uint32_t from = number * m->count / 3, to = (number + 1) * m->count / 3;
    sample of = {0, 0, 0};

    qsort(&m->samples[from], to - from, sizeof *m->samples, by_kib);
    of.kib = m->samples[(from + to) / 2].kib;
    for (uint32_t i = from; i < to; i++) {
        of.files = m->samples[i].files > of.files ? m->samples[i].files : of.files;
        of.threads = m->samples[i].threads > of.threads ? m->samples[i].threads : of.threads;
    }
    return of;
}

/* A life that ends: its last third has no more than its second, but for a server's thread that writes. */
static void life_check(uint32_t which)
{
    member *m = &members[which];
    sample middle, end;

    if (m->count < 30 || !test_full())
        return;
    middle = third(m, 1);
    end = third(m, 2);
    print_message("%s, process %u, %u samples: %u, then %u KiB, %u, %u descriptors, %u, %u threads\n",
                  names[which], m->lives, m->count, middle.kib, end.kib, middle.files, end.files,
                  middle.threads, end.threads);
    if (end.kib > middle.kib + 1024 || end.files > middle.files + LINK_FILES ||
        end.threads > middle.threads + 1)
        fail_msg("%s grows", names[which]);
}

/* ---- faults -------------------------------------------------------------------------------------------- */

#define HANG_MS 300000u

static uint64_t begun_ms, state; /* state: of random numbers */
static uint32_t kills[MEMBERS], stops[MEMBERS], pairs;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void pause_ms(uint32_t most_ms, uint32_t short_ms)
{
    (void)usleep(1000 * (1 + below(test_full() ? most_ms : short_ms)));
}

/* What each thread does, if a debugger is there to say it. */
static void threads_show(uint32_t which)
{
    char line[128];

    (void)snprintf(line, sizeof line, "gdb -p %d -batch -ex 'thread apply all bt 12' 2>&1",
                   (int)members[which].pid);
    printf("%s\n%s\n", names[which], tool(line)->out);
}

static void hang_show(const char *what)
{
    const tool_said *t = tool("timeout -k 1 20 \"$T\" kv doctor --set kvstore.transport=zmq "
                              "--set plugins.path=\"$TENON_TEST_PLUGINS\"");

    printf("%s\n%s%s\n", what, t->out, t->err);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        threads_show(i);
        text_show(i);
    }
    fail_msg("seed %s: %s; rounds %u, %u", getenv("TENON_SEED") ? getenv("TENON_SEED") : "1", what,
             atomic_load(&shared->round[0]), atomic_load(&shared->round[1]));
}

/* Both workers make `count` further rounds. Who ends meanwhile is a fault; five minutes without one, too. */
static void rounds_await(uint32_t count)
{
    const uint64_t begun = now_ms();
    uint32_t from[WORKERS];

    for (uint32_t w = 0; w < WORKERS; w++)
        from[w] = atomic_load(&shared->round[w]);
    for (bool all = false; !all; (void)usleep(2000)) {
        all = true;
        for (uint32_t w = 0; w < WORKERS; w++) {
            const uint32_t at = atomic_load(&shared->round[w]);

            from[w] = at < from[w] ? at : from[w]; /* it went back */
            all = all && at >= from[w] + count;
        }
        for (uint32_t i = 0; i < MEMBERS && !all; i++)
            if (members[i].pid && waitpid(members[i].pid, NULL, WNOHANG) != 0)
                hang_show(names[i]);
        if (!all && now_ms() - begun > HANG_MS)
            hang_show("nothing moves");
    }
}

static void life_end(uint32_t which)
{
    assert_int_equal(kill(members[which].pid, SIGKILL), 0);
    assert_int_equal(tool_wait(members[which].pid)->code, 128 + SIGKILL);
    members[which].pid = 0;
    life_check(which);
    kills[which]++;
}

/* A third of the time one of each kind is only stopped, so that it lives long beside the others' deaths. */
static bool spared(uint32_t which, uint64_t done, uint64_t all)
{
    static const uint8_t of[3] = {1u << SCHEDULER | 1u << WORKER(0), 1u << SERVER(0) | 1u << WORKER(1),
                                  1u << SERVER(1) | 1u << WORKER(0)};

    return (uint32_t)of[done < all ? 3 * done / all : 2] >> which & 1u;
}

static void fault(uint64_t done, uint64_t all)
{
    const uint32_t kind = below(8), which = below(MEMBERS);
    const uint32_t other = (which + 1 + below(MEMBERS - 1)) % MEMBERS;
    const uint32_t dead[2] = {which, other};
    uint32_t count = kind == 0 ? 2 : 1;

    if (kind < 5 && spared(which, done, all))
        count = 0;
    if (kind < 5 && count == 2 && spared(other, done, all))
        count = 1;
    if (kind >= 5 || !count) {
        assert_int_equal(kill(members[which].pid, SIGSTOP), 0);
        pause_ms(6000, 200);
        assert_int_equal(kill(members[which].pid, SIGCONT), 0);
        stops[which]++;
        print_message("%.1f s, round %u: %s was stopped\n", (double)(now_ms() - begun_ms) / 1000,
                      atomic_load(&shared->round[0]), names[which]);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        life_end(dead[i]);
    pairs += count == 2;
    pause_ms(4000, 20);
    for (uint32_t i = 0; i < count; i++) {
        member_start(dead[i], "");
        print_message("%.1f s, round %u: %s was killed, its process %u is %d\n",
                      (double)(now_ms() - begun_ms) / 1000, atomic_load(&shared->round[0]), names[dead[i]],
                      members[dead[i]].lives, (int)members[dead[i]].pid);
    }
}

/* ---- the job ------------------------------------------------------------------------------------------- */

static void job_start(void)
{
    char *text, *colon;

    shared = board_map(true);
    assert_non_null(shared);
    member_start(SCHEDULER, "--port 0 --address-file at");
    assert_true(tool_until(members[SCHEDULER].pid, "test -s at"));
    text = tool_file("at");
    colon = strrchr(text, ':');
    assert_non_null(colon);
    colon[strcspn(colon, "\n")] = '\0';
    (void)setenv("DMLC_PS_ROOT_PORT", colon + 1, 1);
    free(text);
    for (uint32_t i = 1; i < MEMBERS; i++)
        member_start(i, "");
}

static void job_end(void)
{
    atomic_store(&shared->end, 1);
    for (uint32_t i = MEMBERS; i-- > 0;) {
        const int code = tool_wait(members[i].pid)->code;

        if (code) {
            text_show(i);
            fail_msg("%s: exit %d", names[i], code);
        }
        life_check(i);
    }
}

static void soak(void **unused)
{
    const char *text = getenv("TENON_SEED"), *time = getenv("TENON_SECONDS");
    const uint64_t most_ms = time ? 1000 * strtoull(time, NULL, 10) : 0, runs = test_runs(5);
    uint64_t count = 0;
    uint32_t files = 0;

    (void)unused;
    state = 0x9e3779b97f4a7c15u * (1 + (text ? strtoull(text, NULL, 10) : 1));
    begun_ms = now_ms();
    job_start();
    rounds_await(3);
    for (; most_ms ? now_ms() - begun_ms < most_ms : count < runs; count++) {
        pause_ms(9000, 30);
        if (most_ms)
            fault(now_ms() - begun_ms, most_ms);
        else
            fault(count, runs);
        rounds_await(3);
        for (uint32_t k = 0; k < MEMBERS; k++)
            sample_take(&members[k]);
        files = entries("state") > files ? entries("state") : files;
    }
    job_end();
    for (uint32_t i = 0; i < MEMBERS; i++)
        print_message("%s: %u killed, %u stopped; third sample of its lives %u to %u KiB\n", names[i],
                      kills[i], stops[i], members[i].early_kib[0], members[i].early_kib[1]);
    print_message("rounds %u, %u at once, workers went back %u and %u times, %u files at most, %.1f min\n",
                  atomic_load(&shared->last), pairs, atomic_load(&shared->again[0]),
                  atomic_load(&shared->again[1]), files, (double)(now_ms() - begun_ms) / 60000);
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (test_full() && members[i].early_kib[1] > members[i].early_kib[0] + 8192)
            fail_msg("%s: later processes are larger", names[i]);
    print_message("count %llu\n", (unsigned long long)count);
}

int main(int argc, char **argv)
{
    static const char *const settings[][2] = {
        {"DMLC_NUM_WORKER", "2"},
        {"DMLC_NUM_SERVER", "2"},
        {"DMLC_PS_ROOT_URI", "127.0.0.1"},
        {"TENON_KV_JOB", "a soak"},
        {"TENON_KVSTORE__ON_SERVER_LOSS", "wait:600"},
        {"TENON_KVSTORE__ON_WORKER_LOSS", "wait:600"},
        {"TENON_KVSTORE__CONTROL_TIMEOUT", "600s"},
        {"TENON_KVSTORE__PART_BYTES", "8192"},
        {"TENON_KVSTORE__DURABILITY", "snapshot:10"},
        {"TENON_KVSTORE__STATE_FOLDER", "state"},
    };
    const struct CMUnitTest tests[] = {cmocka_unit_test(soak)};
    char plugin[4096];
    int failures;

    if (argc == 2 && !strcmp(argv[1], "worker"))
        return worker();
    tool_setup();
    (void)snprintf(plugin, sizeof plugin, "%s/kv-zmq.so", getenv("TENON_TEST_PLUGINS"));
    if (access(plugin, R_OK)) {
        printf("skipped: the plugin kv-zmq is not built\n");
        tool_teardown();
        return 77;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        (void)setenv(settings[i][0], settings[i][1], 1);
    /* Stopped for seconds is not dead; in the short form only links tell who is. */
    (void)setenv("TENON_KVSTORE__HEARTBEAT", test_full() ? "1s" : "100ms", 1);
    (void)setenv("TENON_KVSTORE__SUSPECT", test_full() ? "5s" : "1s", 1);
    (void)setenv("TENON_KVSTORE__DEAD", test_full() ? "60s" : "300s", 1);
    failures = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failures;
}
