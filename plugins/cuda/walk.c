/*
 * Sums of products: einsum, tensordot, matmul, NumPy's dot, khatri_rao, _linalg_gemm and its like,
 * attention's interleaved products, and their gradients. Each output is one walk over the indices, or a few:
 * kernels/walk.cu. Those that are one product of matrices are made by cuBLASLt where it is there.
 */
#include "../common/walk.h"
#include "../common/attention.h"
#include "../common/contraction.h"
#include "../common/move.h"
#include "../common/product.h"
#include "lt.h"

#include <math.h>
#include <stdio.h>

typedef struct walk_call {
    tncuda_walk_args args;
    uint32_t in[TNCUDA_WALK_IN], out; /* of the node */
    int64_t in_at[TNCUDA_WALK_IN], out_at;
    bool zero;    /* the output is 0 where nothing is written: */
    tnb_move gap; /* there, from element gap_at on; of no dimension: everywhere, before */
    int64_t gap_at;
    tncuda_lt *lt; /* that makes the product which the walk is; NULL: the plain kernel */
} walk_call;

typedef struct walk_state {
    char kernel[TNCUDA_NAME_BYTES];
    uint32_t calls;
    walk_call call[];
} walk_state;

/* Which array of a walk is made; the others are multiplied in the order of `in`. */
typedef struct walk_roles {
    int32_t inputs, in[TN_EINSUM_INPUTS_MAX + 1], to;
} walk_roles;

/* Of the forward the arrays in their order; of the gradient of input `to` dy, then the others. */
static walk_roles roles_of(const tnb_walk *w, int32_t to)
{
    walk_roles r = {.to = to};

    if (to < w->inputs)
        r.in[r.inputs++] = w->inputs;
    for (int32_t k = 0; k < w->inputs; k++)
        if (k != to)
            r.in[r.inputs++] = k;
    return r;
}

/* Appends an axis, or makes the last one longer that has the same part. False: there are too many. */
static bool axis_add(tncuda_walk_args *a, const walk_roles *r, const tnb_walk_axis *axis, int32_t first)
{
    const int32_t last = a->all - 1;
    bool join = last >= first;

    if (axis->extent == 1)
        return true;
    for (int32_t k = 0; k <= r->inputs && join; k++)
        join = a->step[k][last] == axis->step[k < r->inputs ? r->in[k] : r->to] * axis->extent;
    if (!join && a->all == TNCUDA_WALK_AXES)
        return false;
    a->extent[join ? last : a->all] = axis->extent * (join ? a->extent[last] : 1);
    a->all += !join;
    for (int32_t k = 0; k <= r->inputs; k++)
        a->step[k][a->all - 1] = axis->step[k < r->inputs ? r->in[k] : r->to];
    return true;
}

/* The walk that makes array `to`. Its own indices are outside, in the order that the walk has them. */
static tn_status call_make(const tnb_walk *w, int32_t to, int64_t elements, walk_call *c, tn_err *err)
{
    const walk_roles r = roles_of(w, to);
    tncuda_walk_args *a = &c->args;
    bool fits = r.inputs <= TNCUDA_WALK_IN;

    *c = (walk_call){.args = {.count = 1, .summed = 1, .inputs = r.inputs, .scale = 1}};
    if (elements == 0) {
        a->count = 0; /* steps may be any */
        return TN_OK;
    }
    for (int inside = 0; inside < 2; inside++) {
        const int32_t first = a->all;

        for (int32_t d = 0; d < w->all && fits; d++) {
            const tnb_walk_axis *axis = &w->axis[d];
            const bool summed = to < w->inputs ? axis->step[to] == 0 : d >= w->outer;

            if (summed != inside)
                continue;
            *(inside ? &a->summed : &a->count) *= axis->extent;
            fits = axis_add(a, &r, axis, first);
        }
        a->outer = inside ? a->outer : a->all;
    }
    c->zero = a->count != elements;
    for (int32_t k = 0; k < r.inputs && fits; k++)
        c->in[k] = (uint32_t)k;
    return fits ? TN_OK
                : tn_failf(err, TN_E_UNSUPPORTED, "more than %d arrays or %d indices", TNCUDA_WALK_IN,
                           TNCUDA_WALK_AXES);
}

static tn_status state_make(void *plugin, const tn_node *node, tn_plan *plan, const char *suffix,
                            uint32_t calls, tn_err *err)
{
    const tn_status st =
        tncuda_state(plugin, node, plan, sizeof(walk_state) + calls * sizeof(walk_call), err);
    walk_state *s = plan->state;

    if (st)
        return st;
    s->calls = calls;
    (void)snprintf(s->kernel, sizeof s->kernel, "walk_%s", suffix);
    return TN_OK;
}

