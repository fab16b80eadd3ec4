/*
 * Sorting: one driver for all rows along an axis. Every element becomes an unsigned key that orders as
 * wanted, beside its position, so one merge sort serves all types and both directions. It is stable; a few of
 * many are chosen by insertion instead, which gives the same. A row is sorted by one thread, in its own
 * workspace.
 */
#include "index.h"
#include "keys.h"
#include "rows.h"

#include "tenon/plugin/op/order.h"

#define PART 128 /* elements converted at a time */
#define RUN 16   /* elements that insertion sorts before runs are merged */
#define FEW 32   /* this many at most are chosen by insertion */

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

/* Of each row the k first are chosen. */
typedef struct order {
    tncpu_rows rows;
    int64_t k;
    bool descending;
    const tn_tensor *data, *values, *indices, *mask; /* those to be written are not NULL */
} order;

/* ---- keys --------------------------------------------------------------------------------------------- */

/* Orders as numbers do: 0 and -0 are equal, NaN is the largest. */
static uint64_t float_key(double v)
{
    uint64_t bits;

    if (v != v)
        return UINT64_MAX;
    if (v == 0)
        v = 0;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t int_key(int64_t v)
{
    return (uint64_t)v ^ (uint64_t)1 << 63;
}

uint64_t tncpu_key(const tn_tensor *t, const tncpu_tile *tile, int64_t i)
{
    switch (tncpu_converts[t->dtype].kind) {
    case TNCPU_K_F64:
        return float_key(tile->f64[i]);
    case TNCPU_K_F32:
        return float_key((double)tile->f32[i]);
    case TNCPU_K_I32:
        return int_key(tile->i32[i]);
    default:
        return t->dtype == TN_U64 ? tile->u64[i] : int_key(tile->i64[i]);
    }
}

/* Elements first … first+n-1 of a row, n at most PART. */
static void keys_load(const order *o, const char *row, int64_t first, int64_t n, entry *to)
{
    const tncpu_convert *c = &tncpu_converts[o->data->dtype];
    tncpu_tile part;

    c->load(row + first * o->rows.inner * (int64_t)c->bytes, o->rows.inner, &part, n);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = tncpu_key(o->data, &part, i);

        to[i] = (entry){o->descending ? ~key : key, first + i};
    }
}

/* ---- sorting ------------------------------------------------------------------------------------------ */

/* Puts `e` among the n sorted ones at `to`, behind its equals. */
static void insert(entry *to, int64_t n, entry e)
{
    for (; n > 0 && to[n - 1].key > e.key; n--)
        to[n] = to[n - 1];
    to[n] = e;
}

/* Two sorted runs, of n and m; of equal ones those of `a` come first. */
static void merge(const entry *a, int64_t n, const entry *b, int64_t m, entry *to)
{
    while (n > 0 && m > 0) {
        const bool second = b->key < a->key;

        *to++ = second ? *b : *a;
        a += !second, n -= !second;
        b += second, m -= second;
    }
    memcpy(to, n > 0 ? a : b, (size_t)(n + m) * sizeof *to);
}

/* Sorts n entries with room for as many; returns the one of both places where they are then. */
static const entry *sorted(entry *at, entry *room, int64_t n)
{
    for (int64_t begin = 0; begin < n; begin += RUN)
        for (int64_t i = 1; i < tncpu_min(RUN, n - begin); i++)
            insert(at + begin, i, at[begin + i]);
    for (int64_t width = RUN; width < n; width *= 2) {
        entry *other = at;

        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            const int64_t first = tncpu_min(width, n - begin), both = tncpu_min(2 * width, n - begin);

            merge(at + begin, first, at + begin + first, both - first, room + begin);
        }
        at = room;
        room = other;
    }
    return at;
}

static bool by_insertion(int64_t k, int64_t size)
{
    return k <= FEW && k < size / 4;
}

/* Entries that a row needs. */
static int64_t entries_of(int64_t k, int64_t size)
{
    return by_insertion(k, size) ? k + PART : 2 * size;
}

