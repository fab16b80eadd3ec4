/* A program forks: right behind its own work, and while its other threads wait for what a fork holds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/support.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#if defined(__SANITIZE_THREAD__)
#define FORKS 3
#define ENGINE_OF_CHILD "engine.type=naive" /* the sanitizer allows no threads in a child */
#else
#define FORKS 30 /* right behind the work: the parent's workers are still busy with what comes after it */
#define ENGINE_OF_CHILD "engine.type=threaded"
#endif

static void a_child_goes_on(void **state)
{
    tn_ctx *ctx = test_open(LIST(ENGINE_OF_CHILD)), *naive = test_open(LIST("engine.type=naive"));
    int status;
    pid_t child;

    (void)state;
    test_use(ctx);
    for (int i = 0; i < FORKS; i++) {
        child = fork();
        if (!child) {
            test_use(ctx);
            test_use(naive);
            _exit(tn_close(ctx) || tn_close(naive) ? 3 : 0);
        }
        assert_true(child > 0);
        test_use(ctx);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    test_close(ctx);
    test_close(naive);
}

typedef struct others {
    tn_ctx *ctx;
    atomic_bool stop;
    atomic_int wrong;
} others;

/* Whoever forks holds the right to load plugins and to open devices: these wait for both again and again. */
static void *load_on(void *arg)
{
    const tn_device *none = NULL;
    others *o = arg;

    while (!atomic_load(&o->stop)) {
        if (tn_plugin_load(o->ctx, "mempool") != TN_OK ||
            tn_device_get(o->ctx, "nobody:0", &none) != TN_E_DEVICE)
            atomic_store(&o->wrong, 1);
    }
    return NULL;
}

static void a_child_of_a_program_that_loads(void **state)
{
    others o = {0};
    pthread_t threads[3];
    int status = 0;
    pid_t child;

    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* fork() leaves the locks of the sanitizer's allocator to the child as other threads hold them */
#endif
    o.ctx = test_open(LIST(ENGINE_OF_CHILD));
    test_use(o.ctx);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_on, &o), 0);
    for (int i = 0; i < 3 * FORKS && !status; i++) {
        child = fork();
        if (!child) {
            (void)alarm(20); /* what waits for a thread of the parent waits forever */
            test_use(o.ctx);
            _exit(tn_plugin_load(o.ctx, "mempool") || tn_close(o.ctx) ? 3 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            status = -1;
    }
    atomic_store(&o.stop, true);
    for (int i = 0; i < 3; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(status, 0);
    assert_int_equal(o.wrong, 0);
    test_close(o.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_goes_on),
                                       cmocka_unit_test(a_child_of_a_program_that_loads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
