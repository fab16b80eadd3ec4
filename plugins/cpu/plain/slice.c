/* Windows with steps, and their gradients: dy put into zeros. All are one strided copy. */
#include "convert.h"
#include "move.h"

#include <string.h>

#include "tenon/plugin/op/image.h"
#include "tenon/plugin/op/resize.h"
#include "tenon/plugin/op/slice.h"
#include "tenon/plugin/util.h"

/* The chosen indices of each axis of the whole: those that inference counted. */
typedef struct window {
    int64_t start[TN_NDIM_MAX], step[TN_NDIM_MAX], count[TN_NDIM_MAX];
} window;

static void window_all(const tn_tensor *part, window *w)
{
    for (int32_t k = 0; k < part->ndim; k++) {
        w->start[k] = 0;
        w->step[k] = 1;
        w->count[k] = part->shape[k];
    }
}

/* An extent of the part that differs from the count of indices would lead beyond the whole. */
static tn_status window_check(const tn_tensor *part, const window *w, tn_err *err)
{
    for (int32_t k = 0; k < part->ndim; k++)
        if (w->count[k] != part->shape[k])
            return tn_fail(err, TN_E_SHAPE, "begin, end and step do not give the extent of the window");
    return TN_OK;
}

/* How many indices of axis k are chosen; below 0: they do not lie in it. */
static int64_t window_axis(const tn_value *attrs, const tn_tensor *whole, int32_t k, window *w)
{
    const int64_t *begin = tn_attrs_tuple_item(attrs, TN_slice_begin, k),
                  *end = tn_attrs_tuple_item(attrs, TN_slice_end, k),
                  *step = tn_attrs_tuple_item(attrs, TN_slice_step, k);

    return tn_range_of(whole->shape[k], begin, end, step ? *step : 1, &w->start[k], &w->step[k]);
}

static tn_status slice_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part, window *w,
                              tn_err *err)
{
    window_all(part, w);
    for (int32_t k = 0; k < tn_attrs_tuple_count(attrs, TN_slice_begin); k++)
        w->count[k] = window_axis(attrs, whole, k, w);
    return window_check(part, w, err);
}

static tn_status slice_axis_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part,
                                   window *w, tn_err *err)
{
    const int64_t begin = tn_attrs_int(attrs, TN_slice_axis_begin),
                  *end = (const int64_t *)tn_value_pointer(attrs[TN_slice_axis_end]);
    const int32_t axis = tncpu_axis(tn_attrs_int(attrs, TN_slice_axis_axis), whole->ndim);

    window_all(part, w);
    w->count[axis] = tn_range_of(whole->shape[axis], &begin, end, 1, &w->start[axis], &w->step[axis]);
    return window_check(part, w, err);
}

static tn_status slice_like_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part,
                                   window *w, tn_err *err)
{
    (void)attrs, (void)whole, (void)err;
    window_all(part, w);
    return TN_OK;
}

static tn_status window_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    return tncpu_move_plan(node, plan, tn_tensor_count(node->out[0]));
}

typedef tn_status window_function(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part,
                                  window *w, tn_err *err);

/* part = the window of whole, or (`back`) the other way round. `single`: the part is one element, again
 * and again. */
static void window_move(const tn_plan *plan, const tn_exec *x, const window *w, const tn_tensor *whole,
                        const tn_tensor *part, void *single, bool back)
{
    int64_t whole_step[TN_NDIM_MAX], part_step[TN_NDIM_MAX], start = 0, count = 1;
    tncpu_move m;
    char *from;

    for (int32_t k = 0; k < whole->ndim; k++)
        count *= w->count[k];
    if (count == 0) /* the other dimensions may be of any size then */
        return;
    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(whole->dtype);
    tncpu_move_steps(whole->shape, whole->ndim, whole_step);
    tncpu_move_steps(w->count, whole->ndim, part_step);
    for (int32_t k = 0; k < whole->ndim; k++) {
        const int64_t step = w->step[k] * whole_step[k], other = single ? 0 : part_step[k];

        start += w->start[k] * whole_step[k];
        tncpu_move_add(&m, w->count[k], back ? other : step, back ? step : other);
    }
    from = (char *)whole->data + start * m.size;
    tncpu_move_run(&m,
                   !back    ? from
                   : single ? single
                            : part->data,
                   back ? from : part->data, tncpu_run_threads(plan, x));
}

/* y = the window of x, or (`back`) the window of x = y and the rest of x = 0. */
static tn_status window_run(const tn_plan *plan, const tn_exec *x, window_function *find, bool back,
                            tn_err *err)
{
    const tn_tensor *whole = back ? x->out[0] : x->in[0], *part = back ? x->in[0] : x->out[0];
    window w;
    tn_status st = find(x->attrs, whole, part, &w, err);

    if (st)
        return st;
    if (back)
        tncpu_fill(whole, 0);
    window_move(plan, x, &w, whole, part, NULL, back);
    return TN_OK;
}

/* ---- windows that are written
 * --------------------------------------------------------------------------- */

static tn_status assign_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->inplace[0] = 0;
    return window_prepare(plugin, node, plan, err);
}

