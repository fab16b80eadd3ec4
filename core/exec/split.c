/*
 * Nets in which something depends on a size that only a kernel's run tells (boolean_mask): they are two nets.
 * The first gives what can be computed before, the second is compiled when the sizes are known, and may be
 * split again: a continuation (continue.c), which nobody waits for. On the tape both are nodes like any
 * other, the second one once it is compiled. Draws are those of the whole net.
 */
#include "exec/split.h"

#include <string.h>

void tni_split_destroy(tni_split *s)
{
    if (!s)
        return;
    tni_cached_op_release(s->first);
    tni_cached_op_release(s->rest);
    tni_free(s->first_inputs);
    tni_free(s->specs);
    tni_free(s->rest_leads);
    tni_free(s);
}

typedef struct splitter {
    const tni_graph *g;
    tni_split *s;
    uint8_t *early, *late; /* per node */
    uint32_t *first_heads; /* entries that the first part gives */
    uint32_t *rest_heads;
    uint32_t *place; /* per entry: its place among `first_heads`; TNI_NONE */
    uint32_t *outside;
    uint32_t first_count, rest_count;
} splitter;

/* What reads something of unknown size, or a result of such a node. */
static bool late_mark(splitter *w)
{
    const tni_graph *g = w->g;
    bool any = false;

    for (uint32_t n = 0; n < g->node_count; n++) {
        for (uint32_t i = 0; i < g->nodes[n].input_count; i++) {
            const uint32_t e = tni_graph_input(g, &g->nodes[n], i);

            w->late[n] |= !tn_shape_known(&g->shapes[e]) || w->late[g->entry_node[e]];
        }
        w->early[n] = !w->late[n];
        any |= w->late[n];
    }
    return any;
}

/* Its place among the heads of a part: each entry has one. */
static uint32_t part_head(splitter *w, uint32_t entry, uint32_t *heads, uint32_t *count)
{
    if (w->place[entry] == TNI_NONE) {
        w->place[entry] = *count;
        heads[(*count)++] = entry;
    }
    return w->place[entry];
}

static uint32_t first_head(splitter *w, uint32_t entry)
{
    return part_head(w, entry, w->first_heads, &w->first_count);
}

static void heads_share(splitter *w)
{
    const tni_graph *g = w->g;

    for (uint32_t h = 0; h < g->head_count; h++) {
        if (w->late[g->entry_node[g->heads[h]]]) {
            w->s->heads[h] = part_head(w, g->heads[h], w->rest_heads, &w->rest_count);
        } else {
            w->s->heads[h] = TNI_OF_FIRST | first_head(w, g->heads[h]);
        }
    }
    for (uint32_t n = 0; n < g->node_count; n++)
        for (uint32_t i = 0; w->late[n] && i < g->nodes[n].input_count; i++) {
            const uint32_t e = tni_graph_input(g, &g->nodes[n], i), from = g->entry_node[e];

            if (!w->late[from] && g->nodes[from].def)
                (void)first_head(w, e);
        }
}

static tn_status leads_note(tni_split *s)
{
    s->rest_leads = tni_calloc(s->rest->graph->variable_count + 1u, sizeof *s->rest_leads);
    return s->rest_leads ? tni_graph_leads(s->rest->graph, s->rest_leads) : TN_E_NOMEM;
}

/* One part; `inputs`: where its variables come from. */
static tn_status part_make(splitter *w, const uint8_t *take, uint32_t count, const uint32_t *heads,
                           uint32_t *inputs, tni_cached_op **out)
{
    tni_graph *part = NULL;
    tn_status st = tni_graph_part(w->g, take, count, heads, &part, w->outside);

    for (uint32_t v = 0; !st && v < part->variable_count; v++) {
        const uint32_t e = w->outside[v];
        const tni_gnode *from = &w->g->nodes[w->g->entry_node[e]];

        inputs[v] = from->def ? TNI_OF_FIRST | w->place[e] : from->variable;
    }
    if (st)
        return st;
    return tni_cached_op_of_graph(w->s->ctx, part, out);
}

