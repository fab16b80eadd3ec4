/*
 * Lookups by index. Indices are first read into 64-bit integers and brought into range, then rows are copied.
 * A gradient adds its rows in the order of the indices; threads take columns, so the order stays.
 */
#include "index.h"

#include "convert.h"
#include "move.h"
#include "short.h"

#include "tenon/plugin/op/index.h"

#define PART TNCPU_INDICES_PART

/* Data as (outer, size, inner), looked up `count` times along size. */
typedef struct lookup {
    int64_t outer, size, inner, count;
} lookup;

enum { CLIP, RAISE, WRAP, NOTHING };

/* A fraction is cut off, NaN is 0, what is too large saturates. */
static int64_t whole(double v)
{
    return !(v == v) ? 0 : v <= -9e18 ? INT64_MIN : v >= 9e18 ? INT64_MAX : (int64_t)v;
}

void tncpu_indices_part(const tn_tensor *t, int64_t first, int64_t n, int64_t *to)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    const char *from = (const char *)t->data + first * (int64_t)c->bytes;
    double wide[PART];
    float narrow[PART];
    int32_t small[PART];

    switch (c->kind) {
    case TNCPU_K_F64:
        c->load(from, 1, wide, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = whole(wide[i]);
        break;
    case TNCPU_K_F32:
        c->load(from, 1, narrow, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = whole((double)narrow[i]);
        break;
    case TNCPU_K_I32:
        c->load(from, 1, small, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = small[i];
        break;
    default:
        c->load(from, 1, to, n);
        for (int64_t i = 0; t->dtype == TN_U64 && i < n; i++)
            to[i] = to[i] < 0 ? INT64_MAX : to[i];
    }
}

void tncpu_indices_load(const tn_tensor *t, int64_t *to)
{
    const int64_t count = tn_tensor_count(t);

    for (int64_t first = 0; first < count; first += PART)
        tncpu_indices_part(t, first, tncpu_min(PART, count - first), to + first);
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

static int take_mode(const tn_value *attrs)
{
    const int64_t mode = tn_value_int(attrs[TN_take_mode]);

    return mode == TN_take_mode_raise ? RAISE : mode == TN_take_mode_wrap ? WRAP : CLIP;
}

static lookup lookup_of(const tn_tensor *data, int32_t axis, const tn_tensor *indices)
{
    return (lookup){tncpu_dims(data, 0, axis), data->shape[axis], tncpu_dims(data, axis + 1, data->ndim),
                    tn_tensor_count(indices)};
}

/* Workspace holds the indices. */
static void lookup_plan(const tn_node *node, tn_plan *plan, const tn_tensor *indices, double ns)
{
    tncpu_plan_tasks(node, plan, 30 + ns, tn_tensor_count(indices));
    plan->workspace_bytes = (uint64_t)(tn_tensor_count(indices) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
}

static void rows_copy(const lookup *l, const int64_t *at, int64_t size, const char *from, char *to,
                      int threads)
{
    const int64_t row = l->inner * size, tasks = l->outer * l->count;

    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < tasks; t++)
        memcpy(to + t * row, from + (t / l->count * l->size + at[t % l->count]) * row, (size_t)row);
}

#define BODY "../plain/index.inc"
#include "../common/floats.inc"

/* dx = rows of dy at their indices, zeros elsewhere. */
static void rows_add(const tn_plan *plan, const tn_exec *x, const lookup *l)
{
    const tn_tensor *dx = x->out[0];

    memset(dx->data, 0, (size_t)tn_tensor_count(dx) * tn_dtype_bytes(dx->dtype));
    if (!tn_tensor_count(x->in[0])) /* the other dimensions may be of any size then */
        return;
    if (dx->dtype == TN_F32)
        scatter_add_f32(l, x->workspace, x->in[0]->data, dx->data, tncpu_run_threads(plan, x));
    else
        scatter_add_f64(l, x->workspace, x->in[0]->data, dx->data, tncpu_run_threads(plan, x));
}

/* ---- take --------------------------------------------------------------------------------------------- */

static tn_status take_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    lookup_plan(node, plan, node->in[1], (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

static tn_status take_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *a = x->in[0];
    const lookup l = lookup_of(a, tncpu_axis(tn_value_int(x->attrs[TN_take_axis]), a->ndim), x->in[1]);
    tn_status st = indices_read(x->in[1], l.size, take_mode(x->attrs), x->workspace, err);

    if (!st)
        rows_copy(&l, x->workspace, (int64_t)tn_dtype_bytes(a->dtype), a->data, x->out[0]->data,
                  tncpu_run_threads(plan, x));
    return st;
}

/* in: dy, data, indices */
static tn_status backward_lookup_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    lookup_plan(node, plan, node->in[2],
                (double)(tn_tensor_count(node->in[0]) + tn_tensor_count(node->out[0])));
    return TN_OK;
}

static tn_status backward_take_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dx = x->out[0];
    const lookup l = lookup_of(dx, tncpu_axis(tn_value_int(x->attrs[TN_take_axis]), dx->ndim), x->in[2]);
    tn_status st = indices_read(x->in[2], l.size, take_mode(x->attrs), x->workspace, err);

    if (!st)
        rows_add(plan, x, &l);
    return st;
}

/* ---- Embedding ---------------------------------------------------------------------------------------- */

static tn_status embedding_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    lookup_plan(node, plan, node->in[0], (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

static tn_status embedding_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *weight = x->in[1];
    const lookup l = lookup_of(weight, 0, x->in[0]);
    tn_status st = indices_read(x->in[0], l.size, CLIP, x->workspace, err);

    if (!st)
        rows_copy(&l, x->workspace, (int64_t)tn_dtype_bytes(weight->dtype), weight->data, x->out[0]->data,
                  tncpu_run_threads(plan, x));
    return st;
}

static tn_status backward_embedding_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const lookup l = lookup_of(x->out[0], 0, x->in[2]);
    tn_status st = indices_read(x->in[2], l.size, CLIP, x->workspace, err);

    if (!st)
        rows_add(plan, x, &l);
    return st;
}

/* ---- one_hot ------------------------------------------------------------------------------------------ */

static tn_status one_hot_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    lookup_plan(node, plan, node->in[0], (double)tn_tensor_count(node->out[0]));
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

static tn_status one_hot_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const tncpu_convert *c = &tncpu_converts[y->dtype];
    const double on = tn_value_float(x->attrs[TN_one_hot_on_value]),
                 off = tn_value_float(x->attrs[TN_one_hot_off_value]);
    const int64_t count = tn_tensor_count(x->in[0]), depth = y->shape[y->ndim - 1], all = count * depth;
    const int64_t *at = x->workspace;
    double values[PART];
    tn_status st = indices_read(x->in[0], depth, NOTHING, x->workspace, err);

    (void)plan;
    for (int64_t i = 0; i < PART; i++)
        values[i] = off;
    for (int64_t i = 0; !st && i < all; i += PART)
        c->store_f(values, (char *)y->data + i * (int64_t)c->bytes, 1, tncpu_min(PART, all - i));
    for (int64_t i = 0; !st && i < count; i++)
        if (at[i] >= 0)
            c->store_f(&on, (char *)y->data + (i * depth + at[i]) * (int64_t)c->bytes, 1, 1);
    return st;
}

/* ---- pick --------------------------------------------------------------------------------------------- */

/* The data's element that index number `i` picks. */
static int64_t picked(const lookup *l, const int64_t *at, int64_t i)
{
    return (i / l->inner * l->size + at[i]) * l->inner + i % l->inner;
}

static tn_status pick_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const int64_t axis = *(const int64_t *)tn_value_pointer(x->attrs[TN_pick_axis]);
    const lookup l = lookup_of(data, tncpu_axis(axis, data->ndim), x->in[1]);
    const int64_t size = (int64_t)tn_dtype_bytes(data->dtype), *at = x->workspace;
    const int mode = tn_value_int(x->attrs[TN_pick_mode]) == TN_pick_mode_wrap ? WRAP : CLIP;
    tn_status st = indices_read(x->in[1], l.size, mode, x->workspace, err);

    (void)plan;
    for (int64_t i = 0; !st && i < l.count; i++)
        memcpy((char *)x->out[0]->data + i * size, (const char *)data->data + picked(&l, at, i) * size,
               (size_t)size);
    return st;
}

