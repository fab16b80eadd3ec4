/*
 * The processor's level of x86-64 (psABI, "Micro-Architecture Levels"), asked once. The compiler's own way,
 * __builtin_cpu_supports, brings a constructor and tables of all processors with it, 5 KiB.
 */
#include <string.h>

#include "plugin/internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>

/* Bits of ecx of leaf 1, of ebx of leaf 7, and of the state that the system saves (XCR0). */
#define V2_1 (1u << 9 | 1u << 20 | 1u << 23)                        /* SSSE3, SSE4.2, POPCNT */
#define V3_1 (1u << 12 | 1u << 27)                                  /* FMA, OSXSAVE */
#define V3_7 (1u << 3 | 1u << 5 | 1u << 8)                          /* BMI, AVX2, BMI2 */
#define V4_7 (1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) /* AVX512 F, DQ, CD, BW, VL */
#define V3_STATE 0x06u
#define V4_STATE 0xe6u

static uint32_t level_ask(void)
{
    uint32_t a, b, c = 0, d, wide = 0, state = 0, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & V2_1) != V2_1)
        return 1;
    if ((c & V3_1) != V3_1 || !__get_cpuid_count(7, 0, &a, &wide, &b, &d))
        return 2;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    if ((wide & V3_7) != V3_7 || (state & V3_STATE) != V3_STATE)
        return 2;
    return (wide & V4_7) == V4_7 && (state & V4_STATE) == V4_STATE ? 4 : 3;
}

bool tni_isa_present(const char *isa)
{
    static const char *const levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    static atomic_uint asked;
    uint32_t level = atomic_load_explicit(&asked, memory_order_relaxed);

    if (!isa || !isa[0])
        return true;
    if (!level)
        atomic_store_explicit(&asked, level = level_ask(), memory_order_relaxed);
    for (uint32_t i = 0; i < 4; i++)
        if (strcmp(isa, levels[i]) == 0)
            return level > i;
    return false;
}
#else
bool tni_isa_present(const char *isa)
{
    return !isa || !isa[0];
}
#endif
