/* Faults on demand and how they stay, notifications, limits, closing with work under way, options, fork. */
#include "fake.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static tn_status add_run(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return TN_OK;
}

static tn_status bad_run(void *arg, tn_err *err)
{
    (void)arg;
    return tn_fail(err, TN_E_SHAPE, "this kernel does not like it");
}

typedef struct notes {
    atomic_int ok, failed, wrong;
    tn_status status;
    char message[64];
} notes;

/* One notification: its own counter tells that it came once. */
typedef struct note {
    notes *all;
    atomic_int times;
    atomic_int *reached; /* rises before the point is reached; NULL: not looked at */
    int at_least;
} note;

static void note_run(void *arg, tn_status status, const tn_err *err)
{
    note *n = arg;

    if (status) {
        if (!err || err->code != status)
            atomic_fetch_add(&n->all->wrong, 1);
        else
            snprintf(n->all->message, sizeof n->all->message, "%.60s", err->message);
        n->all->status = status;
        atomic_fetch_add(&n->all->failed, 1);
    } else {
        atomic_fetch_add(&n->all->ok, 1);
    }
    if (n->reached && atomic_load(n->reached) < n->at_least)
        atomic_fetch_add(&n->all->wrong, 1); /* before its point */
    atomic_fetch_add(&n->times, 1);
}

