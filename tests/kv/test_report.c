/*
 * What a job says of itself: histograms, reports and questions by a process that is no member, also while
 * workers wait for each other; and what hostile peers make of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "kv/ask.h"
#include "kv/job.h"
#include "kv/server.h"

#define SECOND 1000000000ull

/* ---- histograms ---- */

static void digits_of_histograms(void **state)
{
    static const uint64_t values[] = {0, 1, 63, 64, 65, 127, 128, 1000, 123456, 99999999};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        tni_kv_histogram h = {0};
        uint64_t got;

        tni_kv_histogram_add(&h, values[i]);
        tni_kv_histogram_add(&h, UINT64_MAX);
        got = tni_kv_histogram_at(&h, 500);
        assert_true(got <= values[i] + values[i] / 64 && got + got / 64 >= values[i]);
        assert_true(tni_kv_histogram_at(&h, 1000) >= values[i]);
        assert_int_equal(h.count, 2);
        assert_true(h.max == UINT64_MAX);
        tni_kv_histogram_fini(&h);
    }
}

/* The quantiles of 1 to 10,000 are known. */
static void quantiles(void **state)
{
    tni_kv_histogram h = {0};

    (void)state;
    assert_int_equal(tni_kv_histogram_at(&h, 500), 0);
    for (uint64_t i = 1; i <= 10000; i++)
        tni_kv_histogram_add(&h, i);
    for (uint32_t p = 10; p <= 1000; p += 10) {
        const double got = (double)tni_kv_histogram_at(&h, p), exact = 10.0 * p;

        assert_true(got >= exact * 0.985 && got <= exact * 1.015);
    }
    assert_int_equal(h.sum, 50005000);
    tni_kv_histogram_fini(&h);
}

/* ---- reports as bytes ---- */

static tni_kv_report report_of(void)
{
    tni_kv_report r = {0};

    for (uint32_t i = 0; i < TNI_KV_NUMBER_COUNT; i++)
        r.numbers[i] = i * 1000003ull << i;
    r.times[TNI_KV_T_PUSH] = (tni_kv_times){4, 40, 20, 10, 15, 20};
    for (uint32_t i = 0; i < TNI_KV_WAITS_MAX + 6; i++) {
        const tni_kv_wait w = {.kind = TNI_KV_DO_PUSH,
                               .state = TNI_KV_WAIT_HELD,
                               .at = TNI_KV_NODE(TNI_KV_SERVER, 2),
                               .who = TNI_KV_NODE(TNI_KV_WORKER, 0),
                               .part = 3,
                               .key = 17 + i,
                               .round = 812,
                               .missing = 2,
                               .age_ms = 41000,
                               .heard_ms = 7};

        tni_kv_report_wait(&r, &w);
    }
    for (uint32_t i = 0; i < TNI_KV_ROWS_MAX + 9; i++) { /* the largest stay */
        tni_kv_row row = {0};

        tni_kv_report_row(&r, 99, &row);
        tni_kv_row_add(&row, i % 3 * 1000000u);
        tni_kv_row_add(&row, i * 1000u);
        tni_kv_report_row(&r, i, &row);
    }
    return r;
}

static tn_status report_take(const void *text, uint64_t bytes, tni_kv_report *out)
{
    tni_kv_reader in = {text, bytes, false};

    return tni_kv_report_read(&in, out);
}

