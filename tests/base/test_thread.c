/* Threads, locks, conditions, exit hooks, clock, trace ring, log. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>

#include "base/base.h"
#include "support/scratch.h"

typedef struct shared {
    tni_mutex lock;
    tni_cond changed;
    int value, turns;
    uint64_t id;
    bool signals_blocked;
} shared;

static void add(void *arg)
{
    shared *s = arg;

    for (int i = 0; i < 10000; i++) {
        tni_mutex_lock(&s->lock);
        s->value++;
        tni_mutex_unlock(&s->lock);
    }
}

static void locks(void **state)
{
    shared s = {.value = 0};
    tni_thread *threads[4];
    uint32_t before = tni_thread_count();

    (void)state;
    assert_int_equal(tni_mutex_init(&s.lock), TN_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tni_thread_create("a name longer than the system's", add, &s, &threads[i]), TN_OK);
    assert_int_equal(tni_thread_count(), before + 4);
    for (int i = 0; i < 4; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(s.value, 40000);
    if (tni_mutex_trylock(&s.lock))
        tni_mutex_unlock(&s.lock);
    else
        fail_msg("a free lock cannot be taken");
    tni_mutex_fini(&s.lock);
    tni_thread_join(NULL);
}

static void turn_take(void *arg)
{
    shared *s = arg;
    sigset_t set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    tni_mutex_lock(&s->lock);
    s->id = tni_thread_id();
    s->signals_blocked = sigismember(&set, SIGINT) == 1;
    for (int i = 0; i < 1000; i++) {
        while (s->value != 1)
            tni_cond_wait(&s->changed, &s->lock);
        s->value = 0;
        s->turns++;
        tni_cond_broadcast(&s->changed);
    }
    tni_mutex_unlock(&s->lock);
}

static void conditions(void **state)
{
    shared s = {.value = 0};
    tni_thread *t;
    uint64_t began;

    (void)state;
    assert_int_equal(tni_mutex_init(&s.lock), TN_OK);
    assert_int_equal(tni_cond_init(&s.changed), TN_OK);
    assert_int_equal(tni_thread_create("turns", turn_take, &s, &t), TN_OK);
    for (int i = 0; i < 1000; i++) {
        tni_mutex_lock(&s.lock);
        s.value = 1;
        tni_cond_signal(&s.changed);
        while (s.value == 1)
            tni_cond_wait(&s.changed, &s.lock);
        tni_mutex_unlock(&s.lock);
    }
    tni_thread_join(t);
    assert_int_equal(s.turns, 1000);
    assert_true(s.signals_blocked);
    assert_true(s.id != 0 && s.id != tni_thread_id());
    began = tni_clock_ns();
    tni_mutex_lock(&s.lock);
    while (tni_cond_wait_until(&s.changed, &s.lock, began + 20000000))
        ;
    tni_mutex_unlock(&s.lock);
    assert_true(tni_clock_ns() >= began + 20000000);
    tni_cond_fini(&s.changed);
    tni_mutex_fini(&s.lock);
}

static int order[3], orders;

static void hook(void *arg)
{
    order[orders++] = *(int *)arg;
}

static void hooks_register(void *arg)
{
    static int numbers[3] = {1, 2, 3};

    for (int i = 0; i < 3; i++)
        *(tn_status *)arg |= tni_thread_on_exit(hook, &numbers[i]);
}

static void exit_hooks(void **state)
{
    tn_status st = TN_OK;
    tni_thread *t;

    (void)state;
    assert_int_equal(tni_thread_create("hooks", hooks_register, &st, &t), TN_OK);
    tni_thread_join(t);
    assert_int_equal(st, TN_OK);
    assert_int_equal(orders, 3);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[2], 1);
}

static void clocks(void **state)
{
    uint64_t before = tni_clock_ns();

    (void)state;
    tni_sleep_ns(2000000);
    assert_true(tni_clock_ns() >= before + 2000000);
    assert_true(tni_clock_wall_ns() > (uint64_t)1600000000 * 1000000000u);
    assert_true(tni_cpu_count() >= 1);
}

static void tracer(void *arg)
{
    for (int i = 0; i < 5000; i++)
        tni_trace_event(i % 2 ? 'E' : 'B', "test", arg, 0);
}

static size_t trace_events(const tni_trace_user *u)
{
    json_t *root;
    tni_str s;
    size_t count;

    tni_str_init(&s, TN_TEXT_MAX);
    assert_int_equal(tni_trace_json(u, &s), TN_OK);
    assert_int_equal(tni_json_parse("trace", s.text, s.length, &root), TN_OK);
    count = json_array_size(json_object_get(root, "traceEvents"));
    json_decref(root);
    tni_str_fini(&s);
    return count;
}

static void trace_off(void **state)
{
    tni_trace_user never = {0};

    (void)state;
    tracer("off");
    assert_int_equal(trace_events(&never), 0);
}

static void tracing(void **state)
{
    tni_thread *threads[3];
    tni_trace_user u = {0};
    char long_name[200];

    (void)state;
    assert_int_equal(tni_trace_start(&u, 100), TN_OK);
    assert_true(atomic_load(&tni_trace_on));
    memset(long_name, '"', sizeof long_name);
    long_name[199] = '\0';
    tni_trace_event('i', "category longer than its place", long_name, 5);
    assert_int_equal(trace_events(&u), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_thread_create("tracer", tracer, "on", &threads[i]), TN_OK);
    trace_events(&u); /* while it is written */
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(trace_events(&u), 128); /* the newest of 15001 */
    assert_int_equal(tni_trace_start(&u, 4096), TN_OK);
    assert_int_equal(trace_events(&u), 0);
    tni_trace_stop(&u);
    tracer("off");
    assert_int_equal(trace_events(&u), 0);
}

