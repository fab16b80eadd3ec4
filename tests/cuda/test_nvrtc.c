/*
 * Chains of pointwise operators that are compiled while the program runs: every row of the lists by NVRTC
 * itself, where it is installed (no GPU is needed); their values, the files that are kept, and what happens
 * where nothing can be compiled, with the double of NVRTC on the double of the driver.
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

#include "cuda.h"
#include "fused.h"
#include "support/runs.h"

/* ---- by NVRTC itself ----------------------------------------------------------------------------------- */

#define PARTS 4

#define FLOATS 1
#define WHOLE 2

static const struct {
    const char *name;
    uint16_t loop;
    uint8_t operands, numbers, kinds;
} loops[] = {
#define LOOP1(id, ns, expression) {#id, TNCUDA_##id, 1, 0, KINDS},
#define LOOP2(id, ns, expression) {#id, TNCUDA_##id, 2, 0, KINDS},
#define LOOP3(id, ns, expression) {#id, TNCUDA_##id, 3, 0, KINDS},
#define LOOP1S(id, ns, expression) {#id, TNCUDA_##id, 1, 1, KINDS},
#define LOOP2S(id, ns, expression) {#id, TNCUDA_##id, 2, 1, KINDS},
#define LOOP1SS(id, ns, expression) {#id, TNCUDA_##id, 1, 2, KINDS},
#define LOOP2SS(id, ns, expression) {#id, TNCUDA_##id, 2, 2, KINDS},
#define KINDS (FLOATS | WHOLE)
#include "../../plugins/common/loops.list"
#undef KINDS
#define KINDS FLOATS
#include "../../plugins/common/loops_float.list"
#undef KINDS
#define KINDS WHOLE
#include "../../plugins/common/loops_int.list"
#undef KINDS
};

#define LOOPS (sizeof loops / sizeof *loops)

static const struct {
    int32_t dtype;
    uint8_t kind, loops;
} kinds[] = {{TN_F32, TNCUDA_KIND_F32, FLOATS},
             {TN_F64, TNCUDA_KIND_F64, FLOATS},
             {TN_I32, TNCUDA_KIND_I32, WHOLE},
             {TN_I64, TNCUDA_KIND_I64, WHOLE}};

static char *text;

static void place_set(tncuda_fused_place *place, int32_t dtype, int64_t last, int64_t first, int32_t mode)
{
    *place = (tncuda_fused_place){.dtype = dtype, .mode = mode, .stride = {first, last}};
}

/* Three inputs: dense, by strides, one element; one output, dense. */
static void plan_begin(tncuda_fused_plan *p, int32_t dtype, int32_t out, int32_t mode)
{
    memset(p, 0, sizeof *p);
    p->in_count = 3;
    p->args.ndim = 2;
    p->args.shape[0] = 12;
    p->args.shape[1] = 40;
    p->args.count = 480;
    p->args.outs = 1;
    place_set(&p->args.in[0], dtype, 1, 40, 0);
    place_set(&p->args.in[1], dtype, 1, 0, 0);
    place_set(&p->args.in[2], dtype, 0, 0, 0);
    place_set(&p->args.out[0], out, 1, 40, mode);
}

static void step_add(tncuda_fused_plan *p, size_t loop, uint8_t kind, int32_t dtype, bool scalar)
{
    const int32_t k = p->args.steps++;
    tncuda_fused_step *s = &p->args.step[k];

    *s = (tncuda_fused_step){.loop = loops[loop].loop,
                             .kind = kind,
                             .dtype = (uint8_t)dtype,
                             .operands = loops[loop].operands,
                             .scalar = scalar && loops[loop].operands > 1 ? 1 : 255,
                             .number = (uint8_t)p->numbers,
                             .operand = {0, 1, 2}};
    if (k)
        s->operand[1] = (uint8_t)(TNCUDA_FUSED_RESULT + k - 1);
    p->loop[k] = loops[loop].name;
    p->loop_numbers[k] = loops[loop].numbers;
    for (uint32_t n = 0; n < loops[loop].numbers || (!n && s->scalar == 1); n++)
        p->number[p->numbers++].kind = kind;
    p->args.result[0] = (uint8_t)k;
}

