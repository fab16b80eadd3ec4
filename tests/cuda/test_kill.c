/*
 * A training on the emulated GPU in which one thing goes wrong, at each place there is: no memory, a launch
 * that is refused, an event that fails, the device lost while a kernel of forward or backward runs. Each ends
 * with a status that names the operator and kernel, or goes on with the same bits; it is logged once; the
 * host trains on, in the same process; nothing is left, nothing hangs. The program is its own training.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"
#include "tenon/engine.h"
#include "tenon/nn.h"

#define STEPS 5 /* a graph is recorded in the third */
#define ROWS 4
#define FEATURES 6

/* ---- the training ------------------------------------------------------------------------------------ */

static tn_x net_of(tn_x x)
{
    return tn_dense(tn_relu(tn_dense(x, .units = 8)), .units = 3);
}

/* A number of what was learned; NaN: the app has failed. */
static double train(tn_app *app)
{
    tn_net *net = tn_net_function(app, net_of, .name = "net");
    tn_trainer *trainer;
    float x[ROWS * FEATURES], y[ROWS], loss[ROWS], sum = 0;

    tn_net_init(net, .with = "uniform", .scale = 0.5, .seed = 2, .shape = {ROWS, FEATURES});
    tn_net_hybridize(net);
    trainer = tn_trainer_new(net, .optimizer = "sgd", .lr = 0.1, .momentum = 0.9);
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = (float)(i * 7 % 11) / 8 - 0.5f;
    for (int i = 0; i < ROWS; i++)
        y[i] = (float)(i % 3);
    for (int step = 0; step < STEPS && tn_app_ok(app); step++) {
        tn_array *in = tn_app_array(app, 2, (const int64_t[]){ROWS, FEATURES}, x), *out;
        tn_array *labels = tn_app_array(app, 1, (const int64_t[]){ROWS}, y);

        tn_app_record(app);
        out = tn_loss_softmax_ce(app, tn_net_forward(net, in), labels);
        tn_app_backward(app, out);
        tn_trainer_step(trainer, ROWS);
        if (!out || tn_app_check(app, tn_array_read(out, loss, sizeof loss)))
            return (double)NAN;
        for (int i = 0; i < ROWS; i++)
            sum += loss[i];
    }
    (void)tn_app_check(app, tn_wait_all(tn_app_ctx(app)));
    return tn_app_ok(app) ? (double)sum : (double)NAN;
}

/* By several threads at once. */
static void logged(void *arg, int32_t level, const char *text)
{
    (void)level;
    if (strstr(text, "failed"))
        atomic_fetch_add((atomic_int *)arg, 1);
    (void)printf("log: %s\n", text);
}

static double train_on(const char *device, int *code)
{
    char plugins[4200];
    const char *const settings[] = {plugins, "memory.cuda.pool=naive", NULL};
    atomic_int lines = 0;
    tn_app *app;
    double sum;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    app = tn_app_open(.name = "kill", .settings = settings, .device = device, .errors = stdout, .log = logged,
                      .arg = &lines);
    sum = train(app);
    *code = tn_app_close(app);
    (void)printf("%s: %.9g, logged %d\n", device, sum, atomic_load(&lines));
    return sum;
}

static int child(void)
{
    int codes[2];
    const double gpu = train_on("cuda:0", &codes[0]), host = train_on("cpu", &codes[1]);

    (void)gpu;
    if (codes[1] || !(host > 0))
        (void)printf("the host is of no use\n");
    return codes[1] ? 99 : codes[0];
}

/* ---- all faults -------------------------------------------------------------------------------------- */

static char self[4096], whole[64];

typedef struct kind {
    const char *clock, *more; /* what fails, and "+": all behind it, too */
    int result;
    int names;    /* 1: the error has the node and the kernel */
    int logged;   /* lines about the device that failed */
    int codes[2]; /* exit codes that are right besides 0 */
} kind;

