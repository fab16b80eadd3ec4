/*
 * The functions over ranges that shape rules name: windows over space, reductions, orders of axes. Each reads
 * the attributes that its row names, as MXNet's operators call them, where the operator has them.
 */
#include <string.h>

#include "op/shape_rule.h"

static const tn_tuple *call_tuple(const rule_call *c, int k)
{
    return c->attr[k] < 0 ? NULL : tni_attr_tuple(c->i->attrs, (uint32_t)c->attr[k]);
}

static bool call_bool(const rule_call *c, int k)
{
    return c->attr[k] >= 0 && tni_attr_bool(c->i->attrs, (uint32_t)c->attr[k]);
}

static void dims_unknown(rule_dims *d, int32_t n)
{
    d->n = n;
    for (int32_t k = 0; k < n; k++)
        d->dim[k] = TN_DIM_UNKNOWN;
}

/* ---- window: kernel, stride, pad, dilate ------------------------------------------------------ */

enum { WINDOW_KERNEL, WINDOW_STRIDE, WINDOW_PAD, WINDOW_DILATE };

static tn_status window_check(const rule_call *c)
{
    const int64_t kernel = tni_tuple_count(call_tuple(c, WINDOW_KERNEL));

    if (kernel < 1 || kernel > 3)
        return tni_infer_fail(c->i, TN_E_ATTR, "kernel has %lld dimensions, 1 to 3 are allowed",
                              (long long)kernel);
    for (int k = WINDOW_STRIDE; k <= WINDOW_DILATE; k++) {
        const int64_t count = tni_tuple_count(call_tuple(c, k));

        if (count && count != kernel)
            return tni_infer_fail(c->i, TN_E_ATTR, "%s has %lld dimensions, kernel has %lld",
                                  c->i->op->attrs[c->attr[k]].name, (long long)count, (long long)kernel);
    }
    for (int k = WINDOW_KERNEL; k <= WINDOW_DILATE; k++)
        for (int64_t d = 0; d < tni_tuple_count(call_tuple(c, k)); d++)
            if (call_tuple(c, k)->item[d] < (k != WINDOW_PAD) || call_tuple(c, k)->item[d] > INT32_MAX)
                return tni_infer_fail(c->i, TN_E_ATTR, "%s has the item %lld",
                                      c->i->op->attrs[c->attr[k]].name, (long long)call_tuple(c, k)->item[d]);
    return TN_OK;
}

static int32_t window_length(const rule_call *c)
{
    return (int32_t)tni_tuple_count(call_tuple(c, WINDOW_KERNEL));
}

static tn_status window_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    const int64_t n = tni_tuple_count(call_tuple(c, WINDOW_KERNEL));

    if (in->n != n)
        return tni_infer_fail(c->i, TN_E_SHAPE, "%d dimensions of space, but kernel has %lld", in->n,
                              (long long)n);
    dims_unknown(out, in->n);
    for (int32_t k = 0; k < in->n; k++) {
        const int64_t kernel = tni_tuple_item(call_tuple(c, WINDOW_KERNEL), k, 1);
        const int64_t pad = tni_tuple_item(call_tuple(c, WINDOW_PAD), k, 0);
        const int64_t dilate = tni_tuple_item(call_tuple(c, WINDOW_DILATE), k, 1);

        out->dim[k] = tni_window_size(in->dim[k], kernel, tni_tuple_item(call_tuple(c, WINDOW_STRIDE), k, 1),
                                      pad, dilate);
        if (in->dim[k] >= 0 && out->dim[k] < 0)
            return tni_infer_fail(
                c->i, TN_E_SHAPE,
                "kernel %lld with dilate %lld is larger than the input, %lld with 2 * pad %lld",
                (long long)kernel, (long long)dilate, (long long)in->dim[k], (long long)pad);
    }
    return TN_OK;
}

/* The input's extent follows where the window moves by 1: MXNet's rule. */
static tn_status window_backward(const rule_call *c, const rule_dims *out, rule_dims *in)
{
    if (out->n != tni_tuple_count(call_tuple(c, WINDOW_KERNEL)))
        return TN_OK; /* forward says it */
    dims_unknown(in, out->n);
    for (int32_t k = 0; k < out->n; k++) {
        const int64_t kernel = tni_tuple_item(call_tuple(c, WINDOW_KERNEL), k, 1);
        const int64_t pad = tni_tuple_item(call_tuple(c, WINDOW_PAD), k, 0);
        const int64_t dilate = tni_tuple_item(call_tuple(c, WINDOW_DILATE), k, 1);
        int64_t span, size;

        if (out->dim[k] < 1 || tni_tuple_item(call_tuple(c, WINDOW_STRIDE), k, 1) != 1 ||
            __builtin_mul_overflow(dilate, kernel - 1, &span) ||
            __builtin_add_overflow(out->dim[k], span, &size))
            continue;
        size -= 2 * pad;
        in->dim[k] = size >= 0 ? size : TN_DIM_UNKNOWN;
    }
    return TN_OK;
}