/* Products of floats: single for the short ones. */
static const char *single_suffix(int32_t dtype)
{
    return dtype == TN_F64 ? "wide" : "f32";
}

/* A plan that fails keeps nothing. */
static tn_status plan_end(tn_plan *plan, tn_status st)
{
    if (st)
        tncuda_release(plan);
    return st;
}

static tn_status forward_plan(void *plugin, const tn_node *node, tn_plan *plan, const tnb_walk *w,
                              const char *suffix, tn_err *err)
{
    tn_status st = state_make(plugin, node, plan, suffix, 1, err);

    if (!st)
        st = call_make(w, w->inputs, tn_tensor_count(node->out[0]), ((walk_state *)plan->state)->call, err);
    return plan_end(plan, st);
}

/* in: dy, inputs */
static tn_status backward_plan(void *plugin, const tn_node *node, tn_plan *plan, const tnb_walk *w,
                               const char *suffix, tn_err *err)
{
    tn_status st = state_make(plugin, node, plan, suffix, (uint32_t)w->inputs, err);
    walk_state *s = plan->state;

    for (int32_t to = 0; to < w->inputs && !st; to++) {
        walk_call *c = &s->call[to];

        st = call_make(w, to, tn_tensor_count(node->out[to]), c, err);
        c->out = (uint32_t)to;
        for (int32_t k = 1; k < c->args.inputs && k < TNCUDA_WALK_IN; k++)
            c->in[k] = (uint32_t)(k + (k > to));
    }
    return plan_end(plan, st);
}

static tn_status call_run(const walk_state *s, const walk_call *c, const tn_plan *plan, const tn_exec *x,
                          const tn_tensor *other, tn_err *err)
{
    const tn_tensor *y = x->out[c->out];
    const bool adds = x->modes[c->out] == TN_MODE_ADD;
    tncuda_walk_args a = c->args;
    tn_status st = TN_OK;

    if (x->modes[c->out] == TN_MODE_NONE)
        return TN_OK;
    for (int32_t k = 0; k < a.inputs; k++) {
        const tn_tensor *in = x->in[c->in[k]];

        a.in[k].data = (char *)in->data + c->in_at[k] * (int64_t)tn_dtype_bytes(in->dtype);
        a.in[k].dtype = in->dtype;
    }
    a.out.data = (char *)y->data + c->out_at * (int64_t)tn_dtype_bytes(y->dtype);
    a.out.dtype = y->dtype;
    a.c = other ? other->data : adds ? a.out.data : NULL;
    a.beta = adds ? 1 : a.beta;
    if (c->zero && !adds &&
        (st = c->gap.ndim
                  ? tnb_move_number(plan, x, &c->gap, y->dtype, 0,
                                    (char *)y->data + c->gap_at * (int64_t)tn_dtype_bytes(y->dtype), err)
                  : tnb_move_zero(plan, x, y, err)))
        return st;
    if (c->lt) {
        const tncuda_lt_call call = {
            .a = a.in[0].data, .b = a.in[1].data, .c = adds ? NULL : a.c, .d = a.out.data, .add = adds};

        if ((st = tncuda_lt_run(c->lt, x, &call, err)) != TN_E_UNSUPPORTED)
            return st;
    }
    return tncuda_launch(x, "walk", s->kernel, a.count, &a, err);
}

static tn_status walk_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const walk_state *s = plan->state;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < s->calls && !st; k++)
        st = call_run(s, &s->call[k], plan, x, NULL, err);
    return st;
}

/* ---- einsum, khatri_rao -------------------------------------------------------------------------------- */

static const char *wide_suffix(const tn_node *node)
{
    return tncuda_is_float(node->in[0]->dtype) ? "wide" : "whole";
}

static tn_status einsum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tnb_walk w;

    tnb_einsum_walk(node, node->in, (int32_t)node->in_count, node->out[0], &w);
    return forward_plan(plugin, node, plan, &w, wide_suffix(node), err);
}

static tn_status backward_einsum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tnb_walk w;

    tnb_einsum_walk(node, node->in + 1, (int32_t)node->in_count - 1, node->in[0], &w);
    return backward_plan(plugin, node, plan, &w, wide_suffix(node), err);
}

/* Row (i0, i1 …) is the product of row i0 of the first, row i1 of the second …; the last is multiplied
 * first. */
