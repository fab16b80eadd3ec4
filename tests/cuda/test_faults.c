/*
 * Each function of the driver fails, the first time and later: every call ends with a status and a message,
 * or with TN_OK; nothing hangs, and all memory of the host comes back. The program runs itself once for each
 * fault, in a process with the double of the driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"
#include "table.h"

#define BYTES 4096u

static const char *const functions[] = {
#define DRIVER(member, name, params) name,
#include "../../plugins/cuda/driver.list"
#undef DRIVER
};

/* ---- in the process of a fault ----------------------------------------------------------------------- */

typedef struct world {
    table t;
    tn_stream *streams[2];
    tn_event *event;
    tn_device_graph *graph;
    void *device, *pinned, *peer;
    tn_device_handle *other;
    unsigned char plain[BYTES];
    size_t at; /* of a copy within the device's memory */
    atomic_int called, moved, notified, asked;
    uint32_t failures;
} world;

/* A status that is not TN_OK has a message, and is one of the list. */
static tn_status seen(world *w, tn_status st, const tn_err *err)
{
    if (st == TN_OK || st == TN_PENDING)
        return st;
    w->failures++;
    if (st < TN_OK || st > TN_E_INTERNAL || !*err->message) {
        printf("status %d, message '%s'\n", (int)st, err->message);
        exit(1);
    }
    return st;
}

static tn_status call(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return TN_OK;
}

static void noted(void *arg, tn_status status, const tn_err *err)
{
    world *w = arg;

    if (status && !*err->message)
        exit(1);
    atomic_fetch_add(&w->notified, 1);
}

#define TRY(w, call) seen(w, call, &err)

static void graph_use(world *w)
{
    const tn_device_ops *o = w->t.ops;
    void *base[] = {&w->called}, *moved[] = {&w->moved};
    const uint64_t bytes[] = {sizeof w->called};
    const tn_place to = {w->device, 0, TN_MEMORY_DEVICE, "cuda"}, from = {w->plain, -1, TN_MEMORY_HOST, NULL};
    tn_err err = {0};

    if (TRY(w, o->graph_begin(w->streams[0], &err)))
        return;
    (void)TRY(w, o->stream_call(w->streams[0], call, &w->called, &err));
    if (w->device)
        (void)TRY(w, o->copy(w->streams[0], &to, &from, BYTES, &err));
    (void)TRY(w, o->event_record(w->event, w->streams[0], &err));
    (void)TRY(w, o->event_wait(w->streams[0], w->event, &err));
    if (TRY(w, o->graph_end(w->streams[0], 1, base, bytes, &w->graph, &err)))
        return;
    (void)TRY(w, o->graph_launch(w->graph, w->streams[0], &err));
    (void)TRY(w, o->graph_update(w->graph, 1, moved, &err));
    (void)TRY(w, o->graph_launch(w->graph, w->streams[0], &err));
}

static tn_status copy_within(void *arg, tn_err *err)
{
    const world *w = arg;
    const tn_place to = {(char *)w->device + w->at, 0, TN_MEMORY_DEVICE, "cuda"},
                   from = {w->device, 0, TN_MEMORY_DEVICE, "cuda"};

    return w->t.ops->copy(w->streams[0], &to, &from, BYTES / 4, err);
}

/* Recorded, the same, with another address, and something else: TN_E_UNSUPPORTED has the caller do it
 * plainly.
 */
static void runs_use(world *w)
{
    tn_device_graph *graph = NULL;
    uint32_t moved;
    tn_err err = {0};

    for (w->at = BYTES / 2; w->device && w->at < BYTES; w->at += BYTES / 4)
        for (int i = 0; i < 2; i++)
            (void)TRY(w, w->t.ops->graph_run(&graph, w->streams[0], copy_within, w, &moved, &err));
    w->t.ops->graph_free(graph);
}

static void copies(world *w)
{
    const tn_device_ops *o = w->t.ops;
    const tn_place device = {w->device, 0, TN_MEMORY_DEVICE, "cuda"},
                   plain = {w->plain, -1, TN_MEMORY_HOST, NULL},
                   pinned = {w->pinned, 0, TN_MEMORY_PINNED, "cuda"},
                   peer = {w->peer, 1, TN_MEMORY_DEVICE, "cuda"};
    tn_err err = {0};

    if (!w->device)
        return;
    (void)TRY(w, o->copy(w->streams[0], &device, &plain, BYTES, &err));
    (void)TRY(w, o->stream_call(w->streams[0], call, &w->called, &err));
    (void)TRY(w, o->copy(w->streams[0], &device, &plain, BYTES, &err));
    if (w->pinned)
        (void)TRY(w, o->copy(w->streams[0], &pinned, &device, BYTES, &err));
    if (w->peer)
        (void)TRY(w, o->copy(w->streams[0], &peer, &device, BYTES, &err));
    (void)TRY(w, o->copy(w->streams[0], &plain, &device, BYTES, &err));
}

