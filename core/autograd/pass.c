/*
 * Building a pass: the tape is cut into stages, and from its end to its begin each stage is compiled with the
 * heads that gradients arrive at. The first stage that gives to a gradient writes it (or adds to what was
 * there, if that was asked for), all others add, in this order: the last use comes first.
 */
#include "autograd/rows.h"
#include "autograd/stretch.h"

#include <string.h>

typedef struct builder {
    const tni_tape_walk *w;
    const uint8_t *modes; /* per leaf */
    tni_pass *p;
    uint8_t *arrives; /* per slot: a gradient arrives, from a head or from a later stage */
    tni_forward_tables tables;
} builder;

/* ---- stages ------------------------------------------------------------------------------------------ */

static void stage_fini(tni_stage *s)
{
    tni_frame_pool_close(s->pool);
    tni_program_release(s->program);
    tni_free(s->sources);
    tni_free(s->tape_of_node);
    tni_free(s->heads);
    tni_free(s->targets);
}

void tni_pass_release(tni_pass *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    for (uint32_t i = 0; p->stages && i < p->stage_count; i++)
        stage_fini(&p->stages[i]);
    tni_free(p->stages);
    tni_free(p->key);
    tni_free(p->first_slot);
    tni_free(p->made);
    tni_free(p);
}

/* A wanted array is an output of node `k`: what arrives there is to be an array. */
static bool is_wanted(const builder *b, uint32_t k)
{
    for (uint32_t i = 0; i < b->w->wanted_count; i++)
        if (tni_tape_wanted(b->w, i).node == k)
            return true;
    return false;
}

/* What was recorded in training and what was not are two stages: kernels differ. */
static bool joins(const builder *b, uint32_t k)
{
    return k > 0 && tni_tape_alike(tni_tape_at(b->w, k - 1), tni_tape_at(b->w, k)) && !is_wanted(b, k - 1);
}

