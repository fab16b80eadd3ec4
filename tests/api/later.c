#include "api/later.h"

#include <sched.h>

const char *const later_engines[3] = {"engine.type=threaded", "engine.type=naive", "engine.type=stepped"};

void later_complete(later *l)
{
    l->answer = tn_task_complete(atomic_load(&l->handle), l->status, l->text);
}

void later_until_returned(later *l)
{
    bool returned = false;

    while (!returned) {
        char *text = NULL;

        if (tn_engine_dump(l->ctx, &text))
            return;
        returned = strstr(text, "begun, to be completed") != NULL;
        tn_free(text);
        (void)sched_yield();
    }
}

static void *completer(void *arg)
{
    later *l = arg;

    while (!atomic_load(&l->handle))
        (void)sched_yield();
    if (l->when == AFTER_RETURN)
        later_until_returned(l);
    later_complete(l);
    return NULL;
}

tn_status later_begin(void *arg, uint64_t handle)
{
    later *l = arg;

    atomic_store(&l->handle, handle);
    atomic_fetch_add(&l->begun, 1u);
    if (l->when == IN_BEGIN)
        later_complete(l);
    if (l->when == BEFORE_RETURN) {
        (void)pthread_join(l->thread, NULL);
        l->started = false;
    }
    return l->returned;
}

void later_done(void *arg, tn_status status)
{
    later *l = arg;

    l->seen = status;
    atomic_fetch_add(&l->done, 1u);
}

void later_push(later *l, tn_var *reads, tn_var *writes)
{
    tn_var *read[] = {reads}, *write[] = {writes};
    const tn_task task = {.struct_size = TN_SIZE(tn_task),
                          .begin = later_begin,
                          .done = later_done,
                          .arg = l,
                          .reads = read,
                          .writes = write,
                          .read_count = reads != NULL,
                          .write_count = writes != NULL,
                          .name = "later"};

    if (l->when == BEFORE_RETURN || l->when == AFTER_RETURN) {
        l->started = true;
        assert_int_equal(pthread_create(&l->thread, NULL, completer, l), 0);
    }
    assert_ok(tn_engine_push(l->ctx, &task));
}

void later_end(later *l)
{
    if (l->started)
        assert_int_equal(pthread_join(l->thread, NULL), 0);
    assert_int_equal(atomic_load(&l->done), 1);
}

tn_status count_run(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1u);
    return TN_OK;
}

void count_push(tn_ctx *ctx, atomic_uint *count, tn_var *reads, tn_var *writes)
{
    tn_var *read[] = {reads}, *write[] = {writes};
    const tn_task task = {.struct_size = TN_SIZE(tn_task),
                          .run = count_run,
                          .arg = count,
                          .reads = read,
                          .writes = write,
                          .read_count = reads != NULL,
                          .write_count = writes != NULL,
                          .name = "count"};

    assert_ok(tn_engine_push(ctx, &task));
}
