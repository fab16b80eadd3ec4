/*
 * The first verdict of a case counts, whatever its other threads do at that moment: fail too, touch memory
 * that nobody may, crash, or end well.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"
#include "lab.h"

#include "kit.h"

#define ROUNDS (chk_threads_sanitized() ? 3u : 200u) /* a process with threads ends after a second there */
#define THREADS 3u

/* What a thread does: touches a guard page, crashes, or fails the case. */
typedef struct trouble {
    chk_env *env;
    volatile char *guarded;
    uint32_t number;
} trouble;

static volatile uintptr_t nothing = 16; /* an address that the compiler does not know */

static void guard_touch(void *arg)
{
    *((trouble *)arg)->guarded = 1;
}

static void fail_say(void *arg)
{
    chk_fail(((trouble *)arg)->env, "T-fail", "thread %u says so", (unsigned)((trouble *)arg)->number);
}

/* The first one touches a guard page, the others nothing that is there; they wait until it speaks. */
static void crash_behind(void *arg)
{
    const trouble *t = arg;

    if (t->number == 0)
        guard_touch(arg);
    while (!atomic_load(&chk_case_of(t->env)->speaker))
        (void)sched_yield();
    *(volatile char *)nothing = 1;
}

static void (*doing)(void *arg);
static chk_env *the_env;

/* The case: its threads do what they do at one moment. */
static void all_together(chk_env *env)
{
    chk_buffer *b = chk_buffer_create(env, 4096, 0, CHK_GUARD_END);
    trouble troubles[THREADS];
    void *args[THREADS];

    chk_buffer_owner(b, "data", "", NULL);
    chk_fault_rules(env, "T-bounds", "T-readonly", "the test");
    for (uint32_t i = 0; i < THREADS; i++) {
        troubles[i] = (trouble){env, (char *)chk_buffer_data(b) + 4096 + 64 * i, i};
        args[i] = &troubles[i];
    }
    chk_count(env);
    (void)chk_together(THREADS, doing, args);
}

static void *fail_late(void *arg)
{
    trouble t = {.env = the_env, .number = (uint32_t)(uintptr_t)arg};

    fail_say(&t);
    return NULL;
}

/* Ends well, or so it thinks: a thread that it did not wait for has something to say. */
static void left_behind(chk_env *env)
{
    pthread_t id;

    the_env = env;
    chk_count(env);
    if (!pthread_create(&id, NULL, fail_late, NULL))
        (void)pthread_detach(id);
    for (volatile uint64_t i = chk_random(env) % 3000; i > 0;)
        i = i - 1;
}

/* Runs the case in a process of its own; false: it ended without a verdict. */
static bool verdict_of(void (*run)(chk_env *env), uint64_t seed, chk_verdict *out)
{
    const chk_test test = {
        .group = "test", .name = "verdict", .rule = "T-own", .run = run, .limit_s = 10, .bare = true};
    unsigned char bytes[sizeof(chk_told)];
    chk_told told;
    size_t got = 0;
    int ends[2], status;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        chk_case c;
        chk_env env = {.file = "", .subject = "", .seed = seed, .folder = "/", .internal = &c};

        (void)close(ends[0]);
        chk_case_init(&c, &test, ends[1]);
        chk_case_run(&env, NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    while (got < sizeof bytes && (n = read(ends[0], bytes + got, sizeof bytes - got)) > 0)
        got += (size_t)n;
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    memcpy(&told, bytes, sizeof told);
    *out = told.verdict;
    return got == sizeof bytes;
}

static void rounds(void (*what)(void *arg), const char *rule, const char *says)
{
    doing = what;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        chk_verdict v;

        if (!verdict_of(all_together, round + 1, &v))
            fail_msg("round %d: no verdict", (int)round);
        assert_int_equal(v.result, CHK_FAIL);
        assert_string_equal(v.rule, rule);
        assert_non_null(strstr(v.message, says));
    }
}

static void several_fault(void **state)
{
    (void)state;
    rounds(guard_touch, "T-bounds", "memory behind its buffer");
}

static void several_fail(void **state)
{
    (void)state;
    rounds(fail_say, "T-fail", " says so");
}

static void crash_comes_second(void **state)
{
    (void)state;
    rounds(crash_behind, "T-bounds", "memory behind its buffer");
}

/* Either verdict will do, but a whole one. */
static void one_ends_well(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 5 * ROUNDS; round++) {
        chk_verdict v;

        assert_true(verdict_of(left_behind, round + 1, &v));
        if (v.result == CHK_PASS) {
            assert_string_equal(v.message, "");
            assert_string_equal(v.rule, "");
        } else {
            assert_int_equal(v.result, CHK_FAIL);
            assert_string_equal(v.rule, "T-fail");
            assert_string_equal(v.message, "thread 0 says so");
        }
    }
}

/* A wait goes on before its deadline, and ends behind it. */
static void deadlines_end(void **state)
{
    const struct timespec over = chk_deadline(0), far = chk_deadline(3600 * 1000);

    (void)state;
    assert_false(chk_pause(&over));
    assert_true(chk_pause(&far));
    chk_quiet_us(1); /* comes back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_fault), cmocka_unit_test(several_fail), cmocka_unit_test(crash_comes_second),
        cmocka_unit_test(one_ends_well), cmocka_unit_test(deadlines_end),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