static void reports_and_torn_ones(void **state)
{
    const tni_kv_report r = report_of();
    tni_kv_report back;
    uint64_t random = 7;
    tni_str text;

    (void)state;
    assert_int_equal(r.waiting, TNI_KV_WAITS_MAX + 6);
    assert_int_equal(r.wait_count, TNI_KV_WAITS_MAX);
    assert_int_equal(r.row_count, TNI_KV_ROWS_MAX);
    for (uint32_t i = 0; i < r.row_count; i++)
        assert_true(r.rows[i].count == 2 && r.rows[i].id % 3 && r.rows[i].max_us >= 1000 &&
                    r.rows[i].sum_us == r.rows[i].id % 3 * 1000u + r.rows[i].id);
    tni_str_init(&text, TN_TEXT_MAX);
    tni_kv_report_write(&r, &text);
    assert_int_equal(text.status, TN_OK);
    assert_true(text.length <= TNI_KV_REPORT_MAX);
    assert_int_equal(report_take(text.text, text.length, &back), TN_OK);
    assert_memory_equal(&back, &r, sizeof r);
    for (size_t bytes = 0; bytes < text.length; bytes++) {
        uint8_t *cut = malloc(bytes + 1); /* a read behind the end is seen */

        assert_non_null(cut);
        memcpy(cut, text.text, bytes);
        assert_int_equal(report_take(cut, bytes, &back), TN_E_FORMAT);
        free(cut);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t *copy = malloc(text.length);
        tni_str json;
        tn_status st;

        assert_non_null(copy);
        memcpy(copy, text.text, text.length);
        for (uint32_t n = 0; n < 1 + i % 4; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 33) % (n ? 8 : text.length)] = (uint8_t)(random >> 20);
        }
        st = report_take(copy, text.length, &back);
        assert_true(st == TN_OK || st == TN_E_FORMAT);
        free(copy);
        if (st || i % 500)
            continue;
        tni_str_init(&json, TN_TEXT_MAX);
        tni_kv_report_json(&back, i % 1000 ? "late" : NULL, &json);
        assert_int_equal(json.status, TN_OK);
        tni_str_fini(&json);
    }
    tni_str_fini(&text);
}

/* ---- a job that is asked ---- */

typedef struct question {
    tni_kv_setup setup;
    uint64_t timeout_ns;
    tni_thread *thread;
    atomic_bool done;
    tn_status status;
    tn_err error;
    tni_str text;
    json_t *json;
} question;

static void question_run(void *arg)
{
    question *q = arg;

    q->status = tni_kv_ask_with(&q->setup, q->timeout_ns, &q->text);
    tni_error_get(&q->error);
    atomic_store(&q->done, true);
}

static bool question_done(void *arg)
{
    return atomic_load(&((question *)arg)->done);
}

/* The status; `q->json`: what was said, to be given back by `question_end`. */
static tn_status job_question(job *j, question *q, uint64_t number)
{
    memset(q, 0, sizeof *q);
    atomic_init(&q->done, false);
    q->setup = j->setup;
    q->setup.settings.job = number;
    q->timeout_ns = 5 * SECOND;
    tni_str_init(&q->text, TN_TEXT_MAX);
    assert_int_equal(tni_thread_create("ask", question_run, q, &q->thread), TN_OK);
    loop_wait_open(++j->opened);
    assert_true(loop_until(question_done, q, 60));
    tni_thread_join(q->thread);
    if (!q->status)
        q->json = json_loadb(q->text.text, q->text.length, 0, NULL);
    assert_true(q->status || q->json);
    return q->status;
}

static void question_end(question *q)
{
    tni_str_fini(&q->text);
    json_decref(q->json);
}

static json_t *node_of(const question *q, const char *name)
{
    json_t *nodes = json_object_get(q->json, "nodes"), *node;
    size_t i;

    json_array_foreach(nodes, i,
                       node) if (!strcmp(json_string_value(json_object_get(node, "node")), name)) return node;
    fail_msg("no node %s in %s", name, q->text.text);
    return NULL;
}

static json_int_t number_of(const question *q, const char *node, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(node_of(q, node), "numbers"), name));
}

static json_int_t time_count(const question *q, const char *node, const char *name)
{
    const json_t *times = json_object_get(node_of(q, node), "times_us");

    return json_integer_value(json_object_get(json_object_get(times, name), "count"));
}

static const json_t *wait_of(const question *q, const char *node, size_t index)
{
    return json_array_get(json_object_get(node_of(q, node), "waits"), index);
}

