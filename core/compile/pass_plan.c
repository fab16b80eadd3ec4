/*
 * The memory plan: each root that lies in no array gets an offset in the arena of its device. What phase ONCE
 * makes for the others is constant, what forward leaves for the backward is kept; the rest is scratch of one
 * phase.
 *
 * Bytes are used again by a later segment only if that waits for all that touched them: where the plan makes
 * two roots share bytes and nothing orders their segments, an edge is added.
 *
 * At the end, tensors that say the same of the same bytes become one: a replay reads less memory.
 */
#include <string.h>

#include "compile/code.h"

typedef struct planner {
    tni_code *c;
    tni_vec arenas;               /* tni_arena_plan */
    tni_interval *items;          /* of one arena */
    uint32_t *roots;              /* per item */
    uint32_t count, border, once; /* once: instructions of phase ONCE, which are the first */
} planner;

static tn_status arena_of(planner *w, const tni_value *v, uint32_t *out)
{
    const tni_arena_plan made = {.device = v->device};

    for (uint32_t i = 0; i < w->arenas.count; i++)
        if (((tni_arena_plan *)tni_vec_at(&w->arenas, i))->device == v->device) {
            *out = i;
            return TN_OK;
        }
    *out = (uint32_t)w->arenas.count;
    return tni_vec_push(&w->arenas, &made);
}

/* Arenas in the order in which they are met. */
static tn_status arenas_find(planner *w)
{
    tn_status st = TN_OK;

    for (uint32_t v = 0; v < w->c->values.count && !st; v++) {
        tni_value *value = tni_code_value(w->c, v);

        if (value->root == v && value->place == TNI_PLACE_NONE && value->first != TNI_NONE)
            st = arena_of(w, value, &value->arena);
    }
    return st;
}

/* Roots without a place whose lives begin within phase ONCE, or behind it. */
static void items_collect(planner *w, uint32_t arena, bool once)
{
    w->count = 0;
    for (uint32_t v = 0; v < w->c->values.count; v++) {
        const tni_value *value = tni_code_value(w->c, v);

        if (value->root != v || value->place != TNI_PLACE_NONE || value->first == TNI_NONE ||
            value->arena != arena || (value->first < w->once) != once)
            continue;
        w->items[w->count] =
            (tni_interval){.bytes = tni_value_bytes(value), .first = value->first, .last = value->last};
        w->roots[w->count++] = v;
    }
}

/* What the other phases read lies in the constant part, one behind the other. */
static tn_status constants_settle(const planner *w, uint32_t arena, uint64_t align, uint64_t *total)
{
    for (uint32_t v = 0; v < w->c->values.count; v++) {
        tni_value *value = tni_code_value(w->c, v);
        uint64_t end;

        if (value->root != v || value->place != TNI_PLACE_NONE || value->first == TNI_NONE ||
            value->arena != arena || value->first >= w->once || value->last < w->once)
            continue;
        value->place = TNI_PLACE_CONSTANT;
        value->offset = *total;
        if (!tni_size_add(*total, tni_value_bytes(value), &end) || !tni_size_align(end, align, total))
            return tni_error(TN_E_NOMEM, "the constants of a program take more than any memory holds");
    }
    return TN_OK;
}

/* The rest of phase ONCE: scratch of its own. */
static tn_status once_plan(planner *w, uint32_t index, uint64_t align)
{
    tni_arena_plan *a = tni_vec_at(&w->arenas, index);
    uint64_t bound;
    tn_status st;

    if ((st = constants_settle(w, index, align, &a->constant_bytes)))
        return st;
    items_collect(w, index, true);
    if ((st = tni_plan_offsets(w->items, w->count, align, &a->scratch_bytes[TNI_ONCE], &bound)))
        return st;
    for (uint32_t i = 0; i < w->count; i++) {
        tni_code_value(w->c, w->roots[i])->place = TNI_PLACE_SCRATCH;
        tni_code_value(w->c, w->roots[i])->offset = w->items[i].bytes ? w->items[i].offset : 0;
    }
    return TN_OK;
}

/* Empty values lie at the begin of a part: nothing tells theirs from the offset. */
static void items_settle(const planner *w, uint64_t kept)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const tni_interval *item = &w->items[i];
        tni_value *v = tni_code_value(w->c, w->roots[i]);
        const bool in_kept =
            item->bytes ? item->offset < kept : item->first < w->border && item->last >= w->border;

        v->place = in_kept ? TNI_PLACE_KEPT : TNI_PLACE_SCRATCH;
        v->offset = item->bytes ? item->offset - (in_kept ? 0 : kept) : 0;
    }
}