/* The first k of a row in order. */
static const entry *row_order(const order *o, const char *row, entry *at)
{
    entry *part = at + o->k;
    int64_t have = 0;

    if (!by_insertion(o->k, o->rows.size)) {
        for (int64_t i = 0; i < o->rows.size; i += PART)
            keys_load(o, row, i, tncpu_min(PART, o->rows.size - i), at + i);
        return sorted(at, at + o->rows.size, o->rows.size);
    }
    for (int64_t first = 0; first < o->rows.size; first += PART) {
        const int64_t n = tncpu_min(PART, o->rows.size - first);

        keys_load(o, row, first, n, part);
        for (int64_t i = 0; i < n; i++)
            if (have < o->k)
                insert(at, have++, part[i]);
            else if (part[i].key < at[o->k - 1].key)
                insert(at, o->k - 1, part[i]);
    }
    return at;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

static char *element(const tn_tensor *t, int64_t at)
{
    return (char *)t->data + at * (int64_t)tn_dtype_bytes(t->dtype);
}

static void indices_write(const order *o, int64_t first, const entry *e)
{
    const tncpu_convert *c = &tncpu_converts[o->indices->dtype];
    const int64_t keep = o->indices->dtype == TN_U8 ? UINT8_MAX : INT64_MAX; /* MXNet's wrap round */
    int64_t part[PART];

    for (int64_t j = 0; j < o->k; j += PART) {
        const int64_t n = tncpu_min(PART, o->k - j);

        for (int64_t i = 0; i < n; i++)
            part[i] = e[j + i].index & keep;
        c->store_i(part, element(o->indices, first + j * o->rows.inner), o->rows.inner, n);
    }
}

static void row_write(const order *o, int64_t row, const entry *e)
{
    const size_t bytes = tn_dtype_bytes(o->data->dtype);
    const int64_t in = tncpu_row_at(&o->rows, row);
    const int64_t out = row / o->rows.inner * o->k * o->rows.inner + row % o->rows.inner, one = 1;

    for (int64_t j = 0; o->values && j < o->k; j++)
        memcpy(element(o->values, out + j * o->rows.inner), element(o->data, in + e[j].index * o->rows.inner),
               bytes);
    for (int64_t j = 0; o->mask && j < o->k; j++)
        tncpu_converts[o->mask->dtype].store_i(&one, element(o->mask, in + e[j].index * o->rows.inner), 1, 1);
    if (o->indices)
        indices_write(o, out, e);
}

/* ---- kernels ------------------------------------------------------------------------------------------ */

/* All three operators have the axis first. */
static order order_of(const tn_tensor *data, tn_value given, int64_t k)
{
    const int64_t *asked = (const int64_t *)tn_value_pointer(given);
    const int32_t axis = asked ? tncpu_axis(*asked, data->ndim) : 0;
    const int32_t first = asked ? axis : 0, end = asked ? axis + 1 : data->ndim;
    order o = {.rows = tncpu_rows_of(data, first, end), .k = k, .data = data};

    if (k <= 0)
        o.k = o.rows.size;
    return o;
}

static void order_plan(const tn_node *node, tn_plan *plan, int64_t k)
{
    const order o = order_of(node->in[0], node->attrs[TN_sort_axis], k);
    double each = 4;

    for (int64_t n = o.rows.size; n > 1 && !by_insertion(o.k, o.rows.size); n /= 2)
        each += 2;
    tncpu_plan_tasks(node, plan, 50 + each * (double)tn_tensor_count(node->in[0]),
                     o.rows.outer * o.rows.inner);
    tncpu_plan_workspace(plan, (uint64_t)(entries_of(o.k, o.rows.size) + 1) * sizeof(entry));
}

static void order_row(const void *call, int64_t row, double *room)
{
    const order *o = call;
    const char *from = element(o->data, tncpu_row_at(&o->rows, row));

    row_write(o, row, row_order(o, from, (entry *)(void *)room));
}

static tn_status order_run(const tn_plan *plan, const tn_exec *x, const order *o)
{
    if (o->mask)
        tncpu_fill(o->mask, 0);
    tncpu_rows_run(plan, x, o->rows.size > 0 ? o->rows.outer * o->rows.inner : 0, 0, order_row, o);
    return TN_OK;
}

/* NULL: nobody reads it. */
static const tn_tensor *wanted(const tn_exec *x, uint32_t output)
{
    return x->modes[output] == TN_MODE_NONE ? NULL : x->out[output];
}

TNCPU_PREPARE(sort_prepare, order_plan(node, plan, 0))

static tn_status sort_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    order o = order_of(x->in[0], x->attrs[TN_sort_axis], 0);

    (void)err;
    o.descending = !tn_value_int(x->attrs[TN_sort_is_ascend]);
    o.values = wanted(x, 0);
    o.indices = wanted(x, 1);
    return order_run(plan, x, &o);
}

