/*
 * Contractions of two arrays, as products of matrices: the axes of each are its batch, those that it has
 * alone (rows of a, columns of b) and those that are summed over. Where memory has them in this order, or
 * the last two in the other order, the product reads them there; otherwise they are copied into this order
 * first. einsum walks over all its indices. Short floats: as float32.
 */
#include "../../common/contraction.h"
#include "../common/gemm.h"
#include "convert.h"
#include "move.h"
#include "short.h"

/* ---- where products find their matrices ------------------------------------------------------------ */

/* The step of a group that memory has as one axis; -1: it has not. */
static int64_t group_step(const tnb_group *g)
{
    tnb_move m = {.ndim = 0};

    for (int32_t d = 0; d < g->ndim; d++)
        tnb_move_add(&m, g->extent[d], g->step[d], g->step[d]);
    return m.ndim == 0 ? 0 : m.ndim == 1 ? m.src_step[0] : -1;
}

/* Where a product finds the matrix. */
static void operand_place(tnb_operand *o)
{
    const int64_t rows = o->outer.count, columns = o->summed.count;

    o->row = group_step(&o->outer);
    o->col = group_step(&o->summed);
    o->row = rows == 1 ? columns : o->row; /* of one row or column any step will do */
    o->col = columns == 1 ? 1 : o->col;
    o->packed = o->row < 0 || o->col < 0 || (o->row != 1 && o->col != 1);
    if (o->packed) {
        o->row = columns;
        o->col = 1;
    }
}

static tnb_contraction contraction_of(const tn_node *node, const tn_tensor *a, const tn_tensor *b)
{
    tnb_contraction c = tnb_contraction_of(node, a, b);

    operand_place(&c.a);
    operand_place(&c.b);
    return c;
}

/* ---- packing ------------------------------------------------------------------------------------ */

/* Matrix outer × summed of all batches, from where it lies to one after the other, or (`back`) the other
 * way. */
static void operand_pack(const tnb_operand *o, int32_t dtype, const void *from, void *to, bool back)
{
    const tnb_group *groups[] = {&o->batch, &o->outer, &o->summed};
    int64_t dense = o->batch.count * o->outer.count * o->summed.count;
    tnb_move m;

    if (dense == 0)
        return;
    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(dtype);
    for (int g = 0; g < 3; g++)
        for (int32_t d = 0; d < groups[g]->ndim; d++) {
            const int64_t step = groups[g]->step[d];

            dense /= groups[g]->extent[d];
            tnb_move_add(&m, groups[g]->extent[d], back ? dense : step, back ? step : dense);
        }
    tncpu_move_run(&m, from, to, 1);
}

/* The first element of the matrix that batch `index` of the output reads, in elements. */
static int64_t batch_at(const tnb_contraction *c, const tnb_operand *o, int64_t index)
{
    int64_t at = 0, dense = o->outer.count * o->summed.count;

    for (int32_t d = o->batch.ndim; d-- > 0; dense *= o->batch.extent[d]) {
        const int64_t all = c->batch_extent[d + c->batch_ndim - o->batch.ndim], k = index % all;

        at += o->batch.extent[d] == 1 ? 0 : k * (o->packed ? dense : o->batch.step[d]);
        index /= all;
    }
    return at;
}

static uint64_t operand_bytes(const tnb_operand *o, int32_t dtype)
{
    const int64_t count = o->batch.count * o->outer.count * o->summed.count;

    return o->packed ? tncpu_aligned((uint64_t)count * tn_dtype_bytes(dtype)) : 0;
}

static uint64_t gemm_scratch(const tnb_contraction *c, const tn_plan *plan)
{
    return tncpu_aligned(tncpu_gemm_bytes_all(c->m, c->n, c->k, c->dtype)) * plan->threads;
}

