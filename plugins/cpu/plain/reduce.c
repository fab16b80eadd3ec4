/*
 * Reductions with a fixed tree. The elements that go into one output are counted row-major over the reduced
 * axes and cut into leaves of 1024; leaves are joined two and two, then the pairs, and so on. Neither the
 * number of threads nor the strides move the tree. Floating point is accumulated in double (so f32 sums are
 * exact to the last bit nearly always), integers in 64 bits.
 *
 * Where the last axis is reduced, a leaf is a row; where it is kept, a leaf goes over columns, a strip of
 * outputs at a time.
 */
#include <math.h>

#include "loops.h"
#include "rows.h"
#include "tenon/plugin/op/reduce.h"

#define LEAF 1024
#define STRIP 128 /* outputs that are reduced side by side */
#define LEVELS 54 /* of the tree: 2^63 / LEAF leaves at most */

typedef union acc {
    double f;
    int64_t i;
} acc;

typedef struct reduction {
    void (*row)(const void *from, int64_t n, void *to);
    void (*column)(const void *from, int64_t n, void *to);
    void (*init)(int64_t n, void *to);
    void (*merge)(void *to, const void *from, int64_t n);
} reduction;

/* ---- leaves by type --------------------------------------------------------------------------- */

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#define ACC double
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MINUS(a) (-(a))
#define LOW -INFINITY
#define HIGH INFINITY
#define IS_NAN(x) ((x) != (x))
#define K float
#define N _f32
#include "reduce.inc"
#undef K
#undef N
#define K double
#define N _f64
#include "reduce.inc"
#undef K
#undef N
#undef ACC
#undef PLUS
#undef TIMES
#undef MINUS
#undef LOW
#undef HIGH
#undef IS_NAN

#define ACC int64_t
#define PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define TIMES(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define MINUS(a) ((int64_t)(0 - (uint64_t)(a)))
#define LOW INT64_MIN
#define HIGH INT64_MAX
#define IS_NAN(x) 0
#define K int64_t
#define N _i64
#include "reduce.inc"

#define most_types tncpu_most
#define float_types tncpu_floats
#include "../../common/reduce_plan.inc"

static const reduction reductions[R_COUNT][TNCPU_KINDS] = {
#define ROW(id, n)                                                                                           \
    {                                                                                                        \
        row_##id##n, column_##id##n, init_##id##n, merge_##id##n                                             \
    }
#define REDUCE(id, init, map, join) {ROW(id, _f32), ROW(id, _f64), ROW(id, _i64), ROW(id, _i64)},
#include "../../common/reduce.list"
#undef REDUCE
};

/* ---- the plan --------------------------------------------------------------------------------- */

typedef struct reduce_plan {
    reduction r;
    const tncpu_convert *in, *out;
    uint32_t finish, column;        /* column: the innermost axis is kept */
    uint32_t widen, bytes;          /* widen: small integers to 64 bits; bytes of what leaves read */
    int64_t strip, first;           /* outputs along that axis; the first element of the input */
    tnb_axes kept, reduced, target; /* target: where output number k lies */
} reduce_plan;

typedef struct reduce_call {
    const reduce_plan *p;
    const char *in;
    char *out;
    acc *leaves; /* split run: results of leaves */
    bool add;
} reduce_call;

