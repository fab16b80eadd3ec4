/* The codes of Reshape, one function per code's meaning; sizes through checked products, -1 being unknown. */
#include "op/reshape.h"
#include "op/infer_help.h"

/* What codes below 0 mean, and 0 itself. */
enum { SIZE, REST, KEEP, KEEP_ALL, MERGE, SPLIT, DROP };
static const uint8_t meanings[][7] = {
    [TNI_RESHAPE_CLASSIC] = {KEEP, REST, KEEP_ALL, MERGE, SPLIT, SIZE, SIZE},
    [TNI_RESHAPE_NUMPY] = {SIZE, REST, KEEP, DROP, KEEP_ALL, MERGE, SPLIT},
};

typedef struct reading {
    tn_infer *i;
    const tn_shape *x; /* in reading order */
    const int64_t *code;
    int64_t count, at; /* codes, and the one being read */
    int32_t from;      /* next dimension of x */
    int32_t rest;      /* where in `y` the -1 stands, -1 none */
    const uint8_t *meaning;
    tn_shape y;
} reading;

/* Product of known dimensions; false: too large. TN_DIM_UNKNOWN if one is unknown. */
static bool product(const tn_shape *s, int32_t skip, int64_t *out)
{
    int64_t n = 1;

    *out = TN_DIM_UNKNOWN;
    for (int32_t k = 0; k < s->ndim; k++)
        if (k != skip && s->dim[k] < 0)
            return true;
    for (int32_t k = 0; k < s->ndim; k++)
        if (k != skip && __builtin_mul_overflow(n, s->dim[k], &n))
            return false;
    *out = n;
    return true;
}

static tn_status push(reading *r, int64_t dim)
{
    if (r->y.ndim == TN_NDIM_MAX)
        return tni_infer_fail(r->i, TN_E_SHAPE, "the shape has more than %d dimensions", TN_NDIM_MAX);
    r->y.dim[r->y.ndim++] = dim;
    return TN_OK;
}

static tn_status next(reading *r, int64_t code, int64_t *dim)
{
    if (r->from >= r->x->ndim)
        return tni_infer_fail(r->i, TN_E_SHAPE,
                              "code %lld of shape needs a dimension more than the input's %d",
                              (long long)code, r->x->ndim);
    *dim = r->x->dim[r->from++];
    return TN_OK;
}

static tn_status merge_two(reading *r)
{
    int64_t a = 0, b = 0, n = 0;
    tn_status st;

    if ((st = next(r, r->code[r->at], &a)) || (st = next(r, r->code[r->at], &b)))
        return st;
    if (a < 0 || b < 0)
        return push(r, TN_DIM_UNKNOWN);
    return __builtin_mul_overflow(a, b, &n)
               ? tni_infer_fail(r->i, TN_E_SHAPE, "the merged dimension is too large")
               : push(r, n);
}

static tn_status split_one(reading *r)
{
    const int64_t code = r->code[r->at];
    int64_t n = 0, a, b, both;
    tn_status st;

    if (r->at + 2 >= r->count)
        return tni_infer_fail(r->i, TN_E_ATTR, "code %lld of shape needs two sizes after it",
                              (long long)code);
    if ((st = next(r, code, &n)))
        return st;
    a = r->code[++r->at];
    b = r->code[++r->at];
    if (a < -1 || b < -1 || (a == -1 && b == -1))
        return tni_infer_fail(r->i, TN_E_ATTR, "code %lld of shape is followed by sizes %lld and %lld",
                              (long long)code, (long long)a, (long long)b);
    if (a == -1)
        a = n < 0 ? TN_DIM_UNKNOWN : b > 0 && n % b == 0 ? n / b : b == 0 && n == 0 ? 0 : INT64_MAX;
    else if (b == -1)
        b = n < 0 ? TN_DIM_UNKNOWN : a > 0 && n % a == 0 ? n / a : a == 0 && n == 0 ? 0 : INT64_MAX;
    if (a >= 0 && b >= 0 && n >= 0 && (__builtin_mul_overflow(a, b, &both) || both != n))
        return tni_infer_fail(r->i, TN_E_SHAPE,
                              "a dimension of %lld does not split as code %lld of shape says", (long long)n,
                              (long long)code);
    return (st = push(r, a)) ? st : push(r, b);
}

