/*
 * Positions that are drawn. The sums of probabilities that a search goes through are double and added from
 * first to last, so nothing depends on how rows are shared between threads.
 */
#include <math.h>

#include "../../common/zipfian.h"
#include "distribution.h"
#include "rows.h"
#include "tenon/plugin/op/choice.h"

#define PART 512

/* ---- lists of probabilities --------------------------------------------------------------------------- */

/* Elements at … of `t` are what probabilities are: finite, none below 0, and one above if `sum` is wanted. */
static tn_status weights_check(const tn_tensor *t, int64_t at, int64_t count, double *sum, tn_err *err)
{
    double part[PART];

    *sum = 0;
    for (int64_t end = at + count, n; at < end; at += n) {
        int64_t good = 0;

        n = tncpu_min(PART, end - at);
        tncpu_numbers(t, at, 1, n, part);
        for (int64_t i = 0; i < n; i++)
            good += part[i] >= 0;
        if (good < n)
            return tn_fail(err, TN_E_ARG, "a probability is below 0, or not a number");
        *sum += tncpu_lanes_sum(part, NULL, n);
    }
    return isfinite(*sum) ? TN_OK : tn_fail(err, TN_E_ARG, "probabilities have no finite sum");
}

static void sums_load(const tn_tensor *t, int64_t at, int64_t count, double *sums)
{
    double sum = 0;

    tncpu_numbers(t, at, 1, count, sums);
    for (int64_t i = 0; i < count; i++)
        sums[i] = sum += sums[i];
}

/* The first position whose sum is above `u` times the last one. */
static int64_t sums_find(const double *sums, int64_t count, double u)
{
    const double v =
        u * sums[count - 1] < sums[count - 1] ? u * sums[count - 1] : nextafter(sums[count - 1], 0);
    int64_t low = 0, high = count - 1;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (sums[middle] > v)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- _sample_multinomial ------------------------------------------------------------------------------ */

typedef struct rows_plan {
    int64_t rows, count, each; /* positions of a row; draws of a row */
} rows_plan;

typedef struct rows_draw {
    const rows_plan *p;
    const tn_exec *x;
    tn_draw draw;
} rows_draw;

static tn_status multinomial_plan(void *plugin, const tn_node *node, const tn_tensor *data, int64_t draws,
                                  tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(rows_plan), err);
    rows_plan *p = plan->state;

    if (st)
        return st;
    p->count = data->shape[data->ndim - 1];
    p->rows = tncpu_dims(data, 0, data->ndim - 1);
    p->each = p->rows ? draws / p->rows : 0;
    tncpu_plan_tasks(node, plan, 5.0 * (double)p->rows * (double)p->count + 40.0 * (double)draws, p->rows);
    return TN_OK;
}

static tn_status multinomial_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[0];
    const tn_status st = multinomial_plan(plugin, node, data, tn_tensor_count(node->out[0]), plan, err);

    if (!st)
        tncpu_plan_workspace(plan, (uint64_t)data->shape[data->ndim - 1] * sizeof(double));
    return st;
}

/* Whether an element of the type holds the last one of `count` positions; floats round it. */
static bool positions_fit(int32_t dtype, int64_t count)
{
    uint64_t room = 0;
    const tn_tensor element = {.data = &room, .dtype = dtype};
    const double last = (double)(count - 1);

    tncpu_numbers_store(&element, 0, 1, 1, &last);
    return tncpu_is_float(dtype) || tncpu_number(&element, 0) >= last;
}

static void multinomial_body(const void *call, int64_t row, double *sums)
{
    const rows_draw *c = call;
    const tn_exec *x = c->x;

    sums_load(x->in[0], row * c->p->count, c->p->count, sums);
    for (int64_t k = row * c->p->each, end = k + c->p->each; k < end; k++) {
        const int64_t at = sums_find(sums, c->p->count, tn_draw_unit(&c->draw, (uint64_t)k));
        const double position = (double)at;

        if (x->modes[0])
            tncpu_numbers_store(x->out[0], k, 1, 1, &position);
        if (tn_value_int(x->attrs[TN_sample_multinomial_get_prob]) && x->modes[1]) {
            const double prob = log(tncpu_number(x->in[0], row * c->p->count + at));

            tncpu_numbers_store(x->out[1], k, 1, 1, &prob);
        }
    }
}

