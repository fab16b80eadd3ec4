/*
 * Folding of BatchNorm's statistics into the parameters of the layer before it, in double and rounded once.
 * n: gamma counts as 1, which input the variance is; f: eps.
 */
#include "element.h"

TNCUDA_INLINE double fold_scale(const tncuda_call_args *call, int32_t gamma, int64_t channel)
{
    const double inverse = 1 / sqrt(NUMBER_IN(call->n[1], channel) + call->f[0]);

    return call->n[0] ? inverse : inverse * NUMBER_IN(gamma, channel);
}

/* in: weight, gamma, var; each channel has `inner` elements. */
TNCUDA_KERNEL(fold_weight, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, NUMBER_IN(0, i) * fold_scale(call, 1, i / call->inner));
}

/* in: gamma, beta, mean, var, and a bias unless its data is NULL */
TNCUDA_KERNEL(fold_bias, FREE, tncuda_call_args)
{
    for (int64_t c = TNCUDA_FIRST; c < call->count; c += TNCUDA_STEP) {
        const double bias = call->in[4].data ? NUMBER_IN(4, c) : 0;

        NUMBER_OUT(0, c, NUMBER_IN(1, c) + (bias - NUMBER_IN(2, c)) * fold_scale(call, 0, c));
    }
}
