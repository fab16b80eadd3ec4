/*
 * A job of real processes: tenon kv schedule and serve, and this program as the workers, over zmq and over
 * the template of a transport, where one of each role is killed, some at named points.
 */
#include "tool.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context/context.h"
#include "kv/process.h"
#include "support/runs.h"

/* ---- a worker ---- */

#define KEYS 2u
#define STEPS 8u
#define GATE 4u /* workers wait behind this step for the file `go` */
#define COUNT 50000u

static const uint32_t counts[KEYS] = {100, COUNT};
static float values[KEYS][COUNT], gradients[KEYS][COUNT];
static uint32_t rank;

static float gradient(uint32_t worker, uint32_t step, uint32_t key, uint32_t i)
{
    return (float)((worker + 1) * step + key + i % 5);
}

static float first(uint32_t key, uint32_t i)
{
    return (float)(key + i % 7);
}

static void line_add(const char *name, const char *text)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "w%u.%s", rank, name);
    file = fopen(path, "a");
    if (file) {
        fprintf(file, "%s\n", text);
        (void)fclose(file);
    }
}

/* One request for each key; the first status that is not fine. */
static tn_status all_keys(tni_kv_process *p, tni_kv_kind kind, bool any)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < KEYS && !st; k++) {
        const tni_kv_request r = {.kind = kind,
                                  .key = k,
                                  .in = kind == TNI_KV_DO_INIT ? values[k] : gradients[k],
                                  .out = values[k],
                                  .any = any};

        st = tni_kv_process_call(p, &r);
    }
    return st;
}

/* The first values, unless the servers have others; then those. */
static tn_status begin(tni_kv_process *p)
{
    tn_status st;

    for (uint32_t k = 0; k < KEYS; k++)
        for (uint32_t i = 0; i < counts[k]; i++)
            values[k][i] = first(k, i);
    st = all_keys(p, TNI_KV_DO_INIT, false);
    return st ? st : all_keys(p, TNI_KV_DO_PULL, true);
}

static tn_status step(tni_kv_process *p, uint32_t s)
{
    const tni_kv_request save = {.kind = TNI_KV_DO_SNAPSHOT, .step = s};
    tn_status st;

    TNI_KV_POINT(forward);
    for (uint32_t k = 0; k < KEYS; k++)
        for (uint32_t i = 0; i < counts[k]; i++)
            gradients[k][i] = gradient(rank, s, k, i);
    TNI_KV_POINT(backward);
    st = all_keys(p, TNI_KV_DO_PUSHPULL, false);
    return st ? st : tni_kv_process_call(p, &save); /* of rank 1 a mark */
}

/* Rank 0 says how values are updated; a round needs its gradients, so none comes before. */
static tn_status optimizer_set(tni_kv_process *p)
{
    static const char words[] = "optimizer\0sgd\0lr\0001";
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = words, .bytes = sizeof words};

    return rank == 0 ? tni_kv_process_call(p, &r) : TN_OK;
}

static tn_status prepare(tni_kv_process *p)
{
    const tni_kv_request barrier = {.kind = TNI_KV_DO_BARRIER};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < KEYS && !st; k++)
        st = tni_kv_process_key(p, k, TN_F32, counts[k], sizeof(float));
    if (!st && !(st = begin(p)) && !(st = optimizer_set(p)))
        st = tni_kv_process_call(p, &barrier);
    return st;
}

/* A step that a returned server rolled back is made again, from its cut on, unless the store does it. */
static tn_status steps(tni_kv_process *p, tn_status st)
{
    uint32_t epochs = 0, now;

    for (uint32_t s = st ? 0 : 1; s <= STEPS; s++) {
        char text[16];

        st = st ? st : step(p, s);
        (void)tni_kv_process_cut(p, &now);
        if (st == TN_E_STATE && now != epochs) {
            s = (uint32_t)tni_kv_process_cut(p, &epochs);
            st = begin(p);
            st = !st && s == 0 ? optimizer_set(p) : st;
            line_add("rolled", "back");
            continue;
        }
        if (st)
            return st;
        (void)snprintf(text, sizeof text, "%u", s);
        line_add("steps", text);
        (void)snprintf(text, sizeof text, "w%u.hold", rank);
        while (s == GATE && (access("go", F_OK) || !access(text, F_OK)))
            (void)usleep(1000);
    }
    return TN_OK;
}

