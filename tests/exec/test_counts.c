/*
 * What calls hold while they wait, and what they share: the memory of recorded calls, the frames of a caller
 * who never waits, the kernels of equal layers.
 */
#include "net.h"

#include <string.h>

#include "exec/internal.h"

static const char *const stepped[] = {"engine.type=stepped", "engine.inline_ns=0", NULL};

static uint64_t frames_made(tni_context *c)
{
    tni_exec_stats s;

    tni_exec_stats_get(c, &s);
    return s.frames;
}

static uint64_t live_bytes(tni_context *c)
{
    tni_memory_stats s;
    tni_device *d;

    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_device_memory(d, TN_MEMORY_DEVICE, &s));
    return s.live;
}

/* sum(square(x)): its backward needs room for a gradient as large as x, and keeps nothing. */
static tni_cached_op *sum_make(tni_context *c)
{
    tni_symbol *s = net_take(c, "square", net_variable(c, "x"), NULL, NULL);
    tni_cached_op *op = NULL;

    s = net_take(c, "sum", s, NULL, NULL);
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    tni_symbol_release(s);
    return op;
}

static tni_array *ones(tni_context *c, int64_t rows, int64_t columns)
{
    tni_array *x = test_array(c, 2, (const int64_t[]){rows, columns}, NULL);

    assert_ok(tni_array_fill(x, 1.0));
    assert_ok(tni_array_wait(x));
    return x;
}

/* ---- recorded calls ------------------------------------------------------------------------------------ */

static void test_recorded_calls_hold_no_scratch(void **state)
{
    enum { CALLS = 100 };
    tni_context *c = test_context((const char *[]){"memory.cpu.pool=none", NULL});
    tni_cached_op *op = sum_make(c);
    tni_array *x = ones(c, 256, 256), *y[CALLS] = {NULL};
    tni_compiled *e = NULL;
    uint64_t before = 0, scratch, kept;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, NULL));
    test_record(true, false);
    for (int i = 0; i < CALLS; i++) {
        assert_ok(tni_cached_op_call(op, 1, &x, 1, &y[i]));
        assert_ok(tni_engine_wait_all(c->engine)); /* arrays are ready before calls let memory go */
        if (i == 0)
            before = live_bytes(c);
    }
    test_record(false, false);
    assert_ok(tni_engine_wait_all(c->engine));
    assert_ok(tni_cached_op_recent(op, &e));
    scratch = e->program->arenas[0].scratch_bytes[TNI_BACKWARD];
    kept = e->program->arenas[0].kept_bytes;
    assert_true(scratch >= 256u * 256u * sizeof(float)); /* else this shows nothing */
    assert_true(live_bytes(c) - before <= (CALLS - 1) * (kept + 4096));
    for (int i = 0; i < CALLS; i++) {
        assert_ok(tni_backward(c, 1, &y[i], NULL, NULL));
        assert_ok(tni_engine_wait_all(c->engine));
        tni_array_release(y[i]);
    }
    tni_compiled_release(e);
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

/* ---- a caller who never waits -------------------------------------------------------------------------- */

/* `calls` of sum(square(x)), none waited for. */
static void calls_queue(tni_cached_op *op, tni_array *x, int calls)
{
    for (int i = 0; i < calls; i++) {
        tni_array *y = NULL;

        assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
        tni_array_release(y);
    }
}

