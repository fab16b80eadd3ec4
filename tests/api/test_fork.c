/*
 * A program forks: right behind its own work, beside threads that are in the middle of something, on two
 * threads at once, and inside what a plugin was called for.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/fork_plugin.h"
#include "api/support.h"
#include "support/list.h"

#define CHILD_S 100 /* a child that waits for a thread of the parent waits forever */

#if defined(__SANITIZE_THREAD__)
#define FORKS 3
#define ENGINE_OF_CHILD "engine.type=naive" /* the sanitizer allows no threads in a child */
#else
#define FORKS 30 /* right behind the work: the parent's workers are still busy with what comes after it */
#define ENGINE_OF_CHILD "engine.type=threaded"
#endif

/* fork() leaves the locks of these sanitizers' allocators to the child as other threads hold them: beside
 * threads that allocate the child ends at once. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHILD_BESIDE_ALLOCATING_THREADS(main) 0
#else
#define CHILD_BESIDE_ALLOCATING_THREADS(main) (main)
#endif

static bool child_ended_well(pid_t child)
{
    int status = -1;

    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return true;
    print_message("child %d ended with status %#x\n", (int)child, (unsigned)status);
    return false;
}

static void a_child_goes_on(void **state)
{
    tn_ctx *ctx = test_open(LIST(ENGINE_OF_CHILD)), *naive = test_open(LIST("engine.type=naive"));
    pid_t child;

    (void)state;
    test_use(ctx);
    for (int i = 0; i < FORKS; i++) {
        child = fork();
        if (!child) {
            (void)alarm(CHILD_S);
            test_use(ctx);
            test_use(naive);
            _exit(tn_close(ctx) || tn_close(naive) ? 3 : 0);
        }
        assert_true(child > 0);
        test_use(ctx);
        assert_true(child_ended_well(child));
    }
    test_close(ctx);
    test_close(naive);
}

/* ---- what threads do while others fork --------------------------------------------------------------- */

typedef struct program {
    tn_ctx *ctx;
    tn_cached_op *net;        /* of one input */
    atomic_bool stop, pushed; /* `pushed`: a call of the operator went so far, and waits from then on */
    atomic_int wrong;
} program;

static void program_open(program *p, const char *engine)
{
    tn_symbol *x = NULL, *y = NULL;
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = "test_stop", .in_count = 1, .in = &x};

    *p = (program){.ctx = test_open(LIST(engine))};
    assert_ok(tn_plugin_add(p->ctx, &stop_plugin));
    assert_ok(tn_symbol_variable(p->ctx, "x", &x));
    assert_ok(tn_symbol_op(p->ctx, &call, &y));
    assert_ok(tn_cached_op_create(p->ctx, y, NULL, &p->net));
    tn_symbol_release(x);
    tn_symbol_release(y);
}

static void program_close(program *p)
{
    tn_cached_op_release(p->net);
    test_close(p->ctx);
}

/* Each returns whether all went well, for a thread that may not assert; `n` varies shapes, devices, names. */

static bool calls_operator(program *p, int64_t n)
{
    tn_array *a = NULL, *b = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "test_stop", .in_count = 1, .in = &a};
    uint32_t made;
    bool good =
        !tn_array_zeros(p->ctx, TN_F32, 1, &n, NULL, &a) && !tn_invoke_text(p->ctx, &call, 1, &b, &made);

    atomic_store(&p->pushed, true);
    good = good && !tn_array_wait(b);
    tn_array_release(a);
    tn_array_release(b);
    return good;
}

static bool calls_backward(program *p, int64_t n)
{
    tn_array *a = NULL, *b = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "test_stop", .in_count = 1, .in = &a};
    uint32_t made;
    bool good =
        !tn_array_zeros(p->ctx, TN_F32, 1, &n, NULL, &a) && !tn_attach_grad(p->ctx, a, TN_MODE_ADD, NULL);

    tn_record_set(1);
    good = good && !tn_invoke_text(p->ctx, &call, 1, &b, &made);
    tn_record_set(0);
    good = good && !tn_backward(p->ctx, 1, &b, NULL, 0) && !tn_array_wait(tn_array_grad(a));
    tn_array_release(a);
    tn_array_release(b);
    return good;
}

