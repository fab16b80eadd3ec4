/*
 * Without rounds a server comes back without what no snapshot has: worker 0 gives it first values and
 * commands again, before gradients of others count there; what nobody has any more is an error at once. And
 * of any job: a worker that left comes again, and a late beat moves nothing back. Scheduler, server and two
 * workers talk to each other over a queue, by a clock that runs when nobody has anything to say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/server.h"
#include "kv/update.h"
#include "kv/worker.h"

#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)
#define SERVER TNI_KV_NODE(TNI_KV_SERVER, 0)
#define ELEMENTS 40u /* of which 32 may be a part */
#define MS 1000000ull
#define SECOND 1000000000ull

enum { AT_SCHEDULER, AT_SERVER, AT_WORKER, PLACES = AT_WORKER + 2 };

typedef struct message {
    uint64_t birth, bytes; /* birth: of who gets it; 0: any */
    uint32_t place;
    uint8_t header[TNI_KV_HEADER_BYTES], payload[8192];
} message;

typedef struct world {
    tni_kv_settings settings;
    tni_kv_scheduler *scheduler;
    tni_kv_server *server;
    tni_kv_worker *workers[2];
    uint64_t births[PLACES], born, now;
    message *queue;
    uint32_t head, tail, room;
    bool told, untold; /* the server has the command; a gradient was taken without it */
    uint64_t drops;    /* values of this part, not 0, get lost */
    bool pending;      /* snapshots are not written before `save` */
    uint64_t saving;
    tni_str written[2]; /* newest first */
    uint64_t steps[2];
    uint32_t done, others; /* requests that ended: of `ask`, and others */
    tn_status status;
    tn_err error;
    tni_str journal; /* of the scheduler */
    bool journal_fails;
} world;

static world *all;
static uint64_t part_bytes = 4096; /* of the next world */

static void sends(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                  uint64_t bytes, uint32_t priority)
{
    message *m;

    (void)arg, (void)priority;
    assert_true(bytes <= sizeof m->payload);
    if (header[3] == TNI_KV_VALUE && all->drops && (tni_kv_get(header + 40, 8) & 0xffff) == all->drops)
        return;
    if (all->tail == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        assert_non_null(all->queue = realloc(all->queue, all->room * sizeof *all->queue));
    }
    m = &all->queue[all->tail++];
    *m = (message){.bytes = bytes, .birth = to == TNI_KV_UNKNOWN ? tni_kv_get(header + 32, 8) : 0};
    m->place = TNI_KV_ROLE(to) == TNI_KV_WORKER ? AT_WORKER + TNI_KV_RANK(to) : TNI_KV_ROLE(to);
    memcpy(m->header, header, sizeof m->header);
    if (bytes)
        memcpy(m->payload, payload, bytes);
}

static void tells(void *arg, uint64_t cookie, tn_status st)
{
    (void)arg;
    assert_true(cookie == 1 || cookie == 2); /* what the machine asks by itself tells nobody */
    if (cookie != 1) {
        all->others++;
        return;
    }
    all->done++;
    all->status = st;
    if (st)
        tni_error_get(&all->error);
}

static const tni_kv_host host = {.send = sends};

static void deliver(const message *m)
{
    uint32_t place = m->place;

    for (uint32_t i = 0; m->birth && i < PLACES; i++)
        place = all->births[i] == m->birth ? i : place;
    if (place == AT_SCHEDULER)
        (void)tni_kv_scheduler_receive(all->scheduler, m->header, m->payload, m->bytes, all->now);
    else if (place == AT_SERVER && all->server)
        (void)tni_kv_server_receive(all->server, m->header, m->payload, m->bytes, all->now);
    else if (place >= AT_WORKER && place < PLACES && all->workers[place - AT_WORKER])
        (void)tni_kv_worker_receive(all->workers[place - AT_WORKER], m->header, m->payload, m->bytes,
                                    all->now);
}

static void pump(void)
{
    while (all->head < all->tail) {
        const message m = all->queue[all->head++];

        deliver(&m);
    }
    all->head = all->tail = 0;
}

