/*
 * Functions for f32, computed in double: plain arithmetic only, so they vectorise, and give the same bits on
 * every processor (libm picks its code by processor). Relative error below 1e-11 before the rounding to f32,
 * so results are correctly rounded but for about one in a thousand, which is off by one unit. f64 uses libm.
 */
#ifndef TNCPU_MATHF_H
#define TNCPU_MATHF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t tncpu_double_bits(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline double tncpu_bits_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* e^x for what becomes an f32: beyond -150 and 130 the result is 0 or infinite there anyway. */
static inline double tncpu_exp(double x)
{
    const double magic =
        6755399441055744.0; /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */
    double shifted, n, r, p;

    x = x > 130.0 ? 130.0 : x;
    x = x < -150.0 ? -150.0 : x;
    shifted = x * 1.4426950408889634 + magic;
    n = shifted - magic;
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    p = 2.755731922398589e-7;
    p = p * r + 2.7557319223985893e-6;
    p = p * r + 2.48015873015873e-5;
    p = p * r + 1.984126984126984e-4;
    p = p * r + 1.388888888888889e-3;
    p = p * r + 8.333333333333333e-3;
    p = p * r + 4.1666666666666664e-2;
    p = p * r + 1.6666666666666666e-1;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return tncpu_bits_double(tncpu_double_bits(p) + (tncpu_double_bits(shifted) << 52));
}

/* ln x for x that was an f32, so never subnormal as a double. */
static inline double tncpu_log(double x)
{
    uint64_t bits = tncpu_double_bits(x);
    double e = tncpu_bits_double((bits >> 52) | 0x4330000000000000u) - 4503599627371519.0; /* 2^52 + 1023 */
    double m = tncpu_bits_double((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
    double big = m > 1.4142135623730951 ? 1.0 : 0.0;
    double s, z, p, y;

    m = big > 0.0 ? m * 0.5 : m;
    e += big;
    s = (m - 1.0) / (m + 1.0);
    z = s * s;
    p = 0.13333333333333333;
    p = p * z + 0.15384615384615385;
    p = p * z + 0.18181818181818182;
    p = p * z + 0.2222222222222222;
    p = p * z + 0.2857142857142857;
    p = p * z + 0.4;
    p = p * z + 0.6666666666666666;
    p = p * z + 2.0;
    y = e * 0.6931471805599453 + s * p;
    y = x > 0.0 ? y : NAN;
    y = x == 0.0 ? -INFINITY : y;
    return x == INFINITY ? INFINITY : y;
}

static inline double tncpu_tanh(double x)
{
    double a = x < 0.0 ? -x : x, t = tncpu_exp(-2.0 * a);
    double y = a < 1e-4 ? a - a * a * a * (1.0 / 3.0) : (1.0 - t) / (1.0 + t);

    return x < 0.0 ? -y : y;
}

static inline double tncpu_sigmoid(double x)
{
    return 1.0 / (1.0 + tncpu_exp(-x));
}

/* ln(1 + e^x); for large x that is x, for small e^x. */
static inline double tncpu_softrelu(double x)
{
    double t = tncpu_exp(x);
    double y = x < -20.0 ? t - 0.5 * t * t : tncpu_log(1.0 + t);

    return x > 30.0 ? x : y;
}

double tncpu_softrelu_f64(double x);
double tncpu_digamma(double x);
double tncpu_erfinv(double x);
double tncpu_gelu_slope(double x);
double tncpu_lgamma(double x);

#endif
