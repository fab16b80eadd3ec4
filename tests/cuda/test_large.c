/*
 * Shapes that are too large for the tables of tests/op: where several threads, or several blocks, make one
 * output, and packs have tails. Outputs and gradients are those of plugin cpu, within rounding. The program
 * is its own child, which has the double of the driver.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/must.h"
#include "tenon/tenon.h"

#define INPUTS_MAX 5
#define ARRAYS_MAX (2 * INPUTS_MAX + 2)
#define BOUND 2e-5         /* of the largest value of an array */
#define SHORT_BOUND 1e-2   /* of short floats: two units of bfloat16 */
#define ROUNDED_BOUND 2e-2 /* the same where weights and their gradients are short, too */

typedef struct net {
    const char *op;
    const char *attrs[11];
    const char *inputs[INPUTS_MAX + 1]; /* the first one is of this shape */
    int32_t ndim;
    int64_t shape[4], other[4]; /* other: of the second input, where its shape does not follow */
    double terms;               /* gradients are differences of numbers as large as this one */
} net;

static const net nets[] = {
    {"sum", {"axis", "1"}, {"x"}, 2, {3, 5000}, {0}, 0},
    {"sum", {"axis", "1"}, {"x"}, 2, {70, 100}, {0}, 0},
    {"sum", {"axis", "0"}, {"x"}, 2, {300, 65}, {0}, 0},
    {"sum", {"axis", "()"}, {"x"}, 3, {7, 101, 131}, {0}, 0},
    {"mean", {"axis", "(0,2)"}, {"x"}, 3, {9, 5, 333}, {0}, 0},
    {"max", {"axis", "()"}, {"x"}, 2, {200, 401}, {0}, 0},
    {"norm", {"axis", "()"}, {"x"}, 2, {200, 400}, {0}, 0},
    {"nansum", {"axis", "0"}, {"x"}, 2, {40000, 2}, {0}, 0},
    {"softmax", {"axis", "-1"}, {"x"}, 2, {21, 100}, {0}, 0},
    {"softmax", {"axis", "-1"}, {"x"}, 2, {3, 1500}, {0}, 0},
    {"log_softmax", {"axis", "-1"}, {"x"}, 2, {9, 1031}, {0}, 0},
    {"BatchNorm",
     {"fix_gamma", "False"},
     {"x", "gamma", "beta", "mean", "var"},
     4,
     {4, 3, 64, 65},
     {0},
     0.25},
    {"BatchNorm",
     {"fix_gamma", "False"},
     {"x", "gamma", "beta", "mean", "var"},
     4,
     {8, 5, 30, 30},
     {0},
     0.25},
    {"BatchNorm", {"fix_gamma", "True"}, {"x", "gamma", "beta", "mean", "var"}, 3, {40, 3, 121}, {0}, 0.25},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {31, 300}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {150, 96}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {5, 1540}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {3, 1031}, {0}, 0},
    {"LayerNorm", {"axis", "1"}, {"x", "gamma", "beta"}, 3, {20, 33, 9}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {700, 3}, {0}, 1},
    {"InstanceNorm", {NULL}, {"x", "gamma", "beta"}, 4, {5, 3, 11, 7}, {0}, 0.25},
    {"GroupNorm", {"num_groups", "2"}, {"x", "gamma", "beta"}, 4, {3, 8, 20, 20}, {0}, 0.25},
    {"Pooling", {"kernel", "(3,3)", "stride", "(2,2)", "pad", "(1,1)"}, {"x"}, 4, {3, 5, 23, 18}, {0}, 0},
    {"Pooling", {"kernel", "(2,2)", "stride", "(2,2)"}, {"x"}, 4, {3, 4, 20, 19}, {0}, 0},
    {"Pooling", {"kernel", "(3,3)", "pool_type", "avg", "pad", "(1,1)"}, {"x"}, 4, {2, 3, 21, 30}, {0}, 0},
    {"Pooling", {"kernel", "(5,4)", "stride", "(1,3)", "pad", "(2,0)"}, {"x"}, 4, {2, 3, 21, 30}, {0}, 0},
    {"Pooling",
     {"kernel", "(1,1)", "global_pool", "True", "pool_type", "avg"},
     {"x"},
     4,
     {2, 70, 7, 7},
     {0},
     0},
    {"Pooling",
     {"kernel", "(3,3)", "pool_type", "avg", "stride", "(2,2)", "pad", "(1,1)", "count_include_pad", "False"},
     {"x"},
     4,
     {2, 3, 21, 30},
     {0},
     0},
    {"Pooling",
     {"kernel", "(3,3)", "stride", "(2,2)", "pad", "(1,1)", "layout", "NHWC"},
     {"x"},
     4,
     {2, 15, 22, 9},
     {0},
     0},
    {"Pooling", {"kernel", "(3)", "stride", "(2)", "pool_type", "sum"}, {"x"}, 3, {2, 15, 220}, {0}, 0},
    {"elemwise_add", {NULL}, {"x", "y"}, 2, {123, 1031}, {123, 1031}, 0},
    {"broadcast_mul", {NULL}, {"x", "y"}, 3, {6, 40, 400}, {1, 40, 1}, 0},
    {"broadcast_mul", {NULL}, {"x", "y"}, 3, {6, 40, 401}, {1, 40, 401}, 0},
    {"broadcast_sub", {NULL}, {"x", "y"}, 3, {50, 60, 12}, {50, 1, 12}, 0},
    {"sigmoid", {NULL}, {"x"}, 2, {77, 1001}, {0}, 0},
    {"FullyConnected", {"num_hidden", "70"}, {"x", "w", "b"}, 2, {33, 900}, {0}, 0},
    {"FullyConnected", {"num_hidden", "130"}, {"x", "w", "b"}, 2, {140, 520}, {0}, 0},
    {"transpose", {"axes", "(1,0)"}, {"x"}, 2, {100, 70}, {0}, 0},
    {"transpose", {"axes", "(0,2,3,1)"}, {"x"}, 4, {3, 20, 9, 13}, {0}, 0},
    {"transpose", {"axes", "(1,0,2)"}, {"x"}, 3, {30, 50, 24}, {0}, 0},
    {"transpose", {"axes", "(1,0,2)"}, {"x"}, 3, {30, 50, 7}, {0}, 0},
    {"dot", {NULL}, {"x", "y"}, 2, {100, 700}, {700, 9}, 0},
};

