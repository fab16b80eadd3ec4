/* Whole numbers that are in the order of the elements they stand for. */
#ifndef TNCPU_KEYS_H
#define TNCPU_KEYS_H

#include "convert.h"

/* Of element `i` of a tile that was loaded from `t`: 0 and -0 have one key, NaN has the largest. order.c */
uint64_t tncpu_key(const tn_tensor *t, const tncpu_tile *tile, int64_t i);

#endif
