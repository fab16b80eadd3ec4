/* Composition, names, lists, groups, substitution. */
#include "graph/support.h"

static void automatic_names(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "data"), *a, *b, *c;

    (void)state;
    assert_ok(tni_symbol_prefix_push("net_"));
    a = op1(ops, "Convolution", "kernel=(5, 5);num_filter=20", NULL, x);
    b = op1(ops, "Convolution", "kernel=(3, 3);num_filter=8;no_bias=True", NULL, a);
    c = op1(ops, "FullyConnected", "num_hidden=10", NULL, b);
    assert_names(c, TNI_LIST_ARGUMENTS,
                 "data net_convolution0_weight net_convolution0_bias net_convolution1_weight "
                 "net_fullyconnected0_weight net_fullyconnected0_bias");
    assert_names(c, TNI_LIST_OUTPUTS, "net_fullyconnected0_output");
    tni_symbol_prefix_pop();
    tni_symbol_release(x);
    tni_symbol_release(a);
    tni_symbol_release(b);
    tni_symbol_release(c);
    test_ops_close(ops);
}

static void lists(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = take1(ops, "t_state", NULL, "bn", var(ops, "x")), *pair, *all, *kids, *none = NULL,
               *second;
    uint32_t index = 99;

    (void)state;
    assert_names(s, TNI_LIST_ARGUMENTS, "x");
    assert_names(s, TNI_LIST_AUX, "bn_state");
    assert_names(s, TNI_LIST_INPUTS, "x bn_state");
    assert_names(s, TNI_LIST_OUTPUTS, "bn_output");
    pair = take1(ops, "t_pair", NULL, "p", s);
    assert_names(pair, TNI_LIST_OUTPUTS, "p_first p_second");
    assert_ok(tni_symbol_find(pair, "p_second", &index));
    assert_int_equal(index, 1);
    assert_fails(TN_E_KEY, "did you mean \"p_second\"", tni_symbol_find(pair, "p_secnd", &index));
    assert_ok(tni_symbol_internals(pair, &all));
    assert_names(all, TNI_LIST_OUTPUTS, "x bn_state bn_output p_first p_second");
    assert_ok(tni_symbol_output(all, 2, &second));
    assert_names(second, TNI_LIST_OUTPUTS, "bn_output");
    assert_int_equal(tni_symbol_output(all, 5, &none), TN_E_ARG);
    assert_ok(tni_symbol_children(second, &kids));
    assert_names(kids, TNI_LIST_OUTPUTS, "x bn_state");
    tni_symbol_release(second);
    assert_ok(tni_symbol_children(kids, &second));
    assert_null(second);
    tni_symbol_release(kids);
    tni_symbol_release(all);
    tni_symbol_release(pair);
    test_ops_close(ops);
}

static void by_name(void **state)
{
    const char *const keys[] = {"rhs"}, *const wrong[] = {"rsh"};
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *atom = NULL, *s = NULL;

    (void)state;
    assert_ok(tni_symbol_atomic(ops, "t_mul", 0, NULL, NULL, NULL, &atom));
    assert_ok(tni_symbol_compose(atom, "m", 1, keys, &x, &s));
    assert_names(s, TNI_LIST_ARGUMENTS, "m_lhs x");
    tni_symbol_release(s);
    s = NULL;
    assert_fails(TN_E_KEY, "it takes lhs, rhs", tni_symbol_compose(atom, "m", 1, wrong, &x, &s));
    assert_null(s);
    tni_symbol_release(atom);
    tni_symbol_release(x);
    test_ops_close(ops);
}