static const char *check(void)
{
    for (uint32_t k = 0; k < KEYS; k++)
        for (uint32_t i = 0; i < counts[k]; i++) {
            float expected = first(k, i);

            for (uint32_t s = 1; s <= STEPS; s++)
                expected -= gradient(0, s, k, i) + gradient(1, s, k, i);
            if (values[k][i] != expected)
                return "the values are wrong";
        }
    return "the values are right";
}

static int worker(const char *transport)
{
    char path[8192], name[64];
    const char *const settings[] = {path, name, NULL};
    const tni_context_options o = {.settings = settings, .environment = true};
    const char *plugins = getenv("TENON_TEST_PLUGINS"), *build = getenv("TENON_TEST_BUILD");
    tni_kv_process *p = NULL;
    tni_context *c = NULL;
    tn_status st, left;

    (void)snprintf(path, sizeof path, "plugins.path=%s,%s/templates", plugins ? plugins : "",
                   build ? build : "");
    (void)snprintf(name, sizeof name, "kvstore.transport=%s", transport);
    rank = (uint32_t)atoi(getenv("DMLC_WORKER_ID"));
    if (!(st = tni_context_open(&o, &c)) && !(st = tni_kv_process_join(c, false, &p)))
        st = steps(p, prepare(p));
    if (st)
        line_add("said", tni_error_message());
    left = tni_kv_process_leave(p);
    if (!st)
        line_add("said", left ? tni_error_message() : check());
    if (c)
        (void)tni_context_close(c, 0);
    return st ? 6 : left ? 1 : 0;
}

/* ---- the job ---- */

static const char *const *transport_of; /* that is tested */
static pid_t pids[5];                   /* scheduler, servers, workers */
#define SCHEDULER 0
#define SERVER(i) (1 + (i))
#define WORKER(i) (3 + (i))

static void role_start(uint32_t which, const char *more)
{
    char line[1024];
    const char *name = which == SCHEDULER ? "schedule" : "serve";

    (void)snprintf(line, sizeof line,
                   "exec \"$T\" kv %s --set plugins.path=\"$TENON_TEST_PLUGINS,$TENON_TEST_BUILD/templates\" "
                   "--set kvstore.transport=%s %s "
                   ">>r%u.out 2>>r%u.err",
                   name, *transport_of, more, which, which);
    if (which != SCHEDULER)
        (void)setenv("DMLC_SERVER_ID", which == SERVER(0) ? "0" : "1", 1);
    pids[which] = tool_start(line);
    (void)unsetenv("DMLC_SERVER_ID");
}

static void worker_start(uint32_t i)
{
    char own[4096];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    pid_t pid;

    assert_true(length > 0);
    own[length] = '\0';
    fflush(stdout);
    (void)setenv("DMLC_WORKER_ID", i ? "1" : "0", 1);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(own, own, "worker", *transport_of, (char *)NULL);
        _exit(126);
    }
    (void)unsetenv("DMLC_WORKER_ID");
    pids[WORKER(i)] = pid;
}

static void port_set(void)
{
    char *text = tool_file("at");
    char *colon = strrchr(text, ':');

    assert_non_null(colon);
    colon[strcspn(colon, "\n")] = '\0';
    (void)setenv("DMLC_PS_ROOT_PORT", colon + 1, 1);
    free(text);
}

/* TENON_FAILPOINT, where it is not NULL, is of one process. */
static void failpoint_of(uint32_t which, uint32_t victim, const char *text)
{
    if (text && which == victim)
        (void)setenv("TENON_FAILPOINT", text, 1);
    else
        (void)unsetenv("TENON_FAILPOINT");
}

