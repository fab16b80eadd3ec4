/*
 * What members of the wrong role say has no effect; a worker in another one's place goes on behind its
 * rounds, and without rounds nobody waits for those of it that a server lost; a push is asked for, not sent
 * twice, and gives its credit back while its server has no room; a server whose snapshot is not written yet
 * loads it later, and says so if workers cut their arrays otherwise; a scheduler is killed in a replacement,
 * and stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/server.h"
#include "kv/worker.h"

#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)
#define SERVER TNI_KV_NODE(TNI_KV_SERVER, 0)
#define BYTES 4000u /* of a part: it travels in a message of its own */
#define NOW 1000u
#define SECOND 1000000000ull

static const tni_kv_settings settings = {.job = 5,
                                         .workers = 2,
                                         .servers = 1,
                                         .landing_bytes = 1u << 16,
                                         .timeout_ns = (uint64_t)1 << 40,
                                         .control_timeout_ns = (uint64_t)1 << 40,
                                         .beat_ns = (uint64_t)1 << 40,
                                         .part_bytes = 4096,
                                         .credit_bytes = 1u << 20};

static tni_kv_header said[16]; /* what the machine sent since it was last asked to do something */
static char failed[400];       /* what it said in a FAILED */
static uint32_t said_count, told_count;
static tn_status told;

static void sends(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                  uint64_t bytes, uint32_t priority)
{
    tni_kv_header h;
    const uint8_t *at_payload;
    uint64_t at = 0;

    (void)arg, (void)to, (void)priority;
    assert_int_equal(tni_kv_decode(header, payload, bytes, &h), TN_OK);
    if (h.type != TNI_KV_BATCH) {
        said[said_count++ % 16] = h;
        return;
    }
    while (at < bytes) {
        tni_kv_header *entry = &said[said_count++ % 16];

        assert_int_equal(tni_kv_entry_get(&h, payload, &at, entry, &at_payload), TN_OK);
        if (entry->type == TNI_KV_ACK && entry->what == TNI_KV_FAILED)
            (void)snprintf(failed, sizeof failed, "%.*s", (int)entry->bytes - 4,
                           (const char *)at_payload + 4);
    }
}

static void tells(void *arg, uint64_t cookie, tn_status st)
{
    (void)arg, (void)cookie;
    told = st;
    told_count++;
}

static const tni_kv_host host = {.send = sends};
static const tni_kv_start start = {.birth = 77};

/* The view of two workers and servers, incarnations 1 and on. */
static void view_add_of(tni_str *text, uint32_t servers, uint32_t number, uint32_t epoch_view, uint64_t cut)
{
    tni_kv_view v;

    assert_int_equal(tni_kv_view_init(&v, 2, servers), TN_OK);
    v.number = number;
    v.epoch_view = epoch_view;
    v.cut = cut;
    v.scheduler = 1;
    v.flags = TNI_KV_STARTED;
    for (uint32_t i = 0; i < 2 + servers; i++) {
        v.members[i].state = TNI_KV_ALIVE;
        v.members[i].incarnation = 1 + i;
    }
    tni_kv_view_write(&v, text);
    tni_kv_view_fini(&v);
}

static void view_add(tni_str *text, uint32_t number, uint32_t epoch_view, uint64_t cut)
{
    view_add_of(text, 1, number, epoch_view, cut);
}

typedef struct machine { /* one of the three */
    tni_kv_scheduler *scheduler;
    tni_kv_server *server;
    tni_kv_worker *worker;
    uint64_t now;
} machine;

static uint32_t incarnations[4] = {1, 3, 1, 0}; /* by role; of workers the first one's */
static uint32_t later;                          /* of the second worker: in another's place */

