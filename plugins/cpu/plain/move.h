/* Strided copies on hosts: ../../common/move.h. */
#ifndef TNCPU_MOVE_H
#define TNCPU_MOVE_H

#include "../../common/move.h"
#include "../common/cpu.h"
#include "plain.h"

void tncpu_move_run(const tnb_move *m, const void *src, void *dst, int threads);

/** The plan of a kernel that moves `count` elements. */
void tncpu_move_plan(const tn_node *node, tn_plan *plan, int64_t count);

#endif
