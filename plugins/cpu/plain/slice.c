/* Windows with steps, and their gradients: dy put into zeros. All are one strided copy. */
#include "convert.h"
#include "move.h"

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

static tn_status slice_window(const tn_value *attrs, const tn_tensor *whole, const tn_tensor *part, window *w,
                              tn_err *err)
{
    window_all(part, w);
    for (int32_t k = 0; k < tn_attrs_tuple_count(attrs, TN_slice_begin); k++) {
        const int64_t *begin = tn_attrs_tuple_item(attrs, TN_slice_begin, k),
                      *end = tn_attrs_tuple_item(attrs, TN_slice_end, k),
                      *step = tn_attrs_tuple_item(attrs, TN_slice_step, k);

        w->count[k] = tn_range_of(whole->shape[k], begin, end, step ? *step : 1, &w->start[k], &w->step[k]);
    }
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

/* y = the window of x, or (`back`) the window of x = y and the rest of x = 0. */
static tn_status window_run(const tn_plan *plan, const tn_exec *x, window_function *find, bool back,
                            tn_err *err)
{
    const tn_tensor *whole = back ? x->out[0] : x->in[0], *part = back ? x->in[0] : x->out[0];
    int64_t whole_step[TN_NDIM_MAX], part_step[TN_NDIM_MAX], start = 0;
    tncpu_move m;
    window w;
    tn_status st = find(x->attrs, whole, part, &w, err);
    char *from;

    if (st)
        return st;
    if (back)
        tncpu_fill(whole, 0);
    if (tn_tensor_count(part) == 0) /* the other dimensions may be of any size then */
        return TN_OK;
    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(whole->dtype);
    tncpu_move_steps(whole->shape, whole->ndim, whole_step);
    tncpu_move_steps(part->shape, part->ndim, part_step);
    for (int32_t k = 0; k < whole->ndim; k++) {
        const int64_t step = w.step[k] * whole_step[k];

        start += w.start[k] * whole_step[k];
        tncpu_move_add(&m, part->shape[k], back ? part_step[k] : step, back ? step : part_step[k]);
    }
    from = (char *)whole->data + start * m.size;
    tncpu_move_run(&m, back ? part->data : from, back ? from : part->data, tncpu_run_threads(plan, x));
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

/* The input that only says the size gets zeros. */
static tn_status crop_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (tn_attrs_int(x->attrs, TN_Crop_num_args) > 1 && x->modes[1])
        tncpu_fill(x->out[1], 0);
    return x->modes[0] ? backward_crop_run(plan, x, err) : TN_OK;
}

static const char *const slice_types[] = {"data:" TNCPU_ALL, "output:=data", NULL};
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
    BACKWARD(slice),
    BACKWARD(slice_axis),
    BACKWARD(slice_like),
    TNCPU_ROW("Crop", crop_types, 0, window_prepare, crop_run),
    TNCPU_ROW("_backward_Crop", crop_types, TN_KERNEL_EMPTY_OK, window_prepare, crop_back_run),
    NULL,
};
