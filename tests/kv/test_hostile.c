/*
 * Members that send what they like, well signed; journals, views and snapshots that are torn or changed:
 * nothing crashes, hangs or grows, and what is wrong is TN_E_FORMAT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/server.h"
#include "kv/sim/sim.h"
#include "kv/worker.h"
#include "support/runs.h"

static uint64_t state = 7;

static uint64_t random_next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void hostile_members(void **unused)
{
    const uint64_t seeds = test_runs(test_short() ? 100 : 300);
    tni_mem_stats before, stats;
    sim_result result;

    (void)unused;
    tni_mem_stats_get(&before);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        const sim_options o = {.seed = seed, .mode = -1, .faults = SIM_LOSS | SIM_DOUBLE, .hostile = true};

        (void)sim_run(&o, &result); /* its values are wrong, of course */
        tni_mem_stats_get(&stats);
        if (stats.live_bytes != before.live_bytes)
            fail_msg("seed %llu leaks", (unsigned long long)seed);
    }
    assert_true(stats.peak_bytes < before.peak_bytes + (16u << 20));
}

static void mutated_views(void **unused)
{
    tni_kv_view v, back;
    tni_str text;
    uint64_t taken = 0;

    (void)unused;
    assert_int_equal(tni_kv_view_init(&v, 3, 2), TN_OK);
    v.number = 9;
    v.members[1] = (tni_kv_member){77, 5, 12, TNI_KV_ENDED, 4, (uint8_t *)tni_strdup("abc")};
    tni_str_init(&text, 1u << 20);
    tni_kv_view_write(&v, &text);
    assert_int_equal(text.status, TN_OK);
    assert_int_equal(tni_kv_view_init(&back, 3, 2), TN_OK);
    assert_int_equal(tni_kv_view_read(&back, (uint8_t *)text.text, text.length), TN_OK);
    assert_int_equal(back.number, 9);
    assert_int_equal(back.members[1].last_round, 12);
    assert_memory_equal(back.members[1].address, "abc", 4);
    assert_null(tni_kv_view_member(&v, TNI_KV_NODE(TNI_KV_WORKER, 3)));
    assert_null(tni_kv_view_member(&v, TNI_KV_UNKNOWN));
    for (size_t bytes = 0; bytes < text.length; bytes++)
        assert_int_equal(tni_kv_view_read(&back, (uint8_t *)text.text, bytes), TN_E_FORMAT);
    for (int i = 0; i < 20000; i++) {
        uint8_t *copy = tni_alloc(text.length);
        tn_status st;

        assert_non_null(copy);
        memcpy(copy, text.text, text.length);
        for (uint64_t n = random_next() % 4; n < 4; n++)
            copy[random_next() % text.length] = (uint8_t)random_next();
        st = tni_kv_view_read(&back, copy, text.length);
        assert_true(st == TN_OK || st == TN_E_FORMAT);
        taken += st == TN_OK;
        tni_free(copy);
    }
    assert_true(taken > 0);
    assert_int_equal(tni_kv_view_init(&(tni_kv_view){0}, 0, 1), TN_E_ARG);
    assert_int_equal(tni_kv_view_init(&(tni_kv_view){0}, 1, TNI_KV_RANKS_MAX + 1), TN_E_ARG);
    tni_str_fini(&text);
    tni_kv_view_fini(&v);
    tni_kv_view_fini(&back);
}

static void torn_journals(void **unused)
{
    static const char *const records[] = {"first", "", "the third record"};
    uint64_t ends[4] = {0};
    tni_str text;

    (void)unused;
    tni_str_init(&text, 1u << 20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tni_kv_journal_record(records[i], strlen(records[i]), &text), TN_OK);
        ends[i + 1] = text.length;
    }
    for (uint64_t bytes = 0; bytes <= text.length; bytes++) {
        int whole = 0;

        while (whole < 3 && ends[whole + 1] <= bytes)
            whole++;
        assert_true(tni_kv_journal_whole(text.text, bytes) == ends[whole]);
    }
    for (uint64_t bit = 0; bit < 8 * text.length; bit++) { /* what is behind a changed bit is not read */
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(tni_kv_journal_whole(text.text, text.length) <= bit / 8);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_int_equal(tni_kv_journal_record("", UINT64_MAX, &text), TN_E_ARG);
    tni_str_fini(&text);
}

