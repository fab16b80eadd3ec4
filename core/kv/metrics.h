/*
 * What a node counts and measures, and its report: numbers by the rows of a table, times as histograms, and
 * what it waits for.
 *
 * A histogram has 64 buckets for each power of two: a value read back is within 1/128 of what was added, so
 * two digits of it are significant. Values are microseconds up to 2^36; larger ones count as that. The
 * buckets are allocated with the first value; all histograms have the same ones. Of staleness values are
 * updates.
 */
#ifndef TN_KV_METRICS_H
#define TN_KV_METRICS_H

#include "kv/wire.h"

#define TNI_KV_HISTOGRAM_BUCKETS 2048u

typedef struct tni_kv_histogram {
    uint64_t count, sum, max;
    uint32_t *buckets; /* NULL: no value yet, or no memory */
} tni_kv_histogram;
void tni_kv_histogram_add(tni_kv_histogram *h, uint64_t value);
void tni_kv_histogram_fini(tni_kv_histogram *h);
/* The least value that `per_mille` of all do not exceed, by the middle of its bucket; 0: there are none. */
uint64_t tni_kv_histogram_at(const tni_kv_histogram *h, uint32_t per_mille);

/* id, name, counter (only grows) or gauge, help */
#define TNI_KV_NUMBERS_LIST(X)                                                                               \
    X(SENT, "messages_sent", "counter", "messages that were sent; a batch is one")                           \
    X(RECEIVED, "messages_received", "counter", "messages that arrived")                                     \
    X(SENT_BYTES, "sent_bytes", "counter", "bytes of headers and payloads that were sent")                   \
    X(RECEIVED_BYTES, "received_bytes", "counter", "bytes of headers and payloads that arrived")             \
    X(BATCHES, "batches_sent", "counter", "batches of small messages that were sent")                        \
    X(REPEATED, "repeats_sent", "counter", "requests that were sent again")                                  \
    X(DUPLICATES, "duplicates_refused", "counter", "pushes that had been applied or taken before")           \
    X(DAMAGED, "damaged_refused", "counter", "messages with a wrong checksum, length or type")               \
    X(REFUSED, "messages_refused", "counter", "messages that had no effect, damaged ones too")               \
    X(STALLS, "credit_stalls", "counter", "times that a part had to wait for credit of its server")          \
    X(LINKS_LOST, "links_lost", "counter", "connections that ended")                                         \
    X(VIEWS, "views", "counter", "views of the job that were taken in")                                      \
    X(ROUNDS, "rounds_applied", "counter", "rounds of parts that were applied")                              \
    X(PARTS, "parts", "gauge", "parts of values that are held")                                              \
    X(VALUE_BYTES, "value_bytes", "gauge", "bytes of values and sums")                                       \
    X(LANDING_BYTES, "landing_bytes", "gauge", "bytes of gradients that wait for lower ranks")               \
    X(ROUND_MIN, "round_min", "gauge", "complete rounds of the part that has the fewest")                    \
    X(ROUND_MAX, "round_max", "gauge", "complete rounds of the part that has the most")                      \
    X(REQUESTS, "requests", "gauge", "requests that are not complete")

#define TNI_KV_NUMBER_ID(id, name, kind, help) TNI_KV_N_##id,
enum { TNI_KV_NUMBERS_LIST(TNI_KV_NUMBER_ID) TNI_KV_NUMBER_COUNT };

#define TNI_KV_TIMES_LIST(X)                                                                                 \
    X(PUSH, "push", "from a push to its acknowledgement")                                                    \
    X(PULL, "pull", "from a pull to its value")                                                              \
    X(PUSHPULL, "pushpull", "from a push to the value behind it")                                            \
    X(BARRIER, "barrier", "in barriers")                                                                     \
    X(ROUND, "round", "from the first gradient of a part's round to the last one")                           \
    X(APPLY, "apply", "in the update of a part")                                                             \
    X(STALENESS, "staleness",                                                                                \
      "updates of a part between the value that a worker had and its gradient; dist_async")

#define TNI_KV_TIME_ID(id, name, help) TNI_KV_T_##id,
enum { TNI_KV_TIMES_LIST(TNI_KV_TIME_ID) TNI_KV_TIME_COUNT };

typedef struct tni_kv_metrics {
    uint64_t numbers[TNI_KV_NUMBER_COUNT];
    tni_kv_histogram times[TNI_KV_TIME_COUNT]; /* us */
} tni_kv_metrics;

/* ---- reports ---- */

#define TNI_KV_WAITS_MAX 64u     /* that a report names */
#define TNI_KV_REPORT_MAX 16384u /* bytes of a member's report */

typedef struct tni_kv_wait { /* a part's share of a request, or a round on its server */
    uint8_t kind, state;     /* tni_kv_kind; TNI_KV_WAIT_… */
    uint16_t at, who, part;  /* at: the node that answers; who: the first one that is missing */
    uint32_t key, round, missing, age_ms, heard_ms; /* missing: 0: nobody is known to be; heard: of `at` */
} tni_kv_wait;
enum {
    TNI_KV_WAIT_BEHIND = 1, /* earlier requests */
    TNI_KV_WAIT_CREDIT,
    TNI_KV_WAIT_ANSWER,
    TNI_KV_WAIT_HELD, /* `who` is missing */
    TNI_KV_WAIT_END
};

typedef struct tni_kv_times { /* of a histogram */
    uint64_t count, sum, max, p50, p90, p99;
} tni_kv_times;

#define TNI_KV_ROWS_MAX 16u
/* What takes longest, of servers: workers that were the last ones in a round, and how long the others waited
 * for them; of workers: keys, and their pushes and pulls. */
typedef struct tni_kv_row {
    uint32_t id, count;
    uint64_t sum_us, max_us;
} tni_kv_row;
void tni_kv_row_add(tni_kv_row *r, uint64_t ns);

typedef struct tni_kv_report {
    uint64_t numbers[TNI_KV_NUMBER_COUNT];
    tni_kv_times times[TNI_KV_TIME_COUNT];
    uint32_t waiting, wait_count; /* waiting: all of them */
    tni_kv_wait waits[TNI_KV_WAITS_MAX];
    uint32_t row_count;
    tni_kv_row rows[TNI_KV_ROWS_MAX];
} tni_kv_report;

void tni_kv_report_numbers(const tni_kv_metrics *m, tni_kv_report *out);
void tni_kv_report_wait(tni_kv_report *r, const tni_kv_wait *w);
/* Keeps those of the largest sums. `row` without a count is none. */
void tni_kv_report_row(tni_kv_report *r, uint32_t id, const tni_kv_row *row);
void tni_kv_report_write(const tni_kv_report *r, tni_str *out);
/* TN_E_FORMAT: it is none. What is behind it stays in `in`. */
tn_status tni_kv_report_read(tni_kv_reader *in, tni_kv_report *out);
/* An object: type and help of each number and time. */
void tni_kv_report_about(tni_str *out);
/* Members of a JSON object: "numbers", "times_us", "staleness", "waiting", "waits", and `rows` NULL or the
 * name of the rows. */
void tni_kv_report_json(const tni_kv_report *r, const char *rows, tni_str *out);

#endif