static void job_start(uint32_t victim, const char *failpoint)
{
    assert_int_equal(system("rm -rf at go w?.* r?.* state"), 0);
    (void)setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
    failpoint_of(SCHEDULER, victim, failpoint);
    role_start(SCHEDULER, "--port 0 --address-file at");
    assert_true(tool_until(pids[SCHEDULER], "test -s at"));
    port_set();
    for (uint32_t i = SERVER(0); i <= WORKER(1); i++) {
        failpoint_of(i, victim, failpoint);
        if (i < WORKER(0))
            role_start(i, "");
        else
            worker_start(i - WORKER(0));
    }
    failpoint_of(0, 0, NULL);
}

static int end_of(uint32_t which)
{
    return tool_wait(pids[which])->code;
}

static void said(uint32_t i, const char *part)
{
    char name[16];
    char *text;

    (void)snprintf(name, sizeof name, "w%u.said", i);
    text = tool_file(name);
    assert_says(text, part);
    free(text);
}

/* All ended in order, with the values that they should have. */
static void job_end(void)
{
    for (uint32_t i = 0; i < 5; i++) {
        const int code = end_of(4 - i);
        char name[16];
        char *text;

        if (code == 0)
            continue;
        (void)snprintf(name, sizeof name, i < 2 ? "w%u.said" : "r%u.err", i < 2 ? 1 - i : 4 - i);
        text = tool_file(name);
        fail_msg("process %u: exit %d: %s", 4 - i, code, text);
    }
    for (uint32_t i = 0; i < 2; i++)
        said(i, "the values are right");
}

static void file_make(const char *name)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    (void)fclose(file);
}

static void gate_open(void)
{
    file_make("go");
}

static void gate_reached(void)
{
    assert_true(tool_lines(pids[WORKER(0)], "w0.steps", GATE));
    assert_true(tool_lines(pids[WORKER(1)], "w1.steps", GATE));
}

static void a_job(void **state)
{
    transport_of = *state;
    gate_open();
    job_start(0, NULL);
    gate_open();
    job_end();
}

static void a_server_is_killed(void **state)
{
    transport_of = *state;
    job_start(0, NULL);
    gate_reached();
    assert_int_equal(kill(pids[SERVER(0)], SIGKILL), 0);
    assert_int_equal(end_of(SERVER(0)), 128 + SIGKILL);
    role_start(SERVER(0), "");
    gate_open();
    job_end();
    assert_int_equal(access("w0.rolled", F_OK), -1);
    assert_int_equal(access("w1.rolled", F_OK), -1);
}

/* Workers that keep nothing: their program makes the steps again. */
static void a_server_is_killed_for_programs(void **state)
{
    transport_of = *state;
    (void)setenv("TENON_KVSTORE__REPLAY_BYTES", "0", 1);
    job_start(0, NULL);
    gate_reached();
    assert_int_equal(kill(pids[SERVER(0)], SIGKILL), 0);
    assert_int_equal(end_of(SERVER(0)), 128 + SIGKILL);
    role_start(SERVER(0), "");
    (void)unsetenv("TENON_KVSTORE__REPLAY_BYTES");
    gate_open();
    job_end();
    assert_int_equal(access("w0.rolled", F_OK), 0);
}

static void the_scheduler_is_killed(void **state)
{
    transport_of = *state;
    job_start(0, NULL);
    gate_reached();
    assert_int_equal(kill(pids[SCHEDULER], SIGKILL), 0);
    assert_int_equal(end_of(SCHEDULER), 128 + SIGKILL);
    role_start(SCHEDULER, "");
    gate_open();
    job_end();
    assert_int_equal(access("w0.rolled", F_OK), -1);
}

static void a_worker_is_killed(void **state)
{
    transport_of = *state;
    job_start(0, NULL);
    gate_reached();
    assert_int_equal(kill(pids[WORKER(1)], SIGKILL), 0);
    assert_int_equal(end_of(WORKER(1)), 128 + SIGKILL);
    gate_open();
    assert_int_equal(end_of(WORKER(0)), 6);
    said(0, "worker 1 died");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(end_of(i), 6);
}

/* ---- a job that is asked ---- */

