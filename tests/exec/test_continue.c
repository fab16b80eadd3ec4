/*
 * Nets in which only a run tells some sizes: what follows is a continuation. The bits of calls one by one, in
 * every engine; a caller who is never kept waiting; arrays that are overwritten right behind the call;
 * failures in either part; sizes that depend on sizes; calls by the dozen that nobody waits for.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "choose.h"
#include "support/runs.h"

static uint64_t programs(tni_context *c)
{
    tni_exec_stats stats;

    tni_exec_stats_get(c, &stats);
    return stats.programs;
}

/* ---- the bits ------------------------------------------------------------------------------------------ */

/* Three turns of each on the same running statistics: the second of the net compiles nothing. */
static void bits_compare(const char *engine, bool train, bool twice)
{
    tni_context *c = choose_open(engine);
    tni_array *want[3][HEADS], *got[3][HEADS] = {{NULL}};
    small eager, net;
    uint64_t made = 0;

    small_open(&eager, c, twice);
    small_open(&net, c, twice);
    tni_scope_get()->training = train;
    for (int turn = 0; turn < 3; turn++)
        net_call(c, eager.s, false, eager.in, want[turn]);
    for (int turn = 0; turn < 3; turn++) {
        small_call(&net, got[turn]);
        assert_ok(tni_engine_wait_all(c->engine));
        if (turn == 1)
            made = programs(c);
    }
    tni_scope_get()->training = false;
    assert_int_equal(programs(c), made);
    for (int turn = 0; turn < 3; turn++) {
        for (int h = 0; h < HEADS; h++) {
            assert_ok(tni_array_shape_wait(got[turn][h]));
            net_same(got[turn][h], want[turn][h], "a head");
        }
        choose_release(want[turn], HEADS);
        choose_release(got[turn], HEADS);
    }
    net_same(net.in[5], eager.in[5], "running mean");
    net_same(net.in[6], eager.in[6], "running variance");
    small_close(&eager);
    small_close(&net);
    test_context_close(c);
}

static void same_bits(void **state)
{
    bits_compare(*state, false, false);
    bits_compare(*state, true, false);
}

static void sizes_of_sizes(void **state)
{
    bits_compare(*state, false, true);
    bits_compare(*state, true, true);
}

/* ---- nobody is kept waiting ---------------------------------------------------------------------------- */

/* The kernel that tells the size waits for the test, on the one worker that there is. What is written behind
 * the call is written behind the rest of it, too. */
static void caller_goes_on(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *want[HEADS], *got[HEADS] = {NULL};
    small eager, net;

    small_open(&eager, c, true);
    small_open(&net, c, true);
    net_call(c, eager.s, false, eager.in, want);
    for (int h = 0; h < HEADS; h++)
        assert_ok(tni_array_wait(want[h]));
    for (int turn = 0; turn < 2; turn++) { /* the second finds all programs made */
        atomic_store(&choose_closed, 1);
        small_call(&net, got);
        assert_true(got[1]->pending && got[2]->pending && !got[3]->pending);
        for (int i = 0; i < 2; i++)
            assert_ok(tni_array_fill(net.in[i], 9));
        atomic_store(&choose_closed, 0);
        for (int h = 0; h < HEADS; h++) {
            assert_ok(tni_array_shape_wait(got[h]));
            net_same(got[h], want[h], "a head");
        }
        choose_release(got, HEADS);
        assert_ok(tni_array_copy(eager.in[0], net.in[0]));
        assert_ok(tni_array_copy(eager.in[1], net.in[1]));
    }
    choose_release(want, HEADS);
    small_close(&eager);
    small_close(&net);
    test_context_close(c);
}

/* Far more than there are threads for callbacks. */
static void many_at_once(void **state)
{
    enum { CALLS = 50 };
    tni_context *c = choose_open(*state);
    tni_array *got[CALLS][HEADS] = {{NULL}};
    small net;

    small_open(&net, c, true);
    for (int k = 0; k < CALLS; k++)
        small_call(&net, got[k]);
    for (int k = CALLS; k-- > 0;) {
        for (int h = 0; h < HEADS; h++) {
            assert_ok(tni_array_shape_wait(got[k][h]));
            net_same(got[k][h], got[CALLS - 1][h], "one of many");
        }
        if (k < CALLS - 1)
            choose_release(got[k], HEADS);
    }
    choose_release(got[CALLS - 1], HEADS);
    small_close(&net);
    test_context_close(c);
}

/* Everything is given up while it is under way. */
static void closed_while_pending(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *got[HEADS] = {NULL};
    small net;

    small_open(&net, c, true);
    for (int k = 0; k < 5; k++) {
        small_call(&net, got);
        choose_release(got, HEADS);
    }
    small_close(&net);
    test_context_close(c);
}

