/*
 * Random numbers, by the distributions of distribution.h, and dropout. A distribution is drawn by several
 * operators, which differ in where its parameters come from: attributes, tensors of which each element gives
 * some neighbours, tensors that stretch as NumPy's do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../common/axes.h"
#include "distribution.h"
#include "loops.h"
#include "tenon/plugin/op/numpy_random.h"
#include "tenon/plugin/op/random.h"

#include "../common/memory.h"

#define PART 512 /* elements made at a time */

/* ---- forms -------------------------------------------------------------------------------------------- */

/* Where parameters come from. */
typedef enum from {
    NUMBERS,   /* the first attributes */
    LEADING,   /* inputs, whose dimensions are the output's first ones */
    NUMPY,     /* optional first attributes; for each None the next input, which stretches */
    BERNOULLI, /* the first attribute, its logit as the second one, or an input that stretches */
} from;

typedef struct form {
    const char *op, *distribution;
    from from;
    const char *names[2]; /* of the parameters, for messages */
    bool whole;           /* the first attribute is an integer */
} form;

#define PARAMETERS_uniform "low", "high"
#define PARAMETERS_normal "loc", "scale"
#define PARAMETERS_gamma "alpha", "beta"
#define PARAMETERS_exponential "lam"
#define PARAMETERS_poisson "lam"
#define PARAMETERS_negative_binomial "k", "p"
#define PARAMETERS_generalized_negative_binomial "mu", "alpha"
#define DISTRIBUTIONS(X)                                                                                     \
    X(uniform, false)                                                                                        \
    X(normal, false)                                                                                         \
    X(gamma, false)                                                                                          \
    X(exponential, false)                                                                                    \
    X(poisson, false)                                                                                        \
    X(negative_binomial, true)                                                                               \
    X(generalized_negative_binomial, false)
/* X(operator, distribution, names of the parameters) */
#define NUMPYS(X)                                                                                            \
    X(_npi_uniform, "uniform", "low", "high")                                                                \
    X(_npi_uniform_n, "uniform", "low", "high")                                                              \
    X(_npi_normal, "normal", "loc", "scale")                                                                 \
    X(_npi_normal_n, "normal", "loc", "scale")                                                               \
    X(_npi_gamma, "gamma", "shape", "scale")
#define NUMPYS_F32(X)                                                                                        \
    X(_npi_gumbel, "gumbel", "loc", "scale")                                                                 \
    X(_npi_logistic, "logistic", "loc", "scale")                                                             \
    X(_npi_exponential, "scaled_exponential", "scale", NULL)                                                 \
    X(_npi_rayleigh, "rayleigh", "scale", NULL)                                                              \
    X(_npi_pareto, "pareto", "a", NULL)                                                                      \
    X(_npi_weibull, "weibull", "a", NULL)