static void nothing_sent(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES],
                         const void *payload, uint64_t bytes, uint32_t priority)
{
    (void)arg, (void)to, (void)header, (void)payload, (void)bytes, (void)priority;
}

static void changed_snapshots(void **unused)
{
    const tni_kv_settings settings = {.job = 5, .workers = 2, .servers = 1};
    const tni_kv_host host = {.send = nothing_sent};
    const tni_kv_start start = {.birth = 1};
    const tni_kv_update update = {0};
    tni_kv_store_part *p;
    tni_kv_server *s;
    uint32_t version;
    tni_str text;

    (void)unused;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &s), TN_OK);
    for (uint64_t key = 0; key < 3; key++) {
        assert_int_equal(tni_kv_part_create(s, key << 16, 0, 40 * key, &p), TN_OK);
        p->version = (uint32_t)key + 7;
        memset(p->value, 9, 40 * key);
    }
    tni_str_init(&text, 1u << 20);
    assert_int_equal(tni_kv_snapshot_write(s, &text), TN_OK);
    tni_kv_snapshot_seal(text.text, text.length);
    tni_kv_parts_clear(s);
    assert_int_equal(tni_kv_snapshot_read(s, text.text, text.length), TN_OK);
    assert_non_null(tni_kv_server_value(s, 2 << 16, &version));
    assert_int_equal(version, 9);
    for (uint64_t i = 0; i < 5000; i++) {
        const uint64_t bit = random_next() % (8 * text.length), bytes = random_next() % text.length;
        tn_status st;

        tni_kv_parts_clear(s);
        assert_int_equal(tni_kv_snapshot_read(s, text.text, bytes), TN_E_FORMAT);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(tni_kv_snapshot_read(s, text.text, text.length), TN_E_FORMAT);
        tni_kv_snapshot_seal(text.text, text.length);
        tni_kv_parts_clear(s);
        st = tni_kv_snapshot_read(s, text.text, text.length); /* well signed: no more than an error */
        assert_true(st == TN_OK || st == TN_E_FORMAT || st == TN_E_NOMEM);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        tni_kv_snapshot_seal(text.text, text.length);
    }
    tni_str_fini(&text);
    tni_kv_server_destroy(s);
}

/* ---- one server, and what it answers ---- */

typedef struct talk {
    tni_kv_server *s;
    uint32_t types[TNI_KV_TYPE_END]; /* messages that the server sent */
    uint8_t what;                    /* of the last ACK */
    uint16_t to;                     /* whom it went to */
    char text[512];                  /* its payload */
    uint32_t runs;                   /* of the command */
    tn_status apply;                 /* how the update ends */
} talk;

static void heard(talk *t, const tni_kv_header *h, const uint8_t *payload)
{
    t->types[h->type]++;
    if (h->type != TNI_KV_ACK)
        return;
    t->what = h->what;
    t->to = h->to;
    memset(t->text, 0, sizeof t->text);
    memcpy(t->text, payload, h->bytes < sizeof t->text ? h->bytes : sizeof t->text - 1);
}

static void talk_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority)
{
    tni_kv_header h, entry;
    const uint8_t *at_payload;

    (void)to, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type != TNI_KV_BATCH)
        heard(arg, &h, payload);
    for (uint64_t at = 0; h.type == TNI_KV_BATCH && at < bytes;) {
        assert_int_equal(tni_kv_entry_get(&h, payload, &at, &entry, &at_payload), TN_OK);
        heard(arg, &entry, at_payload);
    }
}

static uint64_t talk_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == 0 && what == 0 ? bytes : 0;
}

static tn_status talk_add(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                          const void *payload, uint64_t bytes)
{
    (void)arg, (void)h, (void)first, (void)base;
    memmove(sum, payload, bytes);
    return TN_OK;
}

