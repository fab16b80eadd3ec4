/* What the files of a store share: store.c keys, values and rows, push.c pushes. */
#ifndef TN_KV_STORE_H
#define TN_KV_STORE_H

#include "kv/kv.h"

/* What a call may hold of a key. */
#define TNI_KV_SAME_TYPE 1u
#define TNI_KV_ONE 2u
#define TNI_KV_MAY_BE_SPARSE 4u
/* Finds the key of each item, which must fit. `keys`: room for `count`. */
tn_status tni_kv_keys_take(tni_kv *kv, uint32_t count, const tn_kv_item *items, bool outs, uint32_t flags,
                           tni_kv_key **keys);

void tni_kv_key_destroy(tni_kv_key *key); /* NULL is fine */

/* What is queued between the two is never recorded. */
typedef struct tni_kv_quiet {
    bool recording;
} tni_kv_quiet;
tni_kv_quiet tni_kv_quiet_begin(void);
tn_status tni_kv_quiet_end(tni_kv_quiet q, tn_status st);

/* value = a, whatever its storage type; a failure of the value is forgotten, unless it is `held`. */
tn_status tni_kv_value_write(tni_kv *kv, tni_kv_key *key, tni_array *a, int32_t priority, bool held);
uint32_t tni_kv_states_count(const tni_kv_key *key); /* that are made */
/* What can be wrong with a pull. */
tn_status tni_kv_pull_check(tni_kv *kv, uint32_t count, const tn_kv_item *items);
tn_status tni_kv_outs_write(const tni_kv_key *key, const tn_kv_item *item); /* outs = value */
/* push.c: with `pull` of a dist type into the value, too. */
tn_status tni_kv_push_all(tni_kv *kv, uint32_t count, const tn_kv_item *items, bool pull);

#endif
