/*
 * Pointwise operators: the rows of plugins/common/points.h, each a kernel for each of four compute types.
 * plugins/cpu/plain/pointwise.c plans hosts by the same rules: the widest type of the operands and the output
 * computes, or double where a function means nothing on integers.
 */
#include "../common/index.h"
#include "../common/points.h"
#include "last.h"
#include "tenon/plugin/op/activation.h"
#include "tenon/plugin/op/regression.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K_F32 = TNCUDA_KIND_F32, K_F64 = TNCUDA_KIND_F64, K_I32 = TNCUDA_KIND_I32, K_I64 = TNCUDA_KIND_I64 };

#define IN_FLOATS 1u
#define IN_WHOLE 2u

static const struct {
    const char *name;
    uint8_t kinds, numbers; /* IN_…; how many attributes are numbers of it */
} loops[] = {
#define LOOP1(id, ns, expression) {#id, KINDS, 0},
#define LOOP2 LOOP1
#define LOOP3 LOOP1
#define LOOP1S(id, ns, expression) {#id, KINDS, 1},
#define LOOP2S LOOP1S
#define LOOP1SS(id, ns, expression) {#id, KINDS, 2},
#define LOOP2SS LOOP1SS
#define KINDS (IN_FLOATS | IN_WHOLE)
#include "../common/loops.list"
#undef KINDS
#define KINDS IN_FLOATS
#include "../common/loops_float.list"
#undef KINDS
#define KINDS IN_WHOLE
#include "../common/loops_int.list"
#undef KINDS
};

static const uint8_t kinds[TN_DTYPE_LIMIT] = {
    [TN_F32] = K_F32, [TN_F64] = K_F64, [TN_F16] = K_F32,  [TN_U8] = K_I32,  [TN_I32] = K_I32,
    [TN_I8] = K_I32,  [TN_I64] = K_I64, [TN_BOOL] = K_I32, [TN_I16] = K_I32, [TN_U16] = K_I32,
    [TN_U32] = K_I64, [TN_U64] = K_I64, [TN_BF16] = K_F32};

#define COPY_LEAST (1u << 20) /* bytes from which the driver copies, as fast as the memory is */

typedef struct point_state {
    char kernel[TNCUDA_NAME_BYTES], family[16];
    uint32_t in_count, numbers, kind;
    bool own_number;
    uint64_t copied;        /* bytes that are copied as they are; 0: it is no such copy */
    tncuda_point_args args; /* all but where the arrays lie and the numbers of a run */
} point_state;

/* ---- planning ------------------------------------------------------------------------------------------ */

static int64_t *operand_plan(tncuda_operand *o, const tn_tensor *t, const tn_tensor *out)
{
    o->dtype = t->dtype;
    tnb_steps(t->ndim, t->shape, t->stride, out->ndim, o->stride);
    return o->stride;
}

static uint32_t wider(uint32_t a, uint32_t b)
{
    static const uint8_t order[] = {[K_I32] = 0, [K_I64] = 1, [K_F32] = 2, [K_F64] = 3};

    return order[a] >= order[b] ? a : b;
}

/* How what is computed as `kind` is stored. */
static int32_t store_of(uint32_t kind, int32_t dtype)
{
    return dtype == TN_BOOL       ? TNCUDA_STORE_TRUTH
           : kinds[dtype] == kind ? TNCUDA_STORE_SAME
                                  : TNCUDA_STORE_CUT;
}

uint32_t tncuda_kind_of(int32_t dtype)
{
    return kinds[dtype];
}

static bool is_whole(uint32_t kind)
{
    return kind == K_I32 || kind == K_I64;
}

static bool has_loop(const tncuda_point_row *row, uint32_t kind)
{
    return loops[row->loop].kinds & (is_whole(kind) ? IN_WHOLE : IN_FLOATS);
}

/* A number with a point is compared as such, whatever it is compared to; one that fills an array is
 * converted once. */
