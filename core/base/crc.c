/* Checksums: CRC-32 by products without carry where the processor has them, else zlib's; libmd's SHA-256. */
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>

#include <sha2.h>
#include <zlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/base.h"

_Static_assert(sizeof(SHA2_CTX) <= sizeof(tni_sha256_state), "tni_sha256_state must hold libmd's state");

#define STEP_BYTES ((uint64_t)1 << 30) /* both libraries count in types that may be 32 bits */

#if defined(__x86_64__)
#define FOLDED 64u /* bytes a step takes; four remainders of 128 bits are under way */

/* x^(4 * 128 + 32), x^(4 * 128 - 32), then for one step of 128 bits, then of 64, modulo the polynomial, all
 * reflected; the polynomial and its inverse. Gopal and others, "Fast CRC Computation for Generic Polynomials
 * Using PCLMULQDQ Instruction", Intel 2009. */
static const uint64_t by_four[2] = {0x154442bd4, 0x1c6e41596}, by_one[2] = {0x1751997d0, 0x0ccaa009e},
                      by_half[2] = {0x163cd6124, 0}, barrett[2] = {0x1db710641, 0x1f7011641};

#define ABLE (1u << 1 | 1u << 19) /* PCLMULQDQ, SSE4.1: ecx of leaf 1 (xxh3.c) */
#define CARRYLESS __attribute__((target("pclmul,sse4.1")))

CARRYLESS static inline __m128i load(const void *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

CARRYLESS static inline __m128i fold(__m128i x, __m128i factors, __m128i next)
{
    const __m128i low = _mm_clmulepi64_si128(x, factors, 0x00), high = _mm_clmulepi64_si128(x, factors, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* 128 bits to 32. */
CARRYLESS static uint32_t reduce(__m128i x)
{
    const __m128i words = _mm_setr_epi32(-1, 0, -1, 0), poly = load(barrett);
    __m128i y = _mm_clmulepi64_si128(x, load(by_one), 0x10);

    x = _mm_xor_si128(_mm_srli_si128(x, 8), y);
    y = _mm_srli_si128(x, 4);
    x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, words), load(by_half), 0x00), y);
    y = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(x, words), poly, 0x10), words);
    x = _mm_xor_si128(_mm_clmulepi64_si128(y, poly, 0x00), x);
    return (uint32_t)_mm_extract_epi32(x, 1);
}

/* `count`: a multiple of 16, at least FOLDED. */
CARRYLESS static uint32_t crc_folded(uint32_t crc, const unsigned char *at, uint64_t count)
{
    __m128i a = load(at), b = load(at + 16), c = load(at + 32), d = load(at + 48), factors = load(by_four);

    a = _mm_xor_si128(a, _mm_cvtsi32_si128((int)~crc));
    for (at += FOLDED, count -= FOLDED; count >= FOLDED; at += FOLDED, count -= FOLDED) {
        a = fold(a, factors, load(at)); /* written out: in registers, also where a compiler unrolls nothing */
        b = fold(b, factors, load(at + 16));
        c = fold(c, factors, load(at + 32));
        d = fold(d, factors, load(at + 48));
    }
    factors = load(by_one);
    a = fold(fold(fold(a, factors, b), factors, c), factors, d);
    for (; count; at += 16, count -= 16)
        a = fold(a, factors, load(at));
    return ~reduce(a);
}

/* How many of the bytes the processor takes in that way. */
static uint64_t folded_bytes(uint64_t count)
{
    static atomic_int able; /* 1: not able, 2: able */
    int known = atomic_load_explicit(&able, memory_order_relaxed);

    if (count < FOLDED)
        return 0;
    if (!known) {
        unsigned a, b, c = 0, d;

        (void)__get_cpuid(1, &a, &b, &c, &d);
        known = (c & ABLE) == ABLE ? 2 : 1;
        atomic_store_explicit(&able, known, memory_order_relaxed);
    }
    return known == 2 ? count & ~(uint64_t)15 : 0;
}
#else
static uint64_t folded_bytes(uint64_t count)
{
    (void)count;
    return 0;
}

static uint32_t crc_folded(uint32_t crc, const unsigned char *at, uint64_t count)
{
    (void)at, (void)count;
    return crc;
}
#endif

uint32_t tni_crc32(uint32_t crc, const void *bytes, uint64_t count)
{
    const unsigned char *at = bytes;
    const uint64_t folded = folded_bytes(count);

    if (folded)
        crc = crc_folded(crc, at, folded);
    at += folded;
    for (uint64_t left = count - folded; left > 0;) {
        uint64_t step = left < STEP_BYTES ? left : STEP_BYTES;

        crc = (uint32_t)crc32(crc, at, (unsigned)step);
        at += step;
        left -= step;
    }
    return crc;
}

void tni_sha256_begin(tni_sha256_state *s)
{
    SHA2_CTX context;

    SHA256Init(&context);
    memcpy(s, &context, sizeof context);
}

void tni_sha256_add(tni_sha256_state *s, const void *bytes, uint64_t count)
{
    const unsigned char *at = bytes;
    SHA2_CTX context;

    memcpy(&context, s, sizeof context);
    for (uint64_t left = count; left > 0;) {
        uint64_t step = left < STEP_BYTES ? left : STEP_BYTES;

        SHA256Update(&context, at, (size_t)step);
        at += step;
        left -= step;
    }
    memcpy(s, &context, sizeof context);
}

void tni_sha256_end(tni_sha256_state *s, char out_hex[65])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;

    memcpy(&context, s, sizeof context);
    SHA256Final(digest, &context);
    for (size_t i = 0; i < sizeof digest; i++) {
        out_hex[2 * i] = digits[digest[i] >> 4];
        out_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    out_hex[64] = '\0';
}

tn_status tni_sha256(const void *bytes, uint64_t count, char out_hex[65])
{
    tni_sha256_state s;

    tni_sha256_begin(&s);
    tni_sha256_add(&s, bytes, count);
    tni_sha256_end(&s, out_hex);
    return TN_OK;
}
