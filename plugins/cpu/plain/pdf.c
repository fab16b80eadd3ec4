/*
 * Densities, all in double. A group is what one element of the parameters serves; groups are tasks, so sums
 * over one are one thread's. Of a negative binomial distribution p is the probability of a failure.
 */
#include <math.h>

#include "../../common/functions.h"
#include "rows.h"
#include "tenon/plugin/op/pdf.h"

#define PART 512

/* What follows from the parameters of a group alone. */
typedef struct constants {
    double a, b, c, d; /* parameters; terms of the logarithm */
    double da, db;     /* terms of its derivatives by the parameters */
} constants;

typedef struct density {
    const char *op, *backward;
    uint32_t count; /* of parameters */
    bool moves;     /* samples get a gradient */
    void (*group)(constants *k);
    double (*log)(const constants *k, double x);
    /* Of the logarithm: the derivative by the sample; by the parameters into `by`. */
    double (*slope)(const constants *k, double x, double *by);
} density;

/* ---- the distributions -------------------------------------------------------------------------------- */

static void uniform_group(constants *k)
{
    k->c = -log(k->b - k->a);
    k->da = 1 / (k->b - k->a);
}

static double uniform_log(const constants *k, double x)
{
    (void)x;
    return k->c;
}

static double uniform_slope(const constants *k, double x, double *by)
{
    (void)x;
    by[0] = k->da;
    by[1] = -k->da;
    return 0;
}

static void normal_group(constants *k)
{
    k->c = -log(2.50662827463100050242 * k->b);
    k->d = 1 / (k->b * k->b);
}

static double normal_log(const constants *k, double x)
{
    return -0.5 * (x - k->a) * (x - k->a) * k->d + k->c;
}

static double normal_slope(const constants *k, double x, double *by)
{
    by[0] = (x - k->a) * k->d;
    by[1] = ((x - k->a) * (x - k->a) * k->d - 1) / k->b;
    return -by[0];
}

static void gamma_group(constants *k)
{
    k->c = k->a * log(k->b) - tnb_lgamma(k->a);
    k->da = log(k->b) - tnb_digamma(k->a);
}

static double gamma_log(const constants *k, double x)
{
    return k->c + (k->a - 1) * log(x) - k->b * x;
}

static double gamma_slope(const constants *k, double x, double *by)
{
    by[0] = k->da + log(x);
    by[1] = k->a / k->b - x;
    return (k->a - 1) / x - k->b;
}

static void exponential_group(constants *k)
{
    k->c = log(k->a);
}

static double exponential_log(const constants *k, double x)
{
    return k->c - k->a * x;
}

static double exponential_slope(const constants *k, double x, double *by)
{
    by[0] = 1 / k->a - x;
    return -k->a;
}

static double poisson_log(const constants *k, double x)
{
    return x * k->c - tnb_lgamma(x + 1) - k->a;
}

static double poisson_slope(const constants *k, double x, double *by)
{
    by[0] = x / k->a - 1;
    return 0;
}

static void negative_group(constants *k)
{
    k->c = k->a * log(k->b) - tnb_lgamma(k->a);
    k->d = log(1 - k->b);
    k->da = log(k->b) - tnb_digamma(k->a);
}

static double negative_log(const constants *k, double x)
{
    return tnb_lgamma(x + k->a) - tnb_lgamma(x + 1) + k->c + x * k->d;
}

static double negative_slope(const constants *k, double x, double *by)
{
    by[0] = tnb_digamma(x + k->a) + k->da;
    by[1] = k->a / k->b - x / (1 - k->b);
    return 0;
}

/* As negative of 1 / alpha failures of probability 1 / (mu alpha + 1). */
static void dispersed_group(constants *k)
{
    const double mu = k->a, alpha = k->b;

    k->a = 1 / alpha;
    k->b = 1 / (mu * alpha + 1);
    negative_group(k);
    k->db = k->b * k->b; /* of p by mu · alpha, but for the sign */
}

static double dispersed_slope(const constants *k, double x, double *by)
{
    const double alpha = 1 / k->a, mu = (1 / k->b - 1) * k->a;
    double of[2];

    (void)negative_slope(k, x, of);
    by[0] = -of[1] * alpha * k->db;
    by[1] = -of[0] * k->a * k->a - of[1] * mu * k->db;
    return 0;
}

