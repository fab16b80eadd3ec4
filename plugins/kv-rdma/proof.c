/* Who a peer is: HMAC-SHA256 (RFC 2104) over what was said in a handshake. */
#include "kv_rdma.h"

#include <errno.h>
#include <sha2.h>
#include <stddef.h>
#include <sys/random.h>

_Static_assert(TNRDMA_HASH_BYTES == SHA256_DIGEST_LENGTH, "a hash");

tn_status tnrdma_random(void *out, uint64_t bytes, tn_err *err)
{
    ssize_t got;

    do
        got = getrandom(out, bytes, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes ? TN_OK : tnrdma_fail_system(err, "random numbers");
}

static void hash_begin(SHA2_CTX *c, const uint8_t *key, size_t bytes, uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_LENGTH];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)((i < bytes ? key[i] : 0) ^ pad);
    SHA256Init(c);
    SHA256Update(c, block, sizeof block);
}

void tnrdma_proof(const tn_link *l, const tnrdma_packet *p, uint8_t out[TNRDMA_HASH_BYTES])
{
    SHA2_CTX c;

    hash_begin(&c, l->t->key, sizeof l->t->key, 0x36);
    SHA256Update(&c, l->nonce[0], sizeof l->nonce);
    SHA256Update(&c, (const uint8_t *)l->end, sizeof l->end);
    SHA256Update(&c, (const uint8_t *)p, offsetof(tnrdma_packet, proof));
    SHA256Final(out, &c);
    hash_begin(&c, l->t->key, sizeof l->t->key, 0x5c);
    SHA256Update(&c, out, TNRDMA_HASH_BYTES);
    SHA256Final(out, &c);
}

bool tnrdma_equal(const uint8_t a[TNRDMA_HASH_BYTES], const uint8_t b[TNRDMA_HASH_BYTES])
{
    uint8_t differs = 0;

    for (uint32_t i = 0; i < TNRDMA_HASH_BYTES; i++)
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    return !differs;
}