static bool calls_net(program *p, int64_t n)
{
    tn_array *a = NULL, *b = NULL;
    bool good = !tn_array_zeros(p->ctx, TN_F32, 1, &n, NULL, &a) &&
                !tn_cached_op_call(p->net, 1, &a, 1, &b) && !tn_array_wait(b);

    tn_array_release(a);
    tn_array_release(b);
    return good;
}

static bool loads(program *p, int64_t n)
{
    (void)n;
    return !tn_plugin_load(p->ctx, "mempool");
}

static bool opens_device(program *p, int64_t n)
{
    const tn_device *d = NULL;
    char name[16];

    (void)snprintf(name, sizeof name, "cpu:%d", (int)(n % 32));
    return !tn_device_get(p->ctx, name, &d) && tn_device_get(p->ctx, "nobody:0", &d) != TN_OK;
}

static bool opens_context(program *p, int64_t n)
{
    tn_ctx *ctx = NULL;

    (void)p;
    (void)n;
    return !test_open_with(LIST("engine.type=naive"), &ctx) && !tn_close(ctx);
}

typedef bool (*activity)(program *p, int64_t n);
static const activity activities[] = {calls_operator, calls_backward, calls_net,
                                      loads,          opens_device,   opens_context};
#define ACTIVITIES (sizeof activities / sizeof *activities)

/* What a child does with all that its parent left it. */
static int child_main(program *p)
{
    (void)alarm(CHILD_S);
    for (size_t i = 0; i < ACTIVITIES; i++)
        if (!activities[i](p, 3))
            return 10 + (int)i;
    tn_cached_op_release(p->net);
    return tn_close(p->ctx) ? 3 : 0;
}

typedef struct thread_of {
    program *p;
    activity act;
} thread_of;

static void *go_on(void *arg)
{
    const thread_of *t = arg;

    for (int64_t n = 0; !atomic_load(&t->p->stop); n++)
        if (!t->act(t->p, 1 + n % 40))
            atomic_store(&t->p->wrong, 1);
    return NULL;
}

static void a_child_of_a_busy_program(void **state)
{
    thread_of of[ACTIVITIES];
    pthread_t threads[ACTIVITIES];
    bool good = true;
    program p;
    pid_t child;

    (void)state;
    program_open(&p, ENGINE_OF_CHILD);
    for (size_t i = 0; i < ACTIVITIES; i++) {
        of[i] = (thread_of){&p, activities[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, go_on, &of[i]), 0);
    }
    for (int i = 0; i < FORKS && good; i++) {
        if (!(child = fork()))
            _exit(CHILD_BESIDE_ALLOCATING_THREADS(child_main(&p)));
        good = child_ended_well(child);
    }
    atomic_store(&p.stop, true);
    for (size_t i = 0; i < ACTIVITIES; i++)
        (void)pthread_join(threads[i], NULL);
    assert_true(good);
    assert_int_equal(p.wrong, 0);
    program_close(&p);
}

static void *fork_on(void *arg)
{
    program *p = arg;

    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();

        if (!child)
            _exit(CHILD_BESIDE_ALLOCATING_THREADS(child_main(p)));
        if (!child_ended_well(child))
            atomic_store(&p->wrong, 1);
    }
    return NULL;
}

/* Those who fork without pause and those who open, load and compile without pause all come to their end. */
static void threads_that_fork_starve_nobody(void **state)
{
    pthread_t threads[2];
    program p;

    (void)state;
    program_open(&p, ENGINE_OF_CHILD);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fork_on, &p), 0);
    for (int64_t n = 0; n < 200; n++)
        if (!activities[n % (int64_t)ACTIVITIES](&p, 1 + n % 40))
            atomic_store(&p.wrong, 1);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(p.wrong, 0);
    program_close(&p);
}