static tn_status multinomial_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows_draw call = {plan->state, x, tn_draw_of(x->rng)};
    double sum;

    if (!positions_fit(x->out[0]->dtype, call.p->count))
        return tn_fail(err, TN_E_ATTR, "dtype cannot hold the positions of a row of data");
    for (int64_t row = 0; row < call.p->rows; row++) {
        const tn_status st = weights_check(x->in[0], row * call.p->count, call.p->count, &sum, err);

        if (st)
            return st;
        if (!(sum > 0) && call.p->each)
            return tn_fail(err, TN_E_ARG, "all probabilities of a row of data are 0");
    }
    tncpu_rows_run(plan, x, call.p->rows, 0, multinomial_body, &call);
    return TN_OK;
}

/* in: dy of the logarithms, data, positions */
static tn_status multinomial_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = multinomial_plan(plugin, node, node->in[1], tn_tensor_count(node->in[0]), plan, err);

    if (!st)
        tncpu_plan_workspace(plan, (uint64_t)((rows_plan *)plan->state)->count * sizeof(double));
    return st;
}

static void multinomial_back_body(const void *call, int64_t row, double *sums)
{
    const rows_draw *c = call;
    const tn_exec *x = c->x;
    const int64_t count = c->p->count;

    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t k = row * c->p->each, end = k + c->p->each; k < end; k++) {
        const double position = tncpu_number(x->in[2], k);
        const int64_t at = position >= 0 && position < (double)count ? (int64_t)position : count - 1;

        if (count)
            sums[at] += tncpu_number(x->in[0], k) / tncpu_number(x->in[1], row * count + at);
    }
    tncpu_numbers_store(x->out[0], row * count, 1, count, sums);
}

static tn_status multinomial_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows_draw call = {.p = plan->state, .x = x};

    (void)err;
    if (!call.p->count) /* no elements, however many rows */
        return TN_OK;
    tncpu_rows_run(plan, x, call.p->rows, 0, multinomial_back_body, &call);
    return TN_OK;
}

/* ---- _npi_multinomial --------------------------------------------------------------------------------- */

typedef struct counts_call {
    const tn_exec *x;
    tn_draw draw;
    const double *sums;
    int64_t count, n; /* outcomes; experiments */
} counts_call;

static tn_status counts_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *y = node->out[0];
    const int64_t count = y->shape[y->ndim - 1], rows = tncpu_dims(y, 0, y->ndim - 1);

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 200.0 * (double)rows * (double)count, rows);
    plan->workspace_bytes = (uint64_t)count * sizeof(double);
    return TN_OK;
}

/* One outcome after the other: how many of the experiments that are left have it. */
static void counts_body(const void *call, int64_t row, double *room)
{
    const counts_call *c = call;
    int64_t *to = (int64_t *)c->x->out[0]->data + row * c->count, left = c->n;

    (void)room;
    for (int64_t i = 0; i < c->count; i++) {
        const double passed = i ? c->sums[i - 1] : 0, p = c->sums[i] - passed,
                     rest = c->sums[c->count - 1] - passed;

        to[i] = i == c->count - 1 || !(rest > 0)
                    ? left
                    : tnb_draw_binomial(&c->draw, (uint64_t)(row * c->count + i), left, fmin(p / rest, 1));
        left -= to[i];
    }
}

