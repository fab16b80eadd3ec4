/* Softmax in f32 for AVX2. */
#include "softmax.h"

#define K float
#define N _f32
#define KEY int32_t
#define EXP tnb_exp_f32
#include "softmax.inc"

const tncpu_softmax tncpu_softmax_f32_avx2 = TNCPU_SOFTMAX(_f32);
