/*
 * Functions of expressions in the lists. The first ones are for f32, computed in double: plain arithmetic
 * only, so they vectorise, and give the same bits on every processor (libm picks its code by processor).
 * Relative error below 1e-11 (erfinv: 1e-10) before the rounding to f32, so results are correctly rounded but
 * for about one in a thousand, which is off by one unit. f64 uses the compiler's library.
 */
#ifndef TNB_FUNCTIONS_H
#define TNB_FUNCTIONS_H

#include <math.h>
#include <stdbool.h>

#include "storage.h"

/* In the lists: what an element of a row costs, where functions_float.h makes it cheaper than hosts do. */
#define TNB_NS(host, gpu) (host)

/* ---- whole where the result is an integer ----------------------------------------------------------- */

/* A GPU's function may be off by one unit: of integers, whose results are cut, that would be another one. */

TNB_INLINE double tnb_log2(double x)
{
    const double y = log2(x);

#ifdef __CUDACC__
    return ldexp(1.0, (int)rint(y)) == x ? rint(y) : y;
#else
    return y;
#endif
}

TNB_INLINE double tnb_log10(double x)
{
    const double y = log10(x);

#ifdef __CUDACC__
    double power = 1;

    for (int i = 0; i < 22 && i < (int)rint(y); i++)
        power *= 10;
    return power == x ? rint(y) : y;
#else
    return y;
#endif
}

TNB_INLINE double tnb_cbrt(double x)
{
    const double y = cbrt(x);

#ifdef __CUDACC__
    return rint(y) * rint(y) * rint(y) == x ? rint(y) : y;
#else
    return y;
#endif
}

TNB_INLINE double tnb_gamma(double x)
{
#ifdef __CUDACC__
    double product = 1;

    if (x >= 1 && x <= 23 && x == floor(x)) {
        for (int i = 2; i < (int)x; i++)
            product *= i;
        return product;
    }
#endif
    return tgamma(x);
}

/* ---- of f32, in double ------------------------------------------------------------------------ */

/* e^x for what becomes an f32: beyond -150 and 130 the result is 0 or infinite there anyway. */
TNB_INLINE double tnb_exp(double x)
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
    return tnb_bits_double(tnb_double_bits(p) + (tnb_double_bits(shifted) << 52));
}

/* e^x in f32 throughout, for kernels that are bound by it: less than 1.1 units in the last place off; 0 for
 * what is below 2^-124. The same bits on every processor. */
TNB_INLINE float tnb_exp_f32(float x)
{
    const float magic = 12583038.0f; /* 1.5 * 2^23 + 126: the bits that are shifted are those of 2^(n - 1) */
    const float shifted = x * 1.44269504f + magic, n = shifted - magic;
    const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    const float power = tnb_bits_float(tnb_float_bits(shifted) << 23);
    float p = 1.38146104e-3f;

    p = p * r + 8.36871099e-3f;
    p = p * r + 4.16683890e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r + 1.0f;
    p = (p + p) * power;
    p = x < -86.6f ? 0.0f : p; /* where p is anything */
    return x > 89.0f ? INFINITY : p;
}