static tn_status khatri_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int32_t inputs = (int32_t)node->in_count;
    int64_t step = node->out[0]->shape[1];
    tnb_walk w = {.inputs = inputs, .outer = inputs + 1, .all = inputs + 1};
    tn_status st;

    if (inputs > TNCUDA_WALK_IN)
        return tn_failf(err, TN_E_UNSUPPORTED, "more than %d arrays", TNCUDA_WALK_IN);
    w.axis[inputs].extent = step;
    for (int32_t k = 0; k <= inputs; k++)
        w.axis[inputs].step[k] = 1;
    for (int32_t k = inputs; k-- > 0; step *= node->in[k]->shape[0]) {
        w.axis[k].extent = node->in[k]->shape[0];
        w.axis[k].step[inputs] = step;
        w.axis[k].step[inputs - 1 - k] = node->in[k]->shape[1];
    }
    st = forward_plan(plugin, node, plan, &w, "wide", err);
    for (int32_t k = 0; k < inputs && !st; k++)
        ((walk_state *)plan->state)->call[0].in[k] = (uint32_t)(inputs - 1 - k);
    return st;
}

/* ---- contractions of two arrays ------------------------------------------------------------------------ */

static void group_walk(const tnb_group *g, int32_t array, tnb_walk *w)
{
    for (int32_t d = 0; d < g->ndim; d++) {
        tnb_walk_axis *axis = &w->axis[w->all++];

        axis->extent = g->extent[d];
        axis->step[array] = g->step[d];
    }
}

/* Step along axis `d` of all batches; 0 where it broadcasts. */
static int64_t batch_step(const tnb_group *g, int64_t all, int64_t d)
{
    const int64_t at = d + g->ndim - all;

    return at < 0 || g->extent[at] == 1 ? 0 : g->step[at];
}

static void contraction_walk(const tnb_contraction *c, tnb_walk *w)
{
    int64_t step = 1;

    *w = (tnb_walk){.inputs = 2};
    for (int64_t d = 0; d < c->batch_ndim; d++)
        w->axis[w->all++] = (tnb_walk_axis){
            c->batch_extent[d],
            {batch_step(&c->a.batch, c->batch_ndim, d), batch_step(&c->b.batch, c->batch_ndim, d)}};
    group_walk(&c->a.outer, 0, w);
    group_walk(&c->b.outer, 1, w);
    w->outer = w->all;
    for (int32_t d = w->all; d-- > 0; step *= w->axis[d].extent)
        w->axis[d].step[2] = step;
    group_walk(&c->a.summed, 0, w);
    for (int32_t d = 0; d < c->b.summed.ndim; d++)
        w->axis[w->outer + d].step[1] = c->b.summed.step[d];
}

static tn_status product_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_contraction c = tnb_contraction_of(node, node->in[0], node->in[1]);
    tnb_walk w;

    contraction_walk(&c, &w);
    return forward_plan(plugin, node, plan, &w, single_suffix(c.dtype), err);
}

static tn_status backward_product_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_contraction c = tnb_contraction_of(node, node->in[1], node->in[2]);
    tnb_walk w;

    contraction_walk(&c, &w);
    return backward_plan(plugin, node, plan, &w, single_suffix(c.dtype), err);
}

/* ---- _linalg_gemm, _linalg_gemm2, _linalg_syrk ---------------------------------------------------- */

static tn_status gemm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool syrk = strcmp(node->op, "_linalg_syrk") == 0, other = strcmp(node->op, "_linalg_gemm") == 0;
    const tnb_axis_product p = (syrk    ? tnb_syrk_product
                                : other ? tnb_gemm_product
                                        : tnb_gemm2_product)(node->attrs, node->in, node->out[0]);
    const tnb_walk w = {.inputs = 2,
                        .outer = 4,
                        .all = 5,
                        .axis = {{p.outer, {p.a_batch, p.b_batch, p.c_batch}},
                                 {p.inner, {p.a_inner, p.b_inner, p.c_inner}},
                                 {p.m, {p.a_row, 0, p.c_row}},
                                 {p.n, {0, p.b_col, 1}},
                                 {p.k, {p.a_col, p.b_row, 0}}}};
    const tn_status st = forward_plan(plugin, node, plan, &w, single_suffix(node->out[0]->dtype), err);
    walk_call *c = ((walk_state *)plan->state)->call;

    if (st)
        return st;
    c->in[1] = !syrk;
    c->args.scale = p.alpha;
    c->args.beta = p.beta;
    return TN_OK;
}

static tn_status gemm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const walk_state *s = plan->state;

    return call_run(s, s->call, plan, x, s->call[0].args.beta != 0 ? x->in[2] : NULL, err);
}

/* ---- attention ----------------------------------------------------------------------------------------- */

