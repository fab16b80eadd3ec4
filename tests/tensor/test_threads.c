/* Arrays made on some threads and released on others; copies of shared arrays from all of them; ends flat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/space.h"

#define THREADS 4
#define ROUNDS 3000
#define SLOTS 64

static test_space t;
static _Atomic(tni_array *) slots[SLOTS]; /* what threads hand to each other */
static tni_array *shared[4];
static atomic_int failures;

static void worker(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        const int64_t small = 4, large = 300;
        tni_array *a = NULL, *view = NULL;

        random = random * 6364136223846793005u + 1442695040888963407u;
        if (tni_array_create(t.space, t.cpu, TN_F32, 1, random >> 40 & 1 ? &small : &large, NULL, &a) ||
            tni_array_slice(a, 1, 3, &view) || tni_array_fill(view, i)) {
            atomic_fetch_add(&failures, 1);
            return;
        }
        if (a->shape[0] == large) {
            tni_array *from = shared[random >> 50 & 3], *to = shared[random >> 52 & 3];

            if (tni_array_copy(from, to) || tni_array_copy(from, a))
                atomic_fetch_add(&failures, 1);
        }
        tni_array_release(a);
        tni_array_release(atomic_exchange(&slots[random >> 33 & (SLOTS - 1)], view));
    }
}

static void storm(void)
{
    tni_thread *threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create("test", worker, (void *)(i + 1), &threads[i]), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    assert_int_equal(atomic_load(&failures), 0);
    for (int i = 0; i < SLOTS; i++)
        tni_array_release(atomic_exchange(&slots[i], NULL));
}

static void run(void **state)
{
    const int64_t length = 300;
    tni_memory_stats first, second;
    uint64_t arrays;

    test_space_open(&t, *state);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 1, &length, NULL, &shared[i]), TN_OK);
        if (i)
            assert_int_equal(tni_array_fill(shared[i], i),
                             TN_OK); /* the first is read before it is written */
    }
    storm();
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &first), TN_OK);
    storm();
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &second), TN_OK);
    assert_int_equal(first.live, second.live);
    tni_space_live(t.space, &arrays, NULL);
    assert_int_equal(arrays, 4);
    for (int i = 0; i < 4; i++)
        tni_array_release(shared[i]);
    test_space_close(&t);
}

/* After spaces are gone their threads' blocks are gone too. */
static void ends_flat(void **state)
{
    tni_mem_stats before, after;

    (void)state;
    for (int i = 0; i < 3; i++) {
        tni_mem_stats_get(&before);
        run(state);
        tni_mem_stats_get(&after);
    }
    assert_int_equal(before.live_bytes, after.live_bytes);
}

int main(void)
{
    char naive[] = "naive", threaded[] = "threaded";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(run, naive),
        cmocka_unit_test_prestate(run, threaded),
        cmocka_unit_test_prestate(ends_flat, threaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
