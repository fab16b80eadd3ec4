/*
 * The pace of a job, from its reports (tn_kv_report): who comes last in rounds, how old values are, which
 * keys take longest, and rates between two reports.
 */
#include "kv/pace.h"

#include <stdlib.h>
#include <string.h>

#define LATE_MAX 16 /* workers of a table */
#define KEYS_MAX 5
#define EPOCH_LATE_MAX 4 /* of a line of metrics.jsonl */
#define EPOCH_ASK_MS 3000

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));

    return text ? text : "";
}

static json_int_t number_of(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

/* ---- rows of all nodes ---- */

typedef struct pace_row {
    json_int_t id, count, sum_us, max_us;
} pace_row;

typedef struct pace_rows {
    pace_row *list;
    size_t count, room;
    json_int_t all; /* sum of counts */
} pace_rows;

static pace_row *row_take(pace_rows *rows, json_int_t id)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->list[i].id == id)
            return &rows->list[i];
    if (rows->count == rows->room) {
        const size_t room = rows->room ? 2 * rows->room : 32;
        pace_row *grown = realloc(rows->list, room * sizeof *grown);

        if (!grown)
            return NULL;
        rows->list = grown;
        rows->room = room;
    }
    rows->list[rows->count] = (pace_row){.id = id};
    return &rows->list[rows->count++];
}

static int by_sum(const void *a, const void *b)
{
    const pace_row *x = a, *y = b;

    return x->sum_us != y->sum_us ? (x->sum_us < y->sum_us) - (x->sum_us > y->sum_us)
                                  : (x->id > y->id) - (x->id < y->id);
}

/* "late" of servers, or "keys" of workers, each id once, the largest sums first. */
static void rows_gather(const json_t *job, const char *name, pace_rows *rows)
{
    const json_t *node, *row;
    size_t i, k;

    json_array_foreach(json_object_get(job, "nodes"), i, node)
        json_array_foreach(json_object_get(node, name), k, row)
    {
        pace_row *to = row_take(rows, number_of(row, "id"));

        if (!to)
            return;
        to->count += number_of(row, "count");
        to->sum_us += number_of(row, "sum_us");
        to->max_us = number_of(row, "max_us") > to->max_us ? number_of(row, "max_us") : to->max_us;
        rows->all += number_of(row, "count");
    }
    if (rows->count)
        qsort(rows->list, rows->count, sizeof *rows->list, by_sum);
}

static double mean_ms(const pace_row *row)
{
    return row->count ? (double)row->sum_us / (double)row->count / 1e3 : 0;
}

static void late_say(const json_t *job)
{
    pace_rows rows = {0};

    rows_gather(job, "late", &rows);
    for (size_t i = 0; i < rows.count && i < LATE_MAX; i++) {
        const pace_row *r = &rows.list[i];

        if (!i)
            cli_say(stdout, "%-14s %12s %7s %12s %12s\n", "last in rounds", "rounds", "%", "behind ms",
                    "longest ms");
        cli_say(stdout, "worker %-7lld %12lld %7.1f %12.1f %12.1f\n", (long long)r->id, (long long)r->count,
                100.0 * (double)r->count / (double)rows.all, mean_ms(r), (double)r->max_us / 1e3);
    }
    free(rows.list);
}

static void keys_say(const json_t *job)
{
    pace_rows rows = {0};

    rows_gather(job, "keys", &rows);
    for (size_t i = 0; i < rows.count && i < KEYS_MAX; i++) {
        const pace_row *r = &rows.list[i];

        if (!i)
            cli_say(stdout, "%-14s %12s %7s %12s %12s\n", "slowest keys", "requests", "", "mean ms",
                    "longest ms");
        cli_say(stdout, "key %-10lld %12lld %7s %12.1f %12.1f\n", (long long)r->id, (long long)r->count, "",
                mean_ms(r), (double)r->max_us / 1e3);
    }
    free(rows.list);
}

static void staleness_say(const json_t *job)
{
    const json_t *node;
    bool any = false;
    size_t i;

    json_array_foreach(json_object_get(job, "nodes"), i, node)
    {
        const json_t *t = json_object_get(node, "staleness");

        if (!number_of(t, "count"))
            continue;
        if (!any)
            cli_say(stdout, "%-14s %12s %7s %12s %12s %12s\n", "staleness", "gradients", "half", "90 %",
                    "99 %", "most");
        any = true;
        cli_say(stdout, "%-14s %12lld %7lld %12lld %12lld %12lld\n", text_of(node, "node"),
                (long long)number_of(t, "count"), (long long)number_of(t, "p50"),
                (long long)number_of(t, "p90"), (long long)number_of(t, "p99"),
                (long long)number_of(t, "max"));
    }
}

void cli_kv_pace_say(const json_t *job)
{
    late_say(job);
    staleness_say(job);
    keys_say(job);
}

