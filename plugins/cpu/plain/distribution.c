/*
 * Distributions. Those that refuse some numbers take further parts of an element's bits (tn_draw_part); how
 * often is bounded, so that no parameter makes a loop that does not end: after TRIES refusals, which happens
 * less than once in 10^30 elements, the value in the middle is taken.
 *
 *     gamma     Marsaglia, Tsang: "A simple method for generating gamma variables", ACM TOMS 26 (2000)
 *     poisson   below 10 by inversion; else Hörmann: "The transformed rejection method for generating Poisson
 *               random variables", Insurance: Mathematics and Economics 12 (1993), algorithm PTRS
 *     integers  Lemire: "Fast random integer generation in an interval", ACM TOMACS 29 (2019)
 */
#include "distribution.h"

#include <float.h>
#include <math.h>

#define TRIES 100u
#define GAMMA_PARTS (2 * TRIES) /* parts that a gamma number may take; those of Poisson's follow */
#define TWO_PI 6.283185307179586476925

/* ---- one number -------------------------------------------------------------------------------------- */

/* Box and Muller: one of the pair, so that a number needs one part. */
static double normal_of(const uint32_t w[4])
{
    return sqrt(-2 * log(1 - tn_unit(w[0], w[1]))) * cos(TWO_PI * tn_unit(w[2], w[3]));
}

