/* A case as a symbol, run by a cached operator or a program. */
#include "trip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct net {
    tn_symbol *entries[FUZZ_ENTRIES_MAX]; /* of variables that are read, and of live nodes */
    tn_symbol *whole;
    tn_array *in[FUZZ_VARIABLES_MAX];
    uint32_t in_count;
} net;

/* ---- composing ----------------------------------------------------------------------------------------- */

static tn_status entry_symbol(trip *t, net *n, uint32_t entry, tn_symbol **out)
{
    const fuzz_entry *e = &t->c->entries[entry];
    char name[16];
    tn_status st = TN_OK;

    snprintf(name, sizeof name, "v%u", e->index);
    if (!n->entries[entry])
        st = e->node == FUZZ_NONE ? tn_symbol_variable(t->ctx, name, &n->entries[entry])
                                  : fuzz_refused("an input is the output of a node that has fewer");
    *out = n->entries[entry];
    return st;
}

static tn_status node_compose(trip *t, net *n, const fuzz_node *node)
{
    const char *attrs[FUZZ_PAIRS_MAX];
    tn_symbol *in[FUZZ_EDGES_MAX], *made = NULL;
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = node->in_count,
                                 .op = fuzz_text_at(t->c, node->op),
                                 .attrs = attrs,
                                 .in = in};
    tn_status st = TN_OK;
    uint32_t count;

    fuzz_trip_attrs(t->c, node, attrs);
    for (uint32_t i = 0; i < node->in_count && !st; i++)
        st = entry_symbol(t, n, t->c->edges[node->first_edge + i], &in[i]);
    if (st || (st = tn_symbol_op(t->ctx, &call, &made)))
        return st;
    count = tn_symbol_output_count(made);
    for (uint32_t o = 0; o < node->out_count && o < count && !st; o++)
        st = tn_symbol_output(made, o, &n->entries[node->first_entry + o]);
    tn_symbol_release(made);
    return st;
}

static tn_status json_again(trip *t, tn_symbol **s)
{
    char *text = NULL;
    tn_symbol *read = NULL;
    tn_status st = tn_symbol_to_json(*s, &text);

    if (!st)
        st = tn_symbol_from_json(t->ctx, text, strlen(text), &read);
    tn_free(text);
    if (!st) {
        tn_symbol_release(*s);
        *s = read;
    }
    return st;
}

static tn_status compose(trip *t, net *n)
{
    const fuzz_case *c = t->c;
    tn_symbol *heads[FUZZ_HEADS_MAX];
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->node_count && !st; i++)
        if (t->live[i])
            st = node_compose(t, n, &c->nodes[i]);
    for (uint32_t h = 0; h < c->head_count && !st; h++)
        if ((st = entry_symbol(t, n, c->heads[h].entry, &heads[h])))
            st = fuzz_refused("a head is the output of a node that has fewer");
    if (st || (st = tn_symbol_group(c->head_count, heads, &n->whole)))
        return st;
    return t->flags & FUZZ_WAY_JSON ? json_again(t, &n->whole) : TN_OK;
}

/* The variable called `name`: "v12". */
static tn_array *array_of(const trip *t, const char *name)
{
    const unsigned long i = name[0] == 'v' ? strtoul(name + 1, NULL, 10) : FUZZ_VARIABLES_MAX;

    return i < t->c->variable_count ? t->variables[i].view : NULL;
}

/* ---- cached operators ---------------------------------------------------------------------------------- */

static tn_status inputs_bind(trip *t, net *n)
{
    char **names = NULL;
    size_t count = 0;
    tn_status st = tn_symbol_list(n->whole, TN_LIST_INPUTS, &count, &names);

    for (size_t i = 0; i < count && !st; i++)
        if (i == FUZZ_VARIABLES_MAX || !(n->in[n->in_count++] = array_of(t, names[i])))
            st = fuzz_refused("the symbol has an input that is no variable");
    tn_free(names);
    return st;
}

static void heads_take(trip *t, tn_array **out)
{
    for (uint32_t h = 0; h < t->c->head_count; h++) {
        tn_array **to = &t->entries[t->c->heads[h].entry];

        tn_array_release(*to);
        *to = out[h];
        if (out[h] == fuzz_trip_given(t, h))
            tn_array_retain(out[h]);
    }
}

