/* Strided arrays as inputs of nets: the backward pass reads them through a view operator. */
#include "context.h"

/* square(Reshape(x, (4,))) */
static tni_cached_op *net(tni_context *c)
{
    tni_symbol *x = NULL, *open[2] = {NULL}, *flat = NULL, *sq = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "Reshape", 1, (const char *[]){"shape"}, (const char *[]){"(4,)"},
                                "flat", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "flat", 1, NULL, &x, &flat));
    assert_ok(tni_symbol_atomic(c->ops, "square", 0, NULL, NULL, "sq", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "sq", 1, NULL, &flat, &sq));
    assert_ok(tni_cached_op_create(c, sq, NULL, &op));
    tni_symbol_release(open[0]);
    tni_symbol_release(open[1]);
    tni_symbol_release(x);
    tni_symbol_release(flat);
    tni_symbol_release(sq);
    return op;
}

static void gradient_through_a_view(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *whole = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}), *x = NULL, *y = NULL;
    tni_cached_op *op = net(c);

    (void)state;
    assert_ok(tni_array_view(whole, 0, 2, (int64_t[]){2, 2}, (int64_t[]){1, 2}, &x)); /* the transpose */
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, false);
    assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    test_record(false, false);
    test_values(y, (float[]){1, 9, 4, 16}, 4, 0);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(tni_grad_get(x), (float[]){2, 6, 4, 8}, 4, 0);
    tni_array_release(whole);
    tni_array_release(x);
    tni_array_release(y);
    tni_cached_op_release(op);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradient_through_a_view)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