/* All that is due until then. */
static void pass(uint64_t ns)
{
    for (const uint64_t end = all->now + ns; all->now < end; all->now += 50 * MS) {
        pump();
        (void)tni_kv_scheduler_tick(all->scheduler, all->now);
        if (all->server)
            (void)tni_kv_server_tick(all->server, all->now);
        for (uint32_t w = 0; w < 2; w++)
            if (all->workers[w])
                (void)tni_kv_worker_tick(all->workers[w], all->now);
    }
    pump();
}

/* ---- a server ---- */

static uint64_t takes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == 0 && (what == 0 || what == TNI_KV_ASSIGN) ? bytes : 0;
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
    (void)arg, (void)count, (void)members;
    all->untold = all->untold || !all->told;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)value)[i] = ((const float *)sum)[i] + (h->what ? 0 : ((float *)value)[i]);
    return TN_OK;
}

static tn_status commands(void *arg, const char *text, uint64_t bytes)
{
    (void)arg;
    assert_true(bytes >= 2 && !memcmp(text, "go", 2));
    all->told = true;
    return TN_OK;
}

static tn_status saves(void *arg, tni_str *out)
{
    (void)arg;
    tni_kv_write(out, all->told, 1);
    return out->status;
}

static tn_status loads(void *arg, const void *text, uint64_t bytes)
{
    (void)arg;
    all->told = bytes && *(const char *)text;
    return TN_OK;
}

static const tni_kv_update update = {
    .payload_bytes = takes, .add = adds, .apply = applies, .command = commands, .save = saves, .load = loads};

static tn_status writes(void *arg, uint64_t step, tni_str *text)
{
    (void)arg;
    if (all->pending) {
        all->saving = step;
        return TN_PENDING;
    }
    tni_kv_snapshot_seal(text->text, text->length);
    tni_str_fini(&all->written[1]);
    all->written[1] = all->written[0];
    all->written[0] = *text;
    tni_str_init(text, 1);
    all->steps[1] = all->steps[0];
    all->steps[0] = step;
    return TN_OK;
}

static tn_status reads(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    (void)arg;
    for (uint32_t i = 0; i < 2 && step; i++)
        if (all->steps[i] == step) {
            *text = all->written[i].text;
            *bytes = all->written[i].length;
            return TN_OK;
        }
    return step ? tni_error(TN_E_IO, "no snapshot") : TN_OK;
}

static const tni_kv_snapshots table = {.write = writes, .read = reads};

static void server_start(void)
{
    const tni_kv_start start = {.birth = ++all->born, .steps = {all->steps[0], all->steps[1]}};

    all->births[AT_SERVER] = start.birth;
    assert_int_equal(tni_kv_server_create(&all->settings, &host, &start, &update, &table, &all->server),
                     TN_OK);
    (void)tni_kv_server_tick(all->server, all->now);
}

/* Killed, and another one in its place. */
static void server_again(void)
{
    tni_kv_server_destroy(all->server);
    all->told = all->pending = false;
    server_start();
}

/* ---- workers ---- */

static void worker_start(uint32_t rank)
{
    const tni_kv_start start = {.rank = (int32_t)rank, .birth = ++all->born};

    tni_kv_worker_destroy(all->workers[rank]);
    all->births[AT_WORKER + rank] = start.birth;
    assert_int_equal(tni_kv_worker_create(&all->settings, &host, &start, tells, &all->workers[rank]), TN_OK);
    for (uint32_t key = 0; key < 2; key++)
        assert_int_equal(tni_kv_worker_key(all->workers[rank], key, 0, ELEMENTS, sizeof(float)), TN_OK);
    (void)tni_kv_worker_tick(all->workers[rank], all->now);
}

static void request(uint32_t rank, const tni_kv_request *r)
{
    all->done = all->others = 0;
    assert_int_equal(tni_kv_worker_request(all->workers[rank], r, all->now), TN_OK);
}

/* What a request comes to within 8 s. */
static tn_status ask(uint32_t rank, tni_kv_kind kind, uint32_t key, float *memory)
{
    const tni_kv_request r = {.kind = kind,
                              .key = key,
                              .in = kind == TNI_KV_DO_COMMAND ? (const void *)"go" : memory,
                              .out = memory,
                              .bytes = kind == TNI_KV_DO_COMMAND ? 2 : 0,
                              .step = kind == TNI_KV_DO_SNAPSHOT,
                              .cookie = 1,
                              .any = kind == TNI_KV_DO_PULL};

    request(rank, &r);
    pass(8 * SECOND);
    assert_int_equal(all->done, 1);
    return all->status;
}