static tn_status talk_apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                            uint32_t count, uint32_t members)
{
    const talk *t = arg;

    (void)h, (void)count, (void)members;
    memcpy(value, sum, bytes);
    return t->apply ? tni_error(t->apply, "the step has no rate") : TN_OK;
}

static tn_status talk_command(void *arg, const char *text, uint64_t bytes)
{
    talk *t = arg;

    (void)text, (void)bytes;
    t->runs++;
    return tni_error(TN_E_ATTR, "no such optimizer");
}

static void say(talk *t, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN : TNI_KV_NODE(TNI_KV_SERVER, 0);
    h.incarnation = TNI_KV_ROLE(h.from) == TNI_KV_WORKER ? 1 + TNI_KV_RANK(h.from) : 1;
    tni_kv_encode(&h, payload, text);
    (void)tni_kv_server_receive(t->s, text, payload, bytes, 1000);
}

static const tni_kv_settings talk_settings = {.job = 5,
                                              .workers = 2,
                                              .servers = 1,
                                              .landing_bytes = 1u << 16,
                                              .server_bytes = 1u << 16,
                                              .timeout_ns = 1u << 30,
                                              .control_timeout_ns = 1u << 30,
                                              .beat_ns = 1u << 30,
                                              .part_bytes = 4096,
                                              .credit_bytes = 4096};

#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)

static void view_of(tni_str *text, uint32_t number, uint32_t end_round)
{
    tni_kv_view v;

    assert_int_equal(tni_kv_view_init(&v, 2, 1), TN_OK);
    v.number = number;
    v.end_round = end_round;
    v.scheduler = 1;
    v.flags = TNI_KV_STARTED;
    for (uint32_t i = 0; i < 3; i++) {
        v.members[i].state = TNI_KV_ALIVE;
        v.members[i].incarnation = 1 + i;
    }
    tni_kv_view_write(&v, text);
    tni_kv_view_fini(&v);
}

/* A server that is a member, with a part of 40 bytes. */
static void talk_begin(talk *t)
{
    static const uint8_t value[40];
    const tni_kv_host host = {.arg = t, .send = talk_send};
    const tni_kv_start start = {.birth = 77};
    const tni_kv_update update = {
        .arg = t, .payload_bytes = talk_bytes, .add = talk_add, .apply = talk_apply, .command = talk_command};
    tni_str text;

    memset(t, 0, sizeof *t);
    assert_int_equal(tni_kv_server_create(&talk_settings, &host, &start, &update, NULL, &t->s), TN_OK);
    tni_str_init(&text, 4096);
    tni_kv_write(&text, TNI_KV_NODE(TNI_KV_SERVER, 0), 2);
    tni_kv_write(&text, 3, 4);
    view_of(&text, 1, UINT32_MAX);
    say(t, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text, text.length);
    tni_str_fini(&text);
    assert_int_equal(tni_kv_server_id(t->s), TNI_KV_NODE(TNI_KV_SERVER, 0));
    say(t, (tni_kv_header){.type = TNI_KV_INIT, .from = WORKER(0), .sequence = 1}, value, sizeof value);
    assert_int_equal(t->what, TNI_KV_APPLIED);
}

/* No bytes of a code that does not exist: nothing is read behind them. */
static void push_of_no_code(void **unused)
{
    uint8_t gradient[40] = {0};
    uint32_t version;
    talk t;

    (void)unused;
    talk_begin(&t);
    for (int what = 1; what < 256; what++)
        say(&t,
            (tni_kv_header){
                .type = TNI_KV_PUSH, .from = WORKER(0), .what = (uint8_t)what, .round = 1, .sequence = 2},
            NULL, 0);
    say(&t, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(0), .round = 1}, gradient, sizeof gradient);
    assert_int_equal(t.types[TNI_KV_ACK], 1); /* that of the first value */
    assert_non_null(tni_kv_server_value(t.s, 0, &version));
    assert_int_equal(version, 0);
    tni_kv_server_destroy(t.s);
}

