/* The memory planned for activations equals the largest live sum, for LeNet and three wider nets. */
#include "context.h"

#include <string.h>

/* A symbol under construction: `on` replaces it by an operator over it. */
static tni_symbol *on(tni_context *c, const char *op, tni_symbol *in, const char *name, const char *value,
                      const char *name2, const char *value2)
{
    const char *names[] = {name, name2}, *texts[] = {value, value2};
    tni_symbol *atom = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, op, name2 ? 2 : name ? 1 : 0, names, texts, NULL, &atom));
    assert_ok(tni_symbol_compose(atom, NULL, 1, NULL, &in, &done));
    tni_symbol_release(atom);
    tni_symbol_release(in);
    return done;
}

static tni_symbol *join(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b, const char *count)
{
    tni_symbol *atom = NULL, *done = NULL, *args[] = {a, b};

    assert_ok(
        tni_symbol_atomic(c->ops, op, count ? 1 : 0, (const char *[]){"num_args"}, &count, NULL, &atom));
    assert_ok(tni_symbol_compose(atom, NULL, 2, NULL, args, &done));
    tni_symbol_release(atom);
    tni_symbol_release(a);
    tni_symbol_release(b);
    return done;
}

static tni_symbol *again(tni_symbol *s)
{
    tni_symbol_retain(s);
    return s;
}

static tni_symbol *conv(tni_context *c, tni_symbol *in, const char *filters)
{
    const char *names[] = {"kernel", "pad", "num_filter"}, *texts[] = {"(3, 3)", "(1, 1)", filters};
    tni_symbol *atom = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, "Convolution", 3, names, texts, NULL, &atom));
    assert_ok(tni_symbol_compose(atom, NULL, 1, NULL, &in, &done));
    tni_symbol_release(atom);
    tni_symbol_release(in);
    return on(c, "tanh", done, NULL, NULL, NULL, NULL);
}

static tni_symbol *pool(tni_context *c, tni_symbol *in)
{
    return on(c, "Pooling", in, "kernel", "(2, 2)", "stride", "(2, 2)");
}

static tni_symbol *data(tni_context *c)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_variable(c->ops, "data", &s));
    return s;
}

static tni_symbol *lenet(tni_context *c)
{
    tni_symbol *s = pool(c, conv(c, pool(c, conv(c, data(c), "20")), "50"));

    s = on(c, "FullyConnected", on(c, "Flatten", s, NULL, NULL, NULL, NULL), "num_hidden", "500", NULL, NULL);
    return on(c, "FullyConnected", on(c, "tanh", s, NULL, NULL, NULL, NULL), "num_hidden", "10", NULL, NULL);
}

static tni_symbol *residual(tni_context *c)
{
    tni_symbol *s = conv(c, data(c), "32");

    for (int i = 0; i < 6; i++) {
        tni_symbol *skip = again(s);

        s = join(c, "elemwise_add", skip, conv(c, conv(c, s, "32"), "32"), NULL);
    }
    return s;
}

static tni_symbol *inception(tni_context *c)
{
    tni_symbol *s = conv(c, data(c), "16");

    for (int i = 0; i < 4; i++) {
        tni_symbol *narrow = conv(c, again(s), "8"), *wide = conv(c, conv(c, s, "24"), "16");

        s = join(c, "Concat", narrow, wide, "2");
    }
    return s;
}

static tni_symbol *dense(tni_context *c)
{
    tni_symbol *s = conv(c, data(c), "12");

    for (int i = 0; i < 6; i++) {
        tni_symbol *before = again(s);

        s = join(c, "Concat", before, conv(c, s, "12"), "2");
    }
    return pool(c, s);
}

/* Arrays for all inputs of a net, shapes inferred from the data's. */
static void planned(tni_context *c, tni_symbol *s, const char *name)
{
    tni_cached_op *op = NULL;
    tni_graph *g = NULL;
    tni_array *in[128] = {NULL}, *out = NULL;
    tn_shape shape = {.ndim = 4, .dim = {8, 1, 32, 32}};
    uint64_t bytes = 0, bound = 0;

    assert_ok(tni_graph_of(s, &g));
    assert_true(g->variable_count <= 128);
    for (uint32_t i = 0; i < g->variable_count; i++)
        if (!strcmp(g->nodes[g->variables[i]].name, "data"))
            assert_ok(tni_graph_preset(g, i, &shape, TN_F32, TN_STORAGE_DENSE));
    assert_ok(tni_graph_infer(g, false));
    for (uint32_t i = 0; i < g->variable_count; i++) {
        const tn_shape *want = &g->shapes[g->nodes[g->variables[i]].first_entry];

        in[i] = test_array(c, want->ndim, want->dim, NULL);
        assert_ok(tni_array_fill(in[i], 0.01));
    }
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, g->variable_count, in, 1, &out));
    assert_ok(tni_array_wait(out));
    assert_ok(tni_cached_op_memory(op, &bytes, &bound));
    print_message("%-10s planned %8llu bytes, bound %8llu\n", name, (unsigned long long)bytes,
                  (unsigned long long)bound);
    assert_true(bound > 0);
    assert_int_equal(bytes, bound);
    for (uint32_t i = 0; i < g->variable_count; i++)
        tni_array_release(in[i]);
    tni_array_release(out);
    tni_cached_op_release(op);
    tni_graph_destroy(g);
    tni_symbol_release(s);
}

static void plans_of(const char *kernels)
{
    tni_context *c = test_context((const char *[]){kernels, NULL});

    planned(c, lenet(c), "lenet");
    planned(c, residual(c), "residual");
    planned(c, inception(c), "inception");
    planned(c, dense(c), "dense");
    test_context_close(c);
}

/* Workspaces differ between plugins, so both are planned. */
static void plans_equal_bounds(void **state)
{
    (void)state;
    plans_of("kernel.prefer=cpu-openblas");
    plans_of("kernel.prefer=cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_equal_bounds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