static tncuda_plugin *compiler(void)
{
    static tncuda_plugin plugin;
    static tn_err err;
    static tn_status st;
    tncuda_compiled *made;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("skipped: NVRTC under a sanitizer\n");
    skip();
#endif
    if (!plugin.nvrtc) {
        pthread_mutex_init(&plugin.compiling, NULL);
        text = malloc(TNCUDA_FUSED_SOURCE_BYTES);
        assert_non_null(text);
        st = tncuda_nvrtc_compile(&plugin, 90, "extern \"C\" __global__ void FUSED_NAME(int *x) { *x = 1; }",
                                  &made, &err);
    }
    if (st) {
        print_message("skipped: no NVRTC here: %s\n", err.message);
        skip();
    }
    return &plugin;
}

static void compiled(tncuda_plugin *plugin, tncuda_fused_plan *p, int32_t arch)
{
    tncuda_compiled *made = NULL;
    tn_err err = {0};

    tncuda_fused_look(p);
    assert_int_equal(tncuda_fused_source(p, text, TNCUDA_FUSED_SOURCE_BYTES, &err), TN_OK);
    if (tncuda_nvrtc_compile(plugin, arch, text, &made, &err))
        fail_msg("%s, from %s on: %s\n%s", "a chain", p->loop[0], err.message, text);
    assert_true(made->bytes > 64 && !memcmp(made->image, "\177ELF", 4));
}

/* Each row of the lists, in each of its compute types; one of these with each commit. TENON_FULL: all. */
static void rows(void **state)
{
    static tncuda_fused_plan p;
    tncuda_plugin *plugin = compiler();
    size_t count = 0;

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!test_full() && k != test_rotation(sizeof kinds / sizeof *kinds))
            continue;
        for (size_t i = 0; i < LOOPS;) {
            plan_begin(&p, kinds[k].dtype, kinds[k].dtype, TN_MODE_WRITE);
            for (; i < LOOPS && p.args.steps < TNCUDA_FUSED_STEPS; i++)
                if (loops[i].kinds & kinds[k].loops) {
                    step_add(&p, i, kinds[k].kind, kinds[k].dtype, i % 2);
                    count++;
                }
            compiled(plugin, &p, 90);
        }
    }
    print_message("%d rows\n", (int)count);
    assert_true(count > LOOPS / 3);
}

/* Each data type as input, between steps, and as an output that is written or added to; a part of them with
 * each commit. */
static void data_types(void **state)
{
    static tncuda_fused_plan p;
    tncuda_plugin *plugin = compiler();
    size_t add = 0;

    (void)state;
    while (loops[add].loop != TNCUDA_ADD)
        add++;
    for (int32_t from = 0; from <= TN_BF16; from++) {
        const uint32_t kind = tncuda_kind_of(from);

        if (!test_full() && (uint64_t)from % PARTS != test_rotation(PARTS))
            continue;
        for (int32_t mode = TN_MODE_WRITE; mode <= TN_MODE_ADD; mode++) {
            plan_begin(&p, from, from, mode);
            step_add(&p, add, (uint8_t)kind, from, false);
            if (kind == TNCUDA_KIND_F64 || kind == TNCUDA_KIND_I64)
                step_add(&p, add, TNCUDA_KIND_F64, TN_F64, true);
            else
                step_add(&p, add, TNCUDA_KIND_F32, TN_F32, true);
            step_add(&p, add, TNCUDA_KIND_F64, from, false);
            compiled(plugin, &p, mode == TN_MODE_ADD ? 90 : 80);
        }
    }
}

/* What functions know of a step's result: whether it becomes a number of 16 bits. */
static void results_of_16_bits(void **state)
{
    static const struct {
        int32_t dtype;
        const char *call;
    } expected[] = {{TN_F32, "put_f32_f32(loop_GELU_f32(get_f32_f32(i0), 0, 0, 0, 0, 0));"},
                    {TN_F16, "put_f16_f32(loop_GELU_f32(get_f16_f32(i0), 0, 0, 0, 0, 1));"},
                    {TN_BF16, "put_bf16_f32(loop_GELU_f32(get_bf16_f32(i0), 0, 0, 0, 0, 1));"}};
    static char source[TNCUDA_FUSED_SOURCE_BYTES];
    static tncuda_fused_plan p;
    size_t gelu = 0;
    tn_err err = {0};

    (void)state;
    while (loops[gelu].loop != TNCUDA_GELU)
        gelu++;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        plan_begin(&p, expected[i].dtype, expected[i].dtype, TN_MODE_WRITE);
        step_add(&p, gelu, TNCUDA_KIND_F32, expected[i].dtype, false);
        tncuda_fused_look(&p);
        assert_int_equal(tncuda_fused_source(&p, source, sizeof source, &err), TN_OK);
        if (!strstr(source, expected[i].call))
            fail_msg("no %s in\n%s", expected[i].call, source);
    }
}

