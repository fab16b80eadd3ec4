/*
 * Arrays in every form. One that is not dense is a view of a base with memory around its elements, which
 * nothing may change. Values depend on the seed and the element's number alone, not on the form.
 */
#include "run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BASE_MAX (1u << 20) /* elements of a base */

/* ---- values -------------------------------------------------------------------------------------------- */

static double wild_number(fuzz_rng *r)
{
    static const double some[] = {NAN,    INFINITY, -INFINITY, 1e38,   -1e38, 1e-40, 0.0,   -0.0,      65504,
                                  1e300,  -1e300,   1e-300,    1e19,   -1e19, 2e9,   -2e9,  0.1,       -1,
                                  3.4e38, FLT_MIN,  DBL_MIN,   5e-324, 1e-45, 1e9,   1e100, 4294967296};

    return FUZZ_PICK(r, some);
}

static double number_of(fuzz_rng *r, uint8_t values, bool whole)
{
    switch (values) {
    case FUZZ_SMALL:
        return whole ? (double)fuzz_below(r, 12) - 3 : ((double)fuzz_below(r, 65) - 32) / 16;
    case FUZZ_UNIT:
        return whole ? 1 : ((double)fuzz_below(r, 62) + 1) / 64;
    case FUZZ_INDEX:
        return fuzz_chance(r, 3) ? wild_number(r) : (double)fuzz_below(r, 7) - 1;
    case FUZZ_ZEROS:
        return fuzz_below(r, 2) ? 0.0 : -0.0;
    case FUZZ_VALUES: /* ones */
        return 1;
    default:
        return fuzz_chance(r, 40) ? wild_number(r) : ((double)fuzz_below(r, 2001) - 1000) / 8;
    }
}

static void element_fill(fuzz_rng *r, int32_t dtype, uint8_t values, void *to)
{
    const bool whole = !tni_dtype_is_float(dtype);
    const double number = number_of(r, values, whole);

    tni_cast(&number, TN_F64, 1, to, dtype, 1, 1);
    if (values == FUZZ_WILD && whole && dtype != TN_BOOL && fuzz_chance(r, 50)) { /* all bits count */
        const uint64_t bits = fuzz_next(r);

        memcpy(to, &bits, tn_dtype_bytes(dtype));
    }
}

bool fuzz_array_values(const fuzz_entry *like, uint8_t values, uint64_t seed, void *to, uint64_t bytes)
{
    const uint64_t size = tn_dtype_bytes(like->dtype), count = fuzz_elements(&like->shape);
    fuzz_rng r = {seed};

    if (bytes != count * size)
        return false;
    for (uint64_t i = 0; i < count; i++)
        element_fill(&r, like->dtype, values, (char *)to + i * size);
    return true;
}

/* ---- forms --------------------------------------------------------------------------------------------- */

typedef struct layout {
    int64_t stride[TN_NDIM_MAX];
    uint64_t offset, elements; /* of the base */
} layout;

static void strides_turned(const tn_shape *s, int64_t *stride)
{
    int64_t at = 1;

    for (int32_t d = 0; d < s->ndim; d++) {
        stride[d] = at;
        at *= s->dim[d];
    }
}

/* Row-major; `pad` behind each row, every element `step` apart, dimension `flat` without extent. */
static void strides_rows(const tn_shape *s, int64_t step, int64_t pad, int32_t flat, int64_t *stride)
{
    int64_t at = step;

    for (int32_t d = s->ndim; d-- > 0;) {
        stride[d] = d == flat ? 0 : at;
        at *= d == flat ? 1 : s->dim[d] + pad;
    }
}

/* False: such a form is the dense one. */
static bool layout_of(const tn_shape *s, uint32_t form, layout *l)
{
    const uint64_t count = fuzz_elements(s);
    int32_t flat = -1;

    if (form == FUZZ_DENSE || !count || count > BASE_MAX / 8)
        return false;
    for (int32_t d = 0; d < s->ndim && form == FUZZ_STRETCHED && flat < 0; d++)
        if (s->dim[d] > 1)
            flat = d;
    if (form == FUZZ_TURNED)
        strides_turned(s, l->stride);
    else
        strides_rows(s, form == FUZZ_GAPS ? 2 : 1, form == FUZZ_ROWS ? 1 : 0, flat, l->stride);
    l->offset = form == FUZZ_OFFSET ? 3 : 1;
    l->elements = l->offset + 2;
    for (int32_t d = 0; d < s->ndim; d++)
        l->elements += (uint64_t)(l->stride[d] * (s->dim[d] - 1));
    return l->elements <= BASE_MAX;
}

/* Calls for each element of the view, row-major, with its place in the base. */
typedef void (*place_fn)(void *arg, uint64_t place);

static void places(const tn_shape *s, const layout *l, place_fn fn, void *arg)
{
    int64_t index[TN_NDIM_MAX] = {0}, at = (int64_t)l->offset;
    int32_t d = 0;

    while (d >= 0) {
        fn(arg, (uint64_t)at);
        for (d = s->ndim - 1; d >= 0; d--) {
            at += l->stride[d];
            if (++index[d] < s->dim[d])
                break;
            at -= l->stride[d] * s->dim[d];
            index[d] = 0;
        }
    }
}

