/*
 * Threads of the kit that begin at one moment, where all of them can be started and where one cannot. The
 * linker puts __wrap_pthread_create in place of pthread_create.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lab.h"

#include "kit.h"

#define THREADS 4u

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

static uint32_t can_start; /* threads, until the next one fails */

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    if (!can_start)
        return EAGAIN;
    can_start--;
    return __real_pthread_create(id, attr, run, arg);
}

static void count(void *arg)
{
    atomic_uint *ran = arg;

    atomic_fetch_add(ran, 1);
}

/* As many as were asked for, or none: and none waits for one that never came. */
static void all_or_none(void **state)
{
    (void)state;
    for (uint32_t most = 0; most <= THREADS + 1; most++)
        for (uint32_t round = 0; round < 50; round++) {
            atomic_uint ran = 0;
            void *const args[THREADS] = {&ran, &ran, &ran, &ran};

            can_start = most;
            assert_int_equal(chk_together(THREADS, count, args), most < THREADS ? most : THREADS);
            assert_int_equal(atomic_load(&ran), most < THREADS ? 0 : THREADS);
        }
}

static void overlap(void *arg)
{
    atomic_uint *inside = arg;

    atomic_fetch_add(inside, 1);
    while (atomic_load(inside) < THREADS)
        (void)sched_yield();
}

static void all_at_once(void **state)
{
    atomic_uint inside = 0;
    void *const args[THREADS + 1] = {&inside, &inside, &inside, &inside, &inside};

    (void)state;
    for (uint32_t round = 0; round < 50; round++) {
        atomic_store(&inside, 0);
        can_start = THREADS;
        assert_int_equal(chk_together(THREADS, overlap, args), THREADS);
    }
    can_start = THREADS;
    assert_int_equal(chk_together(2, count, args), 2);
    assert_int_equal(atomic_load(&inside), THREADS + 2);
    can_start = THREADS;
    assert_int_equal(chk_together(THREADS + 1, overlap, args), THREADS); /* none is left to start */
    assert_int_equal(chk_together(0, overlap, args), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_or_none),
        cmocka_unit_test(all_at_once),
    };

    return cmocka_run_group_tests_name("together", tests, NULL, NULL);
}