static void view_of_a_worker(void **unused)
{
    tni_str text;
    talk t;

    (void)unused;
    talk_begin(&t);
    tni_str_init(&text, 4096);
    view_of(&text, 9, UINT32_MAX);
    say(&t, (tni_kv_header){.type = TNI_KV_VIEW, .from = WORKER(0)}, text.text, text.length);
    assert_int_equal(t.s->node.view.number, 1);
    say(&t, (tni_kv_header){.type = TNI_KV_VIEW}, text.text, text.length);
    assert_int_equal(t.s->node.view.number, 9);
    tni_str_fini(&text);
    tni_kv_server_destroy(t.s);
}

/* The answer was lost: asked again, the server says the same, and runs nothing again. */
static void command_that_failed(void **unused)
{
    talk t;

    (void)unused;
    talk_begin(&t);
    for (int i = 0; i < 3; i++) {
        say(&t, (tni_kv_header){.type = TNI_KV_COMMAND, .from = WORKER(0), .sequence = 5}, "x", 1);
        assert_int_equal(t.what, TNI_KV_FAILED);
        assert_int_equal(tni_kv_get((uint8_t *)t.text, 4), TN_E_ATTR);
        assert_string_equal(t.text + 4, "no such optimizer");
        (void)tni_error(TN_E_IO, "another error");
    }
    assert_int_equal(t.runs, 1);
    say(&t, (tni_kv_header){.type = TNI_KV_SNAPSHOT, .from = WORKER(0), .sequence = 6}, NULL, 0);
    assert_int_equal(t.what, TNI_KV_FAILED);
    assert_int_equal(tni_kv_get((uint8_t *)t.text, 4), TN_E_UNSUPPORTED);
    tni_kv_server_destroy(t.s);
}

/* What a member stores is refused before it takes memory, and the member hears why. */
static void values_that_are_refused(void **unused)
{
    static const struct {
        uint8_t dtype;
        uint32_t bytes;
        tn_status status;
    } wrong[] = {{TN_DTYPE_LIMIT, 40, TN_E_DTYPE}, {255, 40, TN_E_DTYPE},    {255, 0, TN_E_DTYPE},
                 {TN_F64, 40, TN_E_DTYPE},         {TN_F32, 39, TN_E_SHAPE}, {TN_F32, 3, TN_E_SHAPE}};
    static const uint8_t value[4096];
    uint64_t before;
    talk t;

    (void)unused;
    talk_begin(&t);
    before = tni_kv_server_bytes(t.s);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        say(&t,
            (tni_kv_header){.type = TNI_KV_INIT,
                            .from = WORKER(0),
                            .dtype = wrong[i].dtype,
                            .key = (i + 1) << 16,
                            .sequence = 10 + i},
            value, wrong[i].bytes);
        assert_int_equal(t.what, TNI_KV_FAILED);
        assert_int_equal(tni_kv_get((uint8_t *)t.text, 4), wrong[i].status);
        assert_int_equal(tni_kv_server_bytes(t.s), before);
    }
    for (uint64_t key = 1; key < 1000; key++) /* empty ones take memory, too */
        say(&t,
            (tni_kv_header){
                .type = TNI_KV_INIT, .from = WORKER(0), .key = (key + 100) << 16, .sequence = 100 + key},
            value, key % 2 ? 0 : sizeof value);
    assert_int_equal(t.what, TNI_KV_FAILED);
    assert_int_equal(tni_kv_get((uint8_t *)t.text, 4), TN_E_NOMEM);
    assert_non_null(strstr(t.text + 4, "kvstore.server_bytes is 65536"));
    assert_true(tni_kv_server_bytes(t.s) + t.s->part_count * sizeof(tni_kv_store_part) <= 65536);
    assert_true(t.s->part_count > 7);
    assert_int_equal(tni_kv_server_status(t.s), TN_OK);
    tni_kv_server_destroy(t.s);
}

static uint64_t written[8], writes;

static tn_status written_later(void *arg, uint64_t step, tni_str *text)
{
    (void)arg, (void)text;
    assert_true(writes < 8);
    written[writes++] = step;
    return TN_PENDING;
}

