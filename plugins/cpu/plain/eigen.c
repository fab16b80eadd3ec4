/*
 * Real eigenvalues of matrices that need not be symmetric: A = Q T Q', T being made upper triangular by
 * rotations, first below its second diagonal, then by QR steps with shifts. Complex pairs are refused.
 */
#include <math.h>

#include "decompose.h"

#define EPSILON 2.220446049250313e-16
#define REAL_MAX 1e-15 /* an imaginary part up to this counts as 0, as in MXNet */
#define STEPS_MAX 300  /* QR steps for one eigenvalue; three are usual */
#define LARGE 1e100

typedef struct schur {
    int64_t n;
    double *t, *q, *cs; /* q NULL: no vectors are wanted; cs: rotations of a step, 2 n */
} schur;

/* Columns x and y become c x + s y, c y - s x. */
static void columns_rotate(int64_t rows, int64_t n, double *a, int64_t x, int64_t y, double c, double s)
{
    for (int64_t i = 0; i < rows; i++) {
        const double p = a[i * n + x], q = a[i * n + y];

        a[i * n + x] = c * p + s * q;
        a[i * n + y] = c * q - s * p;
    }
}

static void rows_rotate(int64_t first, int64_t n, double *a, int64_t x, int64_t y, double c, double s)
{
    for (int64_t j = first; j < n; j++) {
        const double p = a[x * n + j], q = a[y * n + j];

        a[x * n + j] = c * p + s * q;
        a[y * n + j] = c * q - s * p;
    }
}

/* Rows and columns i and i + 1, so that T stays similar. */
static void both_rotate(const schur *h, int64_t i, double c, double s)
{
    rows_rotate(0, h->n, h->t, i, i + 1, c, s);
    columns_rotate(h->n, h->n, h->t, i, i + 1, c, s);
    if (h->q)
        columns_rotate(h->n, h->n, h->q, i, i + 1, c, s);
}

static void hessenberg(const schur *h)
{
    const int64_t n = h->n;

    for (int64_t k = 0; k + 2 < n; k++)
        for (int64_t i = n - 1; i > k + 1; i--) {
            const double x = h->t[(i - 1) * n + k], y = h->t[i * n + k], r = hypot(x, y);

            if (y == 0)
                continue;
            both_rotate(h, i - 1, x / r, y / r);
            h->t[i * n + k] = 0;
        }
}

/* Half the difference of the eigenvalues of (a, b; c, d), squared. */
static double discriminant(double a, double b, double c, double d)
{
    return (a - d) / 2 * ((a - d) / 2) + b * c;
}

/* Rows first … last of T less shift are Q R; they become R Q and the shift. */
static void qr_step(const schur *h, int64_t first, int64_t last, double shift)
{
    const int64_t n = h->n;
    double *t = h->t;

    for (int64_t i = first; i <= last; i++)
        t[i * n + i] -= shift;
    for (int64_t i = first; i < last; i++) {
        const double x = t[i * n + i], y = t[(i + 1) * n + i], r = hypot(x, y);

        h->cs[2 * i] = r > 0 ? x / r : 1;
        h->cs[2 * i + 1] = r > 0 ? y / r : 0;
        rows_rotate(i, n, t, i, i + 1, h->cs[2 * i], h->cs[2 * i + 1]);
        t[(i + 1) * n + i] = 0;
    }
    for (int64_t i = first; i < last; i++) {
        columns_rotate(i + 2, n, t, i, i + 1, h->cs[2 * i], h->cs[2 * i + 1]);
        if (h->q)
            columns_rotate(n, n, h->q, i, i + 1, h->cs[2 * i], h->cs[2 * i + 1]);
    }
    for (int64_t i = first; i <= last; i++)
        t[i * n + i] += shift;
}

