/*
 * Pass pointwise: what becomes one instruction, what stays apart, and that no bit changes: random nets of
 * pointwise operators of every data type, forward and backward, with the pass and without it.
 */
#include "net.h"
#include "support/runs.h"

#include <string.h>

#define SETTINGS(off) ((const char *const[]){"plugins.load=cpu,mempool,fake", off, NULL})
#define OFF "compile.passes_off=pointwise"
#define ALL_ON "compile.passes_off="

static tni_compiled *recent(tni_cached_op *op)
{
    tni_compiled *e = NULL;

    assert_ok(tni_cached_op_recent(op, &e));
    return e;
}

static uint32_t count_of(const tni_compiled *e, const char *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < e->program->code_count; i++)
        count += !op || !strcmp(e->program->code[i].def->op->name, op);
    return count;
}

/* Calls the net and releases it. */
static tni_compiled *called(tni_context *c, tni_symbol *s, uint32_t count, tni_array *const *in,
                            tni_array **out)
{
    tni_cached_op *op = NULL;
    tni_compiled *e;

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, count, in, s->output_count, out));
    for (uint32_t i = 0; i < s->output_count; i++)
        assert_ok(tni_array_wait(out[i]));
    e = recent(op);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    return e;
}

/* ---- what is fused --------------------------------------------------------------------------------- */

static tni_symbol *swish_like(tni_context *c)
{
    tni_symbol *x = net_variable(c, "x"), *half = net_take(c, "_mul_scalar", x, NULL, "scalar=0.5"), *gate,
               *y;

    gate = net_op(c, "sigmoid", 1, &half, NULL);
    y = net_take(c, "elemwise_mul", half, gate, NULL);
    return net_take(c, "_plus_scalar", y, NULL, "scalar=1");
}

static void chain(void **state)
{
    (void)state;
    for (int off = 0; off < 2; off++) {
        tni_context *c = test_context(SETTINGS(off ? OFF : ALL_ON));
        tni_array *in = test_vector(c, 3, (float[]){0, 2, -2}), *out[1] = {NULL};
        tni_compiled *e = called(c, swish_like(c), 1, &in, out);

        test_values(out[0], (float[]){1, 1.7310586F, 0.7310586F}, 3, 1e-6F);
        assert_int_equal(count_of(e, "_fused_pointwise"), !off);
        assert_int_equal(count_of(e, NULL), off ? 4 : 1);
        tni_compiled_release(e);
        tni_array_release(in);
        tni_array_release(out[0]);
        test_context_close(c);
    }
}

/* A result in the middle that is a head, or that something else reads, is one of the results. */
static void several_outputs(void **state)
{
    tni_context *c = test_context(SETTINGS(ALL_ON));
    tni_symbol *x = net_variable(c, "x"), *heads[3], *all = NULL;
    tni_array *in = test_vector(c, 4, (float[]){1, 2, 3, 4}), *out[3] = {NULL};
    tni_compiled *e;

    (void)state;
    heads[0] = net_take(c, "square", x, NULL, NULL);
    heads[1] = net_op(c, "negative", 1, &heads[0], NULL);
    heads[2] = net_op(c, "sum", 1, &heads[1], NULL); /* no part of it */
    assert_ok(tni_symbol_group(3, heads, &all));
    e = called(c, all, 1, &in, out);
    assert_int_equal(count_of(e, "_fused_pointwise"), 1);
    assert_int_equal(count_of(e, NULL), 2);
    test_values(out[0], (float[]){1, 4, 9, 16}, 4, 0);
    test_values(out[1], (float[]){-1, -4, -9, -16}, 4, 0);
    test_values(out[2], (float[]){-30}, 1, 0);
    tni_compiled_release(e);
    for (int i = 0; i < 3; i++) {
        tni_symbol_release(heads[i]);
        tni_array_release(out[i]);
    }
    tni_array_release(in);
    test_context_close(c);
}

/* What reads a result in another order, or as a view, stays behind it. */
static void read_otherwise(void **state)
{
    static const char *const between[] = {"transpose", "Flatten", "softmax"};

    (void)state;
    for (size_t k = 0; k < sizeof between / sizeof *between; k++) {
        tni_context *c = test_context(SETTINGS(ALL_ON));
        const int64_t shape[] = {2, 2};
        tni_array *in = test_array(c, 2, shape, (float[]){1, 2, 3, 4}), *out[1] = {NULL}, *eager[1];
        tni_symbol *y = net_take(c, "square", net_variable(c, "x"), NULL, NULL), *other, *s;
        tni_compiled *e;

        y = net_take(c, "negative", y, NULL, NULL);
        other = net_op(c, between[k], 1, &y, NULL);
        s = net_take(c, "exp", net_take(c, "elemwise_add", y, other, NULL), NULL, NULL);
        net_call(c, s, false, &in, eager);
        e = called(c, s, 1, &in, out);
        net_same(out[0], eager[0], between[k]);
        assert_int_equal(count_of(e, "_fused_pointwise"), 2);
        tni_compiled_release(e);
        tni_array_release(in);
        tni_array_release(out[0]);
        tni_array_release(eager[0]);
        test_context_close(c);
    }
}

