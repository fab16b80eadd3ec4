/*
 * Random programs against oracles: the values that a serial run gives, and the errors that should be where.
 *
 * A program has a few variables, each with a number; an operation mixes the numbers that it reads into those
 * that it writes, so that any lost, doubled or reordered operation changes the result. Some operations fail,
 * clear, or run always; some run on an asynchronous device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"

#define VARS 12
#define OPS_MAX 80
#define TOUCH_MAX 4
#define NO_POISON UINT32_MAX

typedef struct cell {
    tni_var var;
    uint64_t value;
    uint64_t expected;
    uint32_t poison; /* oracle: index of the operation, or NO_POISON */
} cell;

typedef struct step {
    cell *reads[TOUCH_MAX], *writes[TOUCH_MAX];
    uint32_t read_count, write_count, index, flags, device; /* device 0: host */
    bool fails, early;
    uint64_t est_ns;
    char name[16];
    atomic_uint runs, done;
    tn_status status;
    tni_run *run;
} step;

typedef struct program {
    cell cells[VARS];
    step steps[OPS_MAX];
    uint32_t count;
} program;

typedef struct program_kind { /* what a program may contain */
    const char *engine;
    uint32_t workers, fail_percent, device_percent;
    bool deep; /* also clears, always, early release */
} program_kind;

/* ---- the body, the same for the oracle ----------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    return a * 0xff51afd7ed558ccdu;
}

static uint64_t step_value(const step *s, bool expected)
{
    uint64_t h = s->index;

    for (uint32_t i = 0; i < s->read_count; i++)
        h = mix(h, expected ? s->reads[i]->expected : s->reads[i]->value);
    for (uint32_t i = 0; i < s->write_count && !(s->flags & TNI_TASK_CLEARS); i++)
        h = mix(h, expected ? s->writes[i]->expected : s->writes[i]->value);
    return h;
}

static tn_status step_body(void *arg, tn_err *err)
{
    step *s = arg;
    uint64_t h = step_value(s, false);

    (void)err;
    atomic_fetch_add(&s->runs, 1u);
    for (uint32_t i = 0; i < s->write_count; i++)
        s->writes[i]->value = mix(h, i);
    return TN_OK;
}

static tn_status step_run(void *payload, tni_run *run)
{
    step *s = *(step **)payload;
    tn_err err;

    if (s->fails) {
        atomic_fetch_add(&s->runs, 1u);
        return tni_error(TN_E_SHAPE, "planted");
    }
    if (run->stream)
        return run->device->ops->stream_call(run->stream, step_body, s, &err);
    (void)step_body(s, NULL);
    for (uint32_t i = 0; s->early && i < s->read_count + s->write_count; i += 2)
        tni_engine_release_at(run, i); /* some are given free before the end, in any order of the rest */
    return TN_OK;
}

static void step_done(void *payload, tni_engine *engine, tn_status status)
{
    step *s = *(step **)payload;

    (void)engine;
    s->status = status;
    atomic_fetch_add(&s->done, 1u);
}

/* ---- making programs ------------------------------------------------------------------------------- */

static void step_make(program *p, step *s, const program_kind *kind, uint64_t *random)
{
    s->read_count = test_random(random) % (TOUCH_MAX + 1);
    s->write_count = test_random(random) % TOUCH_MAX;
    for (uint32_t i = 0; i < s->read_count; i++)
        s->reads[i] = &p->cells[test_random(random) % VARS];
    for (uint32_t i = 0; i < s->write_count; i++)
        s->writes[i] = &p->cells[test_random(random) % VARS];
    s->fails = test_random(random) % 100 < kind->fail_percent;
    s->device = test_random(random) % 100 < kind->device_percent ? 1 + test_random(random) % 3 : 0;
    if (test_random(random) % 3 == 0)
        s->est_ns = 100;
    if (kind->deep && test_random(random) % 4 == 0)
        s->flags |= TNI_TASK_CLEARS;
    if (kind->deep && test_random(random) % 16 == 0)
        s->flags |= TNI_TASK_ALWAYS;
    s->early = kind->deep && test_random(random) % 8 == 0;
}

static void program_make(program *p, const program_kind *kind, uint64_t *random)
{
    memset(p, 0, sizeof *p);
    p->count = 1 + test_random(random) % OPS_MAX;
    for (uint32_t i = 0; i < VARS; i++) {
        p->cells[i].value = p->cells[i].expected = i;
        p->cells[i].poison = NO_POISON;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        p->steps[i].index = i;
        (void)snprintf(p->steps[i].name, sizeof p->steps[i].name, "op%u", i);
        step_make(p, &p->steps[i], kind, random);
    }
}