static void whole_copy(const tn_exec *x)
{
    if (x->out[0]->data != x->in[0]->data)
        memcpy(x->out[0]->data, x->in[0]->data,
               (size_t)tn_tensor_count(x->in[0]) * tn_dtype_bytes(x->in[0]->dtype));
}

static tn_status slice_assign_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    window w;
    tn_status st = slice_window(x->attrs, x->out[0], x->in[1], &w, err);

    if (st)
        return st;
    whole_copy(x);
    window_move(plan, x, &w, x->out[0], x->in[1], NULL, true);
    return TN_OK;
}

static tn_status slice_assign_scalar_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double value = tn_value_float(x->attrs[TN_slice_assign_scalar_scalar]);
    const tn_value *attrs = x->attrs + TN_slice_assign_scalar_begin;
    const tn_tensor *y = x->out[0];
    uint64_t element = 0;
    window w;

    window_all(y, &w);
    for (int32_t k = 0; k < tn_attrs_tuple_count(attrs, TN_slice_begin); k++) {
        if (k >= y->ndim || (w.count[k] = window_axis(attrs, y, k, &w)) < 0)
            return tn_fail(err, TN_E_SHAPE, "begin, end and step do not lie in the data");
    }
    whole_copy(x);
    tncpu_converts[y->dtype].store_f(&value, &element, 1, 1);
    window_move(plan, x, &w, y, NULL, &element, true);
    return TN_OK;
}

/* Crop, of the last two of four dimensions. */
static tn_status crop_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part, window *w,
                             tn_err *err)
{
    const bool center = tn_value_int(attrs[TN_Crop_center_crop]) != 0;

    (void)err;
    window_all(part, w);
    for (int32_t k = 0; k < 2; k++)
        w->start[2 + k] = center ? (whole->shape[2 + k] - part->shape[2 + k]) / 2
                                 : tncpu_tuple_item(attrs[TN_Crop_offset], k, 0);
    return TN_OK;
}

/* _image_crop, of the two dimensions in front of the last one. */
static tn_status image_crop_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part,
                                   window *w, tn_err *err)
{
    (void)whole, (void)err;
    window_all(part, w);
    w->start[part->ndim - 3] = tn_attrs_int(attrs, TN_image_crop_y);
    w->start[part->ndim - 2] = tn_attrs_int(attrs, TN_image_crop_x);
    return TN_OK;
}

#define WINDOW(name)                                                                                         \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        return window_run(plan, x, name##_window, false, err);                                               \
    }                                                                                                        \
    static tn_status backward_##name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)               \
    {                                                                                                        \
        return window_run(plan, x, name##_window, true, err);                                                \
    }
WINDOW(slice)
WINDOW(slice_axis)
WINDOW(slice_like)
WINDOW(crop)
WINDOW(image_crop)

/* The state is the number of gradients: num_args need not be given. */
static tn_status crop_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncpu_state(plugin, plan, sizeof(uint32_t), err);

    if (st)
        return st;
    *(uint32_t *)plan->state = node->out_count;
    return window_prepare(plugin, node, plan, err);
}

/* The input that only says the size gets zeros. */
static tn_status crop_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (*(const uint32_t *)plan->state > 1 && x->modes[1])
        tncpu_fill(x->out[1], 0);
    return x->modes[0] ? backward_crop_run(plan, x, err) : TN_OK;
}

static const char *const slice_types[] = {"data:" TNCPU_ALL, "output:=data", NULL};
static const char *const assign_types[] = {"lhs:" TNCPU_ALL, "*:=lhs", NULL};
static const char *const like_types[] = {"data:" TNCPU_ALL, "output:=data", "shape_like:" TNCPU_ALL, NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "data:=dy", "dx:=dy", NULL};

static const char *const crop_types[] = {"*:" TNCPU_ALL, NULL};

#define FORWARD(name, types) TNCPU_ROW(#name, types, 0, window_prepare, name##_run)
#define BACKWARD(name)                                                                                       \
    TNCPU_ROW("_backward_" #name, back_types, TN_KERNEL_EMPTY_OK, window_prepare, backward_##name##_run)

const tn_kernel *const tncpu_family_slice[] = {
    FORWARD(slice, slice_types),
    FORWARD(slice_axis, slice_types),
    FORWARD(slice_like, like_types),
    TNCPU_ROW("_slice_assign", assign_types, 0, assign_prepare, slice_assign_run),
    TNCPU_ROW("_slice_assign_scalar", slice_types, 0, assign_prepare, slice_assign_scalar_run),
    BACKWARD(slice),
    BACKWARD(slice_axis),
    BACKWARD(slice_like),
    TNCPU_ROW("_image_crop", slice_types, 0, window_prepare, image_crop_run),
    TNCPU_ROW("_backward__image_crop", crop_types, TN_KERNEL_EMPTY_OK, window_prepare,
              backward_image_crop_run),
    TNCPU_ROW("Crop", crop_types, 0, window_prepare, crop_run),
    TNCPU_ROW("_backward_Crop", crop_types, TN_KERNEL_EMPTY_OK, crop_back_prepare, crop_back_run),
    NULL,
};
