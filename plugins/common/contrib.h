/* Functions of one element of small operators, in double. In C and CUDA. */
#ifndef TNB_CONTRIB_H
#define TNB_CONTRIB_H

#include "functions.h"

TNB_INLINE double tnb_quadratic(double x, double a, double b, double c)
{
    return x * (a * x + b) + c;
}

/* `nans`: two NaN are close. */
TNB_INLINE int32_t tnb_is_close(double a, double b, double rtol, double atol, int32_t nans)
{
    if (a != a || b != b)
        return nans && a != a && b != b;
    return a == b || fabs(a - b) <= atol + rtol * fabs(b);
}

/* SVMOutput's gradient: `own`: the element is the label's; `hinge`: linear, else squared. */
TNB_INLINE double tnb_svm_slope(double y, int32_t own, double margin, double factor, int32_t hinge)
{
    const double sign = own ? -1 : 1, missing = margin + sign * y;

    return missing > 0 ? sign * factor * (hinge ? 1 : 2 * missing) : 0;
}

/* What IdentityAttachKLSparseReg adds to the gradient of a unit whose average is this one. */
TNB_INLINE double tnb_sparse_slope(double average, double target, double penalty)
{
    return penalty * ((1 - target) / (1 - average) - target / average);
}

/* A gradient scaled and, unless the bound is below 0, within it. */
TNB_INLINE double tnb_bounded(double g, double scale, double bound)
{
    return bound < 0 ? g * scale : fmax(fmin(g * scale, bound), -bound);
}

#endif
