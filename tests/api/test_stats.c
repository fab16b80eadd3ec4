/* Each counter of tn_stats counts what it says, and nothing else moves it. */
#include "api/support.h"

#include <stdbool.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static tn_stats stats_of(tn_ctx *ctx)
{
    tn_stats s = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_ctx_stats(ctx, &s));
    return s;
}

/* ---- the engine ---------------------------------------------------------------------------------- */

static tn_status nothing(void *arg)
{
    (void)arg;
    return TN_OK;
}

static tn_status fails(void *arg)
{
    (void)arg;
    return TN_E_PEER;
}

static tn_task task_on(tn_var *const *var, tn_status (*run)(void *arg), uint64_t est_ns)
{
    return (tn_task){
        .struct_size = TN_SIZE(tn_task), .run = run, .writes = var, .write_count = 1, .est_ns = est_ns};
}

static void work_is_counted(void **state)
{
    tn_ctx *ctx = test_open(LIST("engine.threads=3", "engine.inline_ns=1000", "engine.queue_max=1024"));
    tn_stats before, after;
    tn_var *var = NULL;
    tn_task queued, inlined, failing;

    (void)state;
    assert_ok(tn_var_create(ctx, &var));
    queued = task_on(&var, nothing, 0);
    inlined = task_on(&var, nothing, 10);
    failing = task_on(&var, fails, 0);
    before = stats_of(ctx);
    assert_int_equal(before.threads, 3);
    assert_int_equal(before.inlined + before.failed + before.skipped + before.over_limit, 0);
    for (int i = 0; i < 5; i++)
        assert_ok(tn_engine_push(ctx, &queued));
    after = stats_of(ctx);
    assert_int_equal(after.pushed - before.pushed, 5);
    assert_int_equal(after.done - before.done, 5);
    assert_int_equal(after.inlined, 0);
    assert_true(after.queue_peak >= 1 && after.queue_peak <= 5);
    for (int i = 0; i < 3; i++)
        assert_ok(tn_engine_push(ctx, &inlined));
    after = stats_of(ctx);
    assert_int_equal(after.inlined, 3);
    assert_int_equal(after.pushed - before.pushed, 8);
    assert_int_equal(after.done, after.pushed);
    assert_ok(tn_engine_push(ctx, &failing));
    queued.reads = &var; /* what reads the result is not run */
    queued.read_count = 1;
    queued.write_count = 0;
    assert_ok(tn_engine_push(ctx, &queued));
    assert_ok(tn_engine_push(ctx, &queued));
    assert_int_equal(tn_var_wait(ctx, var), TN_E_PEER);
    after = stats_of(ctx);
    assert_int_equal(after.failed, 1);
    assert_int_equal(after.skipped, 2);
    tn_var_destroy(ctx, var);
    assert_ok(tn_close(ctx));
}

typedef struct burst {
    tn_ctx *ctx;
    tn_var *var;
    int count;
} burst;

/* Inside a callback nobody waits for room: it goes over the limit. */
static tn_status burst_run(void *arg)
{
    const burst *b = arg;
    const tn_task one = task_on(&b->var, nothing, 0);
    tn_status st = TN_OK;

    for (int i = 0; i < b->count && !st; i++)
        st = tn_engine_push(b->ctx, &one);
    return st;
}

static void bursts_are_counted(void **state)
{
    tn_ctx *ctx = test_open(LIST("engine.queue_max=16"));
    burst b = {.ctx = ctx, .count = 100};
    tn_var *own = NULL;
    tn_task task;
    tn_stats s;

    (void)state;
    assert_ok(tn_var_create(ctx, &own));
    assert_ok(tn_var_create(ctx, &b.var));
    task = task_on(&own, burst_run, 0);
    task.arg = &b;
    assert_ok(tn_engine_push(ctx, &task));
    s = stats_of(ctx);
    assert_true(s.over_limit > 0 && s.over_limit <= 100);
    assert_true(s.queue_peak > 16);
    tn_var_destroy(ctx, own);
    tn_var_destroy(ctx, b.var);
    test_close(ctx);
}