static tn_status argsort_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    order o = order_of(x->in[0], x->attrs[TN_argsort_axis], 0);

    (void)err;
    o.descending = !tn_value_int(x->attrs[TN_argsort_is_ascend]);
    o.indices = x->out[0];
    return order_run(plan, x, &o);
}

TNCPU_PREPARE(topk_prepare, order_plan(node, plan, tn_value_int(node->attrs[TN_topk_k])))

static tn_status topk_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t what = tn_value_int(x->attrs[TN_topk_ret_typ]);
    order o = order_of(x->in[0], x->attrs[TN_topk_axis], tn_value_int(x->attrs[TN_topk_k]));

    (void)err;
    o.descending = !tn_value_int(x->attrs[TN_topk_is_ascend]);
    if (what == TN_topk_ret_typ_mask)
        o.mask = x->out[0];
    else if (what == TN_topk_ret_typ_indices)
        o.indices = x->out[0];
    else
        o.values = wanted(x, 0), o.indices = wanted(x, 1);
    return order_run(plan, x, &o);
}

/* in: dy, data, indices */
static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan,
                     30 + (double)(2 * tn_tensor_count(node->in[0]) + tn_tensor_count(node->out[0])), 1);
    tncpu_plan_workspace(plan, PART * sizeof(int64_t));
    return TN_OK;
}

/* dx = dy where its element was chosen from, else 0. */
static tn_status backward_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dy = x->in[0], *dx = x->out[0];
    const order o = order_of(dx, x->attrs[TN_sort_axis], 0);
    const int64_t count = tn_tensor_count(dy), bytes = (int64_t)tn_dtype_bytes(dx->dtype);
    const int64_t k = o.rows.size > 0 && count > 0 ? count / (o.rows.outer * o.rows.inner) : 0;
    int64_t *at = x->workspace;

    (void)plan;
    tncpu_fill(dx, 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t outer = i / (k * o.rows.inner), inner = i % o.rows.inner;

        if (i % PART == 0)
            tncpu_indices_part(x->in[2], i, tncpu_min(PART, count - i), at);
        if (at[i % PART] < 0 || at[i % PART] >= o.rows.size)
            return tn_fail(err, TN_E_ARG, "an index lies outside of the axis: its data type is too short");
        memcpy(element(dx, (outer * o.rows.size + at[i % PART]) * o.rows.inner + inner), element(dy, i),
               (size_t)bytes);
    }
    return TN_OK;
}

static const char *const back_sort_types[] = {"dy:" TNCPU_ALL, "data:=dy", "indices:i32", "*:=dy", NULL};
static const char *const back_topk_types[] = {"dy:" TNCPU_ALL, "data:=dy", "indices:f32,f64,f16,u8,i32,i64",
                                              "*:=dy", NULL};

const tn_kernel *const tncpu_family_order[] = {
    TNCPU_ROW("sort", tncpu_all, 0, sort_prepare, sort_run),
    TNCPU_ROW("_backward_sort", back_sort_types, 0, backward_prepare, backward_run),
    TNCPU_ROW("argsort", tncpu_all, 0, sort_prepare, argsort_run),
    TNCPU_ROW("topk", tncpu_all, 0, topk_prepare, topk_run),
    TNCPU_ROW("_backward_topk", back_topk_types, 0, backward_prepare, backward_run),
    NULL,
};