/* Uniform in (0, 1), both ends left out. */
static double inner_unit(const tn_draw *d, uint64_t k)
{
    uint32_t w[4];

    tn_draw_words(d, k, w);
    return ((double)((uint64_t)w[0] << 20 | w[1] >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

/* z²/2 + s (1 - v + ln v) of v = (1 + t)³ and s = z² / (9 t²), where small t would cancel. */
static double gamma_bound(double z, double s, double t)
{
    const double v = (1 + t) * (1 + t) * (1 + t);

    if (fabs(t) < 0.02)
        return 3 * s * t * t * t * t *
               (-1.0 / 4 + t * (1.0 / 5 - t * (1.0 / 6 - t * (1.0 / 7 - t * (1.0 / 8)))));
    return 0.5 * z * z + s * (1 - v + log(v));
}

/* Of scale 1; takes the parts 0 … GAMMA_PARTS-1. A shape below 1: that of shape + 1 times u^(1 / shape). */
static double gamma_of(const tn_draw *d, uint64_t k, double shape)
{
    const double s = shape < 1 ? shape + 2.0 / 3 : shape - 1.0 / 3, c = 1 / sqrt(9 * s);
    uint32_t w[4] = {0};
    double v = 1;

    if (!(shape > 0 && shape <= DBL_MAX))
        return NAN;
    for (uint32_t try = 0; try < TRIES; try++) {
        double z, t, u;

        tn_draw_part(d, k, 2 * try, w);
        z = normal_of(w);
        tn_draw_part(d, k, 2 * try + 1, w);
        t = c * z;
        u = 1 - tn_unit(w[0], w[1]);
        if (t > -1 && (u < 1 - 0.0331 * z * z * z * z || log(u) < gamma_bound(z, s, t))) {
            v = (1 + t) * (1 + t) * (1 + t);
            break;
        }
    }
    return shape < 1 ? s * v * pow(1 - tn_unit(w[2], w[3]), 1 / shape) : s * v;
}

/* Below 10: the smallest number whose distribution function is above a uniform one. */
static double poisson_small(double mean, const uint32_t w[4])
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
static double poisson_log(double x, double mean)
{
    static const double factorials[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880};
    const double e = (x - mean) / mean;
    double distance;

    if (x < 10)
        return x * log(mean) - mean - log(factorials[(int)x]);
    distance = fabs(e) < 1e-3 ? mean * e * e * (1.0 / 2 - e * (1.0 / 6 - e * (1.0 / 12 - e * (1.0 / 20))))
                              : x * log(x / mean) - (x - mean);
    return -distance - 0.5 * log(TWO_PI * x) - (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (x * x)) / (x * x)) / x;
}

/* From part `part` on. */
static double poisson_of(const tn_draw *d, uint64_t k, uint32_t part, double mean)
{
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b,
                 inverse = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
    uint32_t w[4];

    if (!(mean >= 0 && mean <= DBL_MAX))
        return NAN;
    for (uint32_t try = 0; try < TRIES; try++) {
        double u, v, rest, x;

        tn_draw_part(d, k, part + try, w);
        if (mean < 10)
            return poisson_small(mean, w);
        u = tn_unit(w[0], w[1]) - 0.5;
        v = tn_unit(w[2], w[3]);
        rest = 0.5 - fabs(u);
        x = floor((2 * a / rest + b) * u + mean + 0.43);
        if (rest >= 0.07 && v <= quick)
            return x;
        if (x >= 0 && x <= DBL_MAX && (rest >= 0.013 || v <= rest) &&
            log(v * inverse / (a / (rest * rest) + b)) <= poisson_log(x, mean))
            return x;
    }
    return floor(mean);
}

static double negative_binomial_of(const tn_draw *d, uint64_t k, double failures, double p)
{
    if (failures == 0)
        return 0;
    return poisson_of(d, k, GAMMA_PARTS, gamma_of(d, k, failures) * ((1 - p) / p));
}

/* A dispersion of 0, or one so small that its inverse is none, is Poisson's. */
static double dispersed_of(const tn_draw *d, uint64_t k, double mean, double alpha)
{
    const bool none = alpha == 0 || fabs(1 / alpha) > DBL_MAX;

    return poisson_of(d, k, GAMMA_PARTS, none ? mean : gamma_of(d, k, 1 / alpha) * (alpha * mean));
}

static uint64_t word_of(const uint32_t w[4])
{
    return (uint64_t)w[0] << 32 | w[1];
}

/* The upper 64 bits of a · b; the lower ones. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *low)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;

    *low = a * b;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

uint64_t tncpu_draw_below(const tn_draw *d, uint64_t k, uint64_t count)
{
    const uint64_t refused = (0 - count) % count; /* so many products would make some numbers more likely */
    uint64_t low, high = 0;

    for (uint32_t try = 0; try < TRIES; try++) {
        uint32_t w[4];

        tn_draw_part(d, k, try, w);
        high = multiply(word_of(w), count, &low);
        if (low >= refused)
            break;
    }
    return high;
}

/* ---- parts of a draw ---------------------------------------------------------------------------------- */

#define EACH(name, statement)                                                                                \
    static void name##_draw(const tncpu_numbers_drawn *d)                                                    \
    {                                                                                                        \
        for (int64_t i = 0; i < d->n; i++) {                                                                 \
            const uint64_t k = (uint64_t)(d->first + i);                                                     \
                                                                                                             \
            statement;                                                                                       \
        }                                                                                                    \
    }
/* A place and a scale applied to a number that needs none. */
#define PLACED(name, number) EACH(name, d->noise[i] = (number); d->to[i] = d->a[i] + d->b[i] * d->noise[i])
#define SCALED(name, number) EACH(name, d->noise[i] = (number); d->to[i] = d->a[i] * d->noise[i])

static double uniform_of(double low, double high, double u)
{
    const double v = high - low <= DBL_MAX ? low + (high - low) * u : low * (1 - u) + high * u;

    return v < high || !(high > low) ? v : low; /* rounding must not reach the open end */
}

static double normal_at(const tn_draw *d, uint64_t k)
{
    uint32_t w[4];

    tn_draw_words(d, k, w);
    return normal_of(w);
}

static double exponential_at(const tn_draw *d, uint64_t k)
{
    return -log(1 - tn_draw_unit(d, k));
}

static double logistic_at(const tn_draw *d, uint64_t k)
{
    const double u = inner_unit(d, k);

    return log(u) - log1p(-u);
}

static double pareto_at(double e, double a, double *slope)
{
    const double x = expm1(e / a);

    *slope = -e * (x + 1) / (a * a);
    return x;
}

static double weibull_at(double e, double a, double *slope)
{
    const double x = pow(e, 1 / a);

    *slope = -log(e) * x / (a * a);
    return x;
}

/* clang-format off */
EACH(uniform, d->to[i] = uniform_of(d->a[i], d->b[i], tn_draw_unit(d->draw, k)))
EACH(exponential, d->to[i] = exponential_at(d->draw, k) / d->a[i])
EACH(gamma, d->to[i] = gamma_of(d->draw, k, d->a[i]) * d->b[i])
EACH(poisson, d->to[i] = poisson_of(d->draw, k, 0, d->a[i]))
EACH(negative_binomial, d->to[i] = negative_binomial_of(d->draw, k, d->a[i], d->b[i]))
EACH(generalized_negative_binomial, d->to[i] = dispersed_of(d->draw, k, d->a[i], d->b[i]))
EACH(bernoulli, d->to[i] = tn_draw_unit(d->draw, k) < d->a[i])
EACH(bernoulli_logit, d->to[i] = tn_draw_unit(d->draw, k) * (1 + exp(-d->a[i])) < 1)
EACH(pareto, d->to[i] = pareto_at(-log(inner_unit(d->draw, k)), d->a[i], &d->noise[i]))
EACH(weibull, d->to[i] = weibull_at(-log(inner_unit(d->draw, k)), d->a[i], &d->noise[i]))
EACH(power, d->to[i] = pow(inner_unit(d->draw, k), 1 / d->a[i]))
PLACED(normal, normal_at(d->draw, k))
PLACED(gumbel, -log(-log(inner_unit(d->draw, k))))
PLACED(logistic, logistic_at(d->draw, k))
SCALED(scaled_exponential, exponential_at(d->draw, k))
SCALED(rayleigh, sqrt(2 * exponential_at(d->draw, k)))

#define REAL {-INFINITY, INFINITY, false}
#define FINITE {-DBL_MAX, DBL_MAX, false}
#define NOT_BELOW_0 {0, INFINITY, false}
#define FROM_0 {0, DBL_MAX, false}
#define ABOVE_0 {0, DBL_MAX, true}
const tncpu_distribution tncpu_distributions[] = {
    {"uniform", 2, {FINITE, FINITE}, 8, true, uniform_draw},
    {"normal", 2, {REAL, NOT_BELOW_0}, 40, false, normal_draw},
    {"gamma", 2, {ABOVE_0, ABOVE_0}, 90, false, gamma_draw},
    {"exponential", 1, {ABOVE_0}, 25, false, exponential_draw},
    {"poisson", 1, {FROM_0}, 60, false, poisson_draw},
    {"negative_binomial", 2, {FROM_0, {0, 1, true}}, 150, false, negative_binomial_draw},
    {"generalized_negative_binomial", 2, {FROM_0, FROM_0}, 150, false, generalized_negative_binomial_draw},
    {"bernoulli", 1, {{0, 1, false}}, 10, false, bernoulli_draw},
    {"bernoulli_logit", 1, {REAL}, 30, false, bernoulli_logit_draw},
    {"pareto", 1, {ABOVE_0}, 60, false, pareto_draw},
    {"weibull", 1, {ABOVE_0}, 90, false, weibull_draw},
    {"power", 1, {ABOVE_0}, 60, false, power_draw},
    {"gumbel", 2, {REAL, NOT_BELOW_0}, 50, false, gumbel_draw},
    {"logistic", 2, {REAL, NOT_BELOW_0}, 60, false, logistic_draw},
    {"scaled_exponential", 1, {NOT_BELOW_0}, 25, false, scaled_exponential_draw},
    {"rayleigh", 1, {NOT_BELOW_0}, 30, false, rayleigh_draw},
    {NULL, 0, {REAL}, 0, false, NULL},
};
/* clang-format on */
