/* Shapes and data types: small ones that fit, related ones, and ones that are changed in one place. */
#include "make.h"

#include <string.h>

static int64_t dim_of(fuzz_rng *r)
{
    static const int64_t dims[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8, 9, 16, 17, 33};

    return fuzz_chance(r, 3) ? 0 : FUZZ_PICK(r, dims);
}

void fuzz_shape_fit(fuzz_rng *r, tn_shape *s)
{
    static const int32_t ranks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6};

    s->ndim = FUZZ_PICK(r, ranks);
    for (int32_t d = 0; d < s->ndim; d++)
        s->dim[d] = dim_of(r);
    if (s->ndim > 0 && fuzz_chance(r, 3))
        s->dim[fuzz_below(r, (uint64_t)s->ndim)] = 100 + (int64_t)fuzz_below(r, 400);
    for (int32_t d = 0; d < s->ndim && fuzz_elements(s) > FUZZ_ELEMENTS_MAX / 4; d++)
        s->dim[d] = 1 + (int64_t)fuzz_below(r, 3);
    if (s->ndim > 1 && fuzz_chance(r, 1)) { /* nothing, in a huge shape */
        s->dim[fuzz_below(r, (uint64_t)s->ndim)] = (int64_t)1 << (20 + fuzz_below(r, 39));
        s->dim[fuzz_below(r, (uint64_t)s->ndim)] = 0;
    }
}

void fuzz_shape_like(fuzz_rng *r, const tn_shape *like, tn_shape *s)
{
    *s = *like;
    switch (fuzz_below(r, 6)) {
    case 0: /* stretches */
        for (int32_t d = 0; d < s->ndim; d++)
            if (fuzz_chance(r, 50))
                s->dim[d] = 1;
        return;
    case 1: /* its tail */
        if (s->ndim > 0)
            memmove(s->dim, s->dim + 1, (size_t)--s->ndim * sizeof *s->dim);
        return;
    case 2: /* its head */
        s->ndim -= s->ndim > 0;
        return;
    case 3: /* dimensions from the same few */
        s->ndim = 1 + (int32_t)fuzz_below(r, 4);
        for (int32_t d = 0; d < s->ndim; d++)
            s->dim[d] = like->ndim > 0 ? like->dim[fuzz_below(r, (uint64_t)like->ndim)] : dim_of(r);
        return;
    case 4:
        fuzz_shape_fit(r, s);
        return;
    default: /* the same */
        return;
    }
}

void fuzz_shape_wild(fuzz_rng *r, tn_shape *s)
{
    const uint32_t at = fuzz_below(r, s->ndim > 0 ? (uint64_t)s->ndim : 1);

    switch (fuzz_below(r, 8)) {
    case 0:
        s->dim[at] = 0;
        break;
    case 1:
        s->dim[at] = 1;
        break;
    case 2:
        s->dim[at] = dim_of(r);
        break;
    case 3:
        s->ndim -= s->ndim > 0;
        return;
    case 4:
        s->ndim = s->ndim < 0 ? 1 : s->ndim + (s->ndim < TN_NDIM_MAX);
        s->dim[s->ndim - 1] = dim_of(r);
        return;
    case 5: /* as many dimensions as there may be */
        for (int32_t d = s->ndim < 0 ? 0 : s->ndim; d < TN_NDIM_MAX; d++)
            s->dim[d] = fuzz_chance(r, 90) ? 1 : 2;
        s->ndim = TN_NDIM_MAX;
        return;
    case 6: /* nothing, in a huge shape */
        s->ndim = 2 + (int32_t)fuzz_below(r, 3);
        for (int32_t d = 0; d < s->ndim; d++)
            s->dim[d] = dim_of(r);
        s->dim[fuzz_below(r, (uint64_t)s->ndim)] = (int64_t)1 << (20 + fuzz_below(r, 39));
        s->dim[fuzz_below(r, (uint64_t)s->ndim)] = 0;
        return;
    default:
        s->ndim = 0;
        return;
    }
    s->ndim += s->ndim <= 0;
}

int32_t fuzz_dtype_fit(fuzz_rng *r)
{
    static const int32_t some[] = {TN_F32, TN_F32, TN_F32,  TN_F32, TN_F32, TN_F32, TN_F64, TN_F64,
                                   TN_F64, TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8,  TN_I8,  TN_BOOL};

    return fuzz_chance(r, 95) ? FUZZ_PICK(r, some) : fuzz_dtype_any(r);
}

int32_t fuzz_dtype_any(fuzz_rng *r)
{
    return (int32_t)fuzz_below(r, TN_I4);
}
