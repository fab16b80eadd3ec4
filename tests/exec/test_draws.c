/*
 * Where the step of a draw lies: memory that the kernel's device reads. The operator tells the number of its
 * draw, eager and in a net, and looks where the number came from.
 */
#include "far.h"
#include "support/static_plugin.h"

#include <stdlib.h>

static const char *const names_x[] = {"x", NULL}, *const names_y[] = {"y", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static const tn_op number = TEST_OP(.name = "test_number", .inputs = names_x, .outputs = names_y,
                                    .effects = TN_EFFECT_RANDOM, .shape = same_shape);
TEST_OPS(op_table, "draws", &number);

/* y = x + the number of the draw */
static tn_status number_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool device = x->stream != NULL;
    const float *from = far_near(x->in[0]);
    float *to = far_near(x->out[0]);

    (void)plan;
    if (x->rng->struct_size < TN_END(tn_rng, step_add) || x->rng->reserved)
        return tn_fail(err, TN_E_INTERNAL, "tn_rng does not say how long it is");
    if (far_pinned(x->rng->step) != device)
        return tn_fail(err, TN_E_INTERNAL, "the step does not lie where this device reads it");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        to[i] = from[i] + (float)(*x->rng->step + x->rng->step_add);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel on_cpu =
    TEST_KERNEL("test_number", "cpu", .name = "n", .types = types, .run = number_run);
static const tn_kernel on_far =
    TEST_KERNEL("test_number", "far", .name = "n", .types = types, .run = number_run);
static const tn_kernel on_farther =
    TEST_KERNEL("test_number", "farther", .name = "n", .types = types, .run = number_run);
TEST_KERNELS(cpu_table, "cpu", &on_cpu);
TEST_KERNELS(far_table, "far", &on_far);
TEST_KERNELS(farther_table, "farther", &on_farther);
TEST_PLUGIN(plugin, "draws", &op_table.head, &cpu_table.head, &far_table.head, &farther_table.head,
            &far_ops.head, &farther_ops.head);

static void eager(tni_context *c, tni_array *x, float base)
{
    tni_array *y[3];

    for (int i = 0; i < 3; i++)
        y[i] = test_op(c, "test_number", 1, &x, NULL);
    for (int i = 0; i < 3; i++) {
        const float n = base + (float)i;

        test_values(y[i], (float[]){10 + n, 20 + n}, 2, 0);
        tni_array_release(y[i]);
    }
}

/* Two draws behind each other in one program, called twice. */
static void net(tni_context *c, tni_array *x, float base)
{
    tni_symbol *v = NULL, *atom[2] = {NULL}, *s[2] = {NULL};
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &v));
    for (int i = 0; i < 2; i++) {
        assert_ok(tni_symbol_atomic(c->ops, "test_number", 0, NULL, NULL, i ? "b" : "a", &atom[i]));
        assert_ok(tni_symbol_compose(atom[i], i ? "b" : "a", 1, NULL, i ? &s[0] : &v, &s[i]));
    }
    assert_ok(tni_cached_op_create(c, s[1], NULL, &op));
    for (int call = 0; call < 2; call++) {
        const float n = 2 * base + (float)(4 * call) + 1; /* of both draws together */
        tni_array *y = NULL;

        assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
        test_values(y, (float[]){10 + n, 20 + n}, 2, 0);
        tni_array_release(y);
    }
    tni_cached_op_release(op);
    for (int i = 0; i < 2; i++) {
        tni_symbol_release(atom[i]);
        tni_symbol_release(s[i]);
    }
    tni_symbol_release(v);
}

static void on(const char *device, const char *engine)
{
    const char *const settings[] = {engine, NULL};
    tni_context *c = test_context(settings);
    const int64_t two = 2;
    tni_array *x = NULL;
    tni_device *d;

    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    assert_ok(tni_device_get(c->devices, device, 0, &d));
    assert_ok(tni_array_create(c->space, d, TN_F32, 1, &two, "test", &x));
    assert_ok(tni_array_write(x, (float[]){10, 20}, tni_array_bytes(x)));
    eager(c, x, 0);
    net(c, x, 3);
    eager(c, x, 7);
    tni_array_release(x);
    test_context_close(c);
}

static void hosts(void **state)
{
    (void)state;
    on("cpu", "engine.type=threaded");
    on("cpu", "engine.inline_ns=0");
}

static void devices(void **state)
{
    (void)state;
    on("far", "engine.type=threaded");
    on("far", "engine.type=naive");
    on("farther", "engine.type=threaded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hosts), cmocka_unit_test(devices)};

    return cmocka_run_group_tests_name("exec.draws", tests, NULL, NULL);
}