/* Draws, and kernels of another plugin's, are left alone. */
static void left_alone(void **state)
{
    tni_context *c = test_context(SETTINGS(ALL_ON));
    tni_symbol *x = net_variable(c, "x"), *y;
    tni_array *in = test_vector(c, 2, (float[]){1, 2}), *out[1] = {NULL};
    tni_compiled *e;

    (void)state;
    y = net_take(c, "Dropout", net_take(c, "exp", x, NULL, NULL), NULL, "mode=always");
    e = called(c, net_take(c, "log", y, NULL, NULL), 1, &in, out);
    assert_int_equal(count_of(e, "_fused_pointwise"), 0);
    tni_compiled_release(e);
    tni_array_release(in);
    tni_array_release(out[0]);
    test_context_close(c);
}

/* The scalars of each call, through one program. */
static void runtime_numbers(void **state)
{
    tni_context *c = test_context(SETTINGS(ALL_ON));
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y, *z;
    tni_site *times = NULL;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(
        tni_site_create(c, "_mul_scalar", 1, (const char *[]){"scalar"}, (const char *[]){"2"}, &times));
    for (int i = 1; i < 6; i++) {
        assert_ok(tni_site_set(times, 0, tn_value_of_float(i)));
        test_record(true, true);
        y = z = NULL;
        assert_ok(tni_invoke(times, 1, &x, 1, &y));
        assert_ok(tni_invoke(times, 1, &y, 1, &z));
        test_record(false, false);
        tni_array_release(y);
        y = test_op(c, "square", 1, &z, NULL);
        test_record(true, true);
        tni_array_release(y);
        y = test_op(c, "square", 1, &z, NULL); /* (i i x)^2: 2 i^4 x */
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        test_values(tni_grad_get(x), (float[]){2.0F * (float)(i * i * i * i), 4.0F * (float)(i * i * i * i)},
                    2, 0);
        tni_array_release(y);
        tni_array_release(z);
    }
    tni_site_release(times);
    tni_array_release(x);
    test_context_close(c);
}

/* ---- random nets ----------------------------------------------------------------------------------- */

static uint64_t seed;

static uint32_t below(uint32_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % limit;
}

static const struct random_op {
    const char *name, *attr;
    uint32_t inputs; /* 2: of one shape; 3: the second may be smaller */
} random_ops[] = {
    {"exp", NULL, 1},
    {"tanh", NULL, 1},
    {"sigmoid", NULL, 1},
    {"relu", NULL, 1},
    {"square", NULL, 1},
    {"negative", NULL, 1},
    {"sqrt", NULL, 1},
    {"abs", NULL, 1},
    {"_mul_scalar", "scalar=0.75", 1},
    {"clip", "a_min=-1", 1},
    {"Activation", "act_type=softrelu", 1},
    {"LeakyReLU", "act_type=elu", 1},
    {"_plus_scalar", "scalar=-0.5", 1},
    {"_rdiv_scalar", "scalar=2", 1},
    {"elemwise_add", NULL, 2},
    {"elemwise_mul", NULL, 2},
    {"elemwise_sub", NULL, 2},
    {"_maximum", NULL, 2},
    {"_greater", NULL, 2},
    {"broadcast_add", NULL, 3},
    {"broadcast_mul", NULL, 3},
    {"broadcast_div", NULL, 3},
    {"transpose", NULL, 1},
    {"Flatten", NULL, 1},
    {"elemwise_div", NULL, 2},
    {"_power_scalar", "scalar=2", 1},
    {"BlockGrad", NULL, 1},
};

#define NODES 14u
#define DIM 5
#define HEADS 3

/* Inputs: two matrices and one row; results are matrices. */
static tni_symbol *random_net(tni_context *c, uint64_t of)
{
    tni_symbol *made[NODES + 5], *heads[HEADS], *all = NULL;
    uint32_t count = 5;

    seed = of;
    made[0] = net_variable(c, "a");
    made[1] = net_variable(c, "b");
    made[2] = net_variable(c, "row");
    made[3] = net_op(c, "elemwise_mul", 2, made, NULL);
    made[4] = net_op(c, "broadcast_add", 2, (tni_symbol *[]){made[3], made[2]}, NULL);
    while (count < NODES + 5) {
        const struct random_op *o = &random_ops[below(sizeof random_ops / sizeof *random_ops)];
        const uint32_t from = count > 8 && below(3) ? count - 5 : 0;
        tni_symbol *in[2];

        do
            in[0] = made[from + below(count - from)];
        while (in[0] == made[2]);
        in[1] = o->inputs == 3 && below(2) ? made[2] : made[from + below(count - from)];
        if (o->inputs == 2 && in[1] == made[2])
            in[1] = made[1];
        if (!strcmp(o->name, "clip"))
            made[count++] = net_op(c, o->name, 1, in, "a_min=-1", "a_max=2", NULL);
        else
            made[count++] = net_op(c, o->name, o->inputs > 1 ? 2 : 1, in, o->attr, NULL);
    }
    heads[0] = made[4]; /* reads all inputs, in order */
    heads[1] = made[count - 1];
    heads[2] = made[5 + below(count - 6)];
    assert_ok(tni_symbol_group(HEADS, heads, &all));
    for (uint32_t i = 0; i < count; i++)
        tni_symbol_release(made[i]);
    return all;
}