static uint8_t snapshot_asked(talk *t, uint64_t step, uint32_t rank, uint64_t sequence)
{
    t->what = 0;
    say(t, (tni_kv_header){.type = TNI_KV_SNAPSHOT, .from = WORKER(rank), .key = step, .sequence = sequence},
        NULL, 0);
    return t->what;
}

/* Each step is written once, one after the other, however often worker 0 asks for it. */
static void snapshots_one_by_one(void **unused)
{
    talk t;

    (void)unused;
    writes = 0;
    talk_begin(&t);
    t.s->snapshots.write = written_later;
    assert_int_equal(snapshot_asked(&t, 4, 0, 10), TNI_KV_HELD);
    assert_int_equal(snapshot_asked(&t, 4, 1, 3), TNI_KV_APPLIED); /* a mark of worker 1 */
    assert_int_equal(snapshot_asked(&t, 6, 0, 11), TNI_KV_BUSY);
    assert_int_equal(snapshot_asked(&t, 4, 0, 10), TNI_KV_HELD);
    assert_int_equal(writes, 1);
    tni_kv_server_saved(t.s, 6, TN_OK, 1000); /* nobody writes it */
    assert_int_equal(t.what, TNI_KV_HELD);
    tni_kv_server_saved(t.s, 4, TN_OK, 1000);
    assert_int_equal(t.what, TNI_KV_APPLIED);
    assert_int_equal(t.to, WORKER(0));
    assert_int_equal(snapshot_asked(&t, 4, 1, 3), TNI_KV_APPLIED);
    for (uint64_t step = 6; step <= 8; step += 2) {
        assert_int_equal(snapshot_asked(&t, step, 0, 5 + step), TNI_KV_HELD);
        tni_kv_server_saved(t.s, step, TN_OK, 1000);
    }
    assert_int_equal(writes, 3);
    assert_int_equal(snapshot_asked(&t, 4, 0, 10), 0); /* a late copy */
    assert_int_equal(writes, 3);
    assert_int_equal(snapshot_asked(&t, 10, 0, 14), TNI_KV_HELD);
    tni_kv_server_saved(t.s, 10, tni_error(TN_E_IO, "the disk is full"), 1000);
    assert_int_equal(t.what, TNI_KV_FAILED);
    assert_int_equal(snapshot_asked(&t, 10, 0, 14), TNI_KV_HELD); /* tried again */
    tni_kv_server_saved(t.s, 10, TN_OK, 1000);
    assert_int_equal(t.what, TNI_KV_APPLIED);
    assert_int_equal(written[4], 10);
    tni_kv_server_destroy(t.s);
}

/* Whatever its status: the server stops, and both workers of the round hear why. */
static void step_that_fails(void **unused)
{
    static const tn_status statuses[] = {TN_E_STATE, TN_E_FORMAT, TN_E_ATTR};
    uint8_t gradient[40] = {0};

    (void)unused;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        uint32_t before;
        talk t;

        talk_begin(&t);
        t.apply = statuses[i];
        say(&t, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(0), .round = 1, .sequence = 2}, gradient,
            sizeof gradient);
        assert_int_equal(t.what, TNI_KV_HELD);
        before = t.types[TNI_KV_ACK];
        say(&t, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(1), .round = 1, .sequence = 3}, gradient,
            sizeof gradient);
        assert_int_equal(t.types[TNI_KV_ACK], before + 2);
        assert_int_equal(t.what, TNI_KV_FAILED);
        assert_int_equal(tni_kv_get((uint8_t *)t.text, 4), statuses[i]);
        assert_string_equal(t.text + 4, "the step has no rate");
        assert_int_equal(tni_kv_server_status(t.s), statuses[i]);
        tni_kv_server_destroy(t.s);
    }
}

/* ---- one worker, and what it is told ---- */

static tn_status told;
static uint32_t told_count;
static uint64_t asked;     /* sequence of the last request that it sent */
static uint32_t pushed[2]; /* by key: round of its last push, a break too */

