/* Inference over graphs: both ways, presets, texts of shapes, errors that name the node. */
#include "graph/support.h"
#include "graph/walk.h"

static tni_graph *flat(tni_symbol *s)
{
    tni_graph *g = NULL;

    assert_ok(tni_graph_of(s, &g));
    tni_symbol_release(s);
    return g;
}

static void preset(tni_graph *g, const char *name, int32_t ndim, ...)
{
    tn_shape s = {.ndim = ndim};
    va_list list;

    va_start(list, ndim);
    for (int32_t i = 0; i < ndim; i++)
        s.dim[i] = va_arg(list, int);
    va_end(list);
    assert_ok(tni_graph_preset(g, g->nodes[node_of(g, name)].variable, &s, -1, -1));
}

static void assert_shape(const tni_graph *g, const char *name, const char *text)
{
    tni_str s;

    tni_str_init(&s, 1024);
    assert_ok(tni_shape_format(&g->shapes[g->nodes[node_of(g, name)].first_entry], &s));
    if (strcmp(s.text, text) != 0)
        fail_msg("%s is %s, not %s", name, s.text, text);
    tni_str_fini(&s);
}

/* The shapes of all parameters follow from that of the data. */
static void deferred(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "data");
    tni_graph *g;

    (void)state;
    x = take1(ops, "Convolution", "kernel=(5, 5);num_filter=20", "conv1", x);
    x = take1(ops, "Pooling", "kernel=(2, 2);pool_type=max;stride=(2, 2)", "pool1", x);
    x = take1(ops, "Convolution", "kernel=(5, 5);num_filter=50", "conv2", x);
    x = take1(ops, "Pooling", "kernel=(2, 2);pool_type=max;stride=(2, 2)", "pool2", x);
    x = take1(ops, "FullyConnected", "num_hidden=500", "fc1", x);
    x = take1(ops, "FullyConnected", "num_hidden=10", "fc2", x);
    g = flat(x);
    assert_fails(TN_E_SHAPE, "\"data\" ", tni_graph_infer(g, false));
    preset(g, "data", 4, 64, 1, 28, 28);
    assert_ok(tni_graph_infer(g, false));
    assert_int_equal(g->inferred, 7);
    assert_shape(g, "conv1_weight", "(20, 1, 5, 5)");
    assert_shape(g, "conv2_bias", "(50,)");
    assert_shape(g, "pool2", "(64, 50, 4, 4)");
    assert_shape(g, "fc1_weight", "(500, 800)");
    assert_shape(g, "fc2", "(64, 10)");
    assert_int_equal(g->dtypes[0], TN_F32);
    assert_int_equal(g->storages[0], TN_STORAGE_DENSE);
    tni_graph_infer_reset(g);
    preset(g, "data", 4, 1, 1, 16, 16); /* the same graph again, smaller */
    assert_ok(tni_graph_infer(g, false));
    assert_shape(g, "fc1_weight", "(500, 50)");
    tni_graph_destroy(g);
    test_ops_close(ops);
}

/* From the far end back to the data, and through a node that was visited before anything was known. */
static void backward(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *a = take2(ops, "t_mul", NULL, "m", var(ops, "x"), var(ops, "y"));
    tni_graph *g;

    (void)state;
    a = take2(ops, "t_sum2", NULL, "s", take1(ops, "t_stop", NULL, "p", a), var(ops, "z"));
    g = flat(a);
    preset(g, "z", 2, -1, 7);
    assert_ok(tni_graph_infer(g, true));
    assert_shape(g, "x", "(?, 7)");
    assert_int_equal(g->inferred & 1u, 0);
    preset(g, "y", 2, 3, -1); /* joins what the others know */
    assert_ok(tni_graph_infer(g, true));
    assert_shape(g, "z", "(3, 7)");
    assert_shape(g, "x", "(3, 7)");
    assert_int_equal(g->inferred & 1u, 1);
    assert_int_equal(g->dtypes[0], TN_DTYPE_UNKNOWN); /* partial: no default */
    assert_ok(tni_graph_preset(g, g->nodes[node_of(g, "z")].variable, NULL, TN_F16, -1));
    assert_ok(tni_graph_infer(g, true));
    assert_int_equal(g->dtypes[node_of(g, "x")], TN_F16);
    tni_graph_destroy(g);
    test_ops_close(ops);
}