#define ASK                                                                                                  \
    "\"$T\" kv %s --set kvstore.transport=%s --set "                                                         \
    "plugins.path=\"$TENON_TEST_PLUGINS,$TENON_TEST_BUILD/templates\""

static const tool_said *asked(const char *what)
{
    char line[512];

    (void)snprintf(line, sizeof line, ASK, what, *transport_of);
    return tool(line);
}

static bool word(const char **at, char out[80])
{
    const size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");

    (void)snprintf(out, 80, "%.*s", (int)length, *at);
    *at += length;
    return length > 0 && length < 80;
}

/* A line of the text format of Prometheus: HELP, TYPE, or a sample of the metric that was last described. */
static void prometheus_line(const char *line, char metric[80], char type[80])
{
    const char *at = line;
    char name[80], *end;

    if (!strncmp(line, "# HELP ", 7)) {
        at += 7;
        assert_true(word(&at, metric) && at[0] == ' ' && at[1] > ' ');
        assert_false(strncmp(metric, "tenon_kv_", 9));
        type[0] = '\0';
        return;
    }
    if (!strncmp(line, "# TYPE ", 7)) {
        at += 7;
        assert_true(word(&at, name) && *at++ == ' ' && word(&at, type) && !*at);
        assert_string_equal(name, metric);
        assert_true(!strcmp(type, "counter") || !strcmp(type, "gauge") || !strcmp(type, "summary"));
        return;
    }
    assert_true(*type && word(&at, name));
    assert_int_equal(strncmp(name, metric, strlen(metric)), 0);
    if (!strcmp(type, "summary"))
        assert_true(!name[strlen(metric)] || strstr("_sum _count", name + strlen(metric)));
    else
        assert_string_equal(name, metric);
    assert_false(strncmp(at, "{node=\"", 7));
    at = strchr(at, '}');
    assert_true(at && at[1] == ' ');
    (void)strtod(at + 2, &end);
    assert_true(end > at + 2 && !*end);
}

static int prometheus_check(char *text)
{
    char metric[80] = "", type[80] = "";
    int lines = 0;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
        prometheus_line(line, metric, type);
    return lines;
}

/* Nodes that count keep on, and key 0 is not in its first round any more. */
static void rates_check(const json_t *nodes)
{
    const json_t *node;
    size_t i;

    json_array_foreach(nodes, i, node)
    {
        const char *name = json_string_value(json_object_get(node, "node"));
        const json_t *sent = json_object_get(json_object_get(node, "rates"), "sent_bytes_per_s");

        assert_true(json_is_number(sent) && json_number_value(sent) >= 0);
        if (*name == 'w')
            assert_int_equal(json_array_size(json_object_get(node, "keys")), 2);
        assert_true(*name != 's' || name[1] != 'e' || json_is_array(json_object_get(node, "late")));
    }
}

static void who_waits(void **state)
{
    static const char waits[] = "worker 0 waits for key 0 part 0 round 5 at server 0 for ",
                      lacks[] = "s: worker 1 (last heard ";
    char line[512], *text;
    const tool_said *t;
    json_t *said_line;

    transport_of = *state;
    job_start(0, NULL);
    gate_reached();
    file_make("w1.hold");
    t = asked("doctor");
    assert_int_equal(t->code, 0);
    assert_string_equal(t->out, "nobody waits\n");
    gate_open();
    (void)snprintf(line, sizeof line, ASK " >said; grep -q 'worker 1 is waited for by 1' said", "doctor",
                   *transport_of);
    assert_true(tool_until(pids[WORKER(0)], line));
    text = tool_file("said");
    assert_says(text, waits);
    assert_says(text, lacks);
    assert_says(text, "has not pushed it");
    free(text);
    t = asked("doctor --json");
    said_line = tool_json(t, 0);
    assert_int_equal(json_array_size(json_object_get(said_line, "findings")), 2);
    json_decref(said_line);
    t = asked("status");
    assert_int_equal(t->code, 0);
    assert_says(t->out, "dist_sync, 2 workers, 2 servers, running");
    assert_says(t->out, "server 1 ");
    assert_says(t->out, "last in rounds");
    assert_says(t->out, "slowest keys");
    assert_null(strstr(t->out, "per second"));
    t = asked("status --interval 0.05");
    assert_int_equal(t->code, 0);
    assert_says(t->out, "per second");
    t = asked("status --interval 0.01 --json");
    said_line = tool_json(t, 0);
    rates_check(json_object_get(said_line, "nodes"));
    json_decref(said_line);
    t = asked("status --json");
    said_line = tool_json(t, 0);
    assert_int_equal(json_array_size(json_object_get(said_line, "nodes")), 5);
    json_decref(said_line);
    t = asked("status --prometheus");
    assert_says(t->out, "tenon_kv_up{node=\"worker 1\"} 1\n");
    assert_says(t->out, "\ntenon_kv_staleness_count{node=\"server 0\"} 0\n");
    text = strdup(t->out);
    assert_non_null(text);
    assert_true(prometheus_check(text) > 5 * 20);
    free(text);
    assert_int_equal(unlink("w1.hold"), 0);
    job_end();
}
/* ---- named points (core/kv/point.h) ---- */