/* Two rows that hang on no others: a rotation parts them, or their eigenvalues are complex. */
static int pair_part(const schur *h, int64_t i, double real_max)
{
    const double *t = &h->t[i * (h->n + 1)];
    const double c = t[h->n], half = (t[0] - t[h->n + 1]) / 2,
                 square = discriminant(t[0], t[1], c, t[h->n + 1]);
    double z, r;

    if (square < 0 && sqrt(-square) > real_max)
        return 1;
    z = half + copysign(sqrt(fmax(square, 0)), half);
    r = hypot(z, c);
    both_rotate(h, i, z / r, c / r);
    h->t[(i + 1) * h->n + i] = 0;
    return 0;
}

/* The shift of step `step`: the eigenvalue of the last two rows that is near the last element. */
static double shift_of(const double *t, int64_t n, int64_t last, int step)
{
    const double *at = &t[(last - 1) * (n + 1)], d = at[n + 1];
    const double half = (at[0] - d) / 2, square = discriminant(at[0], at[1], at[n], d);

    if (step % 10 == 9) /* out of a circle */
        return d + 0.75 * fabs(at[n]);
    return square < 0 ? d + half
                      : d - (square > 0 ? at[1] * at[n] / (half + copysign(sqrt(square), half)) : 0);
}

static int triangularize(const schur *h, double real_max)
{
    const int64_t n = h->n;
    int step = 0;

    for (int64_t last = n - 1; last > 0;) {
        int64_t first = last;

        for (; first > 0; first--) {
            double *below = &h->t[first * n + first - 1];
            const double beside = fabs(h->t[(first - 1) * (n + 1)]) + fabs(h->t[first * (n + 1)]);

            if (fabs(*below) <= EPSILON * (beside > 0 ? beside : 1)) {
                *below = 0;
                break;
            }
        }
        if (first == last) {
            last--;
            step = 0;
        } else if (first == last - 1) {
            if (pair_part(h, first, real_max))
                return 1;
            last -= 2;
            step = 0;
        } else if (step == STEPS_MAX) {
            return 1;
        } else {
            qr_step(h, first, last, shift_of(h->t, n, last, step++));
        }
    }
    return 0;
}

/* The eigenvector of T's diagonal element k, by substitution from below; x (k + 1). */
static void substitute(const schur *h, int64_t k, double *x)
{
    const int64_t n = h->n;

    x[k] = 1;
    for (int64_t i = k; i-- > 0;) {
        double sum = 0, gap = h->t[k * (n + 1)] - h->t[i * (n + 1)];

        for (int64_t j = i + 1; j <= k; j++)
            sum += h->t[i * n + j] * x[j];
        if (fabs(gap) < EPSILON)
            gap = EPSILON;
        x[i] = sum / gap;
        for (int64_t j = k; fabs(x[i]) > LARGE && j >= i; j--) /* x[i] last */
            x[j] /= LARGE;
    }
}

int tncpu_la_eig(int64_t n, double *a, double *w, double *v, double *work)
{
    const schur h = {n, a, v ? work : NULL, work + n * n};
    double *x = h.cs + n, most = 0;
    int exponent;

    for (int64_t i = 0; i < n * n; i++)
        most = fmax(most, fabs(a[i]));
    (void)frexp(most, &exponent);
    for (int64_t i = 0; i < n * n; i++) { /* at most 1 */
        a[i] = ldexp(a[i], -exponent);
        work[i] = i % (n + 1) == 0;
    }
    hessenberg(&h);
    if (triangularize(&h, ldexp(REAL_MAX, -exponent)))
        return 1;
    for (int64_t k = 0; k < n; k++) {
        double length = 0;

        w[k] = ldexp(a[k * (n + 1)], exponent);
        if (!v)
            continue;
        substitute(&h, k, x);
        for (int64_t i = 0; i < n; i++) {
            v[k * n + i] = 0;
            for (int64_t j = 0; j <= k; j++)
                v[k * n + i] += work[i * n + j] * x[j];
            length = hypot(length, v[k * n + i]);
        }
        for (int64_t i = 0; i < n; i++)
            v[k * n + i] /= length;
    }
    return 0;
}
