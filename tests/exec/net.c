#include "net.h"

#include <string.h>

tni_symbol *net_variable(tni_context *c, const char *name)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_variable(c->ops, name, &s));
    return s;
}

tni_symbol *net_op(tni_context *c, const char *op, uint32_t in_count, tni_symbol *const *in, ...)
{
    tni_symbol *open = NULL, *done = NULL;
    test_attrs a;
    va_list pairs;

    va_start(pairs, in);
    test_attrs_take(&a, pairs);
    va_end(pairs);
    assert_ok(tni_symbol_atomic(c->ops, op, a.count, a.names, a.texts, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, in_count, NULL, in, &done));
    tni_symbol_release(open);
    return done;
}

tni_symbol *net_take(tni_context *c, const char *op, tni_symbol *a, tni_symbol *b, const char *attr)
{
    tni_symbol *const in[] = {a, b};
    tni_symbol *s = net_op(c, op, b ? 2 : 1, in, attr, NULL);

    tni_symbol_release(a);
    if (b != a)
        tni_symbol_release(b);
    return s;
}

uint32_t net_inputs(tni_symbol *s)
{
    char **names = NULL;
    size_t count = 0;

    assert_ok(tni_symbol_list(s, TNI_LIST_INPUTS, &count, &names));
    tni_free(names);
    return (uint32_t)count;
}

static void node_call(tni_context *c, const tni_graph *g, uint32_t k, tni_array **values)
{
    const tni_gnode *n = &g->nodes[k];
    tni_array *in[32], *out[32] = {NULL};
    tni_site *site = NULL;

    assert_true(n->input_count <= 32 && n->output_count <= 32);
    for (uint32_t i = 0; i < n->input_count; i++)
        in[i] = values[tni_graph_input(g, n, i)];
    assert_ok(tni_site_of(c, n->def, n->attrs, &site));
    assert_ok(tni_invoke(site, n->input_count, in, n->visible_count, out));
    for (uint32_t o = 0; o < n->visible_count; o++)
        values[n->first_entry + o] = out[o];
    tni_site_release(site);
}

static void eager_call(tni_context *c, tni_symbol *s, tni_array *const *in, tni_array **out)
{
    tni_array *values[256] = {NULL};
    tni_graph *g = NULL;

    assert_ok(tni_graph_of(s, &g));
    assert_true(g->entry_count <= 256);
    for (uint32_t v = 0; v < g->variable_count; v++)
        tni_array_retain(values[g->nodes[g->variables[v]].first_entry] = in[v]);
    for (uint32_t k = 0; k < g->node_count; k++)
        if (g->nodes[k].def)
            node_call(c, g, k, values);
    for (uint32_t h = 0; h < g->head_count; h++)
        tni_array_retain(out[h] = values[g->heads[h]]);
    for (uint32_t e = 0; e < g->entry_count; e++)
        tni_array_release(values[e]);
    tni_graph_destroy(g);
}

void net_call(tni_context *c, tni_symbol *s, bool hybrid, tni_array *const *in, tni_array **out)
{
    tni_cached_op *op = NULL;

    if (!hybrid) {
        eager_call(c, s, in, out);
        return;
    }
    for (uint32_t h = 0; h < s->output_count; h++)
        out[h] = NULL;
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_cached_op_call(op, net_inputs(s), in, s->output_count, out));
    tni_cached_op_release(op);
}

void net_same(tni_array *a, tni_array *b, const char *what)
{
    float x[1024], y[1024];
    const size_t count = (size_t)tni_array_count(a);

    assert_true(count <= 1024 && a->dtype == TN_F32);
    assert_true(tni_array_has_shape(b, a->ndim, a->shape));
    assert_ok(tni_array_read(a, x, count * sizeof *x));
    assert_ok(tni_array_read(b, y, count * sizeof *y));
    for (size_t i = 0; i < count; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0) {
            print_error("%s: element %zu: %.9g and %.9g\n", what, i, (double)x[i], (double)y[i]);
            fail();
        }
}
