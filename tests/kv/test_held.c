/*
 * A value that the transport holds stays as it was sent, whatever the server does meanwhile: a sum that
 * becomes the value, an optimizer that moves it in its place, the end of the server. And HELD of a short
 * part, which waits for the value. And the other way: gradients that stay where the transport has received
 * them until they are summed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/protocol.h"

#define BYTES 4096u
#define ROUNDS 5u
#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)
#define NOW 1000u
#define LATE_NS 5000u

typedef struct held { /* a value that was sent */
    tni_kv_hold *hold;
    const uint8_t *payload;
} held;

typedef struct talk {
    tni_kv_server *server;
    bool keep; /* what is sent is held */
    held values[ROUNDS + 1];
    uint32_t count;
    uint8_t first;             /* byte of the last value */
    uint32_t round;            /* of the last value, or answer to an init */
    uint32_t batches, entries; /* messages of short answers, and answers in them */
    uint8_t states[4];         /* of the entries: `what`, or that of a value: 0 */
    bool lends;                /* the machine may keep payloads */
    void *lent;                /* that of the message that is being received */
    uint32_t kept;             /* and not given back */
} talk;

static void *host_keep(void *arg, uint64_t bytes)
{
    talk *t = arg;
    void *lent = t->lent;

    assert_true(!lent || bytes == BYTES);
    t->lent = NULL;
    t->kept += lent != NULL;
    return lent;
}

static void host_give(void *arg, void *kept, uint64_t bytes)
{
    assert_int_equal(bytes, BYTES);
    ((talk *)arg)->kept--;
    memset(kept, 0xdb, bytes);
    free(kept);
}

static void batch_read(talk *t, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_header entry;
    const uint8_t *at_payload;

    t->batches++;
    for (uint64_t at = 0; at < h->bytes;) {
        assert_int_equal(tni_kv_entry_get(h, payload, &at, &entry, &at_payload), TN_OK);
        t->states[t->entries++ % 4] = entry.type == TNI_KV_VALUE ? 0 : entry.what;
        t->round = entry.round;
    }
}

static void host_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority)
{
    talk *t = arg;
    tni_kv_header h;

    (void)to, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type == TNI_KV_BATCH)
        batch_read(t, &h, payload);
    if (h.type != TNI_KV_VALUE)
        return;
    assert_int_equal(bytes, BYTES);
    t->first = *(const uint8_t *)payload;
    t->round = h.round;
    if (!t->keep)
        return;
    assert_in_range(t->count, 0, ROUNDS);
    t->values[t->count] = (held){tni_kv_server_sending(t->server), payload};
    assert_non_null(t->values[t->count].hold);
    t->values[t->count++].hold->count++;
}

static uint64_t update_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg, (void)dtype, (void)what;
    return bytes;
}

static tn_status update_add(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                            const void *payload, uint64_t bytes)
{
    (void)arg, (void)h;
    for (uint64_t i = 0; i < bytes; i++)
        ((uint8_t *)sum)[i] =
            (uint8_t)(((const uint8_t *)payload)[i] + (first ? 0 : 10 * ((const uint8_t *)base)[i]));
    return TN_OK;
}

static tn_status update_apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                              uint32_t count, uint32_t members)
{
    (void)arg, (void)h, (void)count, (void)members;
    for (uint64_t i = 0; value != sum && i < bytes; i++)
        ((uint8_t *)value)[i] = (uint8_t)(((uint8_t *)value)[i] + ((const uint8_t *)sum)[i]);
    return TN_OK;
}

static bool update_replaces(void *arg, const tni_kv_header *h)
{
    (void)arg, (void)h;
    return true;
}

static void say(talk *t, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN : TNI_KV_NODE(TNI_KV_SERVER, 0);
    h.from = h.type == TNI_KV_WELCOME ? TNI_KV_SCHEDULER_NODE : h.from ? h.from : WORKER(0);
    h.incarnation = h.type == TNI_KV_WELCOME ? 1 : 1 + TNI_KV_RANK(h.from);
    tni_kv_encode(&h, payload, text);
    if (t->lends) {
        assert_non_null(t->lent = malloc(bytes));
        payload = memcpy(t->lent, payload, bytes);
    }
    (void)tni_kv_server_receive(t->server, text, payload, bytes, NOW);
    free(t->lent);
    t->lent = NULL;
}

