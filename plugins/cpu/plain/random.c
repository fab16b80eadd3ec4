/*
 * Random numbers and dropout. Element k of a draw uses counter k, so parts may be made in any order and by
 * any number of threads. Numbers are made in double and rounded once: f32 and f64 draws are the same numbers.
 */
#include <math.h>
#include <string.h>

#include "loops.h"
#include "tenon/plugin/op/random.h"
#include "tenon/plugin/random.h"

#include "../common/memory.h"

#define PART 512 /* elements made at a time */
#define TWO_PI 6.283185307179586476925

static void uniform_part(const tn_draw *d, int64_t first, int64_t n, double low, double high, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = low + (high - low) * tn_draw_unit(d, (uint64_t)(first + i));

        to[i] = v < high || high <= low ? v : low; /* rounding must not reach the open end */
    }
}

/* Box and Muller: one of the pair, so that element k needs counter k alone. */
static void normal_part(const tn_draw *d, int64_t first, int64_t n, double mean, double deviation, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];

        tn_draw_words(d, (uint64_t)(first + i), w);
        to[i] =
            mean + deviation * sqrt(-2 * log(1 - tn_unit(w[0], w[1]))) * cos(TWO_PI * tn_unit(w[2], w[3]));
    }
}

_Static_assert((int)TN_random_normal_loc == TN_random_uniform_low &&
                   (int)TN_random_normal_scale == TN_random_uniform_high,
               "both draws have their two numbers at the same places");

typedef void part_fn(const tn_draw *d, int64_t first, int64_t n, double a, double b, double *to);

/* In a short type the largest values may round up to `high`: they become the next value below. */
static void below(const tn_tensor *y, int64_t first, int64_t n, double high)
{
    float *f = (float *)y->data + first;

    for (int64_t i = 0; y->dtype == TN_F32 && i < n; i++)
        if ((double)f[i] >= high)
            f[i] = nextafterf((float)high, -INFINITY);
}

typedef struct draw_call {
    const tn_tensor *y;
    part_fn *part;
    tn_draw draw;
    double a, b;
} draw_call;

static void draw_part(void *arg, int64_t begin, int64_t end)
{
    const draw_call *c = arg;
    double values[PART];

    for (int64_t first = begin; first < end; first += PART) {
        const int64_t n = tncpu_min(PART, end - first);

        c->part(&c->draw, first, n, c->a, c->b, values);
        tncpu_numbers_store(c->y, first, 1, n, values);
        if (c->part == uniform_part && c->b > c->a)
            below(c->y, first, n, c->b);
    }
}

static tn_status draw(const tn_plan *plan, const tn_exec *x, part_fn *part)
{
    draw_call call = {x->out[0], part, tn_draw_of(x->rng), tn_value_float(x->attrs[TN_random_uniform_low]),
                      tn_value_float(x->attrs[TN_random_uniform_high])};

    tncpu_for(plan, x, tn_tensor_count(x->out[0]), PART, draw_part, &call);
    return TN_OK;
}

static tn_status uniform_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 8 * (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

static tn_status normal_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 40 * (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

static tn_status uniform_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (!(tn_value_float(x->attrs[TN_random_uniform_low]) <=
          tn_value_float(x->attrs[TN_random_uniform_high])))
        return tn_fail(err, TN_E_ATTR, "low is above high, or not a number");
    return draw(plan, x, uniform_part);
}

static tn_status normal_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (!(tn_value_float(x->attrs[TN_random_normal_scale]) >= 0))
        return tn_fail(err, TN_E_ATTR, "scale is below 0, or not a number");
    return draw(plan, x, normal_part);
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

static const char *const types[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const dropout_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
static const char *const backward_dropout_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncpu_family_random[] = {
    TNCPU_ROW("_random_uniform", types, 0, uniform_prepare, uniform_run),
    TNCPU_ROW("_random_normal", types, 0, normal_prepare, normal_run),
    TNCPU_ROW("Dropout", dropout_types, 0, dropout_prepare, dropout_run),
    TNCPU_ROW("_backward_Dropout", backward_dropout_types, 0, backward_dropout_prepare, tncpu_point_run),
    NULL,
};
