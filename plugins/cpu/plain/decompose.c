/* See decompose.h. */
#include "decompose.h"

#include <math.h>

#define EPSILON 2.220446049250313e-16
#define SWEEPS_MAX 100 /* of Jacobi's rotations; ten are usual */
#define STEPS_MAX 200  /* QR steps for one eigenvalue; three are usual */

static void swap(double *a, double *b)
{
    const double t = *a;

    *a = *b;
    *b = t;
}

static double dot(int64_t n, const double *x, int64_t x_step, const double *y, int64_t y_step)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i * x_step] * y[i * y_step];
    return sum;
}

/* x, y = c x + s y, c y - s x */
static void rotate(int64_t n, double *x, double *y, int64_t step, double c, double s)
{
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i * step], b = y[i * step];

        x[i * step] = c * a + s * b;
        y[i * step] = c * b - s * a;
    }
}

static void identity(int64_t n, double *a)
{
    for (int64_t i = 0; i < n * n; i++)
        a[i] = i % (n + 1) == 0;
}

/* Divides by the power of two above all elements, which then are at most 1: its exponent. */
static int scale(int64_t n, double *a)
{
    double most = 0;
    int exponent;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    (void)frexp(most, &exponent);
    for (int64_t i = 0; i < n; i++)
        a[i] = ldexp(a[i], -exponent);
    return exponent;
}

void tncpu_la_product(int64_t m, int64_t n, int64_t k, const double *a, bool ta, const double *b, bool tb,
                      double *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = dot(k, a + (ta ? i : i * k), ta ? m : 1, b + (tb ? j * k : j), tb ? 1 : n);
}

/* ---- triangles ----------------------------------------------------------------------------------- */

/* From the right as from the left: the columns of b are its rows then, and A is transposed. Rows go from the
 * end where A has one element (solve), or from the other one. */
static void triangle(tncpu_la_triangle how, int64_t m, int64_t n, const double *a, double *b, bool solve)
{
    const int64_t side = how.right ? n : m, count = how.right ? m : n, row = how.right ? 1 : n,
                  col = how.right ? n : 1;
    const bool turned = how.transpose != how.right, lower = how.lower != turned;

    for (int64_t step = 0; step < side; step++) {
        const int64_t i = lower == solve ? step : side - 1 - step, first = lower ? 0 : i + 1,
                      others = lower ? i : side - 1 - i;
        const double *line = turned ? a + first * side + i : a + i * side + first, own = a[i * (side + 1)];

        for (int64_t j = 0; j < count; j++) {
            double *at = b + i * row + j * col;
            const double sum = dot(others, line, turned ? side : 1, b + first * row + j * col, row);

            *at = solve ? (how.alpha * *at - sum) / own : how.alpha * (own * *at + sum);
        }
    }
}

void tncpu_la_trmm(tncpu_la_triangle how, int64_t m, int64_t n, const double *a, double *b)
{
    triangle(how, m, n, a, b, false);
}

void tncpu_la_trsm(tncpu_la_triangle how, int64_t m, int64_t n, const double *a, double *b)
{
    triangle(how, m, n, a, b, true);
}

/* ---- Cholesky ------------------------------------------------------------------------------------ */

int tncpu_la_cholesky(int64_t n, double *a)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            const double rest = a[i * n + j] - dot(j, &a[i * n], 1, &a[j * n], 1);

            if (i == j && !(rest > 0))
                return 1;
            a[i * n + j] = i == j ? sqrt(rest) : rest / a[j * n + j];
        }
    return 0;
}

/* L becomes its inverse M, column by column, then the lower triangle of M' M. */
int tncpu_la_cholesky_inverse(int64_t n, double *a)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i * n + i] == 0)
            return 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) /* row i of L is needed behind column j only */
            a[i * n + j] =
                i == j ? 1 / a[i * n + i] : -(dot(i - j, &a[i * n + j], 1, &a[j * n + j], n)) / a[i * n + i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            a[i * n + j] = dot(n - i, &a[i * n + i], n, &a[i * n + j], n);
    return 0;
}

/* ---- LU ------------------------------------------------------------------------------------------ */

bool tncpu_la_lu(int64_t n, double *a, double *work)
{
    bool odd = false;

    for (int64_t j = 0; j < n; j++) {
        int64_t best = j;

        for (int64_t i = j + 1; i < n; i++)
            best = fabs(a[i * n + j]) > fabs(a[best * n + j]) ? i : best;
        work[j] = (double)best;
        odd ^= best != j;
        for (int64_t k = 0; k < n && best != j; k++)
            swap(&a[j * n + k], &a[best * n + k]);
        for (int64_t i = j + 1; i < n && a[j * n + j] != 0; i++) {
            const double factor = a[i * n + j] /= a[j * n + j];

            for (int64_t k = j + 1; k < n; k++)
                a[i * n + k] -= factor * a[j * n + k];
        }
    }
    return odd;
}

