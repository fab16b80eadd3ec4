/*
 * What may be a head, and whose gradients a pass writes. A head is what depends on an array with a gradient,
 * through operators that let none through as well; then zeros come out. A leaf counts if it leads to a head,
 * call by call and in a net alike. Nothing else is differentiated, and nothing changes then.
 */
#include "context.h"

#include <string.h>

static void assert_no_graph(tn_status st, const char *head)
{
    assert_int_equal(st, TN_E_STATE);
    assert_non_null(strstr(tni_error_message(), head));
    assert_non_null(strstr(tni_error_message(), "because it is not in a computational graph"));
}

/* op(a, b) of symbols; b may be NULL. */
static tni_symbol *on(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b)
{
    tni_symbol *open = NULL, *done = NULL, *in[] = {a, b};

    assert_ok(tni_symbol_atomic(c->ops, op, 0, NULL, NULL, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, b ? 2 : 1, NULL, in, &done));
    tni_symbol_release(open);
    return done;
}

/* x, w -> BlockGrad(x) w, BlockGrad(x), 2 w: as a net or call by call. */
static void outputs(tni_context *c, bool net, tni_array *x, tni_array *w, tni_array **out)
{
    tni_symbol *s[2] = {NULL}, *parts[3], *all = NULL;
    tni_cached_op *op = NULL;

    if (!net) {
        out[1] = test_op(c, "BlockGrad", 1, &x, NULL);
        out[0] = test_op(c, "elemwise_mul", 2, (tni_array *[]){out[1], w}, NULL);
        out[2] = test_op(c, "elemwise_add", 2, (tni_array *[]){w, w}, NULL);
        return;
    }
    assert_ok(tni_symbol_variable(c->ops, "x", &s[0]));
    assert_ok(tni_symbol_variable(c->ops, "w", &s[1]));
    parts[1] = on(c, "BlockGrad", s[0], NULL);
    parts[0] = on(c, "elemwise_mul", parts[1], s[1]);
    parts[2] = on(c, "elemwise_add", s[1], s[1]);
    assert_ok(tni_symbol_group(3, parts, &all));
    assert_ok(tni_cached_op_create(c, all, NULL, &op));
    assert_ok(tni_cached_op_call(op, 2, (tni_array *[]){x, w}, 3, out));
    tni_cached_op_release(op);
    for (int i = 0; i < 3; i++)
        tni_symbol_release(parts[i]);
    tni_symbol_release(s[0]);
    tni_symbol_release(s[1]);
    tni_symbol_release(all);
}

typedef struct leaves {
    tni_array *x, *w, *out[3];
} leaves;

/* Gradients hold 7 before. Modes: TN_MODE_NONE leaves the array a constant. */
static leaves recorded(tni_context *c, bool net, uint32_t x_mode, uint32_t w_mode)
{
    leaves l = {.x = test_vector(c, 2, (float[]){1, 2}), .w = test_vector(c, 2, (float[]){3, 5})};

    if (x_mode != TN_MODE_NONE) {
        assert_ok(tni_grad_attach(c, l.x, x_mode, NULL));
        assert_ok(tni_array_fill(tni_grad_get(l.x), 7));
    }
    if (w_mode != TN_MODE_NONE) {
        assert_ok(tni_grad_attach(c, l.w, w_mode, NULL));
        assert_ok(tni_array_fill(tni_grad_get(l.w), 7));
    }
    test_record(true, true);
    outputs(c, net, l.x, l.w, l.out);
    test_record(false, false);
    return l;
}

static void expect(const tni_array *leaf, float first, float second)
{
    test_values(tni_grad_get(leaf), (float[]){first, second}, 2, 0);
}

static void leaves_release(leaves *l)
{
    tni_array_release(l->x);
    tni_array_release(l->w);
    for (int i = 0; i < 3; i++)
        tni_array_release(l->out[i]);
}

/* No gradient goes through BlockGrad, yet its output is in the graph: zeros, and nothing that is added. */
static void blocked(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    for (int net = 0; net < 2; net++) {
        leaves l = recorded(c, net, TN_MODE_WRITE, TN_MODE_WRITE);

        assert_ok(tni_backward(c, 1, &l.out[1], NULL, NULL));
        expect(l.x, 0, 0);
        expect(l.w, 7, 7); /* does not lead there */
        leaves_release(&l);
        l = recorded(c, net, TN_MODE_ADD, TN_MODE_WRITE);
        assert_ok(tni_backward(c, 1, &l.out[1], NULL, NULL));
        expect(l.x, 7, 7);
        leaves_release(&l);
        l = recorded(c, net, TN_MODE_WRITE, TN_MODE_ADD);
        assert_ok(tni_backward(c, 2, l.out, NULL, NULL)); /* one with a gradient, one without */
        expect(l.x, 0, 0);
        expect(l.w, 8, 9);
        leaves_release(&l);
    }
    test_context_close(c);
}

