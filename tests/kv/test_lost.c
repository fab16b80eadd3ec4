/*
 * Without rounds: a server came back without its last rounds, and what it hears first of a worker is INIT. A
 * pull of another worker, which waited for a replacement that is credited now, is answered at once. The
 * replacement is told that rounds may be lost. With rounds nothing is credited. A server claims what it has
 * on disk when it has its place, not before, and what it writes last is its newest snapshot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kv/server.h"
#include "kv/update.h"
#include "kv/worker.h"

#define WORKERS 3u
#define BYTES 4000u /* of a part: it travels in a message of its own */
#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)
#define REPLACED 9u /* incarnation of worker 1 */

static tni_kv_header said[8]; /* what the server sent since it last heard something */
static uint16_t said_to[8];
static uint32_t said_count;

static void says(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                 uint64_t bytes, uint32_t priority)
{
    tni_kv_header h;
    const uint8_t *at_payload;
    uint64_t at = 0;

    (void)arg, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type != TNI_KV_BATCH) {
        said_to[said_count % 8] = to;
        said[said_count++ % 8] = h;
    }
    while (h.type == TNI_KV_BATCH && at < bytes) {
        said_to[said_count % 8] = to;
        assert_int_equal(tni_kv_entry_get(&h, payload, &at, &said[said_count++ % 8], &at_payload), TN_OK);
    }
}

static tni_kv_header answer_of(uint16_t to)
{
    for (uint32_t i = 0; i < said_count; i++)
        if (said_to[i] == to)
            return said[i];
    return (tni_kv_header){0};
}

static void hear(tni_kv_server *s, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN : TNI_KV_NODE(TNI_KV_SERVER, 0);
    h.incarnation = h.type == TNI_KV_WELCOME ? 1 : h.from == WORKER(1) ? REPLACED : TNI_KV_RANK(h.from) + 1u;
    tni_kv_encode(&h, payload, text);
    said_count = 0;
    (void)tni_kv_server_receive(s, text, payload, bytes, 1000);
}

static void welcome(tni_kv_server *s)
{
    tni_str text;
    tni_kv_view v;

    assert_int_equal(tni_kv_view_init(&v, WORKERS, 1), TN_OK);
    v.number = v.scheduler = 1;
    v.flags = TNI_KV_STARTED;
    for (uint32_t i = 0; i < WORKERS + 1; i++) {
        v.members[i].state = TNI_KV_ALIVE;
        v.members[i].incarnation = i == 1 ? REPLACED : 1 + i;
    }
    tni_str_init(&text, 4096);
    tni_kv_write(&text, TNI_KV_NODE(TNI_KV_SERVER, 0), 2);
    tni_kv_write(&text, WORKERS + 1, 4);
    tni_kv_view_write(&v, &text);
    hear(s, (tni_kv_header){.type = TNI_KV_WELCOME, .from = TNI_KV_SCHEDULER_NODE, .what = 1, .sequence = 77},
         text.text, text.length);
    tni_str_fini(&text);
    tni_kv_view_fini(&v);
}

static uint64_t takes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg, (void)dtype;
    return what ? 0 : bytes;
}

static const tni_kv_settings settings = {.job = 5,
                                         .workers = WORKERS,
                                         .servers = 1,
                                         .landing_bytes = 1u << 16,
                                         .timeout_ns = (uint64_t)1 << 40,
                                         .control_timeout_ns = (uint64_t)1 << 40,
                                         .beat_ns = (uint64_t)1 << 40};
static const tni_kv_host host = {.send = says};
static const tni_kv_start start = {.birth = 77, .steps = {20, 10}};

static tn_status adds(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                      const void *payload, uint64_t bytes)
{
    (void)arg, (void)h, (void)first, (void)base, (void)sum, (void)payload, (void)bytes;
    return TN_OK;
}

static tn_status applies(void *arg, const tni_kv_header *h, void *of, const void *sum, uint64_t bytes,
                         uint32_t count, uint32_t members)
{
    (void)arg, (void)h, (void)of, (void)sum, (void)bytes, (void)count, (void)members;
    return TN_OK;
}

static const tni_kv_update update = {.payload_bytes = takes, .add = adds, .apply = applies};
static const uint8_t value[BYTES];

static tni_kv_header from(uint32_t rank, uint8_t type, uint32_t round)
{
    static uint64_t sequence;

    return (tni_kv_header){.type = type, .from = WORKER(rank), .round = round, .sequence = ++sequence};
}