/* Of bfloat16, too. */
static const net shorts[] = {
    /* rows that stay in registers */
    {"softmax", {"axis", "-1"}, {"x"}, 2, {67, 128}, {0}, 0},
    {"softmax", {"axis", "-1"}, {"x"}, 2, {5, 1024}, {0}, 0},
    {"softmax", {"axis", "-1", "temperature", "0.5"}, {"x"}, 2, {9, 1000}, {0}, 0},
    {"softmin", {"axis", "-1"}, {"x"}, 2, {33, 77}, {0}, 0},
    {"softmax", {"axis", "-1"}, {"x"}, 2, {70, 12}, {0}, 0},
    {"log_softmax", {"axis", "-1"}, {"x"}, 2, {40, 512}, {0}, 0},
    {"log_softmax", {"axis", "-1"}, {"x"}, 2, {3, 1023}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {139, 768}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {9, 1024}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {70, 260}, {0}, 0},
    {"LayerNorm", {"axis", "-1"}, {"x", "gamma", "beta"}, 2, {33, 512}, {0}, 0},
    {"L2Normalization", {NULL}, {"x"}, 2, {5, 300}, {0}, 0},
    /* rows of one element: the gradient is exactly 0 where the host's is */
    {"L2Normalization", {NULL}, {"x"}, 2, {500, 1}, {0}, 0},
    /* biases whose gradients several blocks sum: of packs of eight, four and one */
    {"FullyConnected", {"num_hidden", "24"}, {"x", "w", "b"}, 2, {2000, 4}, {0}, 0},
    {"FullyConnected", {"num_hidden", "12"}, {"x", "w", "b"}, 2, {999, 4}, {0}, 0},
    {"FullyConnected", {"num_hidden", "3"}, {"x", "w", "b"}, 2, {5001, 2}, {0}, 0},
    {"Convolution", {"kernel", "(1,1)", "num_filter", "3"}, {"x", "w", "b"}, 4, {5, 2, 60, 60}, {0}, 0},
    {"Convolution", {"kernel", "(1,1)", "num_filter", "2"}, {"x", "w", "b"}, 4, {40, 1, 14, 14}, {0}, 0},
    {"Convolution", {"kernel", "(1,1)", "num_filter", "2"}, {"x", "w", "b"}, 4, {9, 1, 29, 31}, {0}, 0},
};

