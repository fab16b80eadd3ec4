/*
 * The driver of pointwise.h. Positions count along the output's shape, row-major. An operand is *direct*
 * where it lies in the output's order, dense and in its compute type: then the loop reads the array itself.
 * Every other operand is brought into a tile first, and operands of other types than the
 * loop's into its type: the widest of theirs and the output's, or double where a function means nothing on
 * integers; the result is then cut to the output's type. The loop never sees where its elements came from, so
 * results are the same in all cases.
 */
#include "loops.h"

#include "../../common/index.h"

#define DIRECT 1u /* dense, in the output's order */
#define SINGLE 2u /* one element for all positions */

typedef struct point_arg {
    const tncpu_convert *convert;
    tncpu_cross cross; /* into the loop's type, or of the output from it; NULL: it is that */
    uint32_t flags;
    int64_t stride[TN_NDIM_MAX]; /* elements; 0 where it broadcasts */
} point_arg;

typedef struct point_plan {
    tncpu_loop loop;
    int64_t count;
    uint32_t operands, inputs, kind; /* kind: the loop's */
    int32_t scalar, ndim;            /* ndim: after joining neighbours */
    uint32_t plain, near;            /* the loop may run over the arrays themselves; near: but for operands
                                        that are the same for all positions */
    uint32_t cut;                    /* 1: doubles become integers */
    const tn_value *attrs;           /* NULL: the node's */
    tn_value number;
    int64_t shape[TN_NDIM_MAX];
    point_arg out, in[TNCPU_POINT_IN];
} point_plan;

typedef struct point_call {
    const tn_plan *plan;
    const tn_exec *x;
} point_call;

/* ---- planning --------------------------------------------------------------------------------- */

static int64_t *arg_plan(point_arg *a, const tn_tensor *t, const tn_tensor *out)
{
    a->convert = &tncpu_converts[t->dtype];
    tnb_steps(t->ndim, t->shape, t->stride, out->ndim, a->stride);
    return a->stride;
}

static void arg_classify(const point_plan *p, point_arg *a)
{
    int64_t expected = 1;
    bool dense = true, single = true;

    for (int32_t d = p->ndim; d-- > 0;) {
        dense = dense && a->stride[d] == expected;
        single = single && a->stride[d] == 0;
        expected *= p->shape[d];
    }
    a->flags = (dense ? DIRECT : 0) | (single && p->count > 1 ? SINGLE : 0);
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

static const tncpu_point *row_find(const tncpu_point *rows, size_t count, const char *op)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}

/* The wider one of two compute types. */
static uint32_t wider(uint32_t a, uint32_t b)
{
    static const uint8_t order[TNCPU_KINDS] = {
        [TNCPU_K_I32] = 0, [TNCPU_K_I64] = 1, [TNCPU_K_F32] = 2, [TNCPU_K_F64] = 3};

    return order[a] >= order[b] ? a : b;
}

static bool is_whole(uint32_t kind)
{
    return kind == TNCPU_K_I32 || kind == TNCPU_K_I64;
}

/* The type in which the loop computes. A number with a point is compared as such,
 * whatever it is compared to. */
static uint32_t kind_of(const tncpu_point *row, const tn_node *node)
{
    uint32_t kind = tncpu_converts[node->out[0]->dtype].kind;

    for (uint32_t k = 0; k < node->in_count; k++)
        kind = wider(kind, tncpu_converts[node->in[k]->dtype].kind);
    if (row->scalar >= 0 && node->attr_count > 1 && node->out[0]->dtype == TN_BOOL && is_whole(kind) &&
        !tn_value_int(node->attrs[1]))
        kind = TNCPU_K_F64;
    return is_whole(kind) && !tncpu_loops[row->loop][kind] ? TNCPU_K_F64 : kind;
}

