/*
 * Convolutions by cuDNN, whose double (dnn/) checks what the plugin asks of it: the kit on its kernels,
 * trainings, graphs, and a library that is absent, damaged or refuses, where our own kernels serve.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"

#define WITH "--set plugin.cuda.libraries=\"$TENON_TEST_DRIVER/../dnn\" "
#define WITHOUT "--set plugin.cuda.libraries=none "
#define IN_FOLDER "D=$(mktemp -d); trap 'rm -r $D' EXIT; "
#define TRAIN(model) "\"$T\" train " model " --data digits --progress none --seed 3 --epochs 1 --out $D/run "

static const char *const ops[] = {"Convolution", "_backward_Convolution", "Deconvolution",
                                  "_backward_Deconvolution", "_fused_conv"};

static void kit_clean(const char *settings, const char *what, const char *op, const char *more)
{
    char command[512];
    const said *s;

    (void)snprintf(command, sizeof command,
                   "\"$T\" plugins check cuda --only kernel/%s/%s/cudnn@cuda " WITH "%s", what, op, more);
    s = cuda_say(settings, command);
    if (s->code || !strstr(s->out, "1 passed, 0 failed") || strstr(s->out, "cudnn double"))
        fail_msg("%s %s: %d\n%s", settings, command, s->code, s->out);
}

/* ---- the kit ------------------------------------------------------------------------------------------- */

static void values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        kit_clean("TNEMU_DELAY_US=0", "values", ops[i], "");
}

/* What the kit looks at besides, a part of it with each commit. */
static void forms(void **state)
{
    static const char *const whats[] = {"modes",   "special",       "bounds",      "misaligned",   "state",
                                        "threads", "uninitialised", "precision",   "nomem",        "errors",
                                        "process", "old-host",      "future-host", "deterministic"};
    const size_t count = sizeof whats / sizeof *whats, step = test_full() ? 1 : 5;

    (void)state;
    for (size_t i = (size_t)test_rotation(step); i < count; i += step)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            if (test_full() || k == i % (sizeof ops / sizeof *ops))
                kit_clean("TNEMU_DELAY_US=0", whats[i], ops[k], "");
}

