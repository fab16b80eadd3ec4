/**
 * Random numbers without state: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011). Element k of a draw is a function of seed, device, draw number and k alone, so any
 * number of threads, in any order, gives the same numbers.
 */
#ifndef TENON_PLUGIN_RANDOM_H
#define TENON_PLUGIN_RANDOM_H

#include "op.h"
#include "philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One draw: what all of its elements share. */
typedef struct tn_draw {
    uint64_t key, number;
} tn_draw;

/** The draw that a call stands for; reads the step counter. */
static inline tn_draw tn_draw_of(const tn_rng *rng)
{
    tn_draw d;
    uint64_t mixed = rng->stream + 0x9E3779B97F4A7C15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u; /* SplitMix64: devices get unrelated keys */
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    d.key = rng->seed ^ mixed ^ (mixed >> 31);
    d.number = *rng->step + rng->step_add;
    return d;
}

/** The four words of element `k`. */
TN_DRAW_INLINE void tn_draw_words(const tn_draw *d, uint64_t k, uint32_t out[4])
{
    tn_philox(d->key, d->number, k, out);
}

/**
 * Four more words of element `k` (below 2^48), number `part` (below 2^16): for draws that may refuse some
 * numbers, or need more than 128 bits. Part 0 is tn_draw_words.
 */
TN_DRAW_INLINE void tn_draw_part(const tn_draw *d, uint64_t k, uint32_t part, uint32_t out[4])
{
    tn_philox(d->key, d->number, k | (uint64_t)part << 48, out);
}

/** 53 bits as a number in [0, 1). */
TN_DRAW_INLINE double tn_unit(uint32_t high, uint32_t low)
{
    return (double)(int64_t)(((uint64_t)high << 21) ^ ((uint64_t)low >> 11)) * (1.0 / 9007199254740992.0);
}

/** Element `k`, uniform in [0, 1). */
TN_DRAW_INLINE double tn_draw_unit(const tn_draw *d, uint64_t k)
{
    uint32_t w[4];

    tn_philox(d->key, d->number, k, w);
    return tn_unit(w[0], w[1]);
}

#ifdef __cplusplus
}
#endif

#endif
