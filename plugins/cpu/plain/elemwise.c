/* Kernels of arrays of one shape: two operands, copies and constants, sums of many, casts, a choice by
 * condition. */
#include "../../common/points.h"
#include "loops.h"
#include "rows.h"

/* clang-format off */
static const tncpu_point rows[] = {TNB_ELEMWISE_2(TNCPU_POINT_2) TNB_ELEMWISE_1(TNCPU_POINT_1)};
TNCPU_POINT_PREPARE(elemwise_prepare, rows)
/* clang-format on */

/* ---- add_n: ((a + b) + c) + …, in this order for every element -------------------------------- */

typedef struct sum_call {
    const tn_exec *x;
    const tncpu_convert *convert;
    int64_t inputs;
} sum_call;

static tn_status sum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(int64_t), err);

    if (st)
        return st;
    *(int64_t *)plan->state = node->in_count;
    if (node->in_count > 0)
        plan->inplace[0] = 0;
    tncpu_plan_work(node, plan, 8.0 + (double)tn_tensor_count(node->out[0]) * 0.4 * (double)node->in_count);
    return TN_OK;
}

static void sum_part(void *arg, int64_t begin, int64_t end)
{
    const sum_call *call = arg;
    const tn_exec *x = call->x;
    const tncpu_convert *c = call->convert;
    const tncpu_loop add = tncpu_loops[TNCPU_ADD][c->kind];
    tncpu_tile total, next;
    const void *const in[] = {&total, &next};

    for (int64_t at = begin; at < end; at += TNCPU_TILE) {
        int64_t n = end - at < TNCPU_TILE ? end - at : TNCPU_TILE, offset = at * c->bytes;

        c->load((const char *)x->in[0]->data + offset, 1, &total, n);
        for (int64_t k = 1; k < call->inputs; k++) {
            c->load((const char *)x->in[k]->data + offset, 1, &next, n);
            add(&total, in, n, NULL);
        }
        if (x->modes[0] == TN_MODE_ADD)
            c->add(&total, (char *)x->out[0]->data + offset, 1, n);
        else
            c->store(&total, (char *)x->out[0]->data + offset, 1, n);
    }
}

static tn_status sum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    sum_call call = {x, &tncpu_converts[x->out[0]->dtype], *(const int64_t *)plan->state};

    (void)err;
    if (x->modes[0] != TN_MODE_NONE)
        tncpu_for(plan, x, tn_tensor_count(x->out[0]), TNCPU_TILE, sum_part, &call);
    return TN_OK;
}

/* ---- Cast ------------------------------------------------------------------------------------- */

typedef struct cast_call {
    const tn_exec *x;
    const tncpu_convert *from, *to;
} cast_call;

