/* Arrays that the caller gives for results: in any form, over inputs, for views too. */
#include "context.h"

#include <math.h>

/* Three elements among sevens. */
static tni_array *every_second(tni_context *c, tni_array **whole)
{
    tni_array *view = NULL;

    *whole = test_vector(c, 8, (float[]){7, 7, 7, 7, 7, 7, 7, 7});
    assert_ok(tni_array_view(*whole, 1, 1, (int64_t[]){3}, (int64_t[]){2}, &view));
    return view;
}

/* Kernels that take strides prepare for a row-major output; what lies between the elements stays. */
static void with_gaps(void **state)
{
    static const char *const ops[] = {"elemwise_add", "broadcast_add", "_maximum"};
    tni_context *c = test_context(NULL);
    tni_array *in[2] = {test_vector(c, 3, (float[]){1, 2, 3}), test_vector(c, 3, (float[]){1, 2, 3})};

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const float k = i == 2 ? 1 : 2;
        tni_array *whole, *out = every_second(c, &whole);

        assert_ok(tni_invoke_text(c, ops[i], 2, in, 0, NULL, NULL, 1, &out, NULL));
        test_values(whole, (float[]){7, k, 7, 2 * k, 7, 3 * k, 7, 7}, 8, 0);
        tni_array_release(out);
        tni_array_release(whole);
    }
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    test_context_close(c);
}

/* The transpose takes the elements where they belong. */
static void turned(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}), *out = NULL,
              *whole = test_vector(c, 4, (float[]){0, 0, 0, 0});

    (void)state;
    assert_ok(tni_array_view(whole, 0, 2, (int64_t[]){2, 2}, (int64_t[]){1, 2}, &out));
    assert_ok(tni_invoke_text(c, "square", 1, &x, 0, NULL, NULL, 1, &out, NULL));
    test_values(out, (float[]){1, 4, 9, 16}, 4, 0);
    test_values(whole, (float[]){1, 9, 4, 16}, 4, 0);
    tni_array_release(x);
    tni_array_release(out);
    tni_array_release(whole);
    test_context_close(c);
}

/* A view operator writes a copy into an array that is given, as a net does. */
static void of_views(void **state)
{
    const char *names[] = {"shape"}, *texts[] = {"(3,)"};
    tni_context *c = test_context(NULL);
    tni_array *x = test_array(c, 2, (int64_t[]){1, 3}, (float[]){1, 2, 3}), *whole,
              *out = every_second(c, &whole), *wrong = x;

    (void)state;
    assert_ok(tni_invoke_text(c, "Reshape", 1, &x, 1, names, texts, 1, &out, NULL));
    test_values(whole, (float[]){7, 1, 7, 2, 7, 3, 7, 7}, 8, 0);
    assert_ok(tni_array_fill(x, 5));
    test_values(out, (float[]){1, 2, 3}, 3, 0);
    assert_int_equal(tni_invoke_text(c, "Flatten", 1, &out, 0, NULL, NULL, 1, &wrong, NULL), TN_E_SHAPE);
    assert_ptr_equal(wrong, x);
    tni_array_release(x);
    tni_array_release(out);
    tni_array_release(whole);
    test_context_close(c);
}

/* The gradient goes through the copy. */
static void of_recorded_views(void **state)
{
    const char *names[] = {"shape"}, *texts[] = {"(3,)"};
    tni_context *c = test_context(NULL);
    tni_array *x = test_array(c, 2, (int64_t[]){1, 3}, (float[]){1, 2, 3}), *y,
              *out = test_vector(c, 3, (float[]){0, 0, 0});

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, false);
    assert_ok(tni_invoke_text(c, "Reshape", 1, &x, 1, names, texts, 1, &out, NULL));
    y = test_op(c, "square", 1, &out, NULL);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(tni_grad_get(x), (float[]){2, 4, 6}, 3, 0);
    tni_array_release(x);
    tni_array_release(y);
    tni_array_release(out);
    test_context_close(c);
}

/* all_finite with init_output=False: what MXNet's kernel leaves of the array that it finds. */
static void old_ones(void **state)
{
    static const struct {
        float before, x, after;
    } rows[] = {{0, 1, 0}, {1, 1, 1}, {1, INFINITY, 0}, {3, 1, 3}};
    const char *names[] = {"init_output"}, *texts[] = {"False"};
    tni_context *c = test_context(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int many = 0; many < 2; many++) {
            const char *const op = many ? "multi_all_finite" : "all_finite";
            tni_array *out = test_vector(c, 1, &rows[i].before), *x = test_vector(c, 1, &rows[i].x);
            tni_array *made = NULL;

            assert_ok(tni_invoke_text(c, op, 1, &x, 1, names, texts, 1, &out, NULL));
            test_values(out, &rows[i].after, 1, 0);
            assert_ok(tni_invoke_text(c, "all_finite", 1, &x, 1, names, texts, 1, &made, NULL));
            test_values(made, (float[]){rows[i].x == 1}, 1, 0);
            tni_array_release(made);
            tni_array_release(out);
            tni_array_release(x);
        }
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_gaps), cmocka_unit_test(old_ones),
        cmocka_unit_test(turned),
        cmocka_unit_test(of_views),
        cmocka_unit_test(of_recorded_views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