static void test_large_calls_wait_for_room(void **state)
{
    tni_context *c = test_context(stepped);
    tni_cached_op *op = sum_make(c);
    tni_array *x = ones(c, 1024, 512);

    (void)state;
    calls_queue(op, x, 200);
    assert_true(frames_made(c) > 1 && frames_made(c) <= 9);
    assert_ok(tni_engine_wait_all(c->engine));
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

static void test_small_calls_wait_for_room(void **state)
{
    tni_context *c = test_context(stepped);
    tni_cached_op *op = sum_make(c);
    tni_array *x = ones(c, 2, 2);
    uint64_t of_net;

    (void)state;
    calls_queue(op, x, 5000);
    of_net = frames_made(c);
    assert_true(of_net > 100 && of_net <= 1025);
    for (int i = 0; i < 5000; i++)
        tni_array_release(test_op(c, "tanh", 1, &x, NULL));
    assert_true(frames_made(c) - of_net > 100 && frames_made(c) - of_net <= 1025);
    assert_ok(tni_engine_wait_all(c->engine));
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

/* Backward passes of a retained tape run in frames of their own. */
static void test_backwards_wait_for_room(void **state)
{
    tni_context *c = test_context(stepped);
    tni_array *x = ones(c, 1024, 512), *squares, *y;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    test_record(true, false);
    squares = test_op(c, "square", 1, &x, NULL);
    y = test_op(c, "sum", 1, &squares, NULL);
    test_record(false, false);
    assert_ok(tni_engine_wait_all(c->engine));
    for (int i = 0; i < 50; i++)
        assert_ok(tni_backward(c, 1, &y, NULL, &(tni_backward_options){.retain = true}));
    assert_true(frames_made(c) <= 2 + 9);
    assert_ok(tni_engine_wait_all(c->engine));
    tni_array_release(y);
    tni_array_release(squares);
    tni_array_release(x);
    test_context_close(c);
}

static tni_operation *begun;

static tn_status begin(void *payload, tni_run *run)
{
    (void)payload;
    begun = run->op;
    return TN_PENDING;
}

/* What this thread is to complete later is not waited for. */
static void test_what_the_caller_completes(void **state)
{
    tni_context *c = test_context(stepped);
    tni_cached_op *op = sum_make(c);
    tni_array *x = ones(c, 1024, 512);
    tni_var *writes[] = {tni_array_var(x)};
    const tni_task task = {
        .run = begin, .writes = writes, .write_count = 1, .flags = TNI_TASK_ASYNC, .name = "later"};

    (void)state;
    begun = NULL;
    assert_ok(tni_engine_push(c->engine, &task));
    while (!begun)
        assert_ok(tni_engine_step(c->engine, 0));
    calls_queue(op, x, 40);
    assert_int_equal(frames_made(c), 40);
    tni_engine_complete(begun, TN_OK, NULL);
    assert_ok(tni_engine_wait_all(c->engine));
    calls_queue(op, x, 40);
    assert_int_equal(frames_made(c), 40);
    assert_ok(tni_engine_wait_all(c->engine));
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

static tn_status fail_now(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return tni_error(TN_E_IO, "on purpose");
}

/* Who waits for room is not told of what failed: whoever waits for everything still is. */
static void test_failures_are_told_elsewhere(void **state)
{
    tni_context *c = test_context(stepped);
    tni_cached_op *op = sum_make(c);
    tni_array *x = ones(c, 1024, 512);
    tni_var *writes[] = {tni_array_var(x)};
    const tni_task task = {.run = fail_now, .writes = writes, .write_count = 1, .name = "failure"};

    (void)state;
    assert_ok(tni_engine_push(c->engine, &task));
    calls_queue(op, x, 40);
    assert_int_equal(tni_engine_wait_all(c->engine), TN_E_IO);
    tni_error_clear();
    tni_engine_clear(c->engine, tni_array_var(x));
    calls_queue(op, x, 40); /* frames that failed calls used are as good as new */
    assert_ok(tni_engine_wait_all(c->engine));
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

enum { LAYERS = 20 };

/* The one kernel that all instructions of `op` in the program share. */
static const tni_prepared *shared_of(const tni_program *p, const char *op)
{
    const tni_prepared *one = NULL;
    int count = 0;

    for (uint32_t i = 0; i < p->code_count; i++)
        if (!strcmp(p->code[i].def->op->name, op)) {
            assert_non_null(p->code[i].prepared);
            assert_true(!one || p->code[i].prepared == one);
            one = p->code[i].prepared;
            count++;
        }
    assert_int_equal(count, LAYERS);
    return one;
}

static void test_equal_layers_share_a_kernel(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_variable(c, "x");
    tni_array *in[1 + 2 * LAYERS] = {ones(c, 4, 8)}, *y = NULL;
    tni_cached_op *op = NULL;
    tni_compiled *e = NULL;

    (void)state;
    for (int i = 0; i < LAYERS; i++) {
        tni_symbol *const args[] = {s, net_variable(c, "w"), net_variable(c, "b")};

        s = net_op(c, "FullyConnected", 3, args, "num_hidden=8", NULL);
        for (int k = 0; k < 3; k++)
            tni_symbol_release(args[k]);
        in[1 + 2 * i] = ones(c, 8, 8);
        in[2 + 2 * i] = test_vector(c, 8, (const float[8]){0});
    }
    for (int i = 0; i < 1 + 2 * LAYERS; i++)
        assert_ok(tni_grad_attach(c, in[i], TN_MODE_WRITE, NULL));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    test_record(true, false);
    assert_ok(tni_cached_op_call(op, 1 + 2 * LAYERS, in, 1, &y));
    test_record(false, false);
    assert_ok(tni_cached_op_recent(op, &e));
    (void)shared_of(e->program, "FullyConnected");
    (void)shared_of(e->program, "_backward_FullyConnected");
    assert_ok(tni_engine_wait_all(c->engine));
    tni_compiled_release(e);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    tni_array_release(y);
    for (int i = 0; i < 1 + 2 * LAYERS; i++)
        tni_array_release(in[i]);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_calls_hold_no_scratch),
        cmocka_unit_test(test_large_calls_wait_for_room),
        cmocka_unit_test(test_small_calls_wait_for_room),
        cmocka_unit_test(test_backwards_wait_for_room),
        cmocka_unit_test(test_what_the_caller_completes),
        cmocka_unit_test(test_failures_are_told_elsewhere),
        cmocka_unit_test(test_equal_layers_share_a_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
