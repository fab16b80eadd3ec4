/*
 * A layered drawing after Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system
 * structures", 1981): each node lies one layer below its deepest input; edges over several layers get a bend
 * in each; layers are sorted by the mean place of their neighbours, down and up again, and the order with the
 * fewest crossings is kept; then every layer is moved as near to its neighbours as its order allows, which is
 * isotonic regression (pool adjacent violators).
 *
 * Edges that would need too many bends are left to the painter, so that time and memory stay about linear.
 */
#include <stdlib.h>
#include <string.h>

#include "view/viz.h"

#define SPAN_MAX 48      /* layers that an edge may cross by bends */
#define BENDS_PER_EDGE 8 /* of all bends, on average */
#define SWEEPS_MAX 12
#define SWEEP_WORK 600000 /* vertices looked at while sorting */
#define SETTLE_ROUNDS 8
#define BEND_WIDTH 10.0
#define BEND_WEIGHT 4.0 /* long edges are kept straight rather than short ones */

typedef struct vertex {    /* a node or a bend */
    uint32_t layer, place; /* place: in its layer */
    uint32_t first[2];     /* neighbours above (0) and below (1), in `links` */
    uint32_t count[2];
    double width, x, weight;
} vertex;

typedef struct drawing {
    cli_layout *l;
    vertex *v;
    uint32_t count; /* nodes, then bends */
    uint32_t *links;
    uint32_t layer_count;
    uint32_t *begin; /* per layer, into `order`; one more at the end */
    uint32_t *order; /* vertices by layer and place */
    uint32_t *best;  /* the order with the fewest crossings */
    uint32_t *tree;  /* of the count of crossings */
    struct keyed {
        double key;
        uint32_t place, vertex;
    } * keys;                      /* scratch: room for the widest layer, and for all links */
    double *target, *level, *mass; /* scratch of isotonic regression */
    uint32_t *run;
} drawing;

/* ---- layers and bends ---- */

static void layers_find(cli_layout *l)
{
    uint32_t *below = l->layer + l->node_count; /* nearest user of a source */

    memset(l->layer, 0, 2 * sizeof *l->layer * (l->node_count + 1ull));
    for (uint32_t e = 0; e < l->edge_count; e++) /* sorted by `to`, and inputs come first */
        if (l->layer[l->edges[e].to] < l->layer[l->edges[e].from] + 1)
            l->layer[l->edges[e].to] = l->layer[l->edges[e].from] + 1;
    for (uint32_t e = 0; e < l->edge_count; e++) {
        const uint32_t from = l->edges[e].from, at = l->layer[l->edges[e].to];

        if (!l->layer[from] && (!below[from] || at < below[from]))
            below[from] = at;
    }
    for (uint32_t n = 0; n < l->node_count; n++)
        if (!l->layer[n] && below[n])
            l->layer[n] = below[n] - 1;
}