#ifdef TN_TEST_SWITCHES
typedef struct point_row {
    const char *name, *failpoint; /* the failpoint of core/kv/point.h */
    uint32_t which;
} point_row;

#define PROCESS_SCHEDULER SCHEDULER
#define PROCESS_SERVER SERVER(0)
#define PROCESS_WORKER WORKER(1)
#define ROW(role, name, failpoint, what, remark) {#name, failpoint, PROCESS_##role},
static const point_row points[] = {TNI_KV_POINTS(ROW)};

/* Those that are tried in each run, the time at which they act, and how. By then there are snapshots. */
static const struct {
    const char *name, *what;
} tried[] = {
    {"barrier_short", "1=kill"}, {"view_written", "4=kill"}, {"release_half", "1=stop"},
    {"shutdown_half", "1=kill"}, {"push_header", "12=kill"}, {"reduced", "9=kill"},
    {"applied", "9=stop"},       {"synced", "3=kill"},       {"push_part", "4=kill"},
    {"half_acked", "4=stop"},    {"installed", "5=kill"},    {"in_barrier", "1=kill"},
    {"init_stored", "1=kill"},   {"acks_half", "5=kill"},
};

static const point_row *point_of(const char *name)
{
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (strcmp(points[i].name, name) == 0)
            return &points[i];
    fail_msg("no point %s", name);
    return NULL;
}

static bool is(const char *name, const char *of)
{
    return strcmp(name, of) == 0;
}