static void init_is_heard(void **state)
{
    tni_kv_header any = from(1, TNI_KV_PULL, 0);
    tni_kv_store_part *p;
    tni_kv_server *s;

    (void)state;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &s), TN_OK);
    welcome(s);
    hear(s, from(0, TNI_KV_INIT, 0), value, BYTES);
    p = tni_kv_part_find(s, 0);
    assert_non_null(p);
    for (uint32_t w = 0; w < WORKERS; w++)
        p->slots[w].lost = TNI_KV_UNHEARD;
    hear(s, from(2, TNI_KV_INIT, 0), value, BYTES);
    assert_true(p->slots[2].lost == TNI_KV_UNHEARD); /* with rounds */

    s->node.async = true;
    p->slots[2].applied = 20;
    p->slots[1].applied = 3;
    hear(s, from(0, TNI_KV_PULL, 10), NULL, 0);
    any.flags = TNI_KV_ANY;
    hear(s, any, NULL, 0); /* the replacement, which is credited with 11 rounds */
    assert_int_equal(answer_of(WORKER(1)).round, 3);
    assert_int_equal(p->slots[1].lost, 8);
    hear(s, from(0, TNI_KV_PULL, 12), NULL, 0);
    assert_int_equal(answer_of(WORKER(0)).what, TNI_KV_HELD);
    hear(s, from(2, TNI_KV_INIT, 0), value, BYTES);
    assert_int_equal(answer_of(WORKER(0)).type, TNI_KV_VALUE);
    assert_int_equal(answer_of(WORKER(2)).what, TNI_KV_APPLIED);
    assert_int_equal(p->slots[1].lost, 17);
    tni_kv_server_destroy(s);
}

/* What it answers to a replacement says that rounds may be lost, until that has pushed. */
static void answers_say_lost(void **state)
{
    tni_kv_header push = from(1, TNI_KV_PUSH, 4), any = from(1, TNI_KV_PULL, 0);
    tni_kv_store_part *p;
    tni_kv_server *s;

    (void)state;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &s), TN_OK);
    welcome(s);
    s->node.async = true;
    hear(s, from(1, TNI_KV_INIT, 0), value, BYTES);
    assert_int_equal(answer_of(WORKER(1)).flags & TNI_KV_LOST, 0);
    p = tni_kv_part_find(s, 0);
    p->slots[1] = p->slots[2] = (tni_kv_slot){.applied = 3, .lost = TNI_KV_UNHEARD, .back = true};
    for (uint32_t i = 0; i < 2; i++) { /* the first answer may not arrive */
        hear(s, from(1, TNI_KV_INIT, 0), value, BYTES);
        assert_true(answer_of(WORKER(1)).round == 3 && answer_of(WORKER(1)).flags & TNI_KV_LOST);
        any.sequence += 100 * i;
        any.flags = TNI_KV_ANY;
        hear(s, any, NULL, 0);
        assert_int_equal(answer_of(WORKER(1)).type, TNI_KV_VALUE);
        assert_true(answer_of(WORKER(1)).round == 3 && answer_of(WORKER(1)).flags & TNI_KV_LOST);
    }
    push.flags = TNI_KV_PROBE;
    hear(s, push, NULL, 0);
    assert_int_equal(answer_of(WORKER(1)).what, TNI_KV_ABSENT);
    assert_true(p->slots[1].back);
    push.flags = 0;
    hear(s, push, value, BYTES);
    assert_int_equal(answer_of(WORKER(1)).what, TNI_KV_APPLIED);
    hear(s, from(1, TNI_KV_INIT, 0), value, BYTES);
    assert_true(answer_of(WORKER(1)).round == 4 && !(answer_of(WORKER(1)).flags & TNI_KV_LOST));
    hear(s, from(2, TNI_KV_PULL, 9), NULL, 0); /* it says which round it is in, too */
    assert_false(p->slots[2].back);
    tni_kv_server_destroy(s);
}

/* ---- the first step of a worker in another's place ---- */

static void says_keys(void *arg, int32_t level, const char *line)
{
    assert_int_equal(level, TN_LOG_INFO);
    assert_non_null(strstr(line, "servers have "));
    (void)snprintf(arg, 8, "%s", strstr(line, "have ") + 5);
}

/* Of keys 0 to 3 those in `assigned` have a value first. Rounds before and after the first gradient, then
 * what the log says. */
