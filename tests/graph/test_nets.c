/* Real nets of the core's own operators: names, deferred shapes, the shape of their gradients, files. */
#include "graph/support.h"

static void lenet_names(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *s = test_lenet(ops);

    (void)state;
    assert_names(s, TNI_LIST_ARGUMENTS,
                 "data conv1_weight conv1_bias conv2_weight conv2_bias fc1_weight fc1_bias fc2_weight "
                 "fc2_bias softmax_label");
    assert_names(s, TNI_LIST_AUX, "");
    assert_names(s, TNI_LIST_OUTPUTS, "softmax_output");
    tni_symbol_release(s);
    test_ops_close(ops);
}

static tni_graph *flat(tni_symbol *s, int32_t ndim, const int64_t *data)
{
    tn_shape shape = {.ndim = ndim};
    tni_graph *g = NULL;

    memcpy(shape.dim, data, (size_t)ndim * sizeof *data);
    assert_ok(tni_graph_of(s, &g));
    assert_ok(tni_graph_preset(g, g->nodes[node_of(g, "data")].variable, &shape, TN_F32, -1));
    assert_ok(tni_graph_infer(g, false));
    assert_int_equal(g->inferred, 7);
    return g;
}

static void assert_shape(const tni_graph *g, const char *name, const char *text)
{
    tni_str s;

    tni_str_init(&s, 1024);
    assert_ok(tni_shape_format(&g->shapes[g->nodes[node_of(g, name)].first_entry], &s));
    assert_string_equal(s.text, text);
    tni_str_fini(&s);
}

