/*
 * The first verdict of a case counts, whatever its other threads do at that moment: fail too, touch memory
 * that nobody may, crash, or end well. So does that of a second process, whatever becomes of it.
 */
#include <sched.h>
#include <signal.h>
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

/* Runs the cases in a process of its own, until one fails; how many said a verdict. `twin`: in two. */
static uint32_t verdicts_of(void (*const *runs)(chk_env *env), uint32_t count, bool twin, uint64_t seed,
                            chk_verdict *out)
{
    chk_test test = {
        .group = "test", .name = "verdict", .rule = "T-own", .limit_s = 10, .bare = true, .twin = twin};
    chk_told told;
    uint32_t said = 0;
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
        for (uint32_t i = 0; i < count && !c.verdict.result; i++) {
            if (i)
                chk_case_next(&c, &test);
            test.run = runs[i];
            chk_case_run(&env, NULL);
        }
        _exit(0);
    }
    (void)close(ends[1]);
    while ((n = read(ends[0], (char *)&told + got, sizeof told - got)) > 0)
        if ((got += (size_t)n) == sizeof told) {
            assert_true(said < count);
            out[said++] = told.verdict;
            got = 0;
        }
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return said;
}

static bool verdict_of(void (*run)(chk_env *env), uint64_t seed, chk_verdict *out)
{
    return verdicts_of(&run, 1, false, seed, out) == 1;
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

/* ---- two processes ---- */

/* What the second one notes the first one reads, of this case and no other. */
static void note_crosses(chk_env *env)
{
    const uint64_t *read;
    uint64_t *noted;

    if (chk_twin_is_second(env)) {
        noted = chk_twin_take(env, sizeof *noted);
        chk_fail_if(env, chk_twin_take(env, UINT64_MAX) || chk_twin_take(env, (uint64_t)1 << 40), "T-own",
                    "room");
        *noted = 7;
        chk_twin_note(env, 3, noted);
        return;
    }
    read = chk_twin_read(env, 3);
    chk_fail_if(env, !read || *read != 7 || chk_twin_read(env, 4), "T-own", "another note");
    chk_count(env);
}

static void nothing_noted(chk_env *env)
{
    chk_count(env);
    chk_fail_if(env, !chk_twin_is_second(env) && chk_twin_read(env, 3), "T-own", "a note of the case before");
}

static void second_fails(chk_env *env)
{
    chk_count(env);
    chk_fail_if(env, chk_twin_is_second(env), "T-second", "so says the second");
}

static void second_dies(chk_env *env)
{
    chk_count(env);
    if (chk_twin_is_second(env))
        (void)kill(getpid(), SIGKILL);
}

static void second_exits(chk_env *env)
{
    chk_count(env);
    if (chk_twin_is_second(env))
        _exit(0);
}

static void second_process(void **state)
{
    static const struct {
        void (*run)(chk_env *env);
        const char *rule, *says;
    } rows[] = {{second_fails, "T-second", "in another process, with the problems in another order: so says"},
                {second_dies, "T-own", "died of signal 9"},
                {second_exits, "T-own", "was ended with code 0"}};
    chk_verdict v[4];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void (*const runs[])(chk_env * env) = {note_crosses, nothing_noted, note_crosses, rows[i].run};

        assert_int_equal(verdicts_of(runs, 4, true, 1, v), 4);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(v[k].result, CHK_PASS);
        assert_int_equal(v[3].result, CHK_FAIL);
        assert_string_equal(v[3].rule, rows[i].rule);
        assert_non_null(strstr(v[3].message, rows[i].says));
        assert_int_equal(verdicts_of(&rows[i].run, 1, true, 1, v), 1);
        assert_int_equal(v[0].result, CHK_FAIL);
    }
}

static void too_many_cases(void **state)
{
    void (*runs[CHK_TWIN_CASES + 1])(chk_env * env);
    chk_verdict v[CHK_TWIN_CASES + 1];

    (void)state;
    for (uint32_t i = 0; i <= CHK_TWIN_CASES; i++)
        runs[i] = note_crosses;
    assert_int_equal(verdicts_of(runs, CHK_TWIN_CASES, true, 1, v), CHK_TWIN_CASES);
    assert_int_equal(v[CHK_TWIN_CASES - 1].result, CHK_PASS);
    assert_int_equal(verdicts_of(runs, CHK_TWIN_CASES + 1, true, 1, v), CHK_TWIN_CASES + 1);
    assert_int_equal(v[CHK_TWIN_CASES].result, CHK_FAIL);
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
        cmocka_unit_test(several_fault),      cmocka_unit_test(several_fail),
        cmocka_unit_test(crash_comes_second), cmocka_unit_test(one_ends_well),
        cmocka_unit_test(deadlines_end),      cmocka_unit_test(second_process),
        cmocka_unit_test(too_many_cases),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
