/*
 * Bytes that are used again: where the plan puts a root into bytes of an earlier one, the segment that first
 * writes it waits for all segments that touch the earlier one. Without such an edge a segment of another
 * device, or one that waits for nothing else, might write them too early.
 *
 * Each part of an arena (kept, scratch of a phase) is walked in the order of first touch, with the last owner
 * of each byte. Its bytes are cut where roots begin and end; a tree over these pieces says who owns them, one
 * word for a whole range with one owner. What a root takes over it joins, so all roots together look at few
 * pieces each.
 */
#include <stdlib.h>
#include <string.h>

#include "compile/code.h"

#define NOBODY 0u          /* else the root, and 1 */
#define SEVERAL UINT32_MAX /* look at the halves */

typedef struct toucher {
    uint32_t segment, next; /* next: of the same root, and 1 */
} toucher;

typedef struct wait {
    uint32_t from, to;
} wait;

typedef struct reuse {
    tni_code *c;
    uint32_t *roots, *touchers_of; /* touchers_of: per root, and 1 */
    uint32_t *met;                 /* per root: the last one that waits for it, and 1 */
    tni_vec touchers, waits;
    uint64_t *bounds; /* of this part: where a root begins or ends, sorted */
    uint32_t bound_count;
    uint32_t *owner; /* nodes of the tree: 1 is the root of it, n has the halves 2 n and 2 n + 1 */
} reuse;

typedef struct piece_range { /* of pieces: begin … end - 1; piece i lies between bounds i and i + 1 */
    uint32_t begin, end;
} piece_range;

static tn_status touch(reuse *w, uint32_t value, uint32_t segment)
{
    const uint32_t root = value == TNI_NONE ? TNI_NONE : tni_code_root(w->c, value);
    const uint32_t at = root == TNI_NONE ? 0 : w->touchers_of[root];
    const toucher t = {segment, at};
    tn_status st;

    if (root == TNI_NONE || (at && ((toucher *)tni_vec_at(&w->touchers, at - 1))->segment == segment))
        return TN_OK;
    if (!(st = tni_vec_push(&w->touchers, &t)))
        w->touchers_of[root] = (uint32_t)w->touchers.count;
    return st;
}

static tn_status touchers_find(reuse *w)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->c->code.count; i++) {
        const tni_instruction *in = tni_code_at(w->c, i);

        for (uint32_t k = 0; k < in->in_count + in->out_count && !st; k++)
            st = touch(w, tni_code_operands(w->c, in)[k], in->segment);
        if (st || (st = touch(w, in->workspace, in->segment)) || (st = touch(w, in->saved, in->segment)))
            return st;
    }
    return TN_OK;
}

static uint64_t bytes_of(const tni_value *v)
{
    return v->tensor.layout ? v->tensor.layout->memory_bytes : v->tensor.bytes;
}

static tn_status waits_add(reuse *w, uint32_t earlier, uint32_t later)
{
    const uint32_t to = tni_code_at(w->c, tni_code_value(w->c, later)->first)->segment;
    tn_status st = TN_OK;

    if (w->met[earlier] == later + 1)
        return TN_OK;
    w->met[earlier] = later + 1;
    for (uint32_t at = w->touchers_of[earlier]; at && !st;) {
        const toucher *t = tni_vec_at(&w->touchers, at - 1);
        const wait edge = {t->segment, to};

        at = t->next;
        if (t->segment != to)
            st = tni_vec_push(&w->waits, &edge);
    }
    return st;
}

/* `root` takes the pieces of `want` over that lie below a node, whose pieces are `have`. */
static tn_status take(reuse *w, uint32_t node, piece_range have, piece_range want, uint32_t root)
{
    const bool whole = want.begin <= have.begin && have.end <= want.end;
    const uint32_t middle = have.begin + (have.end - have.begin) / 2, before = w->owner[node];
    tn_status st = TN_OK;

    if (want.end <= have.begin || have.end <= want.begin)
        return TN_OK;
    if (before != SEVERAL && before != NOBODY)
        st = waits_add(w, before - 1, root);
    if (!st && (before == SEVERAL || !whole)) {
        if (before != SEVERAL)
            w->owner[2 * node] = w->owner[2 * node + 1] = before;
        if (!(st = take(w, 2 * node, (piece_range){have.begin, middle}, want, root)))
            st = take(w, 2 * node + 1, (piece_range){middle, have.end}, want, root);
    }
    w->owner[node] = whole ? root + 1 : SEVERAL;
    return st;
}

static int by_bytes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint32_t bound_find(const reuse *w, uint64_t at)
{
    const uint64_t *found = bsearch(&at, w->bounds, w->bound_count, sizeof *w->bounds, by_bytes);

    return (uint32_t)(found - w->bounds);
}

/* The roots of one part, in the order of first touch. */
static tn_status part_walk(reuse *w, const uint32_t *roots, uint32_t count)
{
    piece_range all = {0, 0};
    tn_status st = TN_OK;

    w->bound_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const tni_value *v = tni_code_value(w->c, roots[i]);

        w->bounds[2 * i] = v->offset;
        w->bounds[2 * i + 1] = v->offset + bytes_of(v);
    }
    qsort(w->bounds, 2ull * count, sizeof *w->bounds, by_bytes);
    for (uint32_t i = 0; i < 2 * count; i++)
        if (!i || w->bounds[i] != w->bounds[w->bound_count - 1])
            w->bounds[w->bound_count++] = w->bounds[i];
    all.end = w->bound_count - 1;
    w->owner[1] = NOBODY;
    for (uint32_t i = 0; i < count && !st; i++) {
        const tni_value *v = tni_code_value(w->c, roots[i]);
        const piece_range mine = {bound_find(w, v->offset), bound_find(w, v->offset + bytes_of(v))};

        st = take(w, 1, all, mine, roots[i]);
    }
    return st;
}

