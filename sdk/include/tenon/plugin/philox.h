/**
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): ten
 * rounds of multiply and exchange turn a counter of 128 bits and a key of 64 into 128 random bits. No state:
 * whoever asks for element k, on whatever thread, gets the same bits.
 */
#ifndef TENON_PLUGIN_PHILOX_H
#define TENON_PLUGIN_PHILOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels for GPUs draw the same numbers. */
#ifdef __CUDACC__
#define TN_DRAW_INLINE static __host__ __device__ inline
#else
#define TN_DRAW_INLINE static inline
#endif

#define TN_PHILOX_ROUNDS 10u
#define TN_PHILOX_KEY_0 0x9E3779B9u /* added to the key's halves after each round */
#define TN_PHILOX_KEY_1 0xBB67AE85u

/** One round; k0 and k1 are the halves of the key. For loops that take several counters through it. */
TN_DRAW_INLINE void tn_philox_round(uint32_t k0, uint32_t k1, uint32_t *x0, uint32_t *x1, uint32_t *x2,
                                    uint32_t *x3)
{
    const uint64_t p0 = (uint64_t)0xD2511F53u * *x0, p1 = (uint64_t)0xCD9E8D57u * *x2;

    *x0 = (uint32_t)(p1 >> 32) ^ *x1 ^ k0;
    *x1 = (uint32_t)p1;
    *x2 = (uint32_t)(p0 >> 32) ^ *x3 ^ k1;
    *x3 = (uint32_t)p0;
}

/** 128 random bits of a key and a counter. */
TN_DRAW_INLINE void tn_philox(uint64_t key, uint64_t high, uint64_t low, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)low, x1 = (uint32_t)(low >> 32), x2 = (uint32_t)high, x3 = (uint32_t)(high >> 32);

    for (uint32_t round = 0; round < TN_PHILOX_ROUNDS; round++) {
        tn_philox_round(k0, k1, &x0, &x1, &x2, &x3);
        k0 += TN_PHILOX_KEY_0;
        k1 += TN_PHILOX_KEY_1;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

#ifdef __cplusplus
}
#endif

#endif