static void from_dict(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x"), *y = var(ops, "y");
    tni_graph *g;

    (void)state;
    assert_ok(tni_symbol_attr_set(x, "__shape__", "(64, 0, 3)"));
    assert_ok(tni_symbol_attr_set(x, "__dtype__", "2"));
    assert_ok(tni_symbol_attr_set(y, "__shape__", "(9, 9)")); /* the caller's word counts */
    g = flat(take2(ops, "t_mul", NULL, "m", x, y));
    preset(g, "y", 3, 64, 5, 3);
    assert_ok(tni_graph_infer(g, false));
    assert_shape(g, "x", "(64, 5, 3)");
    assert_int_equal(g->dtypes[node_of(g, "y")], TN_F16);
    tni_graph_destroy(g);
    x = var(ops, "x");
    assert_ok(tni_symbol_attr_set(x, "__shape__", "(64, many)"));
    g = flat(x);
    assert_fails(TN_E_FORMAT, "variable \"x\"", tni_graph_infer(g, true));
    tni_graph_destroy(g);
    x = var(ops, "x");
    assert_ok(tni_symbol_attr_set(x, "__dtype__", "99"));
    g = flat(x);
    assert_fails(TN_E_FORMAT, "__dtype__", tni_graph_infer(g, true));
    tni_graph_destroy(g);
    test_ops_close(ops);
}

static void texts(void **state)
{
    static const struct {
        const char *text, *legacy, *np; /* NULL: refused */
    } cases[] = {
        {"(64, 1, 28, 28)", "(64, 1, 28, 28)", "(64, 1, 28, 28)"},
        {"[64,0,3]", "(64, ?, 3)", "(64, 0, 3)"},
        {"()", "?", "()"},
        {"(3,)", "(3,)", "(3,)"},
        {"(3L, 4L)", "(3, 4)", "(3, 4)"},
        {" ( 3 , -1 ) ", "(3, ?)", "(3, ?)"},
        {"None", "?", "?"},
        {"", NULL, NULL},
        {"3", NULL, NULL},
        {"(3, 4", NULL, NULL},
        {"(3, 4]", NULL, NULL},
        {"(3, 4) x", NULL, NULL},
        {"(,)", NULL, NULL},
        {"(-2,)", NULL, NULL},
        {"(99999999999999999999,)", NULL, NULL},
        {"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *want = i % 2 ? cases[i / 2].np : cases[i / 2].legacy;
        tn_shape s;
        tni_str out;

        assert_int_equal(tni_shape_parse(cases[i / 2].text, i % 2, &s), want != NULL);
        if (!want)
            continue;
        tni_str_init(&out, 1024);
        assert_ok(tni_shape_format(&s, &out));
        assert_string_equal(out.text, want);
        tni_str_fini(&out);
    }
}

static void contradictions(void **state)
{
    tni_opset *ops = test_ops();
    tni_graph *g = flat(take2(ops, "t_mul", NULL, "m", var(ops, "x"), var(ops, "y")));

    (void)state;
    preset(g, "x", 2, 3, 4);
    preset(g, "y", 2, 3, 5);
    assert_fails(TN_E_SHAPE, "node \"m\": t_mul", tni_graph_infer(g, true));
    assert_non_null(strstr(tn_error_text(), "x (3, 4), y (3, 5)"));
    tni_graph_infer_reset(g);
    assert_ok(tni_graph_preset(g, g->nodes[node_of(g, "x")].variable, NULL, TN_F32, -1));
    assert_ok(tni_graph_preset(g, g->nodes[node_of(g, "y")].variable, NULL, TN_I8, -1));
    assert_fails(TN_E_DTYPE, "x float32, y int8", tni_graph_infer(g, true));
    assert_int_equal(tni_graph_preset(g, g->nodes[node_of(g, "m")].variable, NULL, TN_F32, -1), TN_E_ARG);
    assert_int_equal(tni_graph_preset(g, 0, NULL, 55, -1), TN_E_DTYPE);
    tni_graph_destroy(g);
    test_ops_close(ops);
}

/* The fuller of two unknowns meets through one node used twice. */
static void same_input_twice(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *x = var(ops, "x");
    tni_graph *g = flat(op2(ops, "t_mul", NULL, "m", x, x));

    (void)state;
    tni_symbol_release(x);
    preset(g, "x", 1, 5);
    assert_ok(tni_graph_infer(g, false));
    assert_shape(g, "m", "(5,)");
    tni_graph_destroy(g);
    test_ops_close(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deferred), cmocka_unit_test(backward),       cmocka_unit_test(from_dict),
        cmocka_unit_test(texts),    cmocka_unit_test(contradictions), cmocka_unit_test(same_input_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