static tni_array *input(tni_context *c, uint32_t which, int32_t dtype)
{
    const int64_t shape[] = {DIM, DIM};
    float values[DIM * DIM];
    tni_array *a, *out = NULL;

    seed = 77 + which;
    for (size_t i = 0; i < DIM * DIM; i++)
        values[i] = (float)below(4000) / 1000.0F - 2.0F;
    a = which == 2 ? test_array(c, 1, &shape[1], values) : test_array(c, 2, shape, values);
    if (dtype == TN_F32)
        return a;
    out = test_op(c, "Cast", 1, &a,
                  dtype == TN_F64   ? "dtype=float64"
                  : dtype == TN_F16 ? "dtype=float16"
                                    : "dtype=bfloat16",
                  NULL);
    tni_array_release(a);
    return out;
}

#define RESULTS (HEADS + 3) /* and three gradients */
typedef struct results {
    unsigned char bytes[RESULTS][DIM * DIM * 8];
    uint32_t fused, instructions;
} results;

/* mode: of the gradients. */
static void net_run(const char *off, uint64_t of, int32_t dtype, uint32_t mode, results *out)
{
    tni_context *c = test_context(SETTINGS(off));
    tni_symbol *s = random_net(c, of);
    tni_array *in[3], *heads[HEADS] = {NULL};
    tni_cached_op *op = NULL;
    tni_compiled *e;

    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = input(c, i, dtype);
        assert_ok(tni_grad_attach(c, in[i], (uint8_t)mode, NULL));
    }
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (int round = 0; round < 2; round++) {
        for (uint32_t h = 0; h < HEADS; h++) {
            tni_array_release(heads[h]);
            heads[h] = NULL;
        }
        test_record(true, true);
        assert_ok(tni_cached_op_call(op, 3, in, HEADS, heads));
        test_record(false, false);
        /* Both heads: the program of both phases; one: a variant over what it keeps. */
        assert_ok(tni_backward(c, of % 3 ? HEADS : 1 + of % 2, heads, NULL, NULL));
    }
    for (uint32_t i = 0; i < RESULTS; i++) {
        tni_array *a = i < HEADS ? heads[i] : tni_grad_get(in[i - HEADS]);

        assert_ok(tni_array_read(a, out->bytes[i], tni_array_count(a) * tn_dtype_bytes(a->dtype)));
    }
    e = recent(op);
    out->fused = count_of(e, "_fused_pointwise");
    out->instructions = count_of(e, NULL);
    tni_compiled_release(e);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    for (uint32_t i = 0; i < 3; i++)
        tni_array_release(in[i]);
    for (uint32_t h = 0; h < HEADS; h++)
        tni_array_release(heads[h]);
    test_context_close(c);
}

static void same_bits(void **state)
{
    static const int32_t dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    const uint64_t runs = test_runs(48);
    uint64_t fused = 0, fewer = 0;

    (void)state;
    for (uint64_t n = 0; n < runs; n++) {
        const int32_t dtype = dtypes[n % 4];
        const uint32_t mode = n % 5 == 4 ? TN_MODE_ADD : TN_MODE_WRITE;
        results with, without;

        net_run(ALL_ON, n, dtype, mode, &with);
        net_run(OFF, n, dtype, mode, &without);
        for (uint32_t i = 0; i < RESULTS; i++)
            if (memcmp(with.bytes[i], without.bytes[i], sizeof with.bytes[i]) != 0)
                fail_msg("net %llu, result %u: other bits (%u fused)", (unsigned long long)n, i, with.fused);
        assert_int_equal(without.fused, 0);
        assert_true(with.instructions <= without.instructions);
        fused += with.fused;
        fewer += without.instructions - with.instructions;
    }
    assert_true(fused > runs / 2 && fewer > runs);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),      cmocka_unit_test(several_outputs), cmocka_unit_test(read_otherwise),
        cmocka_unit_test(left_alone), cmocka_unit_test(runtime_numbers), cmocka_unit_test(same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