static tn_status cast_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    if (node->in[0]->dtype == node->out[0]->dtype)
        plan->inplace[0] = 0;
    tncpu_plan_work(node, plan, 8.0 + (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

void tncpu_cast_tile(const tncpu_convert *from, const void *src, int64_t src_step, const tncpu_convert *to,
                     void *dst, int64_t dst_step, int64_t n)
{
    tncpu_tile narrow, wide;
    uint32_t kind = from->kind;

    from->load(src, src_step, kind == TNCPU_K_F64 || kind == TNCPU_K_I64 ? &wide : &narrow, n);
    if (kind == TNCPU_K_F32 && to->kind == TNCPU_K_F32) {
        to->store(&narrow, dst, dst_step, n);
        return;
    }
    if (kind == TNCPU_K_F32)
        tncpu_widen[TNCPU_K_F32][TNCPU_K_F64](&narrow, &wide, n);
    if (kind == TNCPU_K_I32)
        tncpu_widen[TNCPU_K_I32][TNCPU_K_I64](&narrow, &wide, n);
    if (kind == TNCPU_K_F32 || kind == TNCPU_K_F64)
        to->store_f(wide.f64, dst, dst_step, n);
    else if (from == &tncpu_converts[TN_U64] && to->store_u)
        to->store_u(wide.u64, dst, dst_step, n);
    else
        to->store_i(wide.i64, dst, dst_step, n);
}

/* To or from what shares its bytes: through bytes, which saturate or keep their low bits as four bits do. */
static void cast_packed(const tn_exec *x, int64_t begin, int64_t end)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    const bool unpack = in->dtype >= TN_I4, saturate = tncpu_is_float(in->dtype);
    const int32_t from = in->dtype == TN_I4 ? TN_I8 : in->dtype == TN_U4 ? TN_U8 : in->dtype;
    const int32_t to = out->dtype == TN_I4 ? TN_I8 : out->dtype == TN_U4 ? TN_U8 : out->dtype;
    const int32_t low = to == TN_I8 ? -8 : 0, high = to == TN_I8 ? 7 : 15;
    int8_t bytes[2][TNCPU_TILE];

    for (int64_t at = begin; at < end; at += TNCPU_TILE) {
        const int64_t n = end - at < TNCPU_TILE ? end - at : TNCPU_TILE;

        for (int64_t i = 0; unpack && i < n; i++)
            bytes[0][i] = (int8_t)tn_packed_get(in->data, in->dtype, at + i);
        tncpu_cast_tile(
            &tncpu_converts[from],
            unpack ? (const void *)bytes[0] : (const char *)in->data + at * (int64_t)tn_dtype_bytes(from), 1,
            &tncpu_converts[to],
            to == out->dtype ? (char *)out->data + at * (int64_t)tn_dtype_bytes(to) : (char *)bytes[1], 1, n);
        for (int64_t i = 0; to != out->dtype && i < n; i++) {
            const int32_t v = to == TN_I8 ? bytes[1][i] : (uint8_t)bytes[1][i];

            if (!(i & 1)) /* what is left over of the last byte is 0 */
                ((uint8_t *)out->data)[(at + i) / 2] = 0;
            tn_packed_set(out->data, at + i, !saturate ? v : v < low ? low : v > high ? high : v);
        }
    }
}

static void cast_part(void *arg, int64_t begin, int64_t end)
{
    const cast_call *c = arg;

    if (c->x->in[0]->dtype >= TN_I4 || c->x->out[0]->dtype >= TN_I4) {
        cast_packed(c->x, begin, end);
        return;
    }

    for (int64_t at = begin; at < end; at += TNCPU_TILE)
        tncpu_cast_tile(c->from, (const char *)c->x->in[0]->data + at * c->from->bytes, 1, c->to,
                        (char *)c->x->out[0]->data + at * c->to->bytes, 1,
                        end - at < TNCPU_TILE ? end - at : TNCPU_TILE);
}

static tn_status cast_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    cast_call call = {x, &tncpu_converts[x->in[0]->dtype], &tncpu_converts[x->out[0]->dtype]};

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (call.from == call.to && x->in[0]->data == x->out[0]->data)
        return TN_OK;
    tncpu_for(plan, x, tn_tensor_count(x->in[0]), TNCPU_TILE, cast_part, &call);
    return TN_OK;
}

static tn_status multicast_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    double elements = 0;
    tn_status st = tncpu_state(plugin, plan, sizeof(uint32_t), err);

    if (st)
        return st;
    *(uint32_t *)plan->state = node->in_count;
    for (uint32_t k = 0; k < node->in_count; k++) {
        if (node->in[k]->dtype == node->out[k]->dtype)
            plan->inplace[k] = (int32_t)k;
        elements += (double)tn_tensor_count(node->in[k]);
    }
    tncpu_plan_work(node, plan, 8 * (double)node->in_count + elements);
    return TN_OK;
}

static tn_status multicast_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < *(const uint32_t *)plan->state && !st; k++) {
        tn_exec one = *x;

        one.in += k;
        one.out += k;
        one.modes += k;
        st = cast_run(plan, &one, err);
    }
    return st;
}

/* ---- where ------------------------------------------------------------------------------------ */

typedef struct where_plan {
    int64_t count, block; /* `block` elements share one element of the condition */
} where_plan;

typedef struct where_call {
    const where_plan *p;
    const tn_exec *x;
    const char *from[2]; /* where the condition is 0, and where it is not; NULL: zeros */
} where_call;

static tn_status where_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int64_t conditions = tn_tensor_count(node->in[0]);
    where_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->count = tn_tensor_count(node->out[0]);
    p->block = conditions > 0 ? p->count / conditions : 1;
    tncpu_plan_work(node, plan, 8.0 + (double)p->count * 1.5);
    return TN_OK;
}

/* Of `n` elements of the condition: not 0 where it is true; NaN is. */
static void flags_read(const tn_tensor *condition, int64_t first, int64_t n, tncpu_tile *flags)
{
    const tncpu_convert *c = &tncpu_converts[condition->dtype];
    const tncpu_cross truth = tncpu_truth[c->kind];
    tncpu_tile wide;

    c->load((const char *)condition->data + first * c->bytes, 1, truth ? &wide : flags, n);
    if (truth)
        truth(&wide, flags, n);
}

/* to[i] = flags[i] ? yes[i] : no[i] for elements of one size. */
typedef void pick(void *to, const void *yes, const void *no, const int32_t *flags, int64_t n);

#define DEFINE_PICK(U, bytes)                                                                                \
    static void pick_##bytes(void *to, const void *yes, const void *no, const int32_t *flags, int64_t n)     \
    {                                                                                                        \
        const U *p = yes, *q = no;                                                                           \
        U *y = to;                                                                                           \
                                                                                                             \
        TNCPU_IVDEP                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const U a = p[i], b = q[i];                                                                      \
                                                                                                             \
            y[i] = flags[i] ? a : b;                                                                         \
        }                                                                                                    \
    }

