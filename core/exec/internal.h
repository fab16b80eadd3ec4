/* What the files of room exec share; nobody else includes this. */
#ifndef TN_EXEC_INTERNAL_H
#define TN_EXEC_INTERNAL_H

#include "exec/exec.h"

typedef struct tni_draws { /* random numbers of one device */
    atomic_uint_fast64_t key, next;
} tni_draws;

#define TNI_SIG_BUCKETS 1024

struct tni_exec {
    tni_context *ctx;
    tni_device *default_device;
    tni_draws *draws; /* by device ordinal, TN_DEVICES_MAX */
    tni_mutex lock;   /* guards the table of signatures */
    tni_signature *buckets[TNI_SIG_BUCKETS];
    tni_signature *lru_first, *lru_last; /* most recent first */
    uint64_t signature_count, signature_max;
    uint64_t inline_ns;
    uint32_t threads;
    uint16_t node_flags; /* of run.deterministic */
    atomic_uint_fast64_t hits, misses, short_way, programs, frames, tape_order, by_node;
    void *backward; /* room autograd's cache of programs */
};

/* One call's key, before there is a signature for it. */
typedef struct tni_call_key {
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_device *device;
    uint32_t flags;
    uint64_t generation;
    tni_prepared *forward; /* NULL: not known, or no backward */
    uint32_t in_count;
    tni_array *const *in;
} tni_call_key;

uint64_t tni_exec_generation(const tni_context *c);
bool tni_signature_matches(const tni_signature *s, const tni_call_key *k);
/* From the table, or made; the caller owns one reference. */
tn_status tni_signature_find(tni_context *c, const tni_call_key *k, tni_signature **out);
void tni_signature_clear(tni_exec *x);

/* Bits of arrays that a gradient function reads, found by a dry run. */
tn_status tni_gradient_needs(const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                             uint32_t out_count, uint64_t *need_in, uint64_t *need_out);

#endif