static void refusals(void **state)
{
    const char *const names[] = {"num_hidden"}, *const texts[] = {"many"};
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *pair = op1(ops, "t_pair", NULL, "p", x), *atom = NULL, *s = NULL;
    tni_symbol *const three[] = {x, x, x}, *const wide[] = {pair};
    tni_graph *g = NULL;

    (void)state;
    assert_fails(TN_E_KEY, "Convolution", tni_symbol_atomic(ops, "Convolutoin", 0, NULL, NULL, NULL, &s));
    assert_fails(TN_E_ATTR, "num_hidden",
                 tni_symbol_atomic(ops, "FullyConnected", 1, names, texts, NULL, &s));
    assert_fails(TN_E_ATTR, "num_hidden", tni_symbol_atomic(ops, "FullyConnected", 0, NULL, NULL, NULL, &s));
    assert_ok(tni_symbol_atomic(ops, "t_mul", 0, NULL, NULL, NULL, &atom));
    assert_fails(TN_E_ARG, "takes 2 inputs, but 3", tni_symbol_compose(atom, "m", 3, NULL, three, &s));
    assert_fails(TN_E_ARG, "2 outputs", tni_symbol_compose(atom, "m", 1, NULL, wide, &s));
    assert_int_equal(tni_graph_of(atom, &g), TN_E_ARG); /* its inputs are open */
    assert_int_equal(tni_symbol_variable(ops, "", &s), TN_E_ARG);
    assert_int_equal(tni_symbol_group(0, NULL, &s), TN_E_ARG);
    tni_symbol_release(atom);
    assert_ok(tni_symbol_atomic(ops, "t_state", 0, NULL, NULL, NULL, &atom));
    tni_symbol *first = NULL;
    assert_ok(tni_symbol_output(pair, 0, &first));
    assert_fails(TN_E_ARG, "must be a variable",
                 tni_symbol_compose(atom, "b", 2, NULL, (tni_symbol *const[]){x, first}, &s));
    assert_null(s);
    tni_symbol_release(first);
    tni_symbol_release(atom);
    tni_symbol_release(pair);
    tni_symbol_release(x);
    test_ops_close(ops);
}

static void substitution(void **state)
{
    const char *const keys[] = {"x"}, *const wrong[] = {"z"};
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *w = var(ops, "w"), *data = var(ops, "data");
    tni_symbol *m = op2(ops, "t_mul", NULL, "m", x, w), *net = op2(ops, "t_sum2", NULL, "s", m, x);
    tni_symbol *pair = op1(ops, "t_pair", NULL, "p", data), *second = NULL, *out = NULL;

    (void)state;
    assert_ok(tni_symbol_output(pair, 1, &second));
    assert_ok(tni_symbol_compose(net, NULL, 1, keys, &second, &out));
    assert_names(out, TNI_LIST_ARGUMENTS, "data w");
    assert_names(net, TNI_LIST_ARGUMENTS, "x w"); /* as it was */
    assert_int_equal(out->outputs[0].node->inputs[1].index, 1);
    tni_symbol_release(out);
    assert_fails(TN_E_KEY, "\"z\"", tni_symbol_compose(net, NULL, 1, wrong, &second, &out));
    assert_ok(
        tni_symbol_compose(net, NULL, 2, NULL, (tni_symbol *const[]){data, second}, &out)); /* by position */
    assert_names(out, TNI_LIST_ARGUMENTS, "data");
    tni_symbol_release(out);
    tni_symbol *const all[] = {x, w, data, m, net, pair, second};
    for (size_t i = 0; i < 7; i++)
        tni_symbol_release(all[i]);
    test_ops_close(ops);
}

static void attributes(void **state)
{
    const char *const names[] = {"num_hidden", "__lr_mult__"}, *const texts[] = {"10", "0.5"};
    tni_opset *ops = test_ops();
    tni_symbol *atom = NULL, *s = NULL, *x = var(ops, "x"), *all = NULL, *w = NULL;
    const char *text = NULL;
    uint32_t index = 0;

    (void)state;
    assert_ok(tni_symbol_atomic(ops, "FullyConnected", 2, names, texts, NULL, &atom));
    assert_ok(tni_symbol_compose(atom, "fc", 1, NULL, &x, &s));
    assert_ok(tni_symbol_attr_get(s, "num_hidden", &text));
    assert_string_equal(text, "10");
    assert_ok(tni_symbol_attr_get(s, "name", &text));
    assert_string_equal(text, "fc");
    assert_ok(tni_symbol_attr_get(s, "nothing", &text));
    assert_null(text);
    assert_int_equal(tni_symbol_attr_set(s, "num_hidden", "20"), TN_E_STATE);
    assert_ok(tni_symbol_attr_set(s, "__ctx_group__", "dev1"));
    assert_ok(tni_symbol_attr_set(s, "__ctx_group__", "dev2"));
    assert_ok(tni_symbol_attr_get(s, "__ctx_group__", &text));
    assert_string_equal(text, "dev2");
    assert_ok(tni_symbol_internals(s, &all)); /* what it made takes its attributes over */
    assert_ok(tni_symbol_find(all, "fc_weight", &index));
    assert_ok(tni_symbol_output(all, index, &w));
    assert_ok(tni_symbol_attr_get(w, "__lr_mult__", &text));
    assert_string_equal(text, "0.5");
    assert_int_equal(tni_symbol_attr_get(all, "x", &text), TN_E_ARG);
    tni_symbol *const many[] = {atom, s, x, all, w};
    for (size_t i = 0; i < 5; i++)
        tni_symbol_release(many[i]);
    test_ops_close(ops);
}

