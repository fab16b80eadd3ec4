/* The structure of gradient graphs. Values are checked where kernels are: here it is who feeds whom. */
#include "graph/support.h"

typedef struct fixture {
    tni_opset *ops;
    tni_graph *g;
    uint32_t head_vars[4], grads[4];
} fixture;

/* Flattens `s` (released) and builds the gradient of the variables named in `wanted`, divided by spaces. */
static tn_status build(fixture *f, tni_symbol *s, const char *wanted, bool ones, uint32_t cap)
{
    uint32_t nodes[4];
    tni_gradient_spec spec = {.wanted = nodes, .ones = ones, .add_cap = cap};
    char text[128], *rest = text, *name;
    tn_status st;

    assert_ok(tni_graph_of(s, &f->g));
    snprintf(text, sizeof text, "%s", wanted);
    while ((name = strsep(&rest, " ")))
        nodes[spec.wanted_count++] = node_of(f->g, name);
    tni_symbol_release(s);
    st = tni_graph_gradient(f->g, &spec, f->head_vars, f->grads);
    assert_ok(tni_graph_verify(f->g));
    return st;
}

static void finish(fixture *f)
{
    tni_graph_destroy(f->g);
    test_ops_close(f->ops);
}

static const char *op_at(const fixture *f, uint32_t entry)
{
    const tni_opdef *def = f->g->nodes[f->g->entry_node[entry]].def;

    return def ? def->op->name : "null";
}

/* The entry that input `i` of the node behind `entry` reads. */
static uint32_t in(const fixture *f, uint32_t entry, uint32_t i)
{
    return tni_graph_input(f->g, &f->g->nodes[f->g->entry_node[entry]], i);
}

static uint32_t first(const fixture *f, const char *name)
{
    return f->g->nodes[node_of(f->g, name)].first_entry;
}

static void product(void **state)
{
    fixture f = {.ops = test_ops()};

    (void)state;
    assert_ok(build(&f, take2(f.ops, "t_mul", NULL, "m", var(f.ops, "a"), var(f.ops, "b")), "b", false, 0));
    assert_string_equal(op_at(&f, f.grads[0]), "t_mul");
    assert_int_equal(in(&f, f.grads[0], 0), f.g->nodes[f.head_vars[0]].first_entry);
    assert_int_equal(in(&f, f.grads[0], 1), first(&f, "a"));
    assert_int_equal(f.g->node_count, 5); /* nothing was made for `a` */
    assert_int_equal(f.g->nodes[f.head_vars[0]].flags, TNI_GNODE_HEAD_GRADIENT | TNI_GNODE_BACKWARD);
    assert_string_equal(f.g->nodes[f.g->entry_node[f.grads[0]]].name, "m_backward");
    assert_int_equal(f.g->nodes[f.g->entry_node[f.grads[0]]].forward, node_of(f.g, "m"));
    assert_int_equal(f.g->nodes[f.g->entry_node[f.grads[0]]].attr_source, node_of(f.g, "m"));
    assert_true(f.g->nodes[f.g->entry_node[f.grads[0]]].flags & TNI_GNODE_BACKWARD);
    finish(&f);
}

/* s = x + x + … : `terms` uses of x. */
static tni_symbol *uses(tni_opset *ops, int terms)
{
    tni_symbol *x = var(ops, "x"), *s = op2(ops, "t_mul", NULL, "m", x, x);

    for (int i = 2; i < terms; i++)
        s = take2(ops, "t_mul", NULL, "n", s, (tni_symbol_retain(x), x));
    tni_symbol_release(x);
    return s;
}

static void sums(void **state)
{
    fixture f = {.ops = test_ops()};
    uint32_t e;

    (void)state;
    assert_ok(build(&f, uses(f.ops, 7), "x", false, 0));
    assert_string_equal(op_at(&f, f.grads[0]), "add_n");
    assert_int_equal(f.g->nodes[f.g->entry_node[f.grads[0]]].input_count, 7);
    tni_graph_destroy(f.g);
    assert_ok(build(&f, uses(f.ops, 8), "x", false, 0)); /* as many as the cap: a chain */
    e = f.grads[0];
    for (int i = 0; i < 7; i++) {
        assert_string_equal(op_at(&f, e), "_grad_add");
        e = in(&f, e, 0);
    }
    assert_string_equal(op_at(&f, e), "t_mul");
    tni_graph_destroy(f.g);
    assert_ok(build(&f, uses(f.ops, 3), "x", false, 3));
    assert_string_equal(op_at(&f, f.grads[0]), "_grad_add");
    finish(&f);
}

