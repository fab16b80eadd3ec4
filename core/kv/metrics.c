/* Numbers, histograms, and reports of them: a report's lengths are those of this version's tables. */
#include "kv/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "kv/protocol.h"

#define SUB_BITS 6u
#define SUB (1u << SUB_BITS) /* buckets of a power of two */
#define VALUE_MAX (((uint64_t)1 << 36) - 1)
#define REPORT_VERSION 2u

/* ---- histograms ---- */

/* 0 to 63 are exact; above, the six bits behind the highest one tell the place within its power. */
static uint32_t bucket_of(uint64_t value)
{
    const uint64_t v = value < VALUE_MAX ? value : VALUE_MAX;
    const uint32_t shift = v < SUB ? 0 : 63u - SUB_BITS - (uint32_t)__builtin_clzll(v);

    return v < SUB ? (uint32_t)v : (shift + 1) * SUB + (uint32_t)(v >> shift) - SUB;
}

static uint64_t bucket_value(uint32_t bucket)
{
    const uint32_t shift = bucket / SUB ? bucket / SUB - 1 : 0;

    if (bucket < SUB)
        return bucket;
    return ((uint64_t)(SUB + bucket % SUB) << shift) + (((uint64_t)1 << shift) >> 1);
}

_Static_assert((36 - SUB_BITS + 1) * SUB <= TNI_KV_HISTOGRAM_BUCKETS, "buckets reach the largest value");

void tni_kv_histogram_add(tni_kv_histogram *h, uint64_t value)
{
    if (!h->buckets)
        h->buckets = tni_calloc(TNI_KV_HISTOGRAM_BUCKETS, sizeof *h->buckets);
    h->count++;
    h->sum += value;
    h->max = value > h->max ? value : h->max;
    if (h->buckets)
        h->buckets[bucket_of(value)]++;
}

void tni_kv_histogram_fini(tni_kv_histogram *h)
{
    tni_free(h->buckets);
    h->buckets = NULL;
}

uint64_t tni_kv_histogram_at(const tni_kv_histogram *h, uint32_t per_mille)
{
    const uint64_t need = (h->count * per_mille + 999) / 1000;
    uint64_t seen = 0;

    for (uint32_t i = 0; h->buckets && h->count && i < TNI_KV_HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= need && seen && seen < h->count)
            return bucket_value(i) < h->max ? bucket_value(i) : h->max;
    }
    return h->max;
}

/* ---- reports ---- */

typedef struct field {
    uint8_t member, bytes;
} field;

#define FIELD(name, bytes)                                                                                   \
    {                                                                                                        \
        offsetof(tni_kv_wait, name), bytes                                                                   \
    }
static const field wait_fields[] = {
    FIELD(kind, 1), FIELD(state, 1), FIELD(at, 2),      FIELD(who, 2),    FIELD(part, 2),
    FIELD(key, 4),  FIELD(round, 4), FIELD(missing, 4), FIELD(age_ms, 4), FIELD(heard_ms, 4),
};
#define WAIT_FIELDS (sizeof wait_fields / sizeof *wait_fields)
#define TIME_WORDS (sizeof(tni_kv_times) / 8)

void tni_kv_report_numbers(const tni_kv_metrics *m, tni_kv_report *out)
{
    *out = (tni_kv_report){0};
    memcpy(out->numbers, m->numbers, sizeof out->numbers);
    for (uint32_t i = 0; i < TNI_KV_TIME_COUNT; i++) {
        const tni_kv_histogram *h = &m->times[i];

        out->times[i] = (tni_kv_times){h->count,
                                       h->sum,
                                       h->max,
                                       tni_kv_histogram_at(h, 500),
                                       tni_kv_histogram_at(h, 900),
                                       tni_kv_histogram_at(h, 990)};
    }
}

void tni_kv_report_wait(tni_kv_report *r, const tni_kv_wait *w)
{
    r->waiting++;
    if (r->wait_count < TNI_KV_WAITS_MAX)
        r->waits[r->wait_count++] = *w;
}

