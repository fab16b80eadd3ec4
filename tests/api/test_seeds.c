/*
 * What decides random numbers: the seed, the device, the number of the call. Not the engine, not the number
 * of threads, not whether the call stands in a net.
 */
#include "api/support.h"

#include <stdbool.h>

#define COUNT 9000 /* elements of an output: enough for several threads */
#define INPUTS 2

/* Operators that draw, with inputs of COUNT elements, or a parameter for every 30 of them. */
static const struct {
    const char *op, *attrs[12];
    uint32_t in_count;
    bool rows; /* inputs are parameters: (300,) */
} calls[] = {
    {"Dropout", {"p", "0.3", "mode", "always"}, 1, false},
    {"_shuffle", {NULL}, 1, false},
    {"_random_uniform", {"shape", "(9000,)"}, 0, false},
    {"_random_normal", {"shape", "(9000,)"}, 0, false},
    {"_random_gamma", {"alpha", "0.4", "shape", "(9000,)"}, 0, false},
    {"_random_exponential", {"shape", "(9000,)"}, 0, false},
    {"_random_poisson", {"lam", "40", "shape", "(9000,)"}, 0, false},
    {"_random_negative_binomial", {"k", "4", "p", "0.1", "shape", "(9000,)"}, 0, false},
    {"_random_generalized_negative_binomial_like", {"mu", "30", "alpha", "0.4"}, 1, false},
    {"_random_randint", {"low", "0", "high", "1000", "shape", "(9000,)"}, 0, false},
    {"_sample_gamma", {"shape", "(30,)"}, 2, true},
    {"_sample_poisson", {"shape", "(30,)"}, 1, true},
    {"_npi_normal", {"loc", "None", "scale", "None"}, 2, false},
    {"_npi_gumbel", {"loc", "None", "scale", "2"}, 1, false},
    {"_npi_weibull", {"a", "None"}, 1, false},
    {"_npi_powerd", {"a", "None"}, 1, false},
    {"_npi_bernoulli", {"prob", "None", "logit", "None", "is_logit", "True"}, 1, false},
    {"_npi_choice", {"a", "9000", "size", "(9000,)", "replace", "False"}, 0, false},
    {"_npi_multinomial", {"n", "50", "pvals", "(0.25, 0.25, 0.5)", "size", "(3000,)"}, 0, false},
    {"_sample_unique_zipfian", {"range_max", "100000", "shape", "(30, 300)"}, 0, false},
};
#define CALLS (sizeof calls / sizeof *calls)

static void inputs_make(tn_ctx *ctx, bool rows, tn_array **in)
{
    const int64_t count = rows ? 300 : COUNT;
    static float values[COUNT];

    for (int i = 0; i < COUNT; i++)
        values[i] = 0.5f + (float)(i % 97) / 50;
    for (int k = 0; k < INPUTS; k++)
        in[k] = test_array(ctx, 1, &count, values);
}

/* Of one output, as float64. */
static void output_take(tn_ctx *ctx, tn_array *y, double *to)
{
    tn_array *wide = NULL;

    assert_ok(tn_array_cast(ctx, y, TN_F64, &wide));
    assert_int_equal(tn_array_count(wide), COUNT);
    assert_ok(tn_array_read(wide, to, COUNT * sizeof *to));
    tn_array_release(wide);
}

/* The second draw after the seed: two calls, or a net of two nodes. */
static void call_eager(tn_ctx *ctx, size_t row, tn_array *const *in, double *to)
{
    const tn_op_call call = {TN_SIZE(tn_op_call), calls[row].in_count, calls[row].op, calls[row].attrs, in};

    for (int k = 0; k < 2; k++) {
        tn_array *y[2] = {NULL};

        assert_ok(tn_invoke_text(ctx, &call, 2, y, NULL));
        if (k)
            output_take(ctx, y[0], to);
        tn_array_release(y[0]);
        tn_array_release(y[1]);
    }
}

static void call_net(tn_ctx *ctx, size_t row, tn_array *const *in, double *to)
{
    tn_symbol *variables[INPUTS] = {NULL}, *node[2] = {NULL}, *head[2] = {NULL}, *both = NULL;
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = calls[row].in_count,
                                 .op = calls[row].op,
                                 .attrs = calls[row].attrs,
                                 .in = variables};
    tn_cached_op *op = NULL;
    tn_array *y[2] = {NULL};

    for (uint32_t k = 0; k < calls[row].in_count; k++)
        assert_ok(tn_symbol_variable(ctx, k ? "b" : "a", &variables[k]));
    for (int k = 0; k < 2; k++) {
        assert_ok(tn_symbol_op(ctx, &call, &node[k]));
        assert_ok(tn_symbol_output(node[k], 0, &head[k]));
    }
    assert_ok(tn_symbol_group(2, head, &both));
    assert_ok(tn_cached_op_create(ctx, both, NULL, &op));
    assert_ok(tn_cached_op_call(op, calls[row].in_count, in, 2, y));
    output_take(ctx, y[1], to);
    for (int k = 0; k < 2; k++) {
        tn_array_release(y[k]);
        tn_symbol_release(node[k]);
        tn_symbol_release(head[k]);
        tn_symbol_release(variables[k]);
    }
    tn_symbol_release(both);
    tn_cached_op_release(op);
}