static void test_notify_once(void **state)
{
    enum { COUNT = 3000 };
    static note all[COUNT];
    static notes seen;
    atomic_int ran[2];
    tn_stream *s[2];
    fake f;

    (void)state;
    atomic_init(&ran[0], 0);
    atomic_init(&ran[1], 0);
    fake_start(&f, (fake_options){.seed = 9, .delay_us = 20, .reorder = 1, .devices = 1});
    s[0] = fake_stream(&f);
    s[1] = fake_stream(&f);
    for (int i = 0; i < COUNT; i++) {
        tn_event *e;

        assert_int_equal(f.ops->stream_call(s[i % 2], add_run, &ran[i % 2], NULL), TN_OK);
        e = fake_mark(&f, s[i % 2]);
        all[i].all = &seen;
        all[i].reached = &ran[i % 2];
        all[i].at_least = i / 2 + 1;
        assert_int_equal(f.ops->event_notify(e, note_run, &all[i], NULL), TN_OK);
        f.ops->event_destroy(e);
    }
    assert_int_equal(f.ops->stream_wait(s[0], NULL), TN_OK);
    fake_stop(&f); /* delivers what is left */
    assert_int_equal(atomic_load(&seen.ok), COUNT);
    assert_int_equal(atomic_load(&seen.failed), 0);
    assert_int_equal(atomic_load(&seen.wrong), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(atomic_load(&all[i].times), 1);
}

typedef struct told_order {
    atomic_int open, count;
    int order[40];
} told_order;

typedef struct ordered {
    told_order *all;
    int number;
} ordered;

/* The first one holds up the driver thread. */
static void ordered_run(void *arg, tn_status status, const tn_err *err)
{
    const ordered *t = arg;

    (void)status;
    (void)err;
    while (!t->number && !atomic_load(&t->all->open))
        (void)sched_yield();
    t->all->order[atomic_fetch_add(&t->all->count, 1)] = t->number;
}

/* Notifications that wait for the driver thread together come in another order than their points were reached
 * in, if that is asked for. */
static void test_notify_order(void **state)
{
    enum { COUNT = 40 };
    static told_order seen;
    static ordered all[COUNT];

    (void)state;
    for (int reorder = 0; reorder < 2; reorder++) {
        int64_t reordered;
        int moved = 0;
        tn_stream *s;
        fake f;

        atomic_store(&seen.open, 0);
        atomic_store(&seen.count, 0);
        fake_start(&f, (fake_options){.seed = 9, .delay_us = 20, .reorder = reorder, .devices = 1});
        s = fake_stream(&f);
        for (int i = 0; i < COUNT; i++) {
            tn_event *e = fake_mark(&f, s);

            all[i] = (ordered){&seen, i};
            assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
            assert_int_equal(f.ops->event_notify(e, ordered_run, &all[i], NULL), TN_OK);
            f.ops->event_destroy(e);
        }
        atomic_store(&seen.open, 1);
        while (fake_number(&f, "notifications") < COUNT)
            (void)sched_yield();
        reordered = fake_number(&f, "notifications_reordered");
        fake_stop(&f);
        for (int i = 0; i < COUNT; i++)
            moved += seen.order[i] != i;
        assert_true((moved > 0) == (reorder > 0));
        assert_true((reordered > 0) == (reorder > 0));
    }
}

/* An event that was reached long ago, and one that was never recorded: told at once, by the driver thread. */
static void test_notify_late(void **state)
{
    static note first, second;
    static notes seen;
    tn_stream *s;
    tn_event *e, *never;
    fake f;

    (void)state;
    first.all = second.all = &seen;
    fake_start(&f, (fake_options){.delay_us = 10, .reorder = 1, .devices = 1});
    s = fake_stream(&f);
    e = fake_mark(&f, s);
    never = fake_event(&f);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(f.ops->event_notify(e, note_run, &first, NULL), TN_OK);
    assert_int_equal(f.ops->event_notify(never, note_run, &second, NULL), TN_OK);
    assert_int_equal(f.ops->event_notify(e, NULL, &second, NULL), TN_E_ARG);
    f.ops->event_destroy(e);
    f.ops->event_destroy(never);
    fake_stop(&f);
    assert_int_equal(atomic_load(&seen.ok), 2);
}

/* The 40th call fails: later ones are dropped, notifications and waits carry the error,
 * other streams go on. */
static void test_fault_sticks(void **state)
{
    static note mine, others, dependant;
    static notes seen, fine;
    atomic_int ran, other;
    tn_stream *s, *t, *u;
    tn_event *e;
    tn_err err = {0};
    fake f;

    (void)state;
    atomic_init(&ran, 0);
    atomic_init(&other, 0);
    mine.all = dependant.all = &seen;
    others.all = &fine;
    fake_start(&f, (fake_options){.delay_us = 5, .reorder = 1, .devices = 1, .fault = "copy:99, call:40"});
    s = fake_stream(&f);
    t = fake_stream(&f);
    u = fake_stream(&f);
    for (int i = 0; i < 60; i++) {
        tn_status st = f.ops->stream_call(s, add_run, &ran, NULL);

        assert_true(st == TN_OK || (i >= 40 && st == TN_E_DEVICE));
    }
    assert_int_equal(f.ops->stream_wait(s, &err), TN_E_DEVICE);
    assert_non_null(strstr(err.message, "fault"));
    assert_int_equal(atomic_load(&ran), 39);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_E_DEVICE); /* and stays so */
    assert_int_equal(f.ops->stream_call(s, add_run, &ran, &err), TN_E_DEVICE);
    assert_int_equal(f.ops->stream_call(t, add_run, &other, NULL), TN_OK);
    e = fake_mark(&f, s); /* still taken, so that whoever waits for it comes to an end */
    assert_int_equal(f.ops->event_notify(e, note_run, &mine, NULL), TN_OK);
    assert_int_equal(f.ops->event_wait(u, e, NULL), TN_OK);
    assert_int_equal(f.ops->stream_wait(u, &err), TN_E_DEVICE);
    assert_int_equal(f.ops->event_query(e, NULL), TN_E_DEVICE);
    f.ops->event_destroy(e);
    e = fake_mark(&f, u);
    assert_int_equal(f.ops->event_notify(e, note_run, &dependant, NULL), TN_OK);
    f.ops->event_destroy(e);
    e = fake_mark(&f, t);
    assert_int_equal(f.ops->event_notify(e, note_run, &others, NULL), TN_OK);
    f.ops->event_destroy(e);
    assert_int_equal(f.ops->stream_wait(t, NULL), TN_OK);
    assert_int_equal(fake_number(&f, "faults"), 1);
    assert_int_equal(fake_number(&f, "failed_streams"), 2);
    fake_stop(&f);
    assert_int_equal(atomic_load(&seen.failed), 2);
    assert_int_equal(atomic_load(&seen.wrong), 0);
    assert_int_equal(seen.status, TN_E_DEVICE);
    assert_non_null(strstr(seen.message, "fault"));
    assert_int_equal(atomic_load(&fine.ok), 1);
    assert_int_equal(atomic_load(&other), 1);
}