#define NETS (sizeof nets / sizeof *nets)
#define SHORTS (sizeof shorts / sizeof *shorts)

/* The first input becomes one of `type` in front of the operator, if it is not NULL. */
typedef struct typed_net {
    const char *type;
    net n;
} typed_net;

#define BATCH(type, axis, n, a, b, c)                                                                        \
    {                                                                                                        \
        type,                                                                                                \
        {                                                                                                    \
            "BatchNorm", {"fix_gamma", "False", "axis", axis}, {"x", "gamma", "beta", "mean", "var"}, 4,     \
                {n, a, b, c}, {0}, 0.25                                                                      \
        }                                                                                                    \
    }

static const typed_net typed_nets[] = {
    BATCH(NULL, "1", 40, 8, 7, 7),         BATCH("bfloat16", "1", 40, 8, 7, 7),
    BATCH("float16", "1", 6, 3, 11, 13),   BATCH("bfloat16", "1", 3, 4, 14, 14),
    BATCH("bfloat16", "1", 5, 40, 8, 8),   BATCH("float16", "1", 2, 2, 120, 120),
    BATCH("bfloat16", "1", 300, 5, 1, 8),  BATCH("bfloat16", "1", 300, 9, 1, 3),
    BATCH(NULL, "1", 2, 1, 150, 130),      BATCH(NULL, "3", 3, 11, 31, 8),
    BATCH("bfloat16", "3", 3, 11, 31, 8),  BATCH("float16", "3", 2, 9, 17, 296),
    BATCH(NULL, "3", 2, 13, 20, 4),        BATCH("bfloat16", "3", 3, 20, 10, 6),
    BATCH("bfloat16", "3", 2, 60, 70, 96), BATCH("bfloat16", "3", 1, 12, 11, 16),
};

/* Pools of whole packs of channels that stand last: windows of each kernel, of one that overlaps more than
 * two and of one whose places are more than a byte; in bfloat16 many elements of a window are equal. */
#define POOL(type, n, h, w, c, ...)                                                                          \
    {                                                                                                        \
        type,                                                                                                \
        {                                                                                                    \
            "Pooling", {"layout", "NHWC", "kernel", __VA_ARGS__}, {"x"}, 4, {n, h, w, c}, {0}, 0             \
        }                                                                                                    \
    }
#define POOLS(type, c)                                                                                       \
    POOL(type, 2, 29, 23, c, "(3,3)", "stride", "(2,2)", "pad", "(1,1)"),                                    \
        POOL(type, 2, 20, 19, c, "(2,2)", "stride", "(2,2)"),                                                \
        POOL(type, 1, 21, 30, c, "(3,3)", "pad", "(1,1)"),                                                   \
        POOL(type, 2, 9, 11, c, "(5,4)", "stride", "(1,3)", "pad", "(2,0)"),                                 \
        POOL(type, 1, 19, 17, c, "(17,16)", "stride", "(3,2)", "pad", "(8,8)"),                              \
        POOL(type, 2, 21, 30, c, "(3,3)", "pool_type", "avg", "stride", "(2,2)", "pad", "(1,1)"),            \
        POOL(type, 2, 8, 9, c, "(3,2)", "pool_type", "avg", "count_include_pad", "False", "pad", "(1,1)"),   \
        POOL(type, 3, 7, 7, c, "(1,1)", "pool_type", "avg", "global_pool", "True"),                          \
        POOL(type, 3, 7, 5, c, "(1,1)", "pool_type", "max", "global_pool", "True"),                          \
        POOL(type, 2, 8, 8, c, "(2,2)", "pool_type", "sum", "stride", "(3,3)")