/* ln x for x that was an f32, so never subnormal as a double. */
TNB_INLINE double tnb_log(double x)
{
    uint64_t bits = tnb_double_bits(x);
    double e = tnb_bits_double((bits >> 52) | 0x4330000000000000u) - 4503599627371519.0; /* 2^52 + 1023 */
    double m = tnb_bits_double((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
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

TNB_INLINE double tnb_tanh(double x)
{
    double a = x < 0.0 ? -x : x, t = tnb_exp(-2.0 * a);
    double y = a < 1e-4 ? a - a * a * a * (1.0 / 3.0) : (1.0 - t) / (1.0 + t);

    return x < 0.0 ? -y : y;
}

TNB_INLINE double tnb_sigmoid(double x)
{
    return 1.0 / (1.0 + tnb_exp(-x));
}

/* ln(1 + e^x); for large x that is x, for small e^x. */
TNB_INLINE double tnb_softrelu(double x)
{
    double t = tnb_exp(x);
    double y = x < -20.0 ? t - 0.5 * t * t : tnb_log(1.0 + t);

    return x > 30.0 ? x : y;
}

/* sin(a + ahead * pi) for any a >= 0 that was an f32, with a relative error below 1e-12. a / pi is made
 * modulo 2, of three products: 29 bits of 1 / pi times the 24 of an f32 are exact in a double, and so is
 * taking whole numbers away. For larger a the constants are those of 2^s / pi modulo 2, divided by 2^s, with
 * s = 27, 54, 81: such an a is a multiple of 2^s. */
TNB_INLINE double tnb_sin_from(double a, double ahead)
{
    const double magic = 6755399441055744.0; /* as in tnb_exp */
    const bool far = a >= 1125899906842624.0, farther = a >= 151115727451828646838272.0,
               farthest = a >= 20282409603651670423947251286016.0; /* 2^50, 2^77, 2^104 */
    double c1 = far ? -2.0598845615338313e-09 : 0.3183098863810301, v, n;
    double c2 = far ? 1.138005036829765e-18 : -1.9723941100183162e-10, w, m;
    double c3 = far ? -2.9056689322530833e-28 : -1.6303757044340715e-19, f, z, p;

    c1 = farther ? 3.5832474517591816e-17 : c1;
    c2 = farther ? 3.848352433308002e-26 : c2;
    c3 = farther ? -1.28821588763206e-35 : c3;
    c1 = farthest ? -2.7170920508541586e-25 : c1;
    c2 = farthest ? -3.0177165059234955e-34 : c2;
    c3 = farthest ? 5.794356676714072e-44 : c3;
    v = a * c1;
    n = v + magic;
    f = v - (n - magic) + ahead;
    w = a * c2;
    m = f + w + magic;
    f = f - (m - magic) + w + a * c3; /* within 1/2 of the whole number n + m */
    z = f * f;
    p = 4.474920849077101e-4;
    p = p * z - 7.364005472115722e-3;
    p = p * z + 8.214479467064854e-2;
    p = p * z - 0.5992644339357286;
    p = p * z + 2.550164035906745;
    p = p * z - 5.167712779987959;
    p = p * z + 3.141592653589635;
    return tnb_bits_double(tnb_double_bits(p * f) ^ ((tnb_double_bits(n) + tnb_double_bits(m)) << 63));
}

TNB_INLINE double tnb_sin(double x)
{
    const uint64_t sign = tnb_double_bits(x) & 0x8000000000000000u;

    return tnb_bits_double(tnb_double_bits(tnb_sin_from(fabs(x), 0.0)) ^ sign);
}

TNB_INLINE double tnb_cos(double x)
{
    return tnb_sin_from(fabs(x), 0.5);
}

/* With w = -ln(1 - x²), erfinv(x) / x is a polynomial of w below 5 and one of sqrt(w) above, fitted at
 * Chebyshev's points; x was an f32, so w is at most 16. */
TNB_INLINE double tnb_erfinv_f32(double x)
{
    const double a = x < 0.0 ? -x : x, w = -tnb_log((1.0 - a) * (1.0 + a));
    const bool far = w > 5.0;
    const double z = far ? (sqrt(w) - 3.1180339887498949) * 1.1338305413635983 : w * 0.4 - 1.0;
    double p;

    p = far ? 2.7609767745615000e-6 : -1.2073571561838581e-6;
    p = p * z + (far ? -2.8172620668473476e-6 : 2.9320670351413624e-6);
    p = p * z + (far ? -1.6913316911677204e-5 : 7.7715992099037692e-6);
    p = p * z + (far ? 4.8774116186380494e-5 : -4.1402995293184120e-5);
    p = p * z + (far ? -3.5803846936949781e-5 : 2.1082729648964955e-5);
    p = p * z + (far ? -1.3623533300802530e-4 : 2.9213834088883962e-4);
    p = p * z + (far ? 6.0073507120423785e-4 : -8.3435597280434452e-4);
    p = p * z + (far ? -1.3724869590618844e-3 : -4.8787759658290716e-4);
    p = p * z + (far ? 2.3495904217076141e-3 : 8.5254393321162834e-3);
    p = p * z + (far ? -3.7102029444447408e-3 : -1.9573564070093447e-2);
    p = p * z + (far ? 5.5693315155780857e-3 : -2.6108238320894463e-2);
    p = p * z + (far ? 8.8515848682255949e-1 : 6.1660069197665524e-1);
    p = p * z + (far ? 2.9513285783839303 : 1.5014093511388098);
    p = a < 1.0 ? p : a == 1.0 ? INFINITY : NAN;
    return p * x;
}

/* ---- functions that no C library has, in double ----------------------------------------------------- */

TNB_INLINE double tnb_softrelu_f64(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* The logarithmic derivative of gamma: reflection for x <= 0, recurrence up to 10, then the asymptotic
 * series. */
TNB_INLINE double tnb_digamma(double x)
{
    const double pi = 3.14159265358979323846;
    double sum = 0.0, reflected = 0.0, z;

    if (x == floor(x) && x <= 0.0)
        return NAN;
    if (x < 0.0) {
        reflected = pi / tan(pi * x);
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0)
        sum -= 1.0 / x;
    z = 1.0 / (x * x);
    z *= 1.0 / 12 -
         z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760)))));
    return sum + log(x) - 0.5 / x - z - reflected;
}

