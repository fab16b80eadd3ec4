/*
 * Calls that their site knows: they run on the caller, count as such, and differ from a first call in
 * nothing. A failure sticks to the new outputs, and goes on from there.
 */
#include "context.h"
#include "support/static_plugin.h"

#include <string.h>

/* ---- y = x, for x that are not negative ---------------------------------------------------------------- */

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static const char *const names_x[] = {"x", NULL}, *const names_y[] = {"y", NULL};
static const tn_op stumble =
    TEST_OP(.name = "test_stumble", .inputs = names_x, .outputs = names_y, .shape = same_shape);
TEST_OPS(op_table, "stumbles", &stumble);

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->est_ns = 100;
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++) {
        if (in[i] < 0)
            return tn_fail(err, TN_E_ARG, "an element is negative");
        out[i] = in[i];
    }
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel kernel =
    TEST_KERNEL("test_stumble", "cpu", .name = "plain", .types = types, .prepare = prepare, .run = run);
TEST_KERNELS(kernel_table, "cpu", &kernel);
TEST_PLUGIN(plugin, "stumbles", &op_table.head, &kernel_table.head);

/* ---- the tests ----------------------------------------------------------------------------------------- */

static uint64_t calls_on_caller(tni_context *c)
{
    tni_exec_stats s;

    tni_exec_stats_get(c, &s);
    return s.fast_path;
}

static tni_array *call(tni_site *site, tni_array *x)
{
    tni_array *y = NULL;

    assert_ok(tni_invoke(site, 1, &x, 1, &y));
    return y;
}

static float first_of(tni_array *a)
{
    float values[2] = {0};

    assert_ok(tni_array_read(a, values, sizeof values));
    return values[0];
}

static void test_failure(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *good = test_array(c, 1, (const int64_t[]){2}, (const float[]){3, 4});
    tni_array *bad = test_array(c, 1, (const int64_t[]){2}, (const float[]){3, -1}), *y, *z;
    const uint64_t before = calls_on_caller(c);
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    assert_ok(tni_site_create(c, "test_stumble", 0, NULL, NULL, &site));
    for (int i = 0; i < 6; i++) {
        y = call(site, i == 3 ? bad : good);
        z = call(site, y); /* of a failure: queued, and passed over */
        if (i == 3) {
            assert_int_equal(tni_array_wait(y), TN_E_ARG);
            assert_non_null(strstr(tn_error_text(), "an element is negative"));
            assert_int_equal(tni_array_wait(z), TN_E_ARG);
        } else {
            assert_true(first_of(y) == 3 && first_of(z) == 3);
        }
        tni_array_release(y);
        tni_array_release(z);
    }
    assert_int_equal(calls_on_caller(c) - before, 11);
    tni_site_release(site);
    tni_array_release(good);
    tni_array_release(bad);
    test_context_close(c);
}

/* NULL, an array of another shape, and then the known one again. */
static void test_others_between(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *two = test_array(c, 1, (const int64_t[]){2}, (const float[]){1, 2});
    tni_array *four = test_array(c, 2, (const int64_t[]){2, 2}, (const float[]){5, 6, 7, 8}), *y = NULL;
    tni_array *none[] = {NULL, NULL}, *pair[] = {two, four};
    tni_site *site = NULL;

    (void)state;
    assert_ok(tni_site_create(c, "elemwise_add", 0, NULL, NULL, &site));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tni_invoke(site, 2, none, 1, &y), TN_E_ARG);
        assert_int_equal(tni_invoke(site, 2, pair, 1, &y), TN_E_SHAPE);
        assert_int_equal(tni_invoke(site, 1, &two, 1, &y), TN_E_ARG);
        assert_null(y);
        for (int k = 0; k < 2; k++) {
            tni_array *const same[] = {k ? four : two, k ? four : two};

            assert_ok(tni_invoke(site, 2, same, 1, &y));
            assert_true(k ? y->ndim == 2 : first_of(y) == 2);
            tni_array_release(y);
            y = NULL;
        }
    }
    tni_site_release(site);
    tni_array_release(two);
    tni_array_release(four);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_others_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