static void test_kernel_error(void **state)
{
    atomic_int ran;
    tn_stream *s;
    tn_err err = {0};
    fake f;

    (void)state;
    atomic_init(&ran, 0);
    fake_start(&f, (fake_options){.delay_us = 0, .reorder = 1, .devices = 1});
    s = fake_stream(&f);
    assert_int_equal(f.ops->stream_call(s, bad_run, NULL, NULL), TN_OK);
    (void)f.ops->stream_call(s, add_run, &ran, NULL);
    assert_int_equal(f.ops->stream_wait(s, &err), TN_E_SHAPE);
    assert_int_equal(err.code, TN_E_SHAPE);
    assert_string_equal(err.message, "this kernel does not like it");
    assert_int_equal(atomic_load(&ran), 0);
    fake_stop(&f);
}

static void test_copy_and_alloc_faults(void **state)
{
    char from[16] = "abc", to[16] = "";
    const tn_place src = {from, -1, TN_MEMORY_HOST, NULL}, dst = {to, -1, TN_MEMORY_HOST, NULL};
    void *data = NULL;
    tn_stream *s;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.devices = 1, .reorder = 1, .fault = "alloc:2,copy:2"});
    s = fake_stream(&f);
    assert_int_equal(f.ops->copy(s, &dst, &src, 2, NULL), TN_OK);
    assert_int_equal(f.ops->copy(s, &dst, &src, 4, NULL), TN_OK);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_E_DEVICE);
    assert_string_equal(to, "ab");
    for (int i = 1; i <= 3; i++) {
        tn_status st = f.ops->alloc(f.device, TN_MEMORY_DEVICE, 100, &data, NULL);

        assert_int_equal(st, i == 2 ? TN_E_NOMEM : TN_OK);
        if (!st)
            f.ops->free(f.device, TN_MEMORY_DEVICE, data);
    }
    fake_stop(&f);
}

static void test_memory_limit(void **state)
{
    tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    void *a = NULL, *b = NULL;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.devices = 1, .memory = "1MiB"});
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_DEVICE, 1 << 19, &a, NULL), TN_OK);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_DEVICE, (1 << 19) + 1, &b, NULL), TN_E_NOMEM);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_DEVICE, UINT64_MAX, &b, NULL), TN_E_NOMEM);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_DEVICE, 0, &b, NULL), TN_E_ARG);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_SHARED, 8, &b, NULL), TN_E_UNSUPPORTED);
    assert_null(b);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_PINNED, 1 << 20, &b, NULL), TN_OK); /* is host memory */
    assert_int_equal(f.ops->info(f.device, &info, NULL), TN_OK);
    assert_int_equal(info.memory_total, 1 << 20);
    assert_int_equal(info.memory_free, 1 << 19);
    assert_true(info.flags & TN_DEVICE_F_HOST_ADDRESSABLE);
    f.ops->free(f.device, TN_MEMORY_DEVICE, a);
    f.ops->free(f.device, TN_MEMORY_PINNED, b);
    assert_int_equal(fake_number(&f, "memory_bytes"), 0);
    fake_stop(&f);
}

/* Closing lets everything run out, without the delays, and joins all threads. With the delays, a chain of a
 * quarter of a second each on average, it would take longer than any test may. */