/* With w = -ln(1 - x²). Below 15 within 1e-6 (Giles: "Approximating the erfinv function", GPU Computing Gems
 * 2, 2010), else within 2e-3 (Winitzki). */
TNB_INLINE double tnb_erfinv_about(double x, double w)
{
    static const double inner[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                   -0.00417768164,  0.246640727,    1.50140941},
                        outer[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                   -0.00367342844,  0.00573950773,  -0.0076224613,
                                   0.00943887047,   1.00167406,     2.83297682};
    const double *c = w < 5.0 ? inner : outer, z = w < 5.0 ? w - 2.5 : sqrt(w) - 3.0;
    double p = c[0], t = 2.0 / (3.14159265358979323846 * 0.147) - 0.5 * w;

    if (w >= 15.0)
        return copysign(sqrt(sqrt(t * t + w / 0.147) - t), x);
    for (int32_t i = 1; i < 9; i++)
        p = p * z + c[i];
    return p * x;
}

/* Halley's steps on erf: each cubes the error. */
TNB_INLINE double tnb_erfinv(double x)
{
    double w, y;

    if (!(x > -1.0 && x < 1.0))
        return x == 1.0 ? INFINITY : x == -1.0 ? -INFINITY : NAN;
    w = -log1p(-x * x);
    y = tnb_erfinv_about(x, w);
    for (int32_t step = w < 15.0 ? 1 : 2; step > 0; step--) {
        double error = fabs(x) < 0.5 ? x - erf(y) /* kept exact near 0, and near 1 */
                       : x > 0       ? erfc(y) - (1.0 - x)
                                     : (1.0 + x) - erfc(-y);

        error /= 1.1283791670955126 * exp(-y * y);
        y += error / (1.0 - y * error);
    }
    return y;
}

TNB_INLINE double tnb_gelu(double x)
{
    return 0.5 * x * (1 + erf(x * 0.7071067811865476));
}

TNB_INLINE double tnb_gelu_slope(double x)
{
    return 0.5 * (1.0 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x);
}

#ifdef __CUDACC__
#define tnb_lgamma(x) lgamma(x)
#else
TNB_INLINE double tnb_lgamma(double x)
{
    int32_t sign;

    return lgamma_r(x, &sign); /* lgamma leaves the sign in a variable of all threads */
}
#endif

/* ---- remainders and whole numbers -------------------------------------------------------------- */

TNB_INLINE double tnb_float_mod(double a, double b)
{
    double r;

    if (b == 0.0)
        return 0.0;
    r = fmod(a, b);
    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

TNB_INLINE int64_t tnb_int_mod(int64_t a, int64_t b)
{
    int64_t r = b == 0 || b == -1 ? 0 : a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

TNB_INLINE int64_t tnb_int_div(int64_t a, int64_t b)
{
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return b == 0 ? 0 : a / b;
}

TNB_INLINE uint64_t tnb_magnitude(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

TNB_INLINE int64_t tnb_int_lcm(int64_t a, int64_t b)
{
    uint64_t x = tnb_magnitude(a), y = tnb_magnitude(b), rest;
    const uint64_t product = x;

    if (!x || !y)
        return 0;
    for (uint64_t q = y; q; q = rest) {
        rest = x % q;
        x = q;
    }
    return (int64_t)(product / x * y);
}

/* a to the power b, as the double that it rounds to: powers below 2^53 are exact, which pow() promises on no
 * GPU. 0 to a negative power is infinite. */
TNB_INLINE double tnb_int_pow(int64_t a, int64_t b)
{
    const int32_t minus = a < 0 && (b & 1);
    uint64_t base = tnb_magnitude(a), y = 1; /* beyond 2^64 they wrap round, */
    double step = (double)base, size = 1;    /* and these say how large they were */

    if (b < 0 && base != 1)
        return base ? 0.0 : INFINITY;
    for (uint64_t n = tnb_magnitude(b); n; n >>= 1) {
        if (n & 1) {
            y *= base;
            size *= step;
        }
        base *= base;
        step *= step;
    }
    size = size < 9223372036854775808.0 ? (double)y : size;
    return minus ? -size : size;
}

/* ---- of optimizers ------------------------------------------------------------------------------ */

/* LAMB's rate: r1 is the norm of the weight within bounds (below 0: none), r2 that of what it moves along. */
TNB_INLINE double tnb_lamb_rate(double lr, double r1, double r2, double lower, double upper)
{
    r1 = lower >= 0 && r1 < lower ? lower : r1;
    r1 = upper >= 0 && r1 > upper ? upper : r1;
    return r1 == 0 || r2 == 0 ? lr : lr * r1 / r2;
}

#endif