static void refused(void **state)
{
    tncuda_plugin *plugin = compiler();
    tncuda_compiled *made = NULL;
    tn_err err = {0};

    (void)state;
    assert_int_equal(tncuda_nvrtc_compile(plugin, 90, "no text", &made, &err), TN_E_UNSUPPORTED);
    assert_int_equal(tncuda_nvrtc_compile(plugin, 90, "no text", &made, &err), TN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "refused"));
    assert_int_equal(tncuda_nvrtc_compile(plugin, 1, "void f(void);", &made, &err), TN_E_UNSUPPORTED);
    assert_int_equal(tncuda_fused_source(&(tncuda_fused_plan){.width = 1}, text, 64, &err), TN_E_UNSUPPORTED);
}

/* ---- by the double ------------------------------------------------------------------------------------- */

#define CASES "\"$TENON_TEST_BUILD/tests/op/test_fused\" 2>&1"
#define IN_FOLDER "D=$(mktemp -d); trap 'chmod -R u+w $D; rm -r $D' EXIT; export XDG_CACHE_HOME=$D; "
#define CUDA "TENON_CASE_DEVICE=cuda TNEMU_DELAY_US=0 "

static void without_compiler(void)
{
    const said *s = cuda_say(
        "", "${CC:-cc} --version >/dev/null 2>&1 && test -x \"$TENON_TEST_BUILD/tests/op/test_fused\"");

    if (s->code) {
        print_message("skipped: no compiler of the host, or tests/op/test_fused is not built\n");
        skip();
    }
}

static void values(void **state)
{
    const said *s;

    (void)state;
    without_compiler();
    s = cuda_say(CUDA "TNEMU_NVRTC=1", IN_FOLDER "export TNEMU_NVRTC_COUNTS=$D/counts; " CASES
                                                 " || exit 1; wc -l <$D/counts; ls $D/tenon/cuda | wc -l");
    if (s->code)
        fail_msg("ends with %d:\n%s", s->code, s->out);
    cuda_said(s, "[  PASSED  ]");
}

/* A net whose forward and backward are chains, with a sum of three gradients: the same bits compiled,
 * interpreted, and one operator after the other; in graphs, too. */
static const char net[] =
    "printf '%s' '{\"nodes\":[{\"op\":\"null\",\"name\":\"data\",\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"a_weight\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"a_bias\",\"inputs\":[]"
    "},"
    "{\"op\":\"FullyConnected\",\"name\":\"a\",\"attrs\":{\"num_hidden\":\"18\"},"
    "\"inputs\":[[0,0,0],[1,0,0],[2,0,0]]},"
    "{\"op\":\"tanh\",\"name\":\"t\",\"inputs\":[[3,0,0]]},"
    "{\"op\":\"_mul_scalar\",\"name\":\"m\",\"attrs\":{\"scalar\":\"1.5\"},\"inputs\":[[4,0,0]]},"
    "{\"op\":\"elemwise_add\",\"name\":\"s\",\"inputs\":[[5,0,0],[3,0,0]]},"
    "{\"op\":\"LeakyReLU\",\"name\":\"l\",\"attrs\":{\"act_type\":\"leaky\",\"slope\":\"0.1\"},"
    "\"inputs\":[[6,0,0]]},{\"op\":\"sigmoid\",\"name\":\"g\",\"inputs\":[[7,0,0]]},"
    "{\"op\":\"elemwise_mul\",\"name\":\"e\",\"inputs\":[[8,0,0],[3,0,0]]},"
    "{\"op\":\"null\",\"name\":\"b_weight\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"b_bias\",\"inputs\":[]"
    "},"
    "{\"op\":\"FullyConnected\",\"name\":\"b\",\"attrs\":{\"num_hidden\":\"10\"},"
    "\"inputs\":[[9,0,0],[10,0,0],[11,0,0]]}],\"arg_nodes\":[0,1,2,10,11],\"heads\":[[12,0,0]]}' "
    ">$D/net-symbol.json; ";