static void calls_run(const char *engine, const char *threads, double *to)
{
    tn_ctx *ctx = test_open((const char *const[]){engine, threads, "engine.inline_ns=0", NULL});

    for (size_t row = 0; row < CALLS; row++) {
        tn_array *in[INPUTS];

        inputs_make(ctx, calls[row].rows, in);
        assert_ok(tn_random_seed(ctx, 11, NULL));
        call_eager(ctx, row, in, to + 2 * row * COUNT);
        assert_ok(tn_random_seed(ctx, 11, NULL));
        call_net(ctx, row, in, to + (2 * row + 1) * COUNT);
        for (int k = 0; k < INPUTS; k++)
            tn_array_release(in[k]);
    }
    test_close(ctx);
}

static void threads_and_engines(void **state)
{
    static const char *const settings[][2] = {{"engine.type=threaded", "engine.threads=1"},
                                              {"engine.type=threaded", "engine.threads=2"},
                                              {"engine.type=threaded", "engine.threads=7"},
                                              {"engine.type=naive", "engine.threads=1"},
                                              {"engine.type=naive", "engine.threads=4"}};
    double *want = malloc(2 * CALLS * COUNT * sizeof *want), *got = malloc(2 * CALLS * COUNT * sizeof *got);

    (void)state;
    assert_true(want && got);
    calls_run(settings[0][0], settings[0][1], want);
    for (size_t row = 0; row < CALLS; row++)
        if (memcmp(want + 2 * row * COUNT, want + (2 * row + 1) * COUNT, COUNT * sizeof *want))
            fail_msg("%s: a net draws other numbers", calls[row].op);
    for (size_t s = 1; s < sizeof settings / sizeof *settings; s++) {
        calls_run(settings[s][0], settings[s][1], got);
        for (size_t row = 0; row < CALLS; row++)
            if (memcmp(want + 2 * row * COUNT, got + 2 * row * COUNT, 2 * COUNT * sizeof *want))
                fail_msg("%s draws other numbers with %s, %s", calls[row].op, settings[s][0], settings[s][1]);
    }
    free(want);
    free(got);
}

/* ---- devices ------------------------------------------------------------------------------------------ */

#define FEW 8

static void draw_on(tn_ctx *ctx, const tn_device *device, float *to)
{
    tn_array *y;

    (void)tn_device_use(device);
    y = test_op(ctx, "_random_gamma", (const char *const[]){"shape", "(8,)", NULL}, 0, NULL);
    (void)tn_device_use(NULL);
    assert_true(tn_array_device(y) == device);
    assert_ok(tn_array_read(y, to, FEW * sizeof *to));
    tn_array_release(y);
}

/* A seed for all devices gives each its own numbers; one for a device leaves the others where they are. */
static void devices(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    const tn_device *d[2];
    float first[2][FEW], second[2][FEW], got[FEW];
    uint64_t seed, position;

    (void)state;
    assert_ok(tn_device_get(ctx, "cpu:0", &d[0]));
    assert_ok(tn_device_get(ctx, "cpu:1", &d[1]));
    assert_ok(tn_random_seed(ctx, 3, NULL));
    for (int k = 0; k < 2; k++) {
        draw_on(ctx, d[k], first[k]);
        draw_on(ctx, d[k], second[k]);
        assert_memory_not_equal(first[k], second[k], sizeof got);
    }
    assert_memory_not_equal(first[0], first[1], sizeof got);
    assert_ok(tn_random_seed(ctx, 3, NULL)); /* the same again */
    draw_on(ctx, d[1], got);
    assert_memory_equal(got, first[1], sizeof got);
    assert_ok(tn_random_seed(ctx, 4, d[0])); /* the other device goes on */
    draw_on(ctx, d[1], got);
    assert_memory_equal(got, second[1], sizeof got);
    draw_on(ctx, d[0], got);
    assert_memory_not_equal(got, first[0], sizeof got);
    assert_ok(tn_random_save(ctx, d[0], &seed, &position));
    assert_true(seed == 4 && position == 1);
    assert_ok(tn_random_restore(ctx, d[0], 3, 1));
    draw_on(ctx, d[0], got);
    assert_memory_equal(got, second[0], sizeof got);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_and_engines), cmocka_unit_test(devices)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