static void variadic(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *y = var(ops, "y"), *s = op2(ops, "t_many", NULL, "cat", x, y);
    const char *text = NULL;

    (void)state;
    assert_ok(tni_symbol_attr_get(s, "num_args", &text));
    assert_string_equal(text, "2");
    tni_symbol_release(s);
    s = op1(ops, "t_many", "num_args=3", "cat", x);
    assert_names(s, TNI_LIST_ARGUMENTS, "x cat_arg1 cat_arg2");
    tni_symbol_release(s);
    tni_symbol_release(x);
    tni_symbol_release(y);
    test_ops_close(ops);
}

/* Nothing here may call itself: a chain of 200,000 nodes is walked, flattened,
 * differentiated and released. */
static void deep_chain(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x");
    tni_graph *g = NULL;
    uint32_t wanted = 0, head = 0, grad = TNI_NONE;
    tni_gradient_spec spec = {.wanted = &wanted, .wanted_count = 1};

    (void)state;
    for (int i = 0; i < 200000; i++)
        x = take1(ops, "t_sum2", NULL, "s", x);
    assert_ok(tni_graph_of(x, &g));
    assert_ok(tni_graph_gradient(g, &spec, &head, &grad));
    assert_ok(tni_graph_verify(g));
    tni_graph_destroy(g);
    tni_symbol_release(x);
    test_ops_close(ops);
}

/* Names an automatic node, composes, substitutes, groups and lists; whatever was made is in `made`. */
static tn_status all_calls(tni_opset *ops, tni_symbol **made)
{
    static const char *const names[] = {"num_hidden", "__lr_mult__"}, *const texts[] = {"10", "2"};
    static const char *const keys[] = {"x"};
    char **list = NULL;
    size_t count;
    tn_status st;

    (void)((st = tni_symbol_variable(ops, "x", &made[0])) ||
           (st = tni_symbol_atomic(ops, "FullyConnected", 2, names, texts, NULL, &made[1])) ||
           (st = tni_symbol_compose(made[1], NULL, 1, NULL, &made[0], &made[2])) ||
           (st = tni_symbol_atomic(ops, "t_state", 0, NULL, NULL, NULL, &made[3])) ||
           (st = tni_symbol_compose(made[3], "bn", 1, NULL, &made[2], &made[4])) ||
           (st = tni_symbol_compose(made[4], NULL, 1, keys, &made[2], &made[5])) ||
           (st = tni_symbol_group(6, made, &made[6])) || (st = tni_symbol_internals(made[6], &made[7])) ||
           (st = tni_symbol_children(made[5], &made[8])) ||
           (st = tni_symbol_list(made[7], TNI_LIST_OUTPUTS, &count, &list)));
    tni_free(list);
    return st;
}

static void allocation_failures(void **state)
{
    tni_opset *ops = test_ops();
    bool failed = true;

    (void)state;
    assert_ok(tni_symbol_prefix_push("a_")); /* the thread's scopes exist before anything is counted */
    for (uint64_t nth = 1; failed; nth++) {
        tni_symbol *made[9] = {NULL};
        tni_mem_stats before, after;
        tn_status st;

        tni_mem_stats_get(&before);
        assert_ok(tni_symbol_prefix_push("b_"));
        tni_mem_fail_at(nth, false, true);
        st = all_calls(ops, made);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        assert_int_equal(st, failed ? TN_E_NOMEM : TN_OK);
        for (size_t i = 0; i < 9; i++)
            tni_symbol_release(made[i]);
        tni_symbol_prefix_pop();
        tni_mem_stats_get(&after);
        assert_int_equal(after.live_count, before.live_count);
    }
    tni_symbol_prefix_pop();
    test_ops_close(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(automatic_names),
        cmocka_unit_test(lists),
        cmocka_unit_test(by_name),
        cmocka_unit_test(refusals),
        cmocka_unit_test(substitution),
        cmocka_unit_test(attributes),
        cmocka_unit_test(variadic),
        cmocka_unit_test(deep_chain),
        cmocka_unit_test(allocation_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