/* ---- unwindow: kernel, stride, pad, dilate, adj, target_shape; window the other way round ------------ */

enum { UNWINDOW_ADJ = WINDOW_DILATE + 1, UNWINDOW_TARGET };

static tn_status unwindow_check(const rule_call *c)
{
    const int64_t kernel = tni_tuple_count(call_tuple(c, WINDOW_KERNEL));
    tn_status st = window_check(c);

    for (int k = UNWINDOW_ADJ; !st && k <= UNWINDOW_TARGET; k++)
        if (tni_tuple_count(call_tuple(c, k)) && tni_tuple_count(call_tuple(c, k)) != kernel)
            st = tni_infer_fail(c->i, TN_E_ATTR, "%s has %lld dimensions, kernel has %lld",
                                c->i->op->attrs[c->attr[k]].name,
                                (long long)tni_tuple_count(call_tuple(c, k)), (long long)kernel);
    return st;
}

/* One extent, `whole` being that without padding. With a target the padding is what is too much. */
static tn_status unwindow_size(const rule_call *c, int32_t k, int64_t whole, int64_t *out)
{
    const tn_tuple *targets = call_tuple(c, UNWINDOW_TARGET);
    const int64_t target = tni_tuple_item(targets, k, 0),
                  pad = tni_tuple_item(call_tuple(c, WINDOW_PAD), k, 0);
    const int64_t stride = tni_tuple_item(call_tuple(c, WINDOW_STRIDE), k, 1);
    int64_t adj = tni_tuple_item(call_tuple(c, UNWINDOW_ADJ), k, 0);
    bool given = false;

    for (int32_t d = 0; d < tni_tuple_count(targets); d++)
        given = given || targets->item[d] != 0;
    if (given && target > whole)
        return tni_infer_fail(c->i, TN_E_SHAPE,
                              "target_shape %lld is larger than the output without pad, %lld",
                              (long long)target, (long long)whole);
    if (given)
        adj = (whole - target) % 2;
    if (adj >= stride)
        return tni_infer_fail(c->i, given ? TN_E_SHAPE : TN_E_ATTR, "adj %lld is not below stride %lld",
                              (long long)adj, (long long)stride);
    *out = given ? target : whole - 2 * pad + adj;
    if (*out < 0)
        return tni_infer_fail(c->i, TN_E_SHAPE, "pad %lld cuts off more than the output, %lld",
                              (long long)pad, (long long)whole);
    return TN_OK;
}

static tn_status unwindow_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    const int64_t n = tni_tuple_count(call_tuple(c, WINDOW_KERNEL));
    tn_status st = TN_OK;

    if (in->n != n)
        return tni_infer_fail(c->i, TN_E_SHAPE, "%d dimensions of space, but kernel has %lld", in->n,
                              (long long)n);
    dims_unknown(out, in->n);
    for (int32_t k = 0; !st && k < in->n; k++) {
        const int64_t kernel = tni_tuple_item(call_tuple(c, WINDOW_KERNEL), k, 1);
        const int64_t stride = tni_tuple_item(call_tuple(c, WINDOW_STRIDE), k, 1);
        const int64_t span = (kernel - 1) * tni_tuple_item(call_tuple(c, WINDOW_DILATE), k, 1) + 1;
        int64_t whole;

        if (in->dim[k] < 0)
            continue;
        if (in->dim[k] == 0)
            return tni_infer_fail(c->i, TN_E_SHAPE, "dimension %d of space has size 0", k);
        if (__builtin_mul_overflow(in->dim[k] - 1, stride, &whole) ||
            __builtin_add_overflow(whole, span, &whole))
            return tni_infer_fail(c->i, TN_E_SHAPE, "dimension %d of space is too large", k);
        st = unwindow_size(c, k, whole, &out->dim[k]);
    }
    return st;
}

/* ---- resized: height, width, scale_height, scale_width, mode ------------------------------------------- */

enum { RESIZED_SIZE, RESIZED_SCALE = 2, RESIZED_MODE = 4 };