/* The process is there: killed, or stopped, and then goes on. */
static void point_reached(const char *name, uint32_t which, bool stops)
{
    int status;

    print_message("%s: %s\n", name, stops ? "stop" : "kill");

    while (waitpid(pids[which], &status, WUNTRACED) < 0)
        ;
    if (stops && WIFSTOPPED(status))
        assert_int_equal(kill(pids[which], SIGCONT), 0);
    else if (stops || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("point %s is never reached", name);
}

/* A worker that died is named to the others; else all end with the values that they should have. One that had
 * sent its leave may have left. */
static void point_end(const char *name, uint32_t which, bool stops)
{
    const uint32_t other = WORKER(0) + WORKER(1) - which;

    if (which < WORKER(0) || stops) {
        if (!stops)
            role_start(which, "");
        job_end();
        assert_int_equal(access("w0.rolled", F_OK), -1);
        assert_int_equal(access("w1.rolled", F_OK), -1);
        return;
    }
    if (end_of(other) == 0 && is(name, "leave_sent"))
        said(other - WORKER(0), "the values are right");
    else
        said(other - WORKER(0), which == WORKER(0) ? "worker 0 died" : "worker 1 died");
    for (uint32_t i = 0; i < 3; i++) {
        const int code = end_of(i);

        assert_true(code == 6 || (code == 0 && is(name, "leave_sent")));
    }
}

/* The scheduler's points behind the loss of a server, which comes back. */
static void at_loss(const char *name, bool stops)
{
    gate_reached();
    assert_int_equal(kill(pids[SERVER(1)], SIGKILL), 0);
    assert_int_equal(end_of(SERVER(1)), 128 + SIGKILL);
    if (is(name, "plan_sent"))
        role_start(SERVER(1), "");
    point_reached(name, SCHEDULER, stops);
    if (is(name, "node_dead"))
        role_start(SERVER(1), "");
    gate_open();
}

static void at_point(const char *name, const char *what)
{
    const point_row *p = point_of(name);
    const uint32_t which = is(name, "save_asked") || is(name, "save_half") ? WORKER(0) : p->which;
    const bool stops = strstr(what, "stop") != NULL;
    char text[96];

    (void)snprintf(text, sizeof text, "%s:%s", p->failpoint, what);
    if (is(name, "bound")) { /* it has no address before */
        failpoint_of(SCHEDULER, SCHEDULER, text);
        role_start(SCHEDULER, "--port 0 --address-file at");
        failpoint_of(0, 0, NULL);
        point_reached(name, SCHEDULER, stops);
        if (stops) {
            assert_int_equal(kill(pids[SCHEDULER], SIGKILL), 0);
            assert_int_equal(end_of(SCHEDULER), 128 + SIGKILL);
        }
        job_start(0, NULL);
        gate_open();
        job_end();
        return;
    }
    job_start(which, text);
    if (is(name, "node_dead") || is(name, "plan_sent")) {
        at_loss(name, stops);
    } else {
        gate_open();
        point_reached(name, which, stops);
    }
    point_end(name, which, stops);
}

/* All of them, a few in each run. */
static void at_all_points(uint64_t runs)
{
    const char *text = getenv("TENON_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : 0, all = sizeof points / sizeof *points;

    for (uint64_t i = 0; i < runs; i++) {
        const char *name = points[(seed * runs + i) % all].name;
        const char *nth = is(name, "view_written") ? "3" : "1";
        char what[16];

        (void)snprintf(what, sizeof what, "%s=kill", nth);
        at_point(name, what);
        (void)snprintf(what, sizeof what, "%s=stop", nth);
        at_point(name, what);
    }
    print_message("count %llu\n", (unsigned long long)(2 * runs));
}

static void at_points(void **state)
{
    const uint64_t runs = test_runs(0); /* a campaign */

    transport_of = *state;
    if (runs)
        at_all_points(runs);
    for (size_t i = 0; !runs && i < sizeof tried / sizeof *tried; i += is(*transport_of, "acme_tcp") ? 1 : 2)
        at_point(tried[i].name, tried[i].what);
}
#else
static void at_points(void **state)
{
    (void)state;
    print_message("skipped: this build has no points\n");
    skip();
}
#endif

/* ---- what the commands say ---- */

static void nobody_comes(void **state)
{
    const tool_said *t;
    json_t *line;

    (void)state;
    t = tool("\"$T\" kv schedule --port 0 --json --set kvstore.transport=acme_tcp --set "
             "plugins.path=\"$TENON_TEST_PLUGINS,$TENON_TEST_BUILD/templates\" --set "
             "kvstore.control_timeout=200 --set kvstore.heartbeat=50");
    assert_int_equal(t->code, 6);
    assert_says(t->err, "worker 0 has not come");
    line = tool_json(t, 0);
    assert_says(json_string_value(json_object_get(line, "address")), "127.0.0.1:");
    json_decref(line);
    t = tool("\"$T\" kv serve --set kvstore.transport=absent");
    assert_int_equal(t->code, 3);
    assert_says(t->err, "kv-absent");
    t = tool("\"$T\" kv serve --set kvstore.heartbeat=9s");
    assert_int_equal(t->code, 2);
    assert_says(t->err, "longer than kvstore.suspect");
    t = tool("\"$T\" kv serve --scheduler 192.0.2.1");
    assert_int_equal(t->code, 2);
    assert_says(t->err, "kvstore.secret_file is needed");
    assert_int_equal(tool("\"$T\" kv serve extra")->code, 2);
    assert_int_equal(tool("\"$T\" kv serve --address-file x")->code, 2);
    assert_int_equal(tool("\"$T\" kv")->code, 2);
    assert_int_equal(tool("\"$T\" kv status extra")->code, 2);
    assert_int_equal(tool("\"$T\" kv doctor --prometheus")->code, 2);
    assert_int_equal(tool("\"$T\" kv doctor --set kvstore.transport=absent")->code, 3);
    t = tool("\"$T\" kv status --interval 0");
    assert_int_equal(t->code, 2);
    assert_says(t->err, "--interval 0: seconds up to 86400 are asked");
    assert_int_equal(tool("\"$T\" kv status --interval nan")->code, 2);
    assert_int_equal(tool("\"$T\" kv status --interval 1x")->code, 2);
    t = tool("\"$T\" kv status --scheduler 192.0.2.1");
    assert_int_equal(t->code, 2);
    assert_says(t->err, "kvstore.secret_file is needed");
}

#define JOB(test, transport) cmocka_unit_test_prestate(test, (void *)(uintptr_t)&transport)

int main(int argc, char **argv)
{
    static const char *const settings[][2] = {
        {"DMLC_NUM_WORKER", "2"},
        {"DMLC_NUM_SERVER", "2"},
        {"TENON_KV_JOB", "a job of a test"},
        {"TENON_KVSTORE__HEARTBEAT", "100ms"},
        {"TENON_KVSTORE__SUSPECT", "1s"},
        {"TENON_KVSTORE__DEAD", "300s"}, /* who lives, however slowly, is not dead; links tell who is */
        {"TENON_KVSTORE__ON_SERVER_LOSS", "wait:300"},
        {"TENON_KVSTORE__CONTROL_TIMEOUT", "300s"},
        {"TENON_KVSTORE__PART_BYTES", "65536"},
        {"TENON_KVSTORE__DURABILITY", "snapshot:1"},
        {"TENON_KVSTORE__STATE_FOLDER", "state"},
    };
    static const char *tcp = "acme_tcp", *zmq = "zmq", *shm = "shm", *both = "auto";
    const struct CMUnitTest over_tcp[] = {
        cmocka_unit_test(nobody_comes),
        JOB(a_job, tcp),
        JOB(a_server_is_killed, tcp),
        JOB(the_scheduler_is_killed, tcp),
        JOB(a_worker_is_killed, tcp),
        JOB(who_waits, tcp),
        JOB(a_worker_is_killed, tcp),
        JOB(a_server_is_killed_for_programs, tcp),
        JOB(at_points, tcp),
    };
    const struct CMUnitTest over_zmq[] = {
        JOB(a_job, zmq),
        JOB(who_waits, zmq),
        JOB(a_server_is_killed, zmq),
        JOB(the_scheduler_is_killed, zmq),
        JOB(a_worker_is_killed, zmq),
        JOB(at_points, zmq),
    };
    const struct CMUnitTest over_shm[] = {
        JOB(a_job, shm),
        JOB(who_waits, shm),
        JOB(a_server_is_killed, shm),
        JOB(the_scheduler_is_killed, shm),
        JOB(a_worker_is_killed, shm),
        JOB(at_points, shm),
    };
    const struct CMUnitTest over_both[] = {
        JOB(a_job, both),
        JOB(a_server_is_killed, both),
        JOB(the_scheduler_is_killed, both),
        JOB(a_worker_is_killed, both),
    };
    char plugin[4096];
    int failures;

    if (argc == 3 && !strcmp(argv[1], "worker"))
        return worker(argv[2]);
    tool_setup();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        (void)setenv(settings[i][0], settings[i][1], 1);
    failures = cmocka_run_group_tests(over_tcp, NULL, NULL);
    failures += cmocka_run_group_tests(over_shm, NULL, NULL);
    (void)snprintf(plugin, sizeof plugin, "%s/kv-zmq.so", getenv("TENON_TEST_PLUGINS"));
    if (access(plugin, R_OK))
        printf("skipped: the plugin kv-zmq is not built\n");
    else
        failures +=
            cmocka_run_group_tests(over_zmq, NULL, NULL) + cmocka_run_group_tests(over_both, NULL, NULL);
    tool_teardown();
    return failures;
}