/* From the begin of the tape to its end; they run the other way round. */
static tn_status stages_cut(builder *b)
{
    tni_pass *p = b->p;
    const size_t nodes = b->w->nodes.count;

    p->stages = tni_calloc(nodes + 1, sizeof *p->stages);
    if (!p->stages)
        return TN_E_NOMEM;
    for (uint32_t k = 0; k < nodes; k++) {
        const tni_tape_call *n = tni_tape_at(b->w, k);

        const uint32_t leaf = tni_rows_leaf(b->w, k);
        const bool apart = leaf != TNI_NONE || (p->stage_count && p->stages[p->stage_count - 1].rows);

        if (apart || !joins(b, k))
            p->stages[p->stage_count++] = (tni_stage){.first = k,
                                                      .cached = n->cached != NULL,
                                                      .function = n->function != NULL,
                                                      .rows = leaf == TNI_NONE ? 0 : leaf + 1};
        p->stages[p->stage_count - 1].count++;
    }
    for (uint32_t i = 0; i < p->stage_count / 2; i++) {
        const tni_stage swap = p->stages[i];

        p->stages[i] = p->stages[p->stage_count - 1 - i];
        p->stages[p->stage_count - 1 - i] = swap;
    }
    return TN_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------- */

/* The gradient of an edge, or of leaf `leaf` if it is of none; TNI_NONE: nobody wants it. */
static uint32_t gradient_of(const tni_pass *p, tni_tape_edge e, uint32_t leaf)
{
    return e.node != TNI_NONE ? p->leaf_count + p->first_slot[e.node] + e.index : leaf;
}

static tn_status slots_number(builder *b)
{
    tni_pass *p = b->p;
    const uint32_t nodes = (uint32_t)b->w->nodes.count, leaves = (uint32_t)b->w->leaves.count;

    p->leaf_count = leaves;
    p->head_count = b->w->head_count;
    if (!(p->first_slot =
              tni_calloc((uint64_t)nodes + p->head_count + b->w->wanted_count + 3, sizeof *p->first_slot)))
        return TN_E_NOMEM;
    p->head_slot = p->first_slot + nodes + 1;
    p->wanted = p->head_slot + p->head_count + 1;
    for (uint32_t k = 0; k < nodes; k++) {
        p->first_slot[k] = p->slot_count;
        p->slot_count += tni_tape_at(b->w, k)->out_count;
    }
    p->made = tni_calloc((uint64_t)leaves + 2ull * p->slot_count + 2, 1);
    b->arrives = tni_calloc(p->slot_count + 1u, 1);
    if (!p->made || !b->arrives)
        return TN_E_NOMEM;
    p->starts = p->made + leaves + p->slot_count + 1;
    for (uint32_t i = 0; i < b->w->wanted_count; i++)
        p->wanted[i] = gradient_of(p, tni_tape_wanted(b->w, i), tni_tape_leaf(b->w, b->w->wanted[i]));
    for (uint32_t h = 0; h < p->head_count; h++) {
        const tni_tape_edge e = tni_tape_head(b->w, h);
        const uint32_t leaf = tni_tape_leaf(b->w, b->w->heads[h]);

        p->head_slot[h] = TNI_NONE;
        if (e.node == TNI_NONE && leaf != TNI_NONE)
            p->made[leaf] = 1;
        if (e.node == TNI_NONE)
            continue;
        p->head_slot[h] = p->first_slot[e.node] + e.index;
        p->starts[p->head_slot[h]] |= b->arrives[p->head_slot[h]]; /* the second head there */
        b->arrives[p->head_slot[h]] = 1;
    }
    return TN_OK;
}

/* Would a stage add to gradient `target`, or write it? */
static uint8_t target_adds(void *arg, uint32_t target)
{
    const builder *b = arg;

    if (b->p->made[target])
        return 1;
    return target < b->p->leaf_count ? b->modes[target] == TN_MODE_ADD
                                     : b->arrives[target - b->p->leaf_count];
}

/* A stage gives to gradient `target`: what it does there. */
static uint8_t target_mode(void *arg, uint32_t target)
{
    builder *b = arg;
    tni_pass *p = b->p;
    const bool leaf = target < p->leaf_count;
    const uint32_t slot = leaf ? 0 : target - p->leaf_count;
    bool first = !p->made[target];

    p->made[target] = 1;
    if (leaf)
        return first ? b->modes[target] : TN_MODE_ADD;
    if (b->arrives[slot] && first) { /* a head is there already */
        p->starts[slot] = 1;
        first = false;
    }
    b->arrives[slot] = 1;
    return first ? TN_MODE_WRITE : TN_MODE_ADD;
}

/* ---- one stage --------------------------------------------------------------------------------------- */

static bool anything_arrives(const builder *b, const tni_stage *s)
{
    const uint32_t first = b->p->first_slot[s->first], last = s->first + s->count - 1;
    const uint32_t end = b->p->first_slot[last] + tni_tape_at(b->w, last)->out_count;

    for (uint32_t slot = first; slot < end; slot++)
        if (b->arrives[slot])
            return true;
    return false;
}

static tn_status stretch_compile(builder *b, tni_stage *s)
{
    const tni_stretch_spec spec = {.walk = b->w,
                                   .first = s->first,
                                   .count = s->count,
                                   .device = tni_tape_output(tni_tape_at(b->w, s->first), 0).device,
                                   .tables = &b->tables,
                                   .arrives = b->arrives,
                                   .adds = target_adds,
                                   .mode = target_mode,
                                   .arg = b};

    return tni_stretch_build(&spec, s);
}

/* What arrives at the outputs of one node, and where the gradients of its inputs go. */
static tn_status ends_find(const builder *b, const tni_tape_call *n, tni_stage *s)
{
    s->heads = tni_calloc((uint64_t)n->out_count + 2ull * n->in_count + 3, 1);
    s->targets = tni_calloc(n->in_count + 1u, sizeof *s->targets);
    if (!s->heads || !s->targets)
        return TN_E_NOMEM;
    s->modes = s->heads + n->out_count + 1;
    for (uint32_t h = 0; h < n->out_count; h++)
        s->heads[h] = b->arrives[b->p->first_slot[s->first] + h];
    for (uint32_t i = 0; i < n->in_count; i++)
        s->targets[i] =
            gradient_of(b->p, tni_tape_source(b->w, s->first, i), tni_tape_leaf(b->w, n->leaves[i]));
    return TN_OK;
}

/* A gradient arrives at all inputs, in order. */
static tn_status function_compile(builder *b, tni_stage *s)
{
    const tni_tape_call *n = tni_tape_at(b->w, s->first);
    const tn_status st = ends_find(b, n, s);

    for (uint32_t i = 0; i < n->in_count && !st; i++)
        s->modes[i] = s->targets[i] != TNI_NONE ? target_mode(b, s->targets[i]) : TN_MODE_NONE;
    return st;
}

static tn_status cached_compile(builder *b, tni_stage *s)
{
    const tni_tape_call *n = tni_tape_at(b->w, s->first);
    const tni_compiled *e = n->cached;
    uint8_t *reached;
    tn_status st;

    if ((st = ends_find(b, n, s)))
        return st;
    reached = s->modes + n->in_count + 1;
    for (uint32_t i = 0; i < n->in_count; i++)
        s->modes[i] = s->targets[i] != TNI_NONE && e->modes[i] != TN_MODE_NONE ? TN_MODE_WRITE : TN_MODE_NONE;
    if ((st = tni_compiled_reach(e, &(tni_backward_key){.heads = s->heads, .modes = s->modes}, reached)))
        return st;
    for (uint32_t i = 0; i < n->in_count; i++)
        s->modes[i] = reached[i] && s->modes[i] ? target_mode(b, s->targets[i]) : TN_MODE_NONE;
    return TN_OK;
}

/* What nothing reaches in it was none of its default backward's either. */
static void default_spread(tni_stage *s, const tni_tape_call *n)
{
    for (uint32_t i = 0; i < n->in_count; i++)
        if (s->modes[i] == TN_MODE_NONE && s->targets[i] != TNI_NONE)
            s->modes[i] = n->cached->modes[i];
}

static tn_status stages_compile(builder *b)
{
    tni_pass *p = b->p;
    uint32_t used = 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->stage_count && !st; i++) {
        tni_stage *s = &p->stages[i];

        if (!anything_arrives(b, s))
            continue;
        st = s->rows       ? TN_OK
             : s->cached   ? cached_compile(b, s)
             : s->function ? function_compile(b, s)
                           : stretch_compile(b, s);
        if (!st && s->cached)
            default_spread(s, tni_tape_at(b->w, s->first));
        if (used != i) { /* stages that nothing reaches drop out */
            p->stages[used] = *s;
            memset(s, 0, sizeof *s);
        }
        used++;
    }
    if (!st)
        p->stage_count = used;
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static tn_status key_take(const builder *b)
{
    tni_pass *p = b->p;

    p->key_count = b->w->key.count;
    p->hash = b->w->hash;
    if (!(p->key = tni_alloc(p->key_count * sizeof *p->key)))
        return TN_E_NOMEM;
    memcpy(p->key, b->w->key.data, p->key_count * sizeof *p->key);
    return TN_OK;
}

tn_status tni_pass_build(const tni_tape_walk *w, const uint8_t *modes, tni_pass **out)
{
    builder b = {.w = w, .modes = modes, .p = tni_zalloc(sizeof *b.p)};
    tn_status st = TN_E_NOMEM;

    if (!b.p)
        return st;
    tni_ref_init(&b.p->refs);
    if (!(st = stages_cut(&b)) && !(st = slots_number(&b)) && !(st = key_take(&b)) &&
        !(st = tni_forward_tables_make(&b.tables, w, b.p->first_slot, b.p->slot_count)))
        st = stages_compile(&b);
    tni_forward_tables_fini(&b.tables);
    tni_free(b.arrives);
    if (st)
        tni_pass_release(b.p);
    else
        *out = b.p;
    return st;
}
