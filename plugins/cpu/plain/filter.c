/*
 * Elements chosen by value. The chosen ones are counted first, then the output gets its shape, then they
 * are copied.
 */
#include "tenon/plugin/op/filter.h"
#include "../../common/index.h"
#include "keys.h"
#include "rows.h"

TNCPU_PREPARE(serial_prepare, tncpu_plan_tasks(node, plan, 50 + 3 * (double)tn_tensor_count(node->in[0]), 1))

static tn_status resizing_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->flags |= TN_PLAN_RESIZES;
    return serial_prepare(plugin, node, plan, err);
}

/* Puts the numbers of elements that are not 0 at `to`, if it is not NULL; returns how many there are. */
static int64_t chosen(const tn_tensor *t, int64_t *to)
{
    const int64_t count = tn_tensor_count(t);
    double tile[TNCPU_TILE];
    int64_t found = 0;

    for (int64_t at = 0, n; at < count; at += n) {
        n = tncpu_min(TNCPU_TILE, count - at);
        tncpu_numbers(t, at, 1, n, tile);
        for (int64_t i = 0; i < n; i++) {
            if (to && tile[i] != 0)
                to[found] = at + i;
            found += tile[i] != 0;
        }
    }
    return found;
}

/* ---- boolean_mask ------------------------------------------------------------------------------- */

static tn_status mask_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0;

    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[back ? 2 : 1]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return (back ? serial_prepare : resizing_prepare)(plugin, node, plan, err);
}

/* Row `at[k]` of `whole` along the axis is row `k` of `part`. */
static void rows_copy(const tncpu_rows *r, const int64_t *at, int64_t count, int64_t bytes, char *whole,
                      char *part, bool back)
{
    const int64_t row = r->inner * bytes;

    for (int64_t o = 0; o < r->outer && count && row; o++)
        for (int64_t k = 0; k < count; k++) {
            char *from = whole + (o * r->size + at[k]) * row, *to = part + (o * count + k) * row;

            memcpy(back ? from : to, back ? to : from, (size_t)row);
        }
}

static tncpu_rows mask_rows(const tn_exec *x, const tn_tensor *data)
{
    const int32_t axis = tncpu_axis(tn_value_int(x->attrs[TN_boolean_mask_axis]), data->ndim);

    return tncpu_rows_of(data, axis, axis + 1);
}

static tn_status mask_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *y = NULL;
    const tncpu_rows rows = mask_rows(x, data);
    int64_t *at = x->workspace, shape[TN_NDIM_MAX];
    const int64_t count = chosen(x->in[1], at);
    tn_status st;

    (void)plan;
    memcpy(shape, data->shape, (size_t)data->ndim * sizeof *shape);
    shape[tncpu_axis(tn_value_int(x->attrs[TN_boolean_mask_axis]), data->ndim)] = count;
    if ((st = x->ops->resize(x->call, 0, data->ndim, shape, &y, err)))
        return st;
    rows_copy(&rows, at, count, (int64_t)tn_dtype_bytes(data->dtype), data->data, y->data, false);
    return TN_OK;
}

/* in: dy, data, index */
static tn_status backward_mask_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tncpu_rows rows = mask_rows(x, x->out[0]);
    int64_t *at = x->workspace;
    const int64_t count = chosen(x->in[2], at);

    (void)plan;
    tncpu_fill(x->out[0], 0);
    if (tn_tensor_count(x->in[0]) != rows.outer * count * rows.inner)
        return tn_fail(err, TN_E_SHAPE, "dy has not as many elements as the index chooses");
    rows_copy(&rows, at, count, (int64_t)tn_dtype_bytes(x->out[0]->dtype), x->out[0]->data, x->in[0]->data,
              true);
    return TN_OK;
}

/* ---- nonzero ------------------------------------------------------------------------------------ */

static tn_status nonzero_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[0]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return resizing_prepare(plugin, node, plan, err);
}

static tn_status nonzero_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *y = NULL;
    int64_t *at = x->workspace, *to;
    const int64_t shape[] = {chosen(in, at), in->ndim};
    tn_status st = x->ops->resize(x->call, 0, 2, shape, &y, err);

    (void)plan;
    if (st)
        return st;
    to = y->data;
    for (int64_t k = 0; k < shape[0]; k++)
        for (int32_t d = in->ndim; d-- > 0; at[k] /= in->shape[d])
            to[k * in->ndim + d] = at[k] % in->shape[d];
    return TN_OK;
}

