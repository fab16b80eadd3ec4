/*
 * Moments, averages, percentiles and counts: all in double, whatever the data type. One output is one
 * thread's, so
 * nothing depends on their number.
 */
#include <math.h>

#include "../../common/axes.h"
#include "index.h"
#include "rows.h"
#include "tenon/plugin/op/statistics.h"

/* ---- over axes ---------------------------------------------------------------------------------- */

typedef struct over_plan {
    tnb_axes kept, reduced; /* of input 0 */
    bool whole;             /* moments of integers: the mean is cut before it is subtracted */
    bool root;              /* of the variance */
    bool line;              /* one weight for each index of the only reduced axis */
    int64_t ddof;
} over_plan;

typedef struct over_call {
    const over_plan *p;
    const tn_exec *x;
    double q; /* the only percentage; NaN: input 1 has them */
    int64_t q_count;
    int interpolation;
} over_call;

/* `each`: nanoseconds per element. */
static tn_status over_prepare(void *plugin, const tn_node *node, tn_plan *plan, bool numpy, double each,
                              tn_err *err)
{
    const tn_tensor *in = node->in[0];
    over_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->whole = tncpu_converts[in->dtype].kind > TNCPU_K_F64;
    tnb_axes_split(in, tnb_axes_mask(node->attrs[0], false, numpy, in->ndim), &p->kept, &p->reduced);
    tncpu_plan_work(node, plan, 20.0 + (double)p->kept.count * (10.0 + (double)p->reduced.count * each));
    return TN_OK;
}

/* Elements `at` … of the reduced ones behind `base`, those that lie in one row of them: how many. */
static int64_t over_load(const tn_tensor *t, const tnb_axes *a, int64_t base, int64_t at, double *tile)
{
    const int64_t inner = a->ndim > 0 ? a->shape[a->ndim - 1] : 1,
                  stride = a->ndim > 0 ? a->stride[a->ndim - 1] : 1;
    const int64_t n = tncpu_min(inner - at % inner, TNCPU_TILE);

    tncpu_numbers(t, base + tnb_axes_offset(a, at), stride, n, tile);
    return n;
}

/* ---- moments ------------------------------------------------------------------------------------ */

/* The sum of x - less, or of its square, over one output's elements. */
static double moment(const over_call *c, int64_t base, double less, bool squares)
{
    const tnb_axes *a = &c->p->reduced;
    double tile[TNCPU_TILE], sum = 0;

    for (int64_t at = 0, n; at < a->count; at += n) {
        n = over_load(c->x->in[0], a, base, at, tile);
        for (int64_t i = 0; i < n; i++)
            tile[i] -= less;
        sum += tncpu_lanes_sum(tile, squares ? tile : NULL, n);
    }
    return sum;
}

static tn_status moments_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return over_prepare(plugin, node, plan, false, 2, err);
}

/* The variance of output `k`'s elements, their squares divided by the count less `ddof`. */
static double variance(const over_call *c, int64_t k, double ddof, double *mean)
{
    const double count = (double)c->p->reduced.count;
    const int64_t base = tnb_axes_offset(&c->p->kept, k);

    *mean = moment(c, base, 0, false) / count;
    *mean = c->p->whole ? trunc(*mean) : *mean;
    return moment(c, base, *mean, true) / (count - ddof);
}

static void moments_part(void *arg, int64_t begin, int64_t end)
{
    const over_call *c = arg;

    for (int64_t k = begin; k < end; k++) {
        double mean, var = variance(c, k, 0, &mean);

        if (c->x->modes[0])
            tncpu_numbers_store(c->x->out[0], k, 1, 1, &mean);
        if (c->x->modes[1])
            tncpu_numbers_store(c->x->out[1], k, 1, 1, &var);
    }
}

/* A task for each element of the output. */
static void over_run(const tn_plan *plan, const tn_exec *x, void (*part)(void *, int64_t, int64_t))
{
    over_call call = {.p = plan->state, .x = x};

    tncpu_for(plan, x, call.p->kept.count, 1, part, &call);
}

TNCPU_RUN(moments_run, over_run(plan, x, moments_part))

static tn_status var_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = over_prepare(plugin, node, plan, true, 2, err);

    if (!st) {
        ((over_plan *)plan->state)->ddof = tn_value_int(node->attrs[TN_npi_var_ddof]);
        ((over_plan *)plan->state)->root = strcmp(node->op, "_npi_std") == 0;
    }
    return st;
}

static void var_part(void *arg, int64_t begin, int64_t end)
{
    const over_call *c = arg;

    for (int64_t k = begin; k < end; k++) {
        double mean, var = variance(c, k, (double)c->p->ddof, &mean);

        var = c->p->root ? sqrt(var) : var;
        tncpu_numbers_store(c->x->out[0], k, 1, 1, &var);
    }
}