static const density densities[] = {
    {"_random_pdf_uniform", "_backward__random_pdf_uniform", 2, false, uniform_group, uniform_log,
     uniform_slope},
    {"_random_pdf_normal", "_backward__random_pdf_normal", 2, true, normal_group, normal_log, normal_slope},
    {"_random_pdf_gamma", "_backward__random_pdf_gamma", 2, true, gamma_group, gamma_log, gamma_slope},
    {"_random_pdf_exponential", "_backward__random_pdf_exponential", 1, true, exponential_group,
     exponential_log, exponential_slope},
    {"_random_pdf_poisson", "_backward__random_pdf_poisson", 1, false, exponential_group, poisson_log,
     poisson_slope},
    {"_random_pdf_negative_binomial", "_backward__random_pdf_negative_binomial", 2, false, negative_group,
     negative_log, negative_slope},
    {"_random_pdf_generalized_negative_binomial", "_backward__random_pdf_generalized_negative_binomial", 2,
     false, dispersed_group, negative_log, dispersed_slope},
};
#define DENSITIES (sizeof densities / sizeof *densities)

/* ---- groups ------------------------------------------------------------------------------------------- */

typedef struct pdf_plan {
    const density *of; /* NULL: Dirichlet's */
    bool log;
    uint32_t first;       /* input that the samples are: behind dy of a backward */
    int64_t groups, each; /* samples of a group */
    int64_t size;         /* elements of a sample */
} pdf_plan;

typedef struct pdf_call {
    const pdf_plan *p;
    const tn_exec *x;
} pdf_call;

static tn_status pdf_plan_make(void *plugin, const tn_node *node, tn_plan *plan, uint32_t first, tn_err *err)
{
    const tn_tensor *sample = node->in[first], *parameter = node->in[first + 1];
    tn_status st = tncpu_state(plugin, plan, sizeof(pdf_plan), err);
    pdf_plan *p = plan->state;

    if (st)
        return st;
    for (size_t k = 0; k < DENSITIES; k++)
        if (!strcmp(node->op, first ? densities[k].backward : densities[k].op))
            p->of = &densities[k];
    p->first = first;
    p->log = tn_value_int(node->attrs[TN_pdf_is_log]) != 0;
    p->size = p->of ? 1 : sample->shape[sample->ndim - 1];
    p->groups = p->of ? tn_tensor_count(parameter) : tncpu_dims(parameter, 0, parameter->ndim - 1);
    p->each = p->of ? tncpu_dims(sample, parameter->ndim, sample->ndim)
                    : tncpu_dims(sample, parameter->ndim - 1, sample->ndim - 1);
    tncpu_plan_tasks(node, plan,
                     100.0 * ((double)p->groups + (double)tn_tensor_count(sample) * (first ? 2 : 1)),
                     p->groups);
    if (!p->of) /* a sample and the parameters; behind them sums and digammas */
        tncpu_plan_workspace(plan, (uint64_t)p->size * sizeof(double) * (first ? 4 : 2));
    return TN_OK;
}

static tn_status pdf_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return pdf_plan_make(plugin, node, plan, 0, err);
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return pdf_plan_make(plugin, node, plan, 1, err);
}

static constants group_of(const pdf_call *c, int64_t group)
{
    const tn_tensor *const *in = c->x->in + c->p->first;
    constants k = {.a = tncpu_number(in[1], group)};

    k.b = c->p->of->count > 1 ? tncpu_number(in[2], group) : 0;
    c->p->of->group(&k);
    return k;
}

static void group_body(const void *call, int64_t group, double *room)
{
    const pdf_call *c = call;
    const constants k = group_of(c, group);
    const bool same = c->p->of->log == uniform_log; /* for all samples */
    double x[PART];

    (void)room;
    for (int64_t at = group * c->p->each, end = at + c->p->each, n; at < end; at += n) {
        n = tncpu_min(PART, end - at);
        tncpu_numbers(c->x->in[0], at, 1, n, x);
        for (int64_t i = 0; i < n; i++) {
            if (same && i > 0) {
                x[i] = x[0];
                continue;
            }
            x[i] = c->p->of->log(&k, x[i]);
            x[i] = c->p->log ? x[i] : exp(x[i]);
        }
        tncpu_numbers_store(c->x->out[0], at, 1, n, x);
    }
}