static void wait_is(const json_t *w, const char *what, const char *state, const char *at, const char *who)
{
    assert_non_null(w);
    assert_string_equal(json_string_value(json_object_get(w, "for")), what);
    assert_string_equal(json_string_value(json_object_get(w, "state")), state);
    assert_string_equal(json_string_value(json_object_get(w, "at")), at);
    assert_string_equal(json_string_value(json_object_get(w, "who")), who);
}

#define ELEMENTS 100u

static void keys_make(job *j, const float *first)
{
    const tni_kv_request init = {.kind = TNI_KV_DO_INIT, .in = first};

    for (uint32_t i = 0; i < j->setup.settings.workers; i++) {
        assert_int_equal(tni_kv_process_key(j->workers[i], 0, 0, ELEMENTS, sizeof(float)), TN_OK);
        assert_int_equal(job_do(j->workers[i], &init), TN_OK);
    }
}

/* Worker 1 waits for worker 0, and then both for a barrier that worker 2 does not reach. */
static void who_waits_for_whom(void **state)
{
    static float value[ELEMENTS], out[3][ELEMENTS];
    tni_kv_request push = {.kind = TNI_KV_DO_PUSHPULL, .in = value};
    const tni_kv_request barrier = {.kind = TNI_KV_DO_BARRIER};
    answer pushed[3], met[3];
    question q;
    job j;

    (void)state;
    job_begin(&j, 3, 2);
    job_start(&j);
    keys_make(&j, value);
    for (uint32_t i = 1; i < 3; i++) {
        push.out = out[i];
        job_ask(j.workers[i], &push, &pushed[i]);
    }
    (void)loop_until(job_answered, (answer *[]){&pushed[1], NULL}, 3);
    assert_int_equal(job_question(&j, &q, 0), TN_OK);
    assert_int_equal(json_integer_value(json_object_get(q.json, "workers")), 3);
    assert_true(json_is_true(json_object_get(q.json, "started")));
    assert_true(json_is_false(json_object_get(q.json, "failed")));
    assert_int_equal(json_array_size(json_object_get(q.json, "nodes")), 6);
    wait_is(wait_of(&q, "worker 1", 0), "pushpull", "held", "server 0", "worker 0");
    assert_true(json_integer_value(json_object_get(wait_of(&q, "worker 1", 0), "age_ms")) >= 2000);
    assert_int_equal(json_integer_value(json_object_get(wait_of(&q, "worker 1", 0), "round")), 1);
    wait_is(wait_of(&q, "server 0", 0), "push", "held", "server 0", "worker 0");
    assert_null(wait_of(&q, "worker 0", 0));
    assert_null(wait_of(&q, "server 1", 0));
    assert_int_equal(number_of(&q, "server 0", "parts"), 1);
    assert_int_equal(number_of(&q, "worker 1", "requests"), 1);
    assert_true(number_of(&q, "scheduler", "messages_received") > 0);
    question_end(&q);

    push.out = out[0];
    assert_int_equal(job_do(j.workers[0], &push), TN_OK);
    for (uint32_t i = 1; i < 3; i++)
        assert_int_equal(job_wait(&pushed[i]), TN_OK);
    for (uint32_t i = 0; i < 2; i++)
        job_ask(j.workers[i], &barrier, &met[i]);
    (void)loop_until(job_answered, (answer *[]){&met[0], NULL}, 2);
    assert_int_equal(job_question(&j, &q, j.setup.settings.job), TN_OK);
    wait_is(wait_of(&q, "worker 0", 0), "barrier", "held", "scheduler", "worker 2");
    assert_int_equal(number_of(&q, "server 0", "rounds_applied"), 1);
    assert_int_equal(number_of(&q, "server 0", "round_max"), 1);
    assert_int_equal(time_count(&q, "server 0", "round"), 1);
    assert_int_equal(time_count(&q, "server 0", "apply"), 1);
    assert_int_equal(time_count(&q, "worker 2", "pushpull"), 1);
    assert_int_equal(time_count(&q, "worker 2", "barrier"), 0);
    question_end(&q);
    assert_int_equal(job_do(j.workers[2], &barrier), TN_OK);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(job_wait(&met[i]), TN_OK);
    job_end(&j);
}

