/*
 * Gather and scatter. Indices are first read into 64-bit integers and brought to positions of rows, then rows
 * are copied from there (take, Embedding, pick, gather_nd), put there (one_hot, scatter_nd, the gradient of
 * pick) or added there (the other gradients). Rows are put and added in the order of the indices; threads
 * take columns, so the order stays.
 */
#include "index.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "short.h"

#include "tenon/plugin/op/index.h"

#define COLUMNS 64 /* elements of a row that one thread adds */

/* Data as (outer, size, inner), looked up `count` times along size: rows of `inner` elements. */
typedef struct lookup {
    int64_t outer, size, inner, count;
} lookup;

enum { CLIP, RAISE, WRAP, NOTHING };

/* A fraction is cut off, NaN is 0, what is too large saturates. */
void tncpu_indices_part(const tn_tensor *t, int64_t first, int64_t n, int64_t *to)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    const char *from = (const char *)t->data + first * (int64_t)c->bytes;
    double wide[TNCPU_INDICES_PART];

    if (c->kind != TNCPU_K_I64) {
        tncpu_numbers(t, first, 1, n, wide);
        tncpu_converts[TN_I64].store_f(wide, to, 1, n);
        return;
    }
    c->load(from, 1, to, n);
    for (int64_t i = 0; t->dtype == TN_U64 && i < n; i++)
        to[i] = to[i] < 0 ? INT64_MAX : to[i];
}

void tncpu_indices_load(const tn_tensor *t, int64_t *to)
{
    const int64_t count = tn_tensor_count(t);

    for (int64_t i = 0; i < count; i += TNCPU_INDICES_PART)
        tncpu_indices_part(t, i, tncpu_min(TNCPU_INDICES_PART, count - i), to + i);
}

int tncpu_index_order(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t tncpu_indices_distinct(int64_t *ids, int64_t n)
{
    int64_t kept = 0;

    if (n)
        qsort(ids, (size_t)n, sizeof *ids, tncpu_index_order);
    for (int64_t i = 0; i < n; i++)
        if (!kept || ids[i] != ids[kept - 1])
            ids[kept++] = ids[i];
    return kept;
}

/* All indices, brought into 0 … size-1; NOTHING leaves those outside as -1. */
static tn_status indices_read(const tn_tensor *t, int64_t size, int mode, int64_t *to, tn_err *err)
{
    const int64_t count = tn_tensor_count(t);

    tncpu_indices_load(t, to);
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = to[i];

        if (v >= 0 && v < size)
            continue;
        if (mode == RAISE)
            return tn_fail(err, TN_E_ARG, "an index lies outside of the axis, and mode is raise");
        if (mode == WRAP)
            to[i] = (v % size + size) % size;
        else
            to[i] = mode == NOTHING ? -1 : v < 0 ? 0 : size - 1;
    }
    return TN_OK;
}

/* ---- where rows lie ----------------------------------------------------------------------------------- */

typedef tn_status find_function(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                                int64_t *at, tn_err *err);

static lookup lookup_of(const tn_tensor *data, int32_t axis, const tn_tensor *indices)
{
    return (lookup){tncpu_dims(data, 0, axis), data->shape[axis], tncpu_dims(data, axis + 1, data->ndim),
                    tn_tensor_count(indices)};
}

static tn_status take_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                           int64_t *at, tn_err *err)
{
    const int64_t mode = tn_value_int(x->attrs[TN_take_mode]);

    *l = lookup_of(data, tncpu_axis(tn_value_int(x->attrs[TN_take_axis]), data->ndim), indices);
    return indices_read(indices, l->size,
                        mode == TN_take_mode_raise  ? RAISE
                        : mode == TN_take_mode_wrap ? WRAP
                                                    : CLIP,
                        at, err);
}

static tn_status embedding_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                                int64_t *at, tn_err *err)
{
    (void)x;
    *l = lookup_of(data, 0, indices);
    return indices_read(indices, l->size, CLIP, at, err);
}

