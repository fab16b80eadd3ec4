/* One recorded call: inputs are made, the operator runs, is walked back, is walked back twice; each stage
 * begins with fresh inputs, since some operators change theirs. */
#include "mxnet/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    tn_ctx *ctx;
    tn_cached_op *net; /* NULL: the operator that the call names */
    const call *c;
    stage s;
    bound (*bounds)(const call *c, stage s, int32_t dtype);
    verdict *verdict;
    tn_array *in[ARRAYS_MAX], *out[ARRAYS_MAX], *heads[ARRAYS_MAX], *grads[ARRAYS_MAX], *overs[ARRAYS_MAX];
    tn_array *variables[ARRAYS_MAX];
    uint32_t made;
} run;

static bool is_float(int32_t dtype)
{
    return dtype == TN_F64 || dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

static bool ok(run *r, tn_status st, const char *what)
{
    if (st) {
        r->verdict->refused = true;
        (void)snprintf(r->verdict->text, sizeof r->verdict->text, "%s gave %s: %s", what, tn_status_name(st),
                       tn_error_text());
    }
    return !st;
}

/* ---- arrays ------------------------------------------------------------------------------------- */

/* Through f64: the recorded digits are those that are needed to find the number of its type again. */
static tn_status array_make(tn_ctx *ctx, const recorded *a, tn_array **out)
{
    tn_array *wide = NULL;
    tn_status st = tn_array_from(ctx, TN_F64, a->ndim, a->shape, a->values, &wide);

    if (!st)
        st = tn_array_cast(ctx, wide, a->dtype, out);
    tn_array_release(wide);
    return st;
}

static tn_status values_read(tn_ctx *ctx, tn_array *a, size_t count, double *out)
{
    tn_array *wide = NULL;
    tn_status st = tn_array_cast(ctx, a, TN_F64, &wide);

    if (!st)
        st = tn_array_read(wide, out, count * sizeof *out);
    tn_array_release(wide);
    return st;
}

static bool arrays_make(run *r, part p, tn_array **out)
{
    for (uint32_t i = 0; i < r->c->counts[p]; i++)
        if (!ok(r, array_make(r->ctx, &r->c->parts[p][i], &out[i]), "making an array"))
            return false;
    return true;
}

static void arrays_release(tn_array **arrays)
{
    for (uint32_t i = 0; i < ARRAYS_MAX; i++) {
        tn_array_release(arrays[i]);
        arrays[i] = NULL;
    }
}

static void run_free(run *r)
{
    arrays_release(r->in);
    arrays_release(r->out);
    arrays_release(r->heads);
    arrays_release(r->grads);
    arrays_release(r->overs);
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static bool type_same(run *r, const char *what, uint32_t index, tn_array *got, const recorded *expected)
{
    const int64_t *shape;
    int32_t ndim;

    if (!ok(r, tn_array_wait(got), what) || !ok(r, tn_array_shape(got, &ndim, &shape), what))
        return false;
    if (tn_array_dtype(got) == expected->dtype && ndim == expected->ndim &&
        !memcmp(shape, expected->shape, (size_t)ndim * sizeof *shape))
        return true;
    (void)snprintf(r->verdict->text, sizeof r->verdict->text,
                   "%s %u is %s with %d dimensions, %llu elements; MXNet gives %s, %d, %zu", what, index,
                   tn_dtype_name(tn_array_dtype(got)), ndim, (unsigned long long)tn_array_count(got),
                   tn_dtype_name(expected->dtype), expected->ndim, expected->count);
    return false;
}

static void numbers_compare(run *r, const char *what, uint32_t index, const double *got, const double *want,
                            const recorded *expected)
{
    const bound b = r->bounds(r->c, r->s, expected->dtype);
    double largest = 0, worst = 0;

    for (size_t i = 0; i < expected->count; i++)
        if (isfinite(want[i]))
            largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < expected->count; i++) {
        const double allowed = b.relative * fabs(want[i]) + b.share * largest;
        const double far = fabs(got[i] - want[i]);

        if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) || (isfinite(want[i]) && far <= allowed) ||
            far <= worst)
            continue;
        worst = far;
        (void)snprintf(r->verdict->text, sizeof r->verdict->text,
                       "element %zu of %s %u is %.9g, MXNet gives %.9g; at most %.3g apart is allowed", i,
                       what, index, got[i], want[i], allowed);
        if (isnan(far))
            break;
    }
}

