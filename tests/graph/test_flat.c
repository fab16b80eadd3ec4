/* The flat graph: order, numbers of random nodes, copies, pruning, and that verify sees what is broken. */
#include "graph/support.h"

static tni_symbol *diamond(tni_opset *ops)
{
    tni_symbol *x = var(ops, "x"), *a = op1(ops, "t_pair", NULL, "a", x), *first, *second, *s;

    assert_ok(tni_symbol_output(a, 0, &first));
    assert_ok(tni_symbol_output(a, 1, &second));
    s = take2(ops, "t_mul", NULL, "m", first, second);
    tni_symbol_release(a);
    return take2(ops, "t_sum2", NULL, "s", s, x);
}

static void order(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = diamond(ops);
    tni_graph *g = NULL;

    (void)state;
    assert_ok(tni_graph_of(s, &g));
    assert_ok(tni_graph_verify(g));
    assert_int_equal(g->node_count, 4);
    assert_int_equal(node_of(g, "x"), 0);
    assert_int_equal(node_of(g, "s"), 3);
    assert_int_equal(g->entry_count, 5);
    assert_int_equal(g->head_count, 1);
    assert_int_equal(g->entry_node[g->heads[0]], 3);
    assert_int_equal(tni_graph_input(g, &g->nodes[2], 1), g->nodes[1].first_entry + 1);
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

static void random_numbers(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *late, *early = op1(ops, "t_draw", NULL, "early", x), *s;
    tni_graph *g = NULL;

    (void)state;
    late = op1(ops, "t_draw", NULL, "late", x);
    s = take2(ops, "t_mul", NULL, "m", late, early); /* depth first `late` comes first */
    assert_ok(tni_graph_of(s, &g));
    assert_int_equal(g->random_count, 2);
    assert_int_equal(g->nodes[node_of(g, "early")].random, 0);
    assert_int_equal(g->nodes[node_of(g, "late")].random, 1);
    assert_true(node_of(g, "early") < node_of(g, "late"));
    tni_graph_destroy(g);
    tni_symbol_release(s);
    tni_symbol_release(x);
    test_ops_close(ops);
}

static void by_hand(void **state)
{
    tni_opset *ops = test_ops();
    const tni_opdef *mul = NULL, *draw = NULL, *bn = NULL;
    uint32_t x = 0, y = 0, m = 0, d = 0, inputs[2];
    tni_graph *g = NULL;

    (void)state;
    assert_ok(tni_opset_find(ops, "t_mul", &mul));
    assert_ok(tni_opset_find(ops, "t_draw", &draw));
    assert_ok(tni_opset_find(ops, "t_state", &bn));
    assert_ok(tni_graph_create(ops, &g));
    assert_ok(tni_graph_add_variable(g, "x", &x));
    assert_ok(tni_graph_add_variable(g, "y", &y));
    inputs[0] = g->nodes[x].first_entry;
    inputs[1] = g->nodes[y].first_entry;
    assert_ok(tni_graph_add_node(g, mul, NULL, NULL, 2, inputs, &m));
    assert_ok(tni_graph_add_node(g, draw, NULL, "d", 1, &g->nodes[m].first_entry, &d));
    assert_int_equal(g->nodes[d].random, 0);
    assert_ok(tni_graph_add_node(g, bn, NULL, "b", 2, inputs, &d));
    assert_int_equal(g->nodes[y].flags, TNI_GNODE_AUX);
    assert_int_equal(tni_graph_add_node(g, mul, NULL, "bad", 1, inputs, &d), TN_E_ARG);
    inputs[1] = 77;
    assert_int_equal(tni_graph_add_node(g, mul, NULL, "bad", 2, inputs, &d), TN_E_ARG);
    assert_int_equal(tni_graph_set_heads(g, 1, &inputs[1]), TN_E_ARG);
    assert_ok(tni_graph_set_heads(g, 1, &g->nodes[m].first_entry));
    assert_ok(tni_graph_verify(g));
    tni_graph_destroy(g);
    test_ops_close(ops);
}

/* A copy has the numbers of the graph, with gradients too, and lives longer. */
static void copies(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = diamond(ops);
    tni_graph *g = NULL, *copy = NULL;
    uint32_t wanted = 0, head_var = 0, grad = 0;
    tni_gradient_spec spec = {.wanted = &wanted, .wanted_count = 1};

    (void)state;
    assert_ok(tni_graph_of(s, &g));
    assert_ok(tni_graph_gradient(g, &spec, &head_var, &grad));
    assert_ok(tni_graph_set_heads(g, 1, &grad));
    assert_ok(tni_graph_copy(g, &copy));
    assert_ok(tni_graph_verify(copy));
    assert_int_equal(copy->node_count, g->node_count);
    assert_int_equal(copy->entry_count, g->entry_count);
    assert_memory_equal(copy->inputs, g->inputs, g->input_total * sizeof *g->inputs);
    assert_memory_equal(copy->like, g->like, g->entry_count * sizeof *g->like);
    assert_int_equal(copy->heads[0], grad);
    assert_true(copy->nodes[node_of(copy, "m_backward")].forward == node_of(copy, "m"));
    tni_graph_destroy(g);
    tni_symbol_release(s); /* the graph keeps it alive */
    assert_string_equal(copy->nodes[node_of(copy, "a")].name, "a");
    tni_graph_destroy(copy);
    test_ops_close(ops);
}

static void verify_sees(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = diamond(ops);
    tni_graph *g = NULL;

    (void)state;
    assert_ok(tni_graph_of(s, &g));
#define BREAK(lvalue, value)                                                                                 \
    do {                                                                                                     \
        uint32_t keep_ = (lvalue);                                                                           \
        (lvalue) = (value);                                                                                  \
        assert_int_equal(tni_graph_verify(g), TN_E_INTERNAL);                                                \
        (lvalue) = keep_;                                                                                    \
        assert_ok(tni_graph_verify(g));                                                                      \
    } while (0)
    BREAK(g->inputs[0], 4); /* cycle */
    BREAK(g->inputs[1], 99);
    BREAK(g->nodes[1].output_count, 3);
    BREAK(g->nodes[1].visible_count, 0);
    BREAK(g->nodes[2].first_entry, 4);
    BREAK(g->nodes[2].first_input, 1000);
    BREAK(g->nodes[2].input_count, 1);
    BREAK(g->nodes[2].forward, 3);
    BREAK(g->nodes[2].attr_source, 3);
    BREAK(g->nodes[2].random, 0);
    BREAK(g->nodes[0].variable, 5);
    BREAK(g->nodes[2].variable, 0);
    BREAK(g->heads[0], 5);
    BREAK(g->like[1], 5);
    BREAK(g->variable_count, 0);
    BREAK(g->entry_node[2], 0);
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),  cmocka_unit_test(random_numbers), cmocka_unit_test(by_hand),
        cmocka_unit_test(copies), cmocka_unit_test(verify_sees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