static float value_of(uint32_t rank, uint32_t key)
{
    float memory[ELEMENTS] = {0};

    assert_int_equal(ask(rank, TNI_KV_DO_PULL, key, memory), TN_OK);
    return memory[ELEMENTS - 1];
}

static void fill(float memory[ELEMENTS], float value)
{
    for (uint32_t i = 0; i < ELEMENTS; i++)
        memory[i] = value;
}

static void give(uint32_t key, float value)
{
    float memory[ELEMENTS];

    fill(memory, value);
    assert_int_equal(ask(0, TNI_KV_DO_INIT, key, memory), TN_OK);
}

static tn_status push(uint32_t rank, uint32_t key, float value)
{
    float memory[ELEMENTS];

    fill(memory, value);
    return ask(rank, TNI_KV_DO_PUSH, key, memory);
}

static tn_status journal_append(void *arg, const void *record, uint64_t bytes)
{
    world *w = arg;

    return w->journal_fails ? TN_E_IO : tni_str_add_bytes(&w->journal, record, bytes);
}

/* Another process, if there is one, on its journal. */
static void scheduler_start(world *w)
{
    const tni_kv_journal j = {w, journal_append, NULL};
    const tni_str *t = &w->journal;

    tni_kv_scheduler_destroy(w->scheduler);
    w->status = tni_kv_scheduler_create(&w->settings, &host, &j, t->text, t->length, w->now, &w->scheduler);
    assert_int_equal(w->status, TN_OK);
}

static void begin(world *w, bool async, uint64_t replay_bytes, tni_kv_loss loss)
{
    *w = (world){.now = SECOND,
                 .settings = {.job = 5,
                              .workers = 2,
                              .servers = 1,
                              .landing_bytes = 1u << 16,
                              .timeout_ns = 60 * SECOND,
                              .control_timeout_ns = 60 * SECOND,
                              .beat_ns = SECOND,
                              .suspect_ns = 30 * SECOND,
                              .dead_ns = 100 * SECOND,
                              .bound = 1,
                              .part_bytes = part_bytes,
                              .batch_bytes = part_bytes < 4096,
                              .credit_bytes = 1u << 20,
                              .staleness = UINT32_MAX,
                              .async = async,
                              .worker_loss = loss,
                              .server_loss = TNI_KV_LOSS_WAIT,
                              .worker_wait_ns = 600 * SECOND,
                              .server_wait_ns = 600 * SECOND,
                              .replay_bytes = replay_bytes}};
    all = w;
    for (uint32_t i = 0; i < 2; i++)
        tni_str_init(&w->written[i], 1);
    tni_str_init(&w->journal, TN_TEXT_MAX);
    scheduler_start(w);
    server_start();
    worker_start(0);
    worker_start(1);
    pass(SECOND);
    assert_true(tni_kv_worker_ready(w->workers[0]) && tni_kv_worker_ready(w->workers[1]));
}

static void finish(void)
{
    tni_kv_scheduler_destroy(all->scheduler);
    tni_kv_server_destroy(all->server);
    for (uint32_t i = 0; i < 2; i++) {
        tni_kv_worker_destroy(all->workers[i]);
        tni_str_fini(&all->written[i]);
    }
    tni_str_fini(&all->journal);
    free(all->queue);
}

/* ---- a server that came back ---- */

/* Before any snapshot: first values and the command are there again before a gradient of worker 1 counts.
 * That one's gradient of before is lost. */