/* Workspace: what products need, then operands that are packed, `copies` of each. */
static tn_status product_plan(void *plugin, const tn_node *node, tn_plan *plan, const tnb_contraction *c,
                              uint64_t copies, tn_err *err)
{
    tn_status st = tncpu_gemm_serves(tncpu_max(c->m, tncpu_max(c->n, c->k)), err);

    if (st || (st = tncpu_state(plugin, plan, sizeof *c, err)))
        return st;
    *(tnb_contraction *)plan->state = *c;
    tncpu_plan_tasks(node, plan, 50 + (double)copies * (double)c->batches * tncpu_gemm_ns(c->m, c->n, c->k),
                     tncpu_gemm_tasks(c->m, c->n, c->k));
    plan->workspace_bytes = gemm_scratch(c, plan) +
                            copies * (operand_bytes(&c->a, c->dtype) + operand_bytes(&c->b, c->dtype)) +
                            TNCPU_ALIGN;
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

static tn_status product_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_contraction c = contraction_of(node, node->in[0], node->in[1]);

    return product_plan(plugin, node, plan, &c, 1, err);
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnb_contraction c = contraction_of(node, node->in[1], node->in[2]);

    return product_plan(plugin, node, plan, &c, 2, err);
}

/* ---- running ------------------------------------------------------------------------------------ */

/* Where the product reads an operand: `*room` is taken if it must be packed. */
static const char *operand_load(const tnb_contraction *c, const tnb_operand *o, const tn_tensor *t,
                                char **room)
{
    char *to = *room;

    if (!o->packed)
        return t->data;
    *room += operand_bytes(o, c->dtype);
    operand_pack(o, c->dtype, t->data, to, false);
    return to;
}

static tn_status product_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_contraction *c = plan->state;
    const int64_t size = (int64_t)tn_dtype_bytes(c->dtype);
    char *room = (char *)x->workspace + gemm_scratch(c, plan);
    const char *a, *b;

    (void)err;
    if (tn_tensor_count(x->out[0]) == 0)
        return TN_OK;
    a = operand_load(c, &c->a, x->in[0], &room);
    b = operand_load(c, &c->b, x->in[1], &room);
    for (int64_t k = 0; k < c->batches; k++) {
        const tncpu_gemm g = {.a = a + batch_at(c, &c->a, k) * size,
                              .b = b + batch_at(c, &c->b, k) * size,
                              .c = (char *)x->out[0]->data + k * c->m * c->n * size,
                              .m = c->m,
                              .n = c->n,
                              .k = c->k,
                              .a_row = c->a.row,
                              .a_col = c->a.col,
                              .b_row = c->b.col,
                              .b_col = c->b.row,
                              .c_row = c->n,
                              .c_col = 1,
                              .dtype = c->dtype};

        tncpu_gemm_all(&g, x->workspace, tncpu_run_threads(plan, x));
    }
    return TN_OK;
}

/* Adds the gradient of one operand up, batch by batch: da = dy · b', or db' = dy' · a, which is outer ×
 * summed. */
static void operand_back(const tn_plan *plan, const tn_exec *x, bool second, const char *other, char *room)
{
    const tnb_contraction *c = plan->state;
    const tnb_operand *o = second ? &c->b : &c->a, *p = second ? &c->a : &c->b;
    const tn_tensor *dx = x->out[second];
    const int64_t size = (int64_t)tn_dtype_bytes(c->dtype);
    char *to = o->packed ? room : dx->data;

    memset(to, 0, (size_t)(tn_tensor_count(dx) * size));
    for (int64_t k = 0; c->m && c->n && c->k && k < c->batches; k++) {
        const tncpu_gemm g = {.a = (const char *)x->in[0]->data + k * c->m * c->n * size,
                              .b = other + batch_at(c, p, k) * size,
                              .c = to + batch_at(c, o, k) * size,
                              .m = o->outer.count,
                              .n = c->k,
                              .k = p->outer.count,
                              .a_row = second ? 1 : c->n,
                              .a_col = second ? c->n : 1,
                              .b_row = p->row,
                              .b_col = p->col,
                              .c_row = o->row,
                              .c_col = o->col,
                              .add = 1,
                              .dtype = c->dtype};

        tncpu_gemm_all(&g, x->workspace, tncpu_run_threads(plan, x));
    }
    if (o->packed)
        operand_pack(o, c->dtype, to, dx->data, true);
}

