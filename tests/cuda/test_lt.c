/*
 * Products of matrices by cuBLASLt, on the emulated GPU with a double of the library (tests/cuda/lt): the kit
 * on each kernel, trainings with the bits of the plain kernels, also where any call of the library fails, and
 * machines without it, with a file that is none, or with one that lacks functions. The vendor's own library,
 * where it is, takes the attributes and sizes that the plugin gives.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../plugins/common/library.h"
#include "../../plugins/cuda/lt.h"
#include "cuda.h"
#include "support/runs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* they keep what is freed, and would look into the vendor's library */
#else
#define SANITIZED 0
#endif
#define PARTS 12 /* commits until each kernel was looked at */
#define WITH "--set plugin.cuda.libraries=\"$TENON_TEST_LT\" "
#define BESIDE "LD_LIBRARY_PATH=\"$TENON_TEST_LT:$TENON_TEST_DRIVER\" TNEMU_DELAY_US=0"
#define IN_FOLDER "D=$(mktemp -d); trap 'rm -r $D' EXIT; "
#define OFF "--set run.deterministic=off "
#define ABSENT "products of matrices run on plain kernels: "

/* Two dense layers. */
#define NET                                                                                                  \
    "printf '%s' '{\"nodes\":["                                                                              \
    "{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"                                                     \
    "{\"op\":\"null\",\"name\":\"a_weight\",\"inputs\":[]},"                                                 \
    "{\"op\":\"null\",\"name\":\"a_bias\",\"inputs\":[]},"                                                   \
    "{\"op\":\"FullyConnected\",\"name\":\"a\",\"attrs\":{\"num_hidden\":\"12\"},"                           \
    "\"inputs\":[[0,0,0],[1,0,0],[2,0,0]]},"                                                                 \
    "{\"op\":\"Activation\",\"name\":\"r\",\"attrs\":{\"act_type\":\"relu\"},\"inputs\":[[3,0,0]]},"         \
    "{\"op\":\"null\",\"name\":\"b_weight\",\"inputs\":[]},"                                                 \
    "{\"op\":\"null\",\"name\":\"b_bias\",\"inputs\":[]},"                                                   \
    "{\"op\":\"FullyConnected\",\"name\":\"b\",\"attrs\":{\"num_hidden\":\"10\"},"                           \
    "\"inputs\":[[4,0,0],[5,0,0],[6,0,0]]}],"                                                                \
    "\"arg_nodes\":[0,1,2,5,6],\"heads\":[[7,0,0]]}' >$D/net-symbol.json; "
#define TRAIN(model)                                                                                         \
    "\"$T\" train " model " --data digits --progress none --seed 3 --epochs 1 --out $D/run "                 \
    "--set device.default=cuda:0 "

/* ---- the kit ------------------------------------------------------------------------------------------- */

static const char *const ops[] = {"FullyConnected",
                                  "_backward_FullyConnected",
                                  "_fused_dense",
                                  "dot",
                                  "_backward_dot",
                                  "batch_dot",
                                  "_backward_batch_dot",
                                  "_np_dot",
                                  "_backward__np_dot",
                                  "_npi_matmul",
                                  "_backward__npi_matmul",
                                  "_npi_tensordot",
                                  "_backward__npi_tensordot",
                                  "_npi_tensordot_int_axes",
                                  "_npi_einsum",
                                  "_backward__npi_einsum",
                                  "_linalg_gemm",
                                  "_linalg_gemm2",
                                  "_linalg_syrk",
                                  "_contrib_interleaved_matmul_selfatt_qk",
                                  "_contrib_interleaved_matmul_selfatt_valatt",
                                  "_backward__contrib_interleaved_matmul_selfatt_qk",
                                  "_backward__contrib_interleaved_matmul_encdec_valatt",
                                  "RNN",
                                  "_backward_RNN"};

/* Of each of the tests that look at what a run reads and writes; TENON_FULL: all tests, and RNN, whose cases
 * plan so many products that one takes a minute. */