static int32_t two_dims(const rule_call *c)
{
    (void)c;
    return 2;
}

static double resized_scale(const rule_call *c, int32_t k)
{
    const double *scale = tni_attr_opt_float(c->i->attrs, (uint32_t)c->attr[RESIZED_SCALE + k]);

    return scale ? *scale : 0;
}

/* Modes by number, as op/resize.h has them. MXNet multiplies in float32. */
static tn_status resized_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    enum { LIKE, ODD_SCALE, SIZE, TO_EVEN_DOWN, TO_EVEN_UP, TO_ODD_DOWN, TO_ODD_UP };
    const int64_t mode = tni_attr_int(c->i->attrs, (uint32_t)c->attr[RESIZED_MODE]);
    const bool scaled = resized_scale(c, 0) > 0 && resized_scale(c, 1) > 0;

    dims_unknown(out, in->n);
    if ((mode == ODD_SCALE || (mode == SIZE && resized_scale(c, 0) > 0)) && !scaled)
        return tni_infer_fail(c->i, TN_E_ATTR, "scale_height and scale_width are needed, both above 0");
    for (int32_t k = 0; k < in->n; k++) {
        const int64_t x = in->dim[k], odd = x & 1;
        const double y = (double)((float)resized_scale(c, k) * (float)(mode == ODD_SCALE && odd ? x - 1 : x));

        if (x < 0)
            continue;
        if (y >= 9e15)
            return tni_infer_fail(c->i, TN_E_SHAPE, "dimension %d of space becomes too large", k);
        if (mode == SIZE && !scaled)
            out->dim[k] = tni_attr_int(c->i->attrs, (uint32_t)c->attr[RESIZED_SIZE + k]);
        else if (mode <= SIZE)
            out->dim[k] = (int64_t)y + (mode == ODD_SCALE && odd);
        else
            out->dim[k] = mode == TO_EVEN_DOWN  ? x - odd
                          : mode == TO_EVEN_UP  ? x + odd
                          : mode == TO_ODD_DOWN ? x - !odd
                                                : x + !odd;
        if (out->dim[k] < 1 || x < 1)
            return tni_infer_fail(c->i, TN_E_SHAPE, "dimension %d of space has size %lld: nothing is left", k,
                                  (long long)x);
    }
    return TN_OK;
}

/* ---- reduce: axis, keepdims, exclude; over: NumPy's, where () is no axis ----------------------- */

enum { REDUCE_AXIS, REDUCE_KEEPDIMS, REDUCE_EXCLUDE, REDUCE_INITIAL = REDUCE_EXCLUDE };

static tn_status reduced_axes(const rule_call *c, bool numpy, int32_t ndim, uint32_t *mask)
{
    const tn_tuple *axes = call_tuple(c, REDUCE_AXIS);

    *mask = 0;
    if (numpy && axes && axes->count == 0)
        return TN_OK;
    return tni_axes_mask(c->i, axes, !numpy && call_bool(c, REDUCE_EXCLUDE), ndim, mask);
}

static tn_status reduce(const rule_call *c, bool numpy, const rule_dims *in, rule_dims *out)
{
    uint32_t mask;
    tn_status st = reduced_axes(c, numpy, in->n, &mask);

    out->n = 0;
    for (int32_t k = 0; !st && k < in->n; k++) {
        if (!(mask >> k & 1u))
            out->dim[out->n++] = in->dim[k];
        else if (call_bool(c, REDUCE_KEEPDIMS))
            out->dim[out->n++] = 1;
    }
    return st;
}

/* Where reduced axes stay, the rank and the other axes follow. */
static tn_status unreduce(const rule_call *c, bool numpy, const rule_dims *out, rule_dims *in)
{
    uint32_t mask;
    tn_status st;

    if (!call_bool(c, REDUCE_KEEPDIMS))
        return TN_OK;
    if ((st = reduced_axes(c, numpy, out->n, &mask)))
        return st;
    dims_unknown(in, out->n);
    for (int32_t k = 0; k < out->n; k++)
        if (!(mask >> k & 1u))
            in->dim[k] = out->dim[k];
    return TN_OK;
}

static tn_status reduce_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    return reduce(c, false, in, out);
}

static tn_status reduce_backward(const rule_call *c, const rule_dims *out, rule_dims *in)
{
    return unreduce(c, false, out, in);
}

