/*
 * The end of a worker's data where keys are pushed as often as a program likes: nobody waits for who has
 * ended.
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_that_are_pushed_seldom)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