static tn_status cached_call(trip *t, net *n, tn_cached_op *op)
{
    const uint32_t count = t->c->head_count;
    tn_array *out[FUZZ_HEADS_MAX] = {NULL};
    tn_status st;

    for (uint32_t h = 0; h < count; h++)
        out[h] = fuzz_trip_given(t, h);
    st = tn_cached_op_call(op, n->in_count, n->in, count, out);
    for (uint32_t h = 0; h < count && st; h++)
        if (out[h] != fuzz_trip_given(t, h))
            fuzz_result_wrong(t->r, "output: a net failed and changed its list of outputs");
    if (!st)
        heads_take(t, out);
    return st;
}

static tn_status cached_run(trip *t, net *n)
{
    const uint32_t keeps = (t->c->flags & FUZZ_STATIC) != 0;
    const uint32_t number = (uint32_t)(t->c->number / 4 % 6), way = t->c->number % 4; /* 2, 3: no limits */
    const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options),
                                 .static_alloc = keeps,
                                 .static_shape = keeps,
                                 .inline_limit = way == 0 ? UINT32_MAX : 0,
                                 .forward_bulk = way == 1 ? 1 + number % 3 : 0,
                                 .backward_bulk = way == 1 ? 1 + number / 3 : 0};
    tn_cached_op *op = NULL;
    tn_status st;

    if (!(st = tn_cached_op_create(t->ctx, n->whole, &o, &op)) && !(st = inputs_bind(t, n)) &&
        t->flags & FUZZ_WAY_TWICE && !(st = cached_call(t, n, op)))
        st = tn_random_seed(t->ctx, t->c->number, t->cpu);
    if (!st)
        st = cached_call(t, n, op);
    tn_cached_op_release(op);
    return st;
}

/* ---- programs ------------------------------------------------------------------------------------------ */

/* States are parameters, of the others every second one. */
static tn_status params_make(trip *t, net *n, tn_params **params)
{
    static const int32_t lists[] = {TN_LIST_ARGUMENTS, TN_LIST_AUX};
    tn_status st = tn_params_create(params);

    for (int k = 0; k < 2 && !st; k++) {
        char **names = NULL;
        size_t count = 0;

        st = tn_symbol_list(n->whole, lists[k], &count, &names);
        for (size_t i = 0; i < count && !st; i++)
            if (k == 1 || i % 2)
                st = tn_params_add(*params, names[i], array_of(t, names[i]));
        tn_free(names);
    }
    return st;
}

static tn_status program_call(trip *t, net *n, tn_program *p)
{
    tn_array *out[FUZZ_HEADS_MAX] = {NULL};
    tn_status st;

    for (uint32_t i = 0; i < tn_program_input_count(p) && i < FUZZ_VARIABLES_MAX; i++)
        n->in[n->in_count++] = array_of(t, tn_program_input(p, i));
    for (uint32_t h = 0; h < t->c->head_count; h++)
        out[h] = fuzz_trip_given(t, h);
    st = tn_program_run(p, n->in_count, n->in, t->c->head_count, out);
    if (!st)
        heads_take(t, out);
    return st;
}

static tn_status program_run(trip *t, net *n)
{
    tn_params *params = NULL;
    tn_program *p = NULL;
    tn_status st;

    if (!(st = params_make(t, n, &params)) && !(st = tn_program_create(t->ctx, n->whole, params, &p)))
        st = program_call(t, n, p);
    tn_program_destroy(p);
    tn_params_destroy(params);
    return st;
}

tn_status fuzz_trip_compiled(trip *t)
{
    static net n;
    tn_status st;

    memset(&n, 0, sizeof n);
    if (!(st = compose(t, &n)))
        st = t->flags & FUZZ_WAY_PROGRAM ? program_run(t, &n) : cached_run(t, &n);
    for (uint32_t i = 0; i < t->c->entry_count; i++)
        tn_symbol_release(n.entries[i]);
    tn_symbol_release(n.whole);
    return st;
}