/* A row is one element. */
static tn_status pick_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                           int64_t *at, tn_err *err)
{
    const int64_t axis = *(const int64_t *)tn_value_pointer(x->attrs[TN_pick_axis]);
    const lookup d = lookup_of(data, tncpu_axis(axis, data->ndim), indices);
    const int mode = tn_value_int(x->attrs[TN_pick_mode]) == TN_pick_mode_wrap ? WRAP : CLIP;
    tn_status st = indices_read(indices, d.size, mode, at, err);

    for (int64_t i = 0; !st && i < d.count; i++)
        at[i] = (i / d.inner * d.size + at[i]) * d.inner + i % d.inner;
    *l = (lookup){1, d.outer * d.size * d.inner, 1, d.count};
    return st;
}

/* One element of each row. */
static tn_status batch_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                            int64_t *at, tn_err *err)
{
    const int64_t columns = data->shape[1];
    tn_status st = indices_read(indices, columns, CLIP, at, err);

    (void)x;
    *l = (lookup){1, tn_tensor_count(data), 1, tn_tensor_count(indices)};
    for (int64_t i = 0; !st && i < l->count; i++)
        at[i] += i * columns;
    return st;
}

static tn_status one_hot_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices, lookup *l,
                              int64_t *at, tn_err *err)
{
    const int64_t depth = data->shape[data->ndim - 1];
    tn_status st = indices_read(indices, depth, NOTHING, at, err);

    (void)x;
    *l = (lookup){1, tn_tensor_count(data), 1, tn_tensor_count(indices)};
    for (int64_t i = 0; !st && i < l->count; i++)
        at[i] = at[i] < 0 ? -1 : i * depth + at[i];
    return st;
}

/* Columns of indices (axes, count) as positions among the rows of the data's first `axes` axes. */
static tn_status coordinates_find(const tn_exec *x, const tn_tensor *data, const tn_tensor *indices,
                                  lookup *l, int64_t *at, tn_err *err)
{
    const int64_t axes = indices->shape[0], all = tn_tensor_count(indices), count = all / axes;

    (void)x;
    *l = (lookup){1, tncpu_dims(data, 0, (int32_t)axes), tncpu_dims(data, (int32_t)axes, data->ndim), count};
    tncpu_indices_load(indices, at);
    for (int64_t a = 0; a < axes; a++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t given = at[a * count + i], size = data->shape[a];
            const int64_t v = given < 0 && given >= -size ? given + size : given;

            if (v < 0 || v >= size)
                return tn_fail(err, TN_E_ARG, "a coordinate lies outside of the data");
            at[i] = a == 0 ? v : at[i] * size + v;
        }
    return TN_OK;
}

/* ---- what is done with them -----------------------------------------------------------------------------
 */

/* `rows` (outer, count, inner), `data` (outer, size, inner). */
typedef void move_function(const lookup *l, const int64_t *at, const tn_tensor *data, const tn_tensor *rows,
                           int threads);

static void gather(const lookup *l, const int64_t *at, const tn_tensor *data, const tn_tensor *rows,
                   int threads)
{
    const int64_t row = l->inner * (int64_t)tn_dtype_bytes(data->dtype), tasks = l->outer * l->count;
    const char *from = data->data;
    char *to = rows->data;

    (void)threads;
    if (l->outer == 1) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
        for (int64_t t = 0; t < tasks; t++)
            tncpu_row_copy(to + t * row, from + at[t] * row, row);
        return;
    }
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < tasks; t++)
        tncpu_row_copy(to + t * row, from + (t / l->count * l->size + at[t % l->count]) * row, row);
}

/* Of several rows for one place the last one stays: one thread. */
static void put(const lookup *l, const int64_t *at, const tn_tensor *data, const tn_tensor *rows, int threads)
{
    const int64_t row = l->inner * (int64_t)tn_dtype_bytes(data->dtype);

    (void)threads;
    for (int64_t i = 0; i < l->count; i++)
        tncpu_row_copy((char *)data->data + at[i] * row, (const char *)rows->data + i * row, row);
}