static void worker_told(void *arg, uint64_t cookie, tn_status st)
{
    (void)arg, (void)cookie;
    told = st;
    told_count++;
}

static void worker_sends(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES],
                         const void *payload, uint64_t bytes, uint32_t priority)
{
    tni_kv_header h, entry;
    const uint8_t *at_payload;

    (void)arg, (void)to, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    for (uint64_t at = 0; h.type == TNI_KV_BATCH && at < bytes;) {
        assert_int_equal(tni_kv_entry_get(&h, payload, &at, &entry, &at_payload), TN_OK);
        asked = entry.sequence;
        if (entry.type == TNI_KV_PUSH)
            pushed[entry.key >> 16 & 1] = entry.round;
    }
}

static void worker_hears(tni_kv_worker *w, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN : WORKER(0);
    h.incarnation = h.from ? 3 : 1;
    tni_kv_encode(&h, payload, text);
    (void)tni_kv_worker_receive(w, text, payload, bytes, 1000);
}

static void worker_begin(uint32_t end_round, tni_kv_worker **out)
{
    const tni_kv_host host = {.send = worker_sends};
    const tni_kv_start start = {.birth = 77};
    tni_str text;

    assert_int_equal(tni_kv_worker_create(&talk_settings, &host, &start, worker_told, out), TN_OK);
    tni_str_init(&text, 4096);
    tni_kv_write(&text, WORKER(0), 2);
    tni_kv_write(&text, 1, 4);
    view_of(&text, 1, end_round);
    worker_hears(*out, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text,
                 text.length);
    tni_str_fini(&text);
    assert_true(tni_kv_worker_ready(*out));
}

/* The text of a server is cut, not lost. */
static void long_failure(void **unused)
{
    const tni_kv_request command = {.kind = TNI_KV_DO_COMMAND, .in = "x", .bytes = 1};
    uint8_t answer[4 + 500];
    tni_kv_worker *w;

    (void)unused;
    worker_begin(UINT32_MAX, &w);
    told_count = 0;
    assert_int_equal(tni_kv_worker_request(w, &command, 1000), TN_OK);
    (void)tni_kv_worker_tick(w, 1000);
    memset(answer, 'a', sizeof answer);
    tni_kv_put(answer, TN_E_ATTR, 4);
    worker_hears(w,
                 (tni_kv_header){.type = TNI_KV_ACK,
                                 .what = TNI_KV_FAILED,
                                 .from = TNI_KV_NODE(TNI_KV_SERVER, 0),
                                 .sequence = asked},
                 answer, sizeof answer);
    assert_int_equal(told_count, 1);
    assert_int_equal(told, TN_E_ATTR);
    assert_non_null(strstr(tni_error_message(), "server 0 says: aaaaaaaa"));
    tni_kv_worker_destroy(w);
}

static void steps_out_of_range(void **unused)
{
    tni_kv_request r = {.kind = TNI_KV_DO_SNAPSHOT};
    tni_kv_worker *w;

    (void)unused;
    worker_begin(UINT32_MAX, &w);
    assert_int_equal(tni_kv_worker_request(w, &r, 1000), TN_E_ARG);
    r.kind = TNI_KV_DO_END;
    r.step = UINT32_MAX;
    assert_int_equal(tni_kv_worker_request(w, &r, 1000), TN_E_ARG);
    r.step = (uint64_t)1 << 40;
    assert_int_equal(tni_kv_worker_request(w, &r, 1000), TN_E_ARG);
    tni_kv_worker_destroy(w);
}

/* Two keys; key N has 2 - N rounds behind it. */
static tni_kv_worker *keys_begin(uint32_t end_round)
{
    static const uint8_t value[40];
    tni_kv_worker *w;

    worker_begin(end_round, &w);
    for (uint32_t key = 0; key < 2; key++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_INIT, .key = key, .in = value};

        assert_int_equal(tni_kv_worker_key(w, key, 0, 10, 4), TN_OK);
        assert_int_equal(tni_kv_worker_request(w, &r, 1000), TN_OK);
        (void)tni_kv_worker_tick(w, 1000);
        worker_hears(w,
                     (tni_kv_header){.type = TNI_KV_ACK,
                                     .what = TNI_KV_APPLIED,
                                     .from = TNI_KV_NODE(TNI_KV_SERVER, 0),
                                     .key = (uint64_t)key << 16,
                                     .round = 2 - key,
                                     .sequence = asked},
                     NULL, 0);
        assert_int_equal(tni_kv_worker_round(w, key), 2 - key);
    }
    return w;
}

