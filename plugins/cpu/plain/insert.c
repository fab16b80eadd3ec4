/*
 * NumPy's insert and delete. A list in the workspace says for each index of the output's axis what stands
 * there: a slice of the array, or one of the values.
 */
#include "../../common/insert.h"
#include "../../common/index.h"
#include "index.h"
#include "pointwise.h"
#include "rows.h"

static tn_status edit_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(tnb_edit), err);

    if (st)
        return st;
    tnb_edit_of(node, plan->state);
    tncpu_plan_work(node, plan, 50 + 2 * (double)tn_tensor_count(node->in[0]));
    return TN_OK;
}

/* Index number `k` of those that are meant, which may be negative; `*count`: how many there are. */
static int64_t index_of(const tnb_edit *p, const tn_exec *x, uint32_t obj, int64_t k, int64_t *count)
{
    int64_t start = 0, step = 1;

    if (!p->tensor) {
        *count = tnb_edit_range(p, x->attrs, &start, &step);
        return start + k * step;
    }
    *count = tn_tensor_count(x->in[obj]);
    if (k < *count)
        tncpu_indices_part(x->in[obj], k, 1, &start);
    return start;
}

/* ---- insert -------------------------------------------------------------------------------------- */

static tn_status insert_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = edit_prepare(plugin, node, plan, err);
    const tnb_edit *p = plan->state;

    if (!st)
        plan->workspace_bytes = (uint64_t)(node->out[0]->shape[p->axis] + p->size + 2) * sizeof(int64_t);
    return st;
}

typedef struct insert_call {
    const tnb_edit *p;
    const tn_tensor *x, *v, *y; /* v: NULL for a number */
    int64_t *from;              /* index of the array's axis, or -1 - that of the values' */
    int64_t step[TN_NDIM_MAX];  /* of the values, by axis of the output */
    uint64_t number;            /* an element */
} insert_call;

/* Fills in `from`. Indices that are equal keep their order; `starts` has room for all places. */
static tn_status sources_make(const insert_call *c, const tn_exec *x, uint32_t obj, int64_t outs,
                              int64_t *starts, tn_err *err)
{
    const int64_t size = c->p->size, added = outs - size;
    int64_t count = 0, next = 0;

    (void)index_of(c->p, x, obj, 0, &count);
    memset(starts, 0, (size_t)(size + 2) * sizeof *starts);
    for (int64_t a = 0; a < outs; a++)
        c->from[a] = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t index = index_of(c->p, x, obj, k, &count);

        if (index < -size || index > size)
            return tn_fail(err, TN_E_ARG, "an index lies outside of the axis");
        starts[(index < 0 ? index + size : index) + 1]++;
    }
    for (int64_t a = 0; a <= size; a++)
        starts[a + 1] += starts[a];
    for (int64_t k = 0; k < (count == 1 ? added : count); k++) {
        const int64_t index = index_of(c->p, x, obj, count == 1 ? 0 : k, &count);
        const int64_t place = index < 0 ? index + size : index;

        c->from[place + starts[place]++] = -1 - k;
    }
    for (int64_t a = 0; a < outs; a++)
        if (c->from[a] >= 0)
            c->from[a] = next++;
    return TN_OK;
}

/* The values of one index: elements of the slice of the output. */
static void values_copy(const insert_call *c, int64_t outer, int64_t k, char *to)
{
    const tnb_edit *r = c->p;
    const int32_t axis = c->p->axis, inner = c->p->ndim - axis - 1;
    const tncpu_convert *out = &tncpu_converts[c->y->dtype], *in = c->v ? &tncpu_converts[c->v->dtype] : NULL;
    const int64_t row = inner > 0 ? c->y->shape[c->p->ndim - 1] : 1,
                  step = inner > 0 ? c->step[c->p->ndim - 1] : 0;
    const int64_t base = c->v ? tnb_offset(axis, c->y->shape, c->step, outer) + k * c->step[axis] : 0;

    for (int64_t i = 0, n; i < r->inner; i += n) {
        n = tncpu_min(tncpu_min(row - i % row, r->inner - i), TNCPU_TILE);
        if (c->v) {
            const int64_t at = base + tnb_offset(inner, c->y->shape + axis + 1, c->step + axis + 1, i);

            tncpu_cast_tile(in, (const char *)c->v->data + at * in->bytes, step, out, to + i * out->bytes, 1,
                            n);
        } else {
            for (int64_t e = 0; e < n; e++)
                memcpy(to + (i + e) * out->bytes, &c->number, out->bytes);
        }
    }
}

