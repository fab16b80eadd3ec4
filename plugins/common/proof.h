/* On the host, for plugins of transports: who a peer is, by HMAC-SHA256 (RFC 2104) over what was said in a
 * handshake. Needs libmd. */
#ifndef TNB_PROOF_H
#define TNB_PROOF_H

#include <sha2.h>
#include <stdbool.h>
#include <sys/random.h>

#include "system.h"
#include "tenon/plugin/transport.h"

#define PROOF_BYTES 32u
#define PROOF_KEY_BYTES (TN_TRANSPORT_SECRET_BYTES + 1) /* the last byte: there is a secret */
_Static_assert(PROOF_BYTES == SHA256_DIGEST_LENGTH, "a hash");
_Static_assert(PROOF_KEY_BYTES <= SHA256_BLOCK_LENGTH, "a key need not be hashed");

static inline tn_status random_fill(void *out, uint64_t bytes, tn_err *err)
{
    ssize_t got;

    do
        got = getrandom(out, bytes, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes ? TN_OK : fail_system(err, "random numbers");
}

static inline void proof_pad(SHA2_CTX *c, const uint8_t key[PROOF_KEY_BYTES], uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_LENGTH];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)((i < PROOF_KEY_BYTES ? key[i] : 0) ^ pad);
    SHA256Init(c);
    SHA256Update(c, block, sizeof block);
}

/* Between both, SHA256Update takes what is proved. */
static inline void proof_begin(SHA2_CTX *c, const uint8_t key[PROOF_KEY_BYTES])
{
    proof_pad(c, key, 0x36);
}

static inline void proof_end(SHA2_CTX *c, const uint8_t key[PROOF_KEY_BYTES], uint8_t out[PROOF_BYTES])
{
    SHA256Final(out, c);
    proof_pad(c, key, 0x5c);
    SHA256Update(c, out, PROOF_BYTES);
    SHA256Final(out, c);
}

/* Takes the same time wherever they differ. */
static inline bool proof_equal(const uint8_t a[PROOF_BYTES], const uint8_t b[PROOF_BYTES])
{
    uint8_t differs = 0;

    for (uint32_t i = 0; i < PROOF_BYTES; i++)
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    return !differs;
}

#endif