static void kernels(void **state)
{
    static const char *const tests[] = {"values", "misaligned", "modes", "threads", "nomem", "leak"};
    const size_t count = sizeof ops / sizeof *ops, kinds = sizeof tests / sizeof *tests - SANITIZED;
    const size_t parts = test_full() ? 1 : PARTS * (test_short() ? 3 : 1);

    (void)state;
    for (size_t i = (size_t)test_rotation(parts); i < count; i += parts) {
        for (size_t k = 0; k < kinds && (test_full() || !strstr(ops[i], "RNN")); k++) {
            char command[256];
            const said *s;

            if (k && !test_full() && k != 1 + (i + (size_t)test_rotation(100)) % (kinds - 1))
                continue;
            (void)snprintf(command, sizeof command,
                           "\"$T\" plugins check cuda --only kernel/%s/%s/cublaslt@cuda", tests[k], ops[i]);
            s = cuda_say(BESIDE, command);
            if (s->code || !strstr(s->out, "1 passed, 0 failed") || strstr(s->out, "cublaslt double:"))
                fail_msg("%s: %d\n%s", command, s->code, s->out);
        }
    }
}

/* Where the library refuses each product at its run, plain kernels have right values, too. */
static void kernels_refused(void **state)
{
    const size_t count = sizeof ops / sizeof *ops, parts = test_full() ? 1 : 2 * PARTS;

    (void)state;
    for (size_t i = (size_t)test_rotation(parts); i < count; i += parts) {
        char command[256];
        const said *s;

        (void)snprintf(command, sizeof command,
                       "\"$T\" plugins check cuda --only kernel/values/%s/cublaslt@cuda", ops[i]);
        s = cuda_say(BESIDE " TNLT_FAULT=matmul:1+:15", command);
        if (s->code || !strstr(s->out, "1 passed, 0 failed"))
            fail_msg("%s: %d\n%s", command, s->code, s->out);
    }
}

/* Without the library the kit says what is lacking. */
static void kernels_without(void **state)
{
    const said *s = cuda_say("", "\"$T\" plugins check cuda --only kernel/values/dot/cublaslt@cuda");

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, "SKIP  kernel/values/dot/cublaslt@cuda: cuBLASLt cannot be opened (");
    cuda_said(s, "0 passed, 0 failed, 0 crashed, 1 skipped");
}

/* ---- candidates ---------------------------------------------------------------------------------------- */

#define WHY "\"$T\" plugins why dot --device cuda:0 --shape 4,3 --shape 3,2 "