static bool compare(run *r, const char *what, uint32_t index, tn_array *got, const recorded *expected)
{
    tn_array *same = NULL;
    double *values = malloc(2 * expected->count * sizeof *values + 1);
    bool good = values && type_same(r, what, index, got, expected) &&
                ok(r, array_make(r->ctx, expected, &same), what) &&
                ok(r, values_read(r->ctx, got, expected->count, values), what) &&
                ok(r, values_read(r->ctx, same, expected->count, values + expected->count), what);

    if (good)
        numbers_compare(r, what, index, values, values + expected->count, expected);
    tn_array_release(same);
    free(values);
    return !*r->verdict->text;
}

static void statistics_of(const double *values, size_t count, double *out)
{
    double sum = 0, squares = 0;

    out[2] = out[3] = values[0];
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        out[2] = fmin(out[2], values[i]);
        out[3] = fmax(out[3], values[i]);
    }
    out[0] = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - out[0]) * (values[i] - out[0]);
    out[1] = sqrt(squares / (double)count);
}

/* Two samples of n numbers: means and deviations are 6 of their own deviations apart at most, 1 of 10^8 pairs
 * being more. The ends of a normal sample of 10,000 vary by a third of its deviation; of distributions with
 * long tails they are not recorded (NaN). */
static bool statistics_compare(run *r, uint32_t index, tn_array *got, const recorded *expected)
{
    static const char *const names[STATISTICS] = {"mean", "deviation", "smallest", "largest"};
    const size_t count = (size_t)tn_array_count(got);
    double *values = malloc(count * sizeof *values + 1), s[STATISTICS];
    bool good = values && count > 0 && type_same(r, "output", index, got, expected) &&
                ok(r, values_read(r->ctx, got, count, values), "reading");

    if (good)
        statistics_of(values, count, s);
    free(values);
    for (size_t k = 0; good && k < STATISTICS; k++) {
        const double allowed = expected->values[1] * (k < 2 ? 6 * sqrt(2 / (double)count) : 1);

        good = isnan(expected->values[k]) || fabs(s[k] - expected->values[k]) <= allowed;
        if (!good)
            (void)snprintf(r->verdict->text, sizeof r->verdict->text,
                           "%s of output %u is %.4g, MXNet gives %.4g; at most %.3g apart is allowed",
                           names[k], index, s[k], expected->values[k], allowed);
    }
    return good;
}

/* Arrays of `part` that are of inputs: of `of`, or where it has none of their gradients. */
static bool inputs_compare(run *r, part p, const char *what, tn_array *const *of)
{
    for (uint32_t i = 0; i < r->c->counts[p]; i++) {
        const recorded *expected = &r->c->parts[p][i];
        tn_array *got = of ? of[expected->input] : tn_array_grad(r->in[expected->input]);

        if (!compare(r, what, expected->input, got, expected))
            return false;
    }
    return true;
}

/* ---- stages ------------------------------------------------------------------------------------- */

static bool forward(run *r, bool record)
{
    const tn_op_call called = {.struct_size = TN_SIZE(tn_op_call),
                               .op = r->c->op,
                               .attrs = r->c->attrs,
                               .in_count = r->c->counts[IN],
                               .in = r->in};
    tn_status st;

    (void)tn_record_set(record);
    (void)tn_train_set(r->c->train);
    r->made = r->c->counts[OUT];
    st = r->net ? tn_cached_op_call(r->net, called.in_count, r->in, r->made, r->out)
                : tn_invoke_text(r->ctx, &called, ARRAYS_MAX, r->out, &r->made);
    (void)tn_train_set(0);
    (void)tn_record_set(0);
    return ok(r, st, "the call") && ok(r, tn_wait_all(r->ctx), "running");
}