static uint32_t kind_of(const tncuda_point_row *row, uint32_t in_count, const tn_node *node)
{
    uint32_t kind = in_count || row->loop != TNCUDA_COPY ? kinds[node->out[0]->dtype] : K_F64;

    for (uint32_t k = 0; k < in_count; k++)
        kind = wider(kind, kinds[node->in[k]->dtype]);
    if (row->scalar >= 0 && node->attr_count > 1 && node->out[0]->dtype == TN_BOOL && is_whole(kind) &&
        !tn_value_int(node->attrs[1]))
        kind = K_F64;
    return is_whole(kind) && !has_loop(row, kind) ? K_F64 : kind;
}

static bool broadcasts(const tn_tensor *in, const tn_tensor *out)
{
    if (in->ndim > out->ndim)
        return false;
    for (int32_t d = 0; d < in->ndim; d++)
        if (in->shape[d] != 1 && in->shape[d] != out->shape[d + out->ndim - in->ndim])
            return false;
    return true;
}

static tn_status node_check(const tncuda_point_row *row, uint32_t in_count, const tn_node *node, tn_err *err)
{
    const uint32_t kind = kind_of(row, in_count, node), out = kinds[node->out[0]->dtype];

    if (in_count + (row->scalar >= 0) != row->operands || node->out_count < 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    if (!has_loop(row, kind))
        return tn_fail(err, TN_E_UNSUPPORTED, "no loop for this data type");
    if (kind != out && node->out[0]->dtype != TN_BOOL && has_loop(row, out) && row->loop != TNCUDA_COPY)
        return tn_fail(err, TN_E_UNSUPPORTED, "an output of a narrower data type than an input");
    for (uint32_t k = 0; k < in_count; k++)
        if (!broadcasts(node->in[k], node->out[0]))
            return tn_fail(err, TN_E_SHAPE, "an input does not broadcast to the output");
    return TN_OK;
}

/* An input of the same places and type as the output. */
static bool same_places(const tn_tensor *in, const tn_tensor *out)
{
    bool same = in->dtype == out->dtype && in->ndim == out->ndim;

    for (int32_t d = 0; d < out->ndim && same; d++)
        same = in->shape[d] == out->shape[d] && (in->shape[d] == 1 || in->stride[d] == out->stride[d]);
    return same;
}

/* ---- places -------------------------------------------------------------------------------------------- */

/* After Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994). Nobody divides
 * by a dimension of 0: there is no element. */
tncuda_divisor tncuda_divisor_of(int64_t by)
{
    const uint64_t d = by > 0 ? (uint64_t)by : 1;
    uint32_t shift = 0;

    while (((uint64_t)1 << shift) < d)
        shift++;
    return (tncuda_divisor){.by = (uint32_t)d,
                            .magic = (uint32_t)((((((uint64_t)1 << shift) - d) << 32) / d) + 1),
                            .shift = shift};
}

bool tncuda_is_narrow(int32_t ndim, const int64_t *shape, const int64_t *step)
{
    int64_t most = 0;

    for (int32_t d = 0; d < ndim; d++) {
        const int64_t size = step[d] < 0 ? -step[d] : step[d];

        if (shape[d] > INT32_MAX || size > INT32_MAX || (most += (shape[d] - 1) * size) > INT32_MAX)
            return false;
    }
    return true;
}

#define SHORTS 8u /* elements of a pack of short floats alone */

static uint32_t pack_of(uint32_t kind)
{
    return kind == K_F32 || kind == K_I32 ? 4 : 2;
}

/* One of the data types that packs are read of; `*mixed`: not of the compute type. */
static bool packs(const tncuda_operand *o, uint32_t kind, bool *mixed)
{
    static const int32_t native[] = {[K_F32] = TN_F32, [K_F64] = TN_F64, [K_I32] = TN_I32, [K_I64] = TN_I64};

    if (o->dtype == native[kind])
        return true;
    *mixed = true;
    return kind == K_F32 && tncuda_is_short(o->dtype);
}

/* The elements of a pack lie side by side, or all read one. */
static bool in_rows(const tncuda_point_args *a, const int64_t *stride, uint32_t pack)
{
    const int32_t last = a->ndim - 1;

    if (last < 0 || stride[last] == 0)
        return true;
    if (stride[last] != 1)
        return false;
    for (int32_t d = 0; d < last; d++)
        if (stride[d] % pack)
            return false;
    return true;
}

/* The operand `index`: 0 is the output, those behind it are the inputs. */
static const tncuda_operand *operand_at(const tncuda_point_args *a, uint32_t index)
{
    return index ? &a->in[index - 1] : &a->out;
}

/* All rows of all operands consist of packs of so many elements. */
static bool rows_fit(const tncuda_point_args *a, uint32_t in_count, uint32_t pack)
{
    bool fit = a->ndim <= 1 || a->shape[a->ndim - 1] % pack == 0;

    for (uint32_t k = 0; k <= in_count && fit; k++)
        fit = in_rows(a, operand_at(a, k)->stride, pack);
    return fit && (a->ndim != 1 || a->out.stride[0] == 1);
}

/* The best way for arrays that are aligned. */
static void places_plan(tncuda_point_args *a, uint32_t kind, uint32_t in_count)
{
    bool mixed = false, types = true, shorts = tncuda_is_short(a->out.dtype);

    a->places = TNCUDA_PLACES_WIDE;
    for (uint32_t k = 0; k <= in_count; k++) {
        const tncuda_operand *o = operand_at(a, k);

        if (a->ndim > 1 && (a->count > INT32_MAX || !tncuda_is_narrow(a->ndim, a->shape, o->stride)))
            return;
        types = packs(o, kind, &mixed) && types;
        shorts = shorts && o->dtype == a->out.dtype;
    }
    for (int32_t d = 0; d < a->ndim && a->ndim > 1; d++)
        a->split[d] = tncuda_divisor_of(a->shape[d]);
    if (types && shorts && rows_fit(a, in_count, SHORTS))
        a->places = TNCUDA_PLACES_SHORTS;
    else if (types && rows_fit(a, in_count, pack_of(kind)))
        a->places = mixed ? TNCUDA_PLACES_MIXED : TNCUDA_PLACES_PACKS;
    else
        a->places = mixed ? TNCUDA_PLACES_ANY : TNCUDA_PLACES_NARROW;
}

/* Every operand whose elements are read as packs begins where these may. */
static bool aligned(const tncuda_point_args *a, uint32_t in_count, uint32_t pack)
{
    bool all = true;

    for (uint32_t k = 0; k <= in_count && a->ndim; k++) {
        const tncuda_operand *o = operand_at(a, k);

        all = all &&
              (o->stride[a->ndim - 1] == 0 || (uintptr_t)o->data % (pack * tn_dtype_bytes(o->dtype)) == 0);
    }
    return all;
}

static tn_status launch(const tn_exec *x, const char *family, const char *kernel, tncuda_point_args *a,
                        uint32_t kind, uint32_t in_count, tn_err *err)
{
    int64_t items = a->count;

    if (a->places == TNCUDA_PLACES_SHORTS && !aligned(a, in_count, SHORTS))
        a->places = TNCUDA_PLACES_MIXED;
    if (a->places >= TNCUDA_PLACES_PACKS) {
        const uint32_t pack = a->places == TNCUDA_PLACES_SHORTS ? SHORTS : pack_of(kind);
        const bool all = aligned(a, in_count, pack);

        a->varies = 0;
        for (uint32_t k = 0; k < in_count && a->ndim; k++)
            if ((int32_t)k != a->scalar && a->in[k].stride[a->ndim - 1])
                a->varies |= 1 << k;
        if (!all)
            a->places = a->places == TNCUDA_PLACES_PACKS ? TNCUDA_PLACES_NARROW : TNCUDA_PLACES_ANY;
        items = all && items > pack ? items / pack : items;
    }
    return tncuda_launch(x, family, kernel, items, a, err);
}

/* Of a copy that changes nothing and leaves no gap. */
static uint64_t copied_bytes(const tncuda_point_args *a, bool laid_out)
{
    const uint64_t bytes = (uint64_t)a->count * tn_dtype_bytes(a->out.dtype);
    const bool dense = a->ndim == 1 && a->out.stride[0] == 1 && a->in[0].stride[0] == 1;

    return dense && !laid_out && a->in[0].dtype == a->out.dtype ? bytes : 0;
}

tn_status tncuda_point_plan(const tncuda_point_row *row, uint32_t in_count, void *plugin, const tn_node *node,
                            tn_plan *plan, tn_err *err)
{
    static const char *const suffixes[] = {"f32", "f64", "i32", "i64"};
    const tn_tensor *out = node->out[0];
    int64_t *steps[4];
    point_state *s;
    uint32_t kind;
    tn_status st;

    if ((st = node_check(row, in_count, node, err)) ||
        (st = tncuda_state(plugin, node, plan, sizeof(point_state), err)))
        return st;
    s = plan->state;
    kind = kind_of(row, in_count, node);
    (void)snprintf(s->kernel, sizeof s->kernel, "point_%s_%s", loops[row->loop].name, suffixes[kind]);
    (void)snprintf(s->family, sizeof s->family, "point_%s", suffixes[kind]);
    s->in_count = in_count;
    s->numbers = loops[row->loop].numbers;
    s->args.count = tn_tensor_count(out);
    s->args.scalar = row->scalar;
    s->args.store = store_of(kind, out->dtype);
    s->kind = kind;
    if (!s->args.count) /* nothing is launched */
        return TN_OK;
    steps[0] = operand_plan(&s->args.out, out, out);
    for (uint32_t k = 0; k < in_count; k++) {
        steps[k + 1] = operand_plan(&s->args.in[k], node->in[k], out);
        if (same_places(node->in[k], out) && plan->inplace[0] < 0)
            plan->inplace[0] = (int32_t)k;
    }
    s->args.ndim = tnb_join(out->ndim, out->shape, in_count + 1, steps, s->args.shape);
    places_plan(&s->args, kind, in_count);
    if (row->loop == TNCUDA_COPY && in_count == 1)
        s->copied = copied_bytes(&s->args, node->in[0]->layout || out->layout);
    return TN_OK;
}

void tncuda_point_number(tn_plan *plan, double number)
{
    point_state *s = plan->state;

    s->own_number = true;
    s->args.s = number;
}

tn_status tncuda_point_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const point_state *s = plan->state;
    tncuda_point_args args = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    args.add = x->modes[0] == TN_MODE_ADD;
    if (s->copied && !args.add && (s->copied >= COPY_LEAST || x->out[0]->data == x->in[0]->data))
        return tncuda_copy_dense(x, x->out[0]->data, x->in[0]->data, s->copied, err);
    args.out.data = x->out[0]->data;
    for (uint32_t k = 0; k < s->in_count; k++)
        args.in[k].data = x->in[k]->data;
    if (args.scalar >= 0)
        args.number = tn_value_float(x->attrs[0]);
    if (args.scalar == 0 && !s->in_count)
        return tncuda_fill(x, &args, err);
    if (s->numbers > 0 && !s->own_number)
        args.s = tn_value_float(x->attrs[0]);
    if (s->numbers > 1)
        args.s2 = tn_value_float(x->attrs[1]);
    return launch(x, s->family, s->kernel, &args, s->kind, s->in_count, err);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

#define POINT_1(op, id) {#op, TNCUDA_##id, 1, -1},
#define POINT_2(op, id) {#op, TNCUDA_##id, 2, -1},
#define POINT_SCALAR(op, id) {#op, TNCUDA_##id, 2, 1},

#define CASTS(X) X(_move, COPY) X(Cast, COPY) X(amp_cast, COPY) X(_backward_cast, COPY)

static const tncuda_point_row rows[] = {
    TNB_ELEMWISE_2(POINT_2) TNB_ELEMWISE_1(POINT_1) TNB_UNARY_NUMBERS(POINT_1) TNB_UNARY_FLOATS(POINT_1)
        TNB_UNARY_MOST(POINT_1) TNB_UNARY_BACK_FLOATS(POINT_2) TNB_UNARY_BACK_MOST(POINT_2)
            TNB_SCALAR(POINT_SCALAR) TNB_SCALAR_BACK(POINT_2) TNB_BROADCAST_2(POINT_2)
                TNB_BROADCAST_1(POINT_1) TNB_BROADCAST_LIKE(POINT_1) TNB_NUMPY_QUESTIONS(POINT_1)
                    TNB_NUMPY_FLOATS(POINT_2) TNB_NUMPY_NUMBERS(POINT_2) TNB_NUMPY_INTEGERS(POINT_2)
                        TNB_NUMPY_SCALARS(POINT_SCALAR) TNB_NUMPY_INTEGER_SCALARS(POINT_SCALAR)
                            TNB_NUMPY_NOTS(POINT_1) CASTS(POINT_1){"_fill", TNCUDA_COPY, 1, 0},
};

#define NUMBERED(op, id) _Static_assert(TNCUDA_##id < TNCUDA_LOOP_NUMBERED, #op ": no number in this loop");
TNB_SCALAR(NUMBERED)
TNB_NUMPY_SCALARS(NUMBERED)
#undef NUMBERED

    /* The bits of a bool: one that has others beside the first would be another true. */
    static const tncuda_point_row bool_rows[] = {
        {"_npi_bitwise_not", TNCUDA_NOT, 1, -1},     {"_npi_bitwise_and_scalar", TNCUDA_AND, 2, 1},
        {"_npi_bitwise_or_scalar", TNCUDA_OR, 2, 1}, {"_npi_bitwise_xor_scalar", TNCUDA_XOR, 2, 1},
        {"_npi_lcm_scalar", TNCUDA_AND, 2, 1},
};

/* COPY, or of no input the fill. */
static tn_status copy_launch(const tn_exec *x, tncuda_point_args *a, uint32_t kind, tn_err *err)
{
    static const char *const suffixes[] = {"f32", "f64", "i32", "i64"};
    const uint32_t in_count = a->scalar < 0;
    char kernel[TNCUDA_NAME_BYTES], family[16];

    (void)snprintf(kernel, sizeof kernel, "point_COPY_%s", suffixes[kind]);
    (void)snprintf(family, sizeof family, "point_%s", suffixes[kind]);
    if (a->count)
        places_plan(a, kind, in_count);
    return launch(x, family, kernel, a, kind, in_count, err);
}

tn_status tncuda_cast(const tn_exec *x, const tn_tensor *from, const tn_tensor *to, bool add, tn_err *err)
{
    const uint32_t kind = wider(kinds[from->dtype], kinds[to->dtype]);
    tncuda_point_args a = {.count = tn_tensor_count(to),
                           .ndim = 1,
                           .store = store_of(kind, to->dtype),
                           .add = add,
                           .scalar = -1,
                           .in = {{.data = from->data, .dtype = from->dtype}},
                           .out = {.data = to->data, .dtype = to->dtype}};

    a.shape[0] = a.count;
    a.in[0].stride[0] = a.out.stride[0] = 1;
    return copy_launch(x, &a, kind, err);
}

tn_status tncuda_bias_add(const tn_exec *x, const tn_tensor *bias, const tn_tensor *to, int64_t outer,
                          int64_t count, int64_t inner, tn_err *err)
{
    const uint32_t kind = wider(kinds[bias->dtype], kinds[to->dtype]);
    tncuda_point_args a = {
        .count = tn_tensor_count(to),
        .ndim = inner > 1 ? 3 : 2, /* rows of what is added are read as packs */
        .shape = {outer, count, inner},
        .store = store_of(kind, to->dtype),
        .add = 1,
        .scalar = -1,
        .in = {{.stride = {0, 1, 0}, .data = bias->data, .dtype = bias->dtype}},
        .out = {.stride = {count * inner, inner, 1}, .data = to->data, .dtype = to->dtype}};

    return copy_launch(x, &a, kind, err);
}

tn_status tncuda_fill(const tn_exec *x, tncuda_point_args *a, tn_err *err)
{
    const int32_t dtype = a->out.dtype;
    const bool bits = a->number == 0 && !signbit(a->number); /* of a word: all are 0, whatever type it has */
    const bool floats = dtype == TN_F32 || ((dtype == TN_F16 || dtype == TN_BF16) &&
                                            (double)(float)a->number == a->number); /* rounded once */
    const uint32_t kind = floats || (bits && dtype == TN_I32) ? kinds[dtype]
                          : bits && dtype == TN_I64           ? K_I64
                                                              : K_F64;

    a->scalar = 0;
    a->store = store_of(kind, dtype);
    return copy_launch(x, a, kind, err);
}

/* What bodies call and no kernel of this file serves by itself. */
static const tncuda_point_row where_row = {"where", TNCUDA_WHERE, 3, -1};

static void how_set(const tn_node *node, const tncuda_point_row *row, tncuda_point_how *how)
{
    how->row = row;
    how->in_count = (uint32_t)(row->operands - (row->scalar >= 0));
    for (uint32_t k = 0; k < how->in_count && k < node->in_count; k++)
        how->inputs[k] = node->in[k];
}

/* An attribute chooses the loop: in the order of the definition's choices. */
static tn_status activation_resolve(const tn_node *node, tncuda_point_how *how, tn_err *err)
{
    static const tncuda_point_row forward[] = {POINT_1(Activation, RELU) POINT_1(Activation, SIGMOID) POINT_1(
        Activation, TANH) POINT_1(Activation, SOFTRELU) POINT_1(Activation, SOFTSIGN)};
    static const tncuda_point_row back[] = {
        POINT_2(_backward_Activation, STEP_BACK) POINT_2(_backward_Activation, SIGMOID_BACK)
            POINT_2(_backward_Activation, TANH_BACK) POINT_2(_backward_Activation, SOFTRELU_BACK)
                POINT_2(_backward_Activation, SOFTSIGN_Y_BACK)};
    const bool is_forward = !strcmp(node->op, "Activation");

    if (node->in_count != (is_forward ? 1u : 2u))
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    how_set(node, &(is_forward ? forward : back)[node->attrs[TN_Activation_act_type]], how);
    return TN_OK;
}

/* gamma as a tensor of data's dimensions: its elements lie along axis 1. */
static void gamma_view(const tn_tensor *gamma, const tn_tensor *data, int64_t *dims, tn_tensor *view)
{
    for (int32_t d = 0; d < data->ndim; d++) {
        dims[d] = d == 1 ? gamma->shape[0] : 1;
        dims[TN_NDIM_MAX + d] = d == 1 ? gamma->stride[0] : 0;
    }
    *view = *gamma;
    view->ndim = data->ndim;
    view->shape = dims;
    view->stride = dims + TN_NDIM_MAX;
}

static tn_status leaky_resolve(const tn_node *node, tncuda_point_how *how, tn_err *err)
{
    static const tncuda_point_row forward[] = {POINT_1(LeakyReLU, LEAKY) POINT_1(LeakyReLU, LEAKY) POINT_2(
        LeakyReLU, PRELU) POINT_1(LeakyReLU, ELU) POINT_1(LeakyReLU, SELU) POINT_1(LeakyReLU, GELU)};
    static const tncuda_point_row back[] = {
        POINT_2(_backward_LeakyReLU, LEAKY_BACK)
            POINT_2(_backward_LeakyReLU, LEAKY_BACK){"_backward_LeakyReLU", TNCUDA_PRELU_BACK, 3, -1},
        POINT_2(_backward_LeakyReLU, ELU_BACK) POINT_2(_backward_LeakyReLU, SELU_BACK)
            POINT_2(_backward_LeakyReLU, GELU_BACK)};
    const int64_t type = tn_value_int(node->attrs[TN_LeakyReLU_act_type]);
    const double low = tn_value_float(node->attrs[TN_LeakyReLU_lower_bound]),
                 high = tn_value_float(node->attrs[TN_LeakyReLU_upper_bound]);

    if (type == TN_LeakyReLU_act_type_rrelu && (node->flags & TN_NODE_TRAIN))
        return tn_fail(err, TN_E_UNSUPPORTED,
                       "act_type rrelu with random slopes (training) is not there yet");
    how_set(node, &(strcmp(node->op, "LeakyReLU") == 0 ? forward : back)[type], how);
    if (node->in_count != how->in_count)
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    if (type == TN_LeakyReLU_act_type_prelu) {
        gamma_view(node->in[node->in_count - 1], node->in[0], how->gamma_dims, &how->gamma);
        how->inputs[node->in_count - 1] = &how->gamma;
        return TN_OK;
    }
    how->own_number = true;
    how->number = type == TN_LeakyReLU_act_type_rrelu ? (low + high) / 2
                                                      : tn_value_float(node->attrs[TN_LeakyReLU_slope]);
    return TN_OK;
}

static tn_status row_resolve(const tn_node *node, tncuda_point_how *how, tn_err *err)
{
    if (!strcmp(node->op, where_row.op)) {
        how_set(node, &where_row, how);
        return TN_OK;
    }
    for (size_t i = 0; i < sizeof bool_rows / sizeof *bool_rows && node->out[0]->dtype == TN_BOOL; i++)
        if (!strcmp(bool_rows[i].op, node->op)) {
            how_set(node, &bool_rows[i], how);
            return TN_OK;
        }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op, node->op)) {
            how_set(node, &rows[i], how);
            return TN_OK;
        }
    return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
}

