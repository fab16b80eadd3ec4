/*
 * Offsets of buffers in one arena: greedy by size, then improved.
 *
 * A program with a backward has one line of time and an arena in two parts. What lives across the border
 * between forward and backward is *kept*: stacked from 0 up in the order of its making, so the kept part has
 * no gap. All other buffers live within one phase. They lie in kept bytes that are not made yet (forward) or
 * consumed already (backward), or in the scratch part behind, never across the two, since these are two
 * blocks of memory.
 *
 * Buffers are placed one after the other, each at the lowest offset where it overlaps no placed buffer that
 * lives at the same time. The order decides: from the largest to the smallest comes first (it equals the
 * largest live sum on most nets), then three others. While the best is above the bound and the graph small,
 * each order is improved: the buffer that ends highest moves ahead, any other moves anywhere, and what is no
 * worse is kept. Deterministic: draws come from Philox.
 *
 * Kept buffers are met like all others, or, where they are very many, as a floor: every other buffer then
 * lies above all kept ones that are alive during its life.
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
#define SMALL_ROUNDS 16u    /* the same for a gain of at most a page */
#define SMALL_GAIN 4096u
#define IMPROVE_KEY 0x706c616eu
#define FLOOR_MIN 1024u /* kept buffers, from which on they are a floor */

typedef struct placed {
    uint64_t offset, end;
} placed;

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

/* `heap` has the lowest offset at its top, but for what lies at `at`: that sinks to its place. */
static void heap_sink(placed *heap, size_t count, size_t at)
{
    const placed sinking = heap[at];

    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1].offset < heap[child].offset)
            child++;
        if (heap[child].offset >= sinking.offset)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = sinking;
}

/* The lowest offset for `bytes`, from `at` on, beside the `taken` and not across `border`. Of the `taken`
 * only those below the gap are sorted. */
static uint64_t lowest_gap(placed *taken, size_t count, uint64_t at, uint64_t bytes, uint64_t border)
{
    for (size_t i = count / 2; i-- > 0;)
        heap_sink(taken, count, i);
    for (;;) {
        if (at < border && bytes > border - at)
            at = border;
        if (!count || (taken->offset >= at && taken->offset - at >= bytes))
            return at;
        if (taken->end > at)
            at = taken->end;
        *taken = taken[--count];
        heap_sink(taken, count, 0);
    }
}

/* Sums of sizes alive at each instruction, `times` of them, and the largest;
 * *live is the caller's to free. */
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

/* Orders that placement starts from: by size, size times life, how crowded the life is at its worst,
 * start. */
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
    tni_interval *items; /* `count` to be placed, behind them `fixed` ones that have their offset */
    uint32_t count, fixed, times;
    const uint64_t
        *floors; /* per instruction: everything lies above; NULL: the fixed ones are met one by one */
    uint32_t *order, *trial, *best;
    uint64_t best_total;
    uint64_t border; /* no buffer lies across it */
} search;

static uint64_t floor_of(const search *s, const tni_interval *item)
{
    if (!s->floors) /* they only rise, or only fall */
        return 0;
    return s->floors[item->first] > s->floors[item->last] ? s->floors[item->first] : s->floors[item->last];
}

/* Places all in this order, or the first ones: until one ends above `most`. `*total`: the highest end;
 * `*top`: place in the order of the buffer that has it. */