static tn_status plan_make(void *plugin, const tn_node *node, tn_plan *plan, uint32_t id, uint32_t finish,
                           uint32_t mask, tn_err *err)
{
    const tn_tensor *in = node->in[0], *out = node->out[0];
    reduce_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->in = &tncpu_converts[in->dtype];
    p->out = &tncpu_converts[out->dtype];
    p->r = reductions[id][p->in->kind];
    p->widen = p->in->kind == TNCPU_K_I32;
    p->bytes = p->widen ? 8 : p->in->kind_bytes;
    p->finish = finish;
    p->kept.count = p->reduced.count = p->target.count = 1;
    for (int32_t d = 0; d < in->ndim; d++) {
        tnb_axes_add(mask >> d & 1u ? &p->reduced : &p->kept, in->shape[d], in->stride[d]);
        if (in->shape[d] != 1)
            p->column = !(mask >> d & 1u);
    }
    for (int32_t d = 0; d < out->ndim; d++)
        tnb_axes_add(&p->target, out->shape[d], out->stride[d]);
    p->column = p->column && p->reduced.count > 1 && p->kept.count > 0;
    p->strip = p->column ? p->kept.shape[p->kept.ndim - 1] : 1;
    if (p->kept.count != p->target.count) {
        tncpu_release(plan);
        return tn_fail(err, TN_E_SHAPE, "the output has not the size of the kept axes");
    }
    tncpu_plan_work(node, plan, 20.0 + (double)p->kept.count * (6.0 + (double)p->reduced.count * 0.2));
    if ((int64_t)plan->threads > p->kept.count && !p->column && p->reduced.count >= 8 * LEAF)
        plan->workspace_bytes = (uint64_t)((p->reduced.count + LEAF - 1) / LEAF) * sizeof(acc);
    return TN_OK;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* Brings elements to what leaves read. */
static void elements_load(const reduce_plan *p, const char *from, int64_t stride, void *to, int64_t n)
{
    tncpu_tile narrow;

    if (!p->widen) {
        p->in->load(from, stride, to, n);
        return;
    }
    for (int64_t at = 0; at < n; at += TNCPU_TILE) {
        int64_t count = n - at < TNCPU_TILE ? n - at : TNCPU_TILE;

        p->in->load(from + at * stride * p->in->bytes, stride, &narrow, count);
        tncpu_widen[TNCPU_K_I32][TNCPU_K_I64](&narrow, (int64_t *)to + at, count);
    }
}

/* Elements `begin` … of the reduced space of one output, as compute elements. */
static const void *row_load(const reduce_plan *p, const char *base, int64_t begin, int64_t n,
                            tncpu_tile *tiles)
{
    const tnb_axes *a = &p->reduced;
    int64_t inner = a->ndim > 0 ? a->shape[a->ndim - 1] : 1,
            stride = a->ndim > 0 ? a->stride[a->ndim - 1] : 1;
    char *to = (char *)tiles;

    if (begin % inner + n <= inner && stride == 1 && p->in->native && !p->widen)
        return base + tnb_axes_offset(a, begin) * p->in->bytes;
    while (n > 0) {
        int64_t run = inner - begin % inner < n ? inner - begin % inner : n;

        elements_load(p, base + tnb_axes_offset(a, begin) * p->in->bytes, stride, to, run);
        to += run * p->bytes;
        begin += run;
        n -= run;
    }
    return tiles;
}

static acc leaf_run(const reduce_plan *p, const char *base, int64_t leaf)
{
    tncpu_tile tiles[LEAF / TNCPU_TILE];
    int64_t begin = leaf * LEAF, n = p->reduced.count - begin;
    acc sum;

    n = n < LEAF ? n : LEAF;
    p->r.row(row_load(p, base, begin, n, tiles), n, &sum);
    return sum;
}

/* The tree as a binary counter: level k holds the join of 2^k leaves that waits for its partner. `width` sums
 * at once. */
typedef struct tree {
    int64_t leaves;
    int32_t depth;
    int64_t level_leaves[LEVELS];
} tree;

static void tree_push(const reduction *r, tree *t, acc *levels, int64_t width)
{
    t->level_leaves[t->depth++] = 1;
    while (t->depth > 1 && t->level_leaves[t->depth - 1] == t->level_leaves[t->depth - 2]) {
        r->merge(levels + (t->depth - 2) * width, levels + (t->depth - 1) * width, width);
        t->level_leaves[t->depth-- - 2] *= 2;
    }
}

static void tree_end(const reduction *r, tree *t, acc *levels, int64_t width)
{
    for (; t->depth > 1; t->depth--)
        r->merge(levels + (t->depth - 2) * width, levels + (t->depth - 1) * width, width);
}

/* What is added to integers is what would be written: a sum that the data type lacks saturates first. */
static void saturate_load(const tncpu_convert *c, double sum, tncpu_tile *one)
{
    uint64_t element = 0;

    c->store_f(&sum, &element, 1, 1);
    c->load(&element, 1, one, 1);
}

static void output_store(const reduce_call *call, int64_t index, acc sum)
{
    const reduce_plan *p = call->p;
    char *to = call->out + tnb_axes_offset(&p->target, index) * p->out->bytes;
    double count = (double)p->reduced.count;
    const tncpu_convert *made = call->add ? tncpu_compute[p->out->kind] : p->out;
    tncpu_tile one;

    if (p->in->kind <= TNCPU_K_F64) {
        if (p->finish == FINISH_MEAN)
            sum.f /= count;
        else if (p->finish == FINISH_ROOT)
            sum.f = sqrt(sum.f);
        if (call->add && p->out->kind > TNCPU_K_F64)
            saturate_load(p->out, sum.f, &one);
        else
            made->store_f(&sum.f, call->add ? (void *)&one : to, 1, 1);
    } else if (p->out->kind <= TNCPU_K_F64) {
        const double whole = p->finish == FINISH_MEAN ? (double)sum.i / count : (double)sum.i;

        made->store_f(&whole, call->add ? (void *)&one : to, 1, 1);
    } else {
        if (p->finish == FINISH_MEAN)
            sum.i = p->reduced.count ? sum.i / p->reduced.count : 0;
        else if (p->finish == FINISH_ROOT)
            sum.i = tnb_i64_of_double(sqrt((double)sum.i));
        made->store_i(&sum.i, call->add ? (void *)&one : to, 1, 1);
    }
    if (call->add)
        p->out->add(&one, to, 1, 1);
}

/* One output; its leaves are made here, or were made. */
static void output_run(const reduce_call *call, int64_t index, const char *base, const acc *made)
{
    const reduce_plan *p = call->p;
    int64_t leaves = (p->reduced.count + LEAF - 1) / LEAF;
    acc levels[LEVELS + 1];
    tree t = {0};

    if (leaves == 0)
        p->r.init(1, levels);
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        levels[t.depth] = made ? made[leaf] : leaf_run(p, base, leaf);
        tree_push(&p->r, &t, levels, 1);
    }
    tree_end(&p->r, &t, levels, 1);
    output_store(call, index, levels[0]);
}