#define FORMS(name, whole)                                                                                   \
    {"_random_" #name, #name, NUMBERS, {PARAMETERS_##name}, whole},                                          \
        {"_random_" #name "_like", #name, NUMBERS, {PARAMETERS_##name}, whole},                              \
        {"_sample_" #name, #name, LEADING, {PARAMETERS_##name}, false},
#define NUMPY_FORM(op, distribution, a, b) {#op, distribution, NUMPY, {a, b}, false},
/* clang-format off */
static const form forms[] = {
    DISTRIBUTIONS(FORMS) NUMPYS(NUMPY_FORM) NUMPYS_F32(NUMPY_FORM)
    {"_npi_powerd", "power", NUMPY, {"a"}, false},
    {"_npi_bernoulli", "bernoulli", BERNOULLI, {"prob"}, false},
};
/* clang-format on */

typedef struct source {
    int32_t input; /* of the node; -1: attribute `attr` */
    uint32_t attr;
    tnb_axes axes; /* the output's dimensions over the input */
} source;

typedef struct random_state {
    const form *form;
    const tncpu_distribution *of;
    bool noise; /* output 1 */
    source source[2];
} random_state;

static const tncpu_distribution *distribution_of(const char *name)
{
    return tncpu_form_of(tncpu_distributions, sizeof *tncpu_distributions, name);
}

/* Dimension d of the output is dimension d - shift of the parameters. */
static void axes_fill(tnb_axes *a, const tn_tensor *y, const tn_tensor *parameter, int32_t shift)
{
    int64_t stride[TN_NDIM_MAX], step = 1;

    *a = (tnb_axes){.ndim = 0, .count = 1};
    for (int32_t d = parameter->ndim; d-- > 0; step *= parameter->shape[d])
        stride[d] = parameter->shape[d] == 1 ? 0 : step;
    for (int32_t d = 0; d < y->ndim; d++) {
        const int32_t at = d - shift;

        tnb_axes_add(a, y->shape[d], at >= 0 && at < parameter->ndim ? stride[at] : 0);
    }
}

static void sources_fill(random_state *s, const tn_node *node)
{
    const bool numpy = s->form->from == NUMPY;
    const tn_tensor *y = node->out[0];
    int32_t input = 0;

    for (uint32_t p = 0; p < s->of->count; p++) {
        source *src = &s->source[p];

        src->attr = p;
        src->input = -1;
        if (s->form->from == NUMBERS || (numpy && tn_value_pointer(node->attrs[p])))
            continue;
        src->input = input++;
        axes_fill(&src->axes, y, node->in[src->input], numpy ? y->ndim - node->in[src->input]->ndim : 0);
    }
}

/* A probability or a logit. */
static void bernoulli_fill(random_state *s, const tn_node *node)
{
    const bool prob = tn_value_pointer(node->attrs[TN_npi_bernoulli_prob]) != NULL,
               logit = !prob && tn_value_pointer(node->attrs[TN_npi_bernoulli_logit]) != NULL;
    const tn_tensor *y = node->out[0];

    if (logit || (!prob && tn_value_int(node->attrs[TN_npi_bernoulli_is_logit])))
        s->of = distribution_of("bernoulli_logit");
    s->source[0].attr = logit ? TN_npi_bernoulli_logit : TN_npi_bernoulli_prob;
    s->source[0].input = prob || logit ? -1 : 0;
    if (node->in_count)
        axes_fill(&s->source[0].axes, y, node->in[0], y->ndim - node->in[0]->ndim);
}

/* ---- parameters --------------------------------------------------------------------------------------- */

static double number_of(const random_state *s, const tn_value *attrs, uint32_t parameter)
{
    const tn_value v = attrs[s->source[parameter].attr];

    if (s->form->from != NUMBERS)
        return *(const double *)tn_value_pointer(v);
    return parameter == 0 && s->form->whole ? (double)tn_value_int(v) : tn_value_float(v);
}

static tn_status parameter_refuse(const random_state *s, uint32_t p, double v, tn_status st, tn_err *err)
{
    const tncpu_parameter *limits = &s->of->parameter[p];
    const char *name = s->form->names[p];
    char text[120];

    if (v != v)
        (void)snprintf(text, sizeof text, "%s is not a number", name);
    else if (v > limits->max)
        (void)snprintf(text, sizeof text, "%s is %g, at most %g is allowed", name, v, limits->max);
    else
        (void)snprintf(text, sizeof text, "%s is %g, %s %g is needed", name, v,
                       limits->above ? "more than" : "at least", limits->min);
    return tn_fail(err, st, text);
}

/* NaN among NumPy's tensors gives NaN, as in MXNet. */
static tn_status tensor_check(const random_state *s, uint32_t p, const tn_tensor *t, tn_err *err)
{
    const int64_t count = tn_tensor_count(t);
    double values[PART];

    for (int64_t at = 0; at < count; at += PART) {
        const int64_t n = tncpu_min(PART, count - at);

        tncpu_numbers(t, at, 1, n, values);
        for (int64_t i = 0; i < n; i++)
            if (values[i] == values[i] && !tncpu_parameter_fits(&s->of->parameter[p], values[i]))
                return parameter_refuse(s, p, values[i], TN_E_ARG, err);
    }
    return TN_OK;
}

static tn_status numbers_check(const random_state *s, const tn_value *attrs, tn_err *err)
{
    for (uint32_t p = 0; p < s->of->count; p++) {
        const double v = s->source[p].input < 0 ? number_of(s, attrs, p) : s->of->parameter[p].max;

        if (!tncpu_parameter_fits(&s->of->parameter[p], v))
            return parameter_refuse(s, p, v, TN_E_ATTR, err);
    }
    if (s->form->from == NUMBERS && s->of->interval && number_of(s, attrs, 0) > number_of(s, attrs, 1))
        return tn_fail(err, TN_E_ATTR, "low is above high");
    return TN_OK;
}

static void parameter_load(const tn_tensor *t, const tnb_axes *a, int64_t at, int64_t n, double *to)
{
    const int64_t inner = a->ndim > 0 ? a->shape[a->ndim - 1] : 1,
                  stride = a->ndim > 0 ? a->stride[a->ndim - 1] : 0;

    while (n > 0) {
        const int64_t run = a->ndim > 0 ? tncpu_min(inner - at % inner, n) : n;

        if (stride) {
            tncpu_numbers(t, tnb_axes_offset(a, at), stride, run, to);
        } else {
            const double v = tncpu_number(t, tnb_axes_offset(a, at));

            for (int64_t i = 0; i < run; i++)
                to[i] = v;
        }
        at += run;
        n -= run;
        to += run;
    }
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

typedef struct random_call {
    const random_state *s;
    const tn_exec *x;
    tn_draw draw;
    double number[2];
} random_call;

/* The next smaller number of a floating point type of `bytes` bytes, not of the smallest one. */
static void step_down(void *element, uint32_t bytes)
{
    uint32_t bits = 0, sign = bytes == 4 ? 0x80000000u : 0x8000u;
    uint16_t half;

    if (bytes == 4) {
        memcpy(&bits, element, 4);
        bits = !bits ? sign | 1u : bits & sign ? bits + 1 : bits - 1;
        memcpy(element, &bits, 4);
        return;
    }
    memcpy(&half, element, 2);
    half = (uint16_t)(!half ? sign | 1u : half & sign ? half + 1u : half - 1u);
    memcpy(element, &half, 2);
}

/* In a narrow type the largest values may round up to `high`: they become the next value below. */
static void below(const tn_tensor *y, int64_t first, int64_t n, const double *low, const double *high)
{
    const uint32_t bytes = (uint32_t)tn_dtype_bytes(y->dtype);
    double stored[PART];

    if (y->dtype == TN_F64)
        return;
    tncpu_numbers(y, first, 1, n, stored);
    for (int64_t i = 0; i < n; i++)
        if (stored[i] >= high[i] && high[i] > low[i])
            step_down((char *)y->data + (first + i) * bytes, bytes);
}

static void random_part(void *arg, int64_t begin, int64_t end)
{
    const random_call *c = arg;
    const random_state *s = c->s;
    const tn_exec *x = c->x;
    double values[2][PART], to[PART], noise[PART];
    tncpu_numbers_drawn d = {.draw = &c->draw, .a = values[0], .b = values[1], .to = to, .noise = noise};

    memset(values, 0, sizeof values);
    for (uint32_t p = 0; p < s->of->count; p++)
        for (int64_t i = 0; i < PART && s->source[p].input < 0; i++)
            values[p][i] = c->number[p];
    for (d.first = begin; d.first < end; d.first += PART) {
        d.n = tncpu_min(PART, end - d.first);
        for (uint32_t p = 0; p < s->of->count; p++)
            if (s->source[p].input >= 0)
                parameter_load(x->in[s->source[p].input], &s->source[p].axes, d.first, d.n, values[p]);
        s->of->draw(&d);
        for (uint32_t p = 0; p < s->of->count; p++)
            for (int64_t i = 0; i < d.n && s->source[p].input >= 0; i++)
                if (!tncpu_parameter_fits(&s->of->parameter[p], values[p][i]))
                    to[i] = noise[i] = NAN;
        if (x->modes[0])
            tncpu_numbers_store(x->out[0], d.first, 1, d.n, to);
        if (x->modes[0] && s->of->interval)
            below(x->out[0], d.first, d.n, values[0], values[1]);
        if (s->noise && x->modes[1])
            tncpu_numbers_store(x->out[1], d.first, 1, d.n, noise);
    }
}

static tn_status random_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(random_state), err);
    random_state *s = plan->state;

    if (st)
        return st;
    s->form = tncpu_form_of(forms, sizeof *forms, node->op);
    s->of = distribution_of(s->form->distribution);
    s->noise = node->out_count > 1;
    if (s->form->from == BERNOULLI)
        bernoulli_fill(s, node);
    else
        sources_fill(s, node);
    if (s->form->from != NUMBERS && (st = numbers_check(s, node->attrs, err))) { /* they stay as they are */
        tncpu_release(plan);
        return st;
    }
    tncpu_plan_work(node, plan, 20 + s->of->ns * (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

static tn_status random_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const random_state *s = plan->state;
    random_call call = {.s = s, .x = x, .draw = tn_draw_of(x->rng)};
    tn_status st = s->form->from == NUMBERS ? numbers_check(s, x->attrs, err) : TN_OK;

    for (uint32_t p = 0; p < s->of->count && !st; p++) {
        if (s->source[p].input < 0)
            call.number[p] = number_of(s, x->attrs, p);
        else if (s->form->from != LEADING)
            st = tensor_check(s, p, x->in[s->source[p].input], err);
    }
    if (st)
        return st;
    tncpu_for(plan, x, tn_tensor_count(x->out[0]), PART, random_part, &call);
    return TN_OK;
}

/* ---- whole numbers ------------------------------------------------------------------------------------ */

typedef struct randint_call {
    const tn_tensor *y;
    tn_draw draw;
    int64_t low;
    uint64_t count;
} randint_call;

static void randint_part(void *arg, int64_t begin, int64_t end)
{
    const randint_call *c = arg;
    const tncpu_convert *to = &tncpu_converts[c->y->dtype];
    int64_t values[PART];

    for (int64_t first = begin; first < end; first += PART) {
        const int64_t n = tncpu_min(PART, end - first);

        for (int64_t i = 0; i < n; i++)
            values[i] =
                (int64_t)((uint64_t)c->low + tncpu_draw_below(&c->draw, (uint64_t)(first + i), c->count));
        to->store_i(values, (char *)c->y->data + first * to->bytes, 1, n);
    }
}

static tn_status randint_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 10 * (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

/* Whether the type holds a number: storing it saturates. */
static bool holds(const tn_tensor *y, int64_t number)
{
    const tncpu_convert *c = &tncpu_converts[y->dtype];
    uint64_t element = 0;
    double back;

    if (y->dtype == TN_I64)
        return true;
    c->store_i(&number, &element, 1, 1);
    tncpu_numbers(&(tn_tensor){.data = &element, .dtype = y->dtype}, 0, 1, 1, &back);
    return back == (double)number;
}

static tn_status randint_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t low = tn_value_int(x->attrs[TN_random_randint_low]),
                  high = tn_value_int(x->attrs[TN_random_randint_high]);
    randint_call call = {x->out[0], tn_draw_of(x->rng), low, (uint64_t)high - (uint64_t)low};

    if (low >= high)
        return tn_fail(err, TN_E_ATTR, "low is not below high");
    if (!holds(x->out[0], low) || !holds(x->out[0], high - 1))
        return tn_fail(err, TN_E_ATTR, "low or high is beyond what the output's data type holds");
    tncpu_for(plan, x, tn_tensor_count(x->out[0]), PART, randint_part, &call);
    return TN_OK;
}

/* ---- dropout ----------------------------------------------------------------------------------------- */

/* The mask holds 0 or 1 / (1 - p) and may have extent 1 along some axes; the output is data times mask. */
static const tncpu_point masked[] = {{"Dropout", TNCPU_MUL, 2, TNCPU_NO_SCALAR},
                                     {"_backward_Dropout", TNCPU_MUL, 2, TNCPU_NO_SCALAR}};
static const tncpu_point passed[] = {{"Dropout", TNCPU_COPY, 1, TNCPU_NO_SCALAR},
                                     {"_backward_Dropout", TNCPU_COPY, 1, TNCPU_NO_SCALAR}};

typedef struct dropout_state {
    int64_t active; /* 0: the data passes as it is */
    tn_plan scale;
} dropout_state;

static bool dropout_active(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) ||
           tn_value_int(node->attrs[TN_Dropout_mode]) == TN_Dropout_mode_always;
}

/* The output from input 0, data or dy, and the mask. */
static tn_status scale_prepare(void *plugin, const tn_node *node, const tn_tensor *mask, tn_plan *plan,
                               tn_err *err)
{
    const bool active = dropout_active(node);
    const tn_tensor *const in[] = {node->in[0], mask};
    tn_node scale = *node;

    scale.in = in;
    scale.in_count = active ? 2 : 1;
    return tncpu_point_prepare(active ? masked : passed, 2, plugin, &scale, plan, err);
}

static tn_status dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *mask = node->out[1];
    dropout_state *s;
    tn_status st = tncpu_state(plugin, plan, sizeof *s, err);

    if (st)
        return st;
    s = plan->state;
    s->active = dropout_active(node);
    s->scale = (tn_plan){.struct_size = plan->struct_size, .inplace = plan->inplace, .threads = 1};
    tncpu_plan_work(node, plan, 20 + (s->active ? 6.0 : 0.5) * (double)tn_tensor_count(node->in[0]));
    if (s->active && !node->modes[1])
        plan->workspace_bytes = (uint64_t)tn_tensor_count(mask) * tn_dtype_bytes(mask->dtype);
    st = scale_prepare(plugin, node, mask, &s->scale, err);
    if (st)
        tncpu_release(plan);
    else
        tncpu_block_head_of(s)->more = s->scale.state; /* they are freed together */
    return st;
}

typedef struct mask_call {
    const tn_tensor *mask;
    tn_draw draw;
    double p;
} mask_call;

static void mask_part(void *arg, int64_t begin, int64_t end)
{
    const mask_call *c = arg;
    const double kept = 1 / (1 - c->p);
    double values[PART];

    for (int64_t at = begin; at < end; at += PART) {
        const int64_t n = tncpu_min(PART, end - at);

        for (int64_t i = 0; i < n; i++)
            values[i] = tn_draw_unit(&c->draw, (uint64_t)(at + i)) >= c->p ? kept : 0;
        tncpu_numbers_store(c->mask, at, 1, n, values);
    }
}

static tn_status dropout_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dropout_state *s = plan->state;
    tn_tensor mask = *x->out[1];
    const tn_tensor *const in[] = {x->in[0], &mask};
    mask_call call = {&mask, {0}, tn_value_float(x->attrs[TN_Dropout_p])};
    tn_exec scale = *x;

    if (!x->modes[1])
        mask.data = x->workspace; /* nobody wants it afterwards */
    if (s->active) {
        call.draw = tn_draw_of(x->rng);
        tncpu_for(plan, x, tn_tensor_count(&mask), PART, mask_part, &call);
    } else if (x->modes[1]) {
        tncpu_fill(&mask, 1);
    }
    scale.in = in;
    return tncpu_point_run(&s->scale, &scale, err);
}

/* In predict mode the gradient passes as it is. in: dy, mask */
static tn_status backward_dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return scale_prepare(plugin, node, node->in[1], plan, err);
}