/* out: of the samples if they have one, then of the parameters */
static void backward_body(const void *call, int64_t group, double *room)
{
    const pdf_call *c = call;
    const density *of = c->p->of;
    const constants k = group_of(c, group);
    const tn_exec *x = c->x;
    double values[PART], dy[PART], by[2][PART], sum[2] = {0};

    (void)room;
    for (int64_t at = group * c->p->each, end = at + c->p->each, n; at < end; at += n) {
        n = tncpu_min(PART, end - at);
        tncpu_numbers(x->in[0], at, 1, n, dy);
        tncpu_numbers(x->in[1], at, 1, n, values);
        for (int64_t i = 0; i < n; i++) {
            double to[2] = {0};
            const double h = c->p->log ? dy[i] : dy[i] * exp(of->log(&k, values[i]));

            values[i] = h * of->slope(&k, values[i], to);
            by[0][i] = h * to[0];
            by[1][i] = h * to[1];
        }
        if (of->moves && x->modes[0])
            tncpu_numbers_store(x->out[0], at, 1, n, values);
        for (uint32_t p = 0; p < of->count; p++)
            sum[p] += tncpu_lanes_sum(by[p], NULL, n);
    }
    for (uint32_t p = 0; p < of->count; p++)
        if (x->modes[of->moves + p])
            tncpu_numbers_store(x->out[of->moves + p], group, 1, 1, &sum[p]);
}

/* ---- Dirichlet ---------------------------------------------------------------------------------------- */

/* lgamma of the sum, less the sum of lgamma; `*sum`: of the parameters */
static double dirichlet_constant(const double *alpha, int64_t n, double *sum)
{
    double gammas = 0;

    *sum = tncpu_lanes_sum(alpha, NULL, n);
    for (int64_t j = 0; j < n; j++)
        gammas += tnb_lgamma(alpha[j]);
    return tnb_lgamma(*sum) - gammas;
}

static double dirichlet_log(const double *alpha, const double *x, int64_t n, double constant)
{
    double sum = 0;

    for (int64_t j = 0; j < n; j++)
        sum += (alpha[j] - 1) * log(x[j]);
    return sum + constant;
}

static void dirichlet_body(const void *call, int64_t group, double *alpha)
{
    const pdf_call *c = call;
    const int64_t n = c->p->size;
    double *x = alpha + n, sum, constant;

    tncpu_numbers(c->x->in[1], group * n, 1, n, alpha);
    constant = dirichlet_constant(alpha, n, &sum);
    for (int64_t i = group * c->p->each, end = i + c->p->each; i < end; i++) {
        double y;

        tncpu_numbers(c->x->in[0], i * n, 1, n, x);
        y = dirichlet_log(alpha, x, n, constant);
        y = c->p->log ? y : exp(y);
        tncpu_numbers_store(c->x->out[0], i, 1, 1, &y);
    }
}

static void dirichlet_back_body(const void *call, int64_t group, double *alpha)
{
    const pdf_call *c = call;
    const int64_t n = c->p->size;
    double *x = alpha + n, *by = x + n, *psi = by + n, sum, constant, all;

    tncpu_numbers(c->x->in[2], group * n, 1, n, alpha);
    constant = dirichlet_constant(alpha, n, &sum);
    all = tnb_digamma(sum);
    for (int64_t j = 0; j < n; j++) {
        by[j] = 0;
        psi[j] = all - tnb_digamma(alpha[j]);
    }
    for (int64_t i = group * c->p->each, end = i + c->p->each; i < end; i++) {
        double h = tncpu_number(c->x->in[0], i);

        tncpu_numbers(c->x->in[1], i * n, 1, n, x);
        h = c->p->log ? h : h * exp(dirichlet_log(alpha, x, n, constant));
        for (int64_t j = 0; j < n; j++) {
            by[j] += h * (log(x[j]) + psi[j]);
            x[j] = h * (alpha[j] - 1) / x[j];
        }
        if (c->x->modes[0])
            tncpu_numbers_store(c->x->out[0], i * n, 1, n, x);
    }
    if (c->x->modes[1])
        tncpu_numbers_store(c->x->out[1], group * n, 1, n, by);
}

static tn_status pdf_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pdf_plan *p = plan->state;
    const pdf_call call = {p, x};

    (void)err;
    tncpu_rows_run(plan, x, p->groups, 0,
                   p->of ? (p->first ? backward_body : group_body)
                         : (p->first ? dirichlet_back_body : dirichlet_body),
                   &call);
    return TN_OK;
}

static const char *const types[] = {"sample:" TNCPU_FLOATS, "*:=sample", NULL};

#define ROWS(name)                                                                                           \
    TNCPU_ROW("_random_pdf_" #name, types, 0, pdf_prepare, pdf_run),                                         \
        TNCPU_ROW("_backward__random_pdf_" #name, types, TN_KERNEL_EMPTY_OK, backward_prepare, pdf_run)

const tn_kernel *const tncpu_family_pdf[] = {
    ROWS(uniform),
    ROWS(normal),
    ROWS(gamma),
    ROWS(exponential),
    ROWS(poisson),
    ROWS(negative_binomial),
    ROWS(generalized_negative_binomial),
    ROWS(dirichlet),
    NULL,
};
