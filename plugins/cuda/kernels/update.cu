/* Optimizer steps, a launch for each weight. */
#include "element.h"
#include "tenon/plugin/op/optimizer.h"

enum { /* what is no attribute of the operator that a step is named after: plugins/cpu/plain/optimizer.c */
       TN_adamw_update_rescale_grad = TN_adamw_update_clip_gradient + 1,
       TN_lamb_update_phase1_rate = TN_lamb_update_phase1_clip_gradient + 1,
       TN_lamb_update_phase2_r1 = TN_lamb_update_phase2_upper_bound + 1,
       TN_lamb_update_phase2_r2
};

#define TNCUDA_UPDATE_NUMBERS 16

/* The numbers of a step; 0 where it is skipped. */
TNCUDA_INLINE int32_t update_numbers(const tncuda_update_args *call, double *v)
{
    for (int32_t k = 0; k < TNCUDA_UPDATE_NUMBERS; k++)
        v[k] = call->number[k] ? element_number(call->number[k], call->number_dtype[k], call->number_at[k])
                               : call->v[k];
    return !call->skips || (v[call->skips - 1] != 0 && v[call->skips - 1] - v[call->skips - 1] == 0);
}

#define WORDS_F32
#include "update.inc"
#define WORDS_F64
#include "update.inc"