/* The probabilities of all outcomes but the last one, which has what is left. */
static tn_status counts_load(const tn_exec *x, int64_t count, double *sums, tn_err *err)
{
    const tn_floats *pvals = tn_value_pointer(x->attrs[TN_npi_multinomial_pvals]);
    const double unit = pvals || x->in[0]->dtype == TN_F64 ? 0
                        : x->in[0]->dtype == TN_F32        ? 6e-8
                        : x->in[0]->dtype == TN_F16        ? 5e-4
                        : x->in[0]->dtype == TN_BF16       ? 4e-3
                                                           : 0; /* of rounding, for each of them */
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sums[i] = pvals ? pvals->item[i] : tncpu_number(x->in[0], i);
    for (int64_t i = 0; i < count; i++) {
        if (!(sums[i] >= 0))
            return tn_fail(err, TN_E_ARG, "a probability is below 0, or not a number");
        sums[i] = sum += sums[i];
        if (sum > 1 + 1e-12 + unit * (double)count)
            return tn_fail(err, TN_E_ARG, "the sum of the probabilities is above 1");
    }
    sums[count - 1] = count > 1 && sums[count - 2] > 1 ? sums[count - 2] : 1;
    return TN_OK;
}

static tn_status counts_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const int64_t count = y->shape[y->ndim - 1];
    const counts_call call = {x, tn_draw_of(x->rng), x->workspace, count,
                              tn_value_int(x->attrs[TN_npi_multinomial_n])};
    const tn_status st = count ? counts_load(x, count, x->workspace, err) : TN_OK;

    if (!st && count)
        tncpu_rows_run(plan, x, tncpu_dims(y, 0, y->ndim - 1), plan->workspace_bytes, counts_body, &call);
    return st;
}

/* ---- _npi_choice -------------------------------------------------------------------------------------- */

typedef struct entry {
    double key;
    int64_t at;
} entry;

/* Where the list 0 … count-1 was changed: a table of `slots` places, a power of two. */
typedef struct change {
    int64_t at, value; /* at -1: free */
} change;

typedef struct choice_plan {
    int64_t count;   /* positions to choose from */
    int32_t weights; /* input; -1: none */
    bool replace;
} choice_plan;

static tn_status choice_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t *a = tn_value_pointer(node->attrs[TN_npi_choice_a]);
    const tn_status st = tncpu_state(plugin, plan, sizeof(choice_plan), err);
    choice_plan *p = plan->state;

    if (st)
        return st;
    p->count = a ? *a : tn_tensor_count(node->in[0]);
    p->weights = tn_value_int(node->attrs[TN_npi_choice_weighted]) ? (int32_t)node->in_count - 1 : -1;
    p->replace = tn_value_int(node->attrs[TN_npi_choice_replace]) != 0;
    tncpu_plan_work(node, plan,
                    40.0 * (double)(tn_tensor_count(node->out[0]) + (p->weights >= 0 ? p->count : 0)));
    if (p->weights >= 0)
        plan->workspace_bytes = (uint64_t)p->count * (p->replace ? sizeof(double) : sizeof(entry));
    else if (!p->replace)
        plan->workspace_bytes = tnb_table_slots(tn_tensor_count(node->out[0])) * sizeof(change);
    return TN_OK;
}

typedef struct choice_call {
    const choice_plan *p;
    const tn_exec *x;
    tn_draw draw;
    const double *sums; /* NULL: all positions alike */
} choice_call;

static void again_part(void *arg, int64_t begin, int64_t end)
{
    const choice_call *c = arg;
    int64_t *to = c->x->out[0]->data;

    for (int64_t k = begin; k < end; k++)
        to[k] = c->sums ? sums_find(c->sums, c->p->count, tn_draw_unit(&c->draw, (uint64_t)k))
                        : (int64_t)tnb_draw_below(&c->draw, (uint64_t)k, (uint64_t)c->p->count);
}

/* The place of position `at`, or the free one where it belongs. */
static change *change_of(change *table, uint64_t slots, int64_t at)
{
    uint64_t i = (uint64_t)at * 0x9E3779B97F4A7C15u >> 20 & (slots - 1);

    while (table[i].at >= 0 && table[i].at != at)
        i = (i + 1) & (slots - 1);
    return &table[i];
}