TNCPU_RUN(var_run, over_run(plan, x, var_part))

/* ---- average ------------------------------------------------------------------------------------ */

static tn_status average_plan(void *plugin, const tn_node *node, tn_plan *plan, const tn_tensor *a,
                              const tn_tensor *weights, tn_err *err)
{
    const tn_tensor *const in[] = {a};
    tn_node over = *node;
    over_plan *p;
    tn_status st;

    over.in = in;
    if ((st = over_prepare(plugin, &over, plan, true, 3, err)))
        return st;
    p = plan->state;
    p->line = weights && !tncpu_same_shape(a, weights);
    return TN_OK;
}

static tn_status average_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return average_plan(plugin, node, plan, node->in[0], node->in_count > 1 ? node->in[1] : NULL, err);
}

/* Weights of the elements that over_load gave. */
static void weights_load(const over_plan *p, const tn_tensor *w, int64_t base, int64_t at, int64_t n,
                         double *tile)
{
    if (p->line)
        tncpu_numbers(w, at, 1, n, tile);
    else if (w)
        (void)over_load(w, &p->reduced, base, at, tile);
    else
        for (int64_t i = 0; i < n; i++)
            tile[i] = 1;
}

static void average_part(void *arg, int64_t begin, int64_t end)
{
    const over_call *c = arg;
    const tn_tensor *w = c->x->in[1];
    double tile[TNCPU_TILE], weight[TNCPU_TILE];

    for (int64_t k = begin; k < end; k++) {
        const int64_t base = tnb_axes_offset(&c->p->kept, k);
        double sum = 0, weights = 0;

        for (int64_t at = 0, n; at < c->p->reduced.count; at += n) {
            n = over_load(c->x->in[0], &c->p->reduced, base, at, tile);
            weights_load(c->p, w, base, at, n, weight);
            sum += tncpu_lanes_sum(tile, weight, n);
            weights += tncpu_lanes_sum(weight, NULL, n);
        }
        sum /= weights;
        if (c->x->modes[0])
            tncpu_numbers_store(c->x->out[0], k, 1, 1, &sum);
        if (c->x->modes[1])
            tncpu_numbers_store(c->x->out[1], k, 1, 1, &weights);
    }
}

static tn_status average_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *const in[] = {x->in[0],
                                   tn_value_int(x->attrs[TN_npi_average_weighted]) ? x->in[1] : NULL};
    tn_exec both = *x;

    (void)err;
    both.in = in;
    over_run(plan, &both, average_part);
    return TN_OK;
}

/* in: dy, a, weights if there are some, average, sum of the weights */
static tn_status backward_average_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool weighted = tn_value_int(node->attrs[TN_npi_average_weighted]) != 0;
    tn_status st = average_plan(plugin, node, plan, node->in[1], weighted ? node->in[2] : NULL, err);

    if (st)
        return st;
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    tncpu_plan_workspace(plan,
                         (uint64_t)(((const over_plan *)plan->state)->reduced.count + 1) * sizeof(double));
    return TN_OK;
}

/* da = dy w / sum; dw = dy (a - average) / sum, for a line of weights added up in the workspace. */
static void average_back(const over_plan *p, const tn_exec *x, int64_t k, bool weighted, double *line)
{
    const int64_t base = tnb_axes_offset(&p->kept, k),
                  stride = p->reduced.ndim > 0 ? p->reduced.stride[p->reduced.ndim - 1] : 1;
    const tn_tensor *w = weighted ? x->in[2] : NULL;
    const double average = tncpu_number(x->in[2 + weighted], k),
                 part = tncpu_number(x->in[0], k) / tncpu_number(x->in[3 + weighted], k);
    double tile[TNCPU_TILE], weight[TNCPU_TILE];

    for (int64_t at = 0, n; at < p->reduced.count; at += n) {
        const int64_t first = base + tnb_axes_offset(&p->reduced, at);

        n = over_load(x->in[1], &p->reduced, base, at, tile);
        weights_load(p, w, base, at, n, weight);
        for (int64_t i = 0; i < n; i++) {
            weight[i] *= part;
            tile[i] = part * (tile[i] - average);
        }
        if (x->modes[0])
            tncpu_numbers_store(x->out[0], first, stride, n, weight);
        if (weighted && x->modes[1] && !p->line)
            tncpu_numbers_store(x->out[1], first, stride, n, tile);
        for (int64_t i = 0; p->line && i < n; i++)
            line[at + i] += tile[i];
    }
}