DEFINE_PICK(uint8_t, 1)
DEFINE_PICK(uint16_t, 2)
DEFINE_PICK(uint32_t, 4)
DEFINE_PICK(uint64_t, 8)

static pick *const picks[] = {[1] = pick_1, [2] = pick_2, [4] = pick_4, [8] = pick_8};

/* An element of the condition for each element. */
static void where_elements(void *arg, int64_t begin, int64_t end)
{
    const where_call *call = arg;
    const tn_tensor *y = call->x->out[0];
    const int64_t bytes = (int64_t)tn_dtype_bytes(y->dtype);
    tncpu_tile flags, zeros;

    if (!call->from[0] || !call->from[1])
        memset(&zeros, 0, sizeof zeros);
    for (int64_t at = begin; at < end; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(end - at, TNCPU_TILE);
        const void *from[2];

        for (int side = 0; side < 2; side++)
            from[side] = call->from[side] ? call->from[side] + at * bytes : (const char *)&zeros;
        flags_read(call->x->in[0], at, n, &flags);
        picks[bytes]((char *)y->data + at * bytes, from[1], from[0], flags.i32, n);
    }
}

/* Copies runs that take the same side. */
static void where_runs(void *arg, int64_t begin, int64_t end)
{
    const where_call *call = arg;
    const where_plan *p = call->p;
    int64_t bytes = (int64_t)tn_dtype_bytes(call->x->out[0]->dtype);
    tncpu_tile flags;

    for (int64_t at = begin; at < end;) {
        int64_t first = at / p->block, n = (end - 1) / p->block + 1 - first;

        n = tncpu_min(n, TNCPU_TILE);
        flags_read(call->x->in[0], first, n, &flags);
        for (int64_t i = 0; i < n && at < end; i++) {
            int64_t stop = tncpu_min((first + i + 1) * p->block, end);
            const char *from = call->from[flags.i32[i] != 0];
            char *to = (char *)call->x->out[0]->data + at * bytes;

            if (from)
                tncpu_row_copy(to, from + at * bytes, (stop - at) * bytes);
            else
                memset(to, 0, (size_t)((stop - at) * bytes));
            at = stop;
        }
    }
}

static void where_sides(const tn_plan *plan, const tn_exec *x, const char *yes, const char *no)
{
    where_call call = {plan->state, x, {no, yes}};

    if (x->modes[0] != TN_MODE_NONE)
        tncpu_for(plan, x, call.p->count, TNCPU_TILE, call.p->block == 1 ? where_elements : where_runs,
                  &call);
}

TNCPU_RUN(where_run, where_sides(plan, x, x->in[1]->data, x->in[2]->data))
/* condition, dy -> dx, dy: each side gets the gradient where it was taken. */
TNCPU_RUN(where_x_run, where_sides(plan, x, x->in[1]->data, NULL))
TNCPU_RUN(where_y_run, where_sides(plan, x, NULL, x->in[1]->data))

/* ---- the family ------------------------------------------------------------------------------- */

#define KERNEL2(op, id) TNCPU_POINT_KERNEL(op, elemwise_prepare, tncpu_most)
#define KERNEL1(op, id) TNCPU_POINT_KERNEL(op, elemwise_prepare, tncpu_all)
static const char *const any[] = {"condition:" TNCPU_ALL, "x:" TNCPU_ALL, "*:=x", NULL};
static const char *const any_back[] = {"condition:" TNCPU_ALL, "dy:" TNCPU_ALL, "*:=dy", NULL};
static const char *const cast_types[] = {"*:" TNCPU_ALL ",i4,u4", NULL};

/* clang-format off */
const tn_kernel *const tncpu_family_elemwise[] = {
    TNB_ELEMWISE_2(KERNEL2) TNB_ELEMWISE_1(KERNEL1)
     TNCPU_ROW("add_n", tncpu_all, TN_KERNEL_ADD_TO, sum_prepare, sum_run),
    TNCPU_ROW("Cast", cast_types, 0, cast_prepare, cast_run),
    TNCPU_ROW("amp_cast", cast_types, 0, cast_prepare, cast_run),
    TNCPU_ROW("amp_multicast", tncpu_all, 0, multicast_prepare, multicast_run),
    TNCPU_ROW("_backward_cast", cast_types, 0, cast_prepare, cast_run),
    TNCPU_ROW("where", any, 0, where_prepare, where_run),
    TNCPU_ROW("_backward_where_x", any_back, 0, where_prepare, where_x_run),
    TNCPU_ROW("_backward_where_y", any_back, 0, where_prepare, where_y_run),
    NULL,
};
/* clang-format on */
