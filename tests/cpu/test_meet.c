/* Where calls of several devices meet (plugins/cpu/plain/meet.h), on a host that lacks what they need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>
#include <semaphore.h>

#include <cmocka.h>

#include "../../plugins/cpu/plain/meet.h"

static atomic_uint asked; /* for threads */
static sem_t second;      /* another call has begun */

/* The first is refused once another call has begun. */
static tn_status no_thread(const tn_host *host, const char *name, void (*run)(void *arg), void *arg,
                           void **thread)
{
    (void)host, (void)name, (void)run, (void)arg, (void)thread;
    if (atomic_fetch_add(&asked, 1) == 0)
        (void)sem_wait(&second);
    return TN_E_NOMEM;
}

static void no_join(const tn_host *host, void *thread)
{
    (void)host, (void)thread;
    fail_msg("no thread was made");
}

static void *no_memory(const tn_host *host, uint64_t bytes, uint64_t align)
{
    (void)host, (void)bytes, (void)align;
    return NULL;
}

static void no_free(const tn_host *host, void *memory)
{
    (void)host, (void)memory;
    fail_msg("nothing was taken");
}

static const tn_threads_service threads = {
    .head = {sizeof threads, 0, TN_SERVICE_THREADS}, .create = no_thread, .join = no_join};
static const tn_memory_service memory = {
    .head = {sizeof memory, 0, TN_SERVICE_MEMORY}, .alloc = no_memory, .free = no_free};

static const tn_service *with_threads(const tn_host *host, const char *id)
{
    (void)host;
    return strcmp(id, TN_SERVICE_THREADS) == 0 ? &threads.head : NULL;
}

static const tn_service *without_memory(const tn_host *host, const char *id)
{
    return strcmp(id, TN_SERVICE_MEMORY) == 0 ? &memory.head : with_threads(host, id);
}

static const tn_service *without_threads(const tn_host *host, const char *id)
{
    (void)host, (void)id;
    return NULL;
}

static void opened(void **state)
{
    const tn_host poor = {.struct_size = (uint32_t)sizeof poor, .service = without_memory},
                  lone = {.struct_size = (uint32_t)sizeof lone, .service = without_threads};
    tncpu_meetings *m = NULL;
    tn_err err = {0};

    (void)state;
    assert_int_equal(tncpu_meetings_open(&poor, &m, &err), TN_E_NOMEM);
    assert_null(m);
    assert_int_equal(tncpu_meetings_open(&lone, &m, &err), TN_OK);
    assert_null(m);
    tncpu_meetings_close(m);
}

typedef struct caller {
    tncpu_meetings *m;
    int64_t device;
    tn_status st;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    tncpu_arrival a = {.name = "op", .key = "layer", .ndev = 2, .channels = 3, .device = c->device},
                  *all = NULL;
    tn_err err = {0};

    if (c->device)
        (void)sem_post(&second);
    c->st = tncpu_meet(c->m, &a, &all, &err);
    return NULL;
}

/* Without the thread that ends waits nobody waits, whoever asked for it. */
static void nobody_watches(void **state)
{
    const tn_host host = {.struct_size = (uint32_t)sizeof host, .service = with_threads};
    caller callers[2] = {{.device = 0, .st = TN_OK}, {.device = 1, .st = TN_OK}};
    pthread_t running[2];
    tncpu_meetings *m = NULL;
    tn_err err = {0};

    (void)state;
    assert_int_equal(sem_init(&second, 0, 0), 0);
    assert_int_equal(tncpu_meetings_open(&host, &m, &err), TN_OK);
    for (size_t i = 0; i < 2; i++) {
        callers[i].m = m;
        assert_int_equal(pthread_create(&running[i], NULL, call, &callers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(running[i], NULL), 0);
        assert_int_equal(callers[i].st, TN_E_NOMEM);
    }
    assert_int_equal(atomic_load(&asked), 2);
    tncpu_meetings_close(m);
    (void)sem_destroy(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opened), cmocka_unit_test(nobody_watches)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