static tn_status place_all(const search *s, const uint32_t *order, uint64_t most, uint64_t *total,
                           uint32_t *top)
{
    tni_interval *items = s->items;
    tree t = {0};
    tn_status st = tree_init(&t, s->count + s->fixed, s->times);

    *total = 0;
    *top = 0;
    for (uint32_t i = s->count; i < s->count + s->fixed && !s->floors && !st; i++)
        st = items[i].bytes ? tree_add(&t, i, &items[i]) : TN_OK;
    for (uint32_t i = 0; i < s->count && !st && *total <= most; i++) {
        tni_interval *item = &items[order[i]];

        item->offset = 0;
        if (!item->bytes || (st = tree_find(&t, items, item, i + 1)))
            continue;
        item->offset = lowest_gap(t.found.data, t.found.count, floor_of(s, item), item->bytes, s->border);
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
    tn_status st = place_all(s, s->order, UINT64_MAX, &total, &top);

    for (uint32_t round = 0; !st; round++) {
        if (total < s->best_total) {
            s->best_total = total;
            memcpy(s->best, s->order, s->count * sizeof *s->best);
        }
        if (total <= bound || round >= IMPROVE_ROUNDS || round * s->count >= IMPROVE_WORK ||
            (total - bound <= SMALL_GAIN && round >= SMALL_ROUNDS))
            break;
        memcpy(s->trial, s->order, s->count * sizeof *s->trial);
        order_change(s->trial, s->count, top, round);
        st = place_all(s, s->trial, total, &trial_total, &trial_top);
        if (!st && trial_total <= total) {
            total = trial_total;
            top = trial_top;
            memcpy(s->order, s->trial, s->count * sizeof *s->order);
        }
    }
    return st;
}

/* Offsets of `s->count` items whose sizes are round. `bound`: no plan is better. */
static tn_status search_run(search *s, uint64_t bound, uint64_t *total)
{
    ranked *scratch = tni_calloc(s->count + 1u, sizeof *scratch);
    uint32_t *orders = tni_calloc(3ull * s->count + 3u, sizeof *orders), top;
    uint64_t *live = NULL, peak;
    tn_status st = TN_E_NOMEM;

    if (!scratch || !orders || (st = live_sums(s->items, s->count, s->times, &live, &peak)))
        goto cleanup;
    s->order = orders;
    s->trial = orders + s->count;
    s->best = s->trial + s->count;
    s->best_total = UINT64_MAX;
    for (uint32_t kind = 0; kind < ORDER_KINDS && s->best_total > bound; kind++) {
        if (kind == 2 && (uint64_t)s->count * s->times > IMPROVE_WORK * 64ull)
            continue; /* too many lives to look through */
        order_sort(s->items, s->count, live, kind, scratch, s->order);
        if ((st = order_improve(s, bound)))
            goto cleanup;
    }
    st = place_all(s, s->best, UINT64_MAX, total, &top);

cleanup:
    tni_free(scratch);
    tni_free(orders);
    tni_free(live);
    return st;
}

/* ---- phases ---------------------------------------------------------------------------------------- */

typedef struct phases {
    tni_interval *items;
    uint32_t count, border, times; /* border: the first instruction of the backward */
    tni_interval *part;            /* of one phase: its own items, then the kept ones */
    uint32_t *source;              /* per item of `part`: where it comes from */
    uint64_t *floors;
    uint64_t kept_bytes;
} phases;

static bool is_kept(const phases *p, const tni_interval *item)
{
    return item->first < p->border && item->last >= p->border;
}

static int kept_compare(const void *a, const void *b)
{
    const tni_interval *x = *(tni_interval *const *)a, *y = *(tni_interval *const *)b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static tn_status kept_stack(phases *p)
{
    tni_interval **list = tni_calloc(p->count + 1u, sizeof *list);
    uint32_t count = 0;

    if (!list)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->count; i++)
        if (is_kept(p, &p->items[i]))
            list[count++] = &p->items[i];
    if (count > 1)
        qsort(list, count, sizeof *list, kept_compare);
    for (uint32_t i = 0; i < count; i++) {
        list[i]->offset = p->kept_bytes;
        p->kept_bytes += list[i]->bytes;
    }
    tni_free(list);
    return TN_OK;
}

/* The end of the highest kept buffer: of those made up to each instruction, of those still alive at it. */
static void floors_make(const phases *p, uint32_t first, uint32_t end, uint32_t kept, uint32_t own)
{
    const bool forward = first < p->border;

    memset(p->floors, 0, (end - first + 1ull) * sizeof *p->floors);
    for (uint32_t i = own; i < own + kept; i++) {
        const tni_interval *item = &p->part[i];
        uint64_t *at = &p->floors[forward ? item->first : item->last];

        if (item->bytes && item->offset + item->bytes > *at)
            *at = item->offset + item->bytes;
    }
    for (uint32_t t = 1; forward && t < end - first; t++)
        if (p->floors[t] < p->floors[t - 1])
            p->floors[t] = p->floors[t - 1];
    for (uint32_t t = end - first; !forward && t-- > 1;)
        if (p->floors[t - 1] < p->floors[t])
            p->floors[t - 1] = p->floors[t];
}

/* Buffers that live within [first, end); `*scratch`: what they need behind the kept part. */
static tn_status phase_plan(phases *p, uint32_t first, uint32_t end, uint64_t *scratch)
{
    search s = {.items = p->part, .border = p->kept_bytes, .times = end - first};
    uint64_t *live = NULL, bound = 0, total = 0;
    tn_status st;

    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < p->count; i++) {
            const bool kept = is_kept(p, &p->items[i]);
            const uint32_t at = s.count + s.fixed;

            if (kept != (round == 1) || p->items[i].last < first || p->items[i].first >= end)
                continue;
            p->source[at] = i;
            p->part[at] = p->items[i];
            p->part[at].first = p->items[i].first > first ? p->items[i].first - first : 0;
            p->part[at].last = p->items[i].last < end ? p->items[i].last - first : end - first - 1;
            *(kept ? &s.fixed : &s.count) += 1;
        }
    if (!s.count)
        return TN_OK;
    if ((st = live_sums(p->part, s.count + s.fixed, s.times, &live, &bound)))
        return st;
    tni_free(live);
    if (s.fixed >= FLOOR_MIN) {
        floors_make(p, first, end, s.fixed, s.count);
        s.floors = p->floors;
    }
    st = search_run(&s, bound > p->kept_bytes ? bound : p->kept_bytes, &total);
    for (uint32_t i = 0; i < s.count; i++)
        p->items[p->source[i]].offset = p->part[i].offset;
    *scratch = total > p->kept_bytes ? total - p->kept_bytes : 0;
    return st;
}