static void welcome(talk *t, uint32_t workers)
{
    tni_kv_view v;
    tni_str text;

    assert_int_equal(tni_kv_view_init(&v, workers, 1), TN_OK);
    v.number = v.scheduler = 1;
    v.end_round = UINT32_MAX;
    v.flags = TNI_KV_STARTED;
    for (uint32_t i = 0; i <= workers; i++) {
        v.members[i].state = TNI_KV_ALIVE;
        v.members[i].incarnation = 1 + i;
    }
    tni_str_init(&text, 4096);
    tni_kv_write(&text, TNI_KV_NODE(TNI_KV_SERVER, 0), 2);
    tni_kv_write(&text, 1 + workers, 4);
    tni_kv_view_write(&v, &text);
    tni_kv_view_fini(&v);
    say(t, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text, text.length);
    tni_str_fini(&text);
    assert_int_equal(tni_kv_server_id(t->server), TNI_KV_NODE(TNI_KV_SERVER, 0));
}

static const tni_kv_settings alone = {.job = 5,
                                      .workers = 1,
                                      .servers = 1,
                                      .landing_bytes = 1u << 16,
                                      .server_bytes = 1u << 20,
                                      .timeout_ns = 1u << 30,
                                      .control_timeout_ns = 1u << 30,
                                      .beat_ns = 1u << 30,
                                      .part_bytes = BYTES,
                                      .credit_bytes = BYTES};

/* A server with one part, of `bytes` zeros. */
static void begin(talk *t, bool replaces, const tni_kv_settings *settings, uint64_t bytes)
{
    static const uint8_t zeros[BYTES];
    const tni_kv_host host = {.arg = t, .send = host_send, .keep = host_keep, .give = host_give};
    const tni_kv_start start = {.birth = 77};
    const tni_kv_update update = {.payload_bytes = update_bytes,
                                  .add = update_add,
                                  .apply = update_apply,
                                  .replaces = replaces ? update_replaces : NULL};

    memset(t, 0, sizeof *t);
    assert_int_equal(tni_kv_server_create(settings, &host, &start, &update, NULL, &t->server), TN_OK);
    welcome(t, settings->workers);
    say(t, (tni_kv_header){.type = TNI_KV_INIT, .sequence = 1}, zeros, bytes);
}

static void round_push(talk *t, uint32_t round, uint8_t fill)
{
    uint8_t gradient[BYTES];

    memset(gradient, fill, sizeof gradient);
    say(t, (tni_kv_header){.type = TNI_KV_PUSH, .flags = TNI_KV_WANT, .round = round, .sequence = 1 + round},
        gradient, sizeof gradient);
}

static void all_bytes(const uint8_t *at, uint8_t wanted)
{
    for (uint32_t i = 0; i < BYTES; i++)
        assert_int_equal(at[i], wanted);
}

/* Round r pushes bytes r: the sum is r; moved in its place, the value is 1 + … + r. */
static uint8_t value_of(uint32_t round, bool replaces)
{
    return (uint8_t)(replaces ? round : round * (round + 1) / 2);
}

static void held_through(bool replaces)
{
    talk t;

    begin(&t, replaces, &alone, BYTES);
    t.keep = true;
    for (uint32_t r = 1; r <= ROUNDS; r++)
        round_push(&t, r, (uint8_t)r);
    assert_int_equal(t.count, ROUNDS);
    for (uint32_t r = 1; r <= ROUNDS; r++)
        all_bytes(t.values[r - 1].payload, value_of(r, replaces));
    say(&t, (tni_kv_header){.type = TNI_KV_PULL, .round = ROUNDS, .sequence = 90}, NULL, 0);
    assert_int_equal(t.count, ROUNDS + 1);
    assert_ptr_equal(t.values[ROUNDS].payload, t.values[ROUNDS - 1].payload); /* it has not changed */
    assert_int_equal(t.values[ROUNDS].hold->count, 2);
    tni_kv_server_destroy(t.server);
    for (uint32_t i = 0; i <= ROUNDS; i++) {
        tni_kv_hold *hold = t.values[i].hold;

        all_bytes(t.values[i].payload, value_of(i < ROUNDS ? i + 1 : ROUNDS, replaces));
        assert_true(hold->ended);
        if (--hold->count == 0)
            hold->free(hold);
    }
}