static atomic_uint tables, requests, stale;
static char table[256];

static void log_take(void *arg, int32_t level, const char *message)
{
    (void)arg, (void)level;
    if (strstr(message, "was last in") && atomic_fetch_add(&tables, 1) == 0)
        (void)snprintf(table, sizeof table, "%s", message);
    if (strstr(message, ": pushpull of key 0 round 7: ") && strstr(message, " ms"))
        atomic_fetch_add(&requests, 1);
    if (strstr(message, "server 0: staleness of 100 gradients of parts: half at most 0 updates, "))
        atomic_fetch_add(&stale, 1);
}

/* Row `index` of what takes longest. */
static json_int_t row_of(const question *q, const char *node, const char *rows, size_t index,
                         const char *name)
{
    const json_t *row = json_array_get(json_object_get(node_of(q, node), rows), index);

    assert_non_null(row);
    return json_integer_value(json_object_get(row, name));
}

/* Worker 1 comes last in three of four rounds. */
static void who_comes_last(void **state)
{
    static float value[ELEMENTS], out[2][ELEMENTS];
    static const tni_log log = {.fn = log_take, .level = TN_LOG_INFO};
    question q;
    job j;

    (void)state;
    atomic_store(&tables, 0);
    atomic_store(&requests, 0);
    job_begin(&j, 2, 1);
    j.setup.settings.verbose = 2;
    j.setup.log = &log;
    job_start(&j);
    keys_make(&j, value);
    for (uint32_t round = 0; round < 100; round++) {
        const uint32_t first = round % 4 == 0;
        tni_kv_request push = {.kind = TNI_KV_DO_PUSHPULL, .in = value};
        answer a[2];

        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t w = i ? 1 - first : first;

            push.out = out[w];
            job_ask(j.workers[w], &push, &a[w]);
            if (i == 0)
                (void)loop_until(job_answered, (answer *[]){&a[w], NULL}, 0.5);
        }
        assert_int_equal(job_wait(&a[0]), TN_OK);
        assert_int_equal(job_wait(&a[1]), TN_OK);
    }
    assert_int_equal(job_question(&j, &q, 0), TN_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(row_of(&q, "server 0", "late", i, "count"),
                         row_of(&q, "server 0", "late", i, "id") ? 75 : 25);
    assert_true(row_of(&q, "server 0", "late", 0, "max_us") > 0);
    assert_int_equal(row_of(&q, "worker 1", "keys", 0, "id"), 0);
    assert_int_equal(row_of(&q, "worker 1", "keys", 0, "count"), 100);
    assert_true(row_of(&q, "worker 0", "keys", 0, "sum_us") >= row_of(&q, "worker 0", "keys", 0, "max_us"));
    assert_null(json_object_get(node_of(&q, "scheduler"), "late"));
    question_end(&q);
    job_end(&j);
    assert_int_equal(atomic_load(&requests), 2); /* one of each worker */
    assert_int_equal(atomic_load(&tables), 2);   /* a row for each worker */
    assert_non_null(strstr(table, "server 0: worker 1 was last in 75 % of 100 rounds of parts, "));
    assert_null(strstr(table, ", 0.0 ms"));
}

/* How often the trace has an event of this phase with this name. */
static size_t events_of(const json_t *trace, const char *phase, const char *name)
{
    const json_t *e;
    size_t i, count = 0;

    json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
    {
        const char *local = json_string_value(json_object_get(json_object_get(e, "id2"), "local"));

        if (strcmp(json_string_value(json_object_get(e, "ph")), phase) != 0 ||
            strcmp(json_string_value(json_object_get(e, "name")), name) != 0)
            continue;
        assert_true(*phase < 'a' ? !local : local && !strcmp(local, name));
        count++;
    }
    return count;
}