/* ---- unique ------------------------------------------------------------------------------------- */

typedef struct slices {
    tncpu_rows rows; /* slices along size */
    int64_t length;  /* elements of a slice */
    uint64_t *keys;  /* slice after slice */
    int64_t *at, *room;
    uint64_t *sorted, *other; /* of slices of one element: their keys, in the order of `at` */
} slices;

static tncpu_rows unique_rows(const tn_value *attrs, const tn_tensor *data)
{
    const int64_t *axis = (const int64_t *)tn_value_pointer(attrs[TN_npi_unique_axis]);
    const int32_t a = axis ? tncpu_axis(*axis, data->ndim) : 0;

    return tncpu_rows_of(data, a, axis ? a + 1 : data->ndim);
}

static tn_status unique_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tncpu_rows rows = unique_rows(node->attrs, node->in[0]);

    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[0]) + 4 * rows.size + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return resizing_prepare(plugin, node, plan, err);
}

static void keys_load(const tn_tensor *t, slices *s)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    tncpu_tile tile;

    for (int64_t row = 0; row < s->length; row++) /* an element of each slice */
        for (int64_t i = 0, n; i < s->rows.size; i += n) {
            const int64_t first = tncpu_row_at(&s->rows, row) + i * s->rows.inner;

            n = tncpu_min(TNCPU_TILE, s->rows.size - i);
            c->load((const char *)t->data + first * c->bytes, s->rows.inner, &tile, n);
            for (int64_t k = 0; k < n; k++)
                s->keys[(i + k) * s->length + row] = tncpu_key(t, &tile, k);
        }
}

static int slices_compare(const slices *s, int64_t a, int64_t b)
{
    const uint64_t *p = s->keys + a * s->length, *q = s->keys + b * s->length;

    for (int64_t k = 0; k < s->length; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return 0;
}

#define DIGIT 256

/* Slices of one element, by the digit at `shift` of their keys. */
static void digit_sort(slices *s, int shift)
{
    const int64_t n = s->rows.size;
    int64_t place[DIGIT] = {0}, next = 0, *at = s->at;
    uint64_t *keys = s->sorted;

    for (int64_t i = 0; i < n; i++)
        place[keys[i] >> shift & (DIGIT - 1)]++;
    for (int d = 0; d < DIGIT; d++) {
        const int64_t count = place[d];

        place[d] = next;
        next += count;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = place[keys[i] >> shift & (DIGIT - 1)]++;

        s->other[to] = keys[i];
        s->room[to] = at[i];
    }
    s->at = s->room;
    s->room = at;
    s->sorted = s->other;
    s->other = keys;
}

/* From the last digit to the first; equal keys keep their order. */
static void digits_sort(slices *s)
{
    uint64_t differ = 0;

    for (int64_t i = 0; i < s->rows.size; i++) {
        s->sorted[i] = s->keys[i];
        differ |= s->keys[i] ^ s->keys[0];
    }
    for (int shift = 0; shift < 64; shift += 8)
        if (differ >> shift & (DIGIT - 1))
            digit_sort(s, shift);
}

/* By merging; equal slices keep their order. The result is at s->at. */
static void slices_sort(slices *s)
{
    const int64_t n = s->rows.size;

    for (int64_t i = 0; i < n; i++)
        s->at[i] = i;
    if (s->length == 1) {
        digits_sort(s);
        return;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        int64_t *other = s->at;

        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            const int64_t middle = tncpu_min(begin + width, n), end = tncpu_min(begin + 2 * width, n);
            int64_t a = begin, b = middle;

            for (int64_t to = begin; to < end; to++)
                s->room[to] = a < middle && (b == end || slices_compare(s, s->at[a], s->at[b]) <= 0)
                                  ? s->at[a++]
                                  : s->at[b++];
        }
        s->at = s->room;
        s->room = other;
    }
}

/* Whether the k-th of the sorted slices differs from the one in front. */
static bool slice_begins(const slices *s, int64_t k)
{
    if (s->length == 1)
        return k == 0 || s->sorted[k - 1] != s->sorted[k];
    return k == 0 || slices_compare(s, s->at[k - 1], s->at[k]);
}

static tn_status vector_make(const tn_exec *x, uint32_t output, int64_t count, int64_t **to, tn_err *err)
{
    const tn_tensor *t = NULL;
    tn_status st = x->ops->resize(x->call, output, 1, &count, &t, err);

    *to = st ? NULL : t->data;
    return st;
}