static tn_status splitter_init(splitter *w, tni_context *c, const tni_graph *g)
{
    const uint64_t entries = g->entry_count + 1ull;

    *w = (splitter){.g = g};
    w->early = tni_calloc(2 * (g->node_count + 1ull), 1);
    w->first_heads = tni_alloc(4 * entries * sizeof *w->first_heads);
    w->s = tni_zalloc(sizeof *w->s);
    if (!w->early || !w->first_heads || !w->s)
        return TN_E_NOMEM;
    w->late = w->early + g->node_count + 1;
    w->rest_heads = w->first_heads + entries;
    w->place = w->rest_heads + entries;
    w->outside = w->place + entries;
    memset(w->place, 0xff, entries * sizeof *w->place);
    w->s->ctx = c;
    w->s->head_count = g->head_count;
    w->s->draws = g->random_count;
    w->s->first_inputs = tni_calloc(2 * entries + g->head_count + 1, sizeof *w->s->first_inputs);
    if (!w->s->first_inputs)
        return TN_E_NOMEM;
    w->s->rest_inputs = w->s->first_inputs + entries;
    w->s->heads = w->s->rest_inputs + entries;
    return TN_OK;
}

/* A view lies where its input does. */
static tni_device *device_of(const tni_graph *g, uint32_t entry)
{
    const tni_gnode *n = &g->nodes[g->entry_node[entry]];

    while (n->def && n->def->op->flags & TN_OP_VIEW)
        n = &g->nodes[g->entry_node[tni_graph_input(g, n, 0)]];
    return n->device;
}

static tn_status likes_note(const splitter *w)
{
    const tni_graph *g = w->g;
    tni_array_spec *like = w->s->specs =
        tni_calloc((uint64_t)w->first_count + w->rest_count + 1, sizeof *like);

    for (uint32_t i = 0; like && i < w->first_count + w->rest_count; i++) {
        const uint32_t e = i < w->first_count ? w->first_heads[i] : w->rest_heads[i - w->first_count];

        like[i] = (tni_array_spec){g->shapes[e], g->dtypes[e], device_of(g, e)};
    }
    return like ? TN_OK : TN_E_NOMEM;
}

tn_status tni_array_spec_make(tni_context *c, const tni_array_spec *like, tni_device *d, tni_array **out)
{
    tni_device *on = like->device ? like->device : d;

    return tn_shape_known(&like->shape)
               ? tni_array_create(c->space, on, like->dtype, like->shape.ndim, like->shape.dim, "array", out)
               : tni_array_create_pending(c->space, on, like->dtype, out);
}

tn_status tni_split_create(tni_context *c, const tni_graph *g, tni_split **out)
{
    splitter w;
    tn_status st = splitter_init(&w, c, g);

    *out = NULL;
    if (!st && late_mark(&w)) {
        heads_share(&w);
        if (!(st = likes_note(&w)) &&
            !(st = part_make(&w, w.early, w.first_count, w.first_heads, w.s->first_inputs, &w.s->first)) &&
            !(st = part_make(&w, w.late, w.rest_count, w.rest_heads, w.s->rest_inputs, &w.s->rest)) &&
            !(st = leads_note(w.s))) {
            *out = w.s; /* moved */
            w.s = NULL;
        }
    }
    tni_free(w.early);
    tni_free(w.first_heads);
    tni_split_destroy(w.s);
    return st;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

/* Results that the caller gave arrays for are written there; the same one twice is copied. */
static tn_status heads_give(const tni_split *s, tni_array *const *first, tni_array *const *rest,
                            tni_array **out, uint8_t *made)
{
    tn_status st = TN_OK;

    for (uint32_t h = 0; h < s->head_count && !st; h++) {
        tni_array *from = s->heads[h] & TNI_OF_FIRST ? first[s->heads[h] & ~TNI_OF_FIRST] : rest[s->heads[h]];

        for (uint32_t k = 0; k < h && !out[h]; k++)
            if (out[k] == from) {
                if ((st = tni_array_shape_wait(from)) || (st = tni_array_like(from, "array", &out[h])))
                    return st;
                made[h] = 1;
            }
        if (out[h]) {
            if ((st = tni_array_shape_wait(from)))
                return st;
            if (out[h]->dtype != from->dtype || !tni_array_has_shape(out[h], from->ndim, from->shape))
                return tni_error(TN_E_SHAPE,
                                 "output %u of the net has another shape or dtype than the array given", h);
            st = tni_array_copy(from, out[h]);
            continue;
        }
        tni_array_retain(out[h] = from);
        made[h] = 1;
    }
    return st;
}

typedef struct split_lists { /* what a call lends to its parts */
    tni_bound *bound, *in;
    tni_tape_origin *from;
    tni_tape_entry **entries;
    uint8_t *modes;
} split_lists;

static tn_status lists_fill(const tni_split *s, const tni_cached_key *k, tni_array **made,
                            const split_lists *l)
{
    const uint32_t all = s->first->graph->head_count + s->rest->graph->head_count;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < k->in_count; i++) {
        l->in[i] = (tni_bound){k->in[i], tni_array_var(k->in[i])};
        if (!k->recorded)
            continue;
        l->from[i] = tni_tape_origin_of(k->in[i]);
        l->modes[i] = tni_cached_mode(k, i);
    }
    for (uint32_t i = 0; i < all && !st; i++)
        if (!(st = tni_array_spec_make(s->ctx, &s->specs[i], k->device, &made[i])))
            l->bound[i] = (tni_bound){made[i], tni_array_var(made[i])};
    return st;
}