static const struct {
    const char *op;
    tn_status (*resolve)(const tn_node *node, tncuda_point_how *how, tn_err *err);
} by_choice[] = {{"Activation", activation_resolve},
                 {"_backward_Activation", activation_resolve},
                 {"LeakyReLU", leaky_resolve},
                 {"_backward_LeakyReLU", leaky_resolve}};

tn_status tncuda_point_resolve(const tn_node *node, tncuda_point_how *how, tn_err *err)
{
    tn_node seen = *node;
    size_t i = 0;
    tn_status st;

    memset(how, 0, sizeof *how);
    while (i < sizeof by_choice / sizeof *by_choice && strcmp(by_choice[i].op, node->op) != 0)
        i++;
    st = i < sizeof by_choice / sizeof *by_choice ? by_choice[i].resolve(node, how, err)
                                                  : row_resolve(node, how, err);
    if (st)
        return st;
    if (how->in_count > node->in_count)
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    seen.in = how->in = how->inputs;
    if ((st = node_check(how->row, how->in_count, &seen, err)))
        return st;
    how->name = loops[how->row->loop].name;
    how->numbers = loops[how->row->loop].numbers;
    how->kind = kind_of(how->row, how->in_count, &seen);
    how->store = store_of(how->kind, node->out[0]->dtype);
    return TN_OK;
}

