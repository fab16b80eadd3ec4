/*
 * Operators that bring a body and no kernel: eager, in nets, fused with their neighbours, with a gradient
 * that is such an operator too; and one that has both, where its own kernel serves.
 */
#include "net.h"

#include <math.h>
#include <string.h>

#include "support/static_plugin.h"
#include "tenon/plugin/attr.h"

static const tn_attr_def swish_attrs[] = {TN_ATTR_FLOAT_RUN("beta", "1", "slope"), TN_ATTR_END};
static const char *const one_input[] = {"x", NULL}, *const back_inputs[] = {"dy", "x", NULL},
                         *const output[] = {"output", NULL};

static tn_status same(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->in_count && !st; k++)
        st = tn_shape_unify(i, i->in_shape[k], i->out_shape[0]);
    return st;
}

static tn_status swish_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tn_grad_emit(g, 0, "_backward_acme_swish", 2, in);
}

#define OP(name_, inputs_, flags_, body_, ...)                                                               \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, body), .version = 1, .name = name_,                           \
        .doc = "x sigmoid(beta x)", .attrs = swish_attrs, .inputs = inputs_, .outputs = output,              \
        .flags = TN_OP_POINTWISE | flags_, .shape = same, .body = body_, __VA_ARGS__                         \
    }
static const tn_op swish = OP("acme_swish", one_input, 0, "x / (1 + exp(-beta * x))", .gradient = swish_grad);
static const tn_op swish_back =
    OP("_backward_acme_swish", back_inputs, TN_OP_BACKWARD,
       "dy * sigmoid(beta * x) * (1 + beta * x * (1 - sigmoid(beta * x)))", .gradient = NULL);
static const tn_op both = OP("acme_both", one_input, 0, "x + beta", .gradient = NULL);
static const tn_op *const ops[] = {&swish, &swish_back, &both, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "acme"),
                                     .ops = ops};

static atomic_int runs;

static tn_status both_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    if (tn_tensor_count(node->out[0]) > 4)
        return tn_fail(err, TN_E_UNSUPPORTED, "small ones only");
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status both_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    atomic_fetch_add(&runs, 1);
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        ((float *)x->out[0]->data)[i] =
            ((const float *)x->in[0]->data)[i] + (float)tn_value_float(x->attrs[0]);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel both_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                      .rank = 100,
                                      .op = "acme_both",
                                      .name = "own",
                                      .device = "cpu",
                                      .isa = "",
                                      .op_version_min = 1,
                                      .op_version_max = 1,
                                      .flags = TN_KERNEL_DETERMINISTIC,
                                      .types = types,
                                      .prepare = both_prepare,
                                      .run = both_run};
static const tn_kernel *const kernels[] = {&both_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};
TEST_PLUGIN(plugin, "acme", &op_table.head, &kernel_table.head);

static tni_context *open_with(const char *setting)
{
    tni_context *c = test_context((const char *const[]){"plugins.load=cpu,mempool,fake", setting, NULL});

    atomic_store(&runs, 0);
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

static float swish_of(float x, float beta)
{
    return (float)((double)x / (1 + exp(-(double)beta * (double)x)));
}

static void eager(void **state)
{
    tni_context *c = open_with("compile.passes_off=");
    const float v[] = {-2, 0, 0.5F, 3};
    tni_array *x = test_vector(c, 4, v), *y;

    (void)state;
    for (int beta = 1; beta < 4; beta++) { /* one signature, the number of each call */
        const char *const text[] = {"0", "beta=1", "beta=2", "beta=3"};
        float expected[4], slope[4];

        for (int i = 0; i < 4; i++) {
            const double s = 1 / (1 + exp(-(double)beta * (double)v[i]));

            expected[i] = swish_of(v[i], (float)beta);
            slope[i] = (float)(s * (1 + beta * (double)v[i] * (1 - s)));
        }
        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        test_record(true, true);
        y = test_op(c, "acme_swish", 1, &x, text[beta], NULL);
        test_record(false, false);
        test_values(y, expected, 4, 1e-6F);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        test_values(tni_grad_get(x), slope, 4, 1e-6F);
        tni_array_release(y);
    }
    tni_array_release(x);
    test_context_close(c);
}

/* Between two operators it is part of their instruction, and the bits stay. */
static void fused(void **state)
{
    (void)state;
    for (int off = 0; off < 2; off++) {
        tni_context *c = open_with(off ? "compile.passes_off=pointwise" : "compile.passes_off=");
        tni_array *x = test_vector(c, 3, (float[]){-1, 0.25F, 2}), *out[1] = {NULL}, *expected[1];
        tni_symbol *s = net_take(c, "square", net_variable(c, "x"), NULL, NULL);
        tni_cached_op *op = NULL;
        tni_compiled *e = NULL;

        s = net_take(c, "negative", net_take(c, "acme_swish", s, NULL, "beta=1.5"), NULL, NULL);
        net_call(c, s, false, &x, expected);
        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        assert_ok(tni_cached_op_call(op, 1, &x, 1, out));
        net_same(out[0], expected[0], "fused body");
        assert_ok(tni_cached_op_recent(op, &e));
        assert_int_equal(e->program->code_count, off ? 3 : 1);
        tni_compiled_release(e);
        tni_cached_op_release(op);
        tni_symbol_release(s);
        tni_array_release(x);
        tni_array_release(out[0]);
        tni_array_release(expected[0]);
        test_context_close(c);
    }
}

/* Its own kernel serves what it takes, alone; the body the rest. */
static void own_kernel_first(void **state)
{
    tni_context *c = open_with("compile.passes_off=");
    tni_array *few = test_vector(c, 2, (float[]){1, 2}), *many = test_vector(c, 5, (float[]){1, 2, 3, 4, 5}),
              *y;
    const bool host = c->exec && !strcmp(few->storage->device->type, "cpu");

    (void)state;
    y = test_op(c, "acme_both", 1, &few, "beta=2", NULL);
    test_values(y, (float[]){3, 4}, 2, 0);
    assert_int_equal(atomic_load(&runs), host);
    tni_array_release(y);
    y = test_op(c, "acme_both", 1, &many, "beta=2", NULL);
    test_values(y, (float[]){3, 4, 5, 6, 7}, 5, 0);
    assert_int_equal(atomic_load(&runs), host);
    tni_array_release(y);
    tni_array_release(few);
    tni_array_release(many);
    test_context_close(c);
}

/* In place, and what no kernel of the body takes. */
static void limits(void **state)
{
    tni_context *c = open_with("compile.passes_off=");
    tni_array *x = test_vector(c, 3, (float[]){-1, 0, 2}), *whole, *y = NULL;
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_site_create(c, "acme_swish", 0, NULL, NULL, &site));
    whole = test_op(c, "Cast", 1, &x, "dtype=uint64", NULL);
    assert_int_equal(tni_invoke(site, 1, &whole, 1, &y), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tni_error_message(), "its body cannot run"));
    assert_null(y);
    y = x;
    assert_ok(tni_invoke(site, 1, &x, 1, &y));
    test_values(x, (float[]){swish_of(-1, 1), 0, swish_of(2, 1)}, 3, 1e-6F);
    tni_site_release(site);
    tni_array_release(whole);
    tni_array_release(x);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eager), cmocka_unit_test(fused),
                                       cmocka_unit_test(own_kernel_first), cmocka_unit_test(limits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