/* Both workers push, one waits for the other; the server adds both up. */
static void what_traces_have(void **state)
{
    static const char *const names[] = {"pushpull of key 0 round 1", "wait key 0 part 0 round 1",
                                        "round key 0 part 0 round 1", "apply key 0 part 0 round 1",
                                        "init of key 0 round 0"};
    static const size_t counts[] = {2, 1, 1, 1, 2};
    static float value[ELEMENTS], out[2][ELEMENTS];
    tni_trace_user user = {0};
    const json_t *facts;
    char own[24];
    answer a[2];
    tni_str text;
    json_t *trace;
    job j;

    (void)state;
    assert_int_equal(tni_trace_start(&user, 4096), TN_OK);
    job_begin(&j, 2, 1);
    job_start(&j);
    keys_make(&j, value);
    for (uint32_t i = 0; i < 2; i++) {
        const tni_kv_request push = {.kind = TNI_KV_DO_PUSHPULL, .in = value, .out = out[i]};

        job_ask(j.workers[i], &push, &a[i]);
        if (!i)
            (void)loop_until(job_answered, (answer *[]){&a[0], NULL}, 3);
    }
    assert_int_equal(job_wait(&a[0]), TN_OK);
    assert_int_equal(job_wait(&a[1]), TN_OK);
    job_end(&j);
    tni_trace_stop(&user);
    tni_str_init(&text, TN_TEXT_MAX);
    assert_int_equal(tni_trace_json(&user, &text), TN_OK);
    trace = json_loadb(text.text, text.length, 0, NULL);
    assert_non_null(trace);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool thread = !strncmp(names[i], "apply", 5);

        assert_int_equal(events_of(trace, thread ? "B" : "b", names[i]), counts[i]);
        assert_int_equal(events_of(trace, thread ? "E" : "e", names[i]), counts[i]);
    }
    facts = json_object_get(trace, "otherData"); /* of the one that came last */
    assert_int_equal(strlen(json_string_value(json_object_get(facts, "job"))), 16);
    assert_true(json_is_integer(json_object_get(facts, "clock_ahead_ns")));
    assert_true(json_integer_value(json_object_get(facts, "clock_error_ns")) >= 0);
    tni_trace_own_name(own);
    assert_non_null(strchr(own, '-'));
    tni_trace_own_set("", "");
    json_decref(trace);
    tni_str_fini(&text);
}

/* Without rounds: worker 0 has the value of one update, worker 1 makes three, each from the newest value, so
 * worker 0's gradient is three updates old; and so on. */
static void how_old_values_are(void **state)
{
    static float value[ELEMENTS], out[ELEMENTS];
    static const tni_log log = {.fn = log_take, .level = TN_LOG_INFO};
    const tni_kv_request take = {.kind = TNI_KV_DO_PULL, .out = out, .any = true},
                         push = {.kind = TNI_KV_DO_PUSHPULL, .in = value, .out = out};
    const json_t *staleness;
    question q;
    job j;

    (void)state;
    atomic_store(&stale, 0);
    job_begin(&j, 2, 1);
    j.setup.settings.verbose = 1;
    j.setup.settings.async = true;
    j.setup.log = &log;
    job_start(&j);
    keys_make(&j, value);
    assert_int_equal(job_do(j.workers[0], &push), TN_OK); /* of a value that no answer brought */
    assert_int_equal(job_do(j.workers[1], &take), TN_OK);
    for (uint32_t i = 0; i < 25; i++) {
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(job_do(j.workers[1], &push), TN_OK);
        assert_int_equal(job_do(j.workers[0], &push), TN_OK);
    }
    assert_int_equal(job_question(&j, &q, 0), TN_OK);
    staleness = json_object_get(node_of(&q, "server 0"), "staleness");
    assert_int_equal(json_integer_value(json_object_get(staleness, "count")), 100);
    assert_int_equal(json_integer_value(json_object_get(staleness, "max")), 3);
    assert_int_equal(json_integer_value(json_object_get(staleness, "sum")), 25 * 3 + 24);
    assert_int_equal(json_integer_value(json_object_get(staleness, "p50")), 0);
    assert_int_equal(json_integer_value(json_object_get(staleness, "p90")), 3);
    question_end(&q);
    job_end(&j);
    assert_int_equal(atomic_load(&stale), 1);
}