static void test_close_with_work(void **state)
{
    enum { ITEMS = 5000 };
    static note all[ITEMS];
    static notes seen;
    atomic_int ran;
    tn_stream *s[3];
    tn_event *e = NULL;
    fake f;

    (void)state;
    atomic_init(&ran, 0);
    fake_start(&f, (fake_options){.delay_us = 1000000, .reorder = 1, .devices = 1});
    for (int i = 0; i < 3; i++)
        s[i] = fake_stream(&f);
    for (int i = 0; i < ITEMS; i++) {
        if (e)
            assert_int_equal(f.ops->event_wait(s[i % 3], e, NULL), TN_OK);
        f.ops->event_destroy(e);
        assert_int_equal(f.ops->stream_call(s[i % 3], add_run, &ran, NULL), TN_OK);
        e = fake_mark(&f, s[i % 3]);
        all[i].all = &seen;
        assert_int_equal(f.ops->event_notify(e, note_run, &all[i], NULL), TN_OK);
    }
    f.ops->event_destroy(e);
    fake_stop(&f);
    assert_int_equal(atomic_load(&ran), ITEMS);
    assert_int_equal(atomic_load(&seen.ok), ITEMS);
}

static void test_again_and_again(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        tn_stream *s;
        fake f;

        fake_start(&f, (fake_options){.devices = 2, .delay_us = 10, .reorder = i % 2});
        s = fake_stream(&f);
        (void)fake_stream(&f);
        f.ops->stream_destroy(s);
        fake_stop(&f);
    }
}