static void of_sums(void **unused)
{
    (void)unused;
    held_through(true);
}

static void moved_in_place(void **unused)
{
    (void)unused;
    held_through(false);
}

/* What nobody holds is used again: two blocks are all there are. */
static void nobody_holds(void **unused)
{
    const void *seen[2] = {NULL};
    uint32_t version;
    talk t;

    (void)unused;
    begin(&t, true, &alone, BYTES);
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        const void *value;

        round_push(&t, r, (uint8_t)r);
        assert_int_equal(t.first, r);
        value = tni_kv_server_value(t.server, 0, &version);
        assert_int_equal(version, r);
        if (r > 2)
            assert_ptr_equal(value, seen[r % 2]);
        seen[r % 2] = value;
    }
    assert_null(tni_kv_server_sending(t.server));
    tni_kv_server_destroy(t.server);
}

static void short_push(talk *t, uint32_t rank, uint8_t flags)
{
    static const uint8_t gradient[8] = {1};

    say(t,
        (tni_kv_header){.type = TNI_KV_PUSH,
                        .flags = TNI_KV_WANT | flags,
                        .from = WORKER(rank),
                        .round = 1,
                        .sequence = 5},
        gradient, sizeof gradient);
}

/* HELD comes with the value in one message, after `late_ns` by itself, and at once to who asks again. */
static void short_ones_wait(void **unused)
{
    tni_kv_settings two = alone;

    (void)unused;
    two.workers = 2;
    two.late_ns = LATE_NS;
    for (int ask = 0; ask < 3; ask++) {
        talk t;

        begin(&t, true, &two, 8);
        t.batches = t.entries = 0;
        short_push(&t, 0, 0);
        assert_int_equal(t.batches, 0);
        if (ask == 1) {
            assert_int_equal(tni_kv_server_tick(t.server, NOW + 1), NOW + LATE_NS);
            assert_int_equal(t.batches, 0);
            (void)tni_kv_server_tick(t.server, NOW + LATE_NS);
        } else if (ask == 2) {
            short_push(&t, 0, TNI_KV_RETRY);
        }
        assert_int_equal(t.batches, ask ? 1 : 0);
        assert_int_equal(t.entries, ask);
        if (ask)
            assert_int_equal(t.states[0], TNI_KV_HELD);
        t.batches = t.entries = 0;
        short_push(&t, 1, 0);
        assert_int_equal(t.batches, 2); /* one to each worker */
        assert_int_equal(t.entries, ask ? 2 : 3);
        tni_kv_server_destroy(t.server);
    }
}

static void push_of(talk *t, uint32_t rank, uint32_t round, uint8_t fill)
{
    uint8_t gradient[BYTES];

    memset(gradient, fill, sizeof gradient);
    say(t,
        (tni_kv_header){.type = TNI_KV_PUSH,
                        .flags = TNI_KV_WANT,
                        .from = WORKER(rank),
                        .round = round,
                        .sequence = 1 + round},
        gradient, sizeof gradient);
}

/* Rank 0 adds 1, rank 1 adds 2, rank 2 adds 3: in order of ranks that is (1 * 10 + 2) * 10 + 3. */
static void gradients_stay(void **unused)
{
    static const uint8_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    tni_kv_settings three = alone;
    uint32_t version = 0;
    talk t;

    (void)unused;
    three.workers = 3;
    begin(&t, true, &three, BYTES);
    t.lends = true;
    for (uint32_t r = 0; r < sizeof orders / sizeof *orders; r++) {
        for (uint32_t i = 0; i < 3; i++) {
            const uint8_t rank = orders[r][i];

            push_of(&t, rank, 1 + r, (uint8_t)(1 + rank));
            push_of(&t, rank, 1 + r, 0x77); /* a copy of what has come counts for nothing */
            assert_in_range(t.kept, 0, i == 2 ? 0 : i + 1);
        }
        all_bytes(tni_kv_server_value(t.server, 0, &version), 123);
        assert_int_equal(version, 1 + r);
    }
    push_of(&t, 0, 1 + version, 1);
    push_of(&t, 2, 1 + version, 3);
    assert_int_equal(t.kept, 2);
    tni_kv_server_destroy(t.server);
    assert_int_equal(t.kept, 0);
}

