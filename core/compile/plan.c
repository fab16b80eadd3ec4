/*
 * Offsets of buffers in one arena: greedy by size, then improved.
 *
 * Buffers are placed one after the other, each at the lowest offset where it overlaps no placed buffer that
 * lives at the same time. The order decides: from the largest to the smallest comes first (it equals the
 * largest live sum on most nets), then three others. While the best is above the bound and the graph small,
 * each order is improved: the buffer that ends highest moves ahead, any other moves anywhere, and what is no
 * worse is kept. Deterministic: draws come from Philox.
 *
 * Where very many buffers live to the end (a recorded net of thousands of nodes keeps its results for the
 * backward), all pairs of them would be compared. Then they are stacked from 0 up in the order of their
 * making, and every other buffer lies above those of them that were made before it dies.
 *
 * Who lives at the same time is found with a segment tree over instructions. An item is listed as `cover` at
 * the O(log n) nodes that make up its life, and as `below` at all nodes above those. Two lives overlap
 * exactly if one's cover node is the other's, or lies above or below one of them.
 */
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

#define IMPROVE_ROUNDS 400u /* of moving one buffer ahead */
#define IMPROVE_WORK 65536u /* buffers placed in all rounds together: some 20 ms */
#define IMPROVE_KEY 0x706c616eu
#define STACKED_MIN 1024u /* buffers that live to the end, from which on they are stacked */

typedef struct placed {
    uint64_t offset, end;
} placed;