static void events_are_counted(void **state)
{
    tn_ctx *ctx = test_open(LIST("device.default=fake:0", "plugin.fake.seed=3", "plugin.fake.delay_us=50"));
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, (float[]){1, 2}), *y;
    uint64_t before = stats_of(ctx).event_waits;

    (void)state;
    for (int i = 0; i < 20; i++) { /* what was copied here is used there */
        assert_ok(tn_array_write(x, (float[]){3, 4}, 8));
        y = test_op(ctx, "square", NULL, 1, &x);
        test_values(y, (float[]){9, 16}, 2, 0);
        tn_array_release(y);
    }
    assert_true(stats_of(ctx).event_waits > before);
    tn_array_release(x);
    test_close(ctx);
}

/* ---- calls and programs -------------------------------------------------------------------------- */

static void calls_are_counted(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, (float[]){1, 2}), *y;
    tn_stats before, after;

    (void)state;
    assert_ok(tn_array_wait(x));
    tn_array_release(test_op(ctx, "square", NULL, 1, &x));
    before = stats_of(ctx);
    assert_int_equal(before.misses, 1);
    assert_int_equal(before.signatures, 1);
    for (int i = 0; i < 4; i++)
        tn_array_release(test_op(ctx, "square", NULL, 1, &x));
    after = stats_of(ctx);
    assert_int_equal(after.hits - before.hits, 4);
    assert_int_equal(after.short_way - before.short_way, 4);
    assert_int_equal(after.misses, 1);
    y = test_op(ctx, "negative", NULL, 1, &x);
    after = stats_of(ctx);
    assert_int_equal(after.misses, 2);
    assert_int_equal(after.signatures, 2);
    assert_int_equal(after.arrays, 2);
    assert_int_equal(after.storages, 2);
    tn_array_release(x);
    tn_array_release(y);
    assert_int_equal(stats_of(ctx).arrays, 0);
    test_close(ctx);
}

static void programs_are_counted(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, (float[]){1, 2}), *y = NULL;
    tn_symbol *s = NULL, *square = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .op = "square", .in = &s};
    tn_cached_op *op = NULL;
    tn_stats stats;

    (void)state;
    assert_ok(tn_symbol_variable(ctx, "x", &s));
    assert_ok(tn_symbol_op(ctx, &call, &square));
    assert_ok(tn_cached_op_create(ctx, square, NULL, &op));
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    assert_int_equal(stats_of(ctx).programs, 0);
    for (int i = 0; i < 3; i++) { /* one program of the net, one of its gradient; a frame each */
        (void)tn_record_set(1);
        assert_ok(tn_cached_op_call(op, 1, &x, 1, &y));
        (void)tn_record_set(0);
        assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
        tn_array_release(y);
        y = NULL;
        stats = stats_of(ctx);
        assert_int_equal(stats.programs, 2);
        assert_int_equal(stats.frames, 2);
        assert_int_equal(stats.by_node, 0);
    }
    tn_cached_op_release(op);
    tn_symbol_release(square);
    tn_symbol_release(s);
    tn_array_release(x);
    test_close(ctx);
}

static void memory_is_counted(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_stats before = stats_of(ctx), after;
    tn_symbol *s = NULL;

    (void)state;
    assert_ok(tn_symbol_variable(ctx, "x", &s));
    after = stats_of(ctx);
    assert_true(after.host_bytes > before.host_bytes);
    assert_true(after.host_blocks > before.host_blocks);
    assert_true(after.host_allocations - before.host_allocations >= after.host_blocks - before.host_blocks);
    tn_symbol_release(s);
    before = after;
    after = stats_of(ctx);
    assert_true(after.host_blocks < before.host_blocks && after.host_bytes < before.host_bytes);
    assert_true(after.host_allocations >= before.host_allocations); /* of all times */
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_counted),      cmocka_unit_test(bursts_are_counted),
        cmocka_unit_test(events_are_counted),   cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(programs_are_counted), cmocka_unit_test(memory_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