/* Of one worker: what was kept becomes the value, and is given back at once. */
static void one_stays_alone(void **unused)
{
    uint32_t version;
    talk t;

    (void)unused;
    for (int replaces = 0; replaces < 2; replaces++) {
        begin(&t, replaces, &alone, BYTES);
        t.lends = true;
        for (uint32_t r = 1; r <= ROUNDS; r++) {
            round_push(&t, r, (uint8_t)r);
            assert_int_equal(t.kept, 0);
            all_bytes(tni_kv_server_value(t.server, 0, &version), value_of(r, replaces));
        }
        tni_kv_server_destroy(t.server);
    }
}

/* Landing memory bounds what is kept, too: beyond it the worker hears BUSY, or the sum takes a copy. */
static void kept_within_bounds(void **unused)
{
    tni_kv_settings two = alone;
    uint32_t version;
    talk t;

    (void)unused;
    two.workers = 2;
    two.landing_bytes = BYTES - 1;
    begin(&t, true, &two, BYTES);
    t.lends = true;
    push_of(&t, 1, 1, 2);
    assert_int_equal(t.kept, 0);
    assert_int_equal(t.states[(t.entries - 1) % 4], TNI_KV_BUSY);
    push_of(&t, 0, 1, 1);
    assert_int_equal(t.kept, 0);
    push_of(&t, 1, 1, 2);
    all_bytes(tni_kv_server_value(t.server, 0, &version), 12);
    assert_int_equal(version, 1);
    tni_kv_server_destroy(t.server);
}

static uint32_t asked_round(talk *t, uint8_t type, uint32_t known, uint64_t sequence)
{
    static const uint8_t zeros[BYTES];

    say(t, (tni_kv_header){.type = type, .round = known, .sequence = sequence}, zeros,
        type == TNI_KV_INIT ? BYTES : 0);
    return t->round;
}

/* Worker 1 breaks round 2 before worker 0 pushes in it: worker 0 may pull until then, and its push of round 2
 * is told that it is void. */
static void broken_before_a_push(void **unused)
{
    tni_kv_settings two = alone;
    talk t;

    (void)unused;
    two.workers = 2;
    begin(&t, true, &two, BYTES);
    push_of(&t, 0, 1, 1);
    push_of(&t, 1, 1, 2);
    say(&t,
        (tni_kv_header){
            .type = TNI_KV_PUSH, .flags = TNI_KV_BROKEN, .from = WORKER(1), .round = 2, .sequence = 3},
        NULL, 0);
    assert_int_equal(asked_round(&t, TNI_KV_PULL, 1, 10), 1);
    assert_int_equal(asked_round(&t, TNI_KV_PULL, 1, 11), 1);
    assert_int_equal(asked_round(&t, TNI_KV_INIT, 0, 12), 1); /* of a process that takes a worker's place */
    push_of(&t, 0, 2, 1);
    assert_int_equal(t.states[(t.entries - 1) % 4], TNI_KV_VOID);
    assert_int_equal(asked_round(&t, TNI_KV_INIT, 2, 13), 2);
    push_of(&t, 0, 3, 1);
    push_of(&t, 1, 3, 2);
    assert_int_equal(asked_round(&t, TNI_KV_PULL, 2, 14), 3); /* that of the process before it counts */
    assert_int_equal(asked_round(&t, TNI_KV_INIT, 0, 15), 3);
    tni_kv_server_destroy(t.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_sums),
                                       cmocka_unit_test(moved_in_place),
                                       cmocka_unit_test(nobody_holds),
                                       cmocka_unit_test(short_ones_wait),
                                       cmocka_unit_test(gradients_stay),
                                       cmocka_unit_test(one_stays_alone),
                                       cmocka_unit_test(kept_within_bounds),
                                       cmocka_unit_test(broken_before_a_push)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
