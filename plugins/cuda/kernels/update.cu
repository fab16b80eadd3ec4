/* Optimizer steps, a launch for each weight. */
#include "element.h"
#include "tenon/plugin/op/optimizer.h"

enum { /* what is no attribute of the operator that a step is named after: plugins/cpu/plain/optimizer.c */
    TN_adamw_update_rescale_grad = TN_adamw_update_clip_gradient + 1,
    TN_lamb_update_phase1_rate = TN_lamb_update_phase1_clip_gradient + 1,
    TN_lamb_update_phase2_r1 = TN_lamb_update_phase2_upper_bound + 1,
    TN_lamb_update_phase2_r2
};

#define WORDS_F32
#include "update.inc"
#define WORDS_F64
#include "update.inc"
