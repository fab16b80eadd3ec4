/*
 * Which server holds which part of an array: computed alike by all, from sizes alone. Nothing is stored.
 */
#ifndef TN_KV_PLAN_H
#define TN_KV_PLAN_H

#include "base/base.h"

#define TNI_KV_PARTS_MAX 65535u /* of an array: 16 bits of the key on the wire */
#define TNI_KV_NUMBERS_MAX (1u << 24)
/* Bytes to which parts are cut: 32 floats, a word of a 1-bit code. Elements that do not divide it (rows) stay
 * whole all the same. */
#define TNI_KV_ALIGN 128u

typedef struct tni_kv_plan_options {
    uint32_t servers;
    uint64_t bound;      /* elements from which an array is cut over all servers; 0: by part_bytes */
    uint64_t part_bytes; /* longest part, unless there were more than TNI_KV_PARTS_MAX */
} tni_kv_plan_options;

typedef struct tni_kv_plan {
    uint64_t bytes, piece; /* of the array, of each part but the last */
    uint32_t parts, first, servers, key;
} tni_kv_plan;

typedef struct tni_kv_part {
    uint64_t key; /* on the wire */
    uint64_t offset, bytes;
    uint32_t server;
} tni_kv_part;

/* TN_E_ARG: no server, or more bytes than TN_SIZE_MAX. An empty array has one part of 0 bytes. */
tn_status tni_kv_plan_make(const tni_kv_plan_options *o, uint32_t key, uint64_t elements,
                           uint64_t element_bytes, tni_kv_plan *out);
tni_kv_part tni_kv_plan_part(const tni_kv_plan *p, uint32_t index);

#endif