/* ---- the oracle ------------------------------------------------------------------------------------ */

static bool among(cell *const *list, uint32_t count, const cell *c)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == c)
            return true;
    return false;
}

static uint32_t older(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What the operation finds: the oldest failure of what it reads, and of what it writes unless it clears */
static uint32_t step_poison(const step *s)
{
    uint32_t found = NO_POISON;

    for (uint32_t i = 0; i < s->read_count; i++) /* in both lists: written */
        if (!(s->flags & TNI_TASK_CLEARS) || !among(s->writes, s->write_count, s->reads[i]))
            found = older(found, s->reads[i]->poison);
    for (uint32_t i = 0; i < s->write_count && !(s->flags & TNI_TASK_CLEARS); i++)
        found = older(found, s->writes[i]->poison);
    return found;
}

/* True if it runs. */
static bool oracle_step(step *s)
{
    uint32_t poison = step_poison(s);
    bool runs = poison == NO_POISON || (s->flags & TNI_TASK_ALWAYS);
    uint64_t h = step_value(s, true);

    for (uint32_t i = 0; i < s->write_count; i++) {
        cell *c = s->writes[i];

        if (!runs)
            c->poison = poison;
        else if (s->fails)
            c->poison = s->index;
        else if (s->flags & TNI_TASK_CLEARS)
            c->poison = NO_POISON;
    }
    for (uint32_t i = 0; runs && !s->fails && i < s->write_count; i++)
        s->writes[i]->expected = mix(h, i);
    return runs;
}

/* ---- one run --------------------------------------------------------------------------------------- */

static void step_push(test_engine *t, step *s, tni_device *const devices[3])
{
    tni_var *reads[TOUCH_MAX], *writes[TOUCH_MAX];
    step *self = s;
    tni_task task = {.run = step_run,
                     .done = step_done,
                     .payload = &self,
                     .payload_bytes = sizeof self,
                     .flags = s->flags,
                     .reads = reads,
                     .writes = writes,
                     .read_count = s->read_count,
                     .write_count = s->write_count,
                     .name = s->name,
                     .est_ns = s->est_ns};

    for (uint32_t i = 0; i < s->read_count; i++)
        reads[i] = &s->reads[i]->var;
    for (uint32_t i = 0; i < s->write_count; i++)
        writes[i] = &s->writes[i]->var;
    if (s->device) {
        task.device = devices[s->device - 1];
        if (s->index % 5 == 0)
            task.lane = s->index % TNI_LANES;
    }
    assert_int_equal(tni_engine_push(t->engine, &task), TN_OK);
}

/* Without a wait, which would report. */
static void steps_over(test_engine *t, program *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        while (!atomic_load(&p->steps[i].done))
            if (tni_engine_ready_count(t->engine))
                (void)tni_engine_step(t->engine, 0);
}

static void program_check(test_engine *t, program *p, uint64_t seed)
{
    bool ran[OPS_MAX];

    for (uint32_t i = 0; i < p->count; i++)
        ran[i] = oracle_step(&p->steps[i]);
    for (uint32_t i = 0; i < VARS; i++) {
        cell *c = &p->cells[i];
        tn_status st = i % 2 ? tni_engine_wait_read(t->engine, &c->var, 0)
                             : tni_engine_wait_write(t->engine, &c->var, 0);
        char wanted[48];

        if (c->poison == NO_POISON) {
            if (st || c->value != c->expected)
                fail_msg("seed %llu: variable %u has status %d, or another value than the serial run",
                         (unsigned long long)seed, i, st);
            continue;
        }
        (void)snprintf(wanted, sizeof wanted, "op%u: planted", c->poison);
        if (st != TN_E_SHAPE || strcmp(tni_error_message(), wanted))
            fail_msg("seed %llu: variable %u says %d '%s', expected '%s'", (unsigned long long)seed, i, st,
                     tni_error_message(), wanted);
    }
    steps_over(t, p); /* those that write nothing */
    for (uint32_t i = 0; i < p->count; i++)
        if (atomic_load(&p->steps[i].done) != 1 || atomic_load(&p->steps[i].runs) != ran[i])
            fail_msg("seed %llu: operation %u ran %u times and was done %u times", (unsigned long long)seed,
                     i, atomic_load(&p->steps[i].runs), atomic_load(&p->steps[i].done));
}

/* Every failure comes out of wait_all once, oldest first, unless a wait told it before. */
static void failures_check(test_engine *t, program *p, uint64_t seed)
{
    for (uint32_t i = 0; i < p->count; i++) {
        char wanted[48];
        tn_status st;

        if (!p->steps[i].fails || !atomic_load(&p->steps[i].runs))
            continue;
        (void)snprintf(wanted, sizeof wanted, "op%u: planted", i);
        st = tni_engine_wait_all(t->engine);
        if (st != TN_E_SHAPE || strcmp(tni_error_message(), wanted))
            fail_msg("seed %llu: wait_all says '%s', expected '%s'", (unsigned long long)seed,
                     tni_error_message(), wanted);
    }
    assert_int_equal(tni_engine_wait_all(t->engine), TN_OK);
}

static tn_status probe_body(void *arg, tn_err *err)
{
    (void)arg;
    (void)err;
    return TN_OK;
}

static tn_status probe_run(void *payload, tni_run *run)
{
    tn_err err;

    (void)payload;
    return run->device->ops->stream_call(run->stream, probe_body, NULL, &err);
}

/* All of a program, among two notifications of one stream of which one overtakes the other. */
static void program_push(test_engine *t, program *p, tni_device *const devices[3], bool reorder)
{
    const tni_task probe = {.run = probe_run, .device = devices[0], .name = "probe"};

    if (reorder) {
        test_async_hold(true, 0);
        for (uint32_t i = 0; i < 2 * WATCH_EVERY; i++)
            assert_int_equal(tni_engine_push(t->engine, &probe), TN_OK);
    }
    for (uint32_t i = 0; i < p->count; i++)
        step_push(t, &p->steps[i], devices);
    if (reorder)
        test_async_hold(false, 2);
}

static void programs_run(const program_kind *kind, uint64_t runs)
{
    static program p;
    const bool reorder = kind->device_percent && !strcmp(kind->engine, "threaded");
    tni_device *devices[3] = {NULL, NULL, NULL};
    test_engine t;
    uint64_t first = test_seed();

    test_engine_open(&t,
                     (tni_engine_options){
                         .type = kind->engine, .workers = kind->workers, .inline_ns = 1000, .seed = first});
    if (kind->device_percent) {
        assert_int_equal(tni_device_get(t.devices, "late", 0, &devices[0]), TN_OK);
        assert_int_equal(tni_device_get(t.devices, "late", 1, &devices[1]), TN_OK);
        assert_int_equal(tni_device_get(t.devices, "cpu", 1, &devices[2]), TN_OK);
    }
    for (uint64_t seed = first; seed < first + runs; seed++) {
        uint64_t random = seed * 0x9e3779b97f4a7c15u;

        program_make(&p, kind, &random);
        program_push(&t, &p, devices, reorder);
        if (kind->fail_percent && seed % 2) {
            steps_over(&t, &p);
            failures_check(&t, &p, seed);
        }
        program_check(&t, &p, seed);
        while (tni_engine_wait_all(t.engine))
            ;
        for (uint32_t i = 0; i < VARS; i++)
            tni_var_fini(&p.cells[i].var);
    }
    test_engine_close(&t);
}

/* ---- the tests ------------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    static const program_kind kinds[] = {
        {"naive", 1, 0, 0, true},    {"stepped", 1, 0, 0, true},  {"threaded", 1, 0, 0, true},
        {"threaded", 2, 0, 0, true}, {"threaded", 3, 0, 0, true}, {"threaded", 4, 0, 0, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        programs_run(&kinds[i], test_runs(300));
}

static void test_errors(void **state)
{
    static const program_kind kinds[] = {
        {"naive", 1, 10, 0, true},   {"stepped", 1, 10, 0, true},  {"threaded", 1, 10, 0, true},
        {"threaded", 2, 3, 0, true}, {"threaded", 4, 30, 0, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        programs_run(&kinds[i], test_runs(200));
}

static void test_async_values(void **state)
{
    static const program_kind kinds[] = {
        {"threaded", 2, 0, 60, false},
        {"stepped", 1, 0, 60, false},
        {"naive", 1, 0, 60, false},
        {"threaded", 1, 0, 100, true},
    };

    (void)state;
    test_async_delay(30);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        programs_run(&kinds[i], test_runs(40));
    test_async_delay(0);
    assert_true(test_async_reordered() >= 2 * test_runs(40)); /* of the two threaded ones */
}

static void test_async_errors(void **state)
{
    static const program_kind kinds[] = {{"threaded", 2, 10, 60, true}, {"stepped", 1, 10, 60, true}};

    (void)state;
    test_async_delay(30);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        programs_run(&kinds[i], test_runs(40));
    test_async_delay(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_async_values),
        cmocka_unit_test(test_async_errors),
    };

    print_message("seed %llu\n", (unsigned long long)test_seed());
    return cmocka_run_group_tests_name("engine.dag", tests, NULL, NULL);
}
