/*
 * Distributions against their closed forms: every operator that draws, over several parameters, with fixed
 * seeds. Continuous ones by Kolmogorov and Smirnov's test, discrete ones by chi-square; mean and variance.
 * A draw that is as it should be fails a test of one in 100,000; the seeds are fixed, so it does so never or
 * always.
 */
#include "api/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define DRAWS 20000
#define RARE 1e-5 /* the smallest probability of what was seen */

/* ---- functions of distributions ------------------------------------------------------------------------ */

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

/* The regularised lower incomplete gamma function: its series, or the continued fraction (Lentz). */
static double gamma_lower(double a, double x)
{
    const double front = exp(a * log(x) - x - log_gamma(a));

    if (!(x > 0))
        return 0;
    if (x < a + 1) {
        double term = 1 / a, sum = term;

        for (double n = a + 1; term > sum * 1e-16; n++)
            sum += term *= x / n;
        return front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;

    for (double i = 1; i < 1e7; i++) {
        const double an = -i * (i - a);
        double step;

        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        step = c * d;
        h *= step;
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return 1 - front * h;
}

static double f_uniform(double x, const double *p)
{
    return (x - p[0]) / (p[1] - p[0]);
}

static double f_normal(double x, const double *p)
{
    return 0.5 * erfc((p[0] - x) / p[1] / sqrt(2));
}

static double f_gamma(double x, const double *p)
{
    return gamma_lower(p[0], x / p[1]);
}

static double f_exponential(double x, const double *p)
{
    return -expm1(-x * p[0]);
}

static double f_scaled(double x, const double *p)
{
    return -expm1(-x / p[0]);
}

static double f_rayleigh(double x, const double *p)
{
    return -expm1(-x * x / (2 * p[0] * p[0]));
}

static double f_pareto(double x, const double *p)
{
    return -expm1(-p[0] * log1p(x));
}

static double f_power(double x, const double *p)
{
    return x <= 0 ? 0 : x >= 1 ? 1 : pow(x, p[0]);
}

static double f_weibull(double x, const double *p)
{
    return -expm1(-pow(x, p[0]));
}

static double f_gumbel(double x, const double *p)
{
    return exp(-exp((p[0] - x) / p[1]));
}

static double f_logistic(double x, const double *p)
{
    return 1 / (1 + exp((p[0] - x) / p[1]));
}

static double f_poisson(double x, const double *p)
{
    return x < 0 ? 0 : p[0] == 0 ? 1 : 1 - gamma_lower(floor(x) + 1, p[0]);
}

/* Sums the probabilities of 0 … x. */
static double f_negative(double x, const double *p)
{
    double term = exp(p[0] * log(p[1])), sum = 0;

    for (double k = 0; k <= x; k++) {
        sum += term;
        term *= (k + p[0]) / (k + 1) * (1 - p[1]);
    }
    return sum;
}

static double f_dispersed(double x, const double *p)
{
    const double same[] = {1 / p[1], 1 / (p[0] * p[1] + 1)};

    return p[1] < 1e-12 ? f_poisson(x, p) : f_negative(x, same);
}

static double f_bernoulli(double x, const double *p)
{
    return x < 0 ? 0 : x < 1 ? 1 - p[0] : 1;
}

static double f_logit(double x, const double *p)
{
    const double prob = 1 / (1 + exp(-p[0]));

    return f_bernoulli(x, &prob);
}

static double f_integer(double x, const double *p)
{
    return (floor(x) - p[0] + 1) / (p[1] - p[0]);
}

#define MOMENTS(name, mean, variance)                                                                        \
    static void m_##name(const double *p, double *m, double *v)                                              \
    {                                                                                                        \
        *m = (mean);                                                                                         \
        *v = (variance);                                                                                     \
    }
MOMENTS(uniform, (p[0] + p[1]) / 2, (p[1] - p[0]) * (p[1] - p[0]) / 12)
MOMENTS(normal, p[0], p[1] * p[1])
MOMENTS(gamma, p[0] * p[1], p[0] * p[1] * p[1])
MOMENTS(exponential, 1 / p[0], 1 / p[0] / p[0])
MOMENTS(scaled, p[0], p[0] * p[0])
MOMENTS(rayleigh, p[0] * sqrt(acos(0)), p[0] * p[0] * (2 - acos(0)))
MOMENTS(pareto, p[0] > 1 ? 1 / (p[0] - 1) : NAN,
        p[0] > 4 ? p[0] / ((p[0] - 1) * (p[0] - 1) * (p[0] - 2)) : NAN)
MOMENTS(weibull, tgamma(1 + 1 / p[0]), tgamma(1 + 2 / p[0]) - pow(tgamma(1 + 1 / p[0]), 2))
MOMENTS(power, p[0] / (p[0] + 1), p[0] / ((p[0] + 1) * (p[0] + 1) * (p[0] + 2)))
MOMENTS(gumbel, p[0] + 0.57721566490153286 * p[1], acos(-1) * acos(-1) / 6 * p[1] * p[1])
MOMENTS(logistic, p[0], acos(-1) * acos(-1) / 3 * p[1] * p[1])
MOMENTS(poisson, p[0], p[0])
MOMENTS(negative, p[0] * (1 - p[1]) / p[1], p[0] * (1 - p[1]) / (p[1] * p[1]))
MOMENTS(dispersed, p[0], p[0] + p[1] * p[0] * p[0])
MOMENTS(bernoulli, p[0], p[0] * (1 - p[0]))
MOMENTS(logit, 1 / (1 + exp(-p[0])), 1 / (2 + exp(p[0]) + exp(-p[0])))
MOMENTS(integer, (p[0] + p[1] - 1) / 2, ((p[1] - p[0]) * (p[1] - p[0]) - 1) / 12)

/* ---- the table ----------------------------------------------------------------------------------------- */

#define PARAMETERS 10
#define FORMS 4

typedef struct family {
    const char *name;
    double (*cdf)(double x, const double *p);
    void (*moments)(const double *p, double *mean, double *variance);
    bool discrete;
    struct {
        const char *op, *a, *b;
    } forms[FORMS]; /* names of attributes */
    double p[PARAMETERS][2];
} family;

#define ROW(name, discrete) #name, f_##name, m_##name, discrete
static const family families[] = {
    {ROW(uniform, false),
     {{"_random_uniform", "low", "high"},
      {"_random_uniform_like", "low", "high"},
      {"_sample_uniform", "low", "high"},
      {"_npi_uniform", "low", "high"}},
     {{0, 1}, {-3, 5}, {1e-3, 2e-3}}},
    {ROW(normal, false),
     {{"_random_normal", "loc", "scale"},
      {"_random_normal_like", "loc", "scale"},
      {"_sample_normal", "mu", "sigma"},
      {"_npi_normal", "loc", "scale"}},
     {{0, 1}, {-3, 0.25}, {100, 7}}},
    {ROW(gamma, false),
     {{"_random_gamma", "alpha", "beta"},
      {"_random_gamma_like", "alpha", "beta"},
      {"_sample_gamma", "alpha", "beta"},
      {"_npi_gamma", "shape", "scale"}},
     {{0.05, 1}, {0.5, 2}, {0.999, 1}, {1, 1}, {1.01, 3}, {3.7, 0.5}, {200, 1}, {1e5, 1e-5}, {1e7, 1}}},
    {ROW(exponential, false),
     {{"_random_exponential", "lam", NULL},
      {"_random_exponential_like", "lam", NULL},
      {"_sample_exponential", "lam", NULL}},
     {{1, 0}, {0.01, 0}, {50, 0}}},
    {ROW(poisson, true),
     {{"_random_poisson", "lam", NULL},
      {"_random_poisson_like", "lam", NULL},
      {"_sample_poisson", "lam", NULL}},
     {{0.05, 0}, {1, 0}, {4.5, 0}, {9.99, 0}, {10, 0}, {11.5, 0}, {47, 0}, {900, 0}, {1e5, 0}, {1e7, 0}}},
    {ROW(negative, true),
     {{"_random_negative_binomial", "k", "p"},
      {"_random_negative_binomial_like", "k", "p"},
      {"_sample_negative_binomial", "k", "p"}},
     {{1, 0.5}, {3, 0.1}, {40, 0.9}, {2, 0.004}, {500, 0.5}}},
    {ROW(dispersed, true),
     {{"_random_generalized_negative_binomial", "mu", "alpha"},
      {"_random_generalized_negative_binomial_like", "mu", "alpha"},
      {"_sample_generalized_negative_binomial", "mu", "alpha"}},
     {{2, 0.3}, {20, 3}, {7, 1e-13}, {300, 0.01}, {15, 0}}},
    {ROW(integer, true),
     {{"_random_randint", "low", "high"}},
     {{0, 7}, {-5, 3}, {-1000000, 1000000}, {3, 5}}},
    {ROW(scaled, false), {{"_npi_exponential", "scale", NULL}}, {{1, 0}, {0.02, 0}}},
    {ROW(rayleigh, false), {{"_npi_rayleigh", "scale", NULL}}, {{1, 0}, {30, 0}}},
    {ROW(pareto, false), {{"_npi_pareto", "a", NULL}}, {{0.5, 0}, {3, 0}, {10, 0}}},
    {ROW(weibull, false), {{"_npi_weibull", "a", NULL}}, {{0.5, 0}, {1, 0}, {7, 0}}},
    {ROW(power, false), {{"_npi_powerd", "a", NULL}}, {{0.5, 0}, {1, 0}, {7, 0}}},
    {ROW(gumbel, false), {{"_npi_gumbel", "loc", "scale"}}, {{0, 1}, {-4, 3}}},
    {ROW(logistic, false), {{"_npi_logistic", "loc", "scale"}}, {{0, 1}, {5, 0.1}}},
    {ROW(bernoulli, true), {{"_npi_bernoulli", "prob", NULL}}, {{0.5, 0}, {0.03, 0}}},
    {ROW(logit, true), {{"_npi_bernoulli", "logit", NULL}}, {{0.5, 0}, {-3, 0}}},
};
#define FAMILIES (sizeof families / sizeof *families)

/* ---- tests of numbers ---------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The probability of a distance at least as large. */
static double kolmogorov(const family *f, const double *p, double *x, size_t n)
{
    const double root = sqrt((double)n);
    double most = 0, sum = 0, scaled;

    qsort(x, n, sizeof *x, ascending);
    for (size_t i = 0; i < n; i++) {
        const double c = f->cdf(x[i], p);

        most = fmax(most, fmax(c - (double)i / (double)n, (double)(i + 1) / (double)n - c));
    }
    scaled = (root + 0.12 + 0.11 / root) * most;
    for (int k = 1; k < 100; k++)
        sum += 2 * (k % 2 ? 1 : -1) * exp(-2.0 * k * k * scaled * scaled);
    return scaled < 0.2 ? 1 : sum;
}

/* Cells between places half a deviation apart, joined until 10 are expected in each. */
static double chi_square(const family *f, const double *p, double *x, size_t n)
{
    double mean, variance, sum = 0, before = 0, expected = 0;
    size_t cells = 0, at = 0, seen = 0;

    qsort(x, n, sizeof *x, ascending);
    f->moments(p, &mean, &variance);
    for (int k = -8; k <= 9; k++) {
        const double edge = k == 9 ? INFINITY : floor(mean + 0.5 * k * sqrt(variance)),
                     c = k == 9 ? 1 : fmax(0, fmin(1, f->cdf(edge, p)));

        expected += (c - before) * (double)n;
        before = c;
        for (; at < n && x[at] <= edge; at++)
            seen++;
        if (k < 9 && (expected < 10 || (1 - c) * (double)n < 10))
            continue;
        if (expected < 1e-6 * (double)n)
            return seen ? 0 : 1;
        sum += ((double)seen - expected) * ((double)seen - expected) / expected;
        cells++;
        expected = 0;
        seen = 0;
    }
    return cells < 2 ? 1 : 1 - gamma_lower((double)(cells - 1) / 2, sum / 2);
}

/* What the numbers say against the distribution; "" nothing. */
static void judge(const family *f, const double *p, double *x, size_t n, char *text, size_t size)
{
    double mean = 0, squares = 0, m, v, chance;

    text[0] = '\0';
    f->moments(p, &m, &v);
    for (size_t i = 0; i < n; i++)
        mean += (x[i] - m) / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - m) * (x[i] - m) / (double)n;
    if (fabs(mean) > 4.5 * sqrt(v / (double)n) + 1e-12 * fabs(m))
        (void)snprintf(text, size, "the mean is %g, wanted %g", m + mean, m);
    if (v > 0 && (squares < 0.6 * v || squares > 1.5 * v))
        (void)snprintf(text, size, "the variance is %g, wanted %g", squares, v);
    chance = (f->discrete ? chi_square : kolmogorov)(f, p, x, n);
    if (!(chance > RARE))
        (void)snprintf(text, size, "the probability of such numbers is %g", chance);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Where parameters stand in a call. */
typedef enum place { NUMBERS, TENSORS, MIXED, PLACES } place;

typedef struct form_call {
    const char *attrs[24];
    char texts[12][48];
    uint32_t attr_count, text_count, in_count;
    tn_array *in[2];
} form_call;

static void attr_add(form_call *c, const char *name, const char *format, double value)
{
    char *text = c->texts[c->text_count++];

    (void)snprintf(text, sizeof c->texts[0], format, value);
    c->attrs[c->attr_count++] = name;
    c->attrs[c->attr_count++] = text;
}

/* Three parameters, of which the one in the middle is looked at. */
static tn_array *three(tn_ctx *ctx, double p, double other, int32_t ndim)
{
    const double values[] = {other, p, other};
    const int64_t shape[] = {3, 1};
    tn_array *a = NULL;

    assert_ok(tn_array_from(ctx, TN_F64, ndim, shape, values, &a));
    return a;
}

/* Attributes and inputs of one form of a call. False: there is no such form. */
static bool form_fill(tn_ctx *ctx, const family *f, int form, place where, const double *p, form_call *c)
{
    const char *const op = f->forms[form].op;
    const bool numpy = !strncmp(op, "_npi_", 5), sample = !strncmp(op, "_sample_", 8),
               like = strstr(op, "_like") != NULL, whole = !strcmp(op, "_random_randint");
    const char *const names[] = {f->forms[form].a, f->forms[form].b};
    const uint32_t count = names[1] ? 2 : 1;

    if ((!numpy && where != (sample ? TENSORS : NUMBERS)) || (where == MIXED && count < 2))
        return false;
    for (uint32_t k = 0; k < count; k++) {
        const bool tensor = where == TENSORS || (where == MIXED && k == 1);

        if (tensor)
            c->in[c->in_count++] = three(ctx, p[k], fmin(0.5, fabs(p[k])) + 0.01, sample ? 1 : 2);
        if (numpy || !tensor)
            attr_add(c, names[k], tensor ? "None" : whole || !strcmp(names[k], "k") ? "%.0f" : "%.17g", p[k]);
    }
    if (like)
        assert_ok(tn_array_zeros(ctx, TN_F64, 1, (int64_t[]){DRAWS}, NULL, &c->in[c->in_count++]));
    else
        attr_add(c, numpy ? "size" : "shape", where == NUMBERS || sample ? "(%.0f,)" : "(3, %.0f)", DRAWS);
    if (strstr(op, "bernoulli")) {
        attr_add(c, !strcmp(names[0], "prob") ? "logit" : "prob", "None", 0);
        attr_add(c, "is_logit", "%.0f", strcmp(names[0], "prob") != 0);
    }
    return true;
}

static void form_test(tn_ctx *ctx, const family *f, int form, place where, const double *p, int *tests)
{
    form_call c = {.attr_count = 0};
    tn_array *y, *wide = NULL;
    double *x;
    char text[128];
    size_t count;

    if (!form_fill(ctx, f, form, where, p, &c))
        return;
    y = test_op(ctx, f->forms[form].op, c.attrs, c.in_count, c.in);
    assert_ok(tn_array_cast(ctx, y, TN_F64, &wide));
    count = (size_t)tn_array_count(wide);
    assert_int_equal(count, c.in_count && where != NUMBERS ? 3 * DRAWS : DRAWS);
    x = malloc(count * sizeof *x);
    assert_non_null(x);
    assert_ok(tn_array_read(wide, x, count * sizeof *x));
    judge(f, p, count > DRAWS ? x + DRAWS : x, DRAWS, text, sizeof text);
    if (text[0])
        fail_msg("%s (%s) of %g, %g, parameters %d: %s", f->forms[form].op, f->name, p[0], p[1], (int)where,
                 text);
    (*tests)++;
    free(x);
    tn_array_release(y);
    tn_array_release(wide);
    for (uint32_t k = 0; k < c.in_count; k++)
        tn_array_release(c.in[k]);
}

static void closed_forms(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){"run.seed=20", NULL});
    int tests = 0;

    (void)state;
    for (size_t i = 0; i < FAMILIES; i++)
        for (int k = 0; k < PARAMETERS; k++)
            for (int form = 0; form < FORMS && families[i].forms[form].op; form++)
                for (int where = 0; where < PLACES; where++)
                    if (families[i].p[k][0] != 0 || families[i].p[k][1] != 0)
                        form_test(ctx, &families[i], form, (place)where, families[i].p[k], &tests);
    print_message("%d draws of %d numbers\n", tests, DRAWS);
    assert_true(tests > 150);
    test_close(ctx);
}