/* Of a net with several outputs the leaves that lead to the heads count, as call by call. */
static void one_of_several(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    for (int net = 0; net < 2; net++) {
        leaves l = recorded(c, net, TN_MODE_WRITE, TN_MODE_WRITE);

        assert_ok(tni_backward(c, 1, &l.out[2], NULL, NULL));
        expect(l.x, 7, 7);
        expect(l.w, 2, 2);
        leaves_release(&l);
    }
    test_context_close(c);
}

/* A head that depends on no array with a gradient is refused, alone or among others; all stays as it was. */
static void not_in_the_graph(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    for (int net = 0; net < 2; net++) {
        leaves l = recorded(c, net, TN_MODE_NONE, TN_MODE_WRITE);

        assert_no_graph(tni_backward(c, 1, &l.out[1], NULL, NULL), "head 0");
        assert_no_graph(tni_backward(c, 2, l.out, NULL, NULL), "head 1");
        assert_no_graph(tni_backward(c, 1, &l.x, NULL, NULL), "head 0");
        expect(l.w, 7, 7);
        assert_ok(tni_backward(c, 1, &l.out[0], NULL, NULL));
        expect(l.w, 1, 2);
        leaves_release(&l);
    }
    test_context_close(c);
}

/* An array with a gradient is its own head: the gradient that arrives is its gradient. */
static void leaf_as_head(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *more = test_array(c, 2, (int64_t[]){2, 2}, NULL), *given = test_vector(c, 2, (float[]){4, 6});
    leaves l = recorded(c, false, TN_MODE_WRITE, TN_MODE_ADD);

    (void)state;
    assert_ok(tni_backward(c, 1, &l.x, NULL, NULL));
    expect(l.x, 1, 1);
    expect(l.w, 7, 7);
    assert_ok(tni_backward(c, 1, &l.x, &given, NULL));
    expect(l.x, 4, 6);
    assert_ok(
        tni_backward(c, 3, (tni_array *[]){l.w, l.out[2], l.w}, (tni_array *[]){given, NULL, given}, NULL));
    expect(l.x, 4, 6);
    expect(l.w, 7 + 4 + 2 + 4, 7 + 6 + 2 + 6);
    assert_ok(tni_grad_attach(c, more, TN_MODE_WRITE, NULL)); /* of another shape: a pass of its own */
    assert_ok(tni_backward(c, 1, &more, NULL, NULL));
    test_values(tni_grad_get(more), (float[]){1, 1, 1, 1}, 4, 0);
    assert_ok(tni_grad_attach(c, more, TN_MODE_NONE, NULL));
    assert_int_equal(tni_backward(c, 1, &more, NULL, NULL), TN_E_STATE);
    leaves_release(&l);
    tni_array_release(more);
    tni_array_release(given);
    test_context_close(c);
}

/* Gradients of variables alone: of a head that is another leaf, and of one that nothing leads from. */
static void of_variables(void **state)
{
    tni_context *c = test_context(NULL);

    (void)state;
    for (int net = 0; net < 2; net++) {
        leaves l = recorded(c, net, TN_MODE_WRITE, TN_MODE_ADD);
        const tni_backward_options retain = {.retain = true};
        tni_array *made[2] = {NULL};

        assert_ok(tni_grad(c, 2, (tni_array *[]){l.x, l.out[2]}, NULL, 1, &l.w, &retain, made));
        test_values(made[0], (float[]){2, 2}, 2, 0);
        tni_array_release(made[0]);
        assert_ok(tni_grad(c, 1, &l.out[1], NULL, 2, (tni_array *[]){l.x, l.w}, NULL, made));
        test_values(made[0], (float[]){0, 0}, 2, 0);
        test_values(made[1], (float[]){0, 0}, 2, 0);
        expect(l.x, 7, 7);
        expect(l.w, 7, 7);
        tni_array_release(made[0]);
        tni_array_release(made[1]);
        leaves_release(&l);
    }
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked),      cmocka_unit_test(one_of_several), cmocka_unit_test(not_in_the_graph),
        cmocka_unit_test(leaf_as_head), cmocka_unit_test(of_variables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
