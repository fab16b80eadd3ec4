/* Rows of a part, as gradients and as answers to pulls: TNI_KV_ROWS. */
#ifndef TN_KV_ROWS_H
#define TN_KV_ROWS_H

#include "kv/kv.h"
#include "kv/protocol.h"

/* `what` of a push or a pull whose payload is: bytes of a row 4, count of rows 4, in a push the rows one
 * behind the other, and their numbers within the part, 4 bytes each, rising. The answer to a pull is the rows
 * alone. */
#define TNI_KV_ROWS 6u

typedef struct tni_kv_row_set {
    uint64_t count, row_bytes;
    const uint8_t *values, *ids; /* values NULL: of a pull */
} tni_kv_row_set;

/* TN_E_FORMAT: no such payload for a part of `part_bytes`, with elements of `element` bytes. */
tn_status tni_kv_rows_read(const uint8_t *payload, uint64_t bytes, bool values, uint64_t part_bytes,
                           uint64_t element, tni_kv_row_set *out);
uint64_t tni_kv_rows_at(const tni_kv_row_set *r, uint64_t i); /* where row `i` lies in the part */
void tni_kv_rows_take(const tni_kv_row_set *r, const void *part, void *out);

/* Where the payload of each part begins, and the rows before it; one more than there are parts. */
typedef struct tni_kv_cut {
    uint64_t at, row;
} tni_kv_cut;

/* The payloads of all parts, behind their cuts, in one block. `ids` rise; parts are whole rows.
 * `values` NULL: of a pull. */
tn_status tni_kv_rows_write(const tni_kv_plan *plan, uint64_t row_bytes, const int64_t *ids, uint64_t count,
                            const void *values, tni_kv_cut **out);
static inline const void *tni_kv_rows_payload(const tni_kv_cut *cuts, uint32_t parts)
{
    return cuts + parts + 1;
}

/* On a server: the rows that the gradients of a round have named. Begins as zeros. */
typedef struct tni_kv_named {
    uint8_t *bits;
    uint64_t rows, row_bytes;
    bool all; /* there was a dense gradient, too */
} tni_kv_named;

/* As `add` of tni_kv_update: sum = base + rows, or, if it `begins`, the rows; elsewhere zeros. */
tn_status tni_kv_rows_add(tni_kv_named *n, const tni_kv_header *h, bool begins, const void *base, void *sum,
                          const void *payload, uint64_t bytes);
/* A step of the optimizer, in which only named rows move if it has such steps. Waits. */
tn_status tni_kv_rows_step(const tni_kv_named *n, const tni_kv_optimizer *o, tni_kv_param_slot *slot,
                           tni_array *value, tni_array *sum);
/* Makes a row_sparse array of the rows `ids`, rising, of `dense`, which is on the host. `rows` NULL: queues
 * the copy of these rows. Else nothing is copied: `*rows` is its dense array of rows, retained, to fill. */
tn_status tni_kv_rows_of(tni_array *dense, const int64_t *ids, int64_t count, tni_array **rows,
                         tni_array **out);

#endif