static const typed_net pools[] = {POOLS(NULL, 4), POOLS(NULL, 20), POOLS("bfloat16", 16), POOLS("float16", 8),
                                  POOLS("bfloat16", 12)};

#define TYPED_NETS (sizeof typed_nets / sizeof *typed_nets)

/* ---- the child --------------------------------------------------------------------------------------- */

/* The upper half of a float32 is a bfloat16. */
static bool is_short(tn_array *a)
{
    return tn_array_bytes(a) == 2 * tn_array_count(a);
}

/* From `least` on to 1 above it: the mean is not 0. */
static void numbers(tn_array *a, uint64_t seed, float least)
{
    const uint64_t count = tn_array_count(a);
    float *values = malloc(count * sizeof *values);
    uint16_t *halves = malloc(count * sizeof *halves);

    for (uint64_t i = 0; values && halves && i < count; i++) {
        uint32_t bits;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(seed >> 40) / 8388608.0f + least;
        memcpy(&bits, &values[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    MUST(tn_array_write(a, is_short(a) ? (void *)halves : (void *)values, tn_array_bytes(a)));
    free(values);
    free(halves);
}

static float *numbers_of(tn_array *a)
{
    const uint64_t count = tn_array_count(a);
    float *values = malloc(count * sizeof *values);
    uint16_t *halves = malloc(count * sizeof *halves);

    MUST(tn_array_read(a, is_short(a) ? (void *)halves : (void *)values, tn_array_bytes(a)));
    for (uint64_t i = 0; is_short(a) && i < count; i++) {
        const uint32_t bits = (uint32_t)halves[i] << 16;

        memcpy(&values[i], &bits, sizeof bits);
    }
    free(halves);
    return values;
}

/* `s`, which is released, in another type. */
static tn_symbol *cast(tn_ctx *ctx, tn_symbol *s, const char *type)
{
    const char *attrs[] = {"__ctx_group__", "a", "dtype", type, NULL};
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = "Cast", .attrs = attrs, .in_count = 1, .in = &s};
    tn_symbol *to;

    MUST(tn_symbol_op(ctx, &call, &to));
    tn_symbol_release(s);
    return to;
}

/* The square of the operator's output: gradients that reach the operator are others for each element. */
static tn_symbol *symbol_of(tn_ctx *ctx, const net *n, const char *type, uint32_t *inputs)
{
    const char *attrs[13] = {"__ctx_group__", "a"};
    tn_symbol *all[INPUTS_MAX], *s = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .op = n->op, .attrs = attrs, .in = all};

    for (int i = 0; i < 10 && n->attrs[i]; i++)
        attrs[2 + i] = n->attrs[i];
    for (*inputs = 0; n->inputs[*inputs]; ++*inputs)
        MUST(tn_symbol_variable(ctx, n->inputs[*inputs], &all[*inputs]));
    if (type)
        all[0] = cast(ctx, all[0], type);
    call.in_count = *inputs;
    MUST(tn_symbol_op(ctx, &call, &s));
    for (uint32_t i = 0; i < *inputs; i++)
        tn_symbol_release(all[i]);
    if (type)
        s = cast(ctx, s, "float32");
    attrs[2] = NULL;
    call = (tn_symbol_call){
        .struct_size = TN_SIZE(tn_symbol_call), .op = "square", .attrs = attrs, .in_count = 1, .in = &s};
    MUST(tn_symbol_op(ctx, &call, &all[0]));
    tn_symbol_release(s);
    return all[0];
}

/* What `a` holds now, as the next array, if there is one. */
static void keep(tn_array *a, float **out, uint64_t *counts, int *made)
{
    if (!a)
        return;
    counts[*made] = tn_array_count(a);
    out[(*made)++] = numbers_of(a);
}

/* The output and the gradients, as far as there are any, values, and the output in predict mode; how many. */
static int net_run(tn_ctx *ctx, const net *n, const char *type, const char *device, float **out,
                   uint64_t *counts)
{
    const char *groups[] = {"a", device, NULL};
    tn_known known[2] = {{.name = "x", .shape = n->shape, .ndim = n->ndim, .dtype = TN_F32},
                         {.name = "y", .shape = n->other, .ndim = n->ndim, .dtype = TN_F32}};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = n->other[0] ? 2 : 1,
                                      .known = known,
                                      .group2ctx = groups};
    uint32_t inputs;
    tn_symbol *s = symbol_of(ctx, n, type, &inputs);
    tn_executor *e = NULL;
    int made = 0;

    MUST(tn_executor_simple_bind(ctx, s, &o, &e));
    for (uint32_t i = 0; i < inputs; i++)
        numbers(tn_executor_array(e, TN_EXECUTOR_VALUE, n->inputs[i]), i + 1,
                strcmp(n->inputs[i], "var") ? -0.5f : 0.25f);
    MUST(tn_executor_forward(e, 1, 0, NULL));
    MUST(tn_executor_backward(e, NULL));
    keep(tn_executor_output(e, 0), out, counts, &made);
    for (uint32_t i = 0; i < inputs; i++) { /* values: states have moved */
        keep(tn_executor_array(e, TN_EXECUTOR_GRAD, n->inputs[i]), out, counts, &made);
        keep(tn_executor_array(e, TN_EXECUTOR_VALUE, n->inputs[i]), out, counts, &made);
    }
    MUST(tn_executor_forward(e, 0, 0, NULL));
    keep(tn_executor_output(e, 0), out, counts, &made);
    tn_executor_destroy(e);
    tn_symbol_release(s);
    return made;
}