void tni_kv_row_add(tni_kv_row *r, uint64_t ns)
{
    const uint64_t us = ns / 1000u;

    r->count++;
    r->sum_us += us;
    r->max_us = us > r->max_us ? us : r->max_us;
}

void tni_kv_report_row(tni_kv_report *r, uint32_t id, const tni_kv_row *row)
{
    tni_kv_row *at = r->rows;

    if (!row->count)
        return;
    for (uint32_t i = 1; i < r->row_count; i++)
        at = r->rows[i].sum_us < at->sum_us ? &r->rows[i] : at;
    if (r->row_count < TNI_KV_ROWS_MAX)
        at = &r->rows[r->row_count++];
    else if (at->sum_us >= row->sum_us)
        return;
    *at = *row;
    at->id = id;
}

void tni_kv_report_write(const tni_kv_report *r, tni_str *out)
{
    const uint64_t *times = (const uint64_t *)r->times;

    tni_kv_write(out, REPORT_VERSION, 1);
    tni_kv_write(out, TNI_KV_NUMBER_COUNT, 1);
    tni_kv_write(out, TNI_KV_TIME_COUNT, 1);
    tni_kv_write(out, r->wait_count, 1);
    tni_kv_write(out, r->row_count, 1);
    tni_kv_write(out, r->waiting, 4);
    for (uint32_t i = 0; i < TNI_KV_NUMBER_COUNT; i++)
        tni_kv_write(out, r->numbers[i], 8);
    for (uint32_t i = 0; i < TNI_KV_TIME_COUNT * TIME_WORDS; i++)
        tni_kv_write(out, times[i], 8);
    for (uint32_t i = 0; i < r->wait_count; i++)
        for (size_t f = 0; f < WAIT_FIELDS; f++)
            tni_kv_write(
                out,
                tni_kv_member_get((const char *)&r->waits[i] + wait_fields[f].member, wait_fields[f].bytes),
                wait_fields[f].bytes);
    for (uint32_t i = 0; i < r->row_count; i++) {
        tni_kv_write(out, r->rows[i].id, 4);
        tni_kv_write(out, r->rows[i].count, 4);
        tni_kv_write(out, r->rows[i].sum_us, 8);
        tni_kv_write(out, r->rows[i].max_us, 8);
    }
}

tn_status tni_kv_report_read(tni_kv_reader *in, tni_kv_report *out)
{
    const uint64_t version = tni_kv_read(in, 1), numbers = tni_kv_read(in, 1), times = tni_kv_read(in, 1);
    uint64_t *words = (uint64_t *)out->times;

    *out = (tni_kv_report){0};
    out->wait_count = (uint32_t)tni_kv_read(in, 1);
    out->row_count = (uint32_t)tni_kv_read(in, 1);
    out->waiting = (uint32_t)tni_kv_read(in, 4);
    if (in->bad || version != REPORT_VERSION || numbers != TNI_KV_NUMBER_COUNT ||
        times != TNI_KV_TIME_COUNT || out->row_count > TNI_KV_ROWS_MAX ||
        out->wait_count > TNI_KV_WAITS_MAX || out->waiting < out->wait_count)
        return tni_error(TN_E_FORMAT, "report of version %" PRIu64 " with %" PRIu64 " numbers", version,
                         numbers);
    for (uint32_t i = 0; i < TNI_KV_NUMBER_COUNT; i++)
        out->numbers[i] = tni_kv_read(in, 8);
    for (uint32_t i = 0; i < TNI_KV_TIME_COUNT * TIME_WORDS; i++)
        words[i] = tni_kv_read(in, 8);
    for (uint32_t i = 0; i < out->wait_count; i++) {
        tni_kv_wait *w = &out->waits[i];

        for (size_t f = 0; f < WAIT_FIELDS; f++)
            tni_kv_member_set((char *)w + wait_fields[f].member, tni_kv_read(in, wait_fields[f].bytes),
                              wait_fields[f].bytes);
        if (w->kind > TNI_KV_DO_BREAK || w->state == 0 || w->state >= TNI_KV_WAIT_END)
            return tni_error(TN_E_FORMAT, "report with a wait of kind %u, state %u", w->kind, w->state);
    }
    for (uint32_t i = 0; i < out->row_count; i++) {
        tni_kv_row *row = &out->rows[i];

        row->id = (uint32_t)tni_kv_read(in, 4);
        row->count = (uint32_t)tni_kv_read(in, 4);
        row->sum_us = tni_kv_read(in, 8);
        row->max_us = tni_kv_read(in, 8);
    }
    return in->bad ? tni_error(TN_E_FORMAT, "report ends too early") : TN_OK;
}

