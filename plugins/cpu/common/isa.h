/* The widest instructions that this processor has, of those that files of this folder are built for. */
#ifndef TNCPU_ISA_H
#define TNCPU_ISA_H

#include <stdint.h>

enum { TNCPU_BASE, TNCPU_AVX2, TNCPU_AVX512, TNCPU_ISAS };

static inline uint32_t tncpu_isa(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return TNCPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return TNCPU_AVX2;
#endif
    return TNCPU_BASE;
}

#endif
