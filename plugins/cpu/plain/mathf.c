/* Functions of loops that no C library has, in double. */
#include "mathf.h"

double tncpu_softrelu_f64(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* The logarithmic derivative of gamma: reflection for x <= 0, recurrence up to 10, then the asymptotic
 * series. */
double tncpu_digamma(double x)
{
    double sum = 0.0, z;

    if (x == floor(x) && x <= 0.0)
        return NAN;
    if (x < 0.0) {
        const double pi = 3.14159265358979323846;

        return tncpu_digamma(1.0 - x) - pi / tan(pi * x);
    }
    for (; x < 10.0; x += 1.0)
        sum -= 1.0 / x;
    z = 1.0 / (x * x);
    z *= 1.0 / 12 -
         z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760)))));
    return sum + log(x) - 0.5 / x - z;
}

/* A start from the logarithm (Winitzki), then Newton steps on erf. */
double tncpu_erfinv(double x)
{
    double l, t, y;

    if (!(x > -1.0 && x < 1.0))
        return x == 1.0 ? INFINITY : x == -1.0 ? -INFINITY : NAN;
    l = log1p(-x * x);
    t = 2.0 / (3.14159265358979323846 * 0.147) + 0.5 * l;
    y = copysign(sqrt(sqrt(t * t - l / 0.147) - t), x);
    for (int32_t step = 0; step < 4; step++) {
        double error = fabs(x) < 0.5 ? x - erf(y) /* kept exact near 0, and near 1 */
                       : x > 0       ? erfc(y) - (1.0 - x)
                                     : (1.0 + x) - erfc(-y);

        y += error / (1.1283791670955126 * exp(-y * y));
    }
    return y;
}

double tncpu_gelu_slope(double x)
{
    return 0.5 * (1.0 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x);
}

double tncpu_lgamma(double x)
{
    int32_t sign;

    return lgamma_r(x, &sign);
}