static void streams_use(world *w)
{
    const tn_device_ops *o = w->t.ops;
    tn_err err = {0};
    int asked = 0;

    copies(w);
    (void)TRY(w, o->event_record(w->event, w->streams[0], &err));
    (void)TRY(w, o->event_wait(w->streams[1], w->event, &err));
    asked += !TRY(w, o->event_notify(w->event, noted, w, &err));
    (void)TRY(w, o->event_query(w->event, &err));
    graph_use(w);
    runs_use(w);
    (void)TRY(w, o->event_record(w->event, w->streams[1], &err));
    asked += !TRY(w, o->event_notify(w->event, noted, w, &err));
    (void)TRY(w, o->stream_wait(w->streams[0], &err));
    (void)TRY(w, o->stream_wait(w->streams[1], &err));
    atomic_store(&w->asked, asked);
}

static void all_use(world *w)
{
    const tn_device_ops *o = w->t.ops;
    tn_device_info info = {.struct_size = sizeof info};
    tn_err err = {0};

    (void)TRY(w, o->info(w->t.device, &info, &err));
    (void)TRY(w, o->alloc(w->t.device, TN_MEMORY_DEVICE, BYTES, &w->device, &err));
    (void)TRY(w, o->alloc(w->t.device, TN_MEMORY_PINNED, BYTES, &w->pinned, &err));
    if (!TRY(w, o->open(w->t.plugin, 1, &w->other, &err)))
        (void)TRY(w, o->alloc(w->other, TN_MEMORY_DEVICE, BYTES, &w->peer, &err));
    if (!TRY(w, o->host_register(w->t.device, w->plain, BYTES, &err)))
        o->host_unregister(w->t.device, w->plain);
    if (!TRY(w, o->stream_create(w->t.device, 1, &w->streams[0], &err)) &&
        !TRY(w, o->stream_create(w->t.device, -1, &w->streams[1], &err)) &&
        !TRY(w, o->event_create(w->t.device, &w->event, &err)))
        streams_use(w);
    o->graph_free(w->graph);
    o->event_destroy(w->event);
    o->stream_destroy(w->streams[0]);
    o->stream_destroy(w->streams[1]);
    o->free(w->t.device, TN_MEMORY_DEVICE, w->device);
    o->free(w->t.device, TN_MEMORY_PINNED, w->pinned);
    if (w->other) {
        o->free(w->other, TN_MEMORY_DEVICE, w->peer);
        o->close(w->other);
    }
}

static int child(void)
{
    static world w;
    tn_err err = {0};

    if (!seen(&w, table_start(&w.t, &err), &err))
        all_use(&w);
    table_stop(&w.t);
    printf("%u calls failed, %d logged, %lld blocks left, notified %d of %d\n", w.failures,
           (int)atomic_load(&w.t.logged), (long long)atomic_load(&w.t.memory_live), atomic_load(&w.notified),
           atomic_load(&w.asked));
    return atomic_load(&w.t.memory_live) || atomic_load(&w.notified) != atomic_load(&w.asked) ||
           atomic_load(&w.t.logged) > 2;
}

/* ---- all faults -------------------------------------------------------------------------------------- */

static char self[4096];

static const said *with_fault(const char *name, unsigned at, unsigned result)
{
    char settings[128], command[4200];

    (void)snprintf(settings, sizeof settings, "TNEMU_FAULT=%s:%u:%u TNEMU_SEED=%u", name, at, result, at);
    (void)snprintf(command, sizeof command, "'%s' child", self);
    return cuda_say(settings, command);
}

static void none(void **state)
{
    const said *s = with_fault("cuInit", 99, 1);

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, "0 calls failed, 0 logged, 0 blocks left, notified 2 of 2");
}

/* An invalid value, no memory, and an error that ends the context. */
static void each(void **state)
{
    static const unsigned results[] = {1, 2, 719};
    const unsigned times = test_short() ? 2 : 4;

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (size_t r = 0; r < sizeof results / sizeof *results; r++)
            for (unsigned at = 1; at <= times; at++) {
                const said *s = with_fault(functions[i], at, results[r]);

                if (s->code)
                    fail_msg("%s, call %u gives %u: ends with %d\n%s", functions[i], at, results[r], s->code,
                             s->out);
            }
}

static void once_loudly(void **state)
{
    const said *s = with_fault("cuMemcpyAsync", 1, 719);

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, ", 1 logged, 0 blocks left");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none),
        cmocka_unit_test(each),
        cmocka_unit_test(once_loudly),
    };

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 1)
        return child();
    cuda_setup();
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