static void hear(machine *m, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.job = 5;
    h.bytes = bytes;
    h.view = m->scheduler ? tni_kv_scheduler_view(m->scheduler)->number : 1;
    h.to = h.type == TNI_KV_WELCOME ? TNI_KV_UNKNOWN
           : m->server              ? SERVER
           : m->worker              ? WORKER(0)
                                    : TNI_KV_SCHEDULER_NODE;
    h.incarnation =
        incarnations[TNI_KV_ROLE(h.from)] +
        (TNI_KV_ROLE(h.from) == TNI_KV_WORKER) * (TNI_KV_RANK(h.from) + (TNI_KV_RANK(h.from) ? later : 0));
    tni_kv_encode(&h, payload, text);
    said_count = told_count = 0;
    if (m->server)
        (void)tni_kv_server_receive(m->server, text, payload, bytes, m->now);
    else if (m->worker)
        (void)tni_kv_worker_receive(m->worker, text, payload, bytes, m->now);
    else
        (void)tni_kv_scheduler_receive(m->scheduler, text, payload, bytes, m->now);
}

static void welcome(machine *m, uint16_t id, uint32_t incarnation)
{
    tni_str text;

    tni_str_init(&text, 4096);
    tni_kv_write(&text, id, 2);
    tni_kv_write(&text, incarnation, 4);
    view_add(&text, 1, 0, 0);
    hear(m, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text, text.length);
    tni_str_fini(&text);
}

/* ---- a worker ---- */

static void worker_begin(machine *m)
{
    *m = (machine){.now = NOW};
    assert_int_equal(tni_kv_worker_create(&settings, &host, &start, tells, &m->worker), TN_OK);
    welcome(m, WORKER(0), 1);
    assert_true(tni_kv_worker_ready(m->worker));
    assert_int_equal(tni_kv_worker_key(m->worker, 0, 0, BYTES / 4, 4), TN_OK);
}

static void ask(machine *m, tni_kv_kind kind, void *memory)
{
    const tni_kv_request r = {.kind = kind, .in = memory, .out = memory, .any = kind == TNI_KV_DO_PULL};

    said_count = told_count = 0;
    assert_int_equal(tni_kv_worker_request(m->worker, &r, m->now), TN_OK);
    (void)tni_kv_worker_tick(m->worker, m->now);
    assert_int_equal(said_count, 1);
}

/* The server's answer to what the worker said last. */
static void answer(machine *m, uint8_t what, uint32_t round, const void *value)
{
    tni_kv_header h = said[0];

    h = (tni_kv_header){.type = value ? TNI_KV_VALUE : TNI_KV_ACK,
                        .from = SERVER,
                        .what = what,
                        .key = h.key,
                        .round = round,
                        .sequence = h.sequence};
    hear(m, h, value, value ? BYTES : 0);
}

/* The process before it had pushed round 2, which became complete between the two answers. */
static void round_behind_an_init(void **unused)
{
    static uint8_t memory[BYTES], value[BYTES];
    machine m;

    (void)unused;
    worker_begin(&m);
    ask(&m, TNI_KV_DO_INIT, memory);
    answer(&m, TNI_KV_APPLIED, 1, NULL);
    assert_int_equal(told_count, 1);
    assert_int_equal(tni_kv_worker_round(m.worker, 0), 1);
    ask(&m, TNI_KV_DO_PULL, memory);
    answer(&m, 0, 2, value);
    assert_int_equal(tni_kv_worker_round(m.worker, 0), 2);
    ask(&m, TNI_KV_DO_PUSHPULL, memory);
    assert_int_equal(said[0].round, 3);
    answer(&m, 0, 3, value);
    assert_int_equal(told_count, 1);
    tni_kv_worker_destroy(m.worker);
}

static void tick_until_said(machine *m)
{
    said_count = 0;
    for (int i = 0; i < 20 && !said_count; i++)
        m->now = tni_kv_worker_tick(m->worker, m->now);
    assert_int_equal(said_count, 1);
}