static void add(const lookup *l, const int64_t *at, const tn_tensor *data, const tn_tensor *rows, int threads)
{
    const tncpu_convert *c = &tncpu_converts[data->dtype];
    const int64_t runs = tncpu_ceil_div(l->inner, COLUMNS), tasks = l->outer * runs;

    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < tasks; t++) {
        const int64_t o = t / runs, first = t % runs * COLUMNS, n = tncpu_min(COLUMNS, l->inner - first);

        for (int64_t k = 0; k < l->count; k++)
            c->add((const char *)rows->data + ((o * l->count + k) * l->inner + first) * c->bytes,
                   (char *)data->data + ((o * l->size + at[k]) * l->inner + first) * c->bytes, 1, n);
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------ */

/* Rows are gathered from input `data` to the output, or go from input 0 to the output, the rest of which is
 * 0. */
typedef struct form {
    const char *op;
    find_function *find;
    move_function *move;
    uint32_t data, indices; /* inputs */
    bool into;              /* rows go from input 1 into what input 0 has */
} form;

static const char *const take_types[] = {"a:" TNCPU_ALL, "indices:" TNCPU_ALL, "output:=a", NULL};
static const char *const embedding_types[] = {"data:" TNCPU_ALL, "weight:" TNCPU_ALL, "output:=weight", NULL};
static const char *const pick_types[] = {"data:" TNCPU_ALL, "index:" TNCPU_ALL, "output:=data", NULL};
static const char *const gather_types[] = {"data:" TNCPU_ALL, "indices:" TNCPU_ALL, "output:=data", NULL};
static const char *const rows_types[] = {"dy:" TNCPU_FLOATS, "data:" TNCPU_ALL, "output:row_sparse,=dy",
                                         NULL};
static const char *const back_types[] = {"dy:" TNCPU_FLOATS, "indices:" TNCPU_ALL, "*:=dy", NULL};
static const char *const back_embedding_types[] = {"dy:" TNCPU_FLOATS, "data:" TNCPU_ALL, "*:=dy", NULL};
static const char *const batch_types[] = {"a:" TNCPU_ALL, "indices:" TNCPU_WHOLE, "output:=a", NULL};
static const char *const back_batch_types[] = {"dy:" TNCPU_ALL, "indices:" TNCPU_WHOLE, "*:=dy", NULL};
static const char *const ravel_types[] = {"*:" TNCPU_NUMBERS ",u64", NULL};
static const char *const set_types[] = {"lhs:" TNCPU_ALL, "indices:" TNCPU_ALL, "*:=lhs", NULL};
static const char *const back_pick_types[] = {"dy:" TNCPU_ALL, "index:" TNCPU_ALL, "*:=dy", NULL};

/* X(operator, types, flags, find, move, data, indices, into) */
#define INDICES(X)                                                                                           \
    X("take", take_types, 0, take_find, gather, 0, 1, false)                                                 \
    X("Embedding", embedding_types, 0, embedding_find, gather, 1, 0, false)                                  \
    X("pick", pick_types, 0, pick_find, gather, 0, 1, false)                                                 \
    X("gather_nd", gather_types, 0, coordinates_find, gather, 0, 1, false)                                   \
    X("scatter_nd", gather_types, TN_KERNEL_EMPTY_OK, coordinates_find, put, 0, 1, false)                    \
    X("_backward_pick", back_pick_types, TN_KERNEL_EMPTY_OK, pick_find, put, 0, 2, false)                    \
    X("batch_take", batch_types, 0, batch_find, gather, 0, 1, false)                                         \
    X("_backward_batch_take", back_batch_types, TN_KERNEL_EMPTY_OK, batch_find, put, 0, 2, false)            \
    X("_scatter_set_nd", set_types, 0, coordinates_find, put, 0, 2, true)

#define FORM(op, types, flags, ...) {op, __VA_ARGS__},
static const form forms[] = {{"_backward_take", take_find, add, 0, 2, false},
                             {"_backward_Embedding", embedding_find, add, 0, 2, false},
                             {"_backward_gather_nd", coordinates_find, add, 0, 2, false},
                             {"one_hot", one_hot_find, NULL, 0, 0, false},
                             INDICES(FORM)};

/* Workspace holds the indices. */
static tn_status index_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op), **state;
    const double elements = (double)(tn_tensor_count(node->in[0]) + tn_tensor_count(node->out[0]));
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    *state = f;
    tncpu_plan_tasks(node, plan, 30 + elements,
                     f->move == gather || f->move == add ? tn_tensor_count(node->in[f->indices]) : 1);
    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[f->indices]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