/* in: dy, a, b */
static tn_status backward_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_contraction *c = plan->state;
    char *room = (char *)x->workspace + gemm_scratch(c, plan);
    const char *a = operand_load(c, &c->a, x->in[1], &room), *b = operand_load(c, &c->b, x->in[2], &room);

    (void)err;
    if (x->modes[0])
        operand_back(plan, x, false, b, room);
    room += operand_bytes(&c->a, c->dtype);
    if (x->modes[1])
        operand_back(plan, x, true, a, room);
    return TN_OK;
}

/* ---- khatri_rao --------------------------------------------------------------------------------- */

typedef struct khatri_call {
    const tn_exec *x;
    int64_t inputs;
} khatri_call;

static tn_status khatri_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(int64_t), err);

    if (st)
        return st;
    *(int64_t *)plan->state = node->in_count;
    tncpu_plan_work(node, plan, 50 + 3.0 * node->in_count * (double)tn_tensor_count(node->out[0]));
    return TN_OK;
}

/* Row r of the output: the last input's row changes with each. */
static void khatri_part(void *arg, int64_t begin, int64_t end)
{
    const khatri_call *c = arg;
    const int64_t columns = c->x->out[0]->shape[1];
    double product[TNCPU_TILE], tile[TNCPU_TILE];

    for (int64_t r = begin; r < end; r++)
        for (int64_t at = 0, n; at < columns; at += n) {
            int64_t rest = r;

            n = tncpu_min(TNCPU_TILE, columns - at);
            for (int64_t i = 0; i < n; i++)
                product[i] = 1;
            for (int64_t k = c->inputs; k-- > 0; rest /= c->x->in[k]->shape[0]) {
                tncpu_numbers(c->x->in[k], rest % c->x->in[k]->shape[0] * columns + at, 1, n, tile);
                for (int64_t i = 0; i < n; i++)
                    product[i] *= tile[i];
            }
            tncpu_numbers_store(c->x->out[0], r * columns + at, 1, n, product);
        }
}

static tn_status khatri_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    khatri_call call = {x, *(const int64_t *)plan->state};

    (void)err;
    if (tn_tensor_count(x->out[0]))
        tncpu_for(plan, x, x->out[0]->shape[0], 1, khatri_part, &call);
    return TN_OK;
}

static const char *const types[] = {"a:f32,f64", "*:=a", NULL};
static const char *const back_types[] = {"dy:f32,f64", "*:=dy", NULL};
static const char *const short_types[] = {"a:f16,bf16", "*:=a", NULL};
static const char *const short_back_types[] = {"dy:f16,bf16", "*:=dy", NULL};

#define SHORTS(id, op)                                                                                       \
    TNCPU_SHORT_BESIDE(short_##id, op, short_types, TN_KERNEL_EMPTY_OK, product_prepare, product_run)        \
    TNCPU_SHORT_BESIDE(short_back_##id, "_backward_" op, short_back_types, TN_KERNEL_EMPTY_OK,               \
                       backward_prepare, backward_run)
#define ROWS(id, op)                                                                                         \
    TNCPU_ROW(op, types, TN_KERNEL_EMPTY_OK, product_prepare, product_run),                                  \
        TNCPU_ROW("_backward_" op, back_types, TN_KERNEL_EMPTY_OK, backward_prepare, backward_run),          \
        &short_##id, &short_back_##id
/* clang-format off */
SHORTS(dot, "_np_dot")
SHORTS(matmul, "_npi_matmul")
SHORTS(tensordot, "_npi_tensordot")
SHORTS(int_axes, "_npi_tensordot_int_axes")

const tn_kernel *const tncpu_family_products[] = {
    ROWS(dot, "_np_dot"), ROWS(matmul, "_npi_matmul"), ROWS(tensordot, "_npi_tensordot"),
    ROWS(int_axes, "_npi_tensordot_int_axes"),
    TNCPU_ROW("khatri_rao", tncpu_floats, TN_KERNEL_EMPTY_OK, khatri_prepare, khatri_run),
    NULL,
};
/* clang-format on */