/* The same on several devices: the call is complete before the last operation within it gave back what it
 * holds. */
static void closed_while_pending_elsewhere(void **state)
{
    tni_context *c = choose_open("engine.type=threaded");
    tni_symbol *in[3] = {net_variable(c, "x"), net_variable(c, "w"), net_variable(c, "b")}, *s;
    tni_array *a[3] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x)}, *got = NULL;
    tni_device *d = NULL;

    (void)state;
    in[0] = net_take(c, "test_choose", in[0], NULL, NULL);
    s = net_take(c, "tanh", net_op(c, "FullyConnected", 3, in, "num_hidden=2", NULL), NULL, NULL);
    assert_ok(tni_device_parse(c->devices, "fake:0", &d));
    assert_ok(tni_array_create(c->space, d, TN_F32, 2, (int64_t[]){2, COLUMNS}, "test", &a[1]));
    assert_ok(tni_array_create(c->space, d, TN_F32, 1, (int64_t[]){2}, "test", &a[2]));
    net_call(c, s, true, a, &got);
    tni_array_release(got);
    for (int i = 0; i < 3; i++) {
        tni_array_release(a[i]);
        tni_symbol_release(in[i]);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* A fork waits for the rest, too: the child finds all of it done. */
static void forked_while_pending(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *want[HEADS], *got[HEADS] = {NULL};
    int status = 0;
    small net;
    pid_t child;

    small_open(&net, c, true);
    net_call(c, net.s, false, net.in, want);
    small_call(&net, got);
    child = fork();
    if (child == 0)
        _exit(got[2]->pending || tni_array_wait(got[3]) ? 1 : 0);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int h = 0; h < HEADS; h++)
        net_same(got[h], want[h], "behind a fork");
    choose_release(want, HEADS);
    choose_release(got, HEADS);
    small_close(&net);
    test_context_close(c);
}

/* ---- arrays that are given ----------------------------------------------------------------------------- */

static void outputs_given(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *want[HEADS], *got[HEADS] = {NULL}, *sum = test_vector(c, 1, NULL), *wrong;
    tni_array *rows = test_array(c, 2, (int64_t[]){3, COLUMNS}, NULL);
    small net;

    small_open(&net, c, false);
    net_call(c, net.s, false, net.in, want);
    got[3] = sum;
    got[1] = rows;
    got[0] = net.in[0]; /* an input, overwritten when all have read it */
    tni_array_retain(net.in[0]);
    small_call(&net, got);
    assert_true(got[3] == sum && got[1] == rows && got[0] == net.in[0]);
    for (int h = 0; h < HEADS; h++) {
        assert_ok(tni_array_shape_wait(got[h]));
        net_same(got[h], want[h], "a head");
    }
    assert_ok(tni_array_write(net.in[0], choose_x, sizeof choose_x));
    choose_release(got, HEADS);
    wrong = got[1] = test_array(c, 2, (int64_t[]){4, COLUMNS}, NULL);
    assert_int_equal(tni_cached_op_call(net.op, net.in_count, net.in, HEADS, got), TN_E_SHAPE);
    assert_true(!got[0] && got[1] == wrong && !got[2] && !got[3]);
    choose_release(got, HEADS);
    choose_release(want, HEADS);
    small_close(&net);
    test_context_close(c);
}

/* The rest runs where its weights lie; what it reads comes there, and goes on from there. */
static void on_two_devices(void **state)
{
    static const char *const others[] = {"cpu:1", "fake:0"};
    tni_context *c = choose_open("engine.type=threaded");
    tni_symbol *in[3] = {net_variable(c, "x"), net_variable(c, "w"), net_variable(c, "b")}, *s;
    tni_array *a[3] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x)}, *want = NULL, *got = NULL;

    in[0] = net_take(c, "test_choose", in[0], NULL, NULL);
    s = net_take(c, "tanh", net_op(c, "FullyConnected", 3, in, "num_hidden=2", NULL), NULL, NULL);
    for (int k = -1; k < 2; k++) {
        tni_device *d = NULL;

        assert_ok(tni_device_parse(c->devices, k < 0 ? "cpu:0" : others[k], &d));
        assert_ok(tni_array_create(c->space, d, TN_F32, 2, (int64_t[]){2, COLUMNS}, "test", &a[1]));
        assert_ok(tni_array_create(c->space, d, TN_F32, 1, (int64_t[]){2}, "test", &a[2]));
        assert_ok(tni_array_write(a[1], choose_x, tni_array_bytes(a[1])));
        assert_ok(tni_array_write(a[2], choose_x, tni_array_bytes(a[2])));
        net_call(c, s, true, a, k < 0 ? &want : &got);
        if (k >= 0) {
            assert_ptr_equal(got->storage->device, d);
            assert_ok(tni_array_shape_wait(got));
            assert_ok(tni_array_shape_wait(want));
            net_same(got, want, "elsewhere");
            tni_array_release(got);
        }
        tni_array_release(a[1]);
        tni_array_release(a[2]);
    }
    (void)state;
    tni_array_release(want);
    tni_array_release(a[0]);
    for (int i = 0; i < 3; i++)
        tni_symbol_release(in[i]);
    tni_symbol_release(s);
    test_context_close(c);
}

