/*
 * The end of a worker's data where keys are pushed as often as a program likes: nobody waits for who has
 * ended. And a program that closes its store and begins again: it passes what the others have behind them.
 */
#include "dist/job.h"

/* Key "a" in each step, "b" in every second one, "c" late, so that worker 1 never pushes it. */
static void seldom(worker *w)
{
    const int steps = w->rank ? 3 : 7;
    tn_array *ones;

    worker_init(w, "a", TN_F32, 2, small_shape, 0);
    worker_init(w, "b", TN_F32, 1, big_shape, 0);
    worker_init(w, "c", TN_F32, 2, small_shape, 0);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", (const char *const[]){"lr", "-1", NULL}));
    for (int step = 0; step < steps; step++) {
        ones = worker_array(w, TN_F32, 2, small_shape, 1);
        worker_push(w, "a", ones);
        if (w->rank == 0 && step >= 5)
            worker_push(w, "c", ones);
        tn_array_release(ones);
        ones = worker_array(w, TN_F32, 1, big_shape, 1);
        if (step % 2 == 0)
            worker_push(w, "b", ones);
        tn_array_release(ones);
    }
    WORKER_OK(w, tn_kv_end(w->kv));
    worker_value(w, "a", 2, small_shape, 14); /* the sum of those that remain counts for all */
    worker_value(w, "b", 1, big_shape, 8);
    worker_value(w, "c", 2, small_shape, 4);
    WORKER_OK(w, tn_kv_barrier(w->kv));
}

static void keys_that_are_pushed_seldom(void **state)
{
    static const uint32_t join = 2;
    const job_options o = {
        .workers = 2, .servers = 2, .part_bytes = 4096, .uneven = join, .snapshot_steps = 2};

    (void)state;
    job_run(&o, "dist_sync", seldom, NULL);
}

static void start(worker *w, double fill)
{
    worker_init(w, "a", TN_F32, 2, small_shape, fill);
    WORKER_OK(w, tn_kv_set_optimizer(w->kv, "sgd", (const char *const[]){"lr", "-1", NULL}));
    WORKER_OK(w, tn_kv_barrier(w->kv));
}

static void twice(worker *w)
{
    tn_array *ones = worker_array(w, TN_F32, 2, small_shape, 1);

    start(w, 5);
    if (w->rank) {
        worker_push(w, "a", ones);
        tn_kv_destroy(w->kv);
        w->kv = NULL;
        WORKER_OK(w, tn_kv_create(w->ctx, "dist_async", &w->kv));
        start(w, 9);
        worker_push(w, "a", ones);
    }
    job_meet(w);
    WORKER_OK(w, tn_kv_barrier(w->kv)); /* the same one of both programs */
    worker_value(w, "a", 2, small_shape, 7);
    WORKER_OK(w, tn_kv_barrier(w->kv));
    tn_array_release(ones);
}

static void who_closed_its_store_begins_again(void **state)
{
    const job_options o = {.workers = 2, .servers = 1, .waits = true};

    (void)state;
    job_run(&o, "dist_async", twice, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_that_are_pushed_seldom),
                                       cmocka_unit_test(who_closed_its_store_begins_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