/* Kept, or scratch of the phase that first touches it. */
static uint64_t part_of(const tni_code *c, const tni_value *v)
{
    const uint32_t phase = tni_instruction_phase(tni_code_at(c, v->first));

    return (uint64_t)v->arena << 32 | (v->place == TNI_PLACE_KEPT ? TNI_PHASES : phase);
}

static _Thread_local const tni_code *sorted;

static int by_part(const void *a, const void *b)
{
    const tni_value *x = tni_code_value(sorted, *(const uint32_t *)a),
                    *y = tni_code_value(sorted, *(const uint32_t *)b);
    const uint64_t p = part_of(sorted, x), q = part_of(sorted, y);

    if (p != q)
        return p < q ? -1 : 1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->last < y->last ? -1 : x->last > y->last;
}

static tn_status bytes_walk(reuse *w)
{
    uint32_t count = 0;
    tn_status st = TN_OK;

    for (uint32_t v = 0; v < w->c->values.count; v++) {
        const tni_value *value = tni_code_value(w->c, v);

        if (value->root == v && (value->place == TNI_PLACE_KEPT || value->place == TNI_PLACE_SCRATCH) &&
            value->first != TNI_NONE && bytes_of(value))
            w->roots[count++] = v;
    }
    sorted = w->c;
    qsort(w->roots, count, sizeof *w->roots, by_part);
    for (uint32_t first = 0, end; first < count && !st; first = end) {
        const uint64_t part = part_of(w->c, tni_code_value(w->c, w->roots[first]));

        for (end = first + 1; end < count && part_of(w->c, tni_code_value(w->c, w->roots[end])) == part;)
            end++;
        st = part_walk(w, w->roots + first, end - first);
    }
    return st;
}

static int by_end(const void *a, const void *b)
{
    const wait *x = a, *y = b;

    return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

/* Edges anew: those of each segment, and the waits that are not among them. */
static tn_status edges_merge(reuse *w)
{
    tni_program *p = w->c->p;
    const wait *waits = w->waits.data;
    uint32_t *there = tni_calloc(p->segment_count + 1u, sizeof *there); /* per segment: whose edge, and 1 */
    tni_vec edges;
    size_t at = 0;
    tn_status st = there ? TN_OK : TN_E_NOMEM;

    qsort(w->waits.data, w->waits.count, sizeof *waits, by_end);
    tni_vec_init(&edges, sizeof(uint32_t), UINT32_MAX / 2);
    for (uint32_t s = 0; s < p->segment_count && !st; s++) {
        const uint32_t first = (uint32_t)edges.count;

        for (uint32_t e = 0; e < p->segments[s].edge_count && !st; e++) {
            const uint32_t from = p->edges[p->segments[s].first_edge + e];

            there[from] = s + 1;
            st = tni_vec_push(&edges, &from);
        }
        for (; at < w->waits.count && waits[at].to == s && !st; at++) {
            p->segments[waits[at].from].flags |= TNI_SEGMENT_AWAITED;
            if (there[waits[at].from] != s + 1)
                st = tni_vec_push(&edges, &waits[at].from);
            there[waits[at].from] = s + 1;
        }
        p->segments[s].first_edge = first;
        p->segments[s].edge_count = (uint32_t)edges.count - first;
    }
    tni_free(there);
    if (st) { /* segments tell of old edges and new ones by now: the program is given up */
        tni_vec_fini(&edges);
        return st;
    }
    tni_free(p->edges);
    p->edges = edges.data;
    return TN_OK;
}

/* Of a tree over so many pieces: twice the next power of two. */
static uint64_t tree_nodes(uint64_t pieces)
{
    uint64_t leaves = 1;

    while (leaves < pieces)
        leaves *= 2;
    return 2 * leaves;
}

tn_status tni_code_reuse(tni_code *c)
{
    reuse w = {.c = c};
    tn_status st = TN_E_NOMEM;

    if (c->p->segment_count < 2)
        return TN_OK;
    tni_vec_init(&w.touchers, sizeof(toucher), UINT32_MAX / 2);
    tni_vec_init(&w.waits, sizeof(wait), UINT32_MAX / 2);
    w.roots = tni_calloc(c->values.count + 1, sizeof *w.roots);
    w.touchers_of = tni_calloc(c->values.count + 1, sizeof *w.touchers_of);
    w.met = tni_calloc(c->values.count + 1, sizeof *w.met);
    w.bounds = tni_calloc(2 * c->values.count + 1, sizeof *w.bounds);
    w.owner = tni_calloc(tree_nodes(2 * c->values.count), sizeof *w.owner);
    if (w.roots && w.touchers_of && w.met && w.bounds && w.owner && !(st = touchers_find(&w)) &&
        !(st = bytes_walk(&w)) && w.waits.count)
        st = edges_merge(&w);
    tni_vec_fini(&w.touchers);
    tni_vec_fini(&w.waits);
    tni_free(w.roots);
    tni_free(w.touchers_of);
    tni_free(w.met);
    tni_free(w.bounds);
    tni_free(w.owner);
    return st;
}