static tn_status point_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tncuda_point_how how;
    tn_node seen = *node;
    tn_status st = tncuda_point_resolve(node, &how, err);

    if (st)
        return st;
    seen.in = how.in;
    st = tncuda_point_plan(how.row, how.in_count, plugin, &seen, plan, err);
    if (!st && how.own_number)
        tncuda_point_number(plan, how.number);
    if (!st && tncuda_last_pointwise(node) &&
        (st = tncuda_last_ask(plugin, node, plan, TNCUDA_LAST_ALL, TNCUDA_LAST_ALL, err)))
        tncuda_release(plan);
    return st;
}

/* Regression losses follow from the data alone; of their gradients, labels may be (N) beside data (N, 1). */
static tn_status loss_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row losses[] = {
        POINT_1(LinearRegressionOutput, COPY) POINT_1(LogisticRegressionOutput, SIGMOID)
            POINT_1(MAERegressionOutput, COPY) POINT_2(_backward_LinearRegressionOutput, ERROR)
                POINT_2(_backward_LogisticRegressionOutput, ERROR)
                    POINT_2(_backward_MAERegressionOutput, ERROR_SIGN)};
    const tn_tensor *label = node->in[1];
    const int64_t examples = label->ndim && label->shape[0] ? label->shape[0] : 1,
                  each = tn_tensor_count(label) / examples;
    const tncuda_point_row *row = losses;
    tn_tensor view = *node->out[0]; /* dense, as the label is */
    const tn_tensor *in[] = {node->in[0], &view};
    tn_node same = *node;
    tn_status st;

    while (strcmp(row->op, node->op) != 0)
        row++;
    view.dtype = label->dtype;
    same.in = in;
    st = tncuda_point_plan(row, row->operands, plugin, &same, plan, err);
    if (!st && row->operands == 2)
        tncuda_point_number(plan, tn_value_float(node->attrs[TN_regression_grad_scale]) /
                                      (double)(each > 1 ? each : 1));
    return st;
}