static void candidates(void **state)
{
    static const struct {
        const char *settings, *command, *says[2];
    } rows[] = {
        {"", WHY WITH, {"cuda/cublaslt                        rank 128  chosen", "rank 64   serves, too"}},
        {"",
         WHY,
         {"rank 128  cuBLASLt cannot be opened (",
          "file too short); install cuBLAS of CUDA 12 or 13, or name its "
          "folder in plugin.cuda.libraries"}},
        {"",
         WHY "--set plugin.cuda.libraries=/no/such/folder",
         {"/no/such/folder/libcublasLt.so.13", "64   chosen"}},
        {"TNLT_FAULT=none:1+",
         WHY WITH,
         {"dot: f32 (4, 3) by (3, 2), batch 1: of 0 algorithms of cublasLtMatmulAlgoGetHeuristic none serves",
          "rank 64   chosen"}},
        {"TNLT_FAULT=state:1+",
         WHY WITH,
         {"algorithms of cublasLtMatmulAlgoGetHeuristic none serves", "64   chosen"}},
        {"TNLT_FAULT=heuristic:1+:15",
         WHY WITH,
         {"cublasLtMatmulAlgoGetHeuristic gives CUBLAS_STATUS_NOT_SUPPORTED (15)", "64   chosen"}},
        {"TNLT_FAULT=create:1+:1",
         WHY WITH,
         {"cublasLtCreate gives CUBLAS_STATUS_NOT_INITIALIZED (1)", "chosen"}},
        {"TNLT_FAULT=create:1+:98", WHY WITH, {"cublasLtCreate gives an unknown status (98)", "64   chosen"}},
        {"TNLT_FAULT=inplace:1+", WHY WITH, {"rank 128  chosen", "rank 64   serves, too"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const said *s = cuda_say(rows[i].settings, rows[i].command);

        assert_int_equal(s->code, 0);
        cuda_said(s, rows[i].says[0]);
        cuda_said(s, rows[i].says[1]);
    }
}

/* ---- trainings ----------------------------------------------------------------------------------------- */

/* The rest of the line behind `name`. */
static void value_of(const said *s, const char *name, char *out, size_t bytes)
{
    const char *at = strstr(s->out, name);

    if (s->code || !at)
        fail_msg("ends with %d, and says no %s:\n%s", s->code, name, s->out);
    at += strlen(name);
    (void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

static unsigned times(const said *s, const char *text)
{
    unsigned count = 0;

    for (const char *at = s->out; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static char plain[80]; /* what the parameters are without the library */

static void counted(const said *s, const char *name, unsigned least, unsigned most)
{
    char line[64];
    const char *at;
    unsigned value;

    (void)snprintf(line, sizeof line, "\nlt %s ", name);
    if (!(at = strstr(s->out, line)))
        fail_msg("the double does not tell its %s:\n%s", name, s->out);
    value = (unsigned)strtoul(at + strlen(line), NULL, 10);
    if (value < least || value > most)
        fail_msg("%s is %u, not %u to %u:\n%s", name, value, least, most, s->out);
}

#define COUNTED "export TNLT_COUNTS=$D/counts TNEMU_COUNTS=$D/emulator; "
#define COUNTS "R=$?; echo counts; cat $D/counts; grep cuGraph $D/emulator; exit $R"

/* A training with the library has the plain kernels' bits, and gives all back. */
static const said *trained(const char *settings, const char *more)
{
    char command[3072], now[80];
    const said *s;

    (void)snprintf(command, sizeof command, "%s%s; " COUNTS,
                   IN_FOLDER COUNTED NET TRAIN("$D/net-symbol.json") WITH, more);
    s = cuda_say(settings, command);
    value_of(s, "params_sha256 ", now, sizeof now);
    if (strcmp(now, plain) != 0 || strstr(s->out, "cublaslt double:"))
        fail_msg("%s: other bits, or calls that the double refuses:\n%s", settings, s->out);
    counted(s, "handles left", 0, 0);
    counted(s, "things left", 0, 0);
    return s;
}

static void trainings(void **state)
{
    const said *s = cuda_say("TNEMU_DELAY_US=0", IN_FOLDER NET TRAIN("$D/net-symbol.json"));
    static const char *const orders[] = {"TNEMU_SEED=1", "TNEMU_SEED=2 TNEMU_MEMORY=67108864",
                                         "TNEMU_SEED=3"};
    static const char *const more[] = {"", "--set plugin.cuda.graphs=false", "--set memory.cuda.pool=naive"};

    (void)state;
    value_of(s, "params_sha256 ", plain, sizeof plain);
    assert_int_equal(times(s, ABSENT), 1);
    for (size_t i = 0; i < 3; i++) {
        s = trained(orders[i], more[i]);
        assert_int_equal(times(s, ABSENT), 0);
        counted(s, "matmul", 20, UINT32_MAX);
        counted(s, "create", 1, 1);
        assert_int_equal(times(s, "cuGraphLaunch "), i == 1 ? 0 : 1);
    }
}

/* With 10 bits of fraction the bits are others: by the option, or MXNET_CUDA_ALLOW_TENSOR_CORE. */
static void tf32(void **state)
{
    static const char *const settings[] = {"TNEMU_DELAY_US=0",
                                           "TNEMU_DELAY_US=0 MXNET_CUDA_ALLOW_TENSOR_CORE=1",
                                           "TNEMU_DELAY_US=0 MXNET_CUDA_ALLOW_TENSOR_CORE=0"};
    char now[3][80];

    (void)state;
    for (int i = 0; i < 3; i++)
        value_of(cuda_say(settings[i], i ? IN_FOLDER NET TRAIN("$D/net-symbol.json") WITH
                                         : IN_FOLDER NET TRAIN("$D/net-symbol.json") WITH
                                           "--set "
                                           "plugin.cuda.tf32=true"),
                 "params_sha256 ", now[i], sizeof now[i]);
    assert_string_not_equal(now[0], plain);
    assert_string_equal(now[1], now[0]);
    assert_string_equal(now[2], plain);
}

/* Three dense layers of one product, of which the plans of the last two are not shared, and one of few. */
#define EQUAL                                                                                                \
    "printf '%s' '{\"nodes\":["                                                                              \
    "{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"                                                     \
    "{\"op\":\"null\",\"name\":\"a_weight\",\"inputs\":[]},"                                                 \
    "{\"op\":\"null\",\"name\":\"a_bias\",\"inputs\":[]},"                                                   \
    "{\"op\":\"FullyConnected\",\"name\":\"a\",\"attrs\":{\"num_hidden\":\"64\"},"                           \
    "\"inputs\":[[0,0,0],[1,0,0],[2,0,0]]},"                                                                 \
    "{\"op\":\"null\",\"name\":\"b_weight\",\"inputs\":[]},"                                                 \
    "{\"op\":\"null\",\"name\":\"b_bias\",\"inputs\":[]},"                                                   \
    "{\"op\":\"FullyConnected\",\"name\":\"b\",\"attrs\":{\"num_hidden\":\"64\",\"flatten\":\"False\"},"     \
    "\"inputs\":[[3,0,0],[4,0,0],[5,0,0]]},"                                                                 \
    "{\"op\":\"null\",\"name\":\"c_weight\",\"inputs\":[]},"                                                 \
    "{\"op\":\"null\",\"name\":\"c_bias\",\"inputs\":[]},"                                                   \
    "{\"op\":\"FullyConnected\",\"name\":\"c\",\"attrs\":{\"num_hidden\":\"10\"},"                           \
    "\"inputs\":[[6,0,0],[7,0,0],[8,0,0]]}],"                                                                \
    "\"arg_nodes\":[0,1,2,4,5,7,8],\"heads\":[[9,0,0]]}' >$D/net-symbol.json; "
#define LAYER "cublaslt: FullyConnected: f32 (64, 64) by (64, 64), batch 1, bias: algorithm "
#define REFUSED LAYER "67, tile 1, split 1, reduction 0, workspace 0, number 1 of 2, measured"

/* Equal products have one algorithm, which is measured once. */
static void layers_agree(const said *s)
{
    const char *const first = strstr(s->out, LAYER), *end = first ? strstr(first, ", measured") : NULL;
    unsigned now = 0, before = 0;

    assert_non_null(end);
    end += strlen(", measured");
    for (const char *at = first; at; at = strstr(at + 1, LAYER)) {
        assert_memory_equal(at, first, (size_t)(end - first));
        now += at[end - first] == '\n';
        before += strncmp(at + (end - first), " before\n", 8) == 0;
    }
    assert_int_equal(now, 1);
    assert_true(before > 0);
}

/* Where bits may differ from run to run, algorithms are measured: which one is ahead here, no test says. One
 * that cannot run is not taken, unless nothing can be measured: the first one is, then. */
static void measured(void **state)
{
    static const struct {
        const char *settings, *more, *says;
        bool measures;
    } rows[] = {
        {"TNLT_CHOICES=pnw", OFF, " of 3, measured", true},
        {"TNLT_CHOICES=xn", OFF,
         LAYER "0, tile 1, split 1, reduction 0, workspace 0, number 2 of 2, measured", true},
        {"TNLT_CHOICES=xxxxxxwx", OFF, "workspace 262144, number 7 of 8, measured", true},
        {"TNLT_CHOICES=xx", OFF, REFUSED, true},
        {"TNLT_CHOICES=xx", OFF, "; a plain kernel serves", true},
        {"TNLT_CHOICES=np TNLT_FAULT=matmul:1:13", OFF, "workspace 4096, number 2 of 2, measured", true},
        {"TNLT_CHOICES=pn TNLT_FAULT=matmul:2:13", OFF, "workspace 0, number 2 of 2, measured", true},
        {"TNLT_CHOICES=np TNLT_FAULT=matmul:1+:13", OFF, "workspace 0, number 1 of 2, measured", true},
        /* One call after the other: the second block and the third stream are those of the measuring. */
        {"TNLT_CHOICES=xn TNEMU_FAULT=cuMemAlloc:2:2", OFF "--set engine.type=naive ", REFUSED, true},
        {"TNLT_CHOICES=xn TNEMU_FAULT=cuStreamCreateWithPriority:3:2", OFF "--set engine.type=naive ",
         REFUSED, true},
        {"TNLT_CHOICES=np TNEMU_MEMORY=2097152", OFF "--set memory.cuda.pool=naive ",
         "f32 (256, 64) by (64, 64), batch 1, bias: algorithm 0, tile 1, split 1, reduction 0, workspace 0, "
         "number 1 of 2\n",
         true},
        {"TNLT_CHOICES=n", OFF, "number 1 of 1", false},
        {"TNLT_CHOICES=np", OFF "--set plugin.cuda.autotune=false ", "number 1 of 2", false},
        {"TNLT_CHOICES=np", "", "number 1 of 2", false},
    };
    const size_t step = test_full() ? 1 : 3;
    char own[80], now[80];

    (void)state;
    value_of(cuda_say("TNEMU_DELAY_US=0", IN_FOLDER EQUAL TRAIN("$D/net-symbol.json")), "params_sha256 ", own,
             sizeof own);
    for (size_t i = (size_t)test_rotation(step); i < sizeof rows / sizeof *rows; i += step) {
        char command[4096], settings[160];
        const said *s;

        (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=0 %s", rows[i].settings);
        (void)snprintf(command, sizeof command, "%s--set log.level=debug %s; " COUNTS,
                       IN_FOLDER COUNTED EQUAL TRAIN("$D/net-symbol.json") WITH, rows[i].more);
        s = cuda_say(settings, command);
        value_of(s, "params_sha256 ", now, sizeof now);
        cuda_said(s, rows[i].says);
        if (strcmp(now, own) != 0 || strstr(s->out, "cublaslt double:") ||
            (strstr(s->out, ", measured") != NULL) != rows[i].measures)
            fail_msg("%s %s:\n%s", settings, rows[i].more, s->out);
        if (rows[i].measures)
            layers_agree(s);
        counted(s, "things left", 0, 0);
    }
}

static void lenet(void **state)
{
    char with[80], without[80];

    (void)state;
    if (!test_full()) {
        print_message("skipped: LeNet: with TENON_FULL=1\n");
        skip();
    }
    value_of(cuda_say("TNEMU_DELAY_US=0", IN_FOLDER TRAIN("zoo:lenet")), "params_sha256 ", without,
             sizeof without);
    value_of(cuda_say("TNEMU_DELAY_US=0", IN_FOLDER TRAIN("zoo:lenet") WITH), "params_sha256 ", with,
             sizeof with);
    assert_string_equal(with, without);
}

/* ---- what goes wrong ----------------------------------------------------------------------------------- */

/* Each call of the library fails once, and all from there on, with each status: plain kernels serve. Some of
 * them with each commit; TENON_FULL: all. */
static void each_call_fails(void **state)
{
    static const struct {
        const char *clock;
        unsigned first, count; /* of calls */
    } calls[] = {{"create", 1, 1}, {"desc", 1, 5},       {"layout", 1, 15}, {"preference", 1, 10},
                 {"set", 1, 80},   {"heuristic", 1, 10}, {"algo", 1, 40},   {"matmul", 1, 40}};
    static const int statuses[] = {13, 1, 3, 7, 8, 11, 14, 15, 16, 99};
    const unsigned step = test_full() ? 1 : test_short() ? 160 : 48;
    unsigned done = 0, turn = (unsigned)test_rotation(step);

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (unsigned at = calls[i].first; at <= calls[i].count; at++)
            for (int more = 0; more < 2; more++) {
                const int status = statuses[done++ % (sizeof statuses / sizeof *statuses)];
                char fault[96];
                const said *s;

                if (turn++ % step)
                    continue;
                (void)snprintf(fault, sizeof fault, "TNEMU_DELAY_US=0 TNLT_FAULT=%s:%u%s:%d", calls[i].clock,
                               at, more ? "+" : "", status);
                s = trained(fault, "");
                if (!strcmp(calls[i].clock, "matmul"))
                    assert_true(times(s, "; a plain kernel serves") > 0);
            }
    print_message("%u calls\n", turn / step);
}

/* A refusal at a run is told, once for a plan and not without end, with the product and the status. */
static void told(void **state)
{
    const said *s = trained("TNEMU_DELAY_US=0 TNLT_FAULT=matmul:1+:13", "");

    (void)state;
    cuda_said(s, "cublaslt: FullyConnected: f32 (64, 64) by (64, 12), batch 1, bias: cublasLtMatmul gives "
                 "CUBLAS_STATUS_EXECUTION_FAILED (13); a plain kernel serves");
    assert_in_range(times(s, "; a plain kernel serves"), 5, 8);
}

static void no_library(void **state)
{
    static const struct {
        const char *make, *says;
    } rows[] = {
        {"echo no library >$D/libcublasLt.so.13; ",
         "libcublasLt.so.13: file too short); install cuBLAS of CUDA 12"},
        {"cp \"$TENON_TEST_DRIVER/libcuda.so.1\" $D/libcublasLt.so.13; ",
         "libcublasLt.so.13 has no cublasLtGetVersion; install cuBLAS of CUDA 12 or 13"},
        {"mkdir $D/libcublasLt.so.13; ", "cuBLASLt cannot be opened ("},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[3072], now[80];
        const said *s;

        (void)snprintf(command, sizeof command, "%s%s%s", IN_FOLDER, rows[i].make,
                       NET TRAIN("$D/net-symbol.json") "--set plugin.cuda.libraries=$D");
        s = cuda_say("TNEMU_DELAY_US=0", command);
        value_of(s, "params_sha256 ", now, sizeof now);
        assert_string_equal(now, plain);
        assert_int_equal(times(s, ABSENT), 1);
        cuda_said(s, rows[i].says);
    }
}

/* ---- the vendor's own library -------------------------------------------------------------------------- */

/* Each attribute is taken with its size, and with no other. */
static void attributes(const tncuda_lt_functions *f)
{
    static const unsigned char value[8] = {1};
    static const int descs[][2] = {{TNCUDA_LT_DESC_TRANS_A, 4},
                                   {TNCUDA_LT_DESC_TRANS_B, 4},
                                   {TNCUDA_LT_DESC_EPILOGUE, 4},
                                   {TNCUDA_LT_DESC_BIAS, 8}},
                     layouts[][2] = {{TNCUDA_LT_LAYOUT_BATCH_COUNT, 4}, {TNCUDA_LT_LAYOUT_BATCH_STRIDE, 8}},
                     preferences[][2] = {{TNCUDA_LT_PREFERENCE_WORKSPACE, 8},
                                         {TNCUDA_LT_PREFERENCE_REDUCTION, 4},
                                         {TNCUDA_LT_PREFERENCE_ALIGN_A, 4},
                                         {TNCUDA_LT_PREFERENCE_ALIGN_A + 3, 4}};
    tncuda_lt_desc desc = NULL;
    tncuda_lt_layout layout = NULL;
    tncuda_lt_preference preference = NULL;

    assert_int_equal(f->desc_create(&desc, TNCUDA_LT_COMPUTE_TF32, TNCUDA_R_F32), 0);
    assert_int_equal(f->layout_create(&layout, TNCUDA_R_BF16, 3, 4, 5), 0);
    assert_int_equal(f->preference_create(&preference), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f->desc_set(desc, descs[i][0], value, (size_t)descs[i][1]), 0);
        assert_int_equal(f->desc_set(desc, descs[i][0], value, 12 - (size_t)descs[i][1]), 7);
        assert_int_equal(f->preference_set(preference, preferences[i][0], value, (size_t)preferences[i][1]),
                         0);
        assert_int_equal(
            f->preference_set(preference, preferences[i][0], value, 12 - (size_t)preferences[i][1]), 7);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->layout_set(layout, layouts[i][0], value, (size_t)layouts[i][1]), 0);
        assert_int_equal(f->layout_set(layout, layouts[i][0], value, 12 - (size_t)layouts[i][1]), 7);
    }
    for (int32_t i = TNCUDA_LT_ALGO_ID; i <= TNCUDA_LT_ALGO_REDUCTION; i++) {
        const tncuda_lt_algo algo = {{0}};
        uint32_t got;
        size_t written = 0;

        assert_int_equal(f->algo_get(&algo, i, &got, sizeof got, &written), 0);
        assert_int_equal(written, sizeof got);
    }
    assert_int_equal(f->desc_destroy(desc), 0);
    assert_int_equal(f->layout_destroy(layout), 0);
    assert_int_equal(f->preference_destroy(preference), 0);
}

static void vendor(void **state)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    tncuda_lt_functions f;
    const library_function rows[] = {
#define LT(result, member, name, params) {name, (void *)&f.member},
#include "../../plugins/cuda/lt.list"
#undef LT
    };
    const char *file = NULL;
    void *library = NULL;
    tn_err err = {0};

    (void)state;
    if (!SANITIZED)
        library = library_open("", files, &file, NULL);
    if (!library) {
        print_message("skipped: the vendor's cuBLASLt is not here, or this build looks at memory\n");
        skip();
    }
    assert_int_equal(library_functions(library, file, rows, sizeof rows / sizeof *rows, "", &err), TN_OK);
    print_message("cuBLASLt %zu\n", f.version());
    attributes(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vendor),
        cmocka_unit_test(kernels),
        cmocka_unit_test(kernels_refused),
        cmocka_unit_test(kernels_without),
        cmocka_unit_test(candidates),
        cmocka_unit_test(trainings),
        cmocka_unit_test(tf32),
        cmocka_unit_test(measured),
        cmocka_unit_test(lenet),
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(told),
        cmocka_unit_test(no_library),
    };

    cuda_setup();
    if (!getenv("TENON_TEST_LT")) {
        printf("skipped: the double of cuBLASLt is not built: cublasLt.h was not found\n");
        return 77;
    }
    return cmocka_run_group_tests_name("lt", tests, NULL, NULL);
}