/* ---- beside a thread that is stopped at a certain place ---------------------------------------------- */

static void sleep_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

typedef struct stopped {
    program p;
    activity act;
    bool beside; /* the operator runs on another thread than calls it */
    atomic_bool there, forks, forked, wrong;
} stopped;

/* Until the other thread is about to fork, and a little longer, so that it is in fork(). */
static void stop_until_fork(void *arg)
{
    stopped *s = arg;

    atomic_store(&s->there, true);
    while (!atomic_load(&s->forks))
        sleep_ms(1);
    sleep_ms(20);
}

static void *act_once(void *arg)
{
    stopped *s = arg;

    if (!s->act(&s->p, 5))
        atomic_store(&s->wrong, true);
    while (!atomic_load(&s->forked)) /* it ends later: no child is to report it as never joined */
        sleep_ms(1);
    return NULL;
}

static bool opens_stub(program *p, int64_t n)
{
    const tn_device *d = NULL;

    (void)n;
    return !tn_device_get(p->ctx, "stub:0", &d);
}

static bool adds_plugin(program *p, int64_t n)
{
    static const tn_capability *const nothing[] = {NULL};
    static tn_plugin other; /* looked at until the context is closed */

    (void)n;
    other = stop_plugin;
    other.name = "stop-too";
    other.capabilities = nothing;
    return !tn_plugin_add(p->ctx, &other);
}

static void a_child_beside(stop_place place, activity act)
{
    stopped s = {.act = act};
    pthread_t thread;
    pid_t child;

    program_open(&s.p, ENGINE_OF_CHILD);
    stop_at(place, stop_until_fork, &s);
    assert_int_equal(pthread_create(&thread, NULL, act_once, &s), 0);
    while (!atomic_load(&s.there))
        sleep_ms(1);
    atomic_store(&s.forks, true);
    if (!(child = fork()))
        _exit(CHILD_BESIDE_ALLOCATING_THREADS(child_main(&s.p)));
    atomic_store(&s.forked, true);
    (void)pthread_join(thread, NULL);
    assert_true(child_ended_well(child));
    assert_false(s.wrong);
    program_close(&s.p);
}

static void a_child_beside_a_thread_that(void **state)
{
    (void)state;
    a_child_beside(STOP_INIT, adds_plugin);
    a_child_beside(STOP_OPEN, opens_stub);
    a_child_beside(STOP_PREPARE, calls_operator);
    a_child_beside(STOP_PREPARE, calls_net);
    a_child_beside(STOP_PREPARE, calls_backward);
    a_child_beside(STOP_PREPARE_BACKWARD, calls_backward);
    a_child_beside(STOP_RUN, calls_operator);
    a_child_beside(STOP_RUN, calls_net);
}

/* ---- inside what a plugin was called for ------------------------------------------------------------- */

/* The engine of such a child is of no use; all else is, and so is another context. It allocates: whoever
 * called the operator is not in the middle of that, since it waits. */
static int inner_child_main(program *p)
{
    tn_array *a = NULL;
    tn_ctx *fresh = NULL;

    (void)alarm(CHILD_S);
    if (!loads(p, 0) || !opens_device(p, 7) || tn_array_zeros(p->ctx, TN_F32, 1, (int64_t[]){3}, NULL, &a) ||
        tn_wait_all(p->ctx) != TN_E_STATE)
        return 4;
    tn_array_release(a);
    if (test_open_with(LIST(ENGINE_OF_CHILD), &fresh))
        return 5;
    return tn_close(fresh) == TN_E_STATE ? 0 : 6; /* nobody waits inside an operation */
}

