/* Eager operators through signatures, kernels and engine. */
#include "context.h"

static void adds(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *in[2] = {test_vector(c, 4, (float[]){1, 2, 3, 4}),
                        test_vector(c, 4, (float[]){10, 20, 30, 40})};
    tni_array *out = test_op(c, "elemwise_add", 2, in, NULL);
    tni_array *twice = test_op(c, "elemwise_add", 2, (tni_array *[]){out, out}, NULL);

    (void)state;
    test_values(out, (float[]){11, 22, 33, 44}, 4, 0);
    test_values(twice, (float[]){22, 44, 66, 88}, 4, 0);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_array_release(out);
    tni_array_release(twice);
    test_context_close(c);
}

static void site_repeats(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 4, (float[]){1, 2, 3, 4}), *out = NULL;
    tni_site *site = NULL;
    tni_exec_stats stats;

    (void)state;
    assert_ok(tni_site_create(c, "_mul_scalar", 1, (const char *[]){"scalar"}, (const char *[]){"2"}, &site));
    for (int i = 0; i < 100; i++) {
        assert_ok(tni_site_set(site, 0, tn_value_of_float(i)));
        out = NULL;
        assert_ok(tni_invoke(site, 1, &x, 1, &out));
        test_values(out, (float[]){(float)i, 2.0f * (float)i, 3.0f * (float)i, 4.0f * (float)i}, 4, 0);
        tni_array_release(out);
    }
    tni_exec_stats_get(c, &stats);
    assert_int_equal(stats.misses, 1); /* the scalar is no part of the signature */
    tni_site_release(site);
    tni_array_release(x);
    test_context_close(c);
}

static void refuses(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *a = test_vector(c, 4, (float[]){1, 2, 3, 4}), *b = test_vector(c, 3, (float[]){1, 2, 3}),
              *out = NULL;

    (void)state;
    assert_int_equal(tni_invoke_text(c, "no_such_op", 1, &a, 0, NULL, NULL, 1, &out, NULL), TN_E_KEY);
    assert_int_equal(
        tni_invoke_text(c, "elemwise_add", 2, (tni_array *[]){a, b}, 0, NULL, NULL, 1, &out, NULL),
        TN_E_SHAPE);
    assert_int_equal(tni_invoke_text(c, "elemwise_add", 1, &a, 0, NULL, NULL, 1, &out, NULL), TN_E_ARG);
    assert_int_equal(
        tni_invoke_text(c, "elemwise_add", 2, (tni_array *[]){a, NULL}, 0, NULL, NULL, 1, &out, NULL),
        TN_E_ARG);
    assert_int_equal(
        tni_invoke_text(c, "elemwise_add", 2, (tni_array *[]){a, a}, 0, NULL, NULL, 0, &out, NULL), TN_E_ARG);
    assert_null(out);
    tni_array_release(a);
    tni_array_release(b);
    test_context_close(c);
}

static void writes_given(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *a = test_vector(c, 4, (float[]){1, 2, 3, 4}), *b = test_vector(c, 3, (float[]){0, 0, 0}),
              *wrong = b;

    (void)state;
    for (int i = 0; i < 3; i++) /* in place: a += a */
        assert_ok(tni_invoke_text(c, "elemwise_add", 2, (tni_array *[]){a, a}, 0, NULL, NULL, 1, &a, NULL));
    test_values(a, (float[]){8, 16, 24, 32}, 4, 0);
    assert_int_equal(
        tni_invoke_text(c, "elemwise_add", 2, (tni_array *[]){a, a}, 0, NULL, NULL, 1, &wrong, NULL),
        TN_E_SHAPE);
    test_values(b, (float[]){0, 0, 0}, 3, 0);
    tni_array_release(a);
    tni_array_release(b);
    test_context_close(c);
}

static void strided_inputs(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *a = test_array(c, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6}), *t = NULL, *s, *r;

    (void)state;
    assert_ok(tni_array_view(a, 0, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, &t)); /* the transpose */
    s = test_op(c, "elemwise_add", 2, (tni_array *[]){t, t}, NULL);
    test_values(s, (float[]){2, 8, 4, 10, 6, 12}, 6, 0);
    r = test_op(c, "Reshape", 1, &t, "shape=(6,)", NULL);
    test_values(r, (float[]){1, 4, 2, 5, 3, 6}, 6, 0);
    tni_array_release(a);
    tni_array_release(t);
    tni_array_release(s);
    tni_array_release(r);
    test_context_close(c);
}

/* Arrays without elements, and one that was never written: anything may be in it, but it has memory. */
static void empty_and_unwritten(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *e = test_array(c, 2, (int64_t[]){0, 3}, NULL), *u = test_vector(c, 2, NULL), *out;

    (void)state;
    out = test_op(c, "elemwise_add", 2, (tni_array *[]){e, e}, NULL);
    assert_int_equal(tni_array_count(out), 0);
    assert_ok(tni_array_wait(out));
    tni_array_release(out);
    out = test_op(c, "_plus_scalar", 1, &u, "scalar=2", NULL);
    assert_ok(tni_array_wait(out));
    tni_array_release(out);
    tni_array_release(e);
    tni_array_release(u);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds),           cmocka_unit_test(site_repeats),
        cmocka_unit_test(refuses),        cmocka_unit_test(writes_given),
        cmocka_unit_test(strided_inputs), cmocka_unit_test(empty_and_unwritten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
