/*
 * The softmax family. An array is seen as (outer, size, inner): `size` elements sum to 1. Types that are not
 * computed in themselves go through the workspace. Each vector is one thread's, so results do not depend on
 * their number.
 */
#include <math.h>

#include "loops.h"
#include "tenon/plugin/op/softmax.h"

#define SOFT 0
#define LOGS 1
#define MIN 2
#define STRIP 64  /* vectors side by side */
#define BLOCK 512 /* elements of a row at a time */

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#define K float
#define N _f32
#define KIND TNCPU_K_F32
#define LOG(x) log(x)
#include "softmax.inc"
#undef K
#undef N
#undef KIND
#define K double
#define N _f64
#define KIND TNCPU_K_F64
#include "softmax.inc"
#undef K
#undef N

typedef struct soft_plan {
    int64_t outer, size, inner, count;
    int32_t mode;
    uint32_t wide;   /* 1: computed as f64 */
    uint32_t direct; /* inputs and output are of the compute type: no workspace */
    double over;
    const tncpu_convert *in[2], *out, *length;
} soft_plan;

typedef struct soft_call {
    const soft_plan *p;
    const char *in[2]; /* compute type */
    char *out;
    const char *length;
    bool back;
} soft_call;

/* ---- planning --------------------------------------------------------------------------------- */

static tn_status soft_plan_make(void *plugin, const tn_node *node, tn_plan *plan, int32_t axis_first,
                                int32_t axis_end, tn_err *err)
{
    const tn_tensor *out = node->out[0];
    uint32_t inputs = strncmp(node->op, "_backward", 9) == 0 ? 2 : 1;
    soft_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->outer = p->size = p->inner = 1;
    for (int32_t d = 0; d < out->ndim; d++)
        *(d < axis_first ? &p->outer : d < axis_end ? &p->size : &p->inner) *= out->shape[d];
    p->count = p->outer * p->size * p->inner;
    p->over = 1;
    p->out = &tncpu_converts[out->dtype];
    p->wide = p->out->kind == TNCPU_K_F64;
    p->direct = p->out->native;
    for (uint32_t k = 0; k < inputs; k++) {
        p->in[k] = &tncpu_converts[node->in[k]->dtype];
        p->wide |= p->in[k]->kind == TNCPU_K_F64;
    }
    for (uint32_t k = 0; k < inputs; k++)
        p->direct &= node->in[k]->dtype == (p->wide ? TN_F64 : TN_F32);
    p->direct &= out->dtype == (p->wide ? TN_F64 : TN_F32);
    if (p->direct)
        plan->inplace[0] = 0;
    else
        plan->workspace_bytes = (inputs + 1) * (uint64_t)p->count * 8;
    tncpu_plan_work(node, plan, 20.0 + (double)(p->outer * p->inner) * 40.0 + (double)p->count * 5.0);
    return TN_OK;
}

static int32_t axis_of(tn_value axis, int32_t ndim)
{
    int64_t a = tn_value_int(axis);

    return (int32_t)(a < 0 ? a + ndim : a);
}

static tn_status softmax_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int32_t axis = axis_of(node->attrs[TN_softmax_axis], node->out[0]->ndim);
    const double *temperature = tn_value_pointer(node->attrs[TN_softmax_temperature]);
    bool back = strncmp(node->op, "_backward_", 10) == 0;
    const char *name = node->op + (back ? 10 : 0);
    tn_status st = soft_plan_make(plugin, node, plan, axis, axis + 1, err);
    soft_plan *p = plan->state;

    if (st)
        return st;
    p->mode = strcmp(name, "softmax") == 0 ? SOFT : strcmp(name, "softmin") == 0 ? MIN : LOGS;
    p->over = temperature ? 1 / *temperature : 1;
    if (!back && node->in_count > 1)
        p->length = &tncpu_converts[node->in[1]->dtype];
    return TN_OK;
}

/* SoftmaxActivation: all of an example, or axis 1. */
static tn_status activation_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return soft_plan_make(
        plugin, node, plan, 1,
        node->attrs[TN_SoftmaxActivation_mode] == TN_SoftmaxActivation_mode_instance ? node->out[0]->ndim : 2,
        err);
}

/* SoftmaxOutput: axis 1, the last axis, or all of an example. */
static tn_status output_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int32_t ndim = node->out[0]->ndim;
    bool multi = node->attrs[TN_SoftmaxOutput_multi_output] != 0,
         last = node->attrs[TN_SoftmaxOutput_preserve_shape] != 0;

    return soft_plan_make(plugin, node, plan,
                          multi      ? 1
                          : last     ? ndim - 1
                          : ndim > 1 ? 1
                                     : 0,
                          multi ? 2 : ndim, err);
}

/* ---- running ---------------------------------------------------------------------------------- */

/* To the compute type, or back from it. */
static void widen(const tncpu_convert *c, const char *from, char *to, int64_t n, bool wide)
{
    tncpu_tile tile;

    for (int64_t at = 0; at < n; at += TNCPU_TILE) {
        int64_t count = n - at < TNCPU_TILE ? n - at : TNCPU_TILE;

        if (!wide || c->kind == TNCPU_K_F64) {
            c->load(from + at * c->bytes, 1, to + at * (wide ? 8 : 4), count);
            continue;
        }
        c->load(from + at * c->bytes, 1, &tile, count);
        for (int64_t i = 0; i < count; i++)
            ((double *)(void *)to)[at + i] = (double)tile.f32[i];
    }
}