/* A worker that nothing reaches is told as silent; of another job nobody says anything. */
static void members_that_do_not_answer(void **state)
{
    static float value[ELEMENTS];
    question q;
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    job_start(&j);
    keys_make(&j, value);
    loop_cut(3, true); /* scheduler, server, worker 0, worker 1 */
    assert_int_equal(job_question(&j, &q, 0), TN_OK);
    assert_true(json_is_false(json_object_get(node_of(&q, "worker 1"), "answered")));
    assert_true(json_is_true(json_object_get(node_of(&q, "worker 0"), "answered")));
    assert_true(json_is_true(json_object_get(node_of(&q, "server 0"), "answered")));
    assert_true(json_integer_value(json_object_get(node_of(&q, "worker 1"), "heard_ms")) < 10000);
    question_end(&q);
    loop_cut(3, false);
    assert_int_equal(job_question(&j, &q, 78), TN_E_TIMEOUT);
    assert_non_null(strstr(q.error.message, "sched:1: no answer for 5.0 s"));
    question_end(&q);
    job_end(&j);
}

/* ---- hostile questions, over the machine of a scheduler ---- */

static uint32_t sent[TNI_KV_TYPE_END];

static void count_sent(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                       uint64_t bytes, uint32_t priority)
{
    (void)arg, (void)to, (void)payload, (void)bytes, (void)priority;
    sent[header[3]]++;
}

static void say(tni_kv_scheduler *s, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.bytes = bytes;
    tni_kv_encode(&h, payload, text);
    (void)tni_kv_scheduler_receive(s, text, payload, bytes, 5);
}

static void hostile_questions(void **state)
{
    static const uint8_t long_text[TNI_KV_REPORT_MAX + 1];
    const tni_kv_settings settings = {.job = 5, .workers = 2, .servers = 1};
    const tni_kv_host host = {.send = count_sent};
    const tni_kv_header good = {
        .type = TNI_KV_ASK, .from = TNI_KV_UNKNOWN, .to = TNI_KV_SCHEDULER_NODE, .sequence = 9};
    tni_kv_header h;
    tni_kv_scheduler *s;

    (void)state;
    memset(sent, 0, sizeof sent);
    assert_int_equal(tni_kv_scheduler_create(&settings, &host, NULL, NULL, 0, 1, &s), TN_OK);
    say(s, good, NULL, 0);
    assert_int_equal(sent[TNI_KV_REPORT], 1);
    say(s, good, long_text, 1); /* with a payload */
    h = good;
    h.sequence = 0;
    say(s, h, NULL, 0);
    h = good;
    h.job = 6;
    say(s, h, NULL, 0);
    for (uint64_t key = 1; key < 1u << 20; key += 511) { /* nobody is there, or speaks */
        h = good;
        h.key = key;
        say(s, h, NULL, 0);
    }
    h = good;
    h.key = UINT64_MAX;
    say(s, h, NULL, 0);
    for (uint32_t from = 0; from < TNI_KV_UNKNOWN;
         from += 13) { /* members do not ask, strangers do not report */
        h = good;
        h.from = (uint16_t)from;
        h.job = 5;
        h.incarnation = 1;
        say(s, h, NULL, 0);
        h.type = TNI_KV_REPORT;
        say(s, h, long_text, from % 2 ? sizeof long_text : 8);
    }
    h = good;
    h.type = TNI_KV_REPORT;
    say(s, h, long_text, 8);
    assert_int_equal(sent[TNI_KV_REPORT], 1);
    assert_int_equal(sent[TNI_KV_ASK], 0);
    tni_kv_scheduler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_of_histograms),  cmocka_unit_test(quantiles),
        cmocka_unit_test(reports_and_torn_ones), cmocka_unit_test(who_waits_for_whom),
        cmocka_unit_test(who_comes_last),        cmocka_unit_test(how_old_values_are),
        cmocka_unit_test(what_traces_have),      cmocka_unit_test(members_that_do_not_answer),
        cmocka_unit_test(hostile_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
