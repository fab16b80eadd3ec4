/* Index arrays of any data type. */
#ifndef TNCPU_INDEX_H
#define TNCPU_INDEX_H

#include "plain.h"

#define TNCPU_INDICES_PART 256

/** A dense tensor's elements as integers: fractions are cut off, NaN is 0, what is too large saturates. */
void tncpu_indices_load(const tn_tensor *t, int64_t *to);
/** Elements first … first+n-1 alone, at most TNCPU_INDICES_PART of them. */
void tncpu_indices_part(const tn_tensor *t, int64_t first, int64_t n, int64_t *to);
/** Of qsort and bsearch, over int64_t: the smaller one first. */
int tncpu_index_order(const void *a, const void *b);
/** Sorts n indices and drops those that are there already; returns how many are left. */
int64_t tncpu_indices_distinct(int64_t *ids, int64_t n);

#endif