static int64_t length_of(const soft_call *call, int64_t vector)
{
    const soft_plan *p = call->p;
    tncpu_tile one;
    double n;

    if (!p->length)
        return p->size;
    p->length->load(call->length + vector * p->length->bytes, 1, &one, 1);
    n = p->length->kind == TNCPU_K_F32   ? (double)one.f32[0]
        : p->length->kind == TNCPU_K_F64 ? one.f64[0]
        : p->length->kind == TNCPU_K_I32 ? (double)one.i32[0]
                                         : (double)one.i64[0];
    return n > 0 ? (n < (double)p->size ? (int64_t)n : p->size) : 0;
}

/* `width` vectors from vector `vector` on, which lie side by side. */
static void vectors_run(const soft_call *call, int64_t vector, int64_t width)
{
    const soft_plan *p = call->p;
    int64_t bytes = p->wide ? 8 : 4, n = length_of(call, vector);
    int64_t at = (vector / p->inner * p->size * p->inner + vector % p->inner) * bytes;
    char *out = call->out + at;

    if (call->back && p->inner == 1)
        (p->wide ? back_row_f64 : back_row_f32)(call->in[0] + at, call->in[1] + at, out, n, p->mode, p->over);
    else if (call->back)
        (p->wide ? back_strip_f64 : back_strip_f32)(call->in[0] + at, call->in[1] + at, out, n, p->inner,
                                                    width, p->mode, p->over);
    else if (p->inner == 1)
        (p->wide ? forward_row_f64 : forward_row_f32)(call->in[0] + at, out, n, p->mode, p->over);
    else
        (p->wide ? forward_strip_f64 : forward_strip_f32)(call->in[0] + at, out, n, p->inner, width, p->mode,
                                                          p->over);
    for (int64_t k = n; k < p->size; k++)
        memset(out + k * p->inner * bytes, 0, (size_t)(width * bytes));
}

/* Parts are counted in strips of vectors. */
static void soft_part(void *arg, int64_t begin, int64_t end)
{
    const soft_call *call = arg;
    int64_t inner = call->p->inner, strip = call->p->length ? 1 : STRIP,
            per_row = (inner + strip - 1) / strip;

    for (int64_t k = begin; k < end; k++) {
        int64_t first = k % per_row * strip;

        vectors_run(call, k / per_row * inner + first, inner - first < strip ? inner - first : strip);
    }
}

static tn_status soft_run_any(const tn_plan *plan, const tn_exec *x, bool back)
{
    const soft_plan *p = plan->state;
    int64_t strip = p->length ? 1 : STRIP, bytes = p->wide ? 8 : 4;
    soft_call call = {p, {x->in[0]->data, back ? x->in[1]->data : NULL}, x->out[0]->data, NULL, back};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (p->length)
        call.length = x->in[1]->data;
    if (!p->direct) {
        char *space = x->workspace;

        for (uint32_t k = 0; k < (back ? 2u : 1u); k++, space += p->count * bytes) {
            widen(p->in[k], x->in[k]->data, space, p->count, p->wide);
            call.in[k] = space;
        }
        call.out = space;
    }
    tncpu_for(tncpu_threads(plan, x), p->outer * ((p->inner + strip - 1) / strip), 1, soft_part, &call);
    if (!p->direct && p->wide)
        p->out->store_f((const double *)(const void *)call.out, x->out[0]->data, 1, p->count);
    else if (!p->direct)
        p->out->store(call.out, x->out[0]->data, 1, p->count);
    return TN_OK;
}

static tn_status soft_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return soft_run_any(plan, x, false);
}

static tn_status soft_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return soft_run_any(plan, x, true);
}

#define FLOATS TNCPU_FLOATS

static const char *const floats[] = {"*:" FLOATS, NULL};
static const char *const lengths[] = {"data:" FLOATS, "length:" TNCPU_ALL, "*:" FLOATS, NULL};
static const char *const labelled[] = {"label:" TNCPU_MOST, "*:" FLOATS, NULL};

#define FORWARD(op, types, prepare) TNCPU_ROW(op, types, 0, prepare, soft_run)
#define BACKWARD(op) TNCPU_ROW("_backward_" op, floats, 0, softmax_prepare, soft_back_run)

const tn_kernel *const tncpu_family_softmax[] = {
    FORWARD("softmax", lengths, softmax_prepare),
    FORWARD("log_softmax", floats, softmax_prepare),
    FORWARD("softmin", floats, softmax_prepare),
    FORWARD("SoftmaxActivation", floats, activation_prepare),
    FORWARD("SoftmaxOutput", labelled, output_prepare),
    BACKWARD("softmax"),
    BACKWARD("log_softmax"),
    BACKWARD("softmin"),
    TNCPU_ROW("_backward_SoftmaxActivation", floats, 0, activation_prepare, soft_back_run),
    NULL,
};