static int placed_compare(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

typedef struct ranked { /* places of the order: the heaviest first, ties to the earlier buffer */
    double weight;
    uint32_t index;
} ranked;

static int ranked_compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- the tree ---------------------------------------------------------------------------------------- */

typedef struct link { /* one item in the list of one tree node */
    uint32_t item, next;
} link;

typedef struct tree {
    uint32_t leaves;         /* a power of two */
    uint32_t *cover, *below; /* per node: first link + 1; 0: none */
    uint32_t *below_mark;    /* per node: last item listed there + 1 */
    tni_vec links;
    uint32_t *seen; /* per item: last query that met it */
    tni_vec found;  /* placed */
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

/* ---- placing ----------------------------------------------------------------------------------------- */

/* The lowest offset for `bytes`, from `at` on, beside the `taken`. */
static uint64_t lowest_gap(placed *taken, size_t count, uint64_t at, uint64_t bytes)
{
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

/* Sums of sizes alive at each instruction, `times` of them, and the largest; *live is the caller's to free.
 */
static tn_status live_sums(const tni_interval *items, uint32_t count, uint32_t times, uint64_t **live,
                           uint64_t *peak)
{
    uint64_t *sums = tni_calloc(times + 1ull, sizeof *sums), sum = 0;

    if (!sums)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++) { /* differences wrap around and come out right */
        sums[items[i].first] += items[i].bytes;
        sums[items[i].last + 1u] -= items[i].bytes;
    }
    *peak = 0;
    for (uint32_t i = 0; i < times; i++) {
        sums[i] = sum += sums[i];
        if (sum > *peak)
            *peak = sum;
    }
    *live = sums;
    return TN_OK;
}

/* Rounds the sizes up; `*times`: one more than the last instruction. */
static tn_status sizes_round(tni_interval *items, uint32_t count, uint64_t align, uint32_t *times)
{
    uint64_t sum = 0;

    *times = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (!tni_size_align(items[i].bytes, align, &items[i].bytes) ||
            !tni_size_add(sum, items[i].bytes, &sum))
            return tni_error(TN_E_SHAPE, "the arena of a program does not fit the address space");
        if (items[i].last >= *times)
            *times = items[i].last + 1u;
    }
    return TN_OK;
}

/* Orders that placement starts from: by size, size times life, how crowded the life is at its worst, start.
 */
#define ORDER_KINDS 4u

/* Largest of `live` over a life. */
static double crowd(const uint64_t *live, const tni_interval *item)
{
    uint64_t most = 0;

    for (uint32_t i = item->first; i <= item->last; i++)
        if (live[i] > most)
            most = live[i];
    return (double)most;
}

static double weight_of(const tni_interval *item, const uint64_t *live, uint32_t kind)
{
    const double bytes = (double)item->bytes;

    switch (kind) {
    case 0:
        return bytes;
    case 1:
        return bytes * ((double)(item->last - item->first) + 1.0);
    case 2:
        return crowd(live, item) + bytes / (double)TN_SIZE_MAX;
    default:
        return -(double)item->first;
    }
}

static void order_sort(const tni_interval *items, uint32_t count, const uint64_t *live, uint32_t kind,
                       ranked *scratch, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = (ranked){weight_of(&items[i], live, kind), i};
    if (count > 1)
        qsort(scratch, count, sizeof *scratch, ranked_compare);
    for (uint32_t i = 0; i < count; i++)
        order[i] = scratch[i].index;
}

typedef struct search {
    tni_interval *items;
    uint32_t count, times;
    uint64_t *floors; /* per instruction: bytes of stacked buffers made up to it; NULL: none are stacked */
    uint32_t *order, *trial, *best;
    uint64_t best_total;
} search;

static bool is_stacked(const search *s, const tni_interval *item)
{
    return s->floors && item->last + 1u == s->times;
}

/* Offsets of what lives to the end, and the floors above it. Nothing happens if that is not much. */
static tn_status stack_make(search *s)
{
    uint32_t stacked = 0;
    uint64_t *next;

    for (uint32_t i = 0; i < s->count; i++)
        stacked += s->items[i].last + 1u == s->times;
    if (stacked < STACKED_MIN)
        return TN_OK;
    if (!(s->floors = tni_calloc(s->times + 1ull, sizeof *s->floors)) ||
        !(next = tni_calloc(s->times + 1ull, sizeof *next)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->count; i++)
        if (is_stacked(s, &s->items[i]))
            s->floors[s->items[i].first] += s->items[i].bytes;
    for (uint32_t t = 1; t < s->times; t++) {
        next[t] = s->floors[t - 1];
        s->floors[t] += s->floors[t - 1];
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (is_stacked(s, &s->items[i])) {
            s->items[i].offset = next[s->items[i].first];
            next[s->items[i].first] += s->items[i].bytes;
        }
    tni_free(next);
    return TN_OK;
}

/* Places all in this order. `*top`: place in the order of the buffer that ends highest. */
static tn_status place_all(const search *s, const uint32_t *order, uint64_t *total, uint32_t *top)
{
    tni_interval *items = s->items;
    tree t = {0};
    tn_status st = tree_init(&t, s->count, s->times);

    *total = s->floors ? s->floors[s->times - 1] : 0;
    *top = 0;
    for (uint32_t i = 0; i < s->count && !st; i++) {
        tni_interval *item = &items[order[i]];

        if (is_stacked(s, item))
            continue;
        item->offset = 0;
        if (!item->bytes || (st = tree_find(&t, items, item, i + 1)))
            continue;
        item->offset =
            lowest_gap(t.found.data, t.found.count, s->floors ? s->floors[item->last] : 0, item->bytes);
        if (item->offset + item->bytes > *total) {
            *total = item->offset + item->bytes;
            *top = i;
        }
        st = tree_add(&t, order[i], item);
    }
    tree_fini(&t);
    return st;
}

static void order_move(uint32_t *order, uint32_t from, uint32_t to)
{
    const uint32_t item = order[from];

    if (to < from)
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1, (to - from) * sizeof *order);
    order[to] = item;
}

/* In turns the buffer that ends highest moves ahead, and any moves anywhere. */
static void order_change(uint32_t *order, uint32_t count, uint32_t top, uint32_t round)
{
    uint32_t words[4];

    tn_philox(IMPROVE_KEY, 0, round, words);
    if (round & 1u)
        order_move(order, words[0] % count, words[1] % count);
    else
        order_move(order, top, words[0] % (top + 1u));
}

static tn_status order_improve(search *s, uint64_t bound)
{
    uint64_t total = 0, trial_total;
    uint32_t top, trial_top;
    tn_status st = place_all(s, s->order, &total, &top);

    for (uint32_t round = 0; !st; round++) {
        if (total < s->best_total) {
            s->best_total = total;
            memcpy(s->best, s->order, s->count * sizeof *s->best);
        }
        if (total <= bound || round >= IMPROVE_ROUNDS || round * s->count >= IMPROVE_WORK)
            break;
        memcpy(s->trial, s->order, s->count * sizeof *s->trial);
        order_change(s->trial, s->count, top, round);
        st = place_all(s, s->trial, &trial_total, &trial_top);
        if (!st && trial_total <= total) {
            total = trial_total;
            top = trial_top;
            memcpy(s->order, s->trial, s->count * sizeof *s->order);
        }
    }
    return st;
}

tn_status tni_plan_offsets(tni_interval *items, uint32_t count, uint64_t align, uint64_t *total,
                           uint64_t *bound)
{
    ranked *scratch = tni_calloc(count + 1u, sizeof *scratch);
    uint32_t *orders = tni_calloc(3ull * count + 3u, sizeof *orders), top;
    uint64_t *live = NULL;
    search s = {.items = items, .count = count, .best_total = UINT64_MAX};
    tn_status st = TN_E_NOMEM;

    if (!scratch || !orders || (st = sizes_round(items, count, align, &s.times)) ||
        (st = live_sums(items, count, s.times, &live, bound)) || (st = stack_make(&s)))
        goto cleanup;
    s.order = orders;
    s.trial = orders + count;
    s.best = s.trial + count;
    for (uint32_t kind = 0; kind < ORDER_KINDS && s.best_total > *bound; kind++) {
        if (kind == 2 && (uint64_t)count * s.times > IMPROVE_WORK * 64ull)
            continue; /* too many lives to look through */
        order_sort(items, count, live, kind, scratch, s.order);
        if ((st = order_improve(&s, *bound)))
            goto cleanup;
    }
    st = place_all(&s, s.best, total, &top);

cleanup:
    tni_free(scratch);
    tni_free(orders);
    tni_free(live);
    tni_free(s.floors);
    return st;
}
