/*
 * Random numbers and dropout. Element k of a draw uses counter k, so parts may be made in any order and by
 * any number of threads. Numbers are made in double and rounded once: f32 and f64 draws are the same numbers.
 */
#include <math.h>
#include <string.h>

#include "convert.h"
#include "plain.h"
#include "short.h"
#include "tenon/plugin/op/random.h"
#include "tenon/plugin/random.h"

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

static tn_status draw(const tn_plan *plan, const tn_exec *x, part_fn *part, int is_uniform)
{
    const tn_tensor *y = x->out[0];
    const double a = tn_value_float(x->attrs[TN_random_uniform_low]),
                 b = tn_value_float(x->attrs[TN_random_uniform_high]);
    const int64_t count = tn_tensor_count(y), parts = (count + PART - 1) / PART;
    const int threads = (int)tncpu_threads(plan, x);
    const tn_draw d = tn_draw_of(x->rng);

    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t first = p * PART, n = count - first < PART ? count - first : PART;
        double values[PART];

        part(&d, first, n, a, b, values);
        tncpu_converts[y->dtype].store_f(values, (char *)y->data + (uint64_t)first * tn_dtype_bytes(y->dtype),
                                         1, n);
        if (is_uniform && b > a)
            below(y, first, n, b);
    }
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
    return draw(plan, x, uniform_part, 1);
}

static tn_status normal_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (!(tn_value_float(x->attrs[TN_random_normal_scale]) >= 0))
        return tn_fail(err, TN_E_ATTR, "scale is below 0, or not a number");
    return draw(plan, x, normal_part, 0);
}

/* ---- dropout ----------------------------------------------------------------------------------------- */

#define BODY "../plain/dropout.inc"
#include "../common/floats.inc"

static int dropout_active(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) ||
           tn_value_int(node->attrs[TN_Dropout_mode]) == TN_Dropout_mode_always;
}

static tn_status dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int active = dropout_active(node);
    int64_t *state;
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    *state = active;
    tncpu_plan_work(node, plan, 20 + (active ? 6.0 : 0.5) * (double)tn_tensor_count(node->in[0]));
    if (active && !node->modes[1])
        plan->workspace_bytes = (uint64_t)tn_tensor_count(node->out[1]) * tn_dtype_bytes(node->out[1]->dtype);
    plan->inplace[0] = 0;
    return TN_OK;
}

static tn_status dropout_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int active = *(const int64_t *)plan->state != 0;

    (void)err;
    if (x->in[0]->dtype == TN_F32)
        dropout_f32(x, active, (int)tncpu_threads(plan, x));
    else
        dropout_f64(x, active, (int)tncpu_threads(plan, x));
    return TN_OK;
}

/* In predict mode the gradient passes as it is. */
static tn_status backward_dropout_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int64_t *state;
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    *state = dropout_active(node);
    tncpu_plan_work(node, plan, 20 + 0.5 * (double)tn_tensor_count(node->in[0]));
    plan->inplace[0] = 0;
    return TN_OK;
}

static tn_status backward_dropout_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const uint64_t bytes = (uint64_t)tn_tensor_count(x->in[0]) * tn_dtype_bytes(x->in[0]->dtype);

    (void)err;
    if (!*(const int64_t *)plan->state)
        memmove(x->out[0]->data, x->in[0]->data, bytes);
    else if (x->in[0]->dtype == TN_F32)
        scale_f32(x->in[0], x->in[1], x->out[0], (int)tncpu_threads(plan, x));
    else
        scale_f64(x->in[0], x->in[1], x->out[0], (int)tncpu_threads(plan, x));
    return TN_OK;
}

static const char *const random_types[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const dropout_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
static const char *const backward_dropout_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

TNCPU_SHORT_KERNEL(dropout, "Dropout", dropout_types, 0, dropout_prepare, dropout_run)
TNCPU_SHORT_KERNEL(backward_dropout, "_backward_Dropout", backward_dropout_types, 0, backward_dropout_prepare,
                   backward_dropout_run)

const tn_kernel *const tncpu_family_random[] = {
    TNCPU_ROW("_random_uniform", random_types, 0, uniform_prepare, uniform_run),
    TNCPU_ROW("_random_normal", random_types, 0, normal_prepare, normal_run),
    &dropout,
    &backward_dropout,
    NULL,
};
