/* Numbers of the loops of ../../common, and of the types that they compute in: the same for host and GPU. */
#ifndef TNCUDA_LOOPS_H
#define TNCUDA_LOOPS_H

enum {
#define LOOP1(id, ns, expression) TNCUDA_##id,
#define LOOP2 LOOP1
#define LOOP3 LOOP1
#define LOOP1S LOOP1
#define LOOP2S LOOP1
#define LOOP1SS LOOP1
#define LOOP2SS LOOP1
#include "../../common/loops.list"
    TNCUDA_LOOP_NUMBERED, /* of floats an operand is a number in rows before this one alone (point.inc) */
    TNCUDA_LOOP_NUMBERED_LAST = TNCUDA_LOOP_NUMBERED - 1,
#include "../../common/loops_float.list"
#include "../../common/loops_int.list"
#undef LOOP1
#undef LOOP2
#undef LOOP3
#undef LOOP1S
#undef LOOP2S
#undef LOOP1SS
#undef LOOP2SS
    TNCUDA_LOOP_COUNT
};

enum { TNCUDA_KIND_F32, TNCUDA_KIND_F64, TNCUDA_KIND_I32, TNCUDA_KIND_I64 };

#endif
