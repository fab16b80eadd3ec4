/* Densities in double: constants of the parameters, the logarithm, its derivatives. In C and CUDA. */
#ifndef TNB_PDF_H
#define TNB_PDF_H

#include "functions.h"

/* What follows from the parameters of a group alone. */
typedef struct tnb_pdf {
    double a, b, c, d; /* parameters; terms of the logarithm */
    double da, db;     /* terms of its derivatives by the parameters */
} tnb_pdf;

/* NAME_log is the logarithm; NAME_slope its derivative by the sample, and by the parameters into `by`. */

TNB_INLINE void tnb_uniform_group(tnb_pdf *k)
{
    k->c = -log(k->b - k->a);
    k->da = 1 / (k->b - k->a);
}

TNB_INLINE double tnb_uniform_log(const tnb_pdf *k, double x)
{
    (void)x;
    return k->c;
}

TNB_INLINE double tnb_uniform_slope(const tnb_pdf *k, double x, double *by)
{
    (void)x;
    by[0] = k->da;
    by[1] = -k->da;
    return 0;
}

TNB_INLINE void tnb_normal_group(tnb_pdf *k)
{
    k->c = -log(2.50662827463100050242 * k->b);
    k->d = 1 / (k->b * k->b);
}

TNB_INLINE double tnb_normal_log(const tnb_pdf *k, double x)
{
    return -0.5 * (x - k->a) * (x - k->a) * k->d + k->c;
}

TNB_INLINE double tnb_normal_slope(const tnb_pdf *k, double x, double *by)
{
    by[0] = (x - k->a) * k->d;
    by[1] = ((x - k->a) * (x - k->a) * k->d - 1) / k->b;
    return -by[0];
}

TNB_INLINE void tnb_gamma_group(tnb_pdf *k)
{
    k->c = k->a * log(k->b) - tnb_lgamma(k->a);
    k->da = log(k->b) - tnb_digamma(k->a);
}

TNB_INLINE double tnb_gamma_log(const tnb_pdf *k, double x)
{
    return k->c + (k->a - 1) * log(x) - k->b * x;
}

TNB_INLINE double tnb_gamma_slope(const tnb_pdf *k, double x, double *by)
{
    by[0] = k->da + log(x);
    by[1] = k->a / k->b - x;
    return (k->a - 1) / x - k->b;
}

TNB_INLINE void tnb_exponential_group(tnb_pdf *k)
{
    k->c = log(k->a);
}

TNB_INLINE double tnb_exponential_log(const tnb_pdf *k, double x)
{
    return k->c - k->a * x;
}

TNB_INLINE double tnb_exponential_slope(const tnb_pdf *k, double x, double *by)
{
    by[0] = 1 / k->a - x;
    return -k->a;
}

TNB_INLINE double tnb_poisson_log(const tnb_pdf *k, double x)
{
    return x * k->c - tnb_lgamma(x + 1) - k->a;
}

TNB_INLINE double tnb_poisson_slope(const tnb_pdf *k, double x, double *by)
{
    by[0] = x / k->a - 1;
    return 0;
}

TNB_INLINE void tnb_negative_group(tnb_pdf *k)
{
    k->c = k->a * log(k->b) - tnb_lgamma(k->a);
    k->d = log(1 - k->b);
    k->da = log(k->b) - tnb_digamma(k->a);
}

TNB_INLINE double tnb_negative_log(const tnb_pdf *k, double x)
{
    return tnb_lgamma(x + k->a) - tnb_lgamma(x + 1) + k->c + x * k->d;
}

TNB_INLINE double tnb_negative_slope(const tnb_pdf *k, double x, double *by)
{
    by[0] = tnb_digamma(x + k->a) + k->da;
    by[1] = k->a / k->b - x / (1 - k->b);
    return 0;
}

/* As negative of 1 / alpha failures of probability 1 / (mu alpha + 1). */
TNB_INLINE void tnb_dispersed_group(tnb_pdf *k)
{
    const double mu = k->a, alpha = k->b;

    k->a = 1 / alpha;
    k->b = 1 / (mu * alpha + 1);
    tnb_negative_group(k);
    k->db = k->b * k->b; /* of p by mu · alpha, but for the sign */
}

TNB_INLINE double tnb_dispersed_slope(const tnb_pdf *k, double x, double *by)
{
    const double alpha = 1 / k->a, mu = (1 / k->b - 1) * k->a;
    double of[2];

    (void)tnb_negative_slope(k, x, of);
    by[0] = -of[1] * alpha * k->db;
    by[1] = -of[0] * k->a * k->a - of[1] * mu * k->db;
    return 0;
}

#endif