/* Keys behind one that has all its rounds are broken, too. */
static void break_at_the_end(void **unused)
{
    tni_kv_worker *w = keys_begin(2);

    (void)unused;
    assert_int_equal(tni_kv_worker_break(w, 4, 1000), TN_OK);
    assert_int_equal(tni_kv_worker_round(w, 0), 2);
    assert_int_equal(tni_kv_worker_round(w, 1), 2);
    tni_kv_worker_destroy(w);
}

/* A push for which there is no memory comes later, or its step is broken for all: nobody waits for it. */
static bool push_without_memory(uint64_t nth, bool forever)
{
    static const uint8_t gradient[40];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .key = 1, .in = gradient};
    uint64_t now = 1000;
    tni_kv_worker *w = keys_begin(UINT32_MAX);
    tn_status st;
    bool hit;

    told_count = pushed[1] = 0;
    tni_vec_fini(&w->lanes[0].heap); /* they grow again */
    tni_vec_fini(&w->flights);
    tni_mem_fail_at(nth, forever, true);
    st = tni_kv_worker_request(w, &r, now);
    (void)tni_kv_worker_tick(w, now);
    hit = tni_mem_failed();
    tni_mem_fail_at(0, false, true);
    for (int i = 0; i < 8 && pushed[1] != 2; i++)
        now = tni_kv_worker_tick(w, now);
    assert_int_equal(told_count, 0);
    assert_int_equal(pushed[1], 2);
    assert_int_equal(tni_kv_worker_request(w, &r, now), st ? TN_E_STATE : TN_OK);
    tni_kv_worker_destroy(w);
    return hit;
}

static void pushes_without_memory(void **unused)
{
    uint64_t nth = 1;

    for ((void)unused; push_without_memory(nth, false); nth++)
        assert_true(push_without_memory(nth, true));
    assert_true(nth > 2);
}

static tn_status journal_keep(void *arg, const void *record, uint64_t bytes)
{
    return tni_str_add_bytes(arg, record, bytes);
}

static void journal_of_another_job(void **unused)
{
    const tni_kv_host host = {.send = nothing_sent};
    tni_kv_settings settings = talk_settings;
    tni_kv_scheduler *s = NULL;
    tni_str text;
    const tni_kv_journal journal = {&text, journal_keep, NULL};

    (void)unused;
    tni_str_init(&text, 1u << 16);
    assert_int_equal(tni_kv_scheduler_create(&settings, &host, &journal, NULL, 0, 1, &s), TN_OK);
    tni_kv_scheduler_destroy(s);
    assert_true(text.length > 0);
    assert_int_equal(tni_kv_scheduler_create(&settings, &host, NULL, text.text, text.length, 1, &s), TN_OK);
    assert_int_equal(tni_kv_scheduler_view(s)->scheduler, 2);
    tni_kv_scheduler_destroy(s);
    settings.job++;
    assert_int_equal(tni_kv_scheduler_create(&settings, &host, NULL, text.text, text.length, 1, &s),
                     TN_E_FORMAT);
    tni_str_fini(&text);
}

typedef struct disk {
    tni_str text;
    uint64_t half; /* append: bytes of the record that are written before it fails; 0: all of it */
    uint32_t appends, replaces;
} disk;

static tn_status disk_append(void *arg, const void *record, uint64_t bytes)
{
    disk *d = arg;

    d->appends++;
    if (!d->half)
        return tni_str_add_bytes(&d->text, record, bytes);
    (void)tni_str_add_bytes(&d->text, record, d->half < bytes ? d->half : bytes);
    return tni_error(TN_E_IO, "the disk is full");
}