/* Which engines are taken: of float32 none by tensor cores, unless tf32 is set. */
static void engines(void **state)
{
    static const struct {
        const char *list, *more, *says;
    } rows[] = {
        {"TNCUDNN_ENGINES=ntdrf#", "",
         "y f32 of n 2 c 3 k 4 groups 1 in 1x9x9 out 1x9x9 kernel 1x3x3 stride 1x1x1 dilate "
         "1x1x1 pad 0x1x1: engine 9, number 6 of 6"},
        {"TNCUDNN_ENGINES=ntw#", "--set plugin.cuda.tf32=true ", "y f32 by tf32 of n 2"},
        {"TNCUDNN_ENGINES=ntw#", "--set plugin.cuda.tf32=true ",
         ": engine 2, number 2 of 4, notes 1, workspace 0"},
        {"TNCUDNN_ENGINES=nta/dw", "", ": engine 6, number 5 of 5, notes 260, workspace 512"},
        {"TNCUDNN_ENGINES=la", "",
         "no engine, of 2 listed and 2 allowed; cuDNN: an execution plan gives "
         "CUDNN_STATUS_NOT_SUPPORTED (3000)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[512];

        (void)snprintf(command, sizeof command,
                       "\"$T\" plugins check cuda --reproduce kernel/values/Convolution/cudnn@cuda " WITH
                       "%s",
                       rows[i].more);
        cuda_said(cuda_say(rows[i].list, command), rows[i].says);
    }
}

/* The library itself, where it is installed, takes all that the plugin asks of it for an H100 that is
 * described to it; what it refuses in the end is to run without one. */
static void vendors(void **state)
{
    const said *s;

    (void)state;
    s = cuda_say("TNEMU_DELAY_US=0",
                 IN_FOLDER "[ -e \"$TENON_TEST_DRIVER/../described/libcudnn.so.9\" ] || exit 77; "
                           "export LD_LIBRARY_PATH=\"$TENON_TEST_DRIVER/../described:$LD_LIBRARY_PATH\"; "
                           "for op in Convolution _backward_Convolution _fused_conv; do "
                           "\"$T\" plugins check cuda --reproduce kernel/values/$op/cudnn@cuda "
                           "--set plugin.cuda.libraries=\"$TENON_TEST_DRIVER/../described\" >$D/said; c=$?; "
                           "grep -E 'SKIP|cudnnCreate|no engine|FAIL|PASS' $D/said; "
                           "echo engines $(grep -c ': engine' $D/said); [ $c = 0 ] || exit $c; done");
    if (s->code == 77 || strstr(s->out, "cudnnCreate gives")) {
        print_message("skipped: cuDNN is not installed, or takes no description of a device\n");
        skip();
    }
    if (s->code || strstr(s->out, "no engine") || !strstr(s->out, "PASS"))
        fail_msg("%d\n%s", s->code, s->out);
}

/* ---- a library that is not there, or of no use -------------------------------------------------------- */

/* The last line of the kit, and what the plugin says. */
static void absent(void **state)
{
    static const struct {
        const char *make, *says;
    } rows[] = {
        {"L=none", "convolutions are our own: plugin.cuda.libraries is none"},
        {"L=$D; echo no library >$D/libcudnn.so.9; export LD_LIBRARY_PATH=\"$D:$LD_LIBRARY_PATH\"",
         "convolutions are our own: "},
        {"L=$D; echo 'int cudnnGetVersion(void){return 1;}' >$D/a.c; "
         "${CC:-cc} -shared -fPIC -o $D/libcudnn.so.9 $D/a.c",
         "libcudnn.so.9 has no cudnnGetErrorString; install cuDNN 9"},
        {"L=\"$TENON_TEST_DRIVER/../dnn\"; export TNCUDNN_FAULT=cudnnCreate:1+:1001",
         "cuda:0: convolutions are our own: cuDNN: cudnnCreate gives CUDNN_STATUS_NOT_INITIALIZED (1001)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[1024];
        const said *s;

        (void)snprintf(command, sizeof command,
                       IN_FOLDER "%s; \"$T\" plugins check cuda --reproduce "
                                 "kernel/values/Convolution/cudnn@cuda --set plugin.cuda.libraries=\"$L\"",
                       rows[i].make);
        s = cuda_say("", command);
        cuda_said(s, rows[i].says);
        cuda_said(s, "0 failed, 0 crashed, 1 skipped");
    }
}

/* ---- nets ---------------------------------------------------------------------------------------------- */

/* A convolution with a ReLU, then one with an addend and a ReLU: inference has two fused operators. */
static const char net[] =
    "printf '%s' '{\"nodes\":["
    "{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"a_weight\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"a_bias\",\"inputs\":[]},"
    "{\"op\":\"Convolution\",\"name\":\"a\",\"attrs\":{\"num_filter\":\"4\","
    "\"kernel\":\"(3,3)\",\"stride\":\"(2,2)\"},"
    "\"inputs\":[[0,0,0],[1,0,0],[2,0,0]]},"
    "{\"op\":\"Activation\",\"name\":\"r\",\"attrs\":{\"act_type\":\"relu\"},"
    "\"inputs\":[[3,0,0]]},"
    "{\"op\":\"null\",\"name\":\"c_weight\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"c_bias\",\"inputs\":[]},"
    "{\"op\":\"Convolution\",\"name\":\"c\",\"attrs\":{\"num_filter\":\"4\",\"kernel\":\"(1,1)\"},"
    "\"inputs\":[[4,0,0],[5,0,0],[6,0,0]]},"
    "{\"op\":\"elemwise_add\",\"name\":\"s\",\"inputs\":[[7,0,0],[4,0,0]]},"
    "{\"op\":\"relu\",\"name\":\"t\",\"inputs\":[[8,0,0]]},"
    "{\"op\":\"null\",\"name\":\"b_weight\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"b_bias\",\"inputs\":[]},"
    "{\"op\":\"FullyConnected\",\"name\":\"b\",\"attrs\":{\"num_hidden\":\"10\"},"
    "\"inputs\":[[9,0,0],[10,0,0],[11,0,0]]}],"
    "\"arg_nodes\":[0,1,2,5,6,10,11],\"heads\":[[12,0,0]]}' >$D/net-symbol.json; ";

/* The rest of the line behind `name`. */
static void value_of(const said *s, const char *name, char *out, size_t bytes)
{
    const char *at = strstr(s->out, name);

    if (s->code || !at)
        fail_msg("ends with %d, and says no %s:\n%s", s->code, name, s->out);
    at += strlen(name);
    (void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

/* As often as the double wrote that it was called. */
static unsigned long count_of(const said *s, const char *name)
{
    char text[32];

    value_of(s, name, text, sizeof text);
    return strtoul(text, NULL, 10);
}

#define TRAINED(more)                                                                                        \
    IN_FOLDER "%sexport TNCUDNN_COUNTS=$D/counts; %s--set device.default=cuda:0 " more                       \
              "; c=$?; [ ! -e $D/counts ] || cat $D/counts; exit $c"

static const said *trained(const char *settings, bool large, const char *more)
{
    char command[3072];

    (void)snprintf(command, sizeof command, TRAINED("%s"), large ? "" : net,
                   large ? TRAIN("zoo:lenet") : TRAIN("$D/net-symbol.json"), more);
    return cuda_say(settings, command);
}

/* The accuracy of our own kernels, the same bits in any order of the streams, captured or not; steps share
 * plans, and nothing is left at the end. */
static void trainings(void **state)
{
    const uint64_t runs = test_runs(3);
    char own[64], first[80], now[80];
    const said *s = trained("TNEMU_DELAY_US=0", test_full(), WITHOUT);

    (void)state;
    value_of(s, "accuracy ", own, sizeof own);
    for (uint64_t seed = 0; seed < runs; seed++) {
        char settings[64];

        (void)snprintf(settings, sizeof settings, "TNEMU_SEED=%llu", (unsigned long long)seed);
        s = trained(settings, test_full(), seed % 2 ? WITH "--set plugin.cuda.graphs=false " : WITH);
        value_of(s, "params_sha256 ", seed ? now : first, sizeof now);
        if (seed)
            assert_string_equal(now, first);
        if (strstr(s->out, "cudnn double"))
            fail_msg("%s:\n%s", settings, s->out);
        assert_int_equal(count_of(s, "\nhandles "), 0);
        assert_int_equal(count_of(s, "\ndescriptors "), 0);
        assert_int_equal(count_of(s, "\ncudnnCreate "), 1);
        assert_true(count_of(s, "\ncudnnBackendExecute ") > 4);
    }
    value_of(s, "accuracy ", now, sizeof now);
    assert_true(strtod(now, NULL) > strtod(own, NULL) - 0.02);
}

/* Inference has the convolutions with what follows them in one plan each. Where no engine serves that, and
 * where the library refuses to run it, nothing else comes out. */
static void fused(void **state)
{
    static const char *const settings[] = {"TNEMU_DELAY_US=0", "TNEMU_DELAY_US=0 TNCUDNN_ENGINES=s",
                                           "TNEMU_DELAY_US=0 TNCUDNN_FAULT=cudnnBackendExecute:81+:3000"};
    char loss[64], now[64];

    (void)state;
    value_of(trained(settings[0], false, WITHOUT), "loss ", loss, sizeof loss);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const said *s = trained(settings[i], false, WITH "--set log.level=debug ");

        if (strstr(s->out, i == 1 ? "relu: engine" : "no engine"))
            fail_msg("%s:\n%s", settings[i], s->out);
        cuda_said(s, i == 1 ? ", bias, relu: no engine"
                            : "out 1x3x3 kernel 1x3x3 stride 1x2x2 dilate 1x1x1 "
                              "pad 0x0x0, bias, relu: engine 9, number 7");
        cuda_said(s, i == 1 ? ", addend, bias, relu: no engine" : ", addend, bias, relu: engine 9, number 7");
        if (i == 2)
            cuda_said(s, ", addend, bias, relu is our own from now on: ");
        value_of(s, "loss ", now, sizeof now);
        assert_true(strtod(now, NULL) < strtod(loss, NULL) + 1e-3);
        assert_true(strtod(now, NULL) > strtod(loss, NULL) - 1e-3);
        assert_int_equal(count_of(s, "\ndescriptors "), 0);
    }
}

/* Where bits may differ from run to run, engines are measured: which one is ahead here, no test says. One
 * that cannot run is not taken, and where none can, the first one is. */
static void measured(void **state)
{
    static const struct {
        const char *settings, *more, *says;
        bool measures;
    } rows[] = {
        {"TNCUDNN_ENGINES=wal#", "--set run.deterministic=off ", " of 4, notes ", true},
        {"TNCUDNN_ENGINES=wal# TNCUDNN_FAULT=cudnnBackendExecute:1:5000", "--set run.deterministic=off ",
         "engine 9, number 4 of 4, notes 0, workspace 256, measured", true},
        {"TNCUDNN_ENGINES=wal# TNCUDNN_FAULT=cudnnBackendExecute:1+:5000", "--set run.deterministic=off ",
         "engine 6, number 1 of 4, notes 260, workspace 512, measured", true},
        {"TNCUDNN_ENGINES=wal# TNCUDNN_FAULT=cudnnSetStream:1+:5000", "--set run.deterministic=off ",
         "engine 6, number 1 of 4, notes 260, workspace 512, measured", true},
        /* One call after the other: the third block and the fourth stream are those of the measuring. */
        {"TNCUDNN_ENGINES=wal# TNEMU_FAULT=cuMemAlloc:3:2",
         "--set run.deterministic=off --set engine.type=naive ", " of 4, notes ", true},
        {"TNCUDNN_ENGINES=wal# TNEMU_FAULT=cuStreamCreateWithPriority:4:2",
         "--set run.deterministic=off --set engine.type=naive ", " of 4, notes ", true},
        {"TNCUDNN_ENGINES=#", "--set run.deterministic=off ", "engine 9, number 1 of 1", false},
        {"TNCUDNN_ENGINES=wal#", "--set run.deterministic=off --set plugin.cuda.autotune=false ",
         "engine 6, number 1 of 4", false},
        {"TNCUDNN_ENGINES=wal#", "", "engine 6, number 1 of 4", false},
    };
    const size_t step = test_full() ? 1 : 3;
    char loss[64], now[64];

    (void)state;
    value_of(trained("TNEMU_DELAY_US=0", false, WITHOUT), "loss ", loss, sizeof loss);
    for (size_t i = (size_t)test_rotation(step); i < sizeof rows / sizeof *rows; i += step) {
        char settings[160], more[256];
        const said *s;

        (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=0 %s", rows[i].settings);
        (void)snprintf(more, sizeof more, WITH "--set log.level=debug %s", rows[i].more);
        s = trained(settings, false, more);
        cuda_said(s, rows[i].says);
        if ((strstr(s->out, ", measured") != NULL) != rows[i].measures)
            fail_msg("%s %s:\n%s", settings, rows[i].more, s->out);
        value_of(s, "loss ", now, sizeof now);
        assert_true(strtod(now, NULL) < strtod(loss, NULL) + 1e-3);
        assert_true(strtod(now, NULL) > strtod(loss, NULL) - 1e-3);
        assert_int_equal(count_of(s, "\ndescriptors "), 0);
    }
}

/* A run that is refused in the middle: our own kernel goes on, and one line says so. */
static void refused_later(void **state)
{
    const said *s = trained("TNCUDNN_FAULT=cudnnBackendExecute:5+:5000", false, WITH);

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(
        s, "is our own from now on: cuDNN: cudnnBackendExecute gives CUDNN_STATUS_EXECUTION_FAILED (5000)");
    cuda_said(s, "accuracy ");
}

/* ---- calls that fail ----------------------------------------------------------------------------------- */

/* Each call of each function fails once: training goes on by our own kernels, and nothing is left at the end.
 */
static void each_call_fails(void **state)
{
    static const struct {
        const char *function;
        unsigned calls; /* of them, up to the second plan's */
    } rows[] = {{"cudnnCreate", 1},
                {"cudnnSetStream", 2},
                {"cudnnBackendCreateDescriptor", 56},
                {"cudnnBackendFinalize", 28},
                {"cudnnBackendSetAttribute", 110},
                {"cudnnBackendGetAttribute", 44},
                {"cudnnBackendExecute", 4}};
    const uint64_t step = test_full() ? 1 : 11;
    char accuracy[64], now[64];

    (void)state;
    value_of(trained("TNEMU_DELAY_US=0", false, WITHOUT), "accuracy ", accuracy, sizeof accuracy);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t n = 1 + test_rotation(step) % rows[i].calls; n <= rows[i].calls; n += step) {
            char settings[160];
            const said *s;

            (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=0 TNCUDNN_FAULT=%s:%llu:%d",
                           rows[i].function, (unsigned long long)n, n % 2 ? 5000 : 3000);
            s = trained(settings, false, WITH);
            if (s->code || !strstr(s->out, "it was told to fail"))
                fail_msg("%s: %d\n%s", settings, s->code, s->out);
            value_of(s, "accuracy ", now, sizeof now);
            assert_true(strtod(now, NULL) > strtod(accuracy, NULL) - 0.02);
            assert_int_equal(count_of(s, "\nhandles "), 0);
            assert_int_equal(count_of(s, "\ndescriptors "), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),        cmocka_unit_test(vendors),         cmocka_unit_test(forms),
        cmocka_unit_test(engines),       cmocka_unit_test(absent),          cmocka_unit_test(trainings),
        cmocka_unit_test(refused_later), cmocka_unit_test(each_call_fails), cmocka_unit_test(fused),
        cmocka_unit_test(measured),
    };
    char path[4096];

    cuda_setup();
    (void)snprintf(path, sizeof path, "%s/../dnn/libcudnn.so.9", getenv("TENON_TEST_DRIVER"));
    if (access(path, R_OK)) {
        printf("skipped: the double of cuDNN is not built: cudnn_graph.h was not found\n");
        return 77;
    }
    return cmocka_run_group_tests_name("dnn", tests, NULL, NULL);
}
