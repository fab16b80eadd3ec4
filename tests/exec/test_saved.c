/*
 * Blocks that a forward kernel leaves for its backward: y = x^3 whose backward kernel gets dy alone and reads
 * 3 x^2 from the block, so a wrong, lost or stale block is a wrong gradient.
 */
#include "context.h"
#include "cube.h"
#include "support/static_plugin.h"

#include <string.h>

/* ---- the operator and its kernels ---------------------------------------------------------------------- */

static atomic_int asked_recorded, ran_scratch;
static uint64_t saved_align;

static tn_status cube_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    if (node->flags & TN_NODE_RECORDED)
        atomic_fetch_add(&asked_recorded, 1);
    plan->saved_bytes = 4u * (uint64_t)tn_tensor_count(node->in[0]);
    plan->saved_align = (uint32_t)saved_align;
    plan->est_ns = 100;
    return TN_OK;
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data, *block = x->saved;

    (void)plan;
    if (!block)
        return tn_fail(err, TN_E_INTERNAL, "no saved block");
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++) {
        block[i] = 3 * in[i] * in[i];
        out[i] = in[i] * in[i] * in[i];
    }
    atomic_fetch_add(&ran_scratch, 1);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel cube_kernel =
    TEST_KERNEL("test_cube", "cpu", .name = "cube", .types = types, .prepare = cube_prepare, .run = cube_run);
static const tn_kernel backward_kernel =
    TEST_KERNEL("_backward_test_cube", "cpu", .name = "cube_backward", .types = types,
                .prepare = test_cube_backward_prepare, .run = test_cube_backward_run);
TEST_KERNELS(kernel_table, "cpu", &cube_kernel, &backward_kernel);
TEST_PLUGIN(plugin, "saved", &test_cube_ops.head, &kernel_table.head);

/* ---- tests --------------------------------------------------------------------------------------------- */

static tni_context *open_with(const char *engine)
{
    const char *const settings[] = {engine, NULL};
    tni_context *c = test_context(settings);

    atomic_store(&asked_recorded, 0);
    saved_align = 64;
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

/* x^9 by two nodes with a block each; two tapes alive at once; retained and walked twice. */
static void eager(void **state)
{
    tni_context *c = open_with(*state);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y[2], *z[2];
    const tni_backward_options retain = {.retain = true};

    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, true);
    for (int i = 0; i < 2; i++) {
        y[i] = test_op(c, "test_cube", 1, &x, NULL);
        z[i] = test_op(c, "test_cube", 1, &y[i], NULL);
    }
    test_record(false, false);
    assert_true(atomic_load(&asked_recorded) >= 1);
    for (int i = 0; i < 2; i++) {
        test_values(z[i], (float[]){1, 512}, 2, 0);
        assert_ok(tni_backward(c, 1, &z[i], NULL, &retain));
        test_values(tni_grad_get(x), (float[]){9, 9 * 256}, 2, 0);
        assert_ok(tni_backward(c, 1, &z[i], NULL, NULL));
        test_values(tni_grad_get(x), (float[]){9, 9 * 256}, 2, 0);
        assert_int_equal(tni_backward(c, 1, &z[i], NULL, NULL), TN_E_STATE);
        tni_array_release(y[i]);
        tni_array_release(z[i]);
    }
    tni_array_release(x);
    test_context_close(c);
}

/* Nobody records: the block is scratch, whatever the kernel asked for. */
static void unrecorded(void **state)
{
    tni_context *c = open_with(*state);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y = test_op(c, "test_cube", 1, &x, NULL);

    test_values(y, (float[]){1, 8}, 2, 0);
    assert_int_equal(atomic_load(&asked_recorded), 0);
    tni_array_release(y);
    tni_array_release(x);
    test_context_close(c);
}

static tni_cached_op *net(tni_context *c)
{
    tni_symbol *x = NULL, *y = NULL, *z = NULL, *open[2] = {NULL};
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "test_cube", 0, NULL, NULL, "a", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "a", 1, NULL, &x, &y));
    assert_ok(tni_symbol_atomic(c->ops, "test_cube", 0, NULL, NULL, "b", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "b", 1, NULL, &y, &z));
    assert_ok(tni_cached_op_create(c, z, NULL, &op));
    tni_symbol_release(x);
    tni_symbol_release(y);
    tni_symbol_release(z);
    tni_symbol_release(open[0]);
    tni_symbol_release(open[1]);
    return op;
}

/* The block of each call lies in its own frame, kept until backward went through. */
static void hybridized(void **state)
{
    tni_context *c = open_with(*state);
    tni_cached_op *op = net(c);
    tni_array *x[3], *y[3];

    for (int round = 0; round < 3; round++) {
        test_record(true, true);
        for (int i = 0; i < 3; i++) {
            x[i] = test_vector(c, 2, (float[]){1, (float)(i + 1)});
            assert_ok(tni_grad_attach(c, x[i], TN_MODE_WRITE, NULL));
            y[i] = NULL;
            assert_ok(tni_cached_op_call(op, 1, &x[i], 1, &y[i]));
        }
        test_record(false, false);
        for (int i = 2; i >= 0; i--) {
            const float v = (float)(i + 1), power = v * v * v * v * v * v * v * v;

            assert_ok(tni_backward(c, 1, &y[i], NULL, NULL));
            test_values(tni_grad_get(x[i]), (float[]){9, 9 * power}, 2, 0);
            tni_array_release(x[i]);
            tni_array_release(y[i]);
        }
    }
    tni_cached_op_release(op);
    test_context_close(c);
}

/* Alignment that no block has: the kernel is declined and says why. */
static void too_much(void **state)
{
    tni_context *c = open_with(*state);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y = NULL;

    saved_align = 4096;
    assert_int_equal(tni_invoke_text(c, "test_cube", 1, &x, 0, NULL, NULL, 1, &y, NULL), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tni_error_message(), "aligned to more than 64 bytes"));
    tni_array_release(x);
    test_context_close(c);
}

int main(void)
{
    static char threaded[] = "engine.type=threaded", queued[] = "engine.inline_ns=0",
                naive[] = "engine.type=naive";
    char *const engines[] = {threaded, queued, naive};
    int failed = 0;

    for (int i = 0; i < 3; i++) {
        const struct CMUnitTest tests[] = {
            {"eager", eager, NULL, NULL, engines[i]},
            {"unrecorded", unrecorded, NULL, NULL, engines[i]},
            {"hybridized", hybridized, NULL, NULL, engines[i]},
            {"too much", too_much, NULL, NULL, engines[i]},
        };

        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
