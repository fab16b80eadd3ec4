/*
 * Packs and chains convert 16-bit floats by the GPU's instructions, which make another NaN than storage.h:
 * for every number the bits are storage.h's. The double of an instruction rounds as storage.h does, and makes
 * NaN as GPUs do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../plugins/common/storage.h"

static uint32_t gpu_half(float f)
{
    return f == f ? tnb_float_half(f) : 0x7fffu;
}

static uint32_t gpu_bf16(float f)
{
    return f == f ? tnb_float_bf16(f) : 0x7fffu;
}

static float gpu_float(uint32_t half)
{
    const float f = tnb_half_float((uint16_t)half);

    return f == f ? f : tnb_bits_float(0x7fffffffu);
}

#define TNCUDA_CONVERTS 1
#define TNCUDA_PAIR_F16(word, low, high) ((word) = gpu_half(low) | gpu_half(high) << 16)
#define TNCUDA_PAIR_BF16(word, low, high) ((word) = gpu_bf16(low) | gpu_bf16(high) << 16)
#define TNCUDA_HALVES(word, low, high) ((low) = gpu_float((word)&0xffffu), (high) = gpu_float((word) >> 16))

#include "emulated.h"
#include "kernels/element.h"
#include "kernels/fused_words.inc"

#define ALL 65536u
#define ODD 40503u /* times every number is every number, in another order */

static void same(const char *what, uint32_t of, uint32_t made, uint32_t expected)
{
    if (made != expected)
        fail_msg("%s of %#x is %#x, not %#x", what, of, made, expected);
}

/* Four words: each number stands beside seven others, with NaN among them and without. */
static void numbers(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < ALL; k++) {
        uint32_t words[4];
        float halves[8], shorts[8];

        for (uint32_t w = 0; w < 4; w++)
            words[w] = ((k + w * 2047) & 0xffffu) | ((k * ODD + w) << 16);
        element_numbers(ELEMENT_F16, 4, (int32_t)(k % 3 > 0), words, halves);
        element_numbers(ELEMENT_BF16, 4, 1, words, shorts);
        for (uint32_t j = 0; j < 8; j++) {
            const uint16_t one = (uint16_t)(words[j / 2] >> (16 * (j % 2)));

            same("the float16", one, tnb_float_bits(halves[j]), tnb_float_bits(tnb_half_float(one)));
            same("the bfloat16", one, tnb_float_bits(shorts[j]), tnb_float_bits(tnb_bf16_float(one)));
        }
        same("a chain's float16", k, tnb_float_bits(fused_half_float((uint16_t)k)),
             tnb_float_bits(tnb_half_float((uint16_t)k)));
    }
}

/* Every sign, exponent and fraction of 7 bits, with others of the low ones: ties, and NaN of any payload. */
static float number(uint32_t k)
{
    static const uint32_t low[] = {0, 1, 0x1000, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff};

    return tnb_bits_float(k << 16 | low[((k * ODD) >> 3) & 7]);
}

static void words(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < ALL; k++) {
        uint32_t halves[4], shorts[4];
        float from[8];

        for (uint32_t j = 0; j < 8; j++)
            from[j] = number((k + j * ODD) & 0xffffu);
        element_words(ELEMENT_F16, 4, (int32_t)(k % 3 > 0), from, halves);
        element_words(ELEMENT_BF16, 4, 1, from, shorts);
        for (uint32_t j = 0; j < 8; j++) {
            const uint32_t bits = tnb_float_bits(from[j]), shift = 16 * (j % 2);

            same("float16", bits, (halves[j / 2] >> shift) & 0xffffu, tnb_float_half(from[j]));
            same("bfloat16", bits, (shorts[j / 2] >> shift) & 0xffffu, tnb_float_bf16(from[j]));
        }
        same("a chain's float16", tnb_float_bits(from[0]), fused_float_half(from[0]),
             tnb_float_half(from[0]));
        same("a chain's bfloat16", tnb_float_bits(from[0]), fused_float_bf16(from[0]),
             tnb_float_bf16(from[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(words)};

    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