static tn_status lists_queue(tni_split *s, const tni_cached_key *k, tni_array **made, const split_lists *l)
{
    const uint64_t *drawn = tni_scope_get()->draw;
    const uint32_t firsts = s->first->graph->head_count, all = firsts + s->rest->graph->head_count;
    tni_split_run p = {.split = s,
                       .key = k,
                       .in = l->in,
                       .first = l->bound,
                       .rest = l->bound + firsts,
                       .from = l->from,
                       .modes = l->modes,
                       .entries = l->entries};
    tn_status st = lists_fill(s, k, made, l);

    if (st)
        return st;
    if (k->recorded)
        p.order_end = (p.order = tni_tape_places(s->ctx, TNI_TAPE_LEVELS)) + TNI_TAPE_LEVELS;
    if (drawn || s->draws)
        p.draw = drawn ? *drawn : tni_random_take(s->ctx, k->device, s->draws);
    st = tni_split_queue(&p);
    for (uint32_t i = 0; i < all; i++) {
        if (!st && l->entries[i])
            tni_tape_attach(made[i], l->entries[i]);
        tni_tape_entry_release(l->entries[i]);
    }
    return st;
}

/* Queues both parts, and waits for nothing. */
static tn_status outputs_make(tni_split *s, const tni_cached_key *k, tni_array **made)
{
    const uint64_t all = (uint64_t)s->first->graph->head_count + s->rest->graph->head_count;
    split_lists l = {.bound = tni_calloc(all + k->in_count + 1, sizeof *l.bound),
                     .from = tni_calloc(k->in_count + 1u, sizeof *l.from),
                     .entries = tni_calloc(all + 1, sizeof(*l.entries)),
                     .modes = tni_calloc(k->in_count + 1u, 1)};
    tn_status st = TN_E_NOMEM;

    if (l.bound && l.from && l.entries && l.modes) {
        l.in = l.bound + all;
        st = lists_queue(s, k, made, &l);
    }
    tni_free(l.bound);
    tni_free(l.from);
    tni_free((void *)l.entries);
    tni_free(l.modes);
    return st;
}

tn_status tni_split_call(tni_split *s, const tni_cached_key *k, tni_array **out)
{
    const uint32_t firsts = s->first->graph->head_count, all = firsts + s->rest->graph->head_count;
    tni_array **made = tni_calloc(all + 1u, sizeof(*made));
    uint8_t *given = tni_calloc(s->head_count + 1u, 1);
    tn_status st = made && given ? outputs_make(s, k, made) : TN_E_NOMEM;

    if (!st)
        st = heads_give(s, made, made + firsts, out, given);
    for (uint32_t h = 0; st && given && h < s->head_count; h++)
        if (given[h]) {
            tni_array_release(out[h]);
            out[h] = NULL;
        }
    for (uint32_t i = 0; made && i < all; i++)
        tni_array_release(made[i]);
    tni_free((void *)made);
    tni_free(given);
    return st;
}
