/*
 * What a worker sends again after a rollback: commands as the same ones, so that servers whose snapshot has
 * them already do them once; pushes step by step, as they were; and no more than kvstore.replay_bytes of it
 * is kept, however short it is. And where a worker goes on that took another one's place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/update.h"
#include "kv/worker.h"

#define SERVERS 2u
#define REPLAY_BYTES 4096u

typedef struct talk {
    tni_kv_worker *w;
    uint64_t sequence[SERVERS]; /* of the last command to each */
    tni_kv_header pushes[3];    /* the last one of each key */
    uint16_t to[3];
    uint32_t sent, done;
} talk;

static void sent_one(talk *t, uint16_t to, const tni_kv_header *h)
{
    assert_int_equal(TNI_KV_ROLE(to), TNI_KV_SERVER);
    if (h->type == TNI_KV_PUSH) {
        t->pushes[h->key >> 16] = *h;
        t->to[h->key >> 16] = to;
        return;
    }
    assert_int_equal(h->type, TNI_KV_COMMAND);
    t->sequence[TNI_KV_RANK(to)] = h->sequence;
    t->sent++;
}

static void sent(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                 uint64_t bytes, uint32_t priority)
{
    talk *t = arg;
    tni_kv_header batch, h;
    const uint8_t *of = payload;
    uint64_t at = 0;

    (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &batch), TN_OK);
    if (batch.type != TNI_KV_BATCH)
        sent_one(t, to, &batch);
    while (batch.type == TNI_KV_BATCH && at < bytes) {
        assert_int_equal(tni_kv_entry_get(&batch, payload, &at, &h, &of), TN_OK);
        sent_one(t, to, &h);
    }
}

static void ended(void *arg, uint64_t cookie, tn_status st)
{
    talk *t = arg;

    (void)cookie;
    assert_int_equal(st, TN_OK);
    t->done++;
}

static const tni_kv_settings settings = {.job = 5,
                                         .workers = 2,
                                         .servers = SERVERS,
                                         .timeout_ns = UINT32_MAX,
                                         .control_timeout_ns = UINT32_MAX,
                                         .bound = 1u << 20,
                                         .part_bytes = 1u << 20,
                                         .credit_bytes = 1u << 20,
                                         .replay_bytes = REPLAY_BYTES};

/* Worker 1 of a job that has begun. */
static void begin(talk *t, tni_kv_host *host)
{
    const tni_kv_start start = {.birth = 1};

    *t = (talk){.w = NULL};
    *host = (tni_kv_host){.arg = t, .send = sent};
    assert_int_equal(tni_kv_worker_create(&settings, host, &start, ended, &t->w), TN_OK);
    t->w->node.id = TNI_KV_NODE(TNI_KV_WORKER, 1);
    t->w->node.incarnation = 2;
    t->w->node.view.flags = TNI_KV_STARTED;
    t->w->node.view.end_round = UINT32_MAX;
    tni_kv_log_begin(t->w);
}

static void command(talk *t)
{
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = "go", .bytes = 2, .cookie = 1};

    assert_int_equal(tni_kv_worker_request(t->w, &r, 1), TN_OK);
    tni_kv_node_flush(&t->w->node);
}

static void answer(talk *t, uint32_t server)
{
    const tni_kv_header h = {.type = TNI_KV_ACK,
                             .what = TNI_KV_APPLIED,
                             .from = TNI_KV_NODE(TNI_KV_SERVER, server),
                             .sequence = t->sequence[server]};

    tni_kv_ops_answer(t->w, &h, NULL);
}

static void roll_back(talk *t)
{
    assert_true(tni_kv_log_back(t->w, 0));
    tni_kv_ops_start(t->w);
    tni_kv_node_flush(&t->w->node);
}

/* One that has ended, and one that only server 0 has answered. */
static void commands_stay_the_same(void **unused)
{
    tni_kv_host host;
    uint64_t first[SERVERS];
    talk t;

    (void)unused;
    begin(&t, &host);
    command(&t);
    assert_int_equal(t.sent, 2);
    memcpy(first, t.sequence, sizeof first);
    answer(&t, 0);
    for (uint32_t again = 0; again < 3; again++) {
        memset(t.sequence, 0, sizeof t.sequence);
        roll_back(&t);
        assert_memory_equal(t.sequence, first, sizeof first);
        answer(&t, 0);
        answer(&t, 1);
        assert_int_equal(t.done, 1);
    }
    command(&t);
    assert_true(t.sequence[0] > first[1] && t.sequence[1] > first[1]);
    tni_kv_worker_destroy(t.w);
}

static void short_requests_count(void **unused)
{
    tni_kv_host host;
    talk t;

    (void)unused;
    begin(&t, &host);
    for (uint32_t i = 0; i < REPLAY_BYTES / sizeof(tni_kv_op) + 1; i++) {
        assert_non_null(t.w->log);
        command(&t);
        answer(&t, 0);
        answer(&t, 1);
        assert_true(t.w->log_bytes <= REPLAY_BYTES);
    }
    assert_null(t.w->log);
    assert_int_equal(t.w->log_bytes, 0);
    assert_false(tni_kv_log_back(t.w, 0));
    tni_kv_worker_destroy(t.w);
}