static const kind kinds[] = {
    {"cuMemAlloc", "+", 2, 0, 0, {5, 5}},
    {"cuLaunchKernel", "", 1, 1, 0, {70, 3}},
    {"cuLaunchKernel", "", 719, 1, 1, {70, 3}},
    {"kernel", "", 719, 0, 1, {70, 3}},
    {"cuEventRecordWithFlags", "", 1, 0, 0, {70, 3}},
    {"cuEventCreate", "", 2, 0, 0, {5, 5}},
    {"cuEventQuery", "", 719, 0, 1, {70, 3}},
    {"cuStreamWaitEvent", "", 1, 0, 0, {70, 3}},
    {"cuMemcpyAsync", "", 719, 0, 1, {70, 3}},
    {"cuStreamEndCapture", "", 901, 0, 0, {70, 3}},
    {"cuGraphInstantiateWithFlags", "", 2, 0, 0, {5, 5}},
    {"cuGraphLaunch", "", 1, 0, 0, {70, 3}},
    {"cuGraphLaunch", "", 719, 0, 1, {70, 3}},
};

static const said *with(const char *settings, char *counts, size_t bytes)
{
    char command[8192], all[160];
    const char *at, *seed = getenv("TENON_SEED");
    const said *s;

    (void)snprintf(all, sizeof all, "TNEMU_DELAY_US=5 TNEMU_SEED=%s %s", seed ? seed : "0", settings);
    (void)snprintf(
        command, sizeof command,
        "C=$(mktemp) || exit 98; trap 'rm -f $C' EXIT; export TNEMU_COUNTS=$C; timeout 120 '%s' child; R=$?; "
        "echo counts; cat $C; exit $R",
        self);
    s = cuda_say(all, command);
    at = strstr(s->out, "\ncounts\n");
    (void)snprintf(counts, bytes, "%s", at ? at + 7 : "");
    return s;
}

static unsigned counted(const char *counts, const char *name)
{
    char line[80];
    const char *at;

    (void)snprintf(line, sizeof line, "\n%s ", name);
    at = strstr(counts, line);
    return at ? (unsigned)strtoul(at + strlen(line), NULL, 10) : 0;
}

/* What ends the context is met first by another thread's call now and then: then that call is named. */
static bool met_elsewhere(const kind *k, const said *s)
{
    return k->logged && strstr(s->out, "of no more use in this process: cu");
}

/* The training went on; it ended, and the kernel and its stream were named; or only another call was. */
enum { WENT_ON, NAMED, MET, ENDS };

static int one(const kind *k, unsigned at)
{
    char fault[96], counts[4096], logs[40];
    const said *s;
    bool named;
    int right;

    (void)snprintf(fault, sizeof fault, "TNEMU_FAULT=%s:%u%s:%d", k->clock, at, k->more, k->result);
    s = with(fault, counts, sizeof counts);
    right = s->code ? s->code == k->codes[0] || s->code == k->codes[1] : strstr(s->out, whole) != NULL;
    (void)snprintf(logs, sizeof logs, "nan, logged %d", k->logged);
    named = strstr(s->out, "kernel ") && strstr(s->out, "stream ");
    if (!right || strstr(s->out, "of no use") || counted(counts, "blocks") ||
        (s->code && !strstr(s->out, "error[TN-")) || (s->code && !strstr(s->out, logs)) ||
        (s->code && k->names && !named && !met_elsewhere(k, s)))
        fail_msg("%s: ends with %d, %u blocks left:\n%s", fault, s->code, counted(counts, "blocks"), s->out);
    return !s->code ? WENT_ON : named ? NAMED : MET;
}

/* Every step-th of each kind, another part with each commit; TENON_FULL: each. TENON_SEED: another order. */
static void each(void **state)
{
    const unsigned step = test_full() ? 1 : test_short() ? 48 : 16, first = (unsigned)test_rotation(step);
    char counts[4096];
    unsigned done = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const said *s = i ? NULL : with("", counts, sizeof counts);
        const unsigned count = counted(counts, kinds[i].clock);
        unsigned ends[ENDS] = {0};

        if (s) {
            assert_int_equal(s->code, 0);
            (void)snprintf(whole, sizeof whole, "%.*s", (int)strcspn(s->out, ","), s->out);
        }
        assert_true(count > 0);
        for (unsigned at = 1 + first % (count < step ? count : step); at <= count; at += step, done++)
            ends[one(&kinds[i], at)]++;
        assert_true(!kinds[i].names || ends[NAMED] || !ends[MET]);
    }
    (void)printf("count %u\n", done);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 1)
        return child();
    cuda_setup();
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