static void fork_inside(void *arg)
{
    stopped *s = arg;
    pid_t child;

    while (s->beside && !atomic_load(&s->p.pushed))
        sleep_ms(1);
    stop_until_fork(arg);
    if (!(child = fork()))
        _exit(inner_child_main(&s->p));
    atomic_store(&s->wrong, !child_ended_well(child));
}

/* The outer fork waits for the operation that waits for the inner one. */
static void two_forks_at_once(void **state)
{
    static const char *const engines[] = {"engine.type=threaded", "engine.type=naive"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        stopped s = {.act = calls_operator, .beside = i == 0};
        pthread_t thread;
        pid_t child;

        program_open(&s.p, engines[i]);
        stop_at(STOP_RUN, fork_inside, &s);
        assert_int_equal(pthread_create(&thread, NULL, act_once, &s), 0);
        while (!atomic_load(&s.there))
            sleep_ms(1);
        atomic_store(&s.forks, true);
        if (!(child = fork()))
            _exit(0);
        atomic_store(&s.forked, true);
        (void)pthread_join(thread, NULL);
        assert_true(child_ended_well(child));
        assert_false(s.wrong);
        program_close(&s.p);
    }
}

static void fork_in_plugin(void *arg)
{
    stopped *s = arg;
    const pid_t child = fork();

    if (!child) {
        (void)alarm(CHILD_S);
        _exit(opens_stub(&s->p, 0) ? 7 : child_main(&s->p)); /* host devices only */
    }
    atomic_store(&s->wrong, !child_ended_well(child));
}

static void a_plugin_that_forks(void **state)
{
    stopped s = {.wrong = true};
    const tn_device *d = NULL;

    (void)state;
    program_open(&s.p, ENGINE_OF_CHILD);
    stop_at(STOP_OPEN, fork_in_plugin, &s);
    assert_ok(tn_device_get(s.p.ctx, "stub:0", &d));
    assert_false(s.wrong);
    s.wrong = true;
    for (size_t i = 0; i < ACTIVITIES; i++) /* an init may not have others loaded */
        assert_true(activities[i](&s.p, 3));
    stop_at(STOP_INIT, fork_in_plugin, &s);
    assert_true(adds_plugin(&s.p, 0));
    assert_false(s.wrong);
    program_close(&s.p);
}

static pid_t callback_child;

static void fork_in_callback(void *arg)
{
    (void)arg;
    if (!(callback_child = fork())) {
        (void)alarm(CHILD_S);
        atomic_store(&stub_calls, 0);
    }
}

/* The child comes back from the callback, and closes what it has: no function of the device is
 * called there. */
static void a_child_of_a_callback_leaves_streams_alone(void **state)
{
    tn_array *a = NULL, *b = NULL;
    const tn_device *d = NULL;
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "test_stop", .in_count = 1, .in = &a};
    uint32_t made;
    program p;

    (void)state;
    program_open(&p, "engine.type=naive");
    assert_ok(tn_device_get(p.ctx, "stub:0", &d));
    assert_ok(tn_array_zeros(p.ctx, TN_F32, 1, (int64_t[]){3}, d, &a));
    stop_at(STOP_RUN, fork_in_callback, NULL);
    assert_ok(tn_invoke_text(p.ctx, &call, 1, &b, &made));
    tn_array_release(a);
    tn_array_release(b);
    if (!callback_child) {
        tn_cached_op_release(p.net);
        (void)tn_close(p.ctx);
        _exit(atomic_load(&stub_calls) ? 8 : 0);
    }
    assert_true(child_ended_well(callback_child));
    program_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_goes_on),
                                       cmocka_unit_test(a_child_of_a_busy_program),
                                       cmocka_unit_test(threads_that_fork_starve_nobody),
                                       cmocka_unit_test(a_child_beside_a_thread_that),
                                       cmocka_unit_test(two_forks_at_once),
                                       cmocka_unit_test(a_plugin_that_forks),
                                       cmocka_unit_test(a_child_of_a_callback_leaves_streams_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
