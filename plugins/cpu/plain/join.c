/* ../../common/join.inc; and the gradients of tile and repeat, which add up where copies came from, in the
 * order of dy. */
#include "convert.h"
#include "move.h"
#include "short.h"

#include "../../common/index.h"

#define ALL_TYPES TNCPU_ALL
#include "../../common/join.inc"

TNCPU_PREPARE(sum_prepare, tncpu_plan_tasks(node, plan, 20 + (double)tn_tensor_count(node->in[0]), 1))

/* dx = 0. False: dy has no elements. */
static bool sum_begin(const tn_exec *x)
{
    tncpu_fill(x->out[0], 0);
    return tn_tensor_count(x->in[0]) != 0;
}

/* Adds dy (`m` walks it from end to end) to where its elements were copied from, in the order of dy. */
static void copies_sum(const tnb_move *m, const tn_exec *x)
{
    const tncpu_convert *c = &tncpu_converts[x->out[0]->dtype];
    const int32_t outer = m->ndim > 2 ? m->ndim - 2 : 0;
    const int64_t rows = m->ndim > 1 ? m->extent[m->ndim - 2] : 1,
                  step = m->ndim > 1 ? m->dst_step[m->ndim - 2] : 0;
    const int64_t n = m->ndim > 0 ? m->extent[m->ndim - 1] : 1,
                  inner = m->ndim > 0 ? m->dst_step[m->ndim - 1] : 1;
    const char *dy = x->in[0]->data;

    for (int64_t k = 0; k < tn_tensor_count(x->in[0]) / (rows * n); k++) {
        char *dx = (char *)x->out[0]->data + tnb_offset(outer, m->extent, m->dst_step, k) * c->bytes;

        for (int64_t r = 0; r < rows; r++, dy += n * c->bytes)
            c->add(dy, dx + r * step * c->bytes, inner, n);
    }
}

static tn_status backward_tile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    (void)plan, (void)err;
    if (!sum_begin(x))
        return TN_OK;
    tile_move(x->attrs, x->out[0], x->in[0], 1, &m);
    copies_sum(&m, x);
    return TN_OK;
}

static tn_status backward_repeat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    (void)plan, (void)err;
    if (!sum_begin(x))
        return TN_OK;
    repeat_move(x->attrs, x->out[0], 1, &m);
    copies_sum(&m, x);
    return TN_OK;
}

static const char *const sum_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

TNCPU_SHORT_SHAPED(backward_tile, "_backward_tile", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare,
                   backward_tile_run)
TNCPU_SHORT_SHAPED(backward_repeat, "_backward_repeat", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare,
                   backward_repeat_run)

const tn_kernel *const tncpu_family_join[] = {
    JOIN_ROWS(TNCPU_ROW),
    &backward_tile,
    &backward_repeat,
    NULL,
};
