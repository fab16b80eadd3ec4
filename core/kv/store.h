/* What the files of a store share: store.c keys, values and rows, push.c pushes. */
#ifndef TN_KV_STORE_H
#define TN_KV_STORE_H

#include "kv/kv.h"

/* What a call may hold of a key. */
#define TNI_KV_SAME_TYPE 1u
#define TNI_KV_ONE 2u
#define TNI_KV_MAY_BE_SPARSE 4u
/* Finds the key of each item, which must fit. `keys`: room for `count`, or NULL. */
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
/* The array is all of its memory, in one piece, on a host, and of the value's type. */
bool tni_kv_out_whole(const tni_kv_key *key, const tni_array *out);
tn_status tni_kv_outs_write(tni_kv_key *key, const tn_kv_item *item); /* outs = value */

/* ---- destination.c ---- */

#define TNI_KV_DESTINATION_MIN 65536u /* bytes of a value; shorter ones are copied */

/* For the next value of a key: one reference of the trip's, one of the key's. NULL: it is copied. */
tni_kv_destination *tni_kv_destination_create(tni_array *value);
void tni_kv_destination_release(tni_kv_destination *d); /* NULL is fine */
void *tni_kv_destination_take(void *arg);               /* once: where the value lands; NULL: in `value` */
void tni_kv_destination_close(tni_kv_destination *d);   /* [takes] the trip is over; NULL is fine */
/* Queues that `out` gets the value, behind the trip. */
tn_status tni_kv_destination_push(tni_kv_destination *d, tni_array *out, int32_t priority);
/* push.c: with `pull` of a dist type into the value, too. */
tn_status tni_kv_push_failed(tni_kv *kv, tn_status st); /* that it will not come */
tn_status tni_kv_push_all(tni_kv *kv, uint32_t count, const tn_kv_item *items, bool pull);

#endif
