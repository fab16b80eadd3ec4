/*
 * Products of interleaved queries, keys and values. Of one head of one sequence they are matrices whose rows
 * lie in one array a step apart: (place, sequence, head, part, element). A task is one head of one sequence.
 */
#include <math.h>

#include "../../common/attention.h"
#include "../common/gemm.h"
#include "short.h"

#define BODY "../plain/attention.inc"
#include "../common/floats.inc"

typedef struct attention_state {
    tnb_attention a;
    int32_t backward;
} attention_state;

static bool any_written(const tn_node *node)
{
    for (uint32_t o = 0; o < node->out_count; o++)
        if (tn_tensor_count(node->out[o]))
            return true;
    return false;
}

static tn_status attention_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int backward = strncmp(node->op, "_backward_", 10) == 0;
    tnb_attention a =
        tnb_attention_of(node->op, node->attrs, node->in + backward, backward ? node->in[0] : node->out[0]);
    const int64_t l = a.left.rows, r = a.right.rows, d = a.depth;
    tn_status st =
        tncpu_gemm_serves(tncpu_max(tncpu_max(a.left.row, a.right.row), tncpu_max(a.out.row, l)), err);

    if (st || (st = tncpu_state(plugin, plan, sizeof(attention_state), err)))
        return st;
    a.tasks = any_written(node) ? a.tasks : 0; /* heads without elements may be any number */
    *(attention_state *)plan->state = (attention_state){a, backward};
    tncpu_plan_tasks(node, plan, 50 + (backward ? 2 : 1) * (double)a.tasks * tncpu_gemm_ns(l, r, d), a.tasks);
    tncpu_plan_workspace(plan, tncpu_gemm_bytes_all(l, d, r, a.dtype));
    return TN_OK;
}

static tn_status attention_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const attention_state *s = plan->state;
    const uint64_t each = plan->workspace_bytes / plan->threads;
    const int threads = tncpu_run_threads(plan, x), before = tncpu_gemm_begin();

    (void)err, (void)threads; /* without OpenMP */
    for (uint32_t o = 0; s->backward && o < 1u + (s->a.left_in != s->a.right_in); o++)
        if (x->modes[o])
            memset(x->out[o]->data, 0, (size_t)tn_tensor_count(x->out[o]) * tn_dtype_bytes(x->out[o]->dtype));
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < s->a.tasks; t++) {
        void *work = (char *)x->workspace + (uint64_t)tncpu_thread_id() * each;

        if (s->backward)
            (s->a.dtype == TN_F64 ? attention_back_f64 : attention_back_f32)(&s->a, x, t, work);
        else
            (s->a.dtype == TN_F64 ? attention_task_f64 : attention_task_f32)(&s->a, x, t, work);
    }
    tncpu_gemm_end(before);
    return TN_OK;
}

#define ATTENTION(id, op)                                                                                    \
    TNCPU_SHORT_KERNEL(id, op, tncpu_floats, 0, attention_prepare, attention_run)                            \
    TNCPU_SHORT_KERNEL(backward_##id, "_backward_" op, tncpu_floats, TN_KERNEL_EMPTY_OK, attention_prepare,  \
                       attention_run)
/* clang-format off */
ATTENTION(selfatt_qk, "_contrib_interleaved_matmul_selfatt_qk")
ATTENTION(selfatt_valatt, "_contrib_interleaved_matmul_selfatt_valatt")
ATTENTION(encdec_qk, "_contrib_interleaved_matmul_encdec_qk")
ATTENTION(encdec_valatt, "_contrib_interleaved_matmul_encdec_valatt")
/* clang-format on */

const tn_kernel *const tncpu_family_attention[] = {
    &selfatt_qk,         &selfatt_valatt,         &encdec_qk,
    &encdec_valatt,      &backward_selfatt_qk,    &backward_selfatt_valatt,
    &backward_encdec_qk, &backward_encdec_valatt, NULL,
};
