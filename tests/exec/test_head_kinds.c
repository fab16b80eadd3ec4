/* Heads of all kinds, call by call and as nets: views, integers, heads whose gradient has no kernel. */
#include "context.h"
#include "cube.h"
#include "support/static_plugin.h"

#include <string.h>

static tni_cached_op *net(tni_context *c, const char *op, const char *name, const char *text, uint32_t inputs)
{
    tni_symbol *in[2] = {NULL}, *open = NULL, *whole = NULL;
    tni_cached_op *made = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &in[0]));
    assert_ok(tni_symbol_variable(c->ops, "z", &in[1]));
    assert_ok(tni_symbol_atomic(c->ops, op, name != NULL, &name, &text, "y", &open));
    assert_ok(tni_symbol_compose(open, "y", inputs, NULL, in, &whole));
    assert_ok(tni_cached_op_create(c, whole, NULL, &made));
    tni_symbol_release(in[0]);
    tni_symbol_release(in[1]);
    tni_symbol_release(open);
    tni_symbol_release(whole);
    return made;
}

/* The call, recorded; `op` NULL: by name. */
static tni_array *recorded(tni_context *c, tni_cached_op *op, const char *name, const char *attr,
                           const char *text, uint32_t inputs, tni_array *const *in)
{
    tni_array *out = NULL;

    test_record(true, false);
    if (op)
        assert_ok(tni_cached_op_call(op, inputs, in, 1, &out));
    else
        assert_ok(tni_invoke_text(c, name, inputs, in, attr != NULL, &attr, &text, 1, &out, NULL));
    test_record(false, false);
    return out;
}

/* What arrives at a view goes on to what it shows. */
static void views(void **state)
{
    tni_context *c = test_context(NULL);
    tni_cached_op *op = net(c, "expand_dims", "axis", "0", 1);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = test_vector(c, 3, (float[]){1, 2, 3}), *y;
        tni_array *dy = test_array(c, 2, (int64_t[]){1, 3}, (float[]){4, 5, 6});

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        y = recorded(c, hybrid ? op : NULL, "expand_dims", "axis", "0", 1, &x);
        assert_ok(tni_backward(c, 1, &y, &dy, NULL));
        test_values(tni_grad_get(x), (float[]){4, 5, 6}, 3, 0);
        tni_array_release(x);
        tni_array_release(y);
        tni_array_release(dy);
    }
    tni_cached_op_release(op);
    test_context_close(c);
}

static tni_array *integers(tni_context *c, int32_t a, int32_t b)
{
    const int64_t two = 2;
    const int32_t values[] = {a, b};
    tni_device *d;
    tni_array *made = NULL;

    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_array_create(c->space, d, TN_I32, 1, &two, "test", &made));
    assert_ok(tni_array_write(made, values, sizeof values));
    return made;
}

static void of_integers(void **state)
{
    tni_context *c = test_context(NULL);
    tni_cached_op *op = net(c, "elemwise_mul", NULL, NULL, 2);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *in[2] = {integers(c, 2, 3), integers(c, 5, 7)}, *y;
        int32_t got[2];

        assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
        y = recorded(c, hybrid ? op : NULL, "elemwise_mul", NULL, NULL, 2, in);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        assert_ok(tni_array_read(tni_grad_get(in[0]), got, sizeof got));
        assert_true(got[0] == 5 && got[1] == 7);
        tni_array_release(in[0]);
        tni_array_release(in[1]);
        tni_array_release(y);
    }
    tni_cached_op_release(op);
    test_context_close(c);
}

/* outer(inner(x), z), as a net */
static tni_cached_op *nested(tni_context *c, const char *inner, const char *outer, uint32_t inputs)
{
    tni_symbol *in[2] = {NULL}, *open[2] = {NULL}, *first = NULL, *whole = NULL;
    tni_cached_op *made = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &in[0]));
    assert_ok(tni_symbol_variable(c->ops, "z", &in[1]));
    assert_ok(tni_symbol_atomic(c->ops, inner, 0, NULL, NULL, "inner", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "inner", 1, NULL, &in[0], &first));
    assert_ok(tni_symbol_atomic(c->ops, outer, 0, NULL, NULL, "outer", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "outer", inputs, NULL, (tni_symbol *[]){first, in[1]}, &whole));
    assert_ok(tni_cached_op_create(c, whole, NULL, &made));
    for (int i = 0; i < 2; i++) {
        tni_symbol_release(in[i]);
        tni_symbol_release(open[i]);
    }
    tni_symbol_release(first);
    tni_symbol_release(whole);
    return made;
}