/* Its payload leaves again only when the server says that it never came. */
static void push_is_asked_for(void **unused)
{
    static uint8_t memory[BYTES], value[BYTES];
    machine m;

    (void)unused;
    worker_begin(&m);
    ask(&m, TNI_KV_DO_INIT, memory);
    answer(&m, TNI_KV_APPLIED, 0, NULL);
    ask(&m, TNI_KV_DO_PUSHPULL, memory);
    assert_int_equal(said[0].bytes, BYTES);
    answer(&m, TNI_KV_ABSENT, 0, NULL); /* the part is not there yet: later */
    assert_int_equal(said_count, 0);
    for (int i = 0; i < 2; i++) {
        tick_until_said(&m);
        assert_true(said[0].type == TNI_KV_PUSH && said[0].flags & TNI_KV_PROBE);
        assert_int_equal(said[0].bytes, 0);
    }
    answer(&m, TNI_KV_ABSENT, 0, NULL);
    assert_int_equal(said_count, 1);
    assert_true(said[0].bytes == BYTES && !(said[0].flags & TNI_KV_PROBE) && said[0].flags & TNI_KV_RETRY);
    answer(&m, 0, 1, value);
    assert_int_equal(told_count, 1);
    assert_int_equal(told, TN_OK);
    tni_kv_worker_destroy(m.worker);
}

/* A server without room says BUSY. What waits for credit behind that push may be what makes room: it goes. */
static void busy_gives_credit_back(void **unused)
{
    static uint8_t memory[BYTES], value[BYTES];
    const tni_kv_request second = {.kind = TNI_KV_DO_PUSHPULL, .key = 1, .in = memory, .out = memory};
    tni_kv_settings of_one = settings;
    machine m;

    (void)unused;
    worker_begin(&m);
    of_one.credit_bytes = BYTES;
    m.worker->node.settings = &of_one;
    assert_int_equal(tni_kv_worker_key(m.worker, 1, 0, BYTES / 4, 4), TN_OK);
    m.worker->keys[1]->known = true;
    ask(&m, TNI_KV_DO_INIT, memory);
    answer(&m, TNI_KV_APPLIED, 0, NULL);
    ask(&m, TNI_KV_DO_PUSHPULL, memory);
    {
        const tni_kv_header first = said[0];

        said_count = 0;
        assert_int_equal(tni_kv_worker_request(m.worker, &second, m.now), TN_OK);
        assert_int_equal(said_count, 0); /* no credit */
        said[0] = first;
    }
    answer(&m, TNI_KV_BUSY, 0, NULL);
    assert_int_equal(said_count, 1);
    assert_true(said[0].key >> 16 == 1 && said[0].bytes == BYTES);
    answer(&m, 0, 1, value);
    assert_int_equal(told_count, 1);
    tick_until_said(&m); /* is asked for, then it goes out again */
    assert_true(said[0].key == 0 && said[0].flags & TNI_KV_PROBE);
    answer(&m, TNI_KV_ABSENT, 0, NULL);
    assert_true(said_count == 1 && said[0].bytes == BYTES);
    answer(&m, 0, 1, value);
    assert_int_equal(told_count, 1);
    assert_int_equal(told, TN_OK);
    tni_kv_worker_destroy(m.worker);
}

/* While values of other keys come, the one that is waited for may be among them. */
static void value_is_awaited(void **unused)
{
    static uint8_t memory[BYTES], value[BYTES];
    const tni_kv_request second = {.kind = TNI_KV_DO_PUSHPULL, .key = 1, .in = memory, .out = memory};
    tni_kv_header of_second;
    uint64_t came;
    machine m;

    (void)unused;
    worker_begin(&m);
    assert_int_equal(tni_kv_worker_key(m.worker, 1, 0, BYTES / 4, 4), TN_OK);
    m.worker->keys[1]->known = true;
    ask(&m, TNI_KV_DO_INIT, memory);
    answer(&m, TNI_KV_APPLIED, 0, NULL);
    ask(&m, TNI_KV_DO_PUSHPULL, memory);
    answer(&m, TNI_KV_HELD, 0, NULL);
    said_count = 0;
    assert_int_equal(tni_kv_worker_request(m.worker, &second, m.now), TN_OK);
    assert_int_equal(said_count, 1);
    of_second = said[0];
    m.now += 900000000; /* short of the next question */
    came = m.now;
    said[0] = of_second;
    answer(&m, 0, 1, value);
    assert_int_equal(told_count, 1);
    tick_until_said(&m);
    assert_true(said[0].flags & TNI_KV_PROBE && said[0].key == 0);
    assert_true(m.worker->node.now >= came + TNI_KV_ASK_NS);
    tni_kv_worker_destroy(m.worker);
}