static void lenet_shapes(void **state)
{
    const int64_t data[] = {64, 1, 28, 28};
    tni_opset *ops = test_ops();
    tni_symbol *s = test_lenet(ops);
    tni_graph *g = flat(s, 4, data);

    (void)state;
    assert_shape(g, "conv1_weight", "(20, 1, 5, 5)");
    assert_shape(g, "conv2_weight", "(50, 20, 5, 5)");
    assert_shape(g, "fc1_weight", "(500, 800)");
    assert_shape(g, "fc2_bias", "(10,)");
    assert_shape(g, "softmax_label", "(64,)");
    assert_shape(g, "softmax", "(64, 10)");
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

/* Gradients of all variables named in `skip` not: there, of the right shape, and inferred with the rest. */
static void gradients_fit(tni_graph *g, const char *const *skip, uint32_t head_count)
{
    uint32_t wanted[64], heads[8], grads[64], count = 0, forward = g->node_count;
    tni_gradient_spec spec = {.wanted = wanted};

    for (uint32_t i = 0; i < g->variable_count; i++) {
        bool skipped = (g->nodes[g->variables[i]].flags & TNI_GNODE_AUX) != 0;

        for (size_t k = 0; skip[k]; k++)
            skipped = skipped || strcmp(skip[k], g->nodes[g->variables[i]].name) == 0;
        if (!skipped)
            wanted[count++] = g->variables[i];
    }
    spec.wanted_count = count;
    assert_ok(tni_graph_gradient(g, &spec, heads, grads));
    for (uint32_t i = 0; i < head_count; i++)
        assert_int_equal(heads[i], TNI_NONE);
    assert_ok(tni_graph_verify(g));
    assert_ok(tni_graph_infer(g, false));
    assert_int_equal(g->inferred, 7);
    for (uint32_t i = 0; i < count; i++) {
        const tn_shape *x = &g->shapes[g->nodes[wanted[i]].first_entry], *dx = &g->shapes[grads[i]];

        assert_int_not_equal(grads[i], TNI_NONE);
        assert_int_equal(x->ndim, dx->ndim);
        assert_memory_equal(x->dim, dx->dim, (size_t)x->ndim * sizeof *x->dim);
    }
    for (uint32_t i = forward; i < g->node_count; i++) {
        const tni_gnode *n = &g->nodes[i];

        assert_true(n->flags & TNI_GNODE_BACKWARD);
        if (n->forward != TNI_NONE) {
            assert_true(n->forward < forward);
            assert_memory_equal(n->name, g->nodes[n->forward].name, strlen(g->nodes[n->forward].name));
        }
    }
}

static void lenet_gradient(void **state)
{
    static const char *const skip[] = {"data", "softmax_label", NULL};
    const int64_t data[] = {64, 1, 28, 28};
    tni_opset *ops = test_ops();
    tni_symbol *s = test_lenet(ops);
    tni_graph *g = flat(s, 4, data);

    (void)state;
    gradients_fit(g, skip, 1);
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

/* Statistics get no gradient, hidden outputs of BatchNorm and Dropout no head;
 * a residual sum meets itself. */
static tni_symbol *residual(tni_opset *ops)
{
    tni_symbol *x = var(ops, "data"), *y;

    x = take1(ops, "Convolution", "kernel=(3, 3);num_filter=8;pad=(1, 1);no_bias=True", "conv0", x);
    x = take1(ops, "BatchNorm", "fix_gamma=False", "bn0", x);
    y = op1(ops, "Activation", "act_type=relu", "relu0", x);
    y = take1(ops, "Convolution", "kernel=(3, 3);num_filter=8;pad=(1, 1);no_bias=True", "conv1", y);
    y = take1(ops, "BatchNorm", NULL, "bn1", y);
    x = take2(ops, "elemwise_add", NULL, "plus", x, y);
    x = take1(ops, "Pooling", "kernel=(1, 1);global_pool=True;pool_type=avg", "pool", x);
    x = take1(ops, "Dropout", "p=0.3", "drop", x);
    x = take1(ops, "FullyConnected", "num_hidden=10", "fc", x);
    return take1(ops, "SoftmaxOutput", NULL, "softmax", x);
}

static void residual_gradient(void **state)
{
    static const char *const skip[] = {"data", "softmax_label", NULL};
    const int64_t data[] = {4, 3, 8, 8};
    tni_opset *ops = test_ops();
    tni_symbol *s = residual(ops);
    tni_graph *g = flat(s, 4, data);

    (void)state;
    assert_names(s, TNI_LIST_AUX, "bn0_moving_mean bn0_moving_var bn1_moving_mean bn1_moving_var");
    assert_shape(g, "bn1_moving_var", "(8,)");
    assert_int_equal(g->random_count, 1);
    gradients_fit(g, skip, 1);
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

static void files(void **state)
{
    tni_opset *ops = test_ops();
    tni_symbol *nets[] = {test_lenet(ops), residual(ops)};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tni_symbol *again = NULL;
        tni_str a, b;

        tni_str_init(&a, TN_TEXT_MAX);
        tni_str_init(&b, TN_TEXT_MAX);
        assert_ok(tni_symbol_to_json(nets[i], &a));
        assert_ok(tni_symbol_from_json(ops, "net", a.text, a.length, &again));
        assert_ok(tni_symbol_to_json(again, &b));
        assert_string_equal(a.text, b.text);
        if (i == 1)
            assert_non_null(strstr(a.text, "\"attrs\": {\"__init__\": \"[\\\"one\\\", {}]\"}"));
        tni_str_fini(&a);
        tni_str_fini(&b);
        tni_symbol_release(again);
        tni_symbol_release(nets[i]);
    }
    test_ops_close(ops);
}

/* Wrong sizes are refused where they meet, by name. */
static void wrong_shape(void **state)
{
    tn_shape data = {.ndim = 4, .dim = {64, 1, 28, 28}}, weight = {.ndim = 4, .dim = {20, 3, 5, 5}};
    tni_opset *ops = test_ops();
    tni_symbol *s = test_lenet(ops);
    tni_graph *g = NULL;

    (void)state;
    assert_ok(tni_graph_of(s, &g));
    assert_ok(tni_graph_preset(g, 0, &data, TN_F32, -1));
    assert_ok(tni_graph_preset(g, 1, &weight, -1, -1));
    assert_fails(TN_E_SHAPE, "node \"conv1\": Convolution", tni_graph_infer(g, false));
    assert_non_null(strstr(tn_error_text(), "conv1_weight (20, 3, 5, 5)"));
    tni_graph_destroy(g);
    tni_symbol_release(s);
    test_ops_close(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet_names),       cmocka_unit_test(lenet_shapes), cmocka_unit_test(lenet_gradient),
        cmocka_unit_test(residual_gradient), cmocka_unit_test(files),        cmocka_unit_test(wrong_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