static void before_any_snapshot(void **unused)
{
    world w;

    (void)unused;
    begin(&w, true, 1u << 20, TNI_KV_LOSS_FAIL);
    give(0, 5);
    assert_int_equal(ask(0, TNI_KV_DO_COMMAND, 0, NULL), TN_OK);
    assert_true(value_of(1, 0) == 5);
    assert_int_equal(push(1, 0, 1), TN_OK);
    assert_true(value_of(1, 0) == 6);
    server_again();
    assert_int_equal(push(1, 0, 10), TN_OK);
    assert_true(value_of(0, 0) == 15 && value_of(1, 0) == 15);
    assert_true(w.told && !w.untold);
    assert_int_equal(tni_kv_worker_view(w.workers[0])->epoch_view, 0);
    assert_int_equal(w.steps[0], 1); /* by which worker 0 said that this was all */
    finish();
}

/* While a snapshot is being written: the next server is the one of before. */
static void behind_the_last_snapshot(void **unused)
{
    world w;

    (void)unused;
    for (int written = 0; written < 3; written++) { /* none, begun, done */
        begin(&w, true, 1u << 20, TNI_KV_LOSS_FAIL);
        give(0, 5);
        assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_int_equal(push(0, 0, 1), TN_OK);
        give(1, 7);
        assert_int_equal(ask(0, TNI_KV_DO_COMMAND, 0, NULL), TN_OK);
        w.pending = written == 1;
        if (written)
            assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_true(value_of(1, 1) == 7);
        w.untold = false;
        server_again();
        assert_true(value_of(1, 1) == 7);
        assert_int_equal(push(1, 1, 10), TN_OK);
        assert_true(value_of(0, 1) == 17);
        assert_true(value_of(0, 0) == (written == 2 ? 6 : 5));
        assert_true(w.told && !w.untold);
        finish();
    }
}

/* A gradient of worker 1 waits while worker 0 is away, and is told for whom. */
static void worker_0_is_waited_for(void **unused)
{
    float memory[ELEMENTS];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .in = memory, .cookie = 2};
    tni_kv_worker *first;
    world w;

    (void)unused;
    begin(&w, true, 1u << 20, TNI_KV_LOSS_FAIL);
    give(0, 5);
    assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
    assert_true(value_of(1, 0) == 5);
    fill(memory, 10);
    first = w.workers[0];
    w.workers[0] = NULL; /* stopped */
    server_again();
    request(1, &r);
    pass(4 * SECOND);
    assert_int_equal(w.others, 0);
    assert_true(w.workers[1]->keys[0]->pieces[0].who == WORKER(0));
    w.workers[0] = first;
    pass(4 * SECOND);
    assert_int_equal(w.others, 1);
    assert_true(value_of(1, 0) == 15);
    finish();
}

/* The server and worker 0 are lost at once, and nobody comes in that one's place: a gradient waits for it
 * until its deadline, the job as long as it waits for a worker. */
static void worker_0_does_not_come(void **unused)
{
    float memory[ELEMENTS] = {0};
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .in = memory, .cookie = 1};
    world w;

    (void)unused;
    begin(&w, true, 1u << 20, TNI_KV_LOSS_WAIT);
    give(0, 5);
    assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
    assert_true(value_of(1, 0) == 5);
    tni_kv_worker_destroy(w.workers[0]);
    w.workers[0] = NULL;
    server_again();
    request(1, &r);
    pass(w.settings.timeout_ns + SECOND);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.status, TN_E_TIMEOUT);
    assert_non_null(strstr(w.error.message, "waits for worker 0 and 0 more"));
    pass(w.settings.dead_ns + w.settings.worker_wait_ns);
    assert_int_equal(tni_kv_worker_status(w.workers[1]), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "worker 0 died"));
    finish();
}

/* Of a key that no snapshot has, and that worker 0 keeps no copy of. */
static void nobody_has_it(void **unused)
{
    char *text;
    world w;

    (void)unused;
    begin(&w, true, 3 * sizeof(tni_kv_op), TNI_KV_LOSS_FAIL);
    give(0, 5);
    assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
    assert_true(value_of(1, 0) == 5);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(ask(0, TNI_KV_DO_COMMAND, 0, NULL), TN_OK);
    give(1, 7);
    assert_true(value_of(1, 1) == 7);
    assert_false(tni_kv_log_whole(w.workers[0]));
    server_again();
    pass(4 * SECOND);
    for (uint32_t kind = 0; kind < 2; kind++) {
        const tn_status st = kind ? push(1, 1, 1) : ask(1, TNI_KV_DO_PULL, 1, (float[ELEMENTS]){0});

        assert_int_equal(st, TN_E_STATE);
        text = w.error.message;
        assert_non_null(strstr(text, "server 0 came back without key 1"));
        assert_non_null(strstr(text, "kvstore.replay_bytes"));
    }
    assert_true(value_of(1, 0) == 5); /* the others stay */
    give(1, 8);
    assert_true(value_of(1, 1) == 8);
    finish();
}