/* A backward that leaves the recorded call as it is reads views of the caller's arrays. */
static void retained_views(void **state)
{
    const tni_backward_options retain = {.retain = true};
    tni_context *c = test_context(NULL);
    tni_cached_op *op = nested(c, "Flatten", "elemwise_mul", 2);
    tni_array *in[2] = {test_array(c, 3, (int64_t[]){1, 2, 2}, (float[]){1, 2, 3, 4}),
                        test_array(c, 2, (int64_t[]){1, 4}, (float[]){5, 6, 7, 8})};
    tni_array *y;

    (void)state;
    assert_ok(tni_grad_attach(c, in[1], TN_MODE_WRITE, NULL));
    y = recorded(c, op, NULL, NULL, NULL, 2, in);
    for (int i = 0; i < 2; i++) {
        assert_ok(tni_array_fill(tni_grad_get(in[1]), 0));
        assert_ok(tni_backward(c, 1, &y, NULL, &retain));
        test_values(tni_grad_get(in[1]), (float[]){1, 2, 3, 4}, 4, 0);
    }
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_array_release(y);
    tni_cached_op_release(op);
    test_context_close(c);
}

/* And what it reads may have no elements. */
static void retained_nothing(void **state)
{
    const tni_backward_options retain = {.retain = true};
    tni_context *c = test_context(NULL);
    tni_cached_op *op = nested(c, "sin", "square", 1);
    tni_array *x = test_array(c, 2, (int64_t[]){0, 2}, NULL), *y;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    y = recorded(c, op, NULL, NULL, NULL, 1, &x);
    assert_ok(tni_backward(c, 1, &y, NULL, &retain));
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    assert_ok(tni_array_wait(tni_grad_get(x)));
    tni_array_release(x);
    tni_array_release(y);
    tni_cached_op_release(op);
    test_context_close(c);
}

/* Kernels that want to see empty tensors get an address with each: a sanitizer sees whoever gets none. */
static void no_elements(void **state)
{
    tni_context *c = test_context(NULL);
    tni_cached_op *op = net(c, "repeat", "repeats", "1", 1);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = test_array(c, 1, (int64_t[]){0}, NULL), *y;

        assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, NULL));
        y = recorded(c, hybrid ? op : NULL, "repeat", "repeats", "1", 1, &x);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        assert_ok(tni_array_wait(tni_grad_get(x)));
        tni_array_release(x);
        tni_array_release(y);
    }
    tni_cached_op_release(op);
    test_context_close(c);
}

/* ---- an operator whose gradient nobody computes -------------------------------------------------------- */

static tn_status cube_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->est_ns = 100;
    return TN_OK;
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        out[i] = in[i] * in[i] * in[i];
    return TN_OK;
}

static const tn_kernel cube = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                               .rank = 64,
                               .op = "test_cube",
                               .name = "cube",
                               .device = "cpu",
                               .isa = "",
                               .op_version_min = 1,
                               .op_version_max = 1,
                               .flags = TN_KERNEL_DETERMINISTIC,
                               .types = (const char *const[]){"*:f32", NULL},
                               .prepare = cube_prepare,
                               .run = cube_run};
TEST_KERNELS(kernel_table, "cpu", &cube);
TEST_PLUGIN(plugin, "half", &test_cube_ops.head, &kernel_table.head);

/* A recorded call goes well; the backward is refused, by name. */
static void without_kernel(void **state)
{
    tni_context *c = test_context((const char *[]){"device.default=cpu", NULL});
    tni_cached_op *op;

    (void)state;
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    op = net(c, "test_cube", NULL, NULL, 1);
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = test_vector(c, 2, (float[]){2, 3}), *y;

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        y = recorded(c, hybrid ? op : NULL, "test_cube", NULL, NULL, 1, &x);
        test_values(y, (float[]){8, 27}, 2, 0);
        assert_int_equal(tni_backward(c, 1, &y, NULL, NULL), TN_E_UNSUPPORTED);
        assert_non_null(strstr(tni_error_message(), "_backward_test_cube"));
        tni_array_release(x);
        tni_array_release(y);
    }
    tni_cached_op_release(op);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),          cmocka_unit_test(of_integers),
        cmocka_unit_test(retained_views), cmocka_unit_test(retained_nothing),
        cmocka_unit_test(no_elements),    cmocka_unit_test(without_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