tn_status tni_plan_phases(tni_interval *items, uint32_t count, uint64_t align, uint32_t border,
                          tni_plan_sizes *out)
{
    phases p = {.items = items, .count = count, .border = border};
    uint64_t *live = NULL;
    tn_status st;

    *out = (tni_plan_sizes){0};
    if ((st = sizes_round(items, count, align, &p.times)) ||
        (st = live_sums(items, count, p.times, &live, &out->bound)))
        return st;
    tni_free(live);
    p.part = tni_calloc(count + 1u, sizeof *p.part);
    p.source = tni_calloc(count + 1u, sizeof *p.source);
    p.floors = tni_calloc(p.times + 1u, sizeof *p.floors);
    if (!p.part || !p.source || !p.floors)
        st = TN_E_NOMEM;
    if (!st && !(st = kept_stack(&p))) {
        out->kept = p.kept_bytes;
        if (border > 0)
            st = phase_plan(&p, 0, border < p.times ? border : p.times, &out->scratch[0]);
        if (!st && border < p.times)
            st = phase_plan(&p, border, p.times, &out->scratch[1]);
    }
    tni_free(p.part);
    tni_free(p.source);
    tni_free(p.floors);
    return st;
}

tn_status tni_plan_offsets(tni_interval *items, uint32_t count, uint64_t align, uint64_t *total,
                           uint64_t *bound)
{
    tni_plan_sizes sizes;
    tn_status st = tni_plan_phases(items, count, align, UINT32_MAX, &sizes);

    *total = sizes.scratch[0];
    *bound = sizes.bound;
    return st;
}
