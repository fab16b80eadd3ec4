/*
 * A job of real processes: tenon kv schedule and serve, and this program as the workers, over zmq and over
 * the template of a transport, where one of each role is killed.
 */
#include "tool.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context/context.h"
#include "kv/process.h"

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

    for (uint32_t k = 0; k < KEYS; k++)
        for (uint32_t i = 0; i < counts[k]; i++)
            gradients[k][i] = gradient(rank, s, k, i);
    if (!(st = all_keys(p, TNI_KV_DO_PUSHPULL, false)) && rank == 0)
        st = tni_kv_process_call(p, &save);
    return st;
}

static tn_status prepare(tni_kv_process *p)
{
    static const char words[] = "optimizer\0sgd\0lr\0001";
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = words, .bytes = sizeof words},
                         barrier = {.kind = TNI_KV_DO_BARRIER};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < KEYS && !st; k++)
        st = tni_kv_process_key(p, k, TN_F32, counts[k], sizeof(float));
    if (!st && !(st = begin(p)) && rank == 0)
        st = tni_kv_process_call(p, &r);
    return st ? st : tni_kv_process_call(p, &barrier);
}

/* A step that a returned server rolled back is made again, from its cut on. */
static tn_status steps(tni_kv_process *p)
{
    uint32_t epochs = 0, now;
    tn_status st = TN_OK;

    for (uint32_t s = 1; s <= STEPS && !st; s++) {
        char text[16];

        st = step(p, s);
        (void)tni_kv_process_cut(p, &now);
        if (st == TN_E_STATE && now != epochs) {
            s = (uint32_t)tni_kv_process_cut(p, &epochs);
            st = begin(p);
            line_add("rolled", "back");
            continue;
        }
        (void)snprintf(text, sizeof text, "%u", s);
        if (!st)
            line_add("steps", text);
        while (!st && s == GATE && access("go", F_OK))
            (void)usleep(1000);
    }
    return st;
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
    if (!(st = tni_context_open(&o, &c)) && !(st = tni_kv_process_join(c, false, &p)) && !(st = prepare(p)))
        st = steps(p);
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

static void job_start(void)
{
    assert_int_equal(system("rm -rf at go w?.* r?.* state"), 0);
    (void)setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
    role_start(SCHEDULER, "--port 0 --address-file at");
    assert_true(tool_until(pids[SCHEDULER], "test -s at"));
    port_set();
    for (uint32_t i = 0; i < 2; i++)
        role_start(SERVER(i), "");
    for (uint32_t i = 0; i < 2; i++)
        worker_start(i);
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

static void gate_open(void)
{
    FILE *file = fopen("go", "w");

    assert_non_null(file);
    (void)fclose(file);
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
    job_start();
    gate_open();
    job_end();
}

static void a_server_is_killed(void **state)
{
    transport_of = *state;
    job_start();
    gate_reached();
    assert_int_equal(kill(pids[SERVER(0)], SIGKILL), 0);
    assert_int_equal(end_of(SERVER(0)), 128 + SIGKILL);
    role_start(SERVER(0), "");
    gate_open();
    job_end();
    assert_int_equal(access("w0.rolled", F_OK), 0);
}

static void the_scheduler_is_killed(void **state)
{
    transport_of = *state;
    job_start();
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
    job_start();
    gate_reached();
    assert_int_equal(kill(pids[WORKER(1)], SIGKILL), 0);
    assert_int_equal(end_of(WORKER(1)), 128 + SIGKILL);
    gate_open();
    assert_int_equal(end_of(WORKER(0)), 6);
    said(0, "worker 1 died");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(end_of(i), 6);
}

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
    static const char *tcp = "acme_tcp", *zmq = "zmq";
    const struct CMUnitTest over_tcp[] = {
        cmocka_unit_test(nobody_comes), JOB(a_job, tcp),
        JOB(a_server_is_killed, tcp),   JOB(the_scheduler_is_killed, tcp),
        JOB(a_worker_is_killed, tcp),
    };
    const struct CMUnitTest over_zmq[] = {
        JOB(a_job, zmq),
        JOB(a_server_is_killed, zmq),
        JOB(the_scheduler_is_killed, zmq),
        JOB(a_worker_is_killed, zmq),
    };
    char plugin[4096];
    int failures;

    if (argc == 3 && !strcmp(argv[1], "worker"))
        return worker(argv[2]);
    tool_setup();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        (void)setenv(settings[i][0], settings[i][1], 1);
    failures = cmocka_run_group_tests(over_tcp, NULL, NULL);
    (void)snprintf(plugin, sizeof plugin, "%s/kv-zmq.so", getenv("TENON_TEST_PLUGINS"));
    if (access(plugin, R_OK))
        printf("skipped: the plugin kv-zmq is not built\n");
    else
        failures += cmocka_run_group_tests(over_zmq, NULL, NULL);
    tool_teardown();
    return failures;
}
