/* Checksums: zlib's CRC-32 and libmd's SHA-256. */
#include <string.h>
#include <sys/types.h>

#include <sha2.h>
#include <zlib.h>

#include "base/base.h"

_Static_assert(sizeof(SHA2_CTX) <= sizeof(tni_sha256_state), "tni_sha256_state must hold libmd's state");

#define STEP_BYTES ((uint64_t)1 << 30) /* both libraries count in types that may be 32 bits */

uint32_t tni_crc32(uint32_t crc, const void *bytes, uint64_t count)
{
    const unsigned char *at = bytes;

    for (uint64_t left = count; left > 0;) {
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