/* ---- a server ---- */

static uint64_t takes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == 0 && what == 0 ? bytes : 0;
}

static tn_status adds(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                      const void *payload, uint64_t bytes)
{
    (void)arg, (void)h, (void)first, (void)base;
    memmove(sum, payload, bytes);
    return TN_OK;
}

static tn_status applies(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                         uint32_t count, uint32_t members)
{
    (void)arg, (void)h, (void)count, (void)members;
    memcpy(value, sum, bytes);
    return TN_OK;
}

static const tni_kv_update update = {.payload_bytes = takes, .add = adds, .apply = applies};

static void server_begin(machine *m, const tni_kv_snapshots *snapshots)
{
    static const uint8_t value[BYTES];

    *m = (machine){.now = NOW};
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, snapshots, &m->server), TN_OK);
    welcome(m, SERVER, 3);
    hear(m, (tni_kv_header){.type = TNI_KV_INIT, .from = WORKER(0), .sequence = 1}, value, BYTES);
    assert_int_equal(said[0].what, TNI_KV_APPLIED);
}

static tn_status disk; /* what reading comes to */
static uint32_t reads;
static tni_str kept;

static tn_status written(void *arg, uint64_t step, tni_str *text)
{
    (void)arg, (void)step;
    tni_kv_snapshot_seal(text->text, text->length);
    kept = *text;
    tni_str_init(text, 1);
    return TN_PENDING;
}

static tn_status is_read(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    (void)arg;
    reads++;
    assert_int_equal(step, 7);
    *text = kept.text;
    *bytes = kept.length;
    return disk;
}

/* Its disk is slow: the server does not wait for it, and takes nothing until it has loaded. */
static void load_behind_a_write(void **unused)
{
    static const uint8_t gradient[BYTES];
    const tni_kv_snapshots table = {.write = written, .read = is_read};
    tni_str text;
    machine m;

    (void)unused;
    server_begin(&m, &table);
    reads = 0;
    hear(&m, (tni_kv_header){.type = TNI_KV_SNAPSHOT, .from = WORKER(0), .key = 7, .sequence = 2}, NULL, 0);
    assert_int_equal(said[0].what, TNI_KV_HELD);
    disk = TN_PENDING;
    tni_str_init(&text, 4096);
    view_add(&text, 2, 1, 7); /* an epoch begins; messages of view 1 are of it */
    hear(&m, (tni_kv_header){.type = TNI_KV_VIEW}, text.text, text.length);
    tni_str_fini(&text);
    assert_int_equal(reads, 1);
    assert_int_equal(tni_kv_server_status(m.server), TN_OK);
    hear(&m, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(0), .round = 1, .sequence = 3}, gradient,
         BYTES);
    assert_int_equal(said_count, 0);
    m.now = settings.beat_ns + 2 * NOW;
    (void)tni_kv_server_tick(m.server, m.now);
    assert_true(said_count == 1 && said[0].type == TNI_KV_BEAT);
    disk = TN_OK;
    tni_kv_server_saved(m.server, 7, TN_OK, m.now);
    assert_int_equal(reads, 2);
    assert_int_equal(tni_kv_server_status(m.server), TN_OK);
    hear(&m, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(0), .round = 1, .sequence = 3}, gradient,
         BYTES);
    assert_true(said_count == 1 && said[0].what == TNI_KV_HELD);
    tni_kv_server_destroy(m.server);
    tni_str_fini(&kept);
}

static void snapshot_take(machine *m, const tni_kv_snapshots *table)
{
    server_begin(m, table);
    hear(m, (tni_kv_header){.type = TNI_KV_SNAPSHOT, .from = WORKER(0), .key = 7, .sequence = 2}, NULL, 0);
    assert_int_equal(said[0].what, TNI_KV_HELD);
    tni_kv_server_destroy(m->server);
}

