/*
 * Distributions. Those that refuse some numbers take further parts of an element's bits (tn_draw_part); how
 * often is bounded, so that no parameter makes a loop that does not end: after TRIES refusals, which happens
 * less than once in 10^30 elements, the value in the middle is taken.
 *
 *     gamma     Marsaglia, Tsang: "A simple method for generating gamma variables", ACM TOMS 26 (2000)
 *     poisson   below 10 by inversion; else Hörmann: "The transformed rejection method for generating Poisson
 *               random variables", Insurance: Mathematics and Economics 12 (1993), algorithm PTRS
 *     binomial  below a mean of 10 by inversion; else Hörmann: "The generation of binomial random variates",
 *               Journal of Statistical Computation and Simulation 46 (1993), algorithm BTRS
 *     integers  Lemire: "Fast random integer generation in an interval", ACM TOMACS 29 (2019)
 *
 * Element k of a draw is a function of the draw, k and its parameters alone, so parts may be made in any
 * order and by any number of threads. Numbers are made in double and rounded once by who stores them.
 */
#ifndef TNB_DISTRIBUTION_H
#define TNB_DISTRIBUTION_H

#include "functions.h"
#include "tenon/plugin/random.h"

#include <float.h>

#define TNB_TRIES 100u
#define TNB_GAMMA_PARTS (2 * TNB_TRIES) /* parts that a gamma number may take; those of Poisson's follow */
#define TNB_TWO_PI 6.283185307179586476925

/* ---- one number -------------------------------------------------------------------------------------- */

/* Box and Muller: one of the pair, so that a number needs one part. */
TNB_INLINE double tnb_normal_of(const uint32_t w[4])
{
    return sqrt(-2 * log(1 - tn_unit(w[0], w[1]))) * cos(TNB_TWO_PI * tn_unit(w[2], w[3]));
}