static const struct {
    uint32_t before[4], assigned, after[4];
    const char *log;
    bool rounds;
} first_steps[] = {
    {{5, 4, 5, 4}, 0, {4, 4, 4, 4}, "2 keys ", false}, {{5, 5, 5, 5}, 0, {5, 5, 5, 5}, "", false},
    {{5, 4, 5, 4}, 1, {6, 4, 4, 4}, "1 keys ", false}, /* a key with a value stays, the others are mended */
    {{5, 5, 5, 5}, 1, {6, 5, 5, 5}, "", false},        /* a value is not taken for a torn step */
    {{5, 4, 5, 4}, 15, {6, 5, 6, 5}, "", false},       {{5, 4, 5, 4}, 0, {5, 4, 5, 4}, "", true},
    {{7, 4, 4, 2}, 0, {7, 4, 4, 2}, "", false}, /* two rounds: pushed more often */
};

static void first_step_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof first_steps / sizeof *first_steps; i++) {
        tni_kv_lot lots[4], *keys[6] = {&lots[0], NULL, &lots[1], &lots[2], &lots[3], NULL};
        char text[16] = "";
        tni_log log = {.fn = says_keys, .arg = text, .level = TN_LOG_INFO};
        tni_kv_worker w = {.keys = keys, .key_count = 6};

        w.node.async = !first_steps[i].rounds;
        w.node.host.log = &log;
        for (uint32_t k = 0; k < 4; k++)
            lots[k] = (tni_kv_lot){.known = true, .sure = true, .round = first_steps[i].before[k]};
        for (uint32_t k = 0; k < 4; k++) {
            if (!(first_steps[i].assigned >> k & 1u))
                continue;
            tni_kv_step_again(&w, &lots[k], TNI_KV_ASSIGN);
            lots[k].round++;
            assert_false(w.pushed);
        }
        for (uint32_t k = 0; k < 4; k++) {
            tni_kv_step_again(&w, &lots[k], 0);
            assert_true(w.pushed != first_steps[i].rounds);
            assert_int_equal(lots[k].round, first_steps[i].after[k]);
        }
        text[7] = 0;
        assert_string_equal(text, first_steps[i].log);
    }
}

/* ---- snapshots ---- */

static uint64_t steps_written[8], writes;

static tn_status written_later(void *arg, uint64_t step, tni_str *text)
{
    (void)arg, (void)text;
    assert_true(writes < 8);
    steps_written[writes++] = step;
    return TN_PENDING;
}

/* What worker 0 is told, and the last step that was written. */
static void asked(tni_kv_server *s, uint64_t step, uint64_t sequence, uint8_t what, uint64_t last)
{
    hear(s, (tni_kv_header){.type = TNI_KV_SNAPSHOT, .from = WORKER(0), .key = step, .sequence = sequence},
         NULL, 0);
    assert_int_equal(answer_of(WORKER(0)).what, what);
    assert_true(writes && steps_written[writes - 1] == last);
}

static void saved(tni_kv_server *s, uint64_t step, tn_status st)
{
    said_count = 0;
    tni_kv_server_saved(s, step, st, 1000);
    assert_int_equal(answer_of(WORKER(0)).what, st ? TNI_KV_FAILED : TNI_KV_APPLIED);
}

/* Without rounds another worker 0 counts its steps from the beginning: what it has written is the newest all
 * the same. What is asked for twice is written once. */
static void another_worker_0_counts_anew(void **state)
{
    const tni_kv_snapshots table = {.write = written_later};
    tni_kv_server *s;

    (void)state;
    writes = 0;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, &table, &s), TN_OK);
    welcome(s);
    asked(s, 19, 90, TNI_KV_HELD, 19); /* with rounds it is what it is */
    saved(s, 19, TN_OK);
    s->node.async = true;
    s->steps[0] = 20;
    asked(s, 1, 100, TNI_KV_HELD, 21);
    asked(s, 1, 100, TNI_KV_HELD, 21);
    asked(s, 1, 101, TNI_KV_BUSY, 21); /* what is new since then is not in it */
    assert_int_equal(writes, 2);
    saved(s, 21, TN_OK);
    asked(s, 1, 100, TNI_KV_APPLIED, 21);
    asked(s, 21, 101, TNI_KV_HELD, 22);
    saved(s, 22, tni_error(TN_E_IO, "the disk is full"));
    asked(s, 21, 101, TNI_KV_HELD, 22); /* tried again */
    saved(s, 22, TN_OK);
    asked(s, 30, 102, TNI_KV_HELD, 30);
    saved(s, 30, TN_OK);
    assert_int_equal(writes, 5);
    asked(s, UINT64_MAX, 103, TNI_KV_HELD, UINT64_MAX);
    saved(s, UINT64_MAX, TN_OK);
    asked(s, 40, 104, TNI_KV_FAILED, UINT64_MAX); /* there is none behind it */
    assert_int_equal(tni_kv_server_status(s), TN_OK);
    tni_kv_server_destroy(s);
}

static uint64_t went_back, steps_beaten[3], beaten;