static void attention_walk(const tnb_attention *a, tnb_walk *w)
{
    const int64_t heads = a->tasks;
    const tnb_attention_part *l = &a->left, *r = &a->right, *y = &a->out;

    *w = (tnb_walk){.inputs = 2, .outer = 3, .all = 4};
    w->axis[0] = (tnb_walk_axis){heads, {l->head, r->head, y->head}};
    w->axis[1] = (tnb_walk_axis){l->rows, {l->row, 0, y->row}};
    w->axis[2] = a->scores ? (tnb_walk_axis){r->rows, {0, r->row, 1}} : (tnb_walk_axis){a->depth, {0, 1, 1}};
    w->axis[3] = a->scores ? (tnb_walk_axis){a->depth, {1, 1, 0}} : (tnb_walk_axis){r->rows, {1, r->row, 0}};
}

static tn_status attention_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_attention a = tnb_attention_of(node->op, node->attrs, node->in, node->out[0]);
    tnb_walk w;
    tn_status st;
    walk_call *c;

    attention_walk(&a, &w);
    if ((st = forward_plan(plugin, node, plan, &w, single_suffix(a.dtype), err)))
        return st;
    c = ((walk_state *)plan->state)->call;
    c->in[0] = a.left_in;
    c->in[1] = a.right_in;
    c->in_at[0] = a.left.at;
    c->in_at[1] = a.right.at;
    c->args.root = a.scores ? (double)a.depth : 0;
    return TN_OK;
}

/* Of an array whose heads have several parts, all but those from `part` on that are written. */
static void gap_plan(walk_call *c, const tnb_attention_part *part, int64_t written, const tn_tensor *out)
{
    tnb_move_begin(&c->gap, out->dtype);
    tnb_move_add(&c->gap, tn_tensor_count(out) / part->head, 0, part->head);
    tnb_move_add(&c->gap, part->head - written, 0, 1);
    c->gap_at = part->at ? 0 : written;
}

/* in: dy, then the inputs; out: their gradients. Both parts of one input are written to one output. */
static tn_status backward_attention_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_attention a = tnb_attention_of(node->op, node->attrs, node->in + 1, node->in[0]);
    const uint32_t in[] = {a.left_in, a.right_in};
    const int64_t at[] = {a.left.at, a.right.at};
    const bool both = in[0] == in[1];
    tnb_walk w;
    tn_status st = state_make(plugin, node, plan, single_suffix(a.dtype), 2, err);
    walk_state *s = plan->state;

    attention_walk(&a, &w);
    for (uint32_t k = 0; k < 2 && !st; k++) {
        walk_call *c = &s->call[k];

        st = call_make(&w, (int32_t)k, tn_tensor_count(node->out[in[k]]), c, err);
        c->zero = c->zero && (k == 0 || !both);
        if (c->zero)
            gap_plan(c, k ? &a.right : &a.left, (1 + both) * a.depth, node->out[in[k]]);
        c->out = in[k];
        c->out_at = at[k];
        c->in[1] = 1 + in[!k];
        c->in_at[1] = at[!k];
        c->args.root = a.scores ? (double)a.depth : 0;
    }
    return plan_end(plan, st);
}

/* ---- by cuBLASLt --------------------------------------------------------------------------------------- */

extern const tn_kernel *const tncuda_family_walk[];

/* The outer axes are rows (of the first array alone), columns (of the second), and batches. A second axis of
 * rows or columns is one of batches whose other matrix stays. */
static bool outer_take(const tncuda_walk_args *a, int32_t e, tncuda_product_args *p)
{
    const int64_t left = a->step[0][e], right = a->step[1][e], to = a->step[2][e], extent = a->extent[e];

    if (left && !right && p->m == 1)
        p->m = extent, p->a_row = left, p->c_row = to;
    else if (!left && right && p->n == 1)
        p->n = extent, p->b_col = right, p->c_col = to;
    else if (p->batch == 1)
        p->batch = extent, p->a_batch = left, p->b_batch = right, p->c_batch = to;
    else
        return false;
    return true;
}

/* The walk as one product of matrices. */
static bool product_of(const tn_node *node, const walk_call *c, tncuda_lt_shape *out)
{
    const tncuda_walk_args *a = &c->args;
    const int32_t dtype = node->out[c->out]->dtype, summed = a->all - a->outer;
    tncuda_product_args p = {.m = a->count > 0,
                             .n = 1,
                             .k = a->summed > 0,
                             .batch = 1,
                             .a_row = 1,
                             .a_col = 1,
                             .b_row = 1,
                             .b_col = 1,
                             .c_row = 1,
                             .c_col = 1,
                             .dtype = dtype};

    if (a->inputs != 2 || summed > 1 || node->in[c->in[0]]->dtype != dtype ||
        node->in[c->in[1]]->dtype != dtype)
        return false;
    for (int32_t e = 0; e < a->outer && a->count; e++)
        if (!outer_take(a, e, &p))
            return false;
    if (summed && a->count)
        p.k = a->extent[a->outer], p.a_col = a->step[0][a->outer], p.b_row = a->step[1][a->outer];
    *out = (tncuda_lt_shape){.of = p, .alpha = a->root != 0 ? 1 / sqrt(a->root) : a->scale, .beta = a->beta};
    return true;
}