static tn_status disk_replace(void *arg, const void *record, uint64_t bytes)
{
    disk *d = arg;

    d->replaces++;
    d->text.length = 0;
    return tni_str_add_bytes(&d->text, record, bytes);
}

/* Incarnation of the scheduler that starts on this journal, which it does not write. */
static uint32_t start_on(const char *text, uint64_t bytes)
{
    const tni_kv_host host = {.send = nothing_sent};
    tni_kv_scheduler *s = NULL;
    uint32_t incarnation;

    assert_int_equal(tni_kv_scheduler_create(&talk_settings, &host, NULL, text, bytes, 1, &s), TN_OK);
    incarnation = tni_kv_scheduler_view(s)->scheduler;
    tni_kv_scheduler_destroy(s);
    return incarnation;
}

/* Each start writes a record. Torn at any byte of that, what is read is what was before it or it. */
static void journal_is_compacted(void **unused)
{
    const tni_kv_host host = {.send = nothing_sent};
    disk d = {.half = 0};
    const tni_kv_journal journal = {&d, disk_append, disk_replace};
    tni_kv_scheduler *s = NULL;
    uint64_t record = 0, before;
    char *kept;

    (void)unused;
    tni_str_init(&d.text, 1u << 16);
    for (uint32_t i = 1; i <= 60; i++) {
        const uint32_t replaces = d.replaces;

        before = d.text.length;
        assert_int_equal(
            tni_kv_scheduler_create(&talk_settings, &host, &journal, d.text.text, d.text.length, 1, &s),
            TN_OK);
        tni_kv_scheduler_destroy(s);
        record = i == 1 ? d.text.length : record;
        assert_true(d.text.length <= 17 * record);
        assert_int_equal(start_on(d.text.text, d.text.length), i + 1);
        for (uint64_t bytes = before; d.replaces == replaces && bytes < d.text.length; bytes++)
            assert_int_equal(start_on(d.text.text, bytes), i);
    }
    assert_true(d.replaces >= 3 && d.appends > 12 * d.replaces);
    before = d.text.length;
    assert_non_null(kept = tni_alloc(before));
    memcpy(kept, d.text.text, before);
    for (d.half = 1; d.half < record; d.half += 7) { /* an append that failed is not appended to */
        const uint32_t replaces = d.replaces;

        d.text.length = 0;
        assert_int_equal(tni_str_add_bytes(&d.text, kept, before), TN_OK);
        assert_int_equal(
            tni_kv_scheduler_create(&talk_settings, &host, &journal, d.text.text, d.text.length, 1, &s),
            TN_OK);
        assert_int_equal(start_on(d.text.text, d.text.length), 61);
        (void)tni_kv_scheduler_tick(s, 1000000000u);
        assert_int_equal(d.replaces, replaces + 1);
        assert_int_equal(start_on(d.text.text, d.text.length), 62);
        tni_kv_scheduler_destroy(s);
        d.text.length = record - 1; /* a torn end is not appended to either: the next one */
        assert_int_equal(
            tni_kv_scheduler_create(&talk_settings, &host, &journal, d.text.text, d.text.length, 1, &s),
            TN_OK);
        assert_int_equal(d.replaces, replaces + 2);
        tni_kv_scheduler_destroy(s);
    }
    tni_free(kept);
    tni_str_fini(&d.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_members),        cmocka_unit_test(mutated_views),
        cmocka_unit_test(torn_journals),          cmocka_unit_test(changed_snapshots),
        cmocka_unit_test(push_of_no_code),        cmocka_unit_test(view_of_a_worker),
        cmocka_unit_test(command_that_failed),    cmocka_unit_test(step_that_fails),
        cmocka_unit_test(long_failure),           cmocka_unit_test(steps_out_of_range),
        cmocka_unit_test(break_at_the_end),       cmocka_unit_test(pushes_without_memory),
        cmocka_unit_test(journal_of_another_job), cmocka_unit_test(values_that_are_refused),
        cmocka_unit_test(snapshots_one_by_one),   cmocka_unit_test(journal_is_compacted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