static atomic_bool interrupted, resumed;
static _Atomic(pthread_t) slow_thread;
static atomic_bool slow_there;

static void interrupt(int number)
{
    (void)number;
    atomic_store(&interrupted, true);
    while (!atomic_load(&resumed))
        tni_sleep_ns(100000);
}

static void slow_tracer(void *arg)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    atomic_store(&slow_thread, pthread_self());
    atomic_store(&slow_there, true);
    while (!atomic_load(&interrupted))
        tni_trace_event('i', "test", arg, 0);
}

/* A writer is interrupted anywhere in an event, and others go many rounds of the ring: the newest are all
 * there. */
static void trace_interrupted(void **state)
{
    struct sigaction action = {.sa_handler = interrupt}, before;
    tni_trace_user u = {0};
    tni_thread *slow;

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int round = 0; round < 50; round++) {
        atomic_store(&interrupted, false);
        atomic_store(&resumed, false);
        atomic_store(&slow_there, false);
        assert_int_equal(tni_trace_start(&u, 64), TN_OK);
        assert_int_equal(tni_thread_create("slow", slow_tracer, "slow", &slow), TN_OK);
        while (!atomic_load(&slow_there))
            tni_sleep_ns(10000);
        assert_int_equal(pthread_kill(atomic_load(&slow_thread), SIGUSR1), 0);
        while (!atomic_load(&interrupted))
            tni_sleep_ns(10000);
        tracer("on");
        atomic_store(&resumed, true);
        tni_thread_join(slow);
        assert_int_equal(trace_events(&u), 64);
        tni_trace_stop(&u);
    }
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void trace_some(int count)
{
    for (int i = 0; i < count; i++)
        tni_trace_event('i', "test", "some", 0);
}

/* Each user is told what was recorded between its coming and its leaving; the last one ends it. */
static void trace_users(void **state)
{
    tni_trace_user a = {0}, b = {0}, never = {0};

    (void)state;
    assert_int_equal(tni_trace_start(&a, 64), TN_OK);
    trace_some(3);
    assert_int_equal(tni_trace_start(&b, 1 << 15), TN_OK); /* a larger ring: nothing is lost */
    trace_some(5);
    assert_int_equal(trace_events(&a), 8);
    assert_int_equal(trace_events(&b), 5);
    assert_int_equal(trace_events(&never), 8);
    tni_trace_stop(&never); /* is no user: nothing */
    tni_trace_stop(&a);
    tni_trace_stop(&a); /* counts once */
    assert_true(atomic_load(&tni_trace_on) && tni_trace_flag);
    trace_some(7);
    assert_int_equal(trace_events(&a), 8);
    assert_int_equal(trace_events(&b), 12);
    assert_int_equal(tni_trace_start(&a, 64), TN_OK); /* again, and anew while it is on */
    trace_some(2);
    assert_int_equal(tni_trace_start(&a, 64), TN_OK);
    trace_some(1);
    assert_int_equal(trace_events(&a), 1);
    tni_trace_stop(&b);
    assert_true(atomic_load(&tni_trace_on));
    trace_some(1);
    tni_trace_stop(&a);
    assert_true(!atomic_load(&tni_trace_on) && !tni_trace_flag);
    trace_some(4);
    assert_int_equal(trace_events(&a), 2);
    assert_int_equal(trace_events(&b), 15);
}

static void log_take(void *arg, int32_t level, const char *message)
{
    snprintf(arg, 4096, "%d %s", level, message);
}

static void logging(void **state)
{
    char line[4096] = "";
    char big[4000];
    tni_log log = {.fn = log_take, .arg = line, .level = TN_LOG_INFO};

    (void)state;
    tni_logf(&log, TN_LOG_DEBUG, "dropped");
    assert_string_equal(line, "");
    tni_logf(&log, TN_LOG_INFO, "a\nb %d", 1);
    assert_string_equal(line, "2 a\\x0ab 1");
    memset(big, 'x', sizeof big);
    big[3999] = '\0';
    tni_logf(&log, TN_LOG_ERROR, "%s", big);
    assert_true(strlen(line) > 2000);
    tni_logf(NULL, TN_LOG_ERROR, "nowhere");
    log.fn = NULL;
    tni_logf(&log, TN_LOG_ERROR, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks),   cmocka_unit_test(conditions),  cmocka_unit_test(exit_hooks),
        cmocka_unit_test(clocks),  cmocka_unit_test(trace_off),   cmocka_unit_test(trace_interrupted),
        cmocka_unit_test(tracing), cmocka_unit_test(trace_users), cmocka_unit_test(logging),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
