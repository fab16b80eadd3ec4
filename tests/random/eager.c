/* A case as eager calls, one after the other. */
#include "trip.h"

#include <math.h>
#include <string.h>

#define OUTPUTS_MAX 4096

/* What the caller gives for output `o` of node `n`. */
static tn_array *output_given(const trip *t, uint32_t n, uint32_t o)
{
    const fuzz_node *node = &t->c->nodes[n];

    for (uint32_t h = 0; h < t->c->head_count; h++)
        if (t->c->heads[h].entry == node->first_entry + o && fuzz_trip_given(t, h))
            return fuzz_trip_given(t, h);
    if (o == 0 && node->inplace != FUZZ_NONE && !(t->flags & FUZZ_WAY_APART)) {
        tn_array *over = t->entries[t->c->edges[node->first_edge + node->inplace]];

        return tn_array_storage(over) == TN_STORAGE_DENSE ? over : NULL; /* sparse ones cannot be given */
    }
    return NULL;
}

static tn_status invoke(trip *t, const fuzz_node *n, tn_site *site, const char *const *attrs,
                        tn_array *const *in, uint32_t room, tn_array **out)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = n->in_count,
                             .op = fuzz_text_at(t->c, n->op),
                             .attrs = attrs,
                             .in = in};

    return t->flags & FUZZ_WAY_TEXT ? tn_invoke_text(t->ctx, &call, room, out, NULL)
                                    : tn_invoke(site, n->in_count, in, room, out);
}

/* The site begins with 1 for each run-time number and is set to what the case says. */
static tn_status site_set(trip *t, const fuzz_node *n, tn_site **out)
{
    const char *attrs[FUZZ_PAIRS_MAX], *op = fuzz_text_at(t->c, n->op);
    double values[FUZZ_PAIRS_MAX / 2];
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    tn_status st;

    fuzz_trip_attrs(t->c, n, attrs);
    if ((st = tn_op_find(t->ctx, op, &info)))
        return st;
    for (uint32_t a = 0; attrs[2 * a]; a++) {
        const tn_attr_def *d = info.attrs;

        while (d && d->name && strcmp(d->name, attrs[2 * a]) != 0)
            d++;
        values[a] = NAN;
        if (d && d->name && d->flags & TN_ATTR_F_RUNTIME && d->type == TN_ATTR_T_FLOAT &&
            tni_parse_f64(attrs[2 * a + 1], &values[a]) && !isnan(values[a]))
            attrs[2 * a + 1] = "1";
    }
    st = tn_site_create(t->ctx, op, attrs, out);
    for (uint32_t a = 0; attrs[2 * a] && !st; a++) {
        uint32_t index;

        if (!isnan(values[a]) && !(st = tn_site_attr(*out, attrs[2 * a], &index)))
            st = tn_site_set_float(*out, index, values[a]);
    }
    if (st) {
        tn_site_release(*out);
        *out = NULL;
    }
    return st;
}

/* As many outputs as the attributes make; `out` holds what the caller gives. */
static uint32_t outputs_prepare(const trip *t, uint32_t index, const tn_site *site, tn_array **out)
{
    const fuzz_node *n = &t->c->nodes[index];
    tni_args args = {.visible_count = n->out_count};

    if (tni_op_args(site->def, site->attrs, n->in_count, &args))
        args.visible_count = n->out_count;
    memset(out, 0, args.visible_count * sizeof *out);
    for (uint32_t o = 0; o < n->out_count && o < args.visible_count; o++)
        out[o] = output_given(t, index, o);
    return args.visible_count;
}

/* Its results are dropped; its failure comes again. */
static void call_before(trip *t, uint32_t index, tn_site *site, const char *const *attrs, tn_array *const *in)
{
    static tn_array *out[OUTPUTS_MAX];
    const uint32_t room = outputs_prepare(t, index, site, out);

    memset(out, 0, room * sizeof *out);
    if (invoke(t, &t->c->nodes[index], site, attrs, in, room, out))
        return;
    for (uint32_t o = 0; o < room; o++)
        tn_array_release(out[o]);
}

static void outputs_take(trip *t, uint32_t index, uint32_t room, tn_array *const *out)
{
    const fuzz_node *n = &t->c->nodes[index];

    for (uint32_t o = 0; o < room; o++) {
        if (o >= n->out_count) {
            tn_array_release(out[o]);
            continue;
        }
        if (output_given(t, index, o))
            tn_array_retain(out[o]);
        t->entries[n->first_entry + o] = out[o];
    }
}

static tn_status node_run(trip *t, uint32_t index)
{
    static tn_array *out[OUTPUTS_MAX];
    const fuzz_node *n = &t->c->nodes[index];
    const char *attrs[FUZZ_PAIRS_MAX];
    tn_array *in[FUZZ_EDGES_MAX], *before;
    tn_site *site = NULL;
    uint32_t room;
    tn_status st;

    fuzz_trip_attrs(t->c, n, attrs);
    for (uint32_t i = 0; i < n->in_count; i++)
        if (!(in[i] = t->entries[t->c->edges[n->first_edge + i]]))
            return fuzz_refused("an input is the output of a node that has fewer");
    if ((st = t->flags & FUZZ_WAY_SETS ? site_set(t, n, &site)
                                       : tn_site_create(t->ctx, fuzz_text_at(t->c, n->op), attrs, &site)))
        return st;
    if (t->flags & FUZZ_WAY_TWICE)
        call_before(t, index, site, attrs, in);
    room = outputs_prepare(t, index, site, out);
    before = out[0];
    if ((st = invoke(t, n, site, attrs, in, room, out)) && out[0] != before)
        fuzz_result_wrong(t->r, "output: %s failed and changed its outputs", fuzz_text_at(t->c, n->op));
    if (!st)
        outputs_take(t, index, room, out);
    tn_site_release(site);
    return st;
}

/* A program fails as a whole for values that one of its nodes refuses. Of calls those fail that read such
 * values: a call that reads nothing but their shape does not. */
static tn_status values_wait(const trip *t, uint32_t index)
{
    const fuzz_node *n = &t->c->nodes[index];
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

    if (tn_op_find(t->ctx, fuzz_text_at(t->c, n->op), &info) ||
        !(info.definition->flags & TN_OP_CHECKS_VALUES) || !t->entries[n->first_entry])
        return TN_OK;
    return tn_array_wait(t->entries[n->first_entry]);
}

tn_status fuzz_trip_eager(trip *t)
{
    tn_status st = TN_OK;

    for (uint32_t n = 0; n < t->c->node_count && !st; n++)
        if (t->live[n])
            st = node_run(t, n);
    for (uint32_t h = 0; h < t->c->head_count && !st; h++)
        if (!t->entries[t->c->heads[h].entry])
            st = fuzz_refused("a head is the output of a node that has fewer");
    for (uint32_t n = 0; n < t->c->node_count && !st; n++)
        if (t->live[n])
            st = values_wait(t, n);
    return st;
}