/* A server that begins with the snapshot of step 7, in a job of that many servers. */
static void snapshot_load(machine *m, const tni_kv_snapshots *table, const tni_kv_settings *of)
{
    tni_str text;

    disk = TN_OK;
    *m = (machine){.now = NOW};
    assert_int_equal(tni_kv_server_create(of, &host, &start, &update, table, &m->server), TN_OK);
    tni_str_init(&text, 4096);
    tni_kv_write(&text, SERVER, 2);
    tni_kv_write(&text, 3, 4);
    view_add_of(&text, of->servers, 1, 0, 0);
    hear(m, (tni_kv_header){.type = TNI_KV_WELCOME, .what = 1, .sequence = 77}, text.text, text.length);
    text.length = 0;
    view_add_of(&text, of->servers, 2, 1, 7);
    hear(m, (tni_kv_header){.type = TNI_KV_VIEW}, text.text, text.length);
    tni_str_fini(&text);
}

/* Workers with other sizes of parts are told; those of the snapshot go on. */
static void snapshot_of_other_parts(void **unused)
{
    static const uint8_t value[2 * BYTES];
    const tni_kv_snapshots table = {.write = written, .read = is_read};
    tni_kv_settings two = settings;
    machine m;

    (void)unused;
    snapshot_take(&m, &table);
    snapshot_load(&m, &table, &settings);
    assert_int_equal(tni_kv_server_status(m.server), TN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        *failed = '\0';
        hear(&m, (tni_kv_header){.type = TNI_KV_INIT, .from = WORKER(0), .sequence = 3 + i}, value,
             i ? BYTES / 2 : 2 * BYTES);
        assert_true(said_count == 1 && said[0].what == TNI_KV_FAILED);
        assert_non_null(strstr(failed, "snapshot"));
        assert_non_null(strstr(failed, "kvstore.part_bytes"));
        assert_non_null(strstr(failed, "kvstore.bigarray_bound"));
    }
    assert_int_equal(tni_kv_server_status(m.server), TN_OK);
    hear(&m, (tni_kv_header){.type = TNI_KV_INIT, .from = WORKER(0), .sequence = 5}, value, BYTES);
    assert_true(said_count == 1 && said[0].what == TNI_KV_APPLIED);
    tni_kv_server_destroy(m.server);
    two.servers = 2;
    snapshot_load(&m, &table, &two);
    assert_int_equal(tni_kv_server_status(m.server), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "servers"));
    tni_kv_server_destroy(m.server);
    tni_str_fini(&kept);
}

/* What the server says to a worker that pushes and wants the value. */
static uint8_t push_async(machine *m, uint32_t rank, uint32_t round)
{
    static const uint8_t gradient[BYTES];
    static uint64_t sequence = 100;
    const tni_kv_header h = {.type = TNI_KV_PUSH,
                             .from = WORKER(rank),
                             .flags = TNI_KV_WANT,
                             .round = round,
                             .sequence = ++sequence};

    hear(m, h, gradient, BYTES);
    assert_in_range(said_count, 1, 2);
    return said[said_count - 1].type == TNI_KV_VALUE ? TNI_KV_APPLIED : said[said_count - 1].what;
}

/* Without rounds, bounded: a server came back without its last rounds, and worker 1 is another process, which
 * has what is left. Worker 0, which is seven rounds further, waits for one round of it, not for eight. */