static void push(talk *t, uint32_t key)
{
    static const uint8_t gradient[16];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .key = key, .in = gradient, .cookie = 1};

    assert_int_equal(tni_kv_worker_request(t->w, &r, 1), TN_OK);
    tni_kv_node_flush(&t->w->node);
}

static void push_answer(talk *t, uint32_t key)
{
    const tni_kv_header h = {.type = TNI_KV_ACK,
                             .what = TNI_KV_APPLIED,
                             .from = t->to[key],
                             .round = t->pushes[key].round,
                             .key = t->pushes[key].key,
                             .sequence = t->pushes[key].sequence};

    tni_kv_ops_answer(t->w, &h, NULL);
    tni_kv_node_flush(&t->w->node);
}

/* Rounds of keys 1 and 2 that have been sent last. */
static void assert_sent(const talk *t, uint32_t first, uint32_t second)
{
    assert_int_equal(t->pushes[1].round, first);
    assert_int_equal(t->pushes[2].round, second);
}

/* Two keys, pushed in three steps, of which the last one is under way: a key is not pushed again in a step
 * before the other one has had the step before it; those of one step go together. So it is when servers go
 * back once more, and with what the program asks for meanwhile. */
static void step_by_step(void **unused)
{
    tni_kv_host host;
    talk t;

    (void)unused;
    begin(&t, &host);
    for (uint32_t key = 1; key <= 2; key++) {
        assert_int_equal(tni_kv_worker_key(t.w, key, 0, 4, 4), TN_OK);
        t.w->keys[key]->known = true;
    }
    for (uint32_t step = 1; step <= 3; step++) {
        push(&t, 1);
        push(&t, 2);
        assert_sent(&t, step, step);
        for (uint32_t key = 2; step < 3 && key > 0; key--)
            push_answer(&t, key);
    }
    for (uint32_t again = 0; again < 2; again++) {
        memset(t.pushes, 0, sizeof t.pushes);
        roll_back(&t);
        assert_sent(&t, 1, 1);
        push_answer(&t, 1 + again);
        assert_sent(&t, 1, 1);
    }
    push_answer(&t, 1);
    assert_sent(&t, 2, 2);
    push(&t, 1); /* of step 4: asked for behind step 2 */
    push_answer(&t, 1);
    assert_sent(&t, 2, 2);
    push_answer(&t, 2);
    assert_sent(&t, 3, 3);
    push_answer(&t, 1);
    assert_sent(&t, 4, 3);
    push_answer(&t, 2);
    push_answer(&t, 1);
    assert_int_equal(t.done, 7);
    assert_null(t.w->first);
    tni_kv_worker_destroy(t.w);
}

/* Without rounds: what is pushed from where its value comes to is copied when the first of several values
 * comes, and where there is no memory the value waits. A single one ends the request. */
static void copies_of_what_is_overwritten(void **unused)
{
    uint8_t memory[16] = {1, 2, 3};
    tni_kv_host host;
    tni_kv_op *op;
    talk t;

    (void)unused;
    begin(&t, &host);
    assert_int_equal(tni_kv_worker_key(t.w, 1, 0, 4, 4), TN_OK);
    t.w->node.async = true;
    for (uint32_t left = 1; left < 4; left++) {
        assert_non_null(op = tni_zalloc(sizeof *op));
        op->lot = t.w->keys[1];
        op->lot->left = left;
        op->r = (tni_kv_request){.kind = TNI_KV_DO_PUSHPULL, .in = memory, .out = memory};
        t.w->log_bytes = REPLAY_BYTES;
        tni_mem_fail_at(1, false, true);
        assert_int_equal(tni_kv_log_copy(t.w, op), left == 1);
        assert_int_equal(tni_mem_failed(), left > 1);
        tni_mem_fail_at(0, false, false);
        assert_null(op->copy);
        assert_true(tni_kv_log_copy(t.w, op));
        assert_int_equal(op->copy != NULL, left > 1);
        if (op->copy)
            assert_memory_equal(op->copy, memory, sizeof memory);
        assert_int_equal(t.w->log_bytes, REPLAY_BYTES);
        tni_kv_op_free(t.w, op);
    }
    t.w->node.async = false;
    tni_kv_worker_destroy(t.w);
}

