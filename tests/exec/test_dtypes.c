/* A data type or shape that does not follow from anything: the same refusal call by call and as a net. */
#include "context.h"

static tn_status one_element(tn_infer *i)
{
    *i->out_shape[0] = (tn_shape){.ndim = 1, .dim = {1}};
    return TN_OK;
}

static tn_status nothing_known(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

static const tn_op open_op = {.struct_size = TN_END(tn_op, gradient),
                              .version = 1,
                              .name = "test_open",
                              .doc = "says nothing of its output's data type",
                              .outputs = (const char *const[]){"output", NULL},
                              .shape = one_element,
                              .dtype = nothing_known};

static void not_known(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *open = NULL, *net = NULL;
    tni_cached_op *op = NULL;
    tni_array *out = NULL;

    (void)state;
    assert_ok(tni_opset_add(c->ops, &open_op, NULL));
    assert_int_equal(tni_invoke_text(c, "test_open", 0, NULL, 0, NULL, NULL, 1, &out, NULL), TN_E_DTYPE);
    assert_ok(tni_symbol_atomic(c->ops, "test_open", 0, NULL, NULL, "open", &open));
    assert_ok(tni_symbol_compose(open, "open", 0, NULL, NULL, &net));
    assert_ok(tni_cached_op_create(c, net, NULL, &op));
    assert_int_equal(tni_cached_op_call(op, 0, NULL, 1, &out), TN_E_DTYPE);
    assert_null(out);
    tni_cached_op_release(op);
    tni_symbol_release(open);
    tni_symbol_release(net);
    test_context_close(c);
}

/* The shape of what reads nothing, too: it is the attributes that leave it open,
 * no kernel that is missing. */
static void no_shape(void **state)
{
    static const char *const shapes[] = {"()", "(-1, 2)"};
    tni_context *c = test_context(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *names[] = {"shape"};
        tni_symbol *open = NULL, *net = NULL;
        tni_cached_op *op = NULL;
        tni_array *out = NULL;

        assert_int_equal(tni_invoke_text(c, "_zeros", 0, NULL, 1, names, &shapes[i], 1, &out, NULL),
                         TN_E_SHAPE);
        assert_ok(tni_symbol_atomic(c->ops, "_zeros", 1, names, &shapes[i], "open", &open));
        assert_ok(tni_symbol_compose(open, "open", 0, NULL, NULL, &net));
        assert_ok(tni_cached_op_create(c, net, NULL, &op));
        assert_int_equal(tni_cached_op_call(op, 0, NULL, 1, &out), TN_E_SHAPE);
        assert_null(out);
        tni_cached_op_release(op);
        tni_symbol_release(open);
        tni_symbol_release(net);
    }
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(not_known), cmocka_unit_test(no_shape)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