int tncpu_la_solve(int64_t n, int64_t k, double *a, double *b, double *work)
{
    (void)tncpu_la_lu(n, a, work);
    for (int64_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = (int64_t)work[i];

        for (int64_t j = 0; j < k && from != i; j++)
            swap(&b[i * k + j], &b[from * k + j]);
        for (int64_t j = 0; j < k; j++)
            b[i * k + j] -= dot(i, &a[i * n], 1, &b[j], k);
    }
    for (int64_t i = n; i-- > 0;)
        for (int64_t j = 0; j < k; j++)
            b[i * k + j] = (b[i * k + j] - dot(n - i - 1, &a[i * n + i + 1], 1, &b[(i + 1) * k + j], k)) /
                           a[i * (n + 1)];
    return 0;
}

/* Gauss and Jordan, in place: rows change places for the largest pivot, columns do at the end. */
int tncpu_la_inverse(int64_t n, double *a, double *work)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t best = j;
        double pivot;

        for (int64_t i = j + 1; i < n; i++)
            best = fabs(a[i * n + j]) > fabs(a[best * n + j]) ? i : best;
        work[j] = (double)best;
        for (int64_t k = 0; k < n && best != j; k++)
            swap(&a[j * n + k], &a[best * n + k]);
        pivot = a[j * n + j];
        if (pivot == 0)
            return 1;
        a[j * n + j] = 1;
        for (int64_t k = 0; k < n; k++)
            a[j * n + k] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            const double factor = a[i * n + j];

            if (i == j)
                continue;
            a[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                a[i * n + k] -= factor * a[j * n + k];
        }
    }
    for (int64_t j = n; j-- > 0;)
        for (int64_t i = 0, from = (int64_t)work[j]; i < n && from != j; i++)
            swap(&a[i * n + j], &a[i * n + from]);
    return 0;
}

/* ---- LQ ------------------------------------------------------------------------------------------ */

/* The reflection that leaves of x (n) its first element alone; x[1] … become its vector, whose first
 * element is 1. Returns its factor, as LAPACK's larfg. */
static double reflection(int64_t n, double *x)
{
    double rest = 0, beta;

    for (int64_t i = 1; i < n; i++)
        rest = hypot(rest, x[i]);
    if (rest == 0)
        return 0;
    beta = -copysign(hypot(x[0], rest), x[0]);
    for (int64_t i = 1; i < n; i++)
        x[i] /= x[0] - beta;
    rest = (beta - x[0]) / beta;
    x[0] = beta;
    return rest;
}

/* y -= tau (y v) v, where v[0] counts as 1 */
static void reflect(int64_t n, double tau, const double *v, double *y)
{
    const double sum = tau * (y[0] + dot(n - 1, v + 1, 1, y + 1, 1));

    y[0] -= sum;
    for (int64_t i = 1; i < n; i++)
        y[i] -= sum * v[i];
}

int tncpu_la_lq(int64_t m, int64_t n, double *a, double *l, double *work)
{
    for (int64_t i = 0; i < m; i++) {
        work[i] = reflection(n - i, &a[i * n + i]);
        for (int64_t row = i + 1; row < m; row++)
            reflect(n - i, work[i], &a[i * n + i], &a[row * n + i]);
    }
    for (int64_t i = 0; i < m; i++) /* columns behind i of L are zero, before them of Q */
        for (int64_t j = 0; j < m; j++) {
            l[i * m + j] = a[i * n + j];
            a[i * n + j] = j < i ? 0 : a[i * n + j];
        }
    for (int64_t i = m; i-- > 0;) {
        for (int64_t row = i + 1; row < m; row++)
            reflect(n - i, work[i], &a[i * n + i], &a[row * n + i]);
        a[i * n + i] = 1 - work[i];
        for (int64_t j = i + 1; j < n; j++)
            a[i * n + j] *= -work[i];
    }
    return 0;
}

/* ---- symmetric matrices -------------------------------------------------------------------------- */

/* Sine and cosine of the rotation that makes 2 by 2 elements diagonal: (aa, ab; ab, bb). */
static void angle(double aa, double ab, double bb, double *c, double *s)
{
    const double zeta = (bb - aa) / (2 * ab), t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));

    *c = 1 / hypot(1, t);
    *s = t * *c;
}