/* ---- rates ---- */

static const char *const rate_names[][2] = {{"round_max", "rounds_per_s"},
                                            {"sent_bytes", "sent_bytes_per_s"},
                                            {"received_bytes", "received_bytes_per_s"},
                                            {"messages_sent", "messages_per_s"}};
#define RATES (sizeof rate_names / sizeof *rate_names)

static const json_t *node_find(const json_t *job, const char *name)
{
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(job, "nodes"), i,
                       node) if (!strcmp(text_of(node, "node"), name)) return node;
    return NULL;
}

void cli_kv_rates_set(json_t *job, const json_t *before, double seconds)
{
    json_t *node;
    size_t i;

    json_array_foreach(json_object_get(job, "nodes"), i, node)
    {
        const json_t *old = node_find(before, text_of(node, "node")), *now = json_object_get(node, "numbers");
        const json_t *then = json_object_get(old, "numbers");
        json_t *rates;

        /* another process in its place counts from its own beginning */
        if (!now || !then || number_of(node, "incarnation") != number_of(old, "incarnation") ||
            !(rates = json_object()))
            continue;
        for (size_t k = 0; k < RATES; k++)
            (void)json_object_set_new(rates, rate_names[k][1],
                                      cli_json_number((double)(number_of(now, rate_names[k][0]) -
                                                               number_of(then, rate_names[k][0])) /
                                                      seconds));
        (void)json_object_set_new(node, "rates", rates);
    }
}

void cli_kv_rates_say(const json_t *job)
{
    const json_t *node, *rates;
    size_t i;

    cli_say(stdout, "%-14s %12s %12s %12s %12s\n", "per second", "rounds", "sent B", "received B",
            "messages");
    json_array_foreach(json_object_get(job, "nodes"), i, node)
    {
        if (!(rates = json_object_get(node, "rates")))
            continue;
        cli_say(stdout, "%-14s", text_of(node, "node"));
        for (size_t k = 0; k < RATES; k++)
            cli_say(stdout, " %12.1f", json_number_value(json_object_get(rates, rate_names[k][1])));
        cli_say(stdout, "\n");
    }
}

/* ---- a line of metrics.jsonl ---- */

/* The worst of all servers; NULL: none has one. */
static json_t *staleness_of(const json_t *job)
{
    static const char *const names[] = {"p50", "p90", "p99", "max"};
    json_int_t count = 0, worst[4] = {0};
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(job, "nodes"), i, node)
    {
        const json_t *t = json_object_get(node, "staleness");

        count += number_of(t, "count");
        for (size_t k = 0; k < 4; k++)
            worst[k] = number_of(t, names[k]) > worst[k] ? number_of(t, names[k]) : worst[k];
    }
    return count ? json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", count, names[0], worst[0], names[1],
                             worst[1], names[2], worst[2], names[3], worst[3])
                 : NULL;
}

static json_t *late_of(const json_t *job)
{
    json_t *list = json_array();
    pace_rows rows = {0};

    rows_gather(job, "late", &rows);
    for (size_t i = 0; i < rows.count && i < EPOCH_LATE_MAX; i++)
        (void)json_array_append_new(list, json_pack("{s:I, s:I, s:o}", "rank", rows.list[i].id, "rounds",
                                                    rows.list[i].count, "behind_ms",
                                                    cli_json_number(mean_ms(&rows.list[i]))));
    free(rows.list);
    return list;
}

json_t *cli_kv_epoch(tn_app *app)
{
    char *text = NULL;
    json_t *job = NULL, *o = NULL, *staleness;
    const json_t *node, *own;
    json_int_t rounds = 0, sent = 0, received = 0;
    size_t i;

    if (!tn_kv_report(tn_app_ctx(app), EPOCH_ASK_MS, &text))
        job = json_loads(text, 0, NULL);
    tn_free(text);
    if (!job)
        return NULL;
    json_array_foreach(json_object_get(job, "nodes"), i, node)
    {
        const json_t *numbers = json_object_get(node, "numbers");

        if (strncmp(text_of(node, "node"), "server", 6) != 0)
            continue;
        rounds = number_of(numbers, "round_max") > rounds ? number_of(numbers, "round_max") : rounds;
        sent += number_of(numbers, "sent_bytes");
        received += number_of(numbers, "received_bytes");
    }
    own = json_object_get(json_object_get(node_find(job, "worker 0"), "times_us"), "pushpull");
    o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "rounds", rounds, "servers_sent_bytes", sent,
                  "servers_received_bytes", received, "pushpull_p50_us", number_of(own, "p50"),
                  "pushpull_p99_us", number_of(own, "p99"), "late", late_of(job));
    if (o && (staleness = staleness_of(job)))
        (void)json_object_set_new(o, "staleness", staleness);
    json_decref(job);
    return o;
}