static void insert_part(void *arg, int64_t begin, int64_t end)
{
    const insert_call *c = arg;
    const tnb_edit *r = c->p;
    const int64_t outs = c->y->shape[c->p->axis], bytes = r->inner * (int64_t)tn_dtype_bytes(c->y->dtype);

    for (int64_t at = begin, run; at < end; at += run) {
        const int64_t outer = at / outs, place = at % outs, from = c->from[place];
        const int64_t most = tncpu_min(end - at, outs - place);
        char *to = (char *)c->y->data + at * bytes;

        run = 1;
        if (from < 0) {
            values_copy(c, outer, -1 - from, to);
            continue;
        }
        while (run < most && c->from[place + run] == from + run) /* slices that stay neighbours */
            run++;
        memcpy(to, (const char *)c->x->data + (outer * r->size + from) * bytes, (size_t)(run * bytes));
    }
}

static tn_status insert_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double *number = (const double *)tn_value_pointer(x->attrs[TN_npi_insert_val]);
    insert_call c = {plan->state, x->in[0], number ? NULL : x->in[1], x->out[0], x->workspace, {0}, 0};
    const int64_t outs = c.y->shape[c.p->axis];
    tn_status st;

    if (number)
        tncpu_converts[c.y->dtype].store_f(number, &c.number, 1, 1);
    else
        tnb_edit_steps(c.p, c.v, c.step);
    if ((st = sources_make(&c, x, number ? 1 : 2, outs, c.from + outs, err)))
        return st;
    tncpu_for(plan, x, c.p->outer * outs, tncpu_ceil_div(TNCPU_TILE, c.p->inner + 1), insert_part, &c);
    return TN_OK;
}

/* ---- delete -------------------------------------------------------------------------------------- */

static tn_status delete_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = edit_prepare(plugin, node, plan, err);
    const tnb_edit *p = plan->state;

    if (st)
        return st;
    plan->workspace_bytes = (uint64_t)p->size + 1;
    if (p->tensor)
        plan->flags |= TN_PLAN_RESIZES;
    return TN_OK;
}

static tn_status delete_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_edit *p = plan->state;
    const int64_t size = p->size, bytes = p->inner * (int64_t)tn_dtype_bytes(x->in[0]->dtype);
    char *gone = x->workspace, *to;
    const tn_tensor *y = p->tensor ? NULL : x->out[0];
    int64_t count = 0, left = size, shape[TN_NDIM_MAX];
    tn_status st;

    memset(gone, 0, (size_t)size);
    (void)index_of(p, x, 1, 0, &count);
    for (int64_t k = 0; k < count; k++) {
        int64_t index = index_of(p, x, 1, k, &count);

        index += index < 0 && !p->tensor ? size : 0; /* MXNet's arrays do not count from the end */
        if (index < 0 || index >= size)
            continue;
        left -= !gone[index];
        gone[index] = 1;
    }
    for (int32_t d = 0; d < p->ndim; d++)
        shape[d] = d == p->axis ? left : x->in[0]->shape[d];
    if (!y && (st = x->ops->resize(x->call, 0, p->ndim, shape, &y, err)))
        return st;
    to = y->data;
    for (int64_t at = 0; at < p->outer * size && bytes; at++)
        if (!gone[at % size]) {
            memcpy(to, (const char *)x->in[0]->data + at * bytes, (size_t)bytes);
            to += bytes;
        }
    return TN_OK;
}

static const char *const insert_types[] = {"arr:" TNCPU_ALL, "values:" TNCPU_ALL, "out:=arr", NULL};
static const char *const tensor_types[] = {"arr:" TNCPU_ALL, "values:" TNCPU_ALL, "obj:i64", "out:=arr",
                                           NULL};
static const char *const delete_types[] = {"arr:" TNCPU_ALL, "obj:" TNCPU_ALL, "out:=arr", NULL};

const tn_kernel *const tncpu_family_insert[] = {
    TNCPU_ROW("_npi_insert_scalar", insert_types, 0, insert_prepare, insert_run),
    TNCPU_ROW("_npi_insert_slice", insert_types, 0, insert_prepare, insert_run),
    TNCPU_ROW("_npi_insert_tensor", tensor_types, 0, insert_prepare, insert_run),
    TNCPU_ROW("_npi_delete", delete_types, 0, delete_prepare, delete_run),
    NULL,
};
