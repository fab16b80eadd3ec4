/*
 * Random numbers, by the distributions of distribution.h, and dropout. A distribution is drawn by several
 * operators, which differ in where its parameters come from: attributes, tensors of which each element gives
 * some neighbours, tensors that stretch as NumPy's do.
 */
#include <math.h>

#include "distribution.h"
#include "loops.h"

#include "../common/memory.h"

#define PART 512 /* elements made at a time */

#include "../../common/random.inc"

/* ---- parameters --------------------------------------------------------------------------------------- */

/* NaN among NumPy's tensors gives NaN, as in MXNet. */
static tn_status tensor_check(const random_state *s, uint32_t p, const tn_tensor *t, tn_err *err)
{
    const int64_t count = tn_tensor_count(t);
    double values[PART];

    for (int64_t at = 0; at < count; at += PART) {
        const int64_t n = tncpu_min(PART, count - at);

        tncpu_numbers(t, at, 1, n, values);
        for (int64_t i = 0; i < n; i++)
            if (values[i] == values[i] && !tnb_parameter_fits(&s->of->parameter[p], values[i]))
                return parameter_refuse(s, p, values[i], TN_E_ARG, err);
    }
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

/* The next smaller number of a floating point type of 4 or 2 bytes, not of the smallest one. */
static void step_down(void *element, uint32_t bytes)
{
    const uint32_t sign = bytes == 4 ? 0x80000000u : 0x8000u;
    uint32_t bits = 0;

    memcpy(&bits, element, bytes);
    bits = !bits ? sign | 1u : bits & sign ? bits + 1 : bits - 1;
    memcpy(element, &bits, bytes);
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
        tncpu_draws[s->of - tnb_distributions](&d);
        for (uint32_t p = 0; p < s->of->count; p++)
            for (int64_t i = 0; i < d.n && s->source[p].input >= 0; i++)
                if (!tnb_parameter_fits(&s->of->parameter[p], values[p][i]))
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
    if ((st = random_plan(s, node, err))) {
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
                (int64_t)((uint64_t)c->low + tnb_draw_below(&c->draw, (uint64_t)(first + i), c->count));
        to->store_i(values, (char *)c->y->data + first * to->bytes, 1, n);
    }
}

TNCPU_PREPARE(randint_prepare, tncpu_plan_work(node, plan, 20 + 10 * (double)tn_tensor_count(node->out[0])))

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
    tncpu_plan_work(node, plan, 20 + (s->active ? 3.0 : 0.5) * (double)tn_tensor_count(node->in[0]));
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

        tncpu_units(&c->draw, (uint64_t)at, n, values);
        for (int64_t i = 0; i < n; i++)
            values[i] = values[i] >= c->p ? kept : 0;
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
    KERNEL("_random_" #name, tncpu_floats), KERNEL("_random_" #name "_like", tncpu_floats),                  \
        KERNEL("_sample_" #name, tensor_types),
#define NUMPY_ROW(op, ...) KERNEL(#op, tensor_types),
#define NUMPY_F32_ROW(op, ...) KERNEL(#op, f32_types),
static const char *const tensor_types[] = {"output:" TNCPU_FLOATS, "*:" TNCPU_ALL, NULL};
static const char *const f32_types[] = {"output:f32", "noise:f32", "*:" TNCPU_ALL, NULL};
static const char *const powerd_types[] = {"output:f32", "*:" TNCPU_ALL, NULL};
static const char *const randint_types[] = {"*:u8,i32,i8,i64,i16,u16,u32", NULL};
static const char *const dropout_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
static const char *const backward_dropout_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

/* clang-format off */
const tn_kernel *const tncpu_family_random[] = {
    DISTRIBUTIONS(ROWS) NUMPYS(NUMPY_ROW) NUMPYS_F32(NUMPY_F32_ROW)
    KERNEL("_npi_powerd", powerd_types),
    KERNEL("_npi_bernoulli", tncpu_all),
    TNCPU_ROW("_random_randint", randint_types, 0, randint_prepare, randint_run),
    TNCPU_ROW("Dropout", dropout_types, 0, dropout_prepare, dropout_run),
    TNCPU_ROW("_backward_Dropout", backward_dropout_types, 0, backward_dropout_prepare, tncpu_point_run),
    NULL,
};
/* clang-format on */