static void test_options(void **state)
{
    static const struct {
        fake_options options;
        tn_status status;
        const char *word;
    } cases[] = {
        {{.devices = 65}, TN_E_ARG, "devices"},
        {{.devices = 1, .delay_us = -1}, TN_E_ARG, "delay_us"},
        {{.devices = 1, .delay_us = 1000001}, TN_E_ARG, "delay_us"},
        {{.devices = 1, .seed = -1}, TN_E_ARG, "seed"},
        {{.devices = 1, .reorder = 2}, TN_E_ARG, "reorder"},
        {{.devices = 1, .fault = "call"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "call:"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "call:0"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "call:1x"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "call:99999999999999999999999"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "kernel:1"}, TN_E_ARG, "fault"},
        {{.devices = 1, .fault = "call:1,call:2,call:3,call:4,call:5,call:6,call:7,call:8,call:9"},
         TN_E_ARG,
         "up to"},
        {{.devices = 1, .fault = ""}, TN_OK, NULL},
        {{.devices = 1, .memory = "much"}, TN_E_ARG, "memory"},
        {{.devices = 1, .memory = "0"}, TN_OK, NULL},
        {{.devices = 0}, TN_OK, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_err err = {0};
        fake f;

        assert_int_equal(fake_init(&f, cases[i].options, &err), cases[i].status);
        if (cases[i].status)
            assert_non_null(strstr(err.message, cases[i].word));
        else
            f.descriptor->fini(f.plugin);
    }
}

static void test_bad_arguments(void **state)
{
    tn_device_handle *none = NULL;
    tn_stream *s, *many[80];
    tn_event *e;
    int32_t count = 0;
    uint32_t made = 0;
    tn_err err = {0};
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.devices = 2, .reorder = 1});
    assert_int_equal(f.ops->count(f.plugin, &count, NULL), TN_OK);
    assert_int_equal(count, 2);
    assert_int_equal(f.ops->open(f.plugin, 2, &none, &err), TN_E_DEVICE);
    assert_int_equal(f.ops->open(f.plugin, -1, &none, &err), TN_E_DEVICE);
    assert_null(none);
    s = fake_stream(&f);
    e = fake_event(&f);
    assert_int_equal(f.ops->stream_call(NULL, add_run, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->stream_call(s, NULL, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->stream_wait(NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->event_record(NULL, s, NULL), TN_E_ARG);
    assert_int_equal(f.ops->event_record(e, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->event_wait(s, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->event_query(NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->event_notify(NULL, note_run, NULL, NULL), TN_E_ARG);
    f.ops->stream_destroy(NULL);
    f.ops->event_destroy(NULL);
    f.ops->free(f.device, TN_MEMORY_DEVICE, NULL);
    f.ops->close(NULL);
    while (made < 80 && !f.ops->stream_create(f.device, 0, &many[made], &err))
        made++;
    assert_int_equal(made, 63);
    assert_non_null(strstr(err.message, "64"));
    f.ops->event_destroy(e);
    fake_stop(&f);
}

/* Host memory fails from call n on: each function says so and leaves nothing behind; what was taken still
 * ends. */
static void test_host_memory_fails(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 60; n++) {
        static note told[10];
        static notes seen;
        int taken = 0, asked = 0;
        atomic_int ran;
        tn_stream *s = NULL, *t = NULL;
        tn_err err = {0};
        fake f;

        memset(told, 0, sizeof told);
        memset(&seen, 0, sizeof seen);
        atomic_init(&ran, 0);
        assert_int_equal(fake_init(&f, (fake_options){.devices = 1, .delay_us = 5, .reorder = n % 2}, &err),
                         TN_OK);
        f.memory_fail_at = atomic_load(&f.memory_calls) + n;
        if (f.ops->open(f.plugin, 0, &f.device, &err)) {
            assert_int_equal(err.code, TN_E_NOMEM);
            fake_stop(&f);
            continue;
        }
        (void)f.ops->stream_create(f.device, 0, &s, &err);
        (void)f.ops->stream_create(f.device, 0, &t, &err);
        for (int i = 0; i < 10 && s && t; i++) {
            tn_event *e = NULL;

            taken += f.ops->stream_call(s, add_run, &ran, &err) == TN_OK;
            if (f.ops->event_create(f.device, &e, &err))
                continue;
            (void)f.ops->event_record(e, s, &err);
            (void)f.ops->event_wait(t, e, &err);
            told[i].all = &seen;
            asked += f.ops->event_notify(e, note_run, &told[i], &err) == TN_OK;
            f.ops->event_destroy(e);
        }
        fake_stop(&f);
        assert_int_equal(atomic_load(&ran), taken);
        assert_int_equal(atomic_load(&seen.ok), asked);
        assert_int_equal(atomic_load(&seen.wrong), 0);
    }
}

/* In a child nothing of the device works, nothing hangs. */
static void test_fork(void **state)
{
    tn_stream *s;
    tn_event *e;
    int status = 0;
    pid_t child;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.devices = 1, .reorder = 1});
    s = fake_stream(&f);
    e = fake_mark(&f, s);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(f.descriptor->fork(f.plugin, TN_FORK_PREPARE), TN_OK);
    child = fork();
    if (child == 0) {
        void *data;
        int bad = 0;

        (void)f.descriptor->fork(f.plugin, TN_FORK_CHILD);
        bad += f.ops->stream_call(s, add_run, NULL, NULL) != TN_E_STATE;
        bad += f.ops->stream_wait(s, NULL) != TN_E_STATE;
        bad += f.ops->event_query(e, NULL) != TN_E_STATE;
        bad += f.ops->alloc(f.device, TN_MEMORY_DEVICE, 8, &data, NULL) != TN_E_STATE;
        f.ops->stream_destroy(s);
        f.ops->event_destroy(e);
        f.ops->close(f.device);
        _exit(bad);
    }
    assert_true(child > 0);
    assert_int_equal(f.descriptor->fork(f.plugin, TN_FORK_PARENT), TN_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    f.ops->event_destroy(e);
    fake_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notify_once),
        cmocka_unit_test(test_notify_order),
        cmocka_unit_test(test_notify_late),
        cmocka_unit_test(test_fault_sticks),
        cmocka_unit_test(test_kernel_error),
        cmocka_unit_test(test_copy_and_alloc_faults),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_close_with_work),
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_host_memory_fails),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests_name("fake.faults", tests, NULL, NULL);
}