/* Answers of a key whose parts lie on servers of which some may have lost rounds, and say so. */
static void round_of_parts(void **unused)
{
    static const struct {
        uint32_t rounds[3], lost, sync, async; /* lost: a bit for each */
    } rows[] = {{{5, 6, 5}, 0, 5, 5}, {{6, 6, 6}, 0, 6, 6}, {{6, 4, 7}, 0, 4, 7}, {{9, 0, 1}, 0, 0, 9},
                {{5, 6, 6}, 1, 5, 6}, {{6, 5, 6}, 2, 5, 6}, {{6, 6, 5}, 4, 5, 6}, {{6, 5, 6}, 4, 5, 5},
                {{6, 5, 5}, 1, 5, 5}, {{3, 6, 2}, 5, 2, 6}, {{5, 6, 6}, 7, 5, 5}, {{3, 6, 6}, 7, 3, 6},
                {{0, 0, 0}, 2, 0, 0}};

    (void)unused;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        tni_kv_lot l = {.plan = {.parts = 3}, .left = 3, .least = 1, .most = 99, .sure = i & 2};

        for (; l.left; l.left--)
            tni_kv_lot_got(&l, rows[i / 2].rounds[3 - l.left], rows[i / 2].lost >> (3 - l.left) & 1u, i % 2);
        assert_int_equal(l.got, i % 2 ? rows[i / 2].async : rows[i / 2].sync);
    }
}

#define KEYS 5u

/* Rounds of keys, UINT32_MAX for one that is not known here, before the first push and behind it, which is of
 * key 0. */
static void step_that_was_torn(void **unused)
{
    static const struct {
        uint8_t async, what;
        uint32_t before[KEYS], after[KEYS];
        uint32_t lost; /* a bit for each: all its parts may have lost rounds */
    } rows[] = {
        {true, TNI_KV_PLAIN, {8, 7, 8, 7, 8}, {8, 7, 7, 7, 7}, 0}, /* the ones that are ahead again */
        {true, TNI_KV_2BIT, {8, 7, 8, 3, UINT32_MAX}, {8, 7, 7, 3, UINT32_MAX}, 0},
        {true, TNI_KV_ROWS, {7, 8, 0, 0, 0}, {8, 7, 0, 0, 0}, 0},
        {true, TNI_KV_PLAIN, {8, 8, 8, 8, 8}, {9, 8, 8, 8, 8}, 0},  /* none is torn */
        {true, TNI_KV_PLAIN, {9, 7, 7, 7, 9}, {10, 7, 7, 7, 9}, 0}, /* pushed more often than others */
        {true, TNI_KV_PLAIN, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, 0},
        {true, TNI_KV_ASSIGN, {8, 7, 8, 7, 8}, {9, 7, 8, 7, 8}, 0}, /* a value that none has yet */
        {true, TNI_KV_GATHER, {8, 7, 8, 7, 8}, {9, 7, 8, 7, 8}, 0},
        {false, TNI_KV_PLAIN, {8, 7, 8, 7, 8}, {9, 7, 8, 7, 8}, 1},
        {true, TNI_KV_PLAIN, {8, 3, 8, 7, 8}, {9, 8, 8, 8, 8}, 10}, /* in the step of the others */
        {true, TNI_KV_PLAIN, {3, 8, 7, 7, 8}, {8, 7, 7, 7, 7}, 1},  /* and that was torn */
        {true, TNI_KV_PLAIN, {3, 8, 4, 5, 8}, {4, 8, 4, 5, 8}, 1},  /* which are in none */
        {true, TNI_KV_PLAIN, {3, 8, 4, 5, 8}, {4, 8, 4, 5, 8}, 31},
        {true, TNI_KV_PLAIN, {9, 8, 8, 8, 8}, {10, 8, 8, 8, 8}, 1}, /* never back */
        {true, TNI_KV_ASSIGN, {3, 8, 8, 8, 8}, {4, 8, 8, 8, 8}, 1},
    };
    static const uint8_t gradient[64];
    tni_kv_host host;
    talk t;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .what = rows[i].what, .in = gradient, .cookie = 1};

        begin(&t, &host);
        t.w->node.async = rows[i].async;
        t.w->node.view.flags = 0; /* nothing is sent yet */
        for (uint32_t k = 0; k < KEYS; k++) {
            assert_int_equal(tni_kv_worker_key(t.w, k + 1, 0, 4, 4), TN_OK); /* there is no key 0 */
            t.w->keys[k + 1]->known = rows[i].before[k] != UINT32_MAX;
            t.w->keys[k + 1]->round = rows[i].before[k];
            t.w->keys[k + 1]->sure = !(rows[i].lost >> k & 1u);
        }
        r.key = 1;
        assert_int_equal(tni_kv_worker_request(t.w, &r, 1), TN_OK);
        for (uint32_t k = 0; k < KEYS; k++)
            assert_int_equal(tni_kv_worker_round(t.w, k + 1), rows[i].after[k]);
        r.key = 2;
        assert_int_equal(tni_kv_worker_request(t.w, &r, 1), TN_OK); /* once */
        assert_int_equal(tni_kv_worker_round(t.w, 2), rows[i].after[1] + 1);
        tni_kv_worker_destroy(t.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_of_parts),
                                       cmocka_unit_test(step_that_was_torn),
                                       cmocka_unit_test(commands_stay_the_same),
                                       cmocka_unit_test(step_by_step),
                                       cmocka_unit_test(copies_of_what_is_overwritten),
                                       cmocka_unit_test(short_requests_count)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