/* Views of what has no size yet, the same head twice, and an input that is there twice. */
static void heads_of_all_kinds(void **state)
{
    tni_context *c = choose_open(*state);
    tni_symbol *x = net_variable(c, "x"), *y = net_variable(c, "y"),
               *p = net_op(c, "test_choose", 1, &x, NULL);
    tni_symbol *flat = net_op(c, "Reshape", 1, &p, "shape=(-1,)", NULL);
    tni_symbol *added = net_take(c, "broadcast_add", net_op(c, "square", 1, &p, NULL), y, NULL),
               *group = NULL;
    tni_symbol *const parts[] = {p, flat, added, added, p};
    tni_array *in[2] = {test_array(c, 2, (int64_t[]){3, COLUMNS}, choose_x)}, *want[5], *got[5] = {NULL};
    tni_cached_op *op = NULL;

    in[1] = in[0];
    assert_ok(tni_array_fill(in[0], 0.5));
    assert_ok(tni_symbol_group(5, parts, &group));
    net_call(c, group, false, in, want);
    assert_ok(tni_cached_op_create(c, group, NULL, &op));
    assert_ok(tni_cached_op_call(op, 2, in, 5, got));
    for (int h = 0; h < 5; h++) {
        assert_ok(tni_array_shape_wait(got[h]));
        net_same(got[h], want[h], "a head");
    }
    assert_true(got[0] != got[4] && got[2] != got[3]);
    choose_release(want, 5);
    choose_release(got, 5);
    tni_array_release(in[0]);
    tni_cached_op_release(op);
    tni_symbol_release(group);
    tni_symbol_release(p);
    tni_symbol_release(flat);
    tni_symbol_release(added);
    tni_symbol_release(x);
    test_context_close(c);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* `early`: the kernel that tells the size fails, else one in the rest. What does not depend on it is right,
 * the rest of what the call writes says it, inputs are as they were, and the next call is none the worse. */
static void failure_travels(const char *engine, bool early, bool twice)
{
    tni_context *c = choose_open(engine);
    tni_array *want[HEADS], *got[HEADS] = {NULL};
    small net;

    small_open(&net, c, twice);
    net_call(c, net.s, false, net.in, want);
    for (int h = 0; h < HEADS; h++)
        assert_ok(tni_array_wait(want[h]));
    for (int turn = 0; turn < 2; turn++) {
        atomic_store(&choose_breaks, early);
        atomic_store(&choose_breaks_left, 1);
        small_call(&net, got);
        net_same(got[0], want[0], "what came before");
        for (int h = early ? 1 : 2; h < HEADS; h++) {
            assert_int_equal(tni_array_wait(got[h]), TN_E_IO);
            assert_non_null(strstr(tni_error_message(), "it broke"));
        }
        assert_int_equal(tni_array_shape_wait(got[2]) != TN_OK, early || got[2]->pending);
        for (uint32_t i = 0; i < net.in_count; i++)
            assert_ok(tni_array_wait(net.in[i]));
        assert_ok(tni_engine_wait_all(c->engine)); /* it was told once */
        choose_release(got, HEADS);
        atomic_store(&choose_breaks_left, 0);
        small_call(&net, got);
        for (int h = 0; h < HEADS; h++) {
            assert_ok(tni_array_shape_wait(got[h]));
            net_same(got[h], want[h], "the next call");
        }
        choose_release(got, HEADS);
    }
    choose_release(want, HEADS);
    small_close(&net);
    test_context_close(c);
}

static void failures_travel(void **state)
{
    for (int i = 0; i < 4; i++)
        failure_travels(*state, i & 1, i & 2);
}

/* Sizes that do not fit come out where they are waited for: nobody knew them at the call. */
static void sizes_that_do_not_fit(void **state)
{
    tni_context *c = choose_open(*state);
    tni_symbol *x = net_variable(c, "x"), *v = net_variable(c, "v");
    tni_symbol *s = net_take(c, "broadcast_add", net_op(c, "test_choose", 1, &x, NULL), v, NULL);
    tni_array *in[] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x),
                       test_array(c, 2, (int64_t[]){4, COLUMNS}, choose_x)};
    tni_array *y = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(tni_cached_op_call(op, 2, in, 1, &y));
        assert_int_equal(tni_array_wait(y), TN_E_SHAPE);
        assert_ok(tni_array_wait(in[1]));
        tni_array_release(y);
        y = NULL;
    }
    tni_array_release(in[1]);
    in[1] = test_array(c, 2, (int64_t[]){3, COLUMNS}, choose_x);
    assert_ok(tni_cached_op_call(op, 2, in, 1, &y));
    assert_ok(tni_array_wait(y));
    tni_array_release(y);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    tni_symbol_release(x);
    test_context_close(c);
}