static tn_status over_check(const rule_call *c)
{
    const int16_t initial = c->attr[REDUCE_INITIAL];

    if (initial >= 0 && tni_attr_opt_float(c->i->attrs, (uint32_t)initial))
        return tni_infer_fail(c->i, TN_E_ATTR, "initial may only be None");
    return TN_OK;
}

static tn_status over_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    return reduce(c, true, in, out);
}

static tn_status over_backward(const rule_call *c, const rule_dims *out, rule_dims *in)
{
    return unreduce(c, true, out, in);
}

/* line: the length of the only axis that is reduced. */
static tn_status line_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    uint32_t mask;
    tn_status st = reduced_axes(c, true, in->n, &mask);

    out->n = 0;
    for (int32_t k = 0; !st && k < in->n; k++)
        if (mask >> k & 1u)
            out->dim[out->n++] = in->dim[k];
    if (!st && out->n != 1)
        return tni_infer_fail(c->i, TN_E_SHAPE, "a line is of one axis, but %d are reduced", out->n);
    return st;
}

/* ---- permute: axes; none: the other way round ------------------------------------------------- */

static tn_status permute(const rule_call *c, const rule_dims *in, bool back, rule_dims *out)
{
    const tn_tuple *axes = call_tuple(c, 0);
    uint32_t seen = 0;

    if (tni_tuple_count(axes) && axes->count != in->n)
        return tni_infer_fail(c->i, TN_E_SHAPE, "%lld axes for %d dimensions", (long long)axes->count, in->n);
    dims_unknown(out, in->n);
    for (int32_t k = 0; k < in->n; k++) {
        int32_t axis = in->n - 1 - k;
        tn_status st;

        if (tni_tuple_count(axes) && (st = tni_axis(c->i, axes->item[k], in->n, &axis)))
            return st;
        if (seen >> axis & 1u)
            return tni_infer_fail(c->i, TN_E_SHAPE, "axis %d is there twice", axis);
        seen |= 1u << axis;
        out->dim[back ? axis : k] = in->dim[back ? k : axis];
    }
    return TN_OK;
}

static tn_status permute_forward(const rule_call *c, const rule_dims *in, rule_dims *out)
{
    return permute(c, in, false, out);
}

static tn_status permute_backward(const rule_call *c, const rule_dims *out, rule_dims *in)
{
    return permute(c, out, true, in);
}

static const rule_function functions[] = {
    {"window",
     {{"kernel", RULE_TYPE(TUPLE), true},
      {"stride", RULE_TYPE(TUPLE), false},
      {"pad", RULE_TYPE(TUPLE), false},
      {"dilate", RULE_TYPE(TUPLE), false}},
     window_check,
     window_length,
     window_forward,
     window_backward},
    {"unwindow",
     {{"kernel", RULE_TYPE(TUPLE), true},
      {"stride", RULE_TYPE(TUPLE), false},
      {"pad", RULE_TYPE(TUPLE), false},
      {"dilate", RULE_TYPE(TUPLE), false},
      {"adj", RULE_TYPE(TUPLE), false},
      {"target_shape", RULE_TYPE(TUPLE), false}},
     unwindow_check,
     window_length,
     unwindow_forward,
     NULL},
    {"resized",
     {{"height", RULE_TYPE(INT), true},
      {"width", RULE_TYPE(INT), true},
      {"scale_height", RULE_TYPE(OPT_FLOAT), true},
      {"scale_width", RULE_TYPE(OPT_FLOAT), true},
      {"mode", RULE_TYPE(CHOICE), true}},
     NULL,
     two_dims,
     resized_forward,
     NULL},
    {"reduce",
     {{"axis", RULE_TYPE(TUPLE), false},
      {"keepdims", RULE_TYPE(BOOL), false},
      {"exclude", RULE_TYPE(BOOL), false}},
     NULL,
     NULL,
     reduce_forward,
     reduce_backward},
    {"over",
     {{"axis", RULE_TYPE(TUPLE), false},
      {"keepdims", RULE_TYPE(BOOL), false},
      {"initial", RULE_TYPE(OPT_FLOAT), false}},
     over_check,
     NULL,
     over_forward,
     over_backward},
    {"line", {{"axis", RULE_TYPE(TUPLE), false}}, NULL, NULL, line_forward, NULL},
    {"permute", {{"axes", RULE_TYPE(TUPLE), false}}, NULL, NULL, permute_forward, permute_backward},
};

const rule_function *tni_rule_function(const char *name, size_t length)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (strlen(functions[k].name) == length && memcmp(functions[k].name, name, length) == 0)
            return &functions[k];
    return NULL;
}
