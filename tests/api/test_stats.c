/* Each counter of tn_stats counts what it says, and nothing else moves it. */
#include "api/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/list.h"
#include "tenon/plugin/util.h"

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

/* Inside a callback nobody waits for room: it goes over the limit. It writes what its tasks write, so that
 * none of them ends meanwhile. */
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
    tn_task task;
    tn_stats s;

    (void)state;
    assert_ok(tn_var_create(ctx, &b.var));
    task = task_on(&b.var, burst_run, 0);
    task.arg = &b;
    assert_ok(tn_engine_push(ctx, &task));
    s = stats_of(ctx);
    assert_int_equal(s.over_limit, 100 - 15); /* the burst itself and 15 of its tasks had room */
    assert_int_equal(s.queue_peak, 1 + 100);
    tn_var_destroy(ctx, b.var);
    test_close(ctx);
}

/* A kernel that ends when it is let. */
static atomic_bool gate;

static tn_status gate_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status gate_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    while (!atomic_load(&gate))
        (void)sched_yield();
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

static const char *const gate_in[] = {"data", NULL}, *const gate_out[] = {"output", NULL};
static const char *const gate_types[] = {"*:f32", NULL};
static const tn_op gate_op = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                              .version = 1,
                              .name = "test_gate",
                              .doc = "test",
                              .inputs = gate_in,
                              .outputs = gate_out,
                              .shape = gate_shape};
static const tn_kernel gate_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                      .rank = 64,
                                      .op = "test_gate",
                                      .name = "test_gate",
                                      .device = "fake",
                                      .isa = "",
                                      .op_version_min = 1,
                                      .op_version_max = 1,
                                      .flags = TN_KERNEL_DETERMINISTIC,
                                      .types = gate_types,
                                      .run = gate_run};
static const tn_kernel *const gate_kernels[] = {&gate_kernel, NULL};
static const tn_kernel_table gate_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "fake"), .kernels = gate_kernels};
static const tn_capability *const gate_capabilities[] = {&gate_table.head, NULL};
static const tn_plugin gate_plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                      .magic = TN_MAGIC,
                                      .abi_major = TN_ABI_MAJOR,
                                      .abi_minor = TN_ABI_TARGET,
                                      .abi_minor_min = TN_ABI_MIN,
                                      .name = "gate",
                                      .version = "1.0.0",
                                      .vendor = "test",
                                      .license = "Apache-2.0",
                                      .summary = "a kernel that ends when it is let",
                                      .capabilities = gate_capabilities};

static uint64_t event_waits_now(tn_ctx *ctx)
{
    tn_stats s = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(ctx, &s));
    return s.event_waits;
}

/* A stream of the fake device copies what another one has yet to write: it is told to wait. */
static void events_are_counted(void **state)
{
    tn_ctx *ctx = test_open(LIST("device.default=fake:0", "plugin.fake.seed=3", "plugin.fake.delay_us=50"));
    const tn_device *cpu = NULL;
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, (float[]){3, 4}), *y, *z = NULL;
    uint64_t before;

    (void)state;
    atomic_store(&gate, false);
    assert_ok(tn_op_register(ctx, &gate_op));
    assert_ok(tn_plugin_add(ctx, &gate_plugin));
    assert_ok(tn_device_get(ctx, "cpu:0", &cpu));
    before = stats_of(ctx).event_waits;
    y = test_op(ctx, "test_gate", NULL, 1, &x);
    assert_ok(tn_array_to(ctx, y, cpu, &z));
    while (event_waits_now(ctx) == before)
        (void)sched_yield();
    atomic_store(&gate, true);
    test_values(z, (float[]){3, 4}, 2, 0);
    assert_int_equal(stats_of(ctx).event_waits, before + 1);
    tn_array_release(x);
    tn_array_release(y);
    tn_array_release(z);
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
    assert_int_equal(after.fast_path - before.fast_path, 4);
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
    for (int i = 0; i < 3; i++) { /* one program of the net and its gradient, one frame */
        (void)tn_record_set(1);
        assert_ok(tn_cached_op_call(op, 1, &x, 1, &y));
        (void)tn_record_set(0);
        assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
        tn_array_release(y);
        y = NULL;
        stats = stats_of(ctx);
        assert_int_equal(stats.programs, 1);
        assert_true(stats.frames >= 1);
        assert_int_equal(stats.cuts, 0);
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
