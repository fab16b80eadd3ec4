/* dot and batch_dot with their gradients, by the product of kernels/dense.inc or by cuBLASLt. */
#include "../common/product.h"
#include "lt.h"

#include <string.h>

typedef struct matrix_state {
    tnb_product p;
    tncuda_lt *lt[2]; /* of the outputs; NULL: plain kernels */
} matrix_state;

static bool is_back(const tn_node *node)
{
    return node->in_count > 2; /* dy, a, b */
}

static tn_status matrix_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint32_t first = is_back(node);
    const bool batch = strstr(node->op, "batch_dot") != NULL;
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(matrix_state), err);
    matrix_state *s = plan->state;

    if (st)
        return st;
    s->p = (batch ? tnb_batch_product : tnb_dot_product)(node->attrs, node->in[first], node->in[first + 1]);
    plan->workspace_bytes = tncuda_product_room(s->p.m, s->p.n, s->p.k, s->p.batch, s->p.dtype);
    if (first) {
        const uint64_t a = tncuda_product_room(s->p.m, s->p.k, s->p.n, s->p.batch, s->p.dtype),
                       b = tncuda_product_room(s->p.k, s->p.n, s->p.m, s->p.batch, s->p.dtype);

        plan->workspace_bytes = a > b ? a : b;
    }
    return TN_OK;
}

/* The matrices of a, b and c lie m·k and so on apart. */
static tncuda_product_args batched(const tnb_product *p, tncuda_product_args a)
{
    a.batch = p->batch;
    a.a_batch = a.m * a.k;
    a.b_batch = a.k * a.n;
    a.c_batch = a.m * a.n;
    a.dtype = p->dtype;
    return a;
}

static tncuda_product_args forward_args(const tnb_product *p)
{
    return batched(p, (tncuda_product_args){.m = p->m,
                                            .n = p->n,
                                            .k = p->k,
                                            .a_row = p->a_row,
                                            .a_col = p->a_col,
                                            .b_row = p->b_row,
                                            .b_col = p->b_col,
                                            .c_row = p->n,
                                            .c_col = 1});
}

/* da = dy · b' */
static tncuda_product_args left_args(const tnb_product *p)
{
    return batched(p, (tncuda_product_args){.m = p->m,
                                            .n = p->k,
                                            .k = p->n,
                                            .a_row = p->n,
                                            .a_col = 1,
                                            .b_row = p->b_col,
                                            .b_col = p->b_row,
                                            .c_row = p->a_row,
                                            .c_col = p->a_col});
}

/* db = a' · dy */
static tncuda_product_args right_args(const tnb_product *p)
{
    return batched(p, (tncuda_product_args){.m = p->k,
                                            .n = p->n,
                                            .k = p->m,
                                            .a_row = p->a_col,
                                            .a_col = p->a_row,
                                            .b_row = p->n,
                                            .b_col = 1,
                                            .c_row = p->b_row,
                                            .c_col = p->b_col});
}

static tn_status product(const matrix_state *s, const tn_exec *x, uint32_t out, tncuda_product_args a,
                         tn_err *err)
{
    if (x->modes[out] == TN_MODE_NONE)
        return TN_OK;
    a.c = x->out[out]->data;
    a.add = x->modes[out] == TN_MODE_ADD;
    return tncuda_product(x, s->lt[out], &a, x->workspace, err);
}

static tn_status matrix_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const matrix_state *s = plan->state;
    tncuda_product_args y = forward_args(&s->p);

    y.a = x->in[0]->data;
    y.b = x->in[1]->data;
    return product(s, x, 0, y, err);
}

/* in: dy, a, b; out: da, db */
static tn_status matrix_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const matrix_state *s = plan->state;
    tncuda_product_args da = left_args(&s->p), db = right_args(&s->p);
    tn_status st;

    da.a = x->in[0]->data;
    da.b = x->in[2]->data;
    db.a = x->in[1]->data;
    db.b = x->in[0]->data;
    st = product(s, x, 0, da, err);
    return st ? st : product(s, x, 1, db, err);
}

static tn_status matrix_lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = is_back(node);
    tn_status st = matrix_prepare(plugin, node, plan, err);
    matrix_state *s = plan->state;
    bool any = false;

    for (uint32_t o = 0; o < (back ? 2u : 1u) && !st; o++) {
        const tncuda_lt_shape shape = {.of = (!back ? forward_args
                                              : o   ? right_args
                                                    : left_args)(&s->p),
                                       .alpha = 1};

        if (node->modes[o] == TN_MODE_NONE)
            continue;
        st = tncuda_lt_make(plugin, node, plan, &shape, &s->lt[o], err);
        any = true;
    }
    if (!st && !any)
        st = tn_fail(err, TN_E_UNSUPPORTED, "no product is wanted");
    if (st)
        tncuda_release(plan);
    else
        tncuda_lt_room(plan);
    return st;
}

static const char *const types[] = {"lhs:" TNCUDA_FLOATS, "*:=lhs", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

#define FLAGS (TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK)
const tn_kernel *const tncuda_family_matrix[] = {
    TNCUDA_ROW("dot", types, FLAGS, matrix_prepare, matrix_run),
    TNCUDA_ROW("batch_dot", types, FLAGS, matrix_prepare, matrix_run),
    TNCUDA_ROW("_backward_dot", back_types, FLAGS, matrix_prepare, matrix_back_run),
    TNCUDA_ROW("_backward_batch_dot", back_types, FLAGS, matrix_prepare, matrix_back_run),
    TNCUDA_LT_ROW("dot", types, FLAGS, matrix_lt_prepare, matrix_run),
    TNCUDA_LT_ROW("batch_dot", types, FLAGS, matrix_lt_prepare, matrix_run),
    TNCUDA_LT_ROW("_backward_dot", back_types, FLAGS, matrix_lt_prepare, matrix_back_run),
    TNCUDA_LT_ROW("_backward_batch_dot", back_types, FLAGS, matrix_lt_prepare, matrix_back_run),
    NULL,
};