typedef struct filler {
    fuzz_rng r;
    int32_t dtype;
    uint8_t values;
    uint8_t *base;
} filler;

static void place_fill(void *arg, uint64_t place)
{
    filler *f = arg;

    element_fill(&f->r, f->dtype, f->values, f->base + place * tn_dtype_bytes(f->dtype));
}

/* The base on the host, filled. */
static uint8_t *base_fill(const fuzz_entry *like, const layout *l, const filler *fill, uint64_t bytes)
{
    filler f = *fill;

    if (!(f.base = malloc(bytes + 1)))
        return NULL;
    memset(f.base, like->dtype == TN_BOOL ? 1 : 0x5a, bytes);
    places(&like->shape, l, place_fill, &f);
    return f.base;
}

static tn_status view_make(tn_ctx *ctx, const fuzz_entry *like, const layout *l, fuzz_array *out)
{
    const int64_t elements = (int64_t)l->elements;
    tn_status st = tn_array_from(ctx, like->dtype, 1, &elements, out->before, &out->base);

    if (!st)
        st = tn_array_view(out->base, l->offset, like->shape.ndim, like->shape.dim, l->stride, &out->view);
    return st;
}

typedef struct gatherer {
    uint8_t *to;
    const uint8_t *base;
    uint64_t size, count;
} gatherer;

static void place_gather(void *arg, uint64_t place)
{
    gatherer *g = arg;

    memcpy(g->to + g->count++ * g->size, g->base + place * g->size, g->size);
}

/* The elements that the view would have. */
static tn_status dense_make(tn_ctx *ctx, const fuzz_entry *like, const layout *l, fuzz_array *out)
{
    const uint64_t size = tn_dtype_bytes(like->dtype), count = fuzz_elements(&like->shape);
    gatherer g = {.to = malloc(count * size + 1), .base = out->before, .size = size};
    tn_status st = TN_E_NOMEM;

    if (g.to && count)
        places(&like->shape, l, place_gather, &g);
    if (g.to)
        st = tn_array_from(ctx, like->dtype, like->shape.ndim, like->shape.dim, g.to, &out->view);
    free(g.to);
    free(out->before);
    out->before = NULL;
    return st;
}

tn_status fuzz_array_make(tn_ctx *ctx, const fuzz_entry *like, uint32_t form, uint8_t values, uint64_t seed,
                          fuzz_array *out)
{
    const filler fill = {.r = {seed}, .dtype = like->dtype, .values = values};
    const bool dense = form & FUZZ_AS_DENSE;
    layout l = {.offset = 0};
    bool plain;
    tn_status st = TN_E_NOMEM;

    *out = (fuzz_array){NULL, NULL, NULL, 0};
    if (fuzz_elements(&like->shape) > BASE_MAX)
        return st;
    plain = !layout_of(&like->shape, form & 0x7f, &l);
    if (plain) {
        l.offset = 0;
        if ((l.elements = fuzz_elements(&like->shape)))
            strides_rows(&like->shape, 1, 0, -1, l.stride);
    }
    out->bytes = l.elements * tn_dtype_bytes(like->dtype);
    if (l.elements ? (out->before = base_fill(like, &l, &fill, out->bytes)) != NULL : true)
        st = plain || dense ? dense_make(ctx, like, &l, out) : view_make(ctx, like, &l, out);
    if (st)
        fuzz_array_free(out);
    return st;
}

void fuzz_array_free(fuzz_array *a)
{
    tn_array_release(a->view);
    tn_array_release(a->base);
    free(a->before);
    *a = (fuzz_array){NULL, NULL, NULL, 0};
}

/* ---- the memory around a view -------------------------------------------------------------------------- */

typedef struct eraser {
    uint8_t *now;
    const uint8_t *before;
    uint64_t size;
} eraser;

static void place_erase(void *arg, uint64_t place)
{
    const eraser *e = arg;

    memcpy(e->now + place * e->size, e->before + place * e->size, e->size);
}

bool fuzz_array_around(const fuzz_array *a)
{
    const int64_t *shape, *stride;
    eraser e = {.before = a->before};
    tn_shape s = {.ndim = 0};
    layout l = {.offset = a->base ? a->view->offset : 0};
    bool same;

    if (!a->base || !(e.now = malloc(a->bytes)))
        return true;
    e.size = tn_dtype_bytes(tn_array_dtype(a->view));
    if (tn_array_read(a->base, e.now, a->bytes) || tn_array_shape(a->view, &s.ndim, &shape) ||
        tn_array_stride(a->view, &stride)) {
        free(e.now);
        return true; /* a failure sticks to it */
    }
    memcpy(s.dim, shape, (size_t)s.ndim * sizeof *shape);
    memcpy(l.stride, stride, (size_t)s.ndim * sizeof *stride);
    places(&s, &l, place_erase, &e);
    same = !memcmp(e.now, a->before, a->bytes);
    free(e.now);
    return same;
}
