/* Who a peer is: a proof over what was said in a handshake. */
#include "kv_rdma.h"

void tnrdma_proof(const tn_link *l, const tnrdma_packet *p, uint8_t out[PROOF_BYTES])
{
    SHA2_CTX c;

    proof_begin(&c, l->t->key);
    SHA256Update(&c, l->nonce[0], sizeof l->nonce);
    SHA256Update(&c, (const uint8_t *)l->end, sizeof l->end);
    SHA256Update(&c, (const uint8_t *)p, offsetof(tnrdma_packet, proof));
    proof_end(&c, l->t->key, out);
}