static const tn_kernel *plain_row(const char *op)
{
    const tn_kernel *const *row = tncuda_family_walk;

    while (strcmp((*row)->op, op) != 0 || strcmp((*row)->name, "plain") != 0)
        row++;
    return *row;
}

/* The plain row's plan, in which those walks are by the library that can be. */
static tn_status walk_lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = plain_row(node->op)->prepare(plugin, node, plan, err);
    walk_state *s = plan->state;
    bool any = false;

    if (st)
        return st;
    st = tn_fail(err, TN_E_UNSUPPORTED, "it is no product of two matrices");
    for (uint32_t k = 0; k < s->calls; k++) {
        walk_call *c = &s->call[k];
        tncuda_lt_shape shape;

        if (node->modes[c->out] == TN_MODE_NONE || !product_of(node, c, &shape))
            continue;
        st = tncuda_lt_make(plugin, node, plan, &shape, &c->lt, err);
        any |= !st;
        if (st && st != TN_E_UNSUPPORTED)
            break;
    }
    if (any && (!st || st == TN_E_UNSUPPORTED)) {
        tncuda_lt_room(plan);
        return TN_OK;
    }
    return plan_end(plan, st);
}

static const char *const einsum_types[] = {"data0:" TNCUDA_MOST, "*:=data0", NULL};
static const char *const types[] = {"a:" TNCUDA_FLOATS, "*:=a", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};
static const char *const gemm_types[] = {"A:f32,f64", "*:=A", NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};

static const char *const einsum_floats[] = {"data0:" TNCUDA_FLOATS, "*:=data0", NULL};

#define EMPTY TN_KERNEL_EMPTY_OK
#define SUMS (EMPTY | TN_KERNEL_ADD_TO | TN_KERNEL_ADD_SHORT)
#define BOTH(op, types, prepare, run)                                                                        \
    TNCUDA_ROW(op, types, EMPTY, prepare, run), TNCUDA_LT_ROW(op, types, EMPTY, walk_lt_prepare, run)
#define PRODUCT(op)                                                                                          \
    BOTH(op, types, product_prepare, walk_run),                                                              \
        BOTH("_backward_" op, back_types, backward_product_prepare, walk_run)
#define GEMM(op) BOTH(op, gemm_types, gemm_prepare, gemm_run)
#define ATTENTION(op)                                                                                        \
    TNCUDA_ROW("_contrib_interleaved_matmul_" op, floats, 0, attention_prepare, walk_run),                   \
        TNCUDA_LT_ROW("_contrib_interleaved_matmul_" op, floats, 0, walk_lt_prepare, walk_run),              \
        TNCUDA_ROW("_backward__contrib_interleaved_matmul_" op, floats, SUMS, backward_attention_prepare,    \
                   walk_run),                                                                                \
        TNCUDA_LT_ROW("_backward__contrib_interleaved_matmul_" op, floats, SUMS, walk_lt_prepare, walk_run)
const tn_kernel *const tncuda_family_walk[] = {
    PRODUCT("_np_dot"),
    PRODUCT("_npi_matmul"),
    PRODUCT("_npi_tensordot"),
    PRODUCT("_npi_tensordot_int_axes"),
    GEMM("_linalg_gemm"),
    GEMM("_linalg_gemm2"),
    GEMM("_linalg_syrk"),
    ATTENTION("selfatt_qk"),
    ATTENTION("selfatt_valatt"),
    ATTENTION("encdec_qk"),
    ATTENTION("encdec_valatt"),
    TNCUDA_ROW("_npi_einsum", einsum_types, EMPTY, einsum_prepare, walk_run),
    TNCUDA_ROW("_backward__npi_einsum", back_types, EMPTY, backward_einsum_prepare, walk_run),
    TNCUDA_LT_ROW("_npi_einsum", einsum_floats, EMPTY, walk_lt_prepare, walk_run),
    TNCUDA_LT_ROW("_backward__npi_einsum", back_types, EMPTY, walk_lt_prepare, walk_run),
    TNCUDA_ROW("khatri_rao", floats, EMPTY, khatri_prepare, walk_run),
    NULL,
};
