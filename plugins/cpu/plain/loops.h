/*
 * The loops of all pointwise operators, by compute type. loops.list has one line per loop; families name them
 * by id: tncpu_loops[TNCPU_ADD] is an array of TNCPU_KINDS functions, NULL where the loop has no meaning for
 * the type.
 */
#ifndef TNCPU_LOOPS_H
#define TNCPU_LOOPS_H

#include "pointwise.h"

enum {
#define LOOP1(id, ns, expression) TNCPU_##id,
#define LOOP2(id, ns, expression) TNCPU_##id,
#define LOOP3(id, ns, expression) TNCPU_##id,
#define LOOP1S(id, ns, expression) TNCPU_##id,
#define LOOP2S(id, ns, expression) TNCPU_##id,
#define LOOP1SS(id, ns, expression) TNCPU_##id,
#define LOOP2SS(id, ns, expression) TNCPU_##id,
#include "../../common/loops.list"
#include "../../common/loops_float.list"
#include "../../common/loops_int.list"
#undef LOOP1
#undef LOOP2
#undef LOOP3
#undef LOOP1S
#undef LOOP2S
#undef LOOP1SS
#undef LOOP2SS
    TNCPU_LOOP_COUNT
};

extern const tncpu_loop tncpu_loops[TNCPU_LOOP_COUNT][TNCPU_KINDS];
/* Of f32: those of loops*_wide.list, for processors that have the instructions; NULL where tncpu_loops has
 * the only one. */
extern const tncpu_loop tncpu_loops_f32_avx2[TNCPU_LOOP_COUNT], tncpu_loops_f32_avx512[TNCPU_LOOP_COUNT];
/* The loop for this processor: of the same bits as the one of tncpu_loops. */
tncpu_loop tncpu_loop_of(uint32_t loop, uint32_t kind);
extern const float tncpu_loop_ns[TNCPU_LOOP_COUNT];

#endif