#define TRAIN                                                                                                \
    "\"$T\" train $D/net-symbol.json --data digits --progress none --seed 3 --epochs 1 --set "               \
    "device.default=cuda:0 --out "

/* Machine code is kept in files; one that is damaged (a way with each commit) is made anew. */
static void kept(void **state)
{
    static const char *const damages[] = {"truncate -s -1 $f", ": >$f",
                                          "printf x | dd of=$f bs=1 seek=200 conv=notrunc 2>/dev/null"};
    char command[4096];
    const said *s;

    (void)state;
    without_compiler();
    (void)snprintf(command, sizeof command,
                   IN_FOLDER "%sexport TNEMU_NVRTC_COUNTS=$D/counts; lines() { wc -l <$D/counts; }\n"
                             "run() { : >$D/counts; rm -rf $D/run\n" TRAIN
                             "$D/run >$D/log 2>&1 || cat $D/log; }\n"
                             "run; first=$(lines); run; echo again $(lines)\n"
                             "echo files $(($(ls $D/tenon/cuda | wc -l) - first))\n"
                             "for f in $D/tenon/cuda/*; do %s; done\n"
                             "run; echo damaged $(($(lines) - first)); run; echo whole $(lines)\n"
                             "ls $D/tenon/cuda | grep -vc '^[0-9a-f]*[.]cubin$'; test $first -gt 1",
                   net, damages[test_rotation(3)]);
    s = cuda_say("TNEMU_DELAY_US=0 TNEMU_NVRTC=1", command);
    if (s->code)
        fail_msg("ends with %d:\n%s", s->code, s->out);
    cuda_said(s, "again 0\nfiles 0\ndamaged 0\nwhole 0\n0\n");
}

/* A folder that is a file, one that nobody may write to, and none: one of them with each commit. */
static void not_kept(void **state)
{
    static const char *const folders[] = {"$D/file", "/proc/nowhere", "relative"};
    char command[3000];
    const said *s;

    (void)state;
    without_compiler();
    (void)snprintf(command, sizeof command,
                   IN_FOLDER "%sHOME=; : >$D/file; XDG_CACHE_HOME=%s; " TRAIN "$D/run", net,
                   folders[test_rotation(3)]);
    s = cuda_say("TNEMU_DELAY_US=0 TNEMU_NVRTC=1", command);
    if (s->code)
        fail_msg("ends with %d\n%s", s->code, s->out);
    cuda_said(s, "params_sha256");
}

static void two_at_once(void **state)
{
    char command[3000];
    const said *s;

    (void)state;
    without_compiler();
    (void)snprintf(command, sizeof command,
                   IN_FOLDER "%s" TRAIN "$D/a >$D/one 2>&1 & one=$!; " TRAIN "$D/b >$D/two 2>&1; two=$?\n"
                             "wait $one && [ $two = 0 ] || cat $D/one $D/two\n"
                             "export TNEMU_NVRTC_COUNTS=$D/counts; : >$D/counts; " TRAIN
                             "$D/c >$D/three 2>&1 || cat $D/three; wc -l <$D/counts\n"
                             "ls $D/tenon/cuda | grep -vc '^[0-9a-f]*[.]cubin$'\n"
                             "cat $D/one $D/two $D/three | grep params_sha256 | uniq | wc -l",
                   net);
    s = cuda_say("TNEMU_DELAY_US=0 TNEMU_NVRTC=1", command);
    /* the third compiled nothing, no file of another name is left, and all have the same bits */
    assert_string_equal(s->out, "0\n0\n1\n");
}

/* Where nothing is compiled, or what is compiled is no machine code, chains are interpreted: one of the ways
 * with each commit. */
