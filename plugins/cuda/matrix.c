/* dot and batch_dot with their gradients, by the product of kernels/dense.inc. */
#include "../common/product.h"
#include "launch.h"

#include <string.h>

typedef struct matrix_state {
    tnb_product p;
} matrix_state;

static tn_status matrix_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint32_t first = node->in_count > 2; /* dy, a, b */
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
static tn_status product(const matrix_state *s, const tn_exec *x, uint32_t out, tncuda_product_args *a,
                         tn_err *err)
{
    if (x->modes[out] == TN_MODE_NONE)
        return TN_OK;
    a->batch = s->p.batch;
    a->a_batch = a->m * a->k;
    a->b_batch = a->k * a->n;
    a->c_batch = a->m * a->n;
    a->c = x->out[out]->data;
    a->dtype = s->p.dtype;
    a->add = x->modes[out] == TN_MODE_ADD;
    return tncuda_product(x, a, x->workspace, err);
}

static tn_status matrix_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const matrix_state *s = plan->state;
    const tnb_product *p = &s->p;
    tncuda_product_args y = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a_row = p->a_row,
                             .a_col = p->a_col,
                             .b_row = p->b_row,
                             .b_col = p->b_col,
                             .c_row = p->n,
                             .c_col = 1,
                             .a = x->in[0]->data,
                             .b = x->in[1]->data};

    return product(s, x, 0, &y, err);
}

/* in: dy, a, b; out: da = dy · b', db = a' · dy */
static tn_status matrix_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const matrix_state *s = plan->state;
    const tnb_product *p = &s->p;
    tncuda_product_args da = {.m = p->m,
                              .n = p->k,
                              .k = p->n,
                              .a_row = p->n,
                              .a_col = 1,
                              .b_row = p->b_col,
                              .b_col = p->b_row,
                              .c_row = p->a_row,
                              .c_col = p->a_col,
                              .a = x->in[0]->data,
                              .b = x->in[2]->data};
    tncuda_product_args db = {.m = p->k,
                              .n = p->n,
                              .k = p->m,
                              .a_row = p->a_col,
                              .a_col = p->a_row,
                              .b_row = p->n,
                              .b_col = 1,
                              .c_row = p->b_row,
                              .c_col = p->b_col,
                              .a = x->in[1]->data,
                              .b = x->in[0]->data};
    const tn_status st = product(s, x, 0, &da, err);

    return st ? st : product(s, x, 1, &db, err);
}

static const char *const types[] = {"lhs:" TNCUDA_FLOATS, "*:=lhs", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

#define FLAGS (TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK)
const tn_kernel *const tncuda_family_matrix[] = {
    TNCUDA_ROW("dot", types, FLAGS, matrix_prepare, matrix_run),
    TNCUDA_ROW("batch_dot", types, FLAGS, matrix_prepare, matrix_run),
    TNCUDA_ROW("_backward_dot", back_types, FLAGS, matrix_prepare, matrix_back_run),
    TNCUDA_ROW("_backward_batch_dot", back_types, FLAGS, matrix_prepare, matrix_back_run),
    NULL,
};