static bool values_check(run *r)
{
    if (!arrays_make(r, IN, r->in) || !forward(r, false))
        return false;
    if (r->made != r->c->counts[OUT] + r->c->counts[STAT]) {
        (void)snprintf(r->verdict->text, sizeof r->verdict->text, "%u outputs; MXNet gives %u", r->made,
                       r->c->counts[OUT] + r->c->counts[STAT]);
        return false;
    }
    for (uint32_t i = 0; i < r->c->counts[STAT]; i++)
        if (!statistics_compare(r, i, r->out[i], &r->c->parts[STAT][i]))
            return false;
    for (uint32_t i = 0; i < r->c->counts[OUT]; i++)
        if (!compare(r, "output", i, r->out[i], &r->c->parts[OUT][i]))
            return false;
    return r->c->counts[GRAD] || inputs_compare(r, NOW, "changed input", r->in);
}

/* Inputs with gradients, a recorded call, its head gradients: those of outputs of floating point. */
static bool recorded_run(run *r, uint32_t *heads)
{
    if (!arrays_make(r, IN, r->in) || !arrays_make(r, HEAD, r->heads))
        return false;
    for (uint32_t i = 0; i < r->c->counts[GRAD]; i++) {
        r->variables[i] = r->in[r->c->parts[GRAD][i].input];
        if (!ok(r, tn_attach_grad(r->ctx, r->variables[i], TN_MODE_WRITE, NULL), "attaching a gradient"))
            return false;
    }
    if (!forward(r, true))
        return false;
    for (*heads = 0; *heads < r->made && is_float(tn_array_dtype(r->out[*heads]));)
        ++*heads;
    return true;
}

static bool gradients_check(run *r)
{
    uint32_t heads;

    return recorded_run(r, &heads) && ok(r, tn_backward(r->ctx, heads, r->out, r->heads, 0), "backward") &&
           ok(r, tn_wait_all(r->ctx), "running backward") && inputs_compare(r, GRAD, "gradient", NULL) &&
           inputs_compare(r, NOW, "changed input", r->in);
}

/* MXNet's gradient is zero where Tenon's gradient is made of no input. */
static bool seconds_zero(const call *c)
{
    for (uint32_t i = 0; i < c->counts[SECOND]; i++)
        for (size_t k = 0; k < c->parts[SECOND][i].count; k++)
            if (c->parts[SECOND][i].values[k] != 0)
                return false;
    return true;
}

static bool seconds_check(run *r)
{
    uint32_t heads;
    tn_gradient_call g = {.struct_size = TN_SIZE(tn_gradient_call),
                          .flags = TN_BACKWARD_CREATE,
                          .variable_count = r->c->counts[GRAD],
                          .heads = r->out,
                          .head_grads = r->heads,
                          .variables = r->variables};
    tn_status st;

    if (!recorded_run(r, &heads) || !arrays_make(r, OVER, r->overs))
        return false;
    g.head_count = heads;
    (void)tn_record_set(1);
    st = tn_gradients(r->ctx, &g, r->grads);
    (void)tn_record_set(0);
    if (!ok(r, st, "the gradient"))
        return false;
    st = tn_backward(r->ctx, r->c->counts[OVER], r->grads, r->overs, 0);
    if (st == TN_E_STATE && seconds_zero(r->c))
        return true;
    return ok(r, st, "backward of the gradient") && ok(r, tn_wait_all(r->ctx), "running backward") &&
           inputs_compare(r, SECOND, "second gradient", NULL);
}

bool replay_net(tn_ctx *ctx, tn_cached_op *net, const call *c, stage s,
                bound (*bounds)(const call *c, stage s, int32_t dtype), verdict *out)
{
    static bool (*const checks[STAGE_COUNT])(run * r) = {values_check, gradients_check, seconds_check};
    static const part needs[STAGE_COUNT] = {OUT, GRAD, SECOND};
    run r = {.ctx = ctx, .net = net, .c = c, .s = s, .bounds = bounds, .verdict = out};

    *out = (verdict){.refused = false};
    if (!c->counts[needs[s]] && !(s == VALUES && c->counts[STAT]))
        return false;
    (void)tn_random_seed(ctx, 1, NULL); /* draws are the same whatever ran before */
    (void)tn_np_shape_set(c->np);
    (void)checks[s](&r);
    run_free(&r);
    (void)tn_np_shape_set(0);
    return true;
}

bool replay(tn_ctx *ctx, const call *c, stage s, bound (*bounds)(const call *c, stage s, int32_t dtype),
            verdict *out)
{
    return replay_net(ctx, NULL, c, s, bounds, out);
}
