/*
 * Functions of float32 in float32 alone, for GPUs, where a double costs as much as 2 to 64 floats:
 * words_float.inc says which rows of the lists they serve. Plain arithmetic and fmaf: the same bits on every
 * GPU and in the emulator. Bounds, in units of the last place: plugins/cuda/ulp.list. Polynomials were fitted
 * at Chebyshev's points.
 */
#ifndef TNB_FUNCTIONS_FLOAT_H
#define TNB_FUNCTIONS_FLOAT_H

#include "functions.h"

#undef TNB_NS
#define TNB_NS(host, gpu) (gpu)

#define TNB_LOG2E_F 1.44269504f
#define TNB_LN2_HIGH_F 0.693145752f /* with 15 bits: a product with an exponent is exact */
#define TNB_LN2_LOW_F 1.42860677e-6f
#define TNB_ROUND_F 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */

/* 1 / d for 2^-100 < d < 2^100, within one unit: the exponent is negated, two steps each cube the error. */
TNB_INLINE float tnb_float_over(float d)
{
    float r = tnb_bits_float(0x7ef311c7u - tnb_float_bits(d)), e = fmaf(-d, r, 1.0f);

    r = fmaf(r, fmaf(e, e, e), r);
    e = fmaf(-d, r, 1.0f);
    return fmaf(r, fmaf(e, e, e), r);
}

/* (e^r - 1 - r) / r² for r within ±ln 2 / 2. */
TNB_INLINE float tnb_float_exp_rest(float r)
{
    float p = 1.392618359e-3f;

    p = fmaf(p, r, 8.363179053e-3f);
    p = fmaf(p, r, 4.166655462e-2f);
    p = fmaf(p, r, 1.666657699e-1f);
    return fmaf(p, r, 0.5f);
}

/* 2^n for -126 <= n <= 127; 0 for n = -127. */
TNB_INLINE float tnb_float_power(int32_t n)
{
    return tnb_bits_float((uint32_t)(n + 127) << 23);
}

/* x = n ln 2 + r: n as the low bits of what is returned, above those of TNB_ROUND_F. */
TNB_INLINE float tnb_float_split(float x, float *r)
{
    const float shifted = fmaf(x, TNB_LOG2E_F, TNB_ROUND_F), n = shifted - TNB_ROUND_F;

    *r = fmaf(n, -TNB_LN2_LOW_F, fmaf(n, -TNB_LN2_HIGH_F, x));
    return shifted;
}

/* The same for n from -127 to 127: 2^n is returned, and 0 for -127. */
TNB_INLINE float tnb_float_split_power(float x, float *r)
{
    const float zero = TNB_ROUND_F + 127.0f, shifted = fmaf(x, TNB_LOG2E_F, zero), n = shifted - zero;

    *r = fmaf(n, -TNB_LN2_LOW_F, fmaf(n, -TNB_LN2_HIGH_F, x));
    return tnb_bits_float(tnb_float_bits(shifted) << 23);
}

TNB_INLINE int32_t tnb_float_whole(float shifted)
{
    return (int32_t)(tnb_float_bits(shifted) - 0x4b400000u);
}

TNB_INLINE float tnb_float_exp(float x)
{
    float r, shifted, p;
    int32_t n, half;

    x = x > 89.0f ? 89.0f : x;
    x = x < -104.5f ? -104.5f : x;
    shifted = tnb_float_split(x, &r);
    p = fmaf(fmaf(tnb_float_exp_rest(r), r, 1.0f), r, 1.0f);
    n = tnb_float_whole(shifted);
    half = n >> 1; /* 2^n may be no float32 */
    return p * tnb_float_power(half) * tnb_float_power(n - half);
}

/* The same for x up to 0: 0 for what is below 2^-124. */
TNB_INLINE float tnb_float_exp_below(float x)
{
    float r, power = tnb_float_split_power(x, &r);

    return x < -86.6f ? 0.0f : fmaf(fmaf(tnb_float_exp_rest(r), r, 1.0f), r, 1.0f) * power;
}

TNB_INLINE float tnb_float_expm1(float x)
{
    float r, shifted, p, half, y;

    y = x > 89.0f ? 89.0f : x;
    y = y < -18.0f ? -18.0f : y;
    shifted = tnb_float_split(y, &r);
    p = fmaf(tnb_float_exp_rest(r) * r, r, r);
    half = tnb_float_power(tnb_float_whole(shifted) - 1);
    y = fmaf(p, half, half - 0.5f);
    return fabsf(x) < 1e-8f ? x : y + y;
}