#define NUMBER_NAME(id, name, kind, help) name,
#define TIME_NAME(id, name, help) name,
static const char *const number_names[] = {TNI_KV_NUMBERS_LIST(NUMBER_NAME)};
static const char *const time_names[] = {TNI_KV_TIMES_LIST(TIME_NAME)};
static const char *const kind_names[] = {"init",     "push",    "pull", "pushpull", "command",
                                         "snapshot", "barrier", "end",  "bye",      "break"};
static const char *const state_names[] = {"", "behind", "credit", "answer", "held"};

#define NUMBER_ABOUT(id, name, kind, help) ",\"" name "\":[\"" kind "\",\"" help "\"]"
#define TIME_ABOUT(id, name, help) ",\"" name "\":[\"summary\",\"" help "\"]"

void tni_kv_report_about(tni_str *out)
{
    static const char text[] = TNI_KV_NUMBERS_LIST(NUMBER_ABOUT) TNI_KV_TIMES_LIST(TIME_ABOUT);

    (void)tni_str_addf(out, "{%s}", text + 1);
}

static void times_json(const tni_kv_times *t, const char *name, const char *before, tni_str *out)
{
    (void)tni_str_addf(out,
                       "%s\"%s\":{\"count\":%" PRIu64 ",\"sum\":%" PRIu64 ",\"max\":%" PRIu64
                       ",\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 "}",
                       before, name, t->count, t->sum, t->max, t->p50, t->p90, t->p99);
}

static void rows_json(const tni_kv_report *r, const char *name, tni_str *out)
{
    (void)tni_str_addf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < r->row_count; i++)
        (void)tni_str_addf(out, "%s{\"id\":%u,\"count\":%u,\"sum_us\":%" PRIu64 ",\"max_us\":%" PRIu64 "}",
                           i ? "," : "", r->rows[i].id, r->rows[i].count, r->rows[i].sum_us,
                           r->rows[i].max_us);
    (void)tni_str_add(out, "]");
}

void tni_kv_report_json(const tni_kv_report *r, const char *rows, tni_str *out)
{
    char at[24], who[24];

    (void)tni_str_add(out, "\"numbers\":{");
    for (uint32_t i = 0; i < TNI_KV_NUMBER_COUNT; i++)
        (void)tni_str_addf(out, "%s\"%s\":%" PRIu64, i ? "," : "", number_names[i], r->numbers[i]);
    (void)tni_str_add(out, "},\"times_us\":{");
    for (uint32_t i = 0; i < TNI_KV_T_STALENESS; i++)
        times_json(&r->times[i], time_names[i], i ? "," : "", out);
    times_json(&r->times[TNI_KV_T_STALENESS], time_names[TNI_KV_T_STALENESS], "},", out);
    (void)tni_str_addf(out, ",\"waiting\":%u,\"waits\":[", r->waiting);
    for (uint32_t i = 0; i < r->wait_count; i++) {
        const tni_kv_wait *w = &r->waits[i];

        (void)tni_str_addf(out,
                           "%s{\"for\":\"%s\",\"state\":\"%s\",\"key\":%u,\"part\":%u,\"round\":%u,\"at\":"
                           "\"%s\",\"missing\":%u,\"who\":\"%s\",\"age_ms\":%u,\"heard_ms\":%u}",
                           i ? "," : "", kind_names[w->kind], state_names[w->state], w->key, w->part,
                           w->round, tni_kv_node_name(w->at, at), w->missing,
                           w->missing ? tni_kv_node_name(w->who, who) : "", w->age_ms, w->heard_ms);
    }
    (void)tni_str_add(out, "]");
    if (rows)
        rows_json(r, rows, out);
}