static void rounds_that_are_lost(void **unused)
{
    tni_kv_header any = {.type = TNI_KV_PULL, .from = WORKER(1), .flags = TNI_KV_ANY, .sequence = 50};
    tni_kv_settings of = settings;
    tni_kv_store_part *p;
    machine m;

    (void)unused;
    server_begin(&m, NULL);
    of.async = true;
    of.staleness = 0;
    m.server->node.settings = &of;
    m.server->node.async = true;
    later = 7;
    m.server->node.view.members[1].incarnation += later;
    p = tni_kv_part_find(m.server, 0);
    for (uint32_t order = 0; order < 2; order++) {
        for (uint32_t w = 0; w < 2; w++) {
            p->slots[w].applied = 3;
            p->slots[w].lost = TNI_KV_UNHEARD;
        }
        any.sequence++;
        hear(&m, any, NULL, 0);
        assert_true(said[0].type == TNI_KV_VALUE && said[0].round == 3);
        if (order == 0) {
            assert_int_equal(push_async(&m, 1, 4),
                             TNI_KV_APPLIED); /* it waits for nobody who was not heard */
            assert_int_equal(push_async(&m, 0, 10), TNI_KV_APPLIED);
        } else {
            assert_int_equal(push_async(&m, 0, 10), TNI_KV_APPLIED);
            assert_int_equal(push_async(&m, 1, 4), TNI_KV_APPLIED);
        }
        if (order == 1)
            assert_int_equal(push_async(&m, 0, 11), TNI_KV_APPLIED);
        assert_int_equal(push_async(&m, 0, 11 + order), TNI_KV_HELD);
        assert_int_equal(push_async(&m, 1, 5), TNI_KV_APPLIED);
        assert_int_equal(said_count, 2); /* and so has worker 0 */
        assert_int_equal(said[0].type + said[1].type, 2 * TNI_KV_VALUE);
    }
    later = 0;
    tni_kv_server_destroy(m.server);
}

/* ---- a scheduler ---- */

static tn_status appended(void *arg, const void *record, uint64_t bytes)
{
    return tni_str_add_bytes(arg, record, bytes);
}

static const tni_kv_settings waiting = {.job = 5,
                                        .workers = 2,
                                        .servers = 1,
                                        .control_timeout_ns = (uint64_t)1 << 40,
                                        .beat_ns = SECOND,
                                        .suspect_ns = 3 * SECOND,
                                        .dead_ns = 10 * SECOND,
                                        .worker_loss = TNI_KV_LOSS_WAIT,
                                        .server_loss = TNI_KV_LOSS_WAIT,
                                        .worker_wait_ns = 600 * SECOND,
                                        .server_wait_ns = 600 * SECOND};

/* One after another, on the same journal. */
static void scheduler_begin(machine *m, tni_str *journal)
{
    const tni_kv_journal to = {journal, appended, NULL};

    if (m->scheduler)
        tni_kv_scheduler_destroy(m->scheduler);
    assert_int_equal(
        tni_kv_scheduler_create(&waiting, &host, &to, journal->text, journal->length, m->now, &m->scheduler),
        TN_OK);
}

/* HELLO twice: the first one is answered with what the second has to know. */
static void joins(machine *m, uint16_t node, uint64_t birth)
{
    tni_str text;

    said[0].key = 0;
    for (int i = 0; i < 2; i++) {
        tni_str_init(&text, 4096);
        tni_kv_write(&text, TNI_KV_ROLE(node), 1);
        tni_kv_write(&text, TNI_KV_RANK(node), 4);
        tni_kv_write(&text, birth, 8);
        tni_kv_write(&text, said[0].key, 8);
        tni_kv_write(&text, 0, 8);
        tni_kv_write(&text, 0, 8);
        m->now += SECOND;
        hear(m,
             (tni_kv_header){
                 .type = TNI_KV_HELLO, .from = TNI_KV_UNKNOWN, .version = 1, .what = TNI_KV_WIRE_VERSION},
             text.text, text.length);
        tni_str_fini(&text);
    }
}

static void all_join(machine *m, tni_str *journal)
{
    *m = (machine){.now = NOW};
    tni_str_init(journal, TN_TEXT_MAX);
    scheduler_begin(m, journal);
    joins(m, WORKER(0), 11);
    joins(m, WORKER(1), 12);
    joins(m, SERVER, 13);
    assert_true(tni_kv_scheduler_view(m->scheduler)->flags & TNI_KV_STARTED);
}

static void beats(machine *m, uint16_t node, uint64_t step)
{
    uint8_t steps[16] = {0};

    tni_kv_put(steps, step, 8);
    m->now += SECOND;
    hear(m, (tni_kv_header){.type = TNI_KV_BEAT, .from = node}, steps, node == SERVER ? sizeof steps : 0);
}