static tn_status read_code(reading *r)
{
    const int64_t code = r->code[r->at];
    int64_t dim = 0;
    tn_status st = TN_OK;

    switch (code > 0 ? SIZE : r->meaning[-code]) {
    case KEEP:
        return (st = next(r, code, &dim)) ? st : push(r, dim);
    case REST:
        if (r->rest >= 0)
            return tni_infer_fail(r->i, TN_E_ATTR, "shape has -1 twice");
        r->rest = r->y.ndim;
        r->from++;
        return push(r, TN_DIM_UNKNOWN);
    case KEEP_ALL:
        while (!st && r->from < r->x->ndim)
            st = push(r, r->x->dim[r->from++]);
        return st;
    case MERGE:
        return merge_two(r);
    case SPLIT:
        return split_one(r);
    case DROP:
        if ((st = next(r, code, &dim)) || dim == 1 || dim < 0)
            return st;
        return tni_infer_fail(r->i, TN_E_SHAPE, "code %lld of shape drops a dimension of %lld, not of 1",
                              (long long)code, (long long)dim);
    default:
        r->from++;
        return push(r, code);
    }
}

/* Fills in the -1 of `y`. */
static tn_status rest_fill(tn_infer *i, const tn_shape *x, tn_shape *y, int32_t rest)
{
    int64_t all, others;

    if (!product(x, -1, &all) || !product(y, rest, &others))
        return tni_infer_fail(i, TN_E_SHAPE, "the shape is too large");
    if (all < 0 || others < 0)
        return TN_OK;
    if (others == 0 || all % others)
        return tni_infer_fail(i, TN_E_SHAPE,
                              "%lld elements cannot be divided by %lld to find the -1 of shape",
                              (long long)all, (long long)others);
    y->dim[rest] = all / others;
    return TN_OK;
}

static void reversed(const int64_t *from, int64_t count, int64_t *to)
{
    for (int64_t k = 0; k < count; k++)
        to[k] = from[count - 1 - k];
}

tn_status tni_reshape(tn_infer *i, const tn_shape *x, const tn_tuple *codes, tni_reshape_codes which,
                      bool reverse, tn_shape *out)
{
    int64_t turned[2 * TN_NDIM_MAX + TN_NDIM_MAX];
    tn_shape back = *x;
    reading r = {i, x, codes ? codes->item : NULL, tni_tuple_count(codes), 0, 0, -1, meanings[which], {0}};
    tn_status st = TN_OK;

    if (r.count > 3 * TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "shape has %lld items", (long long)r.count);
    if (reverse) {
        reversed(r.code, r.count, turned);
        reversed(x->dim, x->ndim, back.dim);
        r.code = turned;
        r.x = &back;
    }
    for (; !st && r.at < r.count; r.at++)
        st = read_code(&r);
    if (st)
        return st;
    *out = r.y;
    if (reverse)
        reversed(r.y.dim, r.y.ndim, out->dim);
    if (r.rest >= 0)
        return rest_fill(i, x, out, reverse ? out->ndim - 1 - r.rest : r.rest);
    return TN_OK;
}

tn_status tni_reshape_target(tn_infer *i, const tn_shape *x, const tn_tuple *target, bool keep_highest,
                             tn_shape *out)
{
    int32_t rest = -1;

    if (tni_tuple_count(target) == 0)
        return tni_infer_fail(i, TN_E_ATTR, "shape is missing");
    if (target->count > TN_NDIM_MAX || (keep_highest && x->ndim == 0))
        return tni_infer_fail(i, TN_E_SHAPE, "target_shape does not fit the input");
    out->ndim = (int32_t)target->count;
    out->reserved = 0;
    for (int32_t k = 0; k < out->ndim; k++) {
        out->dim[k] = keep_highest && k == 0 ? x->dim[0] : target->item[k];
        if ((keep_highest && k == 0) || out->dim[k] > 0)
            continue;
        if (rest >= 0)
            return tni_infer_fail(i, TN_E_ATTR, "target_shape has more than one dimension to infer");
        rest = k;
        out->dim[k] = TN_DIM_UNKNOWN;
    }
    return rest >= 0 ? rest_fill(i, x, out, rest) : TN_OK;
}

void tni_reshape_back(tn_shape *x, const tn_shape *y)
{
    int32_t open = -1;
    int64_t all, others;

    for (int32_t k = 0; k < x->ndim; k++) {
        if (x->dim[k] >= 0)
            continue;
        if (open >= 0)
            return;
        open = k;
    }
    if (open < 0 || !product(y, -1, &all) || !product(x, open, &others) || all < 0 || others <= 0 ||
        all % others)
        return;
    x->dim[open] = all / others;
}

tn_status tni_reshape_counts(tn_infer *i, const tn_shape *x, const tn_shape *y)
{
    int64_t a, b;

    if (!product(x, -1, &a) || !product(y, -1, &b))
        return tni_infer_fail(i, TN_E_SHAPE, "the shape is too large");
    if (a >= 0 && b >= 0 && a != b)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld elements do not fit a shape of %lld", (long long)a,
                              (long long)b);
    return TN_OK;
}
