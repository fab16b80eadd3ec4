/*
 * Messages between nodes: 64 bytes of header, little endian, and a payload.
 *
 *  0 magic 2 · 2 version 1 · 3 type 1 · 4 flags 1 · 5 dtype 1 · 6 what 1 · 7 priority 1 · 8 job 8 ·
 * 16 from 2 · 18 to 2 · 20 view 4 · 24 incarnation 4 · 28 round 4 · 32 sequence 8 · 40 key 8 · 48 bytes 8 ·
 * 56 checksum of the payload 4 (flag CHECKED): CRC-32, of more than 1024 bytes the low half of XXH3 ·
 * 60 CRC-32 of bytes 0 to 59
 *
 * HELLO is of version 1 for ever, and says in `what` which version its process speaks (0: 1); so is a refusal
 * of a process that speaks another one. Versions: 1: CRC-32 of every payload · 2.
 *
 * A batch is a payload of entries, each a head of 32 bytes (type 1, flags 1, dtype 1, what 1, round 4,
 * sequence 8, key 8, bytes 4, zero 4), its bytes, and zeros up to a multiple of 8.
 *
 * Nothing that arrives is trusted: lengths are compared with what is there before anything is read.
 */
#ifndef TN_KV_WIRE_H
#define TN_KV_WIRE_H

#include "base/base.h"
#include "kv/point.h"

#define TNI_KV_HEADER_BYTES 64u
#define TNI_KV_ENTRY_BYTES 32u
#define TNI_KV_WIRE_VERSION 2u
#define TNI_KV_CRC_MAX 1024u                   /* bytes of a payload whose checksum is a CRC */
#define TNI_KV_MESSAGE_MAX ((uint64_t)1 << 40) /* bytes of a payload: a part of the longest array */
#define TNI_KV_BATCH_MAX 65536u                /* bytes of a batch */
#define TNI_KV_SMALL_MAX 1024u                 /* bytes of a message that waits for others */
#define TNI_KV_COMMAND_MAX 131072u             /* bytes of a command */

#define TNI_KV_UNKNOWN 0xffffu /* a node that has no number yet */

typedef enum tni_kv_type {
    TNI_KV_HELLO = 1, /* node → scheduler: role (and HELLO_ASYNC), rank, birth, snapshots, address */
    TNI_KV_WELCOME,   /* scheduler → node: number and incarnation of `sequence` (its birth), and a view */
    TNI_KV_VIEW,      /* scheduler → node */
    TNI_KV_BEAT,      /* node → scheduler: snapshots, the third left out; `sequence` counts beats (0: an
                       * older build's); of a worker `what`: its log is whole. And back: `key` is a step that
                       * all servers hold */
    TNI_KV_INIT,      /* worker → server: first value of a part; a second one changes nothing */
    TNI_KV_PUSH,      /* worker → server: gradient of (part, round) */
    TNI_KV_PULL,      /* worker → server: value of `round` or later; 0 with ANY: what there is */
    TNI_KV_ACK,       /* answer; `what` is a tni_kv_state, `round` the worker's count of this part */
    TNI_KV_VALUE,     /* answer: value of the part */
    TNI_KV_COMMAND,   /* worker → server: text for the update functions */
    TNI_KV_SNAPSHOT,  /* worker → server: write state of step `key` */
    TNI_KV_BARRIER,   /* worker → scheduler: generation `round` */
    TNI_KV_END,       /* worker → scheduler: no data behind step `round` */
    TNI_KV_BYE,       /* worker → scheduler: leaves; server → scheduler: stopped */
    TNI_KV_REFUSED,   /* answer: `what` is a tni_kv_refusal, the payload its text */
    TNI_KV_BATCH,     /* entries */
    TNI_KV_ASK,       /* of no member → scheduler → node `key`: how is it? Any job, if `job` is 0 */
    TNI_KV_REPORT,    /* node → scheduler → who asked: report of node `key`; metrics.h */
    TNI_KV_TYPE_END
} tni_kv_type;

#define TNI_KV_HELLO_ASYNC 128u

#define TNI_KV_RETRY 1u   /* sent before */
#define TNI_KV_PROBE 2u   /* PUSH without payload: has it arrived? */
#define TNI_KV_WANT 4u    /* PUSH: answer with the value */
#define TNI_KV_CHECKED 8u /* the payload's checksum is there */
#define TNI_KV_BROKEN 16u /* PUSH without payload: this round of the key never comes */
#define TNI_KV_ANY 32u    /* PULL: of any round */
#define TNI_KV_LAST 64u   /* PUSH without payload: no round of the key from this one on comes */
/* Of answers to INIT and PULL, async: rounds of this worker may be lost here. Workers that do not know the
 * flag ignore it: they go on from the least round of all parts. Of INIT, async: it is given again. */
#define TNI_KV_LOST 128u

typedef enum tni_kv_state {
    TNI_KV_APPLIED = 1, /* done; of a push: it is part of the value */
    TNI_KV_HELD,        /* has arrived; the payload names who is missing */
    TNI_KV_ABSENT,      /* not here: send it (again) */
    TNI_KV_BUSY,        /* no room: send it later */
    TNI_KV_VOID,        /* the round was broken by the worker that the payload names */
    TNI_KV_FAILED       /* the update functions failed; the payload says how */
} tni_kv_state;

