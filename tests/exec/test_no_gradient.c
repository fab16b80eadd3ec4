/* Operators without a gradient: what is recorded over them, call by call and as a net; gradients that nobody
 * reads. */
#include "context.h"
#include "net.h"

/* sq = square(x); step = sgd_update(sq, x): an operator without a gradient. */
static tni_cached_op *net(tni_context *c)
{
    tni_symbol *x = NULL, *open[2] = {NULL}, *sq = NULL, *step = NULL, *both = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "square", 0, NULL, NULL, "sq", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "sq", 1, NULL, &x, &sq));
    assert_ok(tni_symbol_atomic(c->ops, "sgd_update", 1, (const char *[]){"lr"}, (const char *[]){"1"},
                                "step", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "step", 2, NULL, (tni_symbol *[]){sq, x}, &step));
    assert_ok(tni_symbol_group(2, (tni_symbol *[]){sq, step}, &both));
    assert_ok(tni_cached_op_create(c, both, NULL, &op));
    tni_symbol_release(open[0]);
    tni_symbol_release(open[1]);
    tni_symbol_release(x);
    tni_symbol_release(sq);
    tni_symbol_release(step);
    tni_symbol_release(both);
    return op;
}

/* Recording goes well; only a backward pass through the operator is refused. */
static void refused_by_backward(tni_context *c, tni_cached_op *op)
{
    tni_array *x = test_vector(c, 2, (float[]){2, 3}), *out[2] = {NULL, NULL};

    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, false);
    if (op) {
        assert_ok(tni_cached_op_call(op, 1, &x, 2, out));
    } else {
        out[0] = test_op(c, "square", 1, &x, NULL);
        out[1] = test_op(c, "sgd_update", 2, (tni_array *[]){out[0], x}, "lr=1", NULL);
    }
    test_record(false, false);
    test_values(out[1], (float[]){2, 6}, 2, 0);
    assert_int_equal(tni_backward(c, 1, &out[1], NULL, NULL), TN_E_UNSUPPORTED);
    assert_ok(tni_backward(c, 1, &out[0], NULL, NULL));
    test_values(tni_grad_get(x), (float[]){4, 6}, 2, 0);
    tni_array_release(out[0]);
    tni_array_release(out[1]);
    tni_array_release(x);
}

static void call_by_call(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    refused_by_backward(c, NULL);
    test_context_close(c);
}

static void as_a_net(void **state)
{
    tni_context *c = test_context(NULL);
    tni_cached_op *op = net(c);

    (void)state;
    refused_by_backward(c, op);
    tni_cached_op_release(op);
    test_context_close(c);
}

/* A gradient of zeros beside it goes back all the same, from integers too. */
static void zero_beside_it(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *x = NULL, *open[2] = {NULL}, *step = NULL, *side = NULL, *both = NULL;
    tni_array *in = test_vector(c, 2, (float[]){2, -3}), *out[2] = {NULL, NULL};
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "sgd_update", 1, (const char *[]){"lr"}, (const char *[]){"1"},
                                "step", &open[0]));
    assert_ok(tni_symbol_compose(open[0], "step", 2, NULL, (tni_symbol *[]){x, x}, &step));
    assert_ok(tni_symbol_atomic(c->ops, "one_hot", 2, (const char *[]){"depth", "dtype"},
                                (const char *[]){"2", "int64"}, "side", &open[1]));
    assert_ok(tni_symbol_compose(open[1], "side", 1, NULL, &x, &side));
    assert_ok(tni_symbol_group(2, (tni_symbol *[]){step, side}, &both));
    assert_ok(tni_cached_op_create(c, both, NULL, &op));
    assert_ok(tni_grad_attach(c, in, TN_MODE_WRITE, NULL));
    assert_ok(tni_array_fill(tni_grad_get(in), 7));
    test_record(true, false);
    assert_ok(tni_cached_op_call(op, 1, &in, 2, out));
    test_record(false, false);
    assert_int_equal(tni_backward(c, 1, &out[0], NULL, NULL), TN_E_UNSUPPORTED);
    assert_ok(tni_backward(c, 1, &out[1], NULL, NULL));
    test_values(tni_grad_get(in), (float[]){0, 0}, 2, 0);
    tni_cached_op_release(op);
    for (int i = 0; i < 2; i++) {
        tni_symbol_release(open[i]);
        tni_array_release(out[i]);
    }
    tni_symbol_release(x);
    tni_symbol_release(step);
    tni_symbol_release(side);
    tni_symbol_release(both);
    tni_array_release(in);
    test_context_close(c);
}

/* Gradients of y = x w' + b: those of x are computed where it wants some, and the others are as ever. */
static void unread_ones(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        const bool off = row & 1, wants_x = row & 2;
        tni_context *c = test_context((const char *[]){off ? "compile.passes_off=unread" : NULL, NULL});
        tni_array *in[3] = {test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}),
                            test_array(c, 2, (int64_t[]){2, 2}, (float[]){2, 3, 5, 7}),
                            test_vector(c, 2, (float[]){1, -1})};
        tni_symbol *parts[] = {net_variable(c, "x"), net_variable(c, "w"), net_variable(c, "b")};
        tni_symbol *s = net_op(c, "FullyConnected", 3, parts, "num_hidden=2", NULL);
        tni_array *y = NULL;
        tni_cached_op *op = NULL;

        assert_ok(tni_cached_op_create(c, s, NULL, &op));
        for (int i = wants_x ? 0 : 1; i < 3; i++)
            assert_ok(tni_grad_attach(c, in[i], TN_MODE_WRITE, NULL));
        for (int call = 0; call < 2; call++) {
            test_record(true, false);
            assert_ok(tni_cached_op_call(op, 3, in, 1, &y));
            test_record(false, false);
            assert_ok(tni_backward(c, 1, &y, NULL, NULL));
            tni_array_release(y);
            y = NULL;
        }
        if (wants_x)
            test_values(tni_grad_get(in[0]), (float[]){7, 10, 7, 10}, 4, 0);
        test_values(tni_grad_get(in[1]), (float[]){4, 6, 4, 6}, 4, 0);
        test_values(tni_grad_get(in[2]), (float[]){2, 2}, 2, 0);
        tni_cached_op_release(op);
        tni_symbol_release(s);
        for (int i = 0; i < 3; i++) {
            tni_symbol_release(parts[i]);
            tni_array_release(in[i]);
        }
        test_context_close(c);
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_by_call),
        cmocka_unit_test(as_a_net),
        cmocka_unit_test(zero_beside_it),
        cmocka_unit_test(unread_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