static void rows_run(void *arg, int64_t begin, int64_t end)
{
    const reduce_call *call = arg;
    const reduce_plan *p = call->p;

    for (int64_t k = begin; k < end; k++)
        output_run(call, k, call->in + tnb_axes_offset(&p->kept, k) * p->in->bytes, NULL);
}

/* Leaves of one output, by several threads; joined afterwards by the same tree. */
static void leaves_run(void *arg, int64_t begin, int64_t end)
{
    const reduce_call *call = arg;

    for (int64_t leaf = begin; leaf < end; leaf++)
        call->leaves[leaf] = leaf_run(call->p, call->in, leaf);
}

static void split_run(const tn_plan *plan, const tn_exec *x, reduce_call *call)
{
    const reduce_plan *p = call->p;
    const char *first = call->in;

    for (int64_t k = 0; k < p->kept.count; k++) {
        call->in = first + tnb_axes_offset(&p->kept, k) * p->in->bytes;
        tncpu_for(plan, x, (p->reduced.count + LEAF - 1) / LEAF, 1, leaves_run, call);
        output_run(call, k, NULL, call->leaves);
    }
}

/* Outputs `first` …, at most STRIP of one row of the kept space. */
static void strip_run(const reduce_call *call, int64_t first, int64_t width)
{
    const reduce_plan *p = call->p;
    const char *base = call->in + tnb_axes_offset(&p->kept, first) * p->in->bytes;
    int64_t stride = p->kept.stride[p->kept.ndim - 1];
    acc levels[(LEVELS + 1) / 2 * STRIP]; /* 2^26 leaves: more elements than fit in an address space */
    tncpu_tile row;
    tree t = {0};

    for (int64_t begin = 0; begin < p->reduced.count; begin += LEAF) {
        int64_t end = begin + LEAF < p->reduced.count ? begin + LEAF : p->reduced.count;
        acc *sums = levels + t.depth * width;

        p->r.init(width, sums);
        for (int64_t k = begin; k < end; k++) {
            const char *from = base + tnb_axes_offset(&p->reduced, k) * p->in->bytes;

            if (!p->in->native || p->widen || stride != 1) {
                elements_load(p, from, stride, &row, width);
                from = (const char *)&row;
            }
            p->r.column(from, width, sums);
        }
        tree_push(&p->r, &t, levels, width);
    }
    tree_end(&p->r, &t, levels, width);
    for (int64_t k = 0; k < width; k++)
        output_store(call, first + k, levels[k]);
}

/* Parts are counted in strips. */
static void strips_run(void *arg, int64_t begin, int64_t end)
{
    const reduce_call *call = arg;
    int64_t inner = call->p->strip, per_row = (inner + STRIP - 1) / STRIP;

    for (int64_t k = begin; k < end; k++) {
        int64_t at = k % per_row * STRIP;

        strip_run(call, k / per_row * inner + at, inner - at < STRIP ? inner - at : STRIP);
    }
}

static tn_status reduce_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const reduce_plan *p = plan->state;
    const char *from = (const char *)x->in[0]->data + p->first * p->in->bytes;
    reduce_call call = {p, from, x->out[0]->data, x->workspace, x->modes[0] == TN_MODE_ADD};

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (p->column)
        tncpu_for(plan, x, p->kept.count / p->strip * ((p->strip + STRIP - 1) / STRIP), 1, strips_run, &call);
    else if (plan->workspace_bytes)
        split_run(plan, x, &call);
    else
        tncpu_for(plan, x, p->kept.count, 1, rows_run, &call);
    return TN_OK;
}

static void plan_begin(tn_plan *plan, int64_t first)
{
    ((reduce_plan *)plan->state)->first = first;
}

static tn_status sum_like_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0], *out = node->out[0];

    if (tncpu_same_shape(in, out) && tncpu_dense(in) && tncpu_dense(out))
        plan->inplace[0] = 0;
    return plan_make(plugin, node, plan, R_SUM, FINISH_NONE, stretched_mask(in, out), err);
}

/* ---- positions -------------------------------------------------------------------------------- */

