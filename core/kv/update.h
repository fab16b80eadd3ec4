/*
 * What a server does with what workers send: sums, the optimizer, commands. A worker's side is dist.c.
 *
 * A command is words, each with its NUL:
 *   keys RANK {NUMBER NAME TYPE}…      what a worker knows under these numbers; the server compares
 *   optimizer NAME {PARAM VALUE}…      NAME "": none
 *   set {PARAM VALUE NUMBER}…          NUMBER "": of all keys
 *   compress {PARAM VALUE}…            as tn_kv_set_compression
 *   agreed                             fails as the last `optimizer` or `compress` did
 *   program HEAD BODY                  for the program's function
 */
#ifndef TN_KV_UPDATE_H
#define TN_KV_UPDATE_H

#include "kv/kv.h"
#include "kv/protocol.h"
#include "kv/rows.h"

/* Codes of payloads: `what` of a push. */
#define TNI_KV_PLAIN 0u /* the elements */
#define TNI_KV_2BIT 1u
#define TNI_KV_1BIT 2u
#define TNI_KV_ASSIGN 3u  /* of worker 0: the value itself */
#define TNI_KV_ABSTAIN 4u /* a byte for each 2 GiB: this worker takes part in the round and adds nothing */
/* 6: TNI_KV_ROWS of rows.h */
/* Of pulls: the value behind an even, or an odd number of steps. It is the present one or, for a worker in
 * another's place, the one before the last step: parts are at most one step apart. */
#define TNI_KV_EVEN 8u
#define TNI_KV_ODD 9u
#define TNI_KV_GATHER 5u /* elements whose sum is the value, also where there is an optimizer */
#define TNI_KV_STATE 16u /* and above, of worker 0, and of pulls: a piece of what the optimizer keeps */
#define TNI_KV_ABSTAIN_LOG2 31u
#define TNI_KV_STATES_END 256u
static inline bool tni_kv_is_gradient(uint8_t what)
{
    return what < TNI_KV_ASSIGN || what == TNI_KV_ROWS;
}

static inline bool tni_kv_of_parity(uint8_t what) /* EVEN or ODD */
{
    return (what | 1) == TNI_KV_ODD;
}

typedef struct tni_kv_updates tni_kv_updates;
/* `fn` may be NULL. */
tn_status tni_kv_updates_create(tni_context *c, bool async, tn_kv_command_fn fn, void *arg,
                                tni_kv_updates **out);
void tni_kv_updates_destroy(tni_kv_updates *u); /* NULL is fine */
tni_kv_update tni_kv_updates_table(tni_kv_updates *u);

#endif