static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const most[] = {"*:" TNCUDA_MOST, NULL};
static const char *const integers[] = {"*:u8,i32,i8,i64,bool,i16,u16,u32", NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};

#define MOVES (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_LAYOUTS)
#define FLAGS (MOVES | TN_KERNEL_POINTWISE)
#define ROW(op, types) TNCUDA_ROW(op, types, FLAGS, point_prepare, tncuda_point_run),
#define FLOATS(op, id) ROW(#op, floats)
#define NUMBERS(op, id) ROW(#op, numbers)
#define MOST(op, id) ROW(#op, most)
#define ALL(op, id) ROW(#op, all)
#define LOSS(op)                                                                                             \
    TNCUDA_ROW(op, floats, 0, loss_prepare, tncuda_point_run),                                               \
        TNCUDA_ROW("_backward_" op, floats, 0, loss_prepare, tncuda_point_run),
#define INTEGERS(op, id) ROW(#op, integers)
#define MOVE(op, id) TNCUDA_ROW(#op, all, MOVES, point_prepare, tncuda_point_run),

/* clang-format off */
const tn_kernel *const tncuda_family_point[] = {
    TNB_ELEMWISE_2(MOST) TNB_ELEMWISE_1(ALL) TNB_UNARY_NUMBERS(NUMBERS) TNB_UNARY_FLOATS(FLOATS)
    TNB_UNARY_MOST(MOST) TNB_UNARY_BACK_FLOATS(FLOATS) TNB_UNARY_BACK_MOST(MOST)
    TNB_SCALAR(MOST) TNB_SCALAR_BACK(FLOATS)
    TNB_BROADCAST_2(MOST) TNB_BROADCAST_1(ALL) TNB_BROADCAST_LIKE(ALL)
    TNB_NUMPY_QUESTIONS(MOST) TNB_NUMPY_FLOATS(FLOATS) TNB_NUMPY_NUMBERS(NUMBERS) TNB_NUMPY_INTEGERS(INTEGERS)
    TNB_NUMPY_SCALARS(MOST) TNB_NUMPY_INTEGER_SCALARS(INTEGERS) TNB_NUMPY_NOTS(INTEGERS)
    CASTS(MOVE) TNCUDA_ROW("_fill", all, MOVES, point_prepare, tncuda_point_run),
    TNCUDA_ROW("Activation", floats, FLAGS, point_prepare, tncuda_point_run),
    TNCUDA_ROW("_backward_Activation", floats, FLAGS, point_prepare, tncuda_point_run),
    TNCUDA_ROW("LeakyReLU", floats, FLAGS, point_prepare, tncuda_point_run),
    TNCUDA_ROW("_backward_LeakyReLU", floats, FLAGS, point_prepare, tncuda_point_run),
    LOSS("LinearRegressionOutput") LOSS("LogisticRegressionOutput") LOSS("MAERegressionOutput")
    NULL,
};
/* clang-format on */