static bool close_to(const net *n, const char *type, double bound, int array, const float *got,
                     const float *wanted, uint64_t count)
{
    double most = n->terms, off = 0;

    for (uint64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)wanted[i]));
        off = got[i] == got[i] ? fmax(off, fabs((double)got[i] - (double)wanted[i])) : INFINITY;
    }
    if (off > bound * most)
        printf("%s of %s: array %d is off by %g of %g\n", n->op, type ? type : "float32", array, off, most);
    return off <= bound * most;
}

static bool net_check(tn_ctx *ctx, const net *n, const char *type, double bound)
{
    float *got[ARRAYS_MAX], *wanted[ARRAYS_MAX];
    uint64_t counts[ARRAYS_MAX];
    const int made = net_run(ctx, n, type, "cuda:0", got, counts),
              same = net_run(ctx, n, type, "cpu:0", wanted, counts);
    bool all = made == same && made > 1;

    for (int k = 0; k < made && k < same; k++) {
        all = close_to(n, type, bound, k, got[k], wanted[k], counts[k]) && all;
        free(got[k]);
        free(wanted[k]);
    }
    printf("%s: %d arrays\n", n->op, made);
    return all;
}

static int child(void)
{
    char plugins[4200];
    const char *settings[] = {plugins, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    tn_ctx *ctx = NULL;
    bool all = true;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    MUST(tn_open(&o, &ctx));
    for (size_t i = 0; i < NETS; i++)
        all = net_check(ctx, &nets[i], NULL, BOUND) && all;
    for (size_t i = 0; i < TYPED_NETS; i++)
        all =
            net_check(ctx, &typed_nets[i].n, typed_nets[i].type, typed_nets[i].type ? SHORT_BOUND : BOUND) &&
            all;
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        all = net_check(ctx, &pools[i].n, pools[i].type, pools[i].type ? SHORT_BOUND : BOUND) && all;
    for (size_t i = 0; i < SHORTS; i++) {
        all = net_check(ctx, &shorts[i], NULL, BOUND) && all;
        all = net_check(ctx, &shorts[i], "bfloat16", ROUNDED_BOUND) && all;
    }
    MUST(tn_close(ctx));
    printf("%s\n", all ? "all are close" : "some are not");
    return 0;
}

static char self[4096];

static void as_the_host(void **state)
{
    char command[4600];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command, "'%s' child", self);
    s = cuda_say("TNEMU_DELAY_US=0", command);
    if (s->code || !strstr(s->out, "all are close"))
        fail_msg("ends with %d:\n%s", s->code, s->out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_host)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 1)
        return child();
    cuda_setup();
    return cmocka_run_group_tests_name("large", tests, NULL, NULL);
}