/* Groups of equal slices: the first of each comes to the front of s->room. */
static tn_status groups_write(const tn_exec *x, slices *s, int64_t groups, tn_err *err)
{
    const bool index = tn_value_int(x->attrs[TN_npi_unique_return_index]) != 0,
               back = tn_value_int(x->attrs[TN_npi_unique_return_inverse]) != 0,
               count = tn_value_int(x->attrs[TN_npi_unique_return_counts]) != 0;
    int64_t *indices = NULL, *counts = NULL, *inverse = back ? x->out[1u + index]->data : NULL, group = -1;
    tn_status st = TN_OK;

    if ((index && (st = vector_make(x, 1, groups, &indices, err))) ||
        (count && (st = vector_make(x, 1u + index + back, groups, &counts, err))))
        return st;
    for (int64_t k = 0; k < s->rows.size; k++) {
        if (slice_begins(s, k)) {
            s->room[++group] = s->at[k];
            if (indices)
                indices[group] = s->at[k];
            if (counts)
                counts[group] = 0;
        }
        if (counts)
            counts[group]++;
        if (inverse)
            inverse[s->at[k]] = group;
    }
    return TN_OK;
}

static tn_status unique_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *axis = (const int64_t *)tn_value_pointer(x->attrs[TN_npi_unique_axis]);
    const tn_tensor *data = x->in[0], *y = NULL;
    slices s = {.rows = unique_rows(x->attrs, data), .keys = x->workspace};
    int64_t shape[TN_NDIM_MAX], groups = 0;
    tn_status st;

    (void)plan;
    s.length = s.rows.outer * s.rows.inner;
    s.at = (int64_t *)x->workspace + tn_tensor_count(data);
    s.room = s.at + s.rows.size;
    s.sorted = (uint64_t *)s.room + s.rows.size;
    s.other = s.sorted + s.rows.size;
    if (tn_tensor_count(data))
        keys_load(data, &s);
    slices_sort(&s);
    for (int64_t k = 0; k < s.rows.size; k++)
        groups += slice_begins(&s, k);
    memcpy(shape, data->shape, (size_t)data->ndim * sizeof *shape);
    shape[axis ? tncpu_axis(*axis, data->ndim) : 0] = groups;
    if ((st = x->ops->resize(x->call, 0, axis ? data->ndim : 1, shape, &y, err)) ||
        (st = groups_write(x, &s, groups, err)))
        return st;
    rows_copy(&s.rows, s.room, groups, (int64_t)tn_dtype_bytes(data->dtype), data->data, y->data, false);
    return TN_OK;
}

/* ---- writing where a mask is not 0 --------------------------------------------------------------- */

static tn_status assign_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->inplace[0] = 0;
    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[1]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return serial_prepare(plugin, node, plan, err);
}

/* The value's steps along (before the mask's axes …, chosen, behind them …); a dimension of size 1 does
 * not move. */
static void value_steps(const tn_tensor *v, int32_t rest, int64_t *step)
{
    int64_t n = 1;

    for (int32_t d = rest; d-- > 0;) {
        const int32_t at = d - (rest - v->ndim);

        step[d] = at < 0 || v->shape[at] == 1 ? 0 : n;
        n *= at < 0 ? 1 : v->shape[at];
    }
}

static void fill(char *to, const void *element, int64_t bytes, int64_t n)
{
    if (n)
        tncpu_row_copy(to, element, bytes);
    for (int64_t done = 1; done < n; done *= 2)
        memcpy(to + done * bytes, to, (size_t)(tncpu_min(done, n - done) * bytes));
}

/* A row of `inner` elements, cut into lines that are copied whole, or are one element again and again. */
typedef struct lines {
    int32_t ndim; /* of the row's dimensions, those that number lines */
    int64_t count, length;
    bool same;
} lines;

/* shape and step: of the row's dimensions. */
static lines lines_of(int32_t ndim, const int64_t *shape, const int64_t *step)
{
    lines l = {.ndim = ndim, .count = 1, .length = 1};

    while (l.ndim > 0 && shape[l.ndim - 1] == 1)
        l.ndim--;
    l.same = l.ndim > 0 && !step[l.ndim - 1];
    while (l.ndim > 0 && (shape[l.ndim - 1] == 1 || step[l.ndim - 1] == (l.same ? 0 : l.length)))
        l.length *= shape[--l.ndim];
    for (int32_t d = 0; d < l.ndim; d++)
        l.count *= shape[d];
    return l;
}