#define KERNEL(op, types) TNCPU_ROW(op, types, 0, random_prepare, random_run)
#define ROWS(name, whole)                                                                                    \
    KERNEL("_random_" #name, types), KERNEL("_random_" #name "_like", types),                                \
        KERNEL("_sample_" #name, tensor_types),
#define NUMPY_ROW(op, ...) KERNEL(#op, tensor_types),
#define NUMPY_F32_ROW(op, ...) KERNEL(#op, f32_types),
static const char *const types[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const tensor_types[] = {"output:" TNCPU_FLOATS, "*:" TNCPU_ALL, NULL};
static const char *const f32_types[] = {"output:f32", "noise:f32", "*:" TNCPU_ALL, NULL};
static const char *const powerd_types[] = {"output:f32", "*:" TNCPU_ALL, NULL};
static const char *const all_types[] = {"*:" TNCPU_ALL, NULL};
static const char *const randint_types[] = {"*:u8,i32,i8,i64,i16,u16,u32", NULL};
static const char *const dropout_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
static const char *const backward_dropout_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

/* clang-format off */
const tn_kernel *const tncpu_family_random[] = {
    DISTRIBUTIONS(ROWS) NUMPYS(NUMPY_ROW) NUMPYS_F32(NUMPY_F32_ROW)
    KERNEL("_npi_powerd", powerd_types),
    KERNEL("_npi_bernoulli", all_types),
    TNCPU_ROW("_random_randint", randint_types, 0, randint_prepare, randint_run),
    TNCPU_ROW("Dropout", dropout_types, 0, dropout_prepare, dropout_run),
    TNCPU_ROW("_backward_Dropout", backward_dropout_types, 0, backward_dropout_prepare, tncpu_point_run),
    NULL,
};
/* clang-format on */