/* The terms of x stand with the last use first, by creation: not as a walk from the heads meets them. */
static void order_of_uses(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *x = var(f.ops, "x"), *p = var(f.ops, "p"), *uses_of[3], *s;
    const char *const last_first[] = {"third", "second", "first"};

    (void)state;
    for (int i = 0; i < 3; i++)
        uses_of[i] = op2(f.ops, "t_mul", NULL, last_first[2 - i], x, p);
    s = take2(f.ops, "t_mul", NULL, "a", uses_of[2], uses_of[0]);
    s = take2(f.ops, "t_mul", NULL, "b", s, uses_of[1]);
    tni_symbol_release(x);
    tni_symbol_release(p);
    assert_ok(build(&f, s, "x", false, 0));
    for (uint32_t i = 0; i < 3; i++) {
        const tni_gnode *term = &f.g->nodes[f.g->entry_node[in(&f, f.grads[0], i)]];

        assert_int_equal(term->forward, node_of(f.g, last_first[i]));
    }
    finish(&f);
}

/* A sum of several terms begins with the old value; a single term, or none, is left to the caller. */
static void begins_with_old(void **state)
{
    fixture f = {.ops = test_ops()};
    uint32_t olds[2], nodes[2];
    const uint8_t adds[] = {1, 1};
    tni_gradient_spec spec = {.wanted = nodes, .wanted_count = 2, .adds = adds, .olds = olds};
    tni_symbol *x = var(f.ops, "x"), *s = op2(f.ops, "t_mul", NULL, "m", x, x);

    (void)state;
    for (spec.add_cap = 0; spec.add_cap <= 3; spec.add_cap += 3) {
        tni_symbol *all = op2(f.ops, "t_mul", NULL, "n", s, NULL);
        uint32_t e;

        assert_ok(tni_graph_of(all, &f.g));
        nodes[0] = node_of(f.g, "x");
        nodes[1] = node_of(f.g, "n_rhs");
        assert_ok(tni_graph_gradient(f.g, &spec, f.head_vars, f.grads));
        assert_ok(tni_graph_verify(f.g));
        e = in(&f, f.grads[0], 0);
        assert_string_equal(op_at(&f, f.grads[0]), spec.add_cap ? "_grad_add" : "add_n");
        assert_int_equal(spec.add_cap ? in(&f, e, 0) : e, f.g->nodes[olds[0]].first_entry);
        assert_string_equal(f.g->nodes[olds[0]].name, "x_old_grad");
        assert_true(f.g->nodes[olds[0]].flags & TNI_GNODE_OLD_GRADIENT);
        assert_int_equal(f.g->like[f.g->nodes[olds[0]].first_entry], first(&f, "x"));
        assert_int_equal(olds[1], TNI_NONE);
        assert_string_equal(op_at(&f, f.grads[1]), "t_mul");
        tni_symbol_release(all);
        if (!spec.add_cap)
            tni_graph_destroy(f.g);
    }
    tni_symbol_release(s);
    tni_symbol_release(x);
    finish(&f);
}

static void zeros_dropped(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *x = var(f.ops, "x"), *a = op1(f.ops, "t_fade", NULL, "a", x),
               *b = op1(f.ops, "t_stop", NULL, "b", x);

    (void)state;
    a = take2(f.ops, "t_sum2", NULL, "s", a, b);
    a = take2(f.ops, "t_sum2", NULL, "t", a, x);
    assert_ok(build(&f, a, "x", false, 0));
    assert_string_equal(op_at(&f, f.grads[0]),
                        "null"); /* the head gradient itself: the other terms are zero */
    tni_graph_destroy(f.g);
    assert_ok(build(&f, take1(f.ops, "t_stop", NULL, "b", var(f.ops, "x")), "x", false, 0));
    assert_int_equal(f.grads[0], TNI_NONE);
    assert_int_equal(f.head_vars[0], TNI_NONE);
    tni_graph_destroy(f.g);
    assert_ok(build(&f, take1(f.ops, "t_fade", NULL, "b", var(f.ops, "x")), "x", false, 0));
    assert_string_equal(op_at(&f, f.grads[0]), "zeros_like"); /* only zeros: one stays */
    finish(&f);
}