typedef struct arg_plan {
    const tncpu_convert *convert;
    tncpu_rows rows; /* of the input, dense */
    bool largest;
} arg_plan;

static tn_status arg_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const int64_t *axis = node->attr_count > 0 ? tn_value_pointer(node->attrs[TN_argmax_axis]) : NULL;
    const int32_t a = node->attr_count == 0 ? 1 : axis ? tncpu_axis(*axis, in->ndim) : -1;
    arg_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->convert = &tncpu_converts[in->dtype];
    p->largest = strcmp(node->op, "argmin") != 0;
    p->rows = tncpu_rows_of(in, a < 0 ? 0 : a, a < 0 ? in->ndim : a + 1);
    tncpu_plan_work(node, plan, 20.0 + (double)tn_tensor_count(in) * 2.0);
    return TN_OK;
}

/* NaN counts as the largest, and as the smallest: the first one is found. */
#define ARG_LOOP(member)                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        if (found.member == found.member &&                                                                  \
            (at + i == 0 || (p->largest ? tile.member[i] > found.member : tile.member[i] < found.member) ||  \
             tile.member[i] != tile.member[i])) {                                                            \
            found.member = tile.member[i];                                                                   \
            where = at + i;                                                                                  \
        }                                                                                                    \
    }

static int64_t arg_find(const arg_plan *p, const char *base)
{
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
    } found = {0};
    int64_t where = 0;
    tncpu_tile tile;

    for (int64_t at = 0; at < p->rows.size; at += TNCPU_TILE) {
        int64_t n = p->rows.size - at < TNCPU_TILE ? p->rows.size - at : TNCPU_TILE;

        p->convert->load(base + at * p->rows.inner * p->convert->bytes, p->rows.inner, &tile, n);
        switch (p->convert->kind) {
        case TNCPU_K_F32:
            ARG_LOOP(f32)
            break;
        case TNCPU_K_F64:
            ARG_LOOP(f64)
            break;
        case TNCPU_K_I32:
            ARG_LOOP(i32)
            break;
        default:
            ARG_LOOP(i64)
            break;
        }
    }
    return where;
}

typedef struct arg_call {
    const arg_plan *p;
    const tn_exec *x;
} arg_call;

static void arg_row(const void *arg, int64_t row, double *room)
{
    const arg_call *call = arg;
    const tncpu_convert *c = &tncpu_converts[call->x->out[0]->dtype];
    const char *from =
        (const char *)call->x->in[0]->data + tncpu_row_at(&call->p->rows, row) * call->p->convert->bytes;
    const int64_t where = arg_find(call->p, from);

    (void)room;
    c->store_i(&where, (char *)call->x->out[0]->data + row * c->bytes, 1, 1);
}

static tn_status arg_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const arg_plan *p = plan->state;
    const arg_call call = {p, x};

    (void)err;
    if (x->modes[0] != TN_MODE_NONE)
        tncpu_rows_run(plan, x, p->rows.outer * p->rows.inner, 0, arg_row, &call);
    return TN_OK;
}

/* ---- gradients -------------------------------------------------------------------------------- */

#define POINT(op, loop, operands)                                                                            \
    {                                                                                                        \
        op, TNCPU_##loop, operands, TNCPU_NO_SCALAR                                                          \
    }
static const tncpu_point back_rows[] = {GRADIENT_POINTS(POINT)};

static tn_status gradient_plan(void *plugin, const tn_node *node, tn_plan *plan, int64_t count, tn_err *err)
{
    const tncpu_point *row = tncpu_form_of(back_rows, sizeof *back_rows, node->op);
    tn_node read = *node;
    tn_status st;

    read.in_count = row->operands;
    st = tncpu_point_prepare(back_rows, sizeof back_rows / sizeof back_rows[0], plugin, &read, plan, err);
    if (!st)
        tncpu_point_number(plan, (double)count);
    return st;
}

/* ---- the family ------------------------------------------------------------------------------- */

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO)

#define REDUCE_ROW(op) TNCPU_ROW(op, tncpu_most, FLAGS, reduce_prepare, reduce_run)
#define ARG_ROW(op) TNCPU_ROW(op, tncpu_most, 0, arg_prepare, arg_run)
#define BACK_ROW(op, types) TNCPU_ROW("_backward_" op, types, FLAGS, back_prepare, tncpu_point_run)

const tn_kernel *const tncpu_family_reduce[] = {
    REDUCE_ROWS(REDUCE_ROW, ARG_ROW, BACK_ROW),
    TNCPU_ROW("_np_trace", tncpu_most, FLAGS, trace_prepare, reduce_run),
    TNCPU_ROW("norm", tncpu_most, FLAGS, norm_prepare, reduce_run),
    TNCPU_ROW("_sum_like", tncpu_most, FLAGS, sum_like_prepare, reduce_run),
    NULL,
};