static tn_status assign_tensor_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *mask = x->in[1], *v = x->in[2];
    const int32_t axis = (int32_t)tn_value_int(x->attrs[TN_mask_assign_tensor_start_axis]),
                  last = axis + mask->ndim;
    const int32_t rest = data->ndim - mask->ndim + 1, of_value = axis - (rest - v->ndim);
    const int64_t bytes = (int64_t)tn_dtype_bytes(data->dtype), outer = tncpu_dims(data, 0, axis),
                  inner = tncpu_dims(data, last, data->ndim), masked = tn_tensor_count(mask);
    int64_t *at = x->workspace, step[TN_NDIM_MAX + 1];
    const int64_t count = chosen(mask, at);
    lines l;

    (void)plan;
    if (of_value >= 0 && v->shape[of_value] != 1 && v->shape[of_value] != count)
        return tn_fail(err, TN_E_ARG, "the value has another number of elements than the mask chooses");
    tncpu_copy(x->in[0], x->out[0]);
    value_steps(v, rest, step);
    l = lines_of(data->ndim - last, data->shape + last, step + axis + 1);
    for (int64_t o = 0; o < outer && inner; o++) {
        const char *from = (const char *)v->data + tnb_offset(axis, data->shape, step, o) * bytes;

        for (int64_t k = 0; k < count; k++, from += step[axis] * bytes) {
            char *to = (char *)x->out[0]->data + (o * masked + at[k]) * inner * bytes;

            for (int64_t i = 0; i < l.count; i++, to += l.length * bytes) {
                const char *line = from + tnb_offset(l.ndim, data->shape + last, step + axis + 1, i) * bytes;

                if (l.same)
                    fill(to, line, bytes, l.length);
                else
                    tncpu_row_copy(to, line, l.length * bytes);
            }
        }
    }
    return TN_OK;
}

static tn_status assign_scalar_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0], *mask = x->in[1];
    const int32_t axis = (int32_t)tn_value_int(x->attrs[TN_mask_assign_scalar_start_axis]);
    const int64_t bytes = (int64_t)tn_dtype_bytes(y->dtype), outer = tncpu_dims(y, 0, axis),
                  inner = tncpu_dims(y, axis + mask->ndim, y->ndim), masked = tn_tensor_count(mask);
    const double value = tn_value_float(x->attrs[TN_mask_assign_scalar_value]);
    int64_t *at = x->workspace;
    const int64_t count = chosen(mask, at);
    uint64_t element = 0;

    (void)plan, (void)err;
    tncpu_copy(x->in[0], x->out[0]);
    tncpu_converts[y->dtype].store_f(&value, &element, 1, 1);
    for (int64_t o = 0; o < outer && inner; o++)
        for (int64_t k = 0; k < count; k++)
            fill((char *)y->data + (o * masked + at[k]) * inner * bytes, &element, bytes, inner);
    return TN_OK;
}

static const char *const mask_types[] = {"data:" TNCPU_ALL, "index:" TNCPU_ALL, "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "index:" TNCPU_ALL, "*:=dy", NULL};
static const char *const assign_types[] = {"data:" TNCPU_ALL, "mask:" TNCPU_ALL, "*:=data", NULL};

const tn_kernel *const tncpu_family_filter[] = {
    TNCPU_ROW("_contrib_boolean_mask", mask_types, TN_KERNEL_EMPTY_OK, mask_prepare, mask_run),
    TNCPU_ROW("_backward__contrib_boolean_mask", back_types, TN_KERNEL_EMPTY_OK, mask_prepare,
              backward_mask_run),
    TNCPU_ROW("_npx_nonzero", tncpu_all, TN_KERNEL_EMPTY_OK, nonzero_prepare, nonzero_run),
    TNCPU_ROW("_npi_unique", tncpu_all, TN_KERNEL_EMPTY_OK, unique_prepare, unique_run),
    TNCPU_ROW("_npi_boolean_mask_assign_scalar", assign_types, 0, assign_prepare, assign_scalar_run),
    TNCPU_ROW("_npi_boolean_mask_assign_tensor", assign_types, 0, assign_prepare, assign_tensor_run),
    NULL,
};