static void missing_head(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *pair = take1(f.ops, "t_pair", NULL, "p", var(f.ops, "x")), *second = NULL;

    (void)state;
    assert_ok(tni_symbol_output(pair, 1, &second));
    tni_symbol_release(pair);
    assert_ok(build(&f, second, "x", false, 0));
    assert_string_equal(op_at(&f, f.grads[0]), "t_sum2");
    assert_string_equal(op_at(&f, in(&f, f.grads[0], 0)), "zeros_like");
    assert_int_equal(in(&f, in(&f, f.grads[0], 0), 0), first(&f, "p"));
    assert_int_equal(in(&f, f.grads[0], 1), f.g->nodes[f.head_vars[0]].first_entry);
    finish(&f);
}

static void losses(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *x = var(f.ops, "x"), *loss = op1(f.ops, "t_loss", NULL, "l", x);

    (void)state;
    assert_ok(build(&f, loss, "x l_label", false, 0));
    assert_int_equal(f.head_vars[0], TNI_NONE);
    assert_string_equal(op_at(&f, f.grads[0]), "t_sum2");
    assert_int_equal(in(&f, f.grads[0], 0), first(&f, "l"));
    assert_int_equal(f.grads[1], TNI_NONE);
    tni_graph_destroy(f.g);
    /* behind a stop nothing flows, loss or not */
    loss = take1(f.ops, "t_stop", NULL, "b", take1(f.ops, "t_loss", NULL, "l", x));
    assert_ok(build(&f, loss, "x", false, 0));
    assert_int_equal(f.grads[0], TNI_NONE);
    tni_graph_destroy(f.g);
    /* nor is anything asked there: an operator without a gradient is no matter */
    loss = take1(f.ops, "t_none", NULL, "n", take1(f.ops, "t_stop", NULL, "b", var(f.ops, "x")));
    assert_ok(build(&f, loss, "x", false, 0));
    assert_int_equal(f.grads[0], TNI_NONE);
    finish(&f);
}

static void ones_and_heads(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *x = var(f.ops, "x"), *m = op2(f.ops, "t_mul", NULL, "m", x, x), *both = NULL;

    (void)state;
    assert_ok(tni_symbol_group(2, (tni_symbol *const[]){m, x}, &both)); /* a variable may be a head */
    tni_symbol_release(m);
    assert_ok(build(&f, both, "x", true, 0));
    assert_int_equal(f.head_vars[0], TNI_NONE);
    assert_int_equal(f.head_vars[1], TNI_NONE);
    assert_string_equal(op_at(&f, f.grads[0]), "add_n");
    assert_string_equal(op_at(&f, in(&f, f.grads[0], 0)), "ones_like"); /* of the head x */
    tni_symbol_release(x);
    finish(&f);
}

static void unsupported(void **state)
{
    fixture f = {.ops = test_ops()};
    tni_symbol *s = take1(f.ops, "t_mul", NULL, "m", take1(f.ops, "t_none", NULL, "n", var(f.ops, "x")));
    uint32_t entries;

    (void)state;
    assert_fails(TN_E_UNSUPPORTED, "t_none (node \"n\")", build(&f, s, "x", false, 0));
    entries = f.g->entry_count;
    assert_int_equal(entries, 4); /* cut back to x, n, m_rhs, m */
    assert_int_equal(f.g->variable_count, 2);
    tni_graph_destroy(f.g);
    s = take1(f.ops, "t_mul", NULL, "m", take1(f.ops, "t_none", NULL, "n", var(f.ops, "x")));
    assert_ok(build(&f, s, "m_rhs", false, 0)); /* not on the path: no matter */
    tni_graph_destroy(f.g);
    assert_fails(TN_E_INTERNAL, "node \"b\" (t_bad)",
                 build(&f, take1(f.ops, "t_bad", NULL, "b", var(f.ops, "x")), "x", false, 0));
    tni_graph_destroy(f.g);
    assert_fails(TN_E_UNSUPPORTED, "emits t_stop with the flags 0x40",
                 build(&f, take1(f.ops, "t_flag", NULL, "b", var(f.ops, "x")), "x", false, 0));
    tni_graph_destroy(f.g);
    assert_fails(TN_E_INTERNAL, "an edge that does not exist",
                 build(&f, take1(f.ops, "t_mark", NULL, "b", var(f.ops, "x")), "x", false, 0));
    finish(&f);
}