/* The first `wanted` steps of Fisher and Yates, on a list of which only the changes are kept. */
static void apart_alike(const choice_call *c, int64_t wanted, change *table, int64_t *to)
{
    const uint64_t slots = tnb_table_slots(wanted);

    memset(table, -1, slots * sizeof *table);
    for (int64_t i = 0; i < wanted; i++) {
        const int64_t j = i + (int64_t)tnb_draw_below(&c->draw, (uint64_t)i, (uint64_t)(c->p->count - i));
        const change *own = change_of(table, slots, i);
        const int64_t value = own->at < 0 ? i : own->value;
        change *other = change_of(table, slots, j);

        to[i] = other->at < 0 ? j : other->value;
        *other = (change){j, value};
    }
}

static bool before(const entry *a, const entry *b)
{
    return a->key < b->key || (a->key == b->key && a->at < b->at);
}

/* The entry at `i` sinks to its place among those of a heap, the first one on top. */
static void sink(entry *heap, int64_t count, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        const entry e = heap[i];

        child += child + 1 < count && before(&heap[child + 1], &heap[child]);
        if (!before(&heap[child], &e))
            return;
        heap[i] = heap[child];
        heap[child] = e;
    }
}

/* Each position arrives after an exponential time divided by its weight: the first ones are chosen. */
static tn_status apart_weighted(const choice_call *c, int64_t wanted, entry *heap, int64_t *to, tn_err *err)
{
    const tn_tensor *weights = c->x->in[c->p->weights];
    int64_t count = 0;

    for (int64_t i = 0; i < c->p->count; i++) {
        const double w = tncpu_number(weights, i);

        if (w > 0)
            heap[count++] = (entry){-log(1 - tn_draw_unit(&c->draw, (uint64_t)i)) / w, i};
    }
    if (count < wanted)
        return tn_fail(err, TN_E_ARG, "fewer positions than are wanted have a probability above 0");
    for (int64_t i = count / 2; i-- > 0;)
        sink(heap, count, i);
    for (int64_t i = 0; i < wanted; i++) {
        to[i] = heap[0].at;
        heap[0] = heap[--count];
        sink(heap, count, 0);
    }
    return TN_OK;
}

static tn_status choice_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    choice_call call = {plan->state, x, tn_draw_of(x->rng), NULL};
    const choice_plan *p = call.p;
    const int64_t wanted = tn_tensor_count(x->out[0]);
    double sum = 1;
    tn_status st = TN_OK;

    if (p->weights >= 0)
        st = weights_check(x->in[p->weights], 0, p->count, &sum, err);
    if (!st && !(sum > 0))
        st = tn_fail(err, TN_E_ARG, "all probabilities are 0");
    if (st)
        return st;
    if (!p->replace && p->weights >= 0)
        return apart_weighted(&call, wanted, x->workspace, x->out[0]->data, err);
    if (!p->replace) {
        apart_alike(&call, wanted, x->workspace, x->out[0]->data);
        return TN_OK;
    }
    if (p->weights >= 0) {
        sums_load(x->in[p->weights], 0, p->count, x->workspace);
        call.sums = x->workspace;
    }
    tncpu_for(plan, x, wanted, PART, again_part, &call);
    return TN_OK;
}

/* ---- _sample_unique_zipfian --------------------------------------------------------------------------- */

typedef struct zipfian_call {
    const tn_exec *x;
    tn_draw draw;
    int64_t range, each;
} zipfian_call;

static tn_status zipfian_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t *shape = node->out[0]->shape;

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 100.0 * (double)shape[0] * (double)shape[1], shape[0]);
    tncpu_plan_workspace(plan, tnb_table_slots(shape[1]) * sizeof(int32_t));
    return TN_OK;
}