static int by_target(const void *a, const void *b)
{
    const cli_layout_edge *x = a, *y = b;

    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void bends_count(cli_layout *l)
{
    const uint64_t most = (uint64_t)BENDS_PER_EDGE * l->edge_count + 1000;

    l->bend_count = 0;
    for (uint32_t e = 0; e < l->edge_count; e++) {
        cli_layout_edge *edge = &l->edges[e];
        const uint32_t span = l->layer[edge->to] - l->layer[edge->from];

        edge->first_bend = l->bend_count;
        edge->bend_count = span - 1;
        if (span > SPAN_MAX || l->bend_count + (uint64_t)span > most) {
            edge->bend_count = 0;
            edge->aside = true;
        }
        l->bend_count += edge->bend_count;
    }
}

/* ---- vertices and what joins them ---- */

/* Calls for each piece of an edge between neighbouring layers. */
static void pieces_visit(drawing *d, void (*visit)(drawing *d, uint32_t above, uint32_t below))
{
    const cli_layout *l = d->l;

    for (uint32_t e = 0; e < l->edge_count; e++) {
        const cli_layout_edge *edge = &l->edges[e];
        uint32_t above = edge->from;

        if (edge->aside)
            continue;
        for (uint32_t i = 0; i <= edge->bend_count; i++) {
            const uint32_t below = i < edge->bend_count ? l->node_count + edge->first_bend + i : edge->to;

            visit(d, above, below);
            above = below;
        }
    }
}

static void piece_count(drawing *d, uint32_t above, uint32_t below)
{
    d->v[above].count[1]++;
    d->v[below].count[0]++;
}

static void piece_link(drawing *d, uint32_t above, uint32_t below)
{
    vertex *a = &d->v[above], *b = &d->v[below];

    d->links[a->first[1] + a->count[1]++] = below;
    d->links[b->first[0] + b->count[0]++] = above;
}

static void vertices_fill(drawing *d)
{
    const cli_layout *l = d->l;

    for (uint32_t i = 0; i < d->count; i++) {
        d->v[i].width = i < l->node_count ? l->width[i] : BEND_WIDTH;
        d->v[i].weight = i < l->node_count ? 1 : BEND_WEIGHT;
        d->v[i].layer = i < l->node_count ? l->layer[i] : 0;
    }
    for (uint32_t e = 0; e < l->edge_count; e++)
        for (uint32_t i = 0; i < l->edges[e].bend_count; i++)
            d->v[l->node_count + l->edges[e].first_bend + i].layer = l->layer[l->edges[e].from] + 1 + i;
}

static bool links_fill(drawing *d)
{
    uint32_t total = 0;

    pieces_visit(d, piece_count);
    for (uint32_t i = 0; i < d->count; i++)
        for (int side = 0; side < 2; side++) {
            d->v[i].first[side] = total;
            total += d->v[i].count[side];
            d->v[i].count[side] = 0;
        }
    d->links = calloc(total + 1u, sizeof *d->links);
    d->keys = calloc((size_t)total + d->count + 1u, sizeof *d->keys);
    if (!d->links || !d->keys)
        return false;
    pieces_visit(d, piece_link);
    return true;
}

/* Vertices by layer: at first in the order of nodes. */
static bool order_begin(drawing *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->v[i].layer >= d->layer_count)
            d->layer_count = d->v[i].layer + 1;
    d->begin = calloc(d->layer_count + 2u, sizeof *d->begin);
    d->order = calloc(d->count + 1u, sizeof *d->order);
    d->best = calloc(d->count + 1u, sizeof *d->best);
    d->tree = calloc(d->count + 2u, sizeof *d->tree);
    d->target = calloc(3 * (d->count + 1ull), sizeof *d->target);
    d->run = calloc(d->count + 1u, sizeof *d->run);
    if (!d->begin || !d->order || !d->best || !d->tree || !d->target || !d->run)
        return false;
    d->level = d->target + d->count + 1;
    d->mass = d->level + d->count + 1;
    for (uint32_t i = 0; i < d->count; i++)
        d->begin[d->v[i].layer + 1]++;
    for (uint32_t k = 0; k < d->layer_count; k++)
        d->begin[k + 1] += d->begin[k];
    for (uint32_t i = 0; i < d->count; i++) {
        vertex *v = &d->v[i];

        v->place = d->run[v->layer]++; /* run is not longer than layers: count at most */
        d->order[d->begin[v->layer] + v->place] = i;
    }
    return true;
}

/* ---- the order within layers ---- */

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key < y->key || x->key > y->key)
        return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Sorts a layer by the mean place of the neighbours on one side. */
static void layer_sort(drawing *d, uint32_t layer, int side)
{
    const uint32_t first = d->begin[layer], count = d->begin[layer + 1] - first;

    for (uint32_t i = 0; i < count; i++) {
        const vertex *v = &d->v[d->order[first + i]];
        double sum = 0;

        for (uint32_t k = 0; k < v->count[side]; k++)
            sum += d->v[d->links[v->first[side] + k]].place;
        d->keys[i].key = v->count[side] ? sum / v->count[side] : (double)i;
        d->keys[i].place = i;
        d->keys[i].vertex = d->order[first + i];
    }
    qsort(d->keys, count, sizeof *d->keys, by_key);
    for (uint32_t i = 0; i < count; i++) {
        d->order[first + i] = d->keys[i].vertex;
        d->v[d->keys[i].vertex].place = i;
    }
}