/* The same before any snapshot: the store begins anew, and all are told. */
static void nobody_has_anything(void **unused)
{
    float memory[ELEMENTS] = {0};
    world w;

    (void)unused;
    begin(&w, true, 0, TNI_KV_LOSS_FAIL);
    give(0, 5);
    assert_true(value_of(1, 0) == 5);
    server_again();
    assert_int_equal(ask(1, TNI_KV_DO_PUSH, 0, memory), TN_E_STATE);
    assert_non_null(strstr(w.error.message, "rolled back to step 0"));
    assert_true(tni_kv_worker_view(w.workers[0])->epoch_view > 0);
    give(0, 6);
    assert_true(value_of(1, 0) == 6);
    finish();
}

/* A value that took the first one's place: the first one is not given in its place. */
static void assigned(void **unused)
{
    float memory[ELEMENTS];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .in = memory, .what = TNI_KV_ASSIGN, .cookie = 1};
    world w;

    (void)unused;
    begin(&w, true, 1u << 20, TNI_KV_LOSS_FAIL);
    give(0, 5);
    assert_true(tni_kv_log_whole(w.workers[0]));
    fill(memory, 9);
    request(0, &r);
    pass(SECOND);
    assert_int_equal(w.done, 1);
    assert_true(value_of(1, 0) == 9);
    server_again();
    assert_int_equal(push(1, 0, 1), TN_E_STATE);
    assert_non_null(strstr(w.error.message, "rolled back to step 0"));
    give(0, 6);
    assert_true(value_of(1, 0) == 6);
    finish();
}

/* A server comes with an empty folder, and all begin anew. The next one has the first one's snapshot, as one
 * has that did not hear of the epoch: that is of a past that is over, and its number is below those of this
 * epoch. */
static void snapshot_of_a_past(void **unused)
{
    float memory[ELEMENTS] = {0};
    world w;

    (void)unused;
    for (uint32_t fails = 0; fails < 2; fails++) { /* worker 0 has no copy of the new value: once more */
        begin(&w, true, fails ? 1 : 1u << 20, TNI_KV_LOSS_FAIL);
        give(0, 5);
        assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_int_equal(w.steps[0], 1);
        assert_true(value_of(1, 0) == 5);
        w.steps[0] = 0;
        server_again();
        assert_int_equal(ask(1, TNI_KV_DO_PUSH, 0, memory), TN_E_STATE);
        give(0, 50);
        assert_int_equal(push(0, 0, 1), TN_OK);
        assert_true(value_of(1, 0) == 51);
        w.steps[0] = 1;
        server_again();
        if (fails)
            assert_int_equal(push(1, 0, 1), TN_E_STATE);
        give(0, fails ? 60 : 50);
        assert_int_equal(push(0, 0, 1), TN_OK);
        assert_true(value_of(1, 0) == (fails ? 61 : 51));
        assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_true(w.steps[0] >> 32 == tni_kv_worker_view(w.workers[0])->epoch_view);
        server_again(); /* of this epoch: it stays */
        assert_true(value_of(1, 0) == (fails ? 61 : 51));
        finish();
    }
}

/* A value comes to where its gradient is, as far as its first part: the gradient is pushed again as it was,
 * and the command before it is not forgotten, however little may be kept. */