static void zipfian_body(const void *call, int64_t row, double *room)
{
    const zipfian_call *c = call;
    int64_t *to = c->x->modes[0] ? (int64_t *)c->x->out[0]->data + row * c->each : NULL;
    const int64_t tries = tnb_zipfian_row(&c->draw, row, c->range, c->each, (int32_t *)(void *)room, to);

    if (c->x->modes[1])
        ((int64_t *)c->x->out[1]->data)[row] = tries;
}

static tn_status zipfian_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *shape = x->out[0]->shape;
    const zipfian_call call = {x, tn_draw_of(x->rng),
                               tn_value_int(x->attrs[TN_sample_unique_zipfian_range_max]), shape[1]};

    (void)err;
    tncpu_rows_run(plan, x, shape[0], 0, zipfian_body, &call);
    return TN_OK;
}

/* ---- _shuffle ----------------------------------------------------------------------------------------- */

typedef struct shuffle_call {
    const char *from;
    char *to;
    const int64_t *order;
    int64_t bytes; /* of a row */
} shuffle_call;

static int64_t rows_of(const tn_tensor *t)
{
    return t->ndim ? t->shape[0] : 1;
}

static tn_status shuffle_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t rows = rows_of(node->in[0]);

    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20.0 + 20.0 * (double)rows + 0.5 * (double)tn_tensor_count(node->in[0]));
    plan->workspace_bytes = (uint64_t)rows * sizeof(int64_t);
    return TN_OK;
}

static void shuffle_part(void *arg, int64_t begin, int64_t end)
{
    const shuffle_call *c = arg;

    for (int64_t i = begin; i < end; i++)
        memcpy(c->to + i * c->bytes, c->from + c->order[i] * c->bytes, (size_t)c->bytes);
}

/* Fisher and Yates: the order is made by one thread, the rows are moved by all. */
static tn_status shuffle_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_draw draw = tn_draw_of(x->rng);
    const int64_t rows = rows_of(x->in[0]);
    int64_t *order = x->workspace;
    shuffle_call call = {x->in[0]->data, x->out[0]->data, order,
                         tn_tensor_count(x->in[0]) / tncpu_max(rows, 1) *
                             (int64_t)tn_dtype_bytes(x->in[0]->dtype)};

    (void)err;
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t i = rows - 1; i > 0; i--) {
        const int64_t j = (int64_t)tnb_draw_below(&draw, (uint64_t)i, (uint64_t)i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    tncpu_for(plan, x, rows, 1, shuffle_part, &call);
    return TN_OK;
}

static const char *const multinomial_types[] = {"data:" TNCPU_FLOATS, "log_prob:=data", "*:" TNCPU_NUMBERS,
                                                NULL};
static const char *const back_types[] = {"dy1:" TNCPU_FLOATS, "data:=dy1", "output:" TNCPU_NUMBERS, "*:=dy1",
                                         NULL};
static const char *const counts_types[] = {"output:i64", "a:" TNCPU_NUMBERS, NULL};
static const char *const positions_types[] = {"output:i64", "*:" TNCPU_ALL, NULL};
static const char *const all_types[] = {"data:" TNCPU_ALL, "*:=data", NULL};
static const char *const zipfian_types[] = {"*:i64", NULL};

const tn_kernel *const tncpu_family_choice[] = {
    TNCPU_ROW("_sample_multinomial", multinomial_types, 0, multinomial_prepare, multinomial_run),
    TNCPU_ROW("_backward__sample_multinomial", back_types, TN_KERNEL_EMPTY_OK, multinomial_back_prepare,
              multinomial_back_run),
    TNCPU_ROW("_npi_multinomial", counts_types, 0, counts_prepare, counts_run),
    TNCPU_ROW("_npi_choice", positions_types, 0, choice_prepare, choice_run),
    TNCPU_ROW("_sample_unique_zipfian", zipfian_types, 0, zipfian_prepare, zipfian_run),
    TNCPU_ROW("_shuffle", all_types, 0, shuffle_prepare, shuffle_run),
    NULL,
};