/* Pieces between two layers that cross: inversions, counted with a Fenwick tree over the lower places. */
static uint64_t crossings_below(drawing *d, uint32_t layer)
{
    const uint32_t below = d->begin[layer + 2] - d->begin[layer + 1];
    uint64_t crossings = 0;
    uint32_t seen = 0;

    memset(d->tree, 0, (below + 1u) * sizeof *d->tree);
    for (uint32_t i = d->begin[layer]; i < d->begin[layer + 1]; i++) {
        const vertex *v = &d->v[d->order[i]];

        for (uint32_t k = 0; k < v->count[1]; k++) {
            uint32_t before = 0;

            for (uint32_t at = d->v[d->links[v->first[1] + k]].place + 1; at; at &= at - 1)
                before += d->tree[at];
            crossings += seen - before;
        }
        for (uint32_t k = 0; k < v->count[1]; k++, seen++)
            for (uint32_t at = d->v[d->links[v->first[1] + k]].place + 1; at <= below; at += at & (~at + 1))
                d->tree[at]++;
    }
    return crossings;
}

static uint64_t crossings_count(drawing *d)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k + 1 < d->layer_count; k++)
        sum += crossings_below(d, k);
    return sum;
}

static void order_improve(drawing *d)
{
    uint64_t best = crossings_count(d), now;
    uint32_t sweeps = d->count ? SWEEP_WORK / d->count : 0;

    if (sweeps > SWEEPS_MAX)
        sweeps = SWEEPS_MAX;
    if (sweeps < 2)
        sweeps = 2;
    memcpy(d->best, d->order, d->count * sizeof *d->best);
    for (uint32_t i = 0; i < sweeps && best; i++) {
        for (uint32_t k = 1; k < d->layer_count && i % 2 == 0; k++)
            layer_sort(d, k, 0);
        for (uint32_t k = d->layer_count - 1; k-- > 0 && i % 2;)
            layer_sort(d, k, 1);
        now = crossings_count(d);
        if (now < best) {
            best = now;
            memcpy(d->best, d->order, d->count * sizeof *d->best);
        }
    }
    memcpy(d->order, d->best, d->count * sizeof *d->order);
    for (uint32_t k = 0; k < d->layer_count; k++)
        for (uint32_t i = d->begin[k]; i < d->begin[k + 1]; i++)
            d->v[d->order[i]].place = i - d->begin[k];
}

/* ---- places ---- */

static double distance(const drawing *d, uint32_t left, uint32_t right)
{
    return (d->v[left].width + d->v[right].width) / 2 + d->l->node_gap;
}

static void layer_pack(drawing *d, uint32_t layer)
{
    double x = 0;

    for (uint32_t i = d->begin[layer]; i < d->begin[layer + 1]; i++) {
        if (i > d->begin[layer])
            x += distance(d, d->order[i - 1], d->order[i]);
        d->v[d->order[i]].x = x;
    }
    for (uint32_t i = d->begin[layer]; i < d->begin[layer + 1]; i++)
        d->v[d->order[i]].x -= x / 2;
}

/* Where a vertex would like to be: the mean of its neighbours, on one side or (2) both. */
static double wish(const drawing *d, const vertex *v, int side)
{
    double sum = 0, weight = 0;

    for (int s = 0; s < 2; s++)
        for (uint32_t k = 0; k < v->count[s] && (side == 2 || side == s); k++) {
            const vertex *other = &d->v[d->links[v->first[s] + k]];

            sum += other->x * other->weight;
            weight += other->weight;
        }
    return weight > 0 ? sum / weight : v->x;
}