static void twice(void **state)
{
    fixture f = {.ops = test_ops()};
    uint32_t x = 0, head = 0, again = 0;
    tni_gradient_spec spec = {
        .wanted = &x, .wanted_count = 1, .heads = f.grads, .head_count = 1, .ones = true};

    (void)state;
    assert_ok(build(&f, take2(f.ops, "t_mul", NULL, "m", var(f.ops, "x"), var(f.ops, "y")), "y", true, 0));
    assert_ok(tni_graph_gradient(f.g, &spec, &head, &again)); /* d(dy·x)/dx */
    assert_ok(tni_graph_verify(f.g));
    assert_string_equal(op_at(&f, again), "t_mul");
    assert_string_equal(f.g->nodes[f.g->entry_node[again]].name, "m_backward_backward");
    assert_int_equal(f.g->nodes[f.g->entry_node[again]].forward, node_of(f.g, "m_backward"));
    finish(&f);
}

static void bad_spec(void **state)
{
    fixture f = {.ops = test_ops()};
    uint32_t wanted = 2, out[1];
    tni_symbol *s = take2(f.ops, "t_mul", NULL, "m", var(f.ops, "x"), var(f.ops, "y"));
    tni_gradient_spec spec = {.wanted = &wanted, .wanted_count = 1};

    (void)state;
    assert_ok(tni_graph_of(s, &f.g));
    assert_int_equal(tni_graph_gradient(f.g, &spec, out, out), TN_E_ARG); /* no variable */
    wanted = 9;
    assert_int_equal(tni_graph_gradient(f.g, &spec, out, out), TN_E_ARG);
    wanted = 0;
    spec.heads = (const uint32_t[]){99};
    spec.head_count = 1;
    assert_int_equal(tni_graph_gradient(f.g, &spec, out, out), TN_E_ARG);
    tni_symbol_release(s);
    finish(&f);
}

/* A gradient has the shape of its x: the head gradients and zeros get theirs without any kernel's help. */
static void shapes_follow(void **state)
{
    fixture f = {.ops = test_ops()};
    tn_shape s = {.ndim = 2, .dim = {3, 4}};
    tni_symbol *pair = take1(f.ops, "t_pair", NULL, "p", var(f.ops, "x")), *second = NULL;

    (void)state;
    assert_ok(tni_symbol_output(pair, 1, &second));
    tni_symbol_release(pair);
    assert_ok(build(&f, second, "x", false, 0));
    assert_ok(tni_graph_preset(f.g, 0, &s, TN_F64, -1));
    assert_ok(tni_graph_infer(f.g, false));
    assert_int_equal(f.g->inferred, 7);
    assert_int_equal(f.g->shapes[f.grads[0]].dim[1], 4);
    assert_int_equal(f.g->dtypes[f.g->nodes[f.head_vars[0]].first_entry], TN_F64);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_uses), cmocka_unit_test(begins_with_old), cmocka_unit_test(product),
        cmocka_unit_test(sums),          cmocka_unit_test(zeros_dropped),   cmocka_unit_test(missing_head),
        cmocka_unit_test(losses),        cmocka_unit_test(ones_and_heads),  cmocka_unit_test(unsupported),
        cmocka_unit_test(twice),         cmocka_unit_test(bad_spec),        cmocka_unit_test(shapes_follow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