static uint32_t applied_count(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < said_count; i++)
        count += said[i].type == TNI_KV_ACK && said[i].what == TNI_KV_APPLIED;
    return count;
}

/* It is killed while a server is replaced and a worker is at a barrier: the next one waits for what the
 * server holds, begins the epoch, and releases the barrier when both workers have told of it again. */
static void killed_in_a_replacement(void **unused)
{
    const tni_kv_header barrier = {.type = TNI_KV_BARRIER, .round = 1, .sequence = 5};
    tni_kv_header of = barrier;
    const tni_kv_view *v;
    tni_str journal;
    machine m;

    (void)unused;
    all_join(&m, &journal);
    of.from = WORKER(0);
    hear(&m, of, NULL, 0);
    assert_true(said_count == 1 && said[0].what == TNI_KV_HELD);
    joins(&m, SERVER, 14);
    incarnations[TNI_KV_SERVER] = 4;
    scheduler_begin(&m, &journal);
    v = tni_kv_scheduler_view(m.scheduler);
    assert_true(v->scheduler == 2 && v->flags & TNI_KV_RECOVERING);
    beats(&m, WORKER(0), 0);
    beats(&m, WORKER(1), 0);
    assert_true(v->flags & TNI_KV_RECOVERING);
    beats(&m, SERVER, 7);
    (void)tni_kv_scheduler_tick(m.scheduler, m.now += SECOND);
    assert_false(v->flags & TNI_KV_RECOVERING);
    assert_true(v->epoch_view == v->number && v->cut == 7);
    hear(&m, of, NULL, 0);
    assert_true(applied_count() == 0);
    m.now += SECOND;
    of.from = WORKER(1);
    hear(&m, of, NULL, 0);
    assert_int_equal(applied_count(), 2);
    tni_kv_scheduler_destroy(m.scheduler);
    tni_str_fini(&journal);
    incarnations[TNI_KV_SERVER] = 3;
}

/* It was stopped itself: the silence of that time is nobody's; the one after it is. */
static void stopped_for_long(void **unused)
{
    const tni_kv_view *v;
    tni_str journal;
    machine m;

    (void)unused;
    all_join(&m, &journal);
    v = tni_kv_scheduler_view(m.scheduler);
    (void)tni_kv_scheduler_tick(m.scheduler, m.now += SECOND);
    (void)tni_kv_scheduler_tick(m.scheduler, m.now += 100 * SECOND);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(v->members[i].state, TNI_KV_ALIVE);
    for (uint32_t i = 0; i < 12; i++) {
        beats(&m, WORKER(1), 0);
        (void)tni_kv_scheduler_tick(m.scheduler, m.now);
    }
    assert_int_equal(v->members[0].state, TNI_KV_DEAD);
    assert_int_equal(v->members[1].state, TNI_KV_ALIVE);
    assert_int_equal(v->members[2].state, TNI_KV_DEAD);
    tni_kv_scheduler_destroy(m.scheduler);
    tni_str_fini(&journal);
}

static bool welcomes(void)
{
    return said_count && said[0].type == TNI_KV_WELCOME && said[0].what == 1;
}

/* A worker's place is another's once the server knows: it takes nothing from the first one behind that. */
static void welcome_behind_the_servers(void **unused)
{
    tni_str journal;
    machine m;

    (void)unused;
    all_join(&m, &journal);
    joins(&m, WORKER(1), 21);
    beats(&m, WORKER(0), 0);
    assert_false(welcomes());
    beats(&m, SERVER, 0);
    assert_true(welcomes() || (said_count > 1 && said[1].type == TNI_KV_WELCOME));
    tni_kv_scheduler_destroy(m.scheduler);
    tni_str_fini(&journal);
}

/* ---- who may send what ---- */

enum { OF_SCHEDULER = 1, OF_SERVER = 2, OF_WORKER = 4, OF_STRANGER = 8 };

