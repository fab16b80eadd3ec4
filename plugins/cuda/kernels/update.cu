/* Optimizer steps, a launch for each weight. */
#include "../../common/contrib.h"
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

/* room: sums of squares of a weight and of its direction; the first becomes its rate. f: lr, bounds. */
TNCUDA_KERNEL(update_lamb_rate, FREE, tncuda_call_args)
{
    double *room = (double *)call->room;

    if (TNCUDA_FIRST == 0)
        room[0] = tnb_lamb_rate(call->f[0], sqrt(room[0]), sqrt(room[1]), call->f[1], call->f[2]);
}

/* in: weight, grad (rows, size); out: the new weight, history of each row; f: lr, scale, bound, epsilon. */
TNCUDA_KERNEL(update_group_history, FREE, tncuda_call_args)
{
    for (int64_t r = TNCUDA_FIRST; r < call->count; r += TNCUDA_STEP) {
        double sum = 0;

        for (int64_t i = r * call->size; i < (r + 1) * call->size; i++) {
            const double g = tnb_bounded(NUMBER_IN(1, i), call->f[1], call->f[2]);

            sum += g * g;
        }
        NUMBER_OUT(1, r, element_number(call->out[1].data, call->out[1].dtype, r) + sum / (double)call->size);
    }
}

TNCUDA_KERNEL(update_group, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double history = element_number(call->out[1].data, call->out[1].dtype, i / call->size);

        NUMBER_OUT(0, i,
                   NUMBER_IN(0, i) - call->f[0] * tnb_bounded(NUMBER_IN(1, i), call->f[1], call->f[2]) /
                                         sqrt(history + call->f[3]));
    }
}

#define WORDS_F32
#include "update.inc"
#define WORDS_F64
#include "update.inc"
