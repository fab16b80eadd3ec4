/* Of the server alone: its parts, and what they do (part.c), for its messages (server.c) and snapshots. */
#ifndef TN_KV_SERVER_H
#define TN_KV_SERVER_H

#include "kv/protocol.h"

#define TNI_KV_SERVER_PARTS_MAX (1u << 22)
#define TNI_KV_UNHEARD UINT32_MAX /* nothing has come from a worker since the server came back */

typedef struct tni_kv_landing { /* a gradient that waits */
    uint64_t bytes;
    void *kept; /* the host's memory that it lies in; NULL: it lies behind this */
    const uint8_t *payload;
    uint8_t what;
    _Alignas(16) uint8_t own[];
} tni_kv_landing;

typedef struct tni_kv_slot { /* of a worker, for one part */
    tni_kv_landing *landing; /* waits for those of lower ranks */
    uint64_t sequence;       /* of the request that waits; 0: none */
    uint32_t round, applied; /* round that it waits for; async: last applied */
    uint32_t last;           /* first round that never comes; 0: none so far */
    uint32_t seen;           /* async: updates that the value had that it got last, and 1; 0: it got none */
    uint32_t lost;           /* async: rounds that count as had beside `applied`; or UNHEARD */
    bool want, here;         /* wants the value; its gradient is here */
    bool back; /* the server came back, and this worker has not said since then which round it is in */
    uint8_t priority;
} tni_kv_slot;

/* Memory of a value or a sum. A value is sent from where it lies; while it is held, what would write it takes
 * another block. */
typedef struct tni_kv_block {
    tni_kv_hold hold; /* first */
    _Alignas(16) uint8_t bytes[];
} tni_kv_block;

/* block.c, by the address of the bytes. NULL: no memory. */
void *tni_kv_block_make(uint64_t bytes);
tni_kv_block *tni_kv_block_of(void *bytes);
void tni_kv_block_drop(void *bytes); /* messages that hold it give it back later; NULL is fine */
/* May be written from here on; its bytes stay, if `keeps`. */
tn_status tni_kv_block_own(void **bytes, uint64_t count, bool keeps);

typedef struct tni_kv_store_part {
    struct tni_kv_store_part *next;          /* in the table's chain */
    uint64_t key, bytes, voids;              /* voids: bit i: round version - i was void */
    uint32_t version, here, folded, waiting; /* complete rounds; gradients here; ranks below are in `sum` */
    uint32_t added;                          /* gradients in `sum` */
    uint32_t value_sum, sum_of;              /* the value's checksum when `version` was sum_of - 1; 0: none */
    uint64_t begun_ns;                       /* when the first gradient of the round under way came */
    uint16_t breaker, latest;                /* latest: whose gradient of the round came last */
    uint8_t dtype;
    void *value, *sum;    /* of blocks */
    tni_kv_landing *base; /* the sum so far is this gradient; NULL: `sum` is */
    tni_kv_header head;   /* of the round's first push: what `apply` sees */
    tni_kv_slot slots[];
} tni_kv_store_part;

typedef struct tni_kv_late { /* of rounds of parts that had several gradients */
    uint64_t rounds, ns;     /* in which it was the last one; how long the others waited for it */
    tni_kv_row all;          /* since the beginning */
} tni_kv_late;

struct tni_kv_server {
    tni_kv_node node;
    tni_kv_start start;
    tni_kv_update update;
    tni_kv_snapshots snapshots;
    tni_kv_store_part **table; /* by hash of the key */
    uint64_t part_count, table_size;
    uint64_t bytes, landing_bytes;
    uint64_t token, begun_ns, hello_ns, beat_ns, bye_ns, beats;
    uint64_t steps[2], saving;   /* snapshots there are, newest first; the one being written */
    uint64_t common, left_out;   /* step that all hold; beat from which steps[0] is left out, 0: it is not */
    tni_kv_header save_asked;    /* whom to tell */
    uint64_t *commands;          /* last sequence of each worker */
    tn_err **command_errors;     /* of that command; NULL: it was done */
    uint32_t loaded_epoch, came; /* came: the view in which it has its place */
    tni_kv_late *late;           /* of workers, since the last table */
    uint64_t late_rounds;        /* of parts */
    tni_kv_hold *sending;        /* of the value that is being sent */
    bool finished, lasts;        /* lasts: some worker has said LAST */
    bool loading;                /* an epoch has begun whose snapshot cannot be read yet */
    bool back, waits;            /* async: it came back alone; worker 0 has not given what it lacks yet */
    bool all_needed;             /* all_needed: every worker, in every round, as far as the view says */
    tn_status status;
    tn_err error;
};

tni_kv_store_part *tni_kv_part_find(const tni_kv_server *s, uint64_t key);
tn_status tni_kv_part_create(tni_kv_server *s, uint64_t key, uint8_t dtype, uint64_t bytes,
                             tni_kv_store_part **out);
void tni_kv_parts_clear(tni_kv_server *s);
tn_status tni_kv_part_push(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                           const uint8_t *payload);
/* Which round who asks is in, and whether rounds of it may be lost: into the answer. */
void tni_kv_part_says(const tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_header *h,
                      tni_kv_header *answer);
tn_status tni_kv_part_pull(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                           const uint8_t *payload);
/* late.c: who was last in a round that is complete; how old the value was that this worker's gradient came
 * from, before it is applied. */
void tni_kv_late_count(tni_kv_server *s, const tni_kv_store_part *p);
void tni_kv_stale_count(tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_slot *slot);
void tni_kv_part_unheard(const tni_kv_server *s, tni_kv_store_part *p); /* async: it lost rounds of all */
/* Async: sets `lost` of a worker from which something came; `applied` is up to date. True: it is the first
 * since the server came back, and pulls of others may be due. */
bool tni_kv_lost_credit(tni_kv_server *s, tni_kv_store_part *p, uint32_t rank);
/* The same, and answers those pulls. With rounds nothing is done. */
void tni_kv_part_heard(tni_kv_server *s, tni_kv_store_part *p, uint32_t rank);
void tni_kv_part_view(tni_kv_server *s, tni_kv_store_part *p);  /* the view changed: who is needed */
void tni_kv_parts_report(tni_kv_server *s, tni_kv_report *out); /* rounds, bytes, and what is waited for */
void tni_kv_server_stop(tni_kv_server *s, tn_status st);

tn_status tni_kv_snapshot_write(const tni_kv_server *s, tni_str *out);
tn_status tni_kv_snapshot_read(tni_kv_server *s, const void *text, uint64_t bytes);

#endif