static tn_status read_back(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    (void)arg, (void)text, (void)bytes;
    went_back = step;
    return TN_OK;
}

static void says_beats(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                       uint64_t bytes, uint32_t priority)
{
    tni_kv_header h;

    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type == TNI_KV_BEAT) {
        steps_beaten[0] = tni_kv_get(payload, 8);
        steps_beaten[1] = tni_kv_get((const uint8_t *)payload + 8, 8);
        steps_beaten[2] = tni_kv_get((const uint8_t *)payload + 16, 8);
        beaten = h.sequence;
    }
    says(arg, to, header, payload, bytes, priority);
}

static void all_hold(tni_kv_server *s, uint64_t step, uint64_t beat)
{
    hear(s,
         (tni_kv_header){
             .type = TNI_KV_BEAT, .from = TNI_KV_SCHEDULER_NODE, .key = step, .sequence = beat},
         NULL, 0);
}

/* Another worker 0 asks while other servers may still write what the one before it asked for, or do not know
 * of it: this one keeps the last step that all hold, and what the scheduler has told that all hold. */
static void another_worker_0_asks(void **state)
{
    const tni_kv_snapshots table = {.write = written_later, .read = read_back};
    const tni_kv_host listens = {.send = says_beats};
    const uint64_t first = (uint64_t)1 << 32, second = (uint64_t)9 << 32, third = (uint64_t)10 << 32;
    tni_kv_server *s;

    (void)state;
    writes = went_back = 0;
    assert_int_equal(tni_kv_server_create(&settings, &listens, &start, &update, &table, &s), TN_OK);
    welcome(s);
    for (uint64_t step = 30; step <= 40; step += 10) { /* it knows of each that it is over */
        asked(s, step, first + step, TNI_KV_HELD, step);
        saved(s, step, TN_OK);
    }
    all_hold(s, 30, beaten);
    asked(s, 50, second + 1, TNI_KV_BUSY, 40);
    assert_true(steps_beaten[0] == 30 && steps_beaten[1] == 0 && steps_beaten[2] == 40);
    all_hold(s, 30, beaten - 1); /* said before it was left out */
    asked(s, 50, second + 1, TNI_KV_BUSY, 40);
    asked(s, 40, second + 1, TNI_KV_APPLIED, 40);
    assert_int_equal(went_back, 0);
    all_hold(s, 30, beaten);
    assert_int_equal(went_back, 30);
    assert_true(s->steps[0] == 30 && s->steps[1] == 0);
    asked(s, 50, second + 1, TNI_KV_HELD, 50);
    saved(s, 50, TN_OK);
    assert_true(s->steps[0] == 50 && s->steps[1] == 30);
    asked(s, 60, third + 1, TNI_KV_BUSY, 50);
    went_back = 0;
    all_hold(s, 50, 0); /* all have it now; the next scheduler says so before it has heard all */
    asked(s, 60, third + 1, TNI_KV_HELD, 60);
    saved(s, 60, TN_OK);
    all_hold(s, 50, beaten);
    assert_int_equal(went_back, 0);
    assert_true(s->steps[0] == 60 && s->steps[1] == 50);
    assert_int_equal(writes, 4);
    tni_kv_server_destroy(s);
}

/* ---- its place, and then its disk ---- */

typedef struct claims {
    uint32_t count;
    tn_status st;
} claims;

static tn_status claimed(void *arg, uint64_t steps[2])
{
    claims *c = arg;

    c->count++;
    steps[0] = 30;
    steps[1] = 20;
    return c->st ? tni_error(c->st, "no room") : TN_OK;
}

static void claims_behind_the_welcome(void **state)
{
    claims c = {0};
    const tni_kv_snapshots table = {.arg = &c, .claim = claimed};
    tni_kv_server *s;

    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        c = (claims){.st = fails ? TN_E_IO : TN_OK};
        assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, &table, &s), TN_OK);
        (void)tni_kv_server_tick(s, 900);
        assert_int_equal(c.count, 0);
        assert_int_equal(s->steps[0], 20);
        welcome(s);
        welcome(s);
        assert_int_equal(c.count, 1);
        assert_int_equal(tni_kv_server_status(s), c.st);
        if (fails)
            assert_string_equal(tni_error_message(), "no room");
        assert_true(s->steps[0] == 30 && s->steps[1] == 20);
        tni_kv_server_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_is_heard),
        cmocka_unit_test(answers_say_lost),
        cmocka_unit_test(first_step_again),
        cmocka_unit_test(another_worker_0_counts_anew),
        cmocka_unit_test(another_worker_0_asks),
        cmocka_unit_test(claims_behind_the_welcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
