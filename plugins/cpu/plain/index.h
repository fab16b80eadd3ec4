/* Index arrays of any data type. */
#ifndef TNCPU_INDEX_H
#define TNCPU_INDEX_H

#include "plain.h"

#define TNCPU_INDICES_PART 256

/** A dense tensor's elements as integers: fractions are cut off, NaN is 0, what is too large saturates. */
void tncpu_indices_load(const tn_tensor *t, int64_t *to);
/** Elements first … first+n-1 alone, at most TNCPU_INDICES_PART of them. */
void tncpu_indices_part(const tn_tensor *t, int64_t first, int64_t n, int64_t *to);

#endif
