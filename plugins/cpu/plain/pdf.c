/*
 * Densities, all in double. A group is what one element of the parameters serves; groups are tasks, so sums
 * over one are one thread's. Of a negative binomial distribution p is the probability of a failure.
 */
#include <math.h>

#include "../../common/pdf.h"
#include "rows.h"
#include "tenon/plugin/op/pdf.h"

#define PART 512

typedef struct density {
    const char *op, *backward;
    uint32_t count; /* of parameters */
    bool moves;     /* samples get a gradient */
    void (*group)(tnb_pdf *k);
    double (*log)(const tnb_pdf *k, double x);
    /* Of the logarithm: the derivative by the sample; by the parameters into `by`. */
    double (*slope)(const tnb_pdf *k, double x, double *by);
} density;

static const density densities[] = {
#define PDF(name, count, moves, group, log, slope)                                                           \
    {                                                                                                        \
        "_random_pdf_" #name,                                                                                \
        "_backward__random_pdf_" #name,                                                                      \
        count,                                                                                               \
        moves,                                                                                               \
        tnb_##group##_group,                                                                                 \
        tnb_##log##_log,                                                                                     \
        tnb_##slope##_slope},
#include "../../common/pdf.list"
#undef PDF
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

static tnb_pdf group_of(const pdf_call *c, int64_t group)
{
    const tn_tensor *const *in = c->x->in + c->p->first;
    tnb_pdf k = {.a = tncpu_number(in[1], group)};

    k.b = c->p->of->count > 1 ? tncpu_number(in[2], group) : 0;
    c->p->of->group(&k);
    return k;
}

static double density_of(const pdf_call *c, const tnb_pdf *k, double x)
{
    const double log = c->p->of->log(k, x);

    return c->p->log ? log : exp(log);
}

/* The density is that of all samples: one is written, then what is there is copied behind it. */
static void same_body(const void *call, int64_t group, double *room)
{
    const pdf_call *c = call;
    const tnb_pdf k = group_of(c, group);
    const double value = density_of(c, &k, 0);
    const size_t bytes = tn_dtype_bytes(c->x->out[0]->dtype), size = (size_t)c->p->each * bytes;
    char *to = (char *)c->x->out[0]->data + (size_t)group * size;

    (void)room;
    if (size)
        tncpu_numbers_store(c->x->out[0], group * c->p->each, 1, 1, &value);
    for (size_t done = bytes; done < size; done *= 2)
        memcpy(to + done, to, done < size - done ? done : size - done);
}

static void group_body(const void *call, int64_t group, double *room)
{
    const pdf_call *c = call;
    const tnb_pdf k = group_of(c, group);
    double x[PART];

    (void)room;
    for (int64_t at = group * c->p->each, end = at + c->p->each, n; at < end; at += n) {
        n = tncpu_min(PART, end - at);
        tncpu_numbers(c->x->in[0], at, 1, n, x);
        for (int64_t i = 0; i < n; i++)
            x[i] = density_of(c, &k, x[i]);
        tncpu_numbers_store(c->x->out[0], at, 1, n, x);
    }
}

/* The body of a call that goes forward. */
static tncpu_row_body *forward_body(const pdf_plan *p)
{
    return p->of->log == tnb_uniform_log ? same_body : group_body;
}

/* out: of the samples if they have one, then of the parameters */
static void backward_body(const void *call, int64_t group, double *room)
{
    const pdf_call *c = call;
    const density *of = c->p->of;
    const tnb_pdf k = group_of(c, group);
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
                   p->of ? (p->first ? backward_body : forward_body(p))
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