/* ---- refusals ------------------------------------------------------------------------------------------ */

/* Parameters that are only known at the run: run-time attributes, and the elements of an input. */
static const struct {
    const char *op, *attrs[10];
    double values[2]; /* of an input, if the operator has one */
    uint32_t in_count;
    tn_status status;
    const char *message;
} refused[] = {
    {"_random_normal", {"scale", "-1"}, {0}, 0, TN_E_ATTR, "scale is -1, at least 0 is needed"},
    {"_random_normal", {"scale", "nan"}, {0}, 0, TN_E_ATTR, "scale is not a number"},
    {"_random_normal", {"loc", "nan"}, {0}, 0, TN_E_ATTR, "loc is not a number"},
    {"_random_uniform", {"low", "2"}, {0}, 0, TN_E_ATTR, "low is above high"},
    {"_random_uniform", {"high", "inf"}, {0}, 0, TN_E_ATTR, "high is inf"},
    {"_random_uniform_like", {"low", "-inf"}, {0}, 1, TN_E_ATTR, "low is -inf"},
    {"_random_gamma", {"alpha", "0"}, {0}, 0, TN_E_ATTR, "alpha is 0, more than 0 is needed"},
    {"_random_gamma", {"alpha", "inf"}, {0}, 0, TN_E_ATTR, "alpha is inf"},
    {"_random_gamma", {"beta", "-1"}, {0}, 0, TN_E_ATTR, "beta is -1"},
    {"_random_gamma", {"alpha", "nan"}, {0}, 0, TN_E_ATTR, "alpha is not a number"},
    {"_random_exponential", {"lam", "0"}, {0}, 0, TN_E_ATTR, "lam is 0"},
    {"_random_poisson", {"lam", "-1"}, {0}, 0, TN_E_ATTR, "lam is -1"},
    {"_random_poisson", {"lam", "inf"}, {0}, 0, TN_E_ATTR, "lam is inf"},
    {"_random_poisson", {"lam", "nan"}, {0}, 0, TN_E_ATTR, "lam is not a number"},
    {"_random_negative_binomial", {"p", "0"}, {0}, 0, TN_E_ATTR, "p is 0, more than 0 is needed"},
    {"_random_negative_binomial", {"p", "1.5"}, {0}, 0, TN_E_ATTR, "p is 1.5, at most 1 is allowed"},
    {"_random_negative_binomial", {"k", "-1"}, {0}, 0, TN_E_ATTR, "k is -1"},
    {"_random_generalized_negative_binomial", {"mu", "-1"}, {0}, 0, TN_E_ATTR, "mu is -1"},
    {"_random_generalized_negative_binomial_like", {"alpha", "-1"}, {0}, 1, TN_E_ATTR, "alpha is -1"},
    {"_random_randint", {"low", "0", "high", "257", "dtype", "uint8"}, {0}, 0, TN_E_ATTR, "beyond"},
    {"_random_randint", {"low", "0", "high", "2147483649"}, {0}, 0, TN_E_ATTR, "beyond"},
    {"_random_randint", {"low", "3", "high", "3"}, {0}, 0, TN_E_ATTR, "low is not below high"},
    {"_npi_normal", {"loc", "0", "scale", "-1"}, {0}, 0, TN_E_ATTR, "scale is -1"},
    {"_npi_uniform", {"low", "-inf", "high", "0"}, {0}, 0, TN_E_ATTR, "low is -inf"},
    {"_npi_exponential", {"scale", "-1"}, {0}, 0, TN_E_ATTR, "scale is -1"},
    {"_npi_pareto", {"a", "0"}, {0}, 0, TN_E_ATTR, "a is 0, more than 0 is needed"},
    {"_npi_powerd", {"a", "-1"}, {0}, 0, TN_E_ATTR, "a is -1"},
    {"_npi_weibull", {"a", "nan"}, {0}, 0, TN_E_ATTR, "a is not a number"},
    {"_npi_bernoulli", {"prob", "1.5", "logit", "None", "is_logit", "0"}, {0}, 0, TN_E_ATTR, "prob is 1.5"},
    {"_npi_normal", {"loc", "0", "scale", "None"}, {1, -2}, 1, TN_E_ARG, "scale is -2"},
    {"_npi_gumbel", {"loc", "0", "scale", "None"}, {1, -2}, 1, TN_E_ARG, "scale is -2"},
    {"_npi_gamma", {"shape", "None", "scale", "1"}, {1, INFINITY}, 1, TN_E_ARG, "shape is inf"},
    {"_npi_gamma", {"shape", "None", "scale", "1"}, {1, 0}, 1, TN_E_ARG, "shape is 0"},
    {"_npi_exponential", {"scale", "None"}, {1, -1}, 1, TN_E_ARG, "scale is -1"},
    {"_npi_rayleigh", {"scale", "None"}, {1, -1}, 1, TN_E_ARG, "scale is -1"},
    {"_npi_pareto", {"a", "None"}, {1, 0}, 1, TN_E_ARG, "a is 0"},
    {"_npi_powerd", {"a", "None"}, {1, 0}, 1, TN_E_ARG, "a is 0"},
    {"_npi_weibull", {"a", "None"}, {1, -1}, 1, TN_E_ARG, "a is -1"},
    {"_npi_bernoulli",
     {"prob", "None", "logit", "None", "is_logit", "0"},
     {1, 1.5},
     1,
     TN_E_ARG,
     "prob is 1.5"},
    {"_npi_bernoulli",
     {"prob", "None", "logit", "None", "is_logit", "0"},
     {1, -1},
     1,
     TN_E_ARG,
     "prob is -1"},
};

static void refusals(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){"engine.type=naive", NULL});

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tn_array *in = NULL, *out = NULL;
        tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                           .in_count = refused[i].in_count,
                           .op = refused[i].op,
                           .attrs = refused[i].attrs,
                           .in = &in};
        uint32_t made = 0;
        tn_status st;

        assert_ok(tn_array_from(ctx, TN_F64, 1, (int64_t[]){2}, refused[i].values, &in));
        st = tn_invoke_text(ctx, &call, 1, &out, &made);
        if (!st)
            st = tn_array_wait(out);
        if (st != refused[i].status || !strstr(tn_error_text(), refused[i].message))
            fail_msg("%s, row %zu: %s, %s", refused[i].op, i, tn_status_name(st), tn_error_text());
        tn_array_release(in);
        tn_array_release(out);
    }
    assert_ok(tn_close(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(closed_forms), cmocka_unit_test(refusals)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