static const struct {
    uint8_t type, from;
} may[] = {
    {TNI_KV_HELLO, OF_STRANGER},
    {TNI_KV_WELCOME, OF_SCHEDULER},
    {TNI_KV_VIEW, OF_SCHEDULER},
    {TNI_KV_BEAT, OF_SCHEDULER | OF_SERVER | OF_WORKER},
    {TNI_KV_INIT, OF_WORKER},
    {TNI_KV_PUSH, OF_WORKER},
    {TNI_KV_PULL, OF_WORKER},
    {TNI_KV_ACK, OF_SCHEDULER | OF_SERVER},
    {TNI_KV_VALUE, OF_SERVER},
    {TNI_KV_COMMAND, OF_WORKER},
    {TNI_KV_SNAPSHOT, OF_WORKER},
    {TNI_KV_BARRIER, OF_WORKER},
    {TNI_KV_END, OF_WORKER},
    {TNI_KV_BYE, OF_SERVER | OF_WORKER},
    {TNI_KV_REFUSED, OF_SCHEDULER},
    {TNI_KV_ASK, OF_SCHEDULER | OF_STRANGER},
    {TNI_KV_REPORT, OF_SERVER | OF_WORKER},
};

static const uint16_t froms[4] = {TNI_KV_SCHEDULER_NODE, SERVER, WORKER(1), TNI_KV_UNKNOWN};

static uint64_t refused_by(const machine *m)
{
    return m->server ? m->server->node.metrics.numbers[TNI_KV_N_REFUSED]
                     : m->worker->node.metrics.numbers[TNI_KV_N_REFUSED];
}

/* All that is not in the table: counted, without answer. */
static void wrong_roles_say(machine *m)
{
    static const uint8_t payload[BYTES];

    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        for (uint32_t role = 0; role < 4; role++)
            for (uint64_t bytes = 0; bytes <= BYTES; bytes += BYTES) {
                const uint64_t before = refused_by(m);
                const tni_kv_header h = {
                    .type = may[i].type, .what = 1, .from = froms[role], .round = 1, .key = 0, .sequence = 9};

                if (may[i].from >> role & 1u)
                    continue;
                hear(m, h, payload, bytes);
                if (said_count || told_count || refused_by(m) != before + 1)
                    fail_msg("type %u of role %u", may[i].type, role);
            }
}

static void wrong_roles(void **unused)
{
    static uint8_t memory[BYTES], value[BYTES];
    machine m;

    (void)unused;
    assert_int_equal(sizeof may / sizeof *may, TNI_KV_TYPE_END - 2); /* all but a batch */
    server_begin(&m, NULL);
    hear(&m, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(1), .round = 1, .sequence = 4}, value,
         BYTES);
    wrong_roles_say(&m);
    hear(&m, (tni_kv_header){.type = TNI_KV_PUSH, .from = WORKER(0), .round = 1, .sequence = 5}, value,
         BYTES);
    assert_int_equal(said_count, 2); /* the round is complete, for both */
    assert_int_equal(tni_kv_server_status(m.server), TN_OK);
    tni_kv_server_destroy(m.server);

    worker_begin(&m);
    ask(&m, TNI_KV_DO_INIT, memory);
    answer(&m, TNI_KV_APPLIED, 0, NULL);
    ask(&m, TNI_KV_DO_PUSHPULL, memory);
    {
        const tni_kv_header pushed = said[0];

        wrong_roles_say(&m);
        said[0] = pushed;
    }
    answer(&m, 0, 1, value);
    assert_int_equal(told_count, 1);
    assert_int_equal(told, TN_OK);
    assert_int_equal(tni_kv_worker_status(m.worker), TN_OK);
    tni_kv_worker_destroy(m.worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_behind_an_init),
        cmocka_unit_test(push_is_asked_for),
        cmocka_unit_test(busy_gives_credit_back),
        cmocka_unit_test(value_is_awaited),
        cmocka_unit_test(load_behind_a_write),
        cmocka_unit_test(snapshot_of_other_parts),
        cmocka_unit_test(rounds_that_are_lost),
        cmocka_unit_test(killed_in_a_replacement),
        cmocka_unit_test(welcome_behind_the_servers),
        cmocka_unit_test(stopped_for_long),
        cmocka_unit_test(wrong_roles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
