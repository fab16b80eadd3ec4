/*
 * The loops of ../../common/loops*.list, compiled per compute type with the words of ../../common/words.inc.
 */
#include "loops.h"
#include "../common/isa.h"

#include "../../common/functions.h"

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#define WORDS_F32
#include "loops.inc"
#define WORDS_F64
#include "loops.inc"
#define WORDS_I32
#include "loops.inc"
#define WORDS_I64
#include "loops.inc"

/* ---- the tables ------------------------------------------------------------------------------- */

const tncpu_loop tncpu_loops[TNCPU_LOOP_COUNT][TNCPU_KINDS] = {
#define LOOP1(id, ns, expression) [TNCPU_##id] = {id##_f32, id##_f64, id##_i32, id##_i64},
#define LOOP2 LOOP1
#define LOOP3 LOOP1
#define LOOP1S LOOP1
#define LOOP2S LOOP1
#define LOOP1SS LOOP1
#define LOOP2SS LOOP1
#include "../../common/loops.list"
#undef LOOP1
#define LOOP1(id, ns, expression) [TNCPU_##id] = {id##_f32, id##_f64, NULL, NULL},
#include "../../common/loops_float.list"
#undef LOOP1
#define LOOP1(id, ns, expression) [TNCPU_##id] = {NULL, NULL, id##_i32, id##_i64},
#include "../../common/loops_int.list"
#undef LOOP1
};

const float tncpu_loop_ns[TNCPU_LOOP_COUNT] = {
#define LOOP1(id, ns, expression) [TNCPU_##id] = ns,
#include "../../common/loops.list"
#include "../../common/loops_float.list"
#include "../../common/loops_int.list"
};

tncpu_loop tncpu_loop_of(uint32_t loop, uint32_t kind)
{
    const uint32_t isa = kind == TNCPU_K_F32 ? tncpu_isa() : TNCPU_BASE;
    const tncpu_loop wide = isa == TNCPU_AVX512 ? tncpu_loops_f32_avx512[loop]
                            : isa == TNCPU_AVX2 ? tncpu_loops_f32_avx2[loop]
                                                : NULL;

    return wide ? wide : tncpu_loops[loop][kind];
}
