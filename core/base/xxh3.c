/*
 * XXH3, 64 bits, seed 0, of more than 240 bytes: a checksum as fast as memory, by AVX2 if there is one.
 * From xxHash's specification, version 0.2.0: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
 */
#include <assert.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#endif

#include "base/base.h"

#define STRIPE 64u   /* bytes that the eight sums take at once */
#define STRIPES 16u  /* of a block, behind which the sums are mixed */
#define BLOCK 1024u  /* STRIPES of them */
#define SECRET 192u  /* bytes */
#define PRIME32_1 0x9e3779b1u
#define PRIME64_1 0x9e3779b185ebca87u

/* The specification's default. */
static const uint8_t secret[SECRET] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are little endian, and read as they lie");

static uint64_t word(const uint8_t *at)
{
    uint64_t x;

    memcpy(&x, at, sizeof x);
    return x;
}

static void stripes_plain(uint64_t sums[8], const uint8_t *at, const uint8_t *key, uint64_t count)
{
    for (; count; count--, at += STRIPE, key += 8)
        for (uint32_t i = 0; i < 8; i++) {
            const uint64_t x = word(at + 8 * i), y = x ^ word(key + 8 * i);

            sums[i ^ 1] += x;
            sums[i] += (y & UINT32_MAX) * (y >> 32);
        }
}

static void mix_plain(uint64_t sums[8])
{
    for (uint32_t i = 0; i < 8; i++)
        sums[i] = (sums[i] ^ sums[i] >> 47 ^ word(secret + SECRET - STRIPE + 8 * i)) * PRIME32_1;
}

static void blocks_plain(uint64_t sums[8], const uint8_t *at, uint64_t count)
{
    for (; count; count--, at += BLOCK) {
        stripes_plain(sums, at, secret, STRIPES);
        mix_plain(sums);
    }
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))

WIDE static inline __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

WIDE static inline __m256i step(__m256i sums, __m256i x, __m256i key)
{
    const __m256i y = _mm256_xor_si256(x, key);

    return _mm256_add_epi64(sums, _mm256_add_epi64(_mm256_mul_epu32(y, _mm256_srli_epi64(y, 32)),
                                                   _mm256_shuffle_epi32(x, 0x4e)));
}

/* The product of 64 bits by one of 32. */
WIDE static inline __m256i mix(__m256i x, __m256i key)
{
    const __m256i prime = _mm256_set1_epi64x(PRIME32_1);

    x = _mm256_xor_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 47)), key);
    return _mm256_add_epi64(_mm256_mul_epu32(x, prime),
                            _mm256_slli_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), prime), 32));
}

WIDE static void blocks_wide(uint64_t sums[8], const uint8_t *at, uint64_t count)
{
    __m256i a = load(sums), b = load(sums + 4);

    for (; count; count--) {
        for (const uint8_t *key = secret; key < secret + 8 * STRIPES; key += 8, at += STRIPE) {
            _mm_prefetch((const char *)at + 2 * BLOCK, _MM_HINT_T0);
            a = step(a, load(at), load(key));
            b = step(b, load(at + 32), load(key + 32));
        }
        a = mix(a, load(secret + SECRET - STRIPE));
        b = mix(b, load(secret + SECRET - STRIPE / 2));
    }
    _mm256_storeu_si256((__m256i *)(void *)sums, a);
    _mm256_storeu_si256((__m256i *)(void *)(sums + 4), b);
}

#ifdef TN_TEST_SWITCHES
bool tni_xxh3_plain;
#define PLAIN tni_xxh3_plain
#else
#define PLAIN false
#endif

/* AVX2, whose registers the system saves (XCR0, bits 1 and 2); the compiler's way brings 5 KiB with it. */
static bool wide_ask(void)
{
    uint32_t a, b = 0, c = 0, d, state = 0, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1u) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return b >> 5 & 1u && (state & 6u) == 6u;
}

static void blocks(uint64_t sums[8], const uint8_t *at, uint64_t count)
{
    static atomic_int wide; /* 1: no, 2: yes */

    if (!atomic_load_explicit(&wide, memory_order_relaxed))
        atomic_store_explicit(&wide, wide_ask() ? 2 : 1, memory_order_relaxed);
    (atomic_load_explicit(&wide, memory_order_relaxed) == 2 && !PLAIN ? blocks_wide : blocks_plain)(sums, at,
                                                                                                    count);
}
#else
#define blocks blocks_plain
#endif

/* The halves of the product of 128 bits, one over the other. */
static uint64_t folded(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tni_xxh3(const void *bytes, uint64_t count)
{
    uint64_t sums[8] = {0xc2b2ae3d, PRIME64_1,  0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63,
                        0x85ebca77, 0x27d4eb2f165667c5, PRIME32_1},
             hash = count * PRIME64_1;
    const uint64_t whole = (count - 1) / BLOCK;
    const uint8_t *at = bytes, *end = at + count;

    assert(count > TNI_XXH3_ABOVE);
    blocks(sums, at, whole);
    at += whole * BLOCK;
    stripes_plain(sums, at, secret, (uint64_t)(end - at - 1) / STRIPE);
    stripes_plain(sums, end - STRIPE, secret + SECRET - STRIPE - 7, 1);
    for (uint32_t i = 0; i < 8; i += 2)
        hash += folded(sums[i] ^ word(secret + 11 + 8 * i), sums[i + 1] ^ word(secret + 19 + 8 * i));
    hash = (hash ^ hash >> 37) * 0x165667919e3779f9u;
    return hash ^ hash >> 32;
}