typedef enum tni_kv_refusal { TNI_KV_FENCED = 1, TNI_KV_FULL, TNI_KV_MALFORMED } tni_kv_refusal;

typedef struct tni_kv_header {
    uint8_t type, flags, dtype, what, priority;
    bool summed; /* of what is sent: payload_sum is that of the payload already */
    bool alone;  /* of what is sent: no part of a batch, so it does not overtake payloads */
    uint8_t version;
    uint16_t from, to;
    uint32_t view, incarnation, round, payload_sum;
    uint64_t job, sequence, key, bytes;
} tni_kv_header;

/* Writes magic, version (0: this one's) and checksum too; `payload` is read only with CHECKED, unless it is
 * `summed`. */
void tni_kv_encode(tni_kv_header *h, const void *payload, uint8_t out[TNI_KV_HEADER_BYTES]);
/* TN_E_FORMAT: no such message, with the field that is wrong. `payload`: `bytes` that arrived behind it. Of
 * another version only HELLO, WELCOME and REFUSED are taken: its word for a process that cannot join. */
tn_status tni_kv_decode(const uint8_t in[TNI_KV_HEADER_BYTES], const void *payload, uint64_t bytes,
                        tni_kv_header *out);

uint32_t tni_kv_payload_sum(const void *payload, uint64_t bytes);

uint64_t tni_kv_entry_bytes(uint64_t payload); /* in a batch, with its head */
void tni_kv_entry_put(const tni_kv_header *h, const void *payload, uint8_t *out);
/* Entry at `*at` of a batch; what an entry does not say is taken from `batch`. TN_E_FORMAT: it is none. */
tn_status tni_kv_entry_get(const tni_kv_header *batch, const uint8_t *payload, uint64_t *at,
                           tni_kv_header *out, const uint8_t **out_payload);

/* ---- bytes.c: passes over payloads ---- */

void tni_kv_bytes_copy(void *to, const void *from, uint64_t bytes); /* nothing, if they are the same */
/* Past the caches, for bytes that nobody reads before they would have left them. */
void tni_kv_bytes_store(void *to, const void *from, uint64_t bytes);
/* sum = base + payload of one type, every element rounded once; `base` may be `sum`. */
void tni_kv_bytes_add(uint8_t dtype, const void *base, void *sum, const void *payload, uint64_t bytes);

/* Numbers of little-endian texts: journals, snapshots and views are made of them as well. */
void tni_kv_put(uint8_t *at, uint64_t value, uint32_t bytes);
uint64_t tni_kv_get(const uint8_t *at, uint32_t bytes);
/* The same of a struct's member, which has 1, 2, 4 or 8 bytes. */
uint64_t tni_kv_member_get(const void *member, uint32_t bytes);
void tni_kv_member_set(void *member, uint64_t value, uint32_t bytes);
/* A text being written, a text being read: `left` never runs below 0; `bad` sticks. */
typedef struct tni_kv_reader {
    const uint8_t *at;
    uint64_t left;
    bool bad;
} tni_kv_reader;
uint64_t tni_kv_read(tni_kv_reader *r, uint32_t bytes);
const uint8_t *tni_kv_read_bytes(tni_kv_reader *r, uint64_t bytes); /* NULL, bad: there are not as many */
void tni_kv_write(tni_str *s, uint64_t value, uint32_t bytes);

/* ---- errors on purpose, of the test build: those of ps-lite and BytePS that kv.md lists ---- */

#define TNI_KV_BUGS(X)                                                                                       \
    X(COUNT_MESSAGES)                                                                                        \
    X(ACK_EARLY)                                                                                             \
    X(DEDUP_LOST)                                                                                            \
    X(DEDUP_GROWS)                                                                                           \
    X(BARRIER_COUNT)                                                                                         \
    X(NO_DEADLINE)                                                                                           \
    X(ID_WRAP)                                                                                               \
    X(LIVE_BUFFER)                                                                                           \
    X(GIVE_UP)                                                                                               \
    X(NO_BEAT)                                                                                               \
    X(REJOIN_IGNORED)                                                                                        \
    X(NO_JOB)                                                                                                \
    X(NO_FENCE)                                                                                              \
    X(EXIT_STOPS)                                                                                            \
    X(PULL_LATEST)                                                                                           \
    X(NO_LEAVE)                                                                                              \
    X(CONTROL_ONCE)                                                                                          \
    X(NO_CHECKSUM)                                                                                           \
    X(HALF_ROUND)                                                                                            \
    X(OVERWRITE)                                                                                             \
    X(REPLAY_LATE)                                                                                           \
    X(REPLAY_TRIM)
#define TNI_KV_BUG_NAME(name) TNI_KV_BUG_##name,
enum { TNI_KV_BUG_NONE, TNI_KV_BUGS(TNI_KV_BUG_NAME) TNI_KV_BUG_END };
#ifdef TN_TEST_SWITCHES
extern int tni_kv_bug; /* the one that is switched on */
#define TNI_KV_BUG(name) TN_UNLIKELY(tni_kv_bug == TNI_KV_BUG_##name)
#else
#define TNI_KV_BUG(name) false
#endif

#endif
