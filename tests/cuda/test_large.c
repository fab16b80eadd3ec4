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
#include "tenon/tenon.h"

#define INPUTS_MAX 5
#define ARRAYS_MAX (2 * INPUTS_MAX + 1)
#define BOUND 2e-5       /* of the largest value of an array */
#define BOUND_SHORT 0.02 /* the same of bfloat16: some units in the last place */

#define MUST(call)                                                                                           \
    do {                                                                                                     \
        const tn_status st_ = call;                                                                          \
                                                                                                             \
        if (st_) {                                                                                           \
            printf("%s gives %s: %s\n", #call, tn_status_name(st_), tn_error_text());                        \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

typedef struct net {
    const char *op;
    const char *attrs[9];
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
     {"kernel", "(3,3)", "pool_type", "avg", "stride", "(2,2)", "pad", "(1,1)", "False"},
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

/* ---- the child --------------------------------------------------------------------------------------- */

/* The upper half of a float32 is a bfloat16. */
static bool is_short(tn_array *a)
{
    return tn_array_bytes(a) == 2 * tn_array_count(a);
}

static void numbers(tn_array *a, uint64_t seed)
{
    const uint64_t count = tn_array_count(a);
    float *values = malloc(count * sizeof *values);
    uint16_t *halves = malloc(count * sizeof *halves);

    for (uint64_t i = 0; values && halves && i < count; i++) {
        uint32_t bits;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(seed >> 40) / 8388608.0f - 0.5f; /* the mean is not 0 */
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

/* The square of the operator's output: gradients that reach the operator are others for each element. */
static tn_symbol *symbol_of(tn_ctx *ctx, const net *n, uint32_t *inputs)
{
    const char *attrs[11] = {"__ctx_group__", "a"};
    tn_symbol *all[INPUTS_MAX], *s = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .op = n->op, .attrs = attrs, .in = all};

    for (int i = 0; i < 8 && n->attrs[i]; i++)
        attrs[2 + i] = n->attrs[i];
    for (*inputs = 0; n->inputs[*inputs]; ++*inputs)
        MUST(tn_symbol_variable(ctx, n->inputs[*inputs], &all[*inputs]));
    call.in_count = *inputs;
    MUST(tn_symbol_op(ctx, &call, &s));
    for (uint32_t i = 0; i < *inputs; i++)
        tn_symbol_release(all[i]);
    attrs[2] = NULL;
    call = (tn_symbol_call){
        .struct_size = TN_SIZE(tn_symbol_call), .op = "square", .attrs = attrs, .in_count = 1, .in = &s};
    MUST(tn_symbol_op(ctx, &call, &all[0]));
    tn_symbol_release(s);
    return all[0];
}

/* The output and the gradients, as far as there are any; how many. */
static int net_run(tn_ctx *ctx, const net *n, int32_t dtype, const char *device, float **out,
                   uint64_t *counts)
{
    const char *groups[] = {"a", device, NULL};
    tn_known known[2] = {{.name = "x", .shape = n->shape, .ndim = n->ndim, .dtype = dtype},
                         {.name = "y", .shape = n->other, .ndim = n->ndim, .dtype = dtype}};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = n->other[0] ? 2 : 1,
                                      .known = known,
                                      .group2ctx = groups};
    uint32_t inputs;
    tn_symbol *s = symbol_of(ctx, n, &inputs);
    tn_executor *e = NULL;
    int made = 0;

    MUST(tn_executor_simple_bind(ctx, s, &o, &e));
    for (uint32_t i = 0; i < inputs; i++)
        numbers(tn_executor_array(e, TN_EXECUTOR_VALUE, n->inputs[i]), i + 1);
    MUST(tn_executor_forward(e, 1, 0, NULL));
    MUST(tn_executor_backward(e, NULL));
    for (uint32_t i = 0; i <= 2 * inputs; i++) { /* the output, gradients, values: states have moved */
        tn_array *a = i == 0        ? tn_executor_output(e, 0)
                      : i <= inputs ? tn_executor_array(e, TN_EXECUTOR_GRAD, n->inputs[i - 1])
                                    : tn_executor_array(e, TN_EXECUTOR_VALUE, n->inputs[i - 1 - inputs]);

        if (!a)
            continue;
        counts[made] = tn_array_count(a);
        out[made++] = numbers_of(a);
    }
    tn_executor_destroy(e);
    tn_symbol_release(s);
    return made;
}

static bool close_to(const net *n, int32_t dtype, int array, const float *got, const float *wanted,
                     uint64_t count)
{
    const double bound = dtype == TN_F32 ? BOUND : BOUND_SHORT;
    double most = n->terms, off = 0;

    for (uint64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)wanted[i]));
        off = got[i] == got[i] ? fmax(off, fabs((double)got[i] - (double)wanted[i])) : INFINITY;
    }
    if (off > bound * most)
        printf("%s (%s): array %d is off by %g of %g\n", n->op, tn_dtype_name(dtype), array, off, most);
    return off <= bound * most;
}

static bool net_check(tn_ctx *ctx, const net *n, int32_t dtype)
{
    float *got[ARRAYS_MAX], *wanted[ARRAYS_MAX];
    uint64_t counts[ARRAYS_MAX];
    const int made = net_run(ctx, n, dtype, "cuda:0", got, counts),
              same = net_run(ctx, n, dtype, "cpu:0", wanted, counts);
    bool all = made == same && made > 1;

    for (int k = 0; k < made && k < same; k++) {
        all = close_to(n, dtype, k, got[k], wanted[k], counts[k]) && all;
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
        all = net_check(ctx, &nets[i], TN_F32) && all;
    for (size_t i = 0; i < SHORTS; i++) {
        all = net_check(ctx, &shorts[i], TN_F32) && all;
        all = net_check(ctx, &shorts[i], TN_BF16) && all;
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
