/*
 * Chains of pointwise operators, interpreted: each thread runs the steps for one element after the other.
 * Results between steps are elements of their own data types, so the bits are those of the operators one by
 * one. What is compiled for a chain (fused_words.h) does the same faster; this serves where there is no
 * compiler, and everywhere without a GPU.
 */
#include "../../common/functions_float.h"
#include "element.h"
#include "loops.h"

#include "fused_words.inc" /* of no use here: a mistake in it ends the build */

TNCUDA_INLINE int64_t fused_at(const tncuda_fused_args *call, const tncuda_fused_place *place, int64_t i)
{
    return call->ndim == 1 ? i * place->stride[0] : tnb_offset(call->ndim, call->shape, place->stride, i);
}

/* Where operand `from` lies, an input or the result of a step. */
TNCUDA_INLINE const void *fused_operand(const tncuda_fused_args *call, int32_t from, int64_t i,
                                        const uint64_t *result, int32_t *dtype, int64_t *at)
{
    if (from >= TNCUDA_FUSED_RESULT) {
        *dtype = call->step[from - TNCUDA_FUSED_RESULT].dtype;
        *at = 0;
        return result + (from - TNCUDA_FUSED_RESULT);
    }
    *dtype = call->in[from].dtype;
    *at = fused_at(call, &call->in[from], i);
    return call->in[from].data;
}

#define WORDS_F32
#include "fused.inc"
#define WORDS_F64
#include "fused.inc"
#define WORDS_I32
#include "fused.inc"
#define WORDS_I64
#include "fused.inc"

/* The element of a result into an output: as it is, or added to what is there. */
TNCUDA_INLINE void fused_out(const tncuda_fused_place *to, int64_t at, const uint64_t *result)
{
    const int32_t d = to->dtype, add = to->mode == 2; /* TN_MODE_ADD */

    if (d == ELEMENT_F64)
        fused_store_f64(d, TNCUDA_STORE_SAME, add, to->data, at, fused_load_f64(d, result, 0));
    else if (element_is_float(d))
        fused_store_f32(d, TNCUDA_STORE_SAME, add, to->data, at, fused_load_f32(d, result, 0));
    else
        fused_store_i64(d, TNCUDA_STORE_SAME, add, to->data, at, fused_load_i64(d, result, 0));
}

/* All inputs of an element are read before its outputs are written: an output may lie where an input does. */
TNCUDA_KERNEL(fused_steps, FREE, tncuda_fused_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        uint64_t result[TNCUDA_FUSED_STEPS];

        for (int32_t k = 0; k < call->steps; k++) {
            const tncuda_fused_step *step = &call->step[k];

            if (step->kind == TNCUDA_KIND_F32)
                fused_step_f32(call, step, i, result, &result[k]);
            else if (step->kind == TNCUDA_KIND_F64)
                fused_step_f64(call, step, i, result, &result[k]);
            else if (step->kind == TNCUDA_KIND_I32)
                fused_step_i32(call, step, i, result, &result[k]);
            else
                fused_step_i64(call, step, i, result, &result[k]);
        }
        for (int32_t o = 0; o < call->outs; o++)
            fused_out(&call->out[o], fused_at(call, &call->out[o], i), &result[call->result[o]]);
    }
}
