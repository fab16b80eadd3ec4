/*
 * Offsets of buffers in one arena: greedy by size.
 *
 * Buffers are placed from the largest to the smallest, each at the lowest offset where it overlaps no placed buffer
 * that lives at the same time. On all nets measured so far this equals the largest live sum or stays within 6 percent
 * (performance reference, section 3). Deterministic: ties go to the earlier buffer.
 *
 * Who lives at the same time is found with a segment tree over instructions. An item is listed as `cover` at the
 * O(log n) nodes that make up its life, and as `below` at all nodes above those. Two lives overlap exactly if one's
 * cover node is the other's, or lies above or below one of them.
 */
#include "compile/compile.h"

#include <stdlib.h>

typedef struct placed {
    uint64_t offset, end;
} placed;

static int placed_compare(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

typedef struct by_size {
    uint64_t bytes;
    uint32_t index;
} by_size;

static int by_size_compare(const void *a, const void *b)
{
    const by_size *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* ---- the tree ------------------------------------------------------------------------------------------------ */

typedef struct link { /* one item in the list of one tree node */
    uint32_t item, next;
} link;

typedef struct tree {
    uint32_t leaves;          /* a power of two */
    uint32_t *cover, *below;  /* per node: first link + 1; 0: none */
    uint32_t *below_mark;     /* per node: last item listed there + 1 */
    tni_vec links;
    uint32_t *seen;           /* per item: last query that met it */
    tni_vec found;            /* placed */
} tree;

static void tree_fini(tree *t)
{
    tni_free(t->cover);
    tni_free(t->below);
    tni_free(t->below_mark);
    tni_free(t->seen);
    tni_vec_fini(&t->links);
    tni_vec_fini(&t->found);
}

static tn_status tree_init(tree *t, uint32_t count, uint32_t times)
{
    *t = (tree){.leaves = 1};
    while (t->leaves < times)
        t->leaves *= 2;
    tni_vec_init(&t->links, sizeof(link), UINT32_MAX);
    tni_vec_init(&t->found, sizeof(placed), UINT32_MAX);
    t->cover = tni_calloc(2ull * t->leaves, sizeof *t->cover);
    t->below = tni_calloc(2ull * t->leaves, sizeof *t->below);
    t->below_mark = tni_calloc(2ull * t->leaves, sizeof *t->below_mark);
    t->seen = tni_calloc(count + 1u, sizeof *t->seen);
    return t->cover && t->below && t->below_mark && t->seen ? TN_OK : TN_E_NOMEM;
}

static tn_status list_add(tree *t, uint32_t *head, uint32_t item)
{
    const link l = {item, *head};
    tn_status st = tni_vec_push(&t->links, &l);

    if (!st)
        *head = (uint32_t)t->links.count;
    return st;
}

static tn_status cover_add(tree *t, uint32_t node, uint32_t item)
{
    tn_status st = list_add(t, &t->cover[node], item);

    for (node /= 2; node && !st && t->below_mark[node] != item + 1; node /= 2) {
        t->below_mark[node] = item + 1;
        st = list_add(t, &t->below[node], item);
    }
    return st;
}

static tn_status tree_add(tree *t, uint32_t item, const tni_interval *life)
{
    uint32_t l = life->first + t->leaves, r = life->last + t->leaves + 1;
    tn_status st = TN_OK;

    for (; l < r && !st; l /= 2, r /= 2) {
        if (l & 1u)
            st = cover_add(t, l++, item);
        if (r & 1u && !st)
            st = cover_add(t, --r, item);
    }
    return st;
}

static tn_status list_meet(tree *t, uint32_t head, const tni_interval *items, uint32_t query)
{
    tn_status st = TN_OK;

    for (; head && !st; head = ((const link *)tni_vec_at(&t->links, head - 1))->next) {
        const uint32_t item = ((const link *)tni_vec_at(&t->links, head - 1))->item;
        const placed p = {items[item].offset, items[item].offset + items[item].bytes};

        if (t->seen[item] == query)
            continue;
        t->seen[item] = query;
        st = tni_vec_push(&t->found, &p);
    }
    return st;
}

static tn_status node_meet(tree *t, uint32_t node, const tni_interval *items, uint32_t query)
{
    tn_status st = list_meet(t, t->below[node], items, query);

    for (; node && !st; node /= 2)
        st = list_meet(t, t->cover[node], items, query);
    return st;
}

/* Fills t->found with what is placed and lives together with `life`. `query` is a number not used before. */
static tn_status tree_find(tree *t, const tni_interval *items, const tni_interval *life, uint32_t query)
{
    uint32_t l = life->first + t->leaves, r = life->last + t->leaves + 1;
    tn_status st = TN_OK;

    t->found.count = 0;
    for (; l < r && !st; l /= 2, r /= 2) {
        if (l & 1u)
            st = node_meet(t, l++, items, query);
        if (r & 1u && !st)
            st = node_meet(t, --r, items, query);
    }
    return st;
}

/* ---- placing ------------------------------------------------------------------------------------------------------ */

/* The lowest offset for `bytes` beside the `taken`. */
static uint64_t lowest_gap(placed *taken, size_t count, uint64_t bytes)
{
    uint64_t at = 0;

    if (count > 1)
        qsort(taken, count, sizeof *taken, placed_compare);
    for (size_t i = 0; i < count; i++) {
        if (taken[i].offset >= at && taken[i].offset - at >= bytes)
            break;
        if (taken[i].end > at)
            at = taken[i].end;
    }
    return at;
}

/* Largest sum of sizes alive at one instruction. */
static tn_status live_peak(const tni_interval *items, uint32_t count, uint32_t times, uint64_t *out)
{
    int64_t *delta = tni_calloc(times + 1ull, sizeof *delta), live = 0, peak = 0;

    if (!delta)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        delta[items[i].first] += (int64_t)items[i].bytes;
        delta[items[i].last + 1u] -= (int64_t)items[i].bytes;
    }
    for (uint32_t i = 0; i < times; i++) {
        live += delta[i];
        if (live > peak)
            peak = live;
    }
    tni_free(delta);
    *out = (uint64_t)peak;
    return TN_OK;
}

/* Rounds the sizes up and sorts them, largest first; `*times`: one more than the last instruction. */
static tn_status order_make(tni_interval *items, uint32_t count, uint64_t align, by_size *order, uint32_t *times)
{
    uint64_t sum = 0;

    *times = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (!tni_size_align(items[i].bytes, align, &items[i].bytes) || !tni_size_add(sum, items[i].bytes, &sum))
            return tni_error(TN_E_SHAPE, "the arena of a program does not fit the address space");
        order[i] = (by_size){items[i].bytes, i};
        if (items[i].last >= *times)
            *times = items[i].last + 1u;
    }
    if (count > 1)
        qsort(order, count, sizeof *order, by_size_compare);
    return TN_OK;
}

tn_status tni_plan_offsets(tni_interval *items, uint32_t count, uint64_t align, uint64_t *total, uint64_t *bound)
{
    by_size *order = tni_calloc(count + 1u, sizeof *order);
    tree t = {0};
    uint64_t end = 0;
    uint32_t times;
    tn_status st = TN_E_NOMEM;

    if (!order || (st = order_make(items, count, align, order, &times)) ||
        (st = live_peak(items, count, times, bound)) || (st = tree_init(&t, count, times)))
        goto cleanup;
    for (uint32_t i = 0; i < count && order[i].bytes; i++) {
        tni_interval *item = &items[order[i].index];

        if ((st = tree_find(&t, items, item, i + 1)))
            goto cleanup;
        item->offset = lowest_gap(t.found.data, t.found.count, item->bytes);
        if (item->offset + item->bytes > end)
            end = item->offset + item->bytes;
        if ((st = tree_add(&t, order[i].index, item)))
            goto cleanup;
    }
    *total = end;

cleanup:
    tree_fini(&t);
    tni_free(order);
    return st;
}