/* What reads it may say the size before it ran: then the run is to tell the same. */
static void sizes_told_before(void **state)
{
    tni_context *c = choose_open(*state);
    tni_symbol *x = net_variable(c, "x"), *v = net_variable(c, "v");
    tni_symbol *s = net_take(c, "elemwise_add", net_op(c, "test_choose", 1, &x, NULL), v, NULL);
    tni_array *in[2] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x)}, *y = NULL;

    for (int64_t rows = 2; rows < 5; rows++) { /* 3 of them are chosen */
        in[1] = test_array(c, 2, (int64_t[]){rows, COLUMNS}, choose_x);
        net_call(c, s, true, in, &y);
        assert_false(y->pending);
        assert_int_equal(tni_array_wait(y), rows == 3 ? TN_OK : TN_E_SHAPE);
        tni_array_release(y);
        tni_array_release(in[1]);
    }
    tni_array_release(in[0]);
    tni_symbol_release(s);
    tni_symbol_release(x);
    test_context_close(c);
}

/* Whatever allocation fails: an error at the call or at the wait, or the right numbers. */
static void memory_fails(void **state)
{
    tni_context *c = choose_open(*state);
    float want[1] = {0}, got[1];
    bool failed = true;

    for (uint64_t nth = 0; failed; nth = test_failure_next(nth, 60)) { /* recorded, and not */
        tni_array *out[HEADS] = {NULL};
        tn_status st;
        small net;

        small_open(&net, c, true);
        assert_ok(tni_grad_attach(c, net.in[3], TN_MODE_WRITE, NULL));
        tni_scope_get()->recording = nth % 2 == 0;
        tni_mem_fail_at(nth / 2, false, false);
        st = tni_cached_op_call(net.op, net.in_count, net.in, HEADS, out);
        if (!st && nth % 2 == 0)
            st = tni_backward(c, 1, &out[3], NULL, NULL);
        if (!st)
            st = tni_array_read(out[3], nth ? got : want, sizeof got);
        (void)tni_engine_wait_all(c->engine);
        failed = tni_mem_failed() || nth < 4;
        tni_mem_fail_at(0, false, false);
        tni_scope_get()->recording = false;
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        if (!st && nth)
            assert_memory_equal(got, want, sizeof got);
        choose_release(out, HEADS);
        small_close(&net);
    }
    test_context_close(c);
}

/* ---- draws ---------------------------------------------------------------------------------- */

/* Draws are those of the whole net, in the order of its nodes. */
static void draws_of_the_net(void **state)
{
    tni_context *c = choose_open(*state);
    tni_symbol *x = net_variable(c, "x"), *s = net_op(c, "Dropout", 1, &x, NULL);
    tni_array *in = test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x), *want = NULL, *got = NULL;

    s = net_take(c, "Dropout", net_take(c, "test_choose", s, NULL, NULL), NULL, NULL);
    tni_scope_get()->training = true;
    assert_ok(tni_random_seed(c, 3, NULL));
    net_call(c, s, false, &in, &want);
    assert_ok(tni_random_seed(c, 3, NULL));
    net_call(c, s, true, &in, &got);
    tni_scope_get()->training = false;
    assert_ok(tni_array_shape_wait(got));
    net_same(got, want, "dropped");
    tni_array_release(want);
    tni_array_release(got);
    tni_array_release(in);
    tni_symbol_release(s);
    tni_symbol_release(x);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(same_bits),
        EVERYWHERE(sizes_of_sizes),
        WITH(caller_goes_on, "engine.type=threaded"),
        WITH(caller_goes_on, "engine.type=stepped"),
        EVERYWHERE(many_at_once),
        EVERYWHERE(closed_while_pending),
        cmocka_unit_test(closed_while_pending_elsewhere),
        EVERYWHERE(forked_while_pending),
        EVERYWHERE(outputs_given),
        EVERYWHERE(failures_travel),
        EVERYWHERE(sizes_that_do_not_fit),
        EVERYWHERE(sizes_told_before),
        EVERYWHERE(heads_of_all_kinds),
        cmocka_unit_test(on_two_devices),
        EVERYWHERE(memory_fails),
        EVERYWHERE(draws_of_the_net),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