static tn_status backward_average_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool weighted = tn_value_int(x->attrs[TN_npi_average_weighted]) != 0;
    const over_plan *p = plan->state;
    double *line = x->workspace;

    (void)err;
    memset(line, 0, (size_t)p->reduced.count * sizeof *line);
    for (int64_t k = 0; k < p->kept.count; k++)
        average_back(p, x, k, weighted, line);
    if (p->line && x->modes[1])
        tncpu_numbers_store(x->out[1], 0, 1, p->reduced.count, line);
    return TN_OK;
}

/* ---- percentile --------------------------------------------------------------------------------- */

static tn_status percentile_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = over_prepare(plugin, node, plan, true, 20, err);

    if (st)
        return st;
    tncpu_plan_workspace(plan,
                         (uint64_t)((const over_plan *)plan->state)->reduced.count * 2 * sizeof(double));
    return TN_OK;
}

/* Sorts by merging with room behind the numbers: the result is at one of both places. NaN is the largest. */
static double *numbers_sort(double *at, double *room, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        double *other = at;

        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t a = begin, to = begin;
            const int64_t middle = tncpu_min(begin + width, n), end = tncpu_min(begin + 2 * width, n);

            for (int64_t b = middle; to < end; to++) {
                const bool second =
                    a == middle || (b < end && (at[b] < at[a] || (at[a] != at[a] && at[b] == at[b])));

                room[to] = second ? at[b++] : at[a++];
            }
        }
        at = room;
        room = other;
    }
    return at;
}

static double percentile(const double *sorted, int64_t n, double q, int interpolation)
{
    const double at = q / 100 * (double)(n - 1), low = floor(at), part = at - low;
    const int64_t i = (int64_t)low, next = i + 1 < n ? i + 1 : i;

    if (n == 0 || sorted[n - 1] != sorted[n - 1])
        return NAN;
    switch (interpolation) {
    case TN_npi_percentile_interpolation_lower:
        return sorted[i];
    case TN_npi_percentile_interpolation_higher:
        return part > 0 ? sorted[next] : sorted[i];
    case TN_npi_percentile_interpolation_midpoint:
        return part > 0 ? (sorted[i] + sorted[next]) / 2 : sorted[i];
    case TN_npi_percentile_interpolation_nearest: /* halves to even */
        return sorted[tncpu_min((int64_t)nearbyint(at), n - 1)];
    default:
        return sorted[i] + (sorted[next] - sorted[i]) * part;
    }
}

static void percentile_row(const void *arg, int64_t row, double *room)
{
    const over_call *c = arg;
    const tnb_axes *a = &c->p->reduced;
    const int64_t base = tnb_axes_offset(&c->p->kept, row);
    double tile[TNCPU_TILE];
    const double *sorted;

    for (int64_t at = 0, n; at < a->count; at += n) {
        n = over_load(c->x->in[0], a, base, at, tile);
        memcpy(room + at, tile, (size_t)n * sizeof *room);
    }
    sorted = numbers_sort(room, room + a->count, a->count);
    for (int64_t k = 0; k < c->q_count; k++) {
        const double q = c->q == c->q ? c->q : tncpu_number(c->x->in[1], k),
                     y = percentile(sorted, a->count, q, c->interpolation);

        tncpu_numbers_store(c->x->out[0], k * c->p->kept.count + row, 1, 1, &y);
    }
}

static tn_status percentile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double *only = (const double *)tn_value_pointer(x->attrs[TN_npi_percentile_q_scalar]);
    const over_call call = {plan->state, x, only ? *only : NAN, only ? 1 : tn_tensor_count(x->in[1]),
                            (int)tn_value_int(x->attrs[TN_npi_percentile_interpolation])};

    for (int64_t k = 0; k < call.q_count; k++) {
        const double q = only ? *only : tncpu_number(x->in[1], k);

        if (!(q >= 0 && q <= 100))
            return tn_fail(err, TN_E_ARG, "a percentage lies between 0 and 100");
    }
    tncpu_rows_run(plan, x, call.p->kept.count, 0, percentile_row, &call);
    return TN_OK;
}

/* ---- counts ------------------------------------------------------------------------------------- */

TNCPU_PREPARE(serial_prepare, tncpu_plan_tasks(node, plan, 50 + 5 * (double)tn_tensor_count(node->in[0]), 1))

typedef struct edges {
    const tn_tensor *given; /* NULL: they are as far from each other as their number says */
    double first, last;
    int64_t bins;
} edges;

static double edge_at(const edges *e, int64_t k)
{
    return e->given ? tncpu_number(e->given, k)
                    : e->first + (double)k * (e->last - e->first) / (double)e->bins;
}