static void interpreted(void **state)
{
    static const char *const how[] = {"TNEMU_NVRTC=refuse", "TNEMU_NVRTC=garbage", "CC=false TNEMU_NVRTC=1",
                                      "TNEMU_NVRTC="};

    (void)state;
    without_compiler();
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char settings[128];
        const said *s;

        if (!test_full() && i != test_rotation(sizeof how / sizeof *how))
            continue;
        (void)snprintf(settings, sizeof settings, CUDA "%s", how[i]);
        s = cuda_say(settings, IN_FOLDER CASES);
        if (s->code || !strstr(s->out, "[  PASSED  ]"))
            fail_msg("%s: %d\n%s", how[i], s->code, s->out);
    }
}

static void trained(const char *settings, const char *options, char *out, size_t bytes, int *launches)
{
    char all[96], command[3000];
    const said *s;
    const char *at;

    (void)snprintf(all, sizeof all, "TNEMU_DELAY_US=0 %s", settings);
    (void)snprintf(command, sizeof command,
                   IN_FOLDER "%sexport TNEMU_COUNTS=$D/counts; " TRAIN
                             "$D/run --set plugin.cuda.graphs=false %s && grep cuLaunchKernel $D/counts",
                   net, options);
    s = cuda_say(all, command);
    at = strstr(s->out, "params_sha256 ");
    if (s->code || !at)
        fail_msg("%s, %s: %d\n%s", settings, options, s->code, s->out);
    (void)snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    assert_non_null(at = strstr(s->out, "cuLaunchKernel "));
    *launches = atoi(at + strlen("cuLaunchKernel "));
}

static void nets(void **state)
{
    char compiled_bits[128], interpreted_bits[128], single_bits[128];
    int compiled_launches, interpreted_launches, single_launches;

    (void)state;
    without_compiler();
    trained("TNEMU_NVRTC=1", "", compiled_bits, sizeof compiled_bits, &compiled_launches);
    trained("TNEMU_NVRTC=", "", interpreted_bits, sizeof interpreted_bits, &interpreted_launches);
    trained("TNEMU_NVRTC=1", "--set compile.passes_off=pointwise", single_bits, sizeof single_bits,
            &single_launches);
    assert_string_equal(compiled_bits, single_bits);
    assert_string_equal(interpreted_bits, single_bits);
    assert_int_equal(compiled_launches, interpreted_launches);
    assert_true(compiled_launches < single_launches);
}

/* The driver does not load a chain, or does not find its kernel: it is interpreted, and that is said. What
 * else it loads fails the training, with a name. */
static void unloaded(void **state)
{
    static const char *const faults[] = {"cuModuleLoadData:%d:200", "cuModuleGetFunction:%d:500"};
    char bits[128];
    int launches;

    (void)state;
    without_compiler();
    trained("TNEMU_NVRTC=", "", bits, sizeof bits, &launches);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        int interpreted_ones = 0;

        for (int n = 1; n <= 4; n++) {
            char fault[64], settings[128], command[3000];
            const said *s;

            (void)snprintf(fault, sizeof fault, faults[f], n);
            (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=0 TNEMU_NVRTC=1 TNEMU_FAULT=%s", fault);
            (void)snprintf(command, sizeof command, IN_FOLDER "%s" TRAIN "$D/run", net);
            s = cuda_say(settings, command);
            if (!strstr(s->out, "is interpreted: ")) {
                cuda_said(s, " gives CUDA_ERROR");
                continue;
            }
            assert_int_equal(s->code, 0);
            cuda_said(s, bits);
            interpreted_ones++;
        }
        assert_int_equal(interpreted_ones, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),        cmocka_unit_test(data_types),         cmocka_unit_test(refused),
        cmocka_unit_test(nets),        cmocka_unit_test(unloaded),           cmocka_unit_test(values),
        cmocka_unit_test(kept),        cmocka_unit_test(not_kept),           cmocka_unit_test(two_at_once),
        cmocka_unit_test(interpreted), cmocka_unit_test(results_of_16_bits),
    };
    const char *build = getenv("TENON_TEST_BUILD");
    char folder[] = "/tmp/tenon-nvrtc-XXXXXX", command[64];
    int failed;

    cuda_setup();
    if (!build || chdir(build) || !mkdtemp(folder)) {
        printf("skipped: TENON_TEST_BUILD names no folder\n");
        return 77;
    }
    (void)setenv("XDG_CACHE_HOME", folder, 1);
    failed = cmocka_run_group_tests_name("nvrtc", tests, NULL, NULL);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command))
        return 1;
    free(text);
    return failed;
}