static tn_status arena_plan(planner *w, uint32_t index)
{
    tni_arena_plan *a = tni_vec_at(&w->arenas, index);
    tni_program *p = w->c->p;
    const uint64_t align = a->device->host ? 64 : 256;
    tni_plan_sizes sizes;
    tn_status st;

    if (w->once && (st = once_plan(w, index, align)))
        return st;
    items_collect(w, index, false);
    if ((st = tni_plan_phases(w->items, w->count, align, w->border, &sizes)))
        return st;
    items_settle(w, sizes.kept);
    a->kept_bytes = sizes.kept;
    a->scratch_bytes[TNI_FORWARD] = sizes.scratch[0];
    a->scratch_bytes[TNI_BACKWARD] = sizes.scratch[1];
    p->planned_bytes +=
        sizes.kept + (sizes.scratch[0] > sizes.scratch[1] ? sizes.scratch[0] : sizes.scratch[1]);
    p->bound_bytes += sizes.bound;
    return TN_OK;
}

/* A root in an empty arena part still needs a place: it has no bytes. */
static void followers_settle(const tni_code *c)
{
    for (uint32_t v = 0; v < c->values.count; v++) {
        tni_value *value = tni_code_value(c, v);
        const tni_value *root = tni_code_value(c, value->root);

        value->place = root->place;
        value->arena = root->arena;
        value->port = root->port;
        value->first = root->first;
        value->last = root->last;
        value->offset = root->offset + value->delta;
    }
}

/* ---- tensors --------------------------------------------------------------------------------------- */

static bool dims_equal(int32_t ndim, const int64_t *a, const int64_t *b)
{
    return a == b || (a && b && !memcmp(a, b, (size_t)ndim * sizeof *a));
}

static bool tensor_equal(const tn_tensor *a, const tn_tensor *b)
{
    return a->ndim == b->ndim && a->dtype == b->dtype && a->bytes == b->bytes && a->layout == b->layout &&
           a->storage == b->storage && a->memory == b->memory && a->device == b->device &&
           a->quantization == b->quantization && dims_equal(a->ndim, a->shape, b->shape) &&
           dims_equal(a->ndim, a->stride, b->stride);
}

/* Scratch whose shape is known: nothing but its address changes, with that of the arena's part. */
static bool may_share(const tni_value *v)
{
    bool known = v->place == TNI_PLACE_SCRATCH && !(v->flags & TNI_VALUE_BLOCK) && v->first != TNI_NONE &&
                 v->tensor.ndim >= 0;

    for (int32_t d = 0; known && d < v->tensor.ndim; d++)
        known = v->tensor.shape[d] >= 0;
    return known;
}

static uint32_t phase_at(const tni_code *c, const tni_value *v)
{
    return tni_instruction_phase(tni_code_at(c, v->first));
}

static bool value_equal(const tni_code *c, const tni_value *a, const tni_value *b)
{
    return a->offset == b->offset && a->arena == b->arena && phase_at(c, a) == phase_at(c, b) &&
           tensor_equal(&a->tensor, &b->tensor);
}

/* The first value that is equal to `v`: `table` has the values found by now, and 1, by offset. */
static uint32_t value_shared(const tni_code *c, uint32_t *table, uint64_t mask, uint32_t v)
{
    const tni_value *value = tni_code_value(c, v);
    const uint64_t key[] = {value->offset, value->arena, value->tensor.bytes};
    uint64_t at = tni_hash_bytes(0, key, sizeof key) & mask;

    while (table[at] && !value_equal(c, tni_code_value(c, table[at] - 1), value))
        at = (at + 1) & mask;
    if (!table[at])
        table[at] = v + 1;
    return table[at] - 1;
}

static tn_status tensors_share(tni_code *c)
{
    uint64_t size = 64;
    uint32_t *table;

    while (size < 2 * c->values.count)
        size *= 2;
    if (!(table = tni_calloc(size, sizeof *table)))
        return TN_E_NOMEM;
    for (size_t i = 0; i < c->operands.count; i++) {
        uint32_t *slot = &c->p->slots[i];

        if (*slot < c->values.count && may_share(tni_code_value(c, *slot)))
            *slot = value_shared(c, table, size - 1, *slot);
    }
    tni_free(table);
    return TN_OK;
}

tn_status tni_pass_plan(tni_code *c)
{
    planner w = {.c = c, .border = UINT32_MAX, .once = c->p->phases[TNI_ONCE].code_count};
    tn_status st = TN_E_NOMEM;

    if (c->p->phases[TNI_BACKWARD].segment_count && c->p->phases[TNI_FORWARD].segment_count)
        w.border = c->p->phases[TNI_BACKWARD].first_code;
    else if (c->p->phases[TNI_BACKWARD].segment_count)
        w.border = 0;
    tni_vec_init(&w.arenas, sizeof(tni_arena_plan), TN_DEVICES_MAX);
    w.items = tni_calloc(c->values.count + 1, sizeof *w.items);
    w.roots = tni_calloc(c->values.count + 1, sizeof *w.roots);
    if (w.items && w.roots)
        st = arenas_find(&w);
    for (uint32_t i = 0; i < w.arenas.count && !st; i++)
        st = arena_plan(&w, i);
    if (!st)
        followers_settle(c);
    if (!st)
        st = tni_code_reuse(c);
    if (!st)
        st = tensors_share(c);
    c->p->arenas = w.arenas.data; /* moved */
    c->p->arena_count = (uint32_t)w.arenas.count;
    tni_free(w.items);
    tni_free(w.roots);
    return st;
}