/* The bin of `v` among edges that ascend, the last one belonging to the last bin; -1: none. */
static int64_t bin_of(const edges *e, double v)
{
    int64_t low = 0, high = e->bins;

    if (!(v >= edge_at(e, 0) && v <= edge_at(e, high)))
        return -1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (v >= edge_at(e, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void bins_fill(const tn_tensor *data, const edges *e, int64_t *counts)
{
    const int64_t count = tn_tensor_count(data);
    double tile[TNCPU_TILE];

    memset(counts, 0, (size_t)e->bins * sizeof *counts);
    for (int64_t at = 0; at < count; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, count - at);

        tncpu_numbers(data, at, 1, n, tile);
        for (int64_t i = 0; i < n; i++) {
            const int64_t bin = bin_of(e, tile[i]);

            if (bin >= 0)
                counts[bin]++;
        }
    }
}

static tn_status histogram_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *wanted = (const int64_t *)tn_value_pointer(x->attrs[TN_histogram_bin_cnt]);
    const tn_floats *range = (const tn_floats *)tn_value_pointer(x->attrs[TN_histogram_range]);
    const edges e = {wanted ? NULL : x->in[1], wanted ? range->item[0] : 0, wanted ? range->item[1] : 0,
                     x->out[0]->shape[0]};

    (void)plan, (void)err;
    if (x->modes[0])
        bins_fill(x->in[0], &e, x->out[0]->data);
    for (int64_t k = 0; x->modes[1] && k <= e.bins; k++) {
        const double edge = edge_at(&e, k);

        tncpu_numbers_store(x->out[1], k, 1, 1, &edge);
    }
    return TN_OK;
}

static tn_status bincount_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = serial_prepare(plugin, node, plan, err);

    plan->flags |= TN_PLAN_RESIZES;
    return st;
}

/* One more than the largest number, or `least`. */
static tn_status bins_count(const tn_tensor *data, int64_t least, int64_t *out, tn_err *err)
{
    int64_t part[TNCPU_INDICES_PART], bins = least;
    const int64_t count = tn_tensor_count(data);

    for (int64_t at = 0; at < count; at += TNCPU_INDICES_PART) {
        const int64_t n = tncpu_min(TNCPU_INDICES_PART, count - at);

        tncpu_indices_part(data, at, n, part);
        for (int64_t i = 0; i < n; i++) {
            if (part[i] < 0 || part[i] >= INT64_MAX / 16)
                return tn_fail(err, TN_E_ARG,
                               "a number below 0, or one that is too large, cannot be counted");
            bins = tncpu_max(bins, part[i] + 1);
        }
    }
    *out = bins;
    return TN_OK;
}

static tn_status bincount_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool weighted = tn_value_int(x->attrs[TN_npi_bincount_has_weights]) != 0;
    const int64_t count = tn_tensor_count(x->in[0]);
    int64_t bins, part[TNCPU_INDICES_PART];
    const tn_tensor *y = NULL;
    tn_status st;

    (void)plan;
    if ((st = bins_count(x->in[0], tn_value_int(x->attrs[TN_npi_bincount_minlength]), &bins, err)) ||
        (st = x->ops->resize(x->call, 0, 1, &bins, &y, err)))
        return st;
    tncpu_fill(y, 0);
    for (int64_t at = 0; at < count; at += TNCPU_INDICES_PART) {
        const int64_t n = tncpu_min(TNCPU_INDICES_PART, count - at);

        tncpu_indices_part(x->in[0], at, n, part);
        for (int64_t i = 0; i < n; i++) {
            const double sum = tncpu_number(y, part[i]) + (weighted ? tncpu_number(x->in[1], at + i) : 1);

            tncpu_numbers_store(y, part[i], 1, 1, &sum);
        }
    }
    return TN_OK;
}

static const char *const bincount_types[] = {"data:" TNCPU_WHOLE, "*:" TNCPU_ALL, NULL};

const tn_kernel *const tncpu_family_statistics[] = {
    TNCPU_ROW("moments", tncpu_numeric, 0, moments_prepare, moments_run),
    TNCPU_ROW("_npi_var", tncpu_all, 0, var_prepare, var_run),
    TNCPU_ROW("_npi_std", tncpu_all, 0, var_prepare, var_run),
    TNCPU_ROW("_npi_average", tncpu_all, 0, average_prepare, average_run),
    TNCPU_ROW("_backward__npi_average", tncpu_floats, TN_KERNEL_EMPTY_OK, backward_average_prepare,
              backward_average_run),
    TNCPU_ROW("_npi_percentile", tncpu_all, 0, percentile_prepare, percentile_run),
    TNCPU_ROW("_histogram", tncpu_all, TN_KERNEL_EMPTY_OK, serial_prepare, histogram_run),
    TNCPU_ROW("_npi_bincount", bincount_types, TN_KERNEL_EMPTY_OK, bincount_prepare, bincount_run),
    NULL,
};