static tn_status backward_pick_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dx = x->out[0];
    const int64_t axis = *(const int64_t *)tn_value_pointer(x->attrs[TN_pick_axis]);
    const lookup l = lookup_of(dx, tncpu_axis(axis, dx->ndim), x->in[2]);
    const int64_t size = (int64_t)tn_dtype_bytes(dx->dtype), *at = x->workspace;
    const int mode = tn_value_int(x->attrs[TN_pick_mode]) == TN_pick_mode_wrap ? WRAP : CLIP;
    tn_status st = indices_read(x->in[2], l.size, mode, x->workspace, err);

    (void)plan;
    if (st)
        return st;
    memset(dx->data, 0, (size_t)(tn_tensor_count(dx) * size));
    for (int64_t i = 0; i < l.count; i++)
        memcpy((char *)dx->data + picked(&l, at, i) * size, (const char *)x->in[0]->data + i * size,
               (size_t)size);
    return TN_OK;
}

/* ---- gather_nd ---------------------------------------------------------------------------------------- */

/* Columns of indices (axes, count) as positions among the rows of the data's first `axes` axes. */
static tn_status positions_read(const tn_tensor *indices, const tn_tensor *data, lookup *l, int64_t *at,
                                tn_err *err)
{
    const int64_t axes = indices->shape[0], all = tn_tensor_count(indices), count = all / axes;

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

static tn_status gather_nd_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    lookup l;
    tn_status st = positions_read(x->in[1], x->in[0], &l, x->workspace, err);

    if (!st)
        rows_copy(&l, x->workspace, (int64_t)tn_dtype_bytes(x->in[0]->dtype), x->in[0]->data, x->out[0]->data,
                  tncpu_run_threads(plan, x));
    return st;
}