static int jacobi_sweep(int64_t n, double *a, double *v, double least)
{
    int turns = 0;
    double c, s;

    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) {
            if (!(fabs(a[p * n + q]) > least))
                continue;
            angle(a[p * n + p], a[p * n + q], a[q * n + q], &c, &s);
            rotate(n, &a[p * n], &a[q * n], 1, c, -s);
            rotate(n, &a[p], &a[q], n, c, -s);
            rotate(n, &v[p * n], &v[q * n], 1, c, -s);
            a[p * n + q] = a[q * n + p] = 0;
            turns++;
        }
    return turns;
}

int tncpu_la_eigh(int64_t n, double *a, double *w, bool vectors, double *work)
{
    const int unit = scale(n * n, a);
    const double least = EPSILON / 16 * sqrt(dot(n * n, a, 1, a, 1));
    int sweeps = 0;

    (void)vectors;
    identity(n, work);
    while (jacobi_sweep(n, a, work, least))
        if (++sweeps == SWEEPS_MAX)
            return 1;
    for (int64_t i = 0; i < n; i++)
        w[i] = a[i * (n + 1)];
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;

        for (int64_t k = i + 1; k < n; k++)
            best = w[k] < w[best] ? k : best;
        swap(&w[i], &w[best]);
        for (int64_t j = 0; j < n; j++) {
            a[i * n + j] = work[best * n + j];
            work[best * n + j] = work[i * n + j];
        }
        w[i] = ldexp(w[i], unit);
    }
    return 0;
}

/* ---- singular values ----------------------------------------------------------------------------- */

static int rows_sweep(int64_t m, int64_t n, double *a, double *u, double least)
{
    int turns = 0;
    double c, s;

    for (int64_t p = 0; p < m; p++)
        for (int64_t q = p + 1; q < m; q++) {
            double *x = &a[p * n], *y = &a[q * n];
            const double xx = dot(n, x, 1, x, 1), xy = dot(n, x, 1, y, 1), yy = dot(n, y, 1, y, 1);

            if (!(fabs(xy) > EPSILON * sqrt(xx) * sqrt(yy)) || !(fmin(xx, yy) > least))
                continue;
            angle(xx, xy, yy, &c, &s);
            rotate(n, x, y, 1, c, -s);
            rotate(m, &u[p], &u[q], m, c, -s);
            turns++;
        }
    return turns;
}

/* Row `i` becomes a unit vector that is orthogonal to the rows before it: of an axis what is not in them. */
static void row_complete(int64_t i, int64_t n, double *a)
{
    double *row = &a[i * n], length = 0;

    for (int64_t axis = 0; axis < n && length * length * (double)n < 0.5; axis++) {
        for (int64_t j = 0; j < n; j++)
            row[j] = j == axis;
        for (int64_t k = 0; k < 2 * i; k++) { /* twice: the first time leaves rounding errors */
            const double *other = &a[k % i * n], part = dot(n, other, 1, row, 1);

            for (int64_t j = 0; j < n; j++)
                row[j] -= part * other[j];
        }
        length = sqrt(dot(n, row, 1, row, 1));
    }
    for (int64_t j = 0; j < n; j++)
        row[j] /= length;
}

/* Jacobi's rotations of pairs of rows until all are orthogonal: their lengths are the singular values. */
int tncpu_la_svd(int64_t m, int64_t n, double *a, double *ut, double *s, double *work)
{
    const int unit = scale(m * n, a);
    const double size = sqrt(dot(m * n, a, 1, a, 1)), none = EPSILON * size;
    int sweeps = 0;

    (void)work;
    identity(m, ut);
    while (rows_sweep(m, n, a, ut, none * none))
        if (++sweeps == SWEEPS_MAX)
            return 1;
    for (int64_t i = 0; i < m; i++)
        s[i] = sqrt(dot(n, &a[i * n], 1, &a[i * n], 1));
    for (int64_t i = 0; i < m; i++) {
        int64_t best = i;

        for (int64_t k = i + 1; k < m; k++)
            best = s[k] > s[best] ? k : best;
        swap(&s[i], &s[best]);
        for (int64_t j = 0; j < n && best != i; j++)
            swap(&a[i * n + j], &a[best * n + j]);
        for (int64_t j = 0; j < m && best != i; j++)
            swap(&ut[j * m + i], &ut[j * m + best]);
        if (s[i] > none)
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] /= s[i];
        else
            row_complete(i, n, a);
        s[i] = ldexp(s[i], unit);
    }
    return 0;
}