static tn_status index_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const form *f = *(const form *const *)plan->state;
    const bool gathers = f->move == gather;
    const tn_tensor *data = gathers ? x->in[f->data] : x->out[0],
                    *rows = gathers ? x->out[0] : x->in[f->into];
    lookup l;
    tn_status st;

    if (f->into)
        memmove(data->data, x->in[0]->data, (size_t)tn_tensor_count(data) * tn_dtype_bytes(data->dtype));
    else if (!gathers)
        tncpu_fill(data, 0);
    if (!gathers && (!tn_tensor_count(data) || !tn_tensor_count(rows)))
        return TN_OK; /* the other dimensions may be of any size then */
    if (!(st = f->find(x, data, x->in[f->indices], &l, x->workspace, err)))
        f->move(&l, x->workspace, data, rows, tncpu_run_threads(plan, x));
    return st;
}

static tn_status one_hot_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double on = tn_value_float(x->attrs[TN_one_hot_on_value]);
    const int64_t *at = x->workspace;
    const int64_t bytes = (int64_t)tn_dtype_bytes(x->out[0]->dtype);
    char element[8];
    const tn_tensor one = {.data = element, .shape = &(int64_t){1}, .ndim = 1, .dtype = x->out[0]->dtype};
    lookup l;
    tn_status st = one_hot_find(x, x->out[0], x->in[0], &l, x->workspace, err);

    (void)plan;
    tncpu_numbers_store(&one, 0, 1, 1, &on);
    tncpu_fill(x->out[0], tn_value_float(x->attrs[TN_one_hot_off_value]));
    for (int64_t i = 0; !st && i < l.count; i++)
        if (at[i] >= 0)
            tncpu_row_copy((char *)x->out[0]->data + at[i] * bytes, element, bytes);
    return st;
}

/* The same sums as of _backward_Embedding, in the same order, for the rows that are named alone. */
static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t count = tn_tensor_count(node->in[1]);

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(node->in[0]) + 50 * (double)count, count);
    plan->workspace_bytes = 2 * (uint64_t)(count + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    plan->flags |= TN_PLAN_RESIZES;
    return TN_OK;
}

/* Of float16 and bfloat16: added in float32, rounded once. */
static tn_status add_short(const tn_exec *x, const lookup *l, const int64_t *at, const tn_tensor *y,
                           tn_err *err)
{
    const uint64_t all = (uint64_t)(l->size * l->inner);
    double part[COLUMNS];
    float *sums = NULL;
    void *room = NULL;
    tn_status st = x->ops->alloc(x->call, all * sizeof *sums, &room, err);

    if (st)
        return st;
    sums = room;
    memset(sums, 0, (size_t)all * sizeof *sums);
    for (int64_t k = 0; k < l->count; k++)
        for (int64_t first = 0; first < l->inner; first += COLUMNS) {
            const int64_t n = tncpu_min(COLUMNS, l->inner - first);

            tncpu_numbers(x->in[0], k * l->inner + first, 1, n, part);
            for (int64_t i = 0; i < n; i++)
                sums[at[k] * l->inner + first + i] += (float)part[i];
        }
    for (int64_t first = 0; first < (int64_t)all; first += COLUMNS) {
        const int64_t n = tncpu_min(COLUMNS, (int64_t)all - first);

        for (int64_t i = 0; i < n; i++)
            part[i] = sums[first + i];
        tncpu_numbers_store(y, first, 1, n, part);
    }
    return TN_OK;
}