static void half_landed(void **unused)
{
    float memory[ELEMENTS];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .in = memory, .out = memory, .cookie = 1};
    world w;

    (void)unused;
    part_bytes = 128;
    for (uint64_t replay_bytes = 1; replay_bytes <= 1u << 20; replay_bytes <<= 20) {
        begin(&w, true, replay_bytes, TNI_KV_LOSS_FAIL);
        give(0, 5);
        assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_int_equal(ask(0, TNI_KV_DO_COMMAND, 0, NULL), TN_OK);
        assert_true(value_of(1, 0) == 5);
        for (uint32_t times = 0; times < 2; times++) { /* the second one behind a snapshot of its own */
            fill(memory, 1);
            w.drops = 1;
            request(0, &r);
            pass(SECOND);
            assert_int_equal(w.done, 0);
            assert_true(memory[0] == 6 + (float)times && memory[ELEMENTS - 1] == 1);
            w.drops = 0;
            server_again();
            pass(4 * SECOND);
            assert_int_equal(w.done, 1);
            assert_int_equal(w.status, TN_OK);
            assert_true(w.told && !w.untold);
            for (uint32_t i = 0; i < ELEMENTS; i++)
                assert_true(memory[i] == 6);
        }
        finish();
    }
    part_bytes = 4096;
}

static uint32_t marks(void)
{
    uint32_t count = 0;

    for (const tni_kv_op *op = all->workers[0]->log; op; op = op->next)
        count += op->r.kind == TNI_KV_DO_SNAPSHOT;
    return count;
}

static tn_status long_command(void)
{
    static char text[4000] = "go";
    const tni_kv_request r = {.kind = TNI_KV_DO_COMMAND, .in = text, .bytes = sizeof text, .cookie = 1};

    request(0, &r);
    pass(100 * MS);
    assert_int_equal(all->done, 1);
    return all->status;
}

/* More commands than are kept: worker 0 ends, and says why; gradients of others do not count meanwhile. A
 * snapshot that has them makes it good, one that failed does not. */
static void commands_are_lost(void **unused)
{
    enum { NONE, FAILED, WRITTEN, ENDS };
    const tni_kv_request save = {.kind = TNI_KV_DO_SNAPSHOT, .step = 1, .cookie = 2};
    float memory[ELEMENTS] = {0};
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .in = memory, .cookie = 2};
    world w;

    (void)unused;
    for (uint32_t snapshot = NONE; snapshot < ENDS; snapshot++) {
        begin(&w, true, 1, TNI_KV_LOSS_FAIL);
        give(0, 5);
        assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        assert_true(value_of(1, 0) == 5);
        for (uint32_t i = 0; i < 300; i++)
            assert_int_equal(long_command(), TN_OK);
        if (snapshot == FAILED) {
            w.pending = true;
            request(0, &save);
            pass(SECOND);
            assert_int_equal(marks(), 2);
            tni_kv_server_saved(w.server, w.saving, tni_error(TN_E_IO, "the disk is full"), w.now);
            pass(SECOND);
            assert_int_equal(marks(), 1);
            assert_int_equal(long_command(), TN_OK);
        }
        if (snapshot == WRITTEN)
            assert_int_equal(ask(0, TNI_KV_DO_SNAPSHOT, 0, NULL), TN_OK);
        server_again();
        request(1, &r);
        pass(8 * SECOND);
        if (snapshot == WRITTEN) {
            assert_int_equal(w.others, 1);
            assert_int_equal(tni_kv_worker_status(w.workers[0]), TN_OK);
            assert_true(w.told);
        } else {
            assert_int_equal(w.others, 0);
            assert_int_equal(tni_kv_worker_status(w.workers[0]), TN_E_STATE);
            assert_non_null(strstr(tni_error_message(), "kvstore.replay_bytes"));
        }
        assert_false(w.untold);
        finish();
    }
}

/* ---- the scheduler ---- */

/* A program that ends with an error of its own closes its store, and is started again. */
static void who_left_comes_again(void **unused)
{
    static const tni_kv_loss losses[] = {TNI_KV_LOSS_WAIT, TNI_KV_LOSS_FAIL, TNI_KV_LOSS_SHRINK};
    world w;

    (void)unused;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        for (int async = 0; async < 2; async++) {
            begin(&w, async, 1u << 20, losses[i]);
            give(0, 5);
            assert_true(value_of(1, 0) == 5);
            assert_int_equal(ask(1, TNI_KV_DO_BYE, 0, NULL), TN_OK);
            assert_int_equal(push(0, 0, 1), TN_OK);
            worker_start(1);
            pass(4 * SECOND);
            assert_int_equal(tni_kv_worker_ready(w.workers[1]), losses[i] == TNI_KV_LOSS_WAIT);
            if (losses[i] != TNI_KV_LOSS_WAIT) {
                assert_int_equal(tni_kv_worker_status(w.workers[1]), TN_E_PEER);
                assert_non_null(strstr(tni_error_message(), "has left"));
            } else {
                assert_true(value_of(1, 0) == 6);
                request(0,
                        &(tni_kv_request){.kind = TNI_KV_DO_PUSH, .in = (float[ELEMENTS]){0}, .cookie = 2});
                pass(SECOND);
                assert_int_equal(w.others, async); /* a round needs it again */
                assert_int_equal(push(1, 0, 3), TN_OK);
            }
            finish();
        }
}