static tn_status backward_gather_nd_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    lookup l;
    tn_status st = positions_read(x->in[2], x->out[0], &l, x->workspace, err);

    if (!st)
        rows_add(plan, x, &l);
    return st;
}

/* ---- scatter_nd --------------------------------------------------------------------------------------- */

/* One thread: of several rows for one place the last one stays. */
static tn_status scatter_nd_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    lookup_plan(node, plan, node->in[1], (double)tn_tensor_count(node->out[0]));
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

static tn_status scatter_nd_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const int64_t bytes = (int64_t)tn_dtype_bytes(y->dtype), *at = x->workspace;
    lookup l;
    tn_status st;

    (void)plan;
    if (!tn_tensor_count(y)) /* the other dimensions may be of any size then */
        return TN_OK;
    if ((st = positions_read(x->in[1], y, &l, x->workspace, err)))
        return st;
    memset(y->data, 0, (size_t)(tn_tensor_count(y) * bytes));
    for (int64_t i = 0; i < l.count; i++)
        memcpy((char *)y->data + at[i] * l.inner * bytes, (const char *)x->in[0]->data + i * l.inner * bytes,
               (size_t)(l.inner * bytes));
    return TN_OK;
}

static const char *const take_types[] = {"a:" TNCPU_ALL, "indices:" TNCPU_ALL, "output:=a", NULL};
static const char *const embedding_types[] = {"data:" TNCPU_ALL, "weight:" TNCPU_ALL, "output:=weight", NULL};
static const char *const one_hot_types[] = {"*:" TNCPU_ALL, NULL};
static const char *const pick_types[] = {"data:" TNCPU_ALL, "index:" TNCPU_ALL, "output:=data", NULL};
static const char *const gather_types[] = {"data:" TNCPU_ALL, "indices:" TNCPU_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCPU_FLOATS, "indices:" TNCPU_ALL, "*:=dy", NULL};
static const char *const back_embedding_types[] = {"dy:" TNCPU_FLOATS, "data:" TNCPU_ALL, "*:=dy", NULL};
static const char *const back_pick_types[] = {"dy:" TNCPU_ALL, "index:" TNCPU_ALL, "*:=dy", NULL};

TNCPU_SHORT_KERNEL(backward_take, "_backward_take", back_types, TN_KERNEL_EMPTY_OK, backward_lookup_prepare,
                   backward_take_run)
TNCPU_SHORT_KERNEL(backward_embedding, "_backward_Embedding", back_embedding_types, TN_KERNEL_EMPTY_OK,
                   backward_lookup_prepare, backward_embedding_run)

TNCPU_SHORT_KERNEL(backward_gather_nd, "_backward_gather_nd", back_types, TN_KERNEL_EMPTY_OK,
                   backward_lookup_prepare, backward_gather_nd_run)

const tn_kernel *const tncpu_family_index[] = {
    TNCPU_ROW("take", take_types, 0, take_prepare, take_run),
    &backward_take,
    TNCPU_ROW("Embedding", embedding_types, 0, embedding_prepare, embedding_run),
    &backward_embedding,
    TNCPU_ROW("one_hot", one_hot_types, 0, one_hot_prepare, one_hot_run),
    TNCPU_ROW("pick", pick_types, 0, take_prepare, pick_run),
    TNCPU_ROW("_backward_pick", back_pick_types, TN_KERNEL_EMPTY_OK, backward_lookup_prepare,
              backward_pick_run),
    TNCPU_ROW("gather_nd", gather_types, 0, take_prepare, gather_nd_run),
    &backward_gather_nd,
    TNCPU_ROW("scatter_nd", gather_types, TN_KERNEL_EMPTY_OK, scatter_nd_prepare, scatter_nd_run),
    NULL,
};