TNB_INLINE float tnb_float_log(float x)
{
    const bool tiny = x < 1.17549435e-38f;
    const uint32_t bits = tnb_float_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3u; /* of √½ */
    const float f = tnb_bits_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float e = (float)((int32_t)bits >> 23) - (tiny ? 23.0f : 0.0f);
    float p = 6.971611471e-2f, y;

    p = fmaf(p, f, -1.147973385e-1f);
    p = fmaf(p, f, 1.168541992e-1f);
    p = fmaf(p, f, -1.242568733e-1f);
    p = fmaf(p, f, 1.424905765e-1f);
    p = fmaf(p, f, -1.666780232e-1f);
    p = fmaf(p, f, 2.000071575e-1f);
    p = fmaf(p, f, -2.499999696e-1f);
    p = fmaf(p, f, 3.333333118e-1f);
    y = fmaf(e, TNB_LN2_LOW_F, f * f * f * p);
    y = fmaf(-0.5f * f, f, y) + f;
    y = fmaf(e, TNB_LN2_HIGH_F, y);
    y = x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
    return x == INFINITY ? x : y;
}

TNB_INLINE float tnb_float_tanh(float x)
{
    const float a = fabsf(x), z = x * x, b = a > 10.0f ? 10.0f : a;
    float p = -6.26911972e-3f, far;

    p = fmaf(p, z, 2.111095905e-2f);
    p = fmaf(p, z, -5.387394885e-2f);
    p = fmaf(p, z, 1.333291537e-1f);
    p = fmaf(p, z, -3.333333033e-1f);
    far = fmaf(-2.0f, tnb_float_over(tnb_float_exp(2.0f * b) + 1.0f), 1.0f);
    return a < 0.6f ? fmaf(p * z, x, x) : copysignf(far, x);
}

TNB_INLINE float tnb_float_sigmoid(float x)
{
    const float e = tnb_float_exp(-fabsf(x)), y = tnb_float_over(1.0f + e);

    return x < 0.0f ? e * y : y;
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), and that is 2 artanh(e / (2 + e)). */
TNB_INLINE float tnb_float_softrelu(float x)
{
    const float e = tnb_float_exp(-fabsf(x)), s = e * tnb_float_over(2.0f + e), z = s * s;
    float p = 1.161216461e-1f;

    p = fmaf(p, z, 1.08532879e-1f);
    p = fmaf(p, z, 1.4296179e-1f);
    p = fmaf(p, z, 1.999985317e-1f);
    p = fmaf(p, z, 3.333333366e-1f);
    p = fmaf(p * z, s, s);
    return (x <= 0.0f ? 0.0f : x) + (p + p);
}

/* ---- of the normal distribution ------------------------------------------------------------------------ */

#define TNB_TAIL_END 13.27f /* there e^(-t²/2) is made 0: what is smaller is no normal float32 */

/* e^(-t²/2) = e^(high + low), for t up to TNB_TAIL_END. */
TNB_INLINE float tnb_float_bell(float high, float low)
{
    float r, power = tnb_float_split_power(high, &r);

    r += low;
    return fmaf(fmaf(tnb_float_exp_rest(r), r, 1.0f), r, 1.0f) * power;
}

/* What e^(-t²/2) is multiplied by, so that it is the probability of being below -t: smooth, and no difference
 * of numbers close to one another. A polynomial of (t - 3.5) / (t + 3.5) over t + 3.5. */
TNB_INLINE float tnb_float_ratio(float t)
{
    const float r = tnb_float_over(t + 3.5f), m = fmaf(-7.0f, r, 1.0f);
    float p = 1.265536597e-4f;

    p = fmaf(p, m, 4.496006192e-4f);
    p = fmaf(p, m, -4.953668966e-4f);
    p = fmaf(p, m, -3.194987791e-3f);
    p = fmaf(p, m, 6.489086272e-3f);
    p = fmaf(p, m, 1.741099389e-2f);
    p = fmaf(p, m, -1.160521285e-1f);
    p = fmaf(p, m, 3.15424674e-1f);
    p = fmaf(p, m, -5.65561785e-1f);
    p = fmaf(p, m, 7.444160793e-1f);
    return p * r;
}

/* x P(X < x) = max(x, 0) - |x| P(X < -|x|): nothing cancels, however far below 0 x is. */
TNB_INLINE float tnb_float_gelu(float x)
{
    const float t = fminf(fabsf(x), TNB_TAIL_END), h = -0.5f * t, s = h * t;
    const float below = tnb_float_bell(s, fmaf(h, t, -s)) * tnb_float_ratio(t);

    return fmaf(-t, below, fmaf(fabsf(x), 0.5f, 0.5f * x));
}

/* Its derivative: P(X < x) + x e^(-x²/2) / √(2π). */
TNB_INLINE float tnb_float_gelu_slope(float x)
{
    const float a = fabsf(x), t = a > TNB_TAIL_END ? TNB_TAIL_END : a, h = -0.5f * t, s = h * t;
    const float below =
        tnb_float_bell(s, fmaf(h, t, -s)) * fmaf(-0.398942280f, t, tnb_float_ratio(t)); /* of -|x| */

    return x < 0.0f ? below : 1.0f - below;
}