static void beat(uint64_t sequence, uint64_t step, uint64_t before, bool leaves_out)
{
    const tni_kv_view *v = tni_kv_scheduler_view(all->scheduler);
    tni_kv_header h = {.type = TNI_KV_BEAT,
                       .from = SERVER,
                       .job = 5,
                       .view = v->number,
                       .incarnation = tni_kv_view_member(v, SERVER)->incarnation,
                       .sequence = sequence,
                       .bytes = 24};
    uint8_t text[TNI_KV_HEADER_BYTES], steps[24];

    tni_kv_put(steps, leaves_out ? before : step, 8);
    tni_kv_put(steps + 8, leaves_out ? 0 : before, 8);
    tni_kv_put(steps + 16, leaves_out ? step : 0, 8);
    tni_kv_encode(&h, steps, text);
    (void)tni_kv_scheduler_receive(all->scheduler, text, steps, sizeof steps, all->now);
}

/* The scheduler answers a beat with the step that all servers hold; 0: it does not answer. */
static uint64_t answered(uint64_t sequence, uint64_t step, uint64_t before, bool leaves_out)
{
    tni_kv_header h;

    all->head = all->tail = 0;
    beat(sequence, step, before, leaves_out);
    for (const message *m = all->queue; m < all->queue + all->tail; m++)
        if (m->header[3] == TNI_KV_BEAT) {
            assert_int_equal(tni_kv_decode(m->header, m->payload, m->bytes, &h), TN_OK);
            return h.key;
        }
    return 0;
}

/* A late one says nothing. A snapshot that a server leaves out it keeps if it was told once that all hold it,
 * which the scheduler says when its journal has it, and the next one knows. */
static void beats(void **unused)
{
    static const struct {
        uint64_t sequence, step, before, answer;
        bool leaves_out, journal_fails, again; /* again: another scheduler */
    } rows[] = {
        {1000, 20, 0, 20, false, false, false}, {999, 10, 0, 0, false, false, false},
        {1000, 10, 0, 0, false, false, false},  {1001, 30, 20, 20, true, false, false},
        {1002, 30, 20, 20, false, true, false}, {1003, 30, 20, 30, false, false, false},
        {1004, 40, 30, 30, true, false, false}, {1005, 30, 20, 30, true, false, true},
        {1006, 40, 30, 30, true, false, false}, {1007, 40, 30, 40, false, false, false},
        {0, 50, 0, 50, false, false, false}, /* a process of before, which does not count */
    };
    world w;

    (void)unused;
    begin(&w, false, 0, TNI_KV_LOSS_FAIL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.journal_fails = rows[i].journal_fails;
        if (rows[i].again)
            scheduler_start(&w);
        pass(SECOND); /* its view is announced */
        assert_int_equal(answered(rows[i].sequence, rows[i].step, rows[i].before, rows[i].leaves_out),
                         rows[i].answer);
    }
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_any_snapshot),    cmocka_unit_test(behind_the_last_snapshot),
        cmocka_unit_test(worker_0_is_waited_for), cmocka_unit_test(nobody_has_it),
        cmocka_unit_test(nobody_has_anything),    cmocka_unit_test(assigned),
        cmocka_unit_test(snapshot_of_a_past),     cmocka_unit_test(half_landed),
        cmocka_unit_test(worker_0_does_not_come), cmocka_unit_test(commands_are_lost),
        cmocka_unit_test(who_left_comes_again),   cmocka_unit_test(beats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