/* Nearest to the wishes (least squares) that keeps order and distances. */
static void layer_settle(drawing *d, uint32_t layer, int side)
{
    const uint32_t first = d->begin[layer], count = d->begin[layer + 1] - first;
    double shift = 0;
    uint32_t runs = 0, at = 0;

    for (uint32_t i = 0; i < count; i++) {
        const vertex *v = &d->v[d->order[first + i]];

        shift += i ? distance(d, d->order[first + i - 1], d->order[first + i]) : 0;
        d->target[i] = shift;
        d->level[runs] = wish(d, v, side) - shift;
        d->mass[runs] = v->weight;
        d->run[runs++] = 1;
        while (runs > 1 && d->level[runs - 2] > d->level[runs - 1]) {
            const double mass = d->mass[runs - 2] + d->mass[runs - 1];

            d->level[runs - 2] =
                (d->level[runs - 2] * d->mass[runs - 2] + d->level[runs - 1] * d->mass[runs - 1]) / mass;
            d->mass[runs - 2] = mass;
            d->run[runs - 2] += d->run[runs - 1];
            runs--;
        }
    }
    for (uint32_t r = 0; r < runs; r++)
        for (uint32_t i = 0; i < d->run[r]; i++, at++)
            d->v[d->order[first + at]].x = d->level[r] + d->target[at];
}

static void places_settle(drawing *d)
{
    for (uint32_t k = 0; k < d->layer_count; k++)
        layer_pack(d, k);
    for (uint32_t round = 0; round < SETTLE_ROUNDS; round++) {
        for (uint32_t k = 1; k < d->layer_count; k++)
            layer_settle(d, k, round + 1 < SETTLE_ROUNDS ? 0 : 2);
        for (uint32_t k = d->layer_count; k-- > 0 && round + 1 < SETTLE_ROUNDS;)
            layer_settle(d, k, 1);
    }
}

static void places_write(drawing *d)
{
    cli_layout *l = d->l;
    double left = 0, right = 0;

    for (uint32_t i = 0; i < d->count; i++) {
        const double half = d->v[i].width / 2;

        if (!i || d->v[i].x - half < left)
            left = d->v[i].x - half;
        if (!i || d->v[i].x + half > right)
            right = d->v[i].x + half;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        const double x = d->v[i].x - left;
        const double y = l->node_height / 2 + d->v[i].layer * (l->node_height + l->layer_gap);

        if (i < l->node_count) {
            l->x[i] = x;
            l->y[i] = y;
        } else {
            l->bends[i - l->node_count].x = x;
            l->bends[i - l->node_count].y = y;
        }
    }
    l->total_width = right - left;
    l->total_height = d->layer_count * (l->node_height + l->layer_gap) - (d->layer_count ? l->layer_gap : 0);
}

/* ---- the whole ---- */

static void drawing_fini(drawing *d)
{
    free(d->v);
    free(d->links);
    free(d->begin);
    free(d->order);
    free(d->best);
    free(d->tree);
    free(d->keys);
    free(d->target);
    free(d->run);
}

bool cli_layout_make(cli_layout *l)
{
    drawing d = {.l = l};
    bool ok = false;

    if (l->edge_count)
        qsort(l->edges, l->edge_count, sizeof *l->edges, by_target);
    l->layer = calloc(2 * (l->node_count + 1ull), sizeof *l->layer);
    l->x = calloc(l->node_count + 1u, sizeof *l->x);
    l->y = calloc(l->node_count + 1u, sizeof *l->y);
    if (!l->layer || !l->x || !l->y)
        return false;
    layers_find(l);
    bends_count(l);
    d.count = l->node_count + l->bend_count;
    l->bends = calloc(l->bend_count + 1u, sizeof *l->bends);
    d.v = calloc(d.count + 1u, sizeof *d.v);
    if (l->bends && d.v) {
        vertices_fill(&d);
        if (links_fill(&d) && order_begin(&d)) {
            if (d.layer_count > 1)
                order_improve(&d);
            places_settle(&d);
            places_write(&d);
            ok = true;
        }
    }
    drawing_fini(&d);
    return ok;
}

void cli_layout_fini(cli_layout *l)
{
    free(l->width);
    free(l->layer);
    free(l->x);
    free(l->y);
    free(l->edges);
    free(l->bends);
    memset(l, 0, sizeof *l);
}
