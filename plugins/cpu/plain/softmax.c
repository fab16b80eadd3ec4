/*
 * The softmax family. An array is seen as (outer, size, inner): `size` elements sum to 1. Vectors of types
 * that are not computed in themselves are brought to the workspace and back.
 */
#include "softmax.h"
#include "../common/isa.h"
#include "rows.h"
#include "tenon/plugin/op/softmax.h"

#define K float
#define N _f32
#define KEY int32_t
#define EXP tnb_exp_f32
#include "softmax.inc"
#undef K
#undef N
#undef KEY
#undef EXP
#define K double
#define N _f64
#define KEY int64_t
#define EXP exp
#include "softmax.inc"
#undef K
#undef N
#undef KEY
#undef EXP

const tncpu_softmax tncpu_softmax_f32_base = TNCPU_SOFTMAX(_f32);
static const tncpu_softmax softmax_f64 = TNCPU_SOFTMAX(_f64);
static const tncpu_softmax *const softmaxes[TNCPU_ISAS] = {&tncpu_softmax_f32_base, &tncpu_softmax_f32_avx2,
                                                           &tncpu_softmax_f32_avx512};

typedef struct soft_plan {
    tncpu_rows rows;
    int64_t strip, per_row; /* vectors at a time; strips side by side */
    int64_t group;          /* whole rows at a time, where inner is 1 */
    int32_t mode;
    uint32_t inputs;
    bool wide, direct, lengths; /* wide: computed as f64; direct: in the arrays themselves */
    double over;
    const tncpu_softmax *functions;
} soft_plan;

typedef struct soft_call {
    const soft_plan *p;
    const tn_exec *x;
} soft_call;

/* ---- planning --------------------------------------------------------------------------------- */

/* Elements of the vectors that are computed at a time. */
static int64_t block_elements(const soft_plan *p)
{
    return p->rows.size * tncpu_min(p->rows.inner, p->strip);
}

static tn_status soft_plan_make(void *plugin, const tn_node *node, tn_plan *plan, int32_t axis_first,
                                int32_t axis_end, tn_err *err)
{
    const tn_tensor *out = node->out[0];
    soft_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->rows = tncpu_rows_of(out, axis_first, axis_end);
    p->inputs = strncmp(node->op, "_backward", 9) == 0 ? 2 : 1;
    p->lengths = p->inputs == 1 && node->in_count > 1 && strcmp(node->op, "softmax") == 0;
    p->strip = p->lengths ? 1 : TNCPU_SOFT_STRIP;
    p->per_row = tncpu_ceil_div(p->rows.inner, p->strip);
    p->over = 1;
    p->wide = out->dtype == TN_F64;
    for (uint32_t k = 0; k < p->inputs; k++)
        p->wide |= node->in[k]->dtype == TN_F64;
    p->functions = p->wide ? &softmax_f64 : softmaxes[tncpu_isa()];
    p->direct = out->dtype == (p->wide ? TN_F64 : TN_F32);
    for (uint32_t k = 0; k < p->inputs; k++)
        p->direct &= node->in[k]->dtype == out->dtype;
    p->group = p->rows.inner == 1 && p->direct && !p->lengths && p->rows.size
                   ? tncpu_max(1, TNCPU_SOFT_BLOCK / p->rows.size)
                   : 1;
    tncpu_plan_work(node, plan,
                    20.0 + (double)(p->rows.outer * p->rows.inner) * 40.0 +
                        (double)tn_tensor_count(out) * 5.0);
    if (p->direct)
        plan->inplace[0] = 0;
    else
        tncpu_plan_workspace(plan, (p->inputs + 1) * (uint64_t)block_elements(p) * sizeof(double));
    return TN_OK;
}

static tn_status softmax_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int32_t axis = tncpu_axis(tn_value_int(node->attrs[TN_softmax_axis]), node->out[0]->ndim);
    const double *temperature = tn_value_pointer(node->attrs[TN_softmax_temperature]);
    bool back = strncmp(node->op, "_backward_", 10) == 0;
    const char *name = node->op + (back ? 10 : 0);
    tn_status st = soft_plan_make(plugin, node, plan, axis, axis + 1, err);
    soft_plan *p = plan->state;

    if (st)
        return st;
    p->mode = strcmp(name, "softmax") == 0   ? TNCPU_SOFT
              : strcmp(name, "softmin") == 0 ? TNCPU_SOFT_MIN
                                             : TNCPU_SOFT_LOGS;
    p->over = temperature ? 1 / *temperature : 1;
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