static tn_status rows_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_tensor_count(x->in[1]), rows = x->out[0]->shape[0];
    int64_t *at = x->workspace, *ids = at + count, stored;
    const tn_tensor *y;
    lookup l = {1, 0, x->out[0]->shape[1], count};
    tn_status st;

    if (count && !rows)
        return tn_fail(err, TN_E_ARG, "rows are named of a weight without rows");
    if ((st = indices_read(x->in[1], rows, CLIP, at, err)))
        return st;
    if (count)
        memcpy(ids, at, (size_t)count * sizeof *ids);
    stored = tncpu_indices_distinct(ids, count);
    if ((st = x->ops->resize_sparse(x->call, 0, stored, &y, err)))
        return st;
    if (stored)
        memcpy(y->aux[0]->data, ids, (size_t)stored * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        at[i] = (const int64_t *)bsearch(&at[i], ids, (size_t)stored, sizeof *ids, tncpu_index_order) - ids;
    l.size = stored;
    if (stored * l.inner == 0)
        return TN_OK;
    if (y->dtype != TN_F32 && y->dtype != TN_F64)
        return add_short(x, &l, at, y, err);
    memset(y->data, 0, (size_t)(stored * l.inner) * tn_dtype_bytes(y->dtype));
    add(&l, at, y, x->in[0], tncpu_run_threads(plan, x));
    return TN_OK;
}

/* ---- ravel, unravel --------------------------------------------------------------------------- */

static tn_status ravel_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 30 + 5 * (double)tn_tensor_count(node->in[0]), 1);
    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[0]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

static tn_status ravel_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t axes = x->in[0]->shape[0], count = axes ? tn_tensor_count(x->in[0]) / axes : 0;
    int64_t *at = x->workspace;

    (void)plan, (void)err;
    tncpu_indices_load(x->in[0], at);
    for (int64_t a = 1; a < axes; a++) {
        const uint64_t size = (uint64_t)tncpu_tuple_item(x->attrs[TN_ravel_shape], a, 1);

        for (int64_t i = 0; i < count; i++)
            at[i] = (int64_t)((uint64_t)at[i] * size + (uint64_t)at[a * count + i]);
    }
    tncpu_converts[x->out[0]->dtype].store_i(at, x->out[0]->data, 1, count);
    return TN_OK;
}

/* What is left of `n` indices by `size`; the quotients take their places. 32-bit divisions are quicker. */
static void divide(int64_t *at, int64_t n, int64_t size, int64_t *left)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = at[i];

        at[i] = (uint64_t)(v | size) >> 32 ? v / size : (int64_t)((uint32_t)v / (uint32_t)size);
        left[i] = v - at[i] * size;
    }
}

static tn_status unravel_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tncpu_convert *c = &tncpu_converts[x->out[0]->dtype];
    const int64_t axes = x->out[0]->shape[0], count = tn_tensor_count(x->in[0]);
    int64_t *at = x->workspace, left[TNCPU_TILE];

    (void)plan, (void)err;
    tncpu_indices_load(x->in[0], at);
    for (int64_t a = axes; a-- > 0;) {
        const int64_t size = tncpu_max(1, tncpu_tuple_item(x->attrs[TN_ravel_shape], a, 1));

        for (int64_t i = 0, n; i < count; i += n) {
            n = tncpu_min(TNCPU_TILE, count - i);
            if (a)
                divide(at + i, n, size, left);
            c->store_i(a ? left : at + i, (char *)x->out[0]->data + (a * count + i) * c->bytes, 1, n);
        }
    }
    return TN_OK;
}

#define ADDS(id, op, types) TNCPU_SHORT_SHAPED(id, op, types, TN_KERNEL_EMPTY_OK, index_prepare, index_run)
/* clang-format off */
ADDS(backward_take, "_backward_take", back_types)
ADDS(backward_embedding, "_backward_Embedding", back_embedding_types)
ADDS(backward_gather_nd, "_backward_gather_nd", back_types)
/* clang-format on */
#define INDEX(op, types, flags, ...) TNCPU_ROW(op, types, flags, index_prepare, index_run),

const tn_kernel *const tncpu_family_index[] = {
    TNCPU_ROW("_ravel_multi_index", ravel_types, 0, ravel_prepare, ravel_run),
    TNCPU_ROW("_unravel_index", ravel_types, 0, ravel_prepare, unravel_run),
    TNCPU_ROW("one_hot", tncpu_all, 0, index_prepare, one_hot_run),
    TNCPU_ROW("_embedding_rows", rows_types, TN_KERNEL_EMPTY_OK, rows_prepare, rows_run),
    &backward_take,
    &backward_embedding,
    &backward_gather_nd,
    INDICES(INDEX) NULL,
};