/* Uniform in (0, 1), both ends left out. */
TNB_INLINE double tnb_inner_unit(const tn_draw *d, uint64_t k)
{
    uint32_t w[4];

    tn_draw_words(d, k, w);
    return ((double)((uint64_t)w[0] << 20 | w[1] >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

/* z²/2 + s (1 - v + ln v) of v = (1 + t)³ and s = z² / (9 t²), where small t would cancel. */
TNB_INLINE double tnb_gamma_bound(double z, double s, double t)
{
    const double v = (1 + t) * (1 + t) * (1 + t);

    if (fabs(t) < 0.02)
        return 3 * s * t * t * t * t *
               (-1.0 / 4 + t * (1.0 / 5 - t * (1.0 / 6 - t * (1.0 / 7 - t * (1.0 / 8)))));
    return 0.5 * z * z + s * (1 - v + log(v));
}

/* Of scale 1; takes the parts 0 … TNB_GAMMA_PARTS-1. A shape below 1: that of shape + 1 times
 * u^(1 / shape). */
TNB_INLINE double tnb_gamma_of(const tn_draw *d, uint64_t k, double shape)
{
    const double s = shape < 1 ? shape + 2.0 / 3 : shape - 1.0 / 3, c = 1 / sqrt(9 * s);
    uint32_t w[4] = {0};
    double v = 1;

    if (!(shape > 0 && shape <= DBL_MAX))
        return NAN;
    for (uint32_t again = 0; again < TNB_TRIES; again++) {
        double z, t, u;

        tn_draw_part(d, k, 2 * again, w);
        z = tnb_normal_of(w);
        tn_draw_part(d, k, 2 * again + 1, w);
        t = c * z;
        u = 1 - tn_unit(w[0], w[1]);
        if (t > -1 && (u < 1 - 0.0331 * z * z * z * z || log(u) < tnb_gamma_bound(z, s, t))) {
            v = (1 + t) * (1 + t) * (1 + t);
            break;
        }
    }
    return shape < 1 ? s * v * pow(1 - tn_unit(w[2], w[3]), 1 / shape) : s * v;
}

/* Below 10: the smallest number whose distribution function is above a uniform one. */
TNB_INLINE double tnb_poisson_small(double mean, const uint32_t w[4])
{
    const double u = tn_unit(w[0], w[1]);
    double x = 0, share = exp(-mean), sum = share;

    while (u >= sum && !(x > mean && sum + share == sum)) {
        x++;
        share *= mean / x;
        sum += share;
    }
    return x;
}

/* The logarithm of Poisson's probability of x, which is not below 0, without large terms that cancel. */
TNB_INLINE double tnb_poisson_log(double x, double mean)
{
    static const double factorials[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880};
    const double e = (x - mean) / mean;
    double distance;

    if (x < 10)
        return x * log(mean) - mean - log(factorials[(int32_t)x]);
    distance = fabs(e) < 1e-3 ? mean * e * e * (1.0 / 2 - e * (1.0 / 6 - e * (1.0 / 12 - e * (1.0 / 20))))
                              : x * log(x / mean) - (x - mean);
    return -distance - 0.5 * log(TNB_TWO_PI * x) -
           (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (x * x)) / (x * x)) / x;
}

/* From part `part` on. */
TNB_INLINE double tnb_poisson_of(const tn_draw *d, uint64_t k, uint32_t part, double mean)
{
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b,
                 inverse = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
    uint32_t w[4];

    if (!(mean >= 0 && mean <= DBL_MAX))
        return NAN;
    for (uint32_t again = 0; again < TNB_TRIES; again++) {
        double u, v, rest, x;

        tn_draw_part(d, k, part + again, w);
        if (mean < 10)
            return tnb_poisson_small(mean, w);
        u = tn_unit(w[0], w[1]) - 0.5;
        v = tn_unit(w[2], w[3]);
        rest = 0.5 - fabs(u);
        x = floor((2 * a / rest + b) * u + mean + 0.43);
        if (rest >= 0.07 && v <= quick)
            return x;
        if (x >= 0 && x <= DBL_MAX && (rest >= 0.013 || v <= rest) &&
            log(v * inverse / (a / (rest * rest) + b)) <= tnb_poisson_log(x, mean))
            return x;
    }
    return floor(mean);
}

TNB_INLINE double tnb_negative_binomial_of(const tn_draw *d, uint64_t k, double failures, double p)
{
    if (failures == 0)
        return 0;
    return tnb_poisson_of(d, k, TNB_GAMMA_PARTS, tnb_gamma_of(d, k, failures) * ((1 - p) / p));
}

/* A dispersion of 0, or one so small that its inverse is none, is Poisson's. */
TNB_INLINE double tnb_dispersed_of(const tn_draw *d, uint64_t k, double mean, double alpha)
{
    const int32_t none = alpha == 0 || fabs(1 / alpha) > DBL_MAX;

    return tnb_poisson_of(d, k, TNB_GAMMA_PARTS,
                          none ? mean : tnb_gamma_of(d, k, 1 / alpha) * (alpha * mean));
}

TNB_INLINE uint64_t tnb_word_of(const uint32_t w[4])
{
    return (uint64_t)w[0] << 32 | w[1];
}

/* The upper 64 bits of a · b; the lower ones. */
TNB_INLINE uint64_t tnb_multiply(uint64_t a, uint64_t b, uint64_t *low)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;

    *low = a * b;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

TNB_INLINE uint64_t tnb_draw_below(const tn_draw *d, uint64_t k, uint64_t count)
{
    const uint64_t refused = (0 - count) % count; /* so many products would make some numbers more likely */
    uint64_t low, high = 0;

    for (uint32_t again = 0; again < TNB_TRIES; again++) {
        uint32_t w[4];

        tn_draw_part(d, k, again, w);
        high = tnb_multiply(tnb_word_of(w), count, &low);
        if (low >= refused)
            break;
    }
    return high;
}

/* For a mean below 10: the smallest number whose distribution function is above a uniform one. */
TNB_INLINE double tnb_binomial_small(double n, double p, const uint32_t w[4])
{
    const double u = tn_unit(w[0], w[1]);
    double x = 0, share = exp(n * log1p(-p)), sum = share;

    while (u >= sum && x < n && !(x > n * p && sum + share == sum)) {
        x++;
        share *= (n - x + 1) / x * (p / (1 - p));
        sum += share;
    }
    return x;
}

/* p is at most a half. */
TNB_INLINE double tnb_binomial_of(const tn_draw *d, uint64_t k, double n, double p)
{
    const double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation,
                 a = -0.0873 + 0.0248 * b + 0.01 * p, quick = 0.92 - 4.2 / b,
                 scale = (2.83 + 5.1 / b) * deviation, mode = floor((n + 1) * p),
                 most = tnb_lgamma(mode + 1) + tnb_lgamma(n - mode + 1);
    uint32_t w[4];

    for (uint32_t again = 0; again < TNB_TRIES; again++) {
        double u, v, rest, x;

        tn_draw_part(d, k, again, w);
        if (n * p < 10)
            return tnb_binomial_small(n, p, w);
        u = tn_unit(w[0], w[1]) - 0.5;
        v = tn_unit(w[2], w[3]);
        rest = 0.5 - fabs(u);
        x = floor((2 * a / rest + b) * u + n * p + 0.5);
        if (x < 0 || x > n)
            continue;
        if (rest >= 0.07 && v <= quick)
            return x;
        if (log(v * scale / (a / (rest * rest) + b)) <=
            most - tnb_lgamma(x + 1) - tnb_lgamma(n - x + 1) + (x - mode) * log(p / (1 - p)))
            return x;
    }
    return mode;
}

TNB_INLINE int64_t tnb_draw_binomial(const tn_draw *d, uint64_t k, int64_t n, double p)
{
    if (!(p > 0) || n == 0)
        return 0;
    if (p >= 1)
        return n;
    return p <= 0.5 ? (int64_t)tnb_binomial_of(d, k, (double)n, p)
                    : n - (int64_t)tnb_binomial_of(d, k, (double)n, 1 - p);
}

TNB_INLINE double tnb_uniform_of(double low, double high, double u)
{
    const double v = high - low <= DBL_MAX ? low + (high - low) * u : low * (1 - u) + high * u;

    return v < high || !(high > low) ? v : low; /* rounding must not reach the open end */
}

TNB_INLINE double tnb_normal_at(const tn_draw *d, uint64_t k)
{
    uint32_t w[4];

    tn_draw_words(d, k, w);
    return tnb_normal_of(w);
}

TNB_INLINE double tnb_exponential_at(const tn_draw *d, uint64_t k)
{
    return -log(1 - tn_draw_unit(d, k));
}

TNB_INLINE double tnb_logistic_at(const tn_draw *d, uint64_t k)
{
    const double u = tnb_inner_unit(d, k);

    return log(u) - log1p(-u);
}

TNB_INLINE double tnb_pareto_at(double e, double a, double *slope)
{
    const double x = expm1(e / a);

    *slope = -e * (x + 1) / (a * a);
    return x;
}

TNB_INLINE double tnb_weibull_at(double e, double a, double *slope)
{
    const double x = pow(e, 1 / a);

    *slope = -log(e) * x / (a * a);
    return x;
}

#endif