/* `runs` runs of n elements, `inner` apart in the array and together in `at`: to the compute type or (`back`)
 * from it. */
static void block_move(const soft_plan *p, const tn_tensor *t, int64_t first, int64_t runs, int64_t n,
                       char *at, bool back)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];

    for (int64_t k = 0; k < runs; k++, first += p->rows.inner, at += n * (p->wide ? 8 : 4)) {
        char *data = (char *)t->data + first * c->bytes;

        if (p->wide && back)
            tncpu_numbers_store(t, first, 1, n, (double *)(void *)at);
        else if (p->wide)
            tncpu_numbers(t, first, 1, n, (double *)(void *)at);
        else if (back)
            c->store(at, data, 1, n);
        else
            c->load(data, 1, at, n);
    }
}

static int64_t length_of(const soft_call *call, int64_t vector)
{
    const double n = call->p->lengths ? tncpu_number(call->x->in[1], vector) : (double)call->p->rows.size;

    return n > 0 ? (n < (double)call->p->rows.size ? (int64_t)n : call->p->rows.size) : 0;
}

/* The vectors of strip number `strip`. */
static void strip_run(const void *arg, int64_t strip, double *room)
{
    const soft_call *call = arg;
    const soft_plan *p = call->p;
    const tn_exec *x = call->x;
    const int64_t inner = p->rows.inner, lead = p->per_row > 1 ? strip % p->per_row * p->strip : 0;
    const int64_t vector = (p->per_row > 1 ? strip / p->per_row : strip * p->group) * inner + lead;
    const int64_t at = tncpu_row_at(&p->rows, vector);
    const int64_t bytes = p->wide ? 8 : 4, n = length_of(call, vector);
    tncpu_vectors v = {n, inner, tncpu_min(p->strip, inner - lead), p->mode, p->over};
    const int64_t rows = tncpu_min(p->group, p->rows.outer - vector / inner);
    const int64_t runs = inner == 1 ? 1 : n, run = inner == 1 ? n : v.width;
    char *out = (char *)x->out[0]->data + at * bytes;
    const void *in[2] = {NULL, NULL};

    for (uint32_t k = 0; k < p->inputs; k++) {
        in[k] = p->direct ? (const void *)((const char *)x->in[k]->data + at * bytes)
                          : (const void *)(room + (k + 1) * block_elements(p));
        if (!p->direct)
            block_move(p, x->in[k], at, runs, run, (char *)(uintptr_t)in[k], false);
    }
    if (!p->direct) {
        out = (char *)room;
        v.stride = v.width;
    }
    if (inner == 1)
        v.width = rows;
    p->functions->of[p->inputs - 1][inner > 1](&v, in, out);
    if (!p->direct)
        block_move(p, x->out[0], at, runs, run, out, true);
    for (int64_t k = n; k < p->rows.size; k++)
        memset((char *)x->out[0]->data + (at + k * inner) * tncpu_converts[x->out[0]->dtype].bytes, 0,
               (size_t)v.width * tncpu_converts[x->out[0]->dtype].bytes);
}

static tn_status soft_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const soft_plan *p = plan->state;
    const soft_call call = {p, x};

    (void)err;
    if (x->modes[0] != TN_MODE_NONE)
        tncpu_rows_run(plan, x, tncpu_ceil_div(p->rows.outer, p->group) * p->per_row, 0, strip_run, &call);
    return TN_OK;
}

static const char *const lengths[] = {"data:" TNCPU_FLOATS, "length:" TNCPU_ALL, "*:" TNCPU_FLOATS, NULL};
static const char *const labelled[] = {"label:" TNCPU_MOST, "*:" TNCPU_FLOATS, NULL};

#define SOFT_ROW(op, types, prepare) TNCPU_ROW(op, types, 0, prepare, soft_run)

const tn_kernel *const tncpu_family_softmax[] = {
    SOFT_ROW("softmax", lengths, softmax_prepare),
    SOFT_ROW("log_softmax", tncpu_floats, softmax_prepare),
    SOFT_ROW("softmin", tncpu_floats, softmax_prepare),
    SOFT_ROW("SoftmaxActivation", tncpu_floats, activation_prepare),
    SOFT_ROW("SoftmaxOutput", labelled, output_prepare),
    SOFT_ROW("_backward_softmax", tncpu_floats, softmax_prepare),
    SOFT_ROW("_backward_log_softmax", tncpu_floats, softmax_prepare),
    SOFT_ROW("_backward_softmin", tncpu_floats, softmax_prepare),
    SOFT_ROW("_backward_SoftmaxActivation", tncpu_floats, activation_prepare),
    NULL,
};