static tn_status node_check(const tncpu_point *row, const tn_node *node, tn_err *err)
{
    uint32_t scalars = row && row->scalar >= 0, kind;

    if (!row || node->in_count + scalars != row->operands || node->out_count < 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    kind = kind_of(row, node);
    if (!tncpu_loops[row->loop][kind])
        return tn_fail(err, TN_E_UNSUPPORTED, "no loop for this data type");
    if (kind != tncpu_converts[node->out[0]->dtype].kind && node->out[0]->dtype != TN_BOOL &&
        tncpu_loops[row->loop][tncpu_converts[node->out[0]->dtype].kind])
        return tn_fail(err, TN_E_UNSUPPORTED, "an output of a narrower data type than an input");
    for (uint32_t k = 0; k < node->in_count; k++) {
        if (!broadcasts(node->in[k], node->out[0]))
            return tn_fail(err, TN_E_SHAPE, "an input does not broadcast to the output");
    }
    return TN_OK;
}

/* The input of the node that operand `k` of the loop is; it is not the scalar. */
static uint32_t input_of(const point_plan *p, uint32_t k)
{
    return p->scalar >= 0 && (int32_t)k > p->scalar ? k - 1 : k;
}

/* The loop reads the elements of this array where they are. */
static bool bare(const point_arg *a)
{
    return (a->flags & DIRECT) && a->convert->native && !a->cross;
}

/* All arrays are bare but those of operands that are `same` for all positions; NULL: the number, and single
 * elements. */
static bool bare_but_same(const point_plan *p, const uint8_t *same)
{
    bool all = bare(&p->out) && !p->cut;

    for (uint32_t k = 0; k < p->operands && all; k++) {
        const point_arg *a = (int32_t)k == p->scalar ? NULL : &p->in[input_of(p, k)];

        all = (same ? same[k] : !a || a->flags & SINGLE) || (a && bare(a));
    }
    return all;
}

tn_status tncpu_point_prepare(const tncpu_point *rows, size_t count, void *plugin, const tn_node *node,
                              tn_plan *plan, tn_err *err)
{
    const tncpu_point *row = row_find(rows, count, node->op);
    point_arg *args[TNCPU_POINT_IN + 1];
    int64_t *steps[TNCPU_POINT_IN + 1];
    point_plan *p;
    tn_status st;

    if ((st = node_check(row, node, err)) || (st = tncpu_state(plugin, plan, sizeof *p, err)))
        return st;
    p = plan->state;
    p->kind = kind_of(row, node);
    p->loop = tncpu_loop_of(row->loop, p->kind);
    p->count = tn_tensor_count(node->out[0]);
    p->operands = row->operands;
    p->inputs = node->in_count;
    p->scalar = row->scalar;
    steps[0] = arg_plan(args[0] = &p->out, node->out[0], node->out[0]);
    p->cut = p->out.convert->kind != p->kind && node->out[0]->dtype != TN_BOOL;
    if (p->out.convert->kind != p->kind && !p->cut)
        p->out.cross = tncpu_truth[p->kind];
    for (uint32_t k = 0; k < node->in_count; k++) {
        steps[k + 1] = arg_plan(args[k + 1] = &p->in[k], node->in[k], node->out[0]);
        p->in[k].cross = tncpu_widen[p->in[k].convert->kind][p->kind];
    }
    p->ndim = tnb_join(node->out[0]->ndim, node->out[0]->shape, node->in_count + 1, steps, p->shape);
    p->plain = row->scalar < 0 && node->modes[0] == TN_MODE_WRITE;
    for (uint32_t k = 0; k <= node->in_count; k++) {
        arg_classify(p, args[k]);
        p->plain &= (args[k]->flags & DIRECT) && args[k]->convert->native && !args[k]->cross && !p->cut;
    }
    p->near = node->modes[0] == TN_MODE_WRITE && bare_but_same(p, NULL);
    for (uint32_t k = node->in_count; k-- > 0;)
        if ((p->in[k].flags & DIRECT) && (p->out.flags & DIRECT) &&
            node->in[k]->dtype == node->out[0]->dtype && tncpu_same_shape(node->in[k], node->out[0]))
            plan->inplace[0] = (int32_t)k;
    tncpu_plan_work(node, plan,
                    8.0 + (double)p->count * (double)tncpu_loop_ns[row->loop] * (p->plain ? 1.0 : 1.5));
    return TN_OK;
}

void tncpu_point_number(tn_plan *plan, double number)
{
    point_plan *p = plan->state;

    p->number = tn_value_of_float(number);
    p->attrs = &p->number;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* Rows along the innermost dimension, one after the other. */
typedef struct walk {
    int64_t index[TN_NDIM_MAX]; /* of the row, in the outer dimensions */
    int64_t offset;             /* of its first element */
    int64_t at;                 /* elements of it that are done */
} walk;

static walk walk_begin(const point_plan *p, const int64_t *stride, int64_t begin)
{
    walk w = {.offset = 0};

    if (p->ndim == 0)
        return w;
    w.at = begin % p->shape[p->ndim - 1];
    begin /= p->shape[p->ndim - 1];
    for (int32_t d = p->ndim - 1; d-- > 0; begin /= p->shape[d]) {
        w.index[d] = begin % p->shape[d];
        w.offset += w.index[d] * stride[d];
    }
    return w;
}

/* Behind `run` elements; a run ends with its row or before. */
static void walk_on(const point_plan *p, const int64_t *stride, int64_t run, walk *w)
{
    if (p->ndim == 0 || (w->at += run) < p->shape[p->ndim - 1])
        return;
    w->at = 0;
    for (int32_t d = p->ndim - 1; d-- > 0;) {
        w->offset += stride[d];
        if (++w->index[d] < p->shape[d])
            return;
        w->offset -= stride[d] * p->shape[d];
        w->index[d] = 0;
    }
}

static int64_t run_of(const point_plan *p, const walk *w, int64_t n)
{
    const int64_t left = p->ndim > 0 ? p->shape[p->ndim - 1] - w->at : 1;

    return left < n ? left : n;
}

#define REPEAT_BLOCK 64 /* elements: fewer are gathered before the division that finds the next block */
#define SHORT_ROW 16    /* elements: for fewer, a call costs more than they do */

/* Of short rows, elements of four bytes that are compute elements. */
static void gather_words(const point_plan *p, const int64_t *strides, const uint32_t *base, int64_t begin,
                         int64_t n, uint32_t *to)
{
    const int64_t stride = strides[p->ndim - 1];
    walk w = walk_begin(p, strides, begin);

    for (int64_t run; n > 0; n -= run) {
        const uint32_t *from = base + w.offset + w.at * stride;

        run = run_of(p, &w, n);
        for (int64_t i = 0; i < run; i++)
            *to++ = from[i * stride];
        walk_on(p, strides, run, &w);
    }
}

static void gather_rows(const point_plan *p, const point_arg *a, const char *base, int64_t begin, int64_t n,
                        char *to)
{
    const int64_t stride = p->ndim > 0 ? a->stride[p->ndim - 1] : 0;
    walk w = walk_begin(p, a->stride, begin);

    if (p->ndim > 0 && p->shape[p->ndim - 1] < SHORT_ROW && a->convert->native && a->convert->bytes == 4) {
        gather_words(p, a->stride, (const void *)base, begin, n, (void *)to);
        return;
    }

    for (int64_t run; n > 0; n -= run) {
        const char *from = base + (w.offset + w.at * stride) * a->convert->bytes;

        run = run_of(p, &w, n);
        if (stride == 0)
            a->convert->fill(from, to, run);
        else
            a->convert->load(from, stride, to, run);
        to += run * a->convert->kind_bytes;
        walk_on(p, a->stride, run, &w);
    }
}

/* Of rows that repeat, because their dimension broadcasts, the first is gathered and copied behind itself. */
static void gather(const point_plan *p, const point_arg *a, const char *base, int64_t begin, int64_t n,
                   char *to)
{
    const bool repeats = p->ndim > 1 && a->stride[p->ndim - 2] == 0;
    const int64_t row = repeats ? p->shape[p->ndim - 1] : 0,
                  block = repeats ? row * p->shape[p->ndim - 2] : 0;
    const int64_t size = a->convert->kind_bytes;

    if (block < REPEAT_BLOCK || row > TNCPU_TILE / 2) {
        gather_rows(p, a, base, begin, n, to);
        return;
    }
    for (int64_t run; n > 0; begin += run, n -= run, to += run * size) {
        const int64_t left = block - begin % block;
        int64_t have = row, part;

        run = left < n ? left : n;
        gather_rows(p, a, base, begin, have < run ? have : run, to);
        for (; have < run; have += part) {
            part = have < run - have ? have : run - have;
            memcpy(to + have * size, to, (size_t)(part * size));
        }
    }
}

static void scatter(const point_plan *p, char *base, int64_t begin, int64_t n, const char *from, bool add)
{
    const point_arg *a = &p->out;
    const int64_t stride = p->ndim > 0 ? a->stride[p->ndim - 1] : 1;
    walk w = walk_begin(p, a->stride, begin);

    for (int64_t run; n > 0; n -= run) {
        char *to = base + (w.offset + w.at * stride) * a->convert->bytes;

        run = run_of(p, &w, n);
        if (add)
            a->convert->add(from, to, stride, run);
        else
            a->convert->store(from, to, stride, run);
        from += run * a->convert->kind_bytes;
        walk_on(p, a->stride, run, &w);
    }
}

/* The scalar operand, in the compute type: to integers toward zero. */
static void scalar_fill(const point_plan *p, const tn_value *attrs, tncpu_tile *to, int64_t n)
{
    double value = tn_value_float(attrs[0]);
    tncpu_tile one;

    if (p->kind == TNCPU_K_F32) { /* the same, without calls */
        const float number = (float)value;

        for (int64_t i = 0; i < n; i++)
            to->f32[i] = number;
        return;
    }
    tncpu_compute[p->kind]->store_f(&value, &one, 1, 1);
    tncpu_compute[p->kind]->fill(&one, to, n);
}

/* Where the loop finds elements `at` to `at + n` of an input: in the array itself, or brought into `to`. */
static const void *operand(const point_plan *p, const point_arg *a, const char *base, int64_t at, int64_t n,
                           tncpu_tile *raw, tncpu_tile *to)
{
    tncpu_tile *own = a->cross ? raw : to;

    if ((a->flags & DIRECT) && a->convert->native) {
        if (!a->cross)
            return base + at * a->convert->bytes;
        a->cross(base + at * a->convert->bytes, to, n);
        return to;
    }
    if (a->flags & SINGLE)
        a->convert->fill(base, own, n);
    else if (a->flags & DIRECT)
        a->convert->load(base + at * a->convert->bytes, 1, own, n);
    else
        gather(p, a, base, at, n, (char *)own);
    if (a->cross)
        a->cross(raw, to, n);
    return to;
}

/* The loop's results where they are not made in the output: brought to its type. */
static void results_store(const point_plan *p, char *out, int64_t at, int64_t n, tncpu_tile *made, bool add)
{
    tncpu_tile own, raw;

    if (p->out.cross) {
        p->out.cross(made, &raw, n);
    } else if (p->cut) {
        p->out.convert->store_f(made->f64, &own, 1, n);
        p->out.convert->load(&own, 1, &raw, n);
    }
    scatter(p, out, at, n, (const char *)(p->out.cross || p->cut ? &raw : made), add);
}

bool tncpu_point_direct(const tn_plan *plan, uint32_t input)
{
    return (((const point_plan *)plan->state)->in[input].flags & DIRECT) != 0;
}

bool tncpu_point_single(const tn_plan *plan, uint32_t k)
{
    const point_plan *p = plan->state;

    return (int32_t)k != p->scalar && p->in[input_of(p, k)].flags & SINGLE;
}

const void *tncpu_point_steady(const tn_plan *plan, uint32_t k, const tn_value *attrs, const void *in,
                               int64_t n, tncpu_tile *to)
{
    const point_plan *p = plan->state;
    tncpu_tile raw;

    if ((int32_t)k == p->scalar) {
        scalar_fill(p, attrs, to, n);
        return to;
    }
    return tncpu_point_single(plan, k) ? operand(p, &p->in[input_of(p, k)], in, 0, n, &raw, to) : NULL;
}

uint32_t tncpu_point_operands(const tn_plan *plan, int32_t *scalar)
{
    const point_plan *p = plan->state;

    *scalar = p->scalar;
    return p->operands;
}

tncpu_loop tncpu_point_bare(const tn_plan *plan, const uint8_t *steady, const tn_value **attrs)
{
    const point_plan *p = plan->state;

    *attrs = p->attrs;
    return bare_but_same(p, steady) ? p->loop : NULL;
}

void tncpu_point_piece_run(const tn_plan *plan, const tncpu_point_piece *t)
{
    const point_plan *p = plan->state;
    tncpu_tile tiles[TNCPU_POINT_IN], raw, made;
    const void *in[TNCPU_POINT_IN];
    const bool direct = !t->add && bare(&p->out) && !p->cut;

    for (uint32_t k = 0; k < p->operands; k++) {
        const uint32_t i = input_of(p, k);

        if (!(in[k] = t->steady[k]) && (int32_t)k != p->scalar)
            in[k] = operand(p, &p->in[i], t->in[i], t->in_at[i], t->n, &raw, &tiles[k]);
        else if (!in[k])
            in[k] = tncpu_point_steady(plan, k, t->attrs, NULL, t->n, &tiles[k]);
    }
    p->loop(direct ? (void *)((char *)t->out + t->out_at * p->out.convert->bytes) : (void *)&made, in, t->n,
            p->attrs ? p->attrs : t->attrs);
    if (!direct)
        results_store(p, t->out, t->out_at, t->n, &made, t->add);
}

static void part_run(void *arg, int64_t begin, int64_t end)
{
    const point_call *call = arg;
    const point_plan *p = call->plan->state;
    const tn_exec *x = call->x;
    tncpu_tile tiles[TNCPU_POINT_IN];
    tncpu_point_piece t = {.out = x->out[0]->data, .attrs = x->attrs, .add = x->modes[0] == TN_MODE_ADD};
    const int64_t size = end - begin < TNCPU_TILE ? end - begin : TNCPU_TILE;

    for (uint32_t i = 0; i < p->inputs; i++)
        t.in[i] = x->in[i]->data;
    for (uint32_t k = 0; k < p->operands; k++)
        t.steady[k] = tncpu_point_steady(call->plan, k, x->attrs, t.in[input_of(p, k)], size, &tiles[k]);
    for (int64_t at = begin; at < end; at += TNCPU_TILE) {
        t.n = end - at < TNCPU_TILE ? end - at : TNCPU_TILE;
        t.out_at = at;
        for (uint32_t i = 0; i < p->inputs; i++)
            t.in_at[i] = at;
        tncpu_point_piece_run(call->plan, &t);
    }
}

static void near_run(void *arg, int64_t begin, int64_t end)
{
    const point_call *call = arg;
    const point_plan *p = call->plan->state;
    const tn_exec *x = call->x;
    const int64_t size = end - begin < TNCPU_TILE ? end - begin : TNCPU_TILE;
    tncpu_tile tiles[TNCPU_POINT_IN];
    const void *in[TNCPU_POINT_IN];
    int64_t step[TNCPU_POINT_IN]; /* from tile to tile */

    for (uint32_t k = 0; k < p->operands; k++) {
        const void *data = (int32_t)k == p->scalar ? NULL : x->in[input_of(p, k)]->data;
        const int64_t bytes = data ? p->in[input_of(p, k)].convert->bytes : 0;
        const void *steady = tncpu_point_steady(call->plan, k, x->attrs, data, size, &tiles[k]);

        in[k] = steady ? steady : (const char *)data + begin * bytes;
        step[k] = steady ? 0 : TNCPU_TILE * bytes;
    }
    for (int64_t at = begin; at < end; at += TNCPU_TILE) {
        p->loop((char *)x->out[0]->data + at * p->out.convert->bytes, in,
                end - at < TNCPU_TILE ? end - at : TNCPU_TILE, p->attrs ? p->attrs : x->attrs);
        for (uint32_t k = 0; k < p->operands; k++)
            in[k] = (const char *)in[k] + step[k];
    }
}

static void plain_run(void *arg, int64_t begin, int64_t end)
{
    const point_call *call = arg;
    const point_plan *p = call->plan->state;
    const void *in[TNCPU_POINT_IN];
    int64_t offset = begin * p->out.convert->bytes;

    for (uint32_t k = 0; k < p->inputs; k++)
        in[k] = (const char *)call->x->in[k]->data + offset;
    p->loop((char *)call->x->out[0]->data + offset, in, end - begin, p->attrs ? p->attrs : call->x->attrs);
}

tn_status tncpu_point_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const point_plan *p = plan->state;
    point_call call = {plan, x};

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (plan->threads > 1)
        tncpu_for(plan, x, p->count, TNCPU_TILE, p->plain ? plain_run : p->near ? near_run : part_run, &call);
    else if (p->plain)
        plain_run(&call, 0, p->count);
    else if (p->near)
        near_run(&call, 0, p->count);
    else
        part_run(&call, 0, p->count);
    return TN_OK;
}