/* ---- of the normal distribution, for results of 16 bits ------------------------------------------------ */

/* They cost half as much. The f32 is off by less than 2^-16.5 of the result where a float16 of it is normal,
 * by less than 2^-14 where a bfloat16 is: the 16 bits are the correctly rounded ones, or their neighbours.
 * There is no reciprocal, for the logarithm is a polynomial. Its largest error is the smallest possible. */

#define TNB_SHORT_GELU_END 13.27f  /* from here on the result is made 0: a bfloat16 of it is not normal */
#define TNB_SHORT_SLOPE_END 13.45f /* the same */

/* 2^(whole + q u) is the returned power of 2 times `*fraction`, for exponents from -131 to 0; the power is 0
 * at -132. The fraction has a factor of 1/32, so that the power is a normal float32. */
TNB_INLINE float tnb_float_short_power(float whole, float q, float u, float *fraction)
{
    const float zero = TNB_ROUND_F + 132.0f + whole, shifted = fmaf(q, u, zero),
                r = fmaf(q, u, zero - shifted);
    float p = 2.990672947e-4f; /* 2^r / 32 */

    p = fmaf(p, r, 1.747432165e-3f);
    p = fmaf(p, r, 7.507732138e-3f);
    p = fmaf(p, r, 2.166005597e-2f);
    *fraction = fmaf(p, r, 3.124997765e-2f);
    return tnb_bits_float(tnb_float_bits(shifted) << 23);
}

/* As tnb_float_gelu: log2 P(X < -t) is -16 + q u. */
TNB_INLINE float tnb_float_short_gelu(float x)
{
    const float t = fminf(fabsf(x), TNB_SHORT_GELU_END), u = t - 4.169569492f;
    float q = -2.20460894e-9f, power, fraction;

    q = fmaf(q, u, 7.474859842e-8f);
    q = fmaf(q, u, -1.063411446e-6f);
    q = fmaf(q, u, 9.146154298e-6f);
    q = fmaf(q, u, -6.596228923e-5f);
    q = fmaf(q, u, 5.022624973e-4f);
    q = fmaf(q, u, -3.927387763e-3f);
    q = fmaf(q, u, -6.897360682e-1f);
    q = fmaf(q, u, -6.329820633f);
    power = tnb_float_short_power(-16.0f, q, u, &fraction);
    return fmaf(-(t * fraction), power, fmaf(fabsf(x), 0.5f, 0.5f * x));
}

/* Below 0 the slope is (0.7471756 - 0.99386007 t) 2^(-14 + q u), and the root of that is within 2^-42 of its
 * own. */
TNB_INLINE float tnb_float_short_gelu_slope(float x)
{
    const float a = fabsf(x), t = a > TNB_SHORT_SLOPE_END ? TNB_SHORT_SLOPE_END : a, u = t - 4.226677895f;
    float q = -6.662629476e-11f, power, fraction, below;

    q = fmaf(q, u, 2.165394974e-9f);
    q = fmaf(q, u, -2.658882892e-8f);
    q = fmaf(q, u, 1.54580917e-7f);
    q = fmaf(q, u, -5.716717055e-7f);
    q = fmaf(q, u, 3.78251616e-6f);
    q = fmaf(q, u, -3.215453762e-5f);
    q = fmaf(q, u, 1.994593331e-4f);
    q = fmaf(q, u, -1.129204873e-3f);
    q = fmaf(q, u, -7.147801518e-1f);
    q = fmaf(q, u, -6.134983063f);
    power = tnb_float_short_power(-14.0f, q, u, &fraction);
    below = fmaf(t, -0.99386007f, 0.7471756f) * fraction * power; /* of -|x| */
    return x < 0.0f ? below : 1.0f - below;
}

TNB_INLINE float tnb_float_erf(float x)
{
    const float a = fabsf(x), z = x * x, b = a > 4.0f ? 4.0f : a, s = b * b;
    float p = -6.325501609e-4f, far;

    p = fmaf(p, z, 5.052985193e-3f);
    p = fmaf(p, z, -2.680375674e-2f);
    p = fmaf(p, z, 1.128274908e-1f);
    p = fmaf(p, z, -3.761257476e-1f);
    p = fmaf(p, z, 1.28379161e-1f); /* 1 less than the first coefficient, for a bit more */
    far = fmaf(-2.0f, tnb_float_bell(-s, -fmaf(b, b, -s)) * tnb_float_ratio(1.41421356f * b), 1.0f);
    return a < 0.85f ? fmaf(p, x, x) : copysignf(far, x);
}

#endif
