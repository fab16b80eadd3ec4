/*
 * Recorded nets in which only a run tells some sizes: gradients with the bits of calls one by one, once and
 * twice; a caller who is never kept waiting; failures.
 */
#include <sched.h>

#include "choose.h"
#include "engine/internal.h"
#include "exec/internal.h"

/* Gradients of what stands behind the last of them: nothing here has a gradient through such an operator. */
static void gradients_compare(const char *engine, bool twice)
{
    tni_context *c = choose_open(engine);
    tni_array *h[HEADS] = {NULL};
    small nets[2];

    for (int hybrid = 0; hybrid < 2; hybrid++) {
        small *n = &nets[hybrid];

        small_open(n, c, twice);
        for (int i = twice ? 3 : 1; i < 5; i++)
            assert_ok(tni_grad_attach(c, n->in[i], i == 2 ? TN_MODE_ADD : TN_MODE_WRITE, NULL));
        for (int turn = 0; turn < 2; turn++) {
            test_record(true, true);
            if (hybrid)
                small_call(n, h);
            else
                net_call(c, n->s, false, n->in, h);
            test_record(false, false);
            assert_ok(tni_backward(c, 1, &h[3], NULL, NULL));
            choose_release(h, HEADS);
        }
    }
    for (int i = twice ? 3 : 1; i < 5; i++)
        net_same(tni_grad_get(nets[1].in[i]), tni_grad_get(nets[0].in[i]), "a gradient");
    small_close(&nets[0]);
    small_close(&nets[1]);
    test_context_close(c);
}

static void gradients(void **state)
{
    gradients_compare(*state, false);
    gradients_compare(*state, true);
}

/* A recorded call goes on, too: what its arrays are on the tape is settled at the call, whatever becomes of
 * them behind it. Only a backward waits for the sizes. */
static void recorded_goes_on(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *want[HEADS], *got[HEADS] = {NULL}, *grad, *behind;
    small eager, net;

    small_open(&eager, c, true);
    small_open(&net, c, true);
    for (int i = 3; i < 5; i++) {
        assert_ok(tni_grad_attach(c, eager.in[i], TN_MODE_WRITE, NULL));
        assert_ok(tni_grad_attach(c, net.in[i], TN_MODE_WRITE, NULL));
    }
    test_record(true, true);
    net_call(c, eager.s, false, eager.in, want);
    behind = test_op(c, "_mul_scalar", 1, &want[3], "scalar=3", NULL);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &behind, NULL, NULL));
    tni_array_release(behind);
    atomic_store(&choose_closed, 1);
    test_record(true, true);
    small_call(&net, got);
    behind = test_op(c, "_mul_scalar", 1, &got[3], "scalar=3", NULL); /* recorded behind it, before it ran */
    test_record(false, false);
    assert_true(got[2]->pending && got[3]->grad_entry && !got[1]->grad_entry);
    tni_array_retain(grad = tni_grad_get(net.in[3]));
    assert_ok(tni_grad_attach(c, net.in[4], TN_MODE_NONE, NULL)); /* what a leaf is later is not its matter */
    atomic_store(&choose_closed, 0);
    assert_ok(tni_backward(c, 1, &behind, NULL, NULL));
    net_same(grad, tni_grad_get(eager.in[3]), "gamma");
    assert_int_equal(tni_backward(c, 1, &behind, NULL, NULL), TN_E_STATE);
    tni_array_release(behind);
    tni_array_release(grad);
    choose_release(want, HEADS);
    choose_release(got, HEADS);
    small_close(&eager);
    small_close(&net);
    test_context_close(c);
}

#define LONG 30000

static atomic_bool walking;

/* One size becomes known while the tape is walked, the next one only when somebody waits. */
static void sizes_tell(void *arg)
{
    const tni_context *c = arg;

    while (!atomic_load(&walking))
        (void)sched_yield();
    atomic_store(&choose_closed, 2);
    while (!atomic_load(&c->engine->waits))
        (void)sched_yield();
    atomic_store(&choose_closed, 0);
}

/* The rest is compiled in the middle of a walk, and has a rest itself: that is waited for, too. */
static void settled_while_walked(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *got[HEADS] = {NULL}, *heads[2], *next;
    tni_thread *thread;
    tni_mutex lock;
    small net;

    assert_ok(tni_mutex_init(&lock));
    small_open(&net, c, true);
    assert_ok(tni_grad_attach(c, net.in[3], TN_MODE_WRITE, NULL));
    test_record(true, true);
    heads[1] = test_op(c, "negative", 1, &net.in[3], NULL); /* a long way beside it */
    for (int i = 0; i < LONG; i++, heads[1] = next) {
        next = test_op(c, "negative", 1, &heads[1], NULL);
        tni_array_release(heads[1]);
    }
    for (int turn = 0; turn < 20; turn++) {
        atomic_store(&choose_closed, 1);
        atomic_store(&walking, false);
        assert_ok(tni_thread_create("sizes", sizes_tell, c, &thread));
        small_call(&net, got);
        heads[0] = got[3];
        atomic_store(&walking, true);
        assert_ok(tni_tape_wait(c, &lock, 2, heads));
        assert_true(tni_tape_settled(tni_tape_resolve(got[3]->grad_entry)->node));
        tni_thread_join(thread);
        choose_release(got, HEADS);
    }
    test_record(false, false);
    tni_mutex_fini(&lock);
    tni_array_release(heads[1]);
    small_close(&net);
    test_context_close(c);
}

/* Gradients of gradients go through both parts. */
static void differentiated_twice(void **state)
{
    const tni_backward_options create = {.create = true};
    tni_context *c = choose_open(*state);
    tni_symbol *in[2] = {net_variable(c, "x"), net_variable(c, "w")}, *s;
    tni_array *a[2] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x),
                       test_vector(c, COLUMNS, (float[]){0.5f, -1, 2})};
    tni_array *y = NULL, *first[2] = {NULL, NULL};

    in[0] = net_take(c, "test_choose", in[0], NULL, NULL);
    s = net_take(c, "tanh", net_op(c, "broadcast_mul", 2, in, NULL), NULL, NULL);
    s = net_take(c, "sum", net_take(c, "square", s, NULL, NULL), NULL, NULL);
    assert_ok(tni_grad_attach(c, a[1], TN_MODE_WRITE, NULL));
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *dw = NULL;

        test_record(true, true);
        net_call(c, s, hybrid, a, &y);
        assert_ok(tni_grad(c, 1, &y, NULL, 1, &a[1], &create, &dw));
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &dw, NULL, NULL));
        assert_ok(tni_array_create(c->space, a[1]->storage->device, TN_F32, 1, (int64_t[]){COLUMNS}, "test",
                                   &first[hybrid]));
        assert_ok(tni_array_copy(tni_grad_get(a[1]), first[hybrid]));
        tni_array_release(dw);
        tni_array_release(y);
    }
    net_same(first[1], first[0], "a second derivative");
    for (int i = 0; i < 2; i++) {
        tni_array_release(first[i]);
        tni_array_release(a[i]);
        tni_symbol_release(in[i]);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* A recorded call that failed before it was compiled has no backward; one that failed later has a poisoned
 * one. What is given up is freed. */
static void recorded_failures(void **state)
{
    tni_context *c = choose_open(*state);
    tni_array *got[HEADS] = {NULL};
    small net;

    small_open(&net, c, true);
    assert_ok(tni_grad_attach(c, net.in[3], TN_MODE_WRITE, NULL));
    for (int early = 0; early < 2; early++) {
        atomic_store(&choose_breaks, early);
        atomic_store(&choose_breaks_left, 1);
        test_record(true, true);
        small_call(&net, got);
        test_record(false, false);
        if (early)
            assert_int_equal(tni_backward(c, 1, &got[3], NULL, NULL), TN_E_IO);
        else
            assert_ok(tni_backward(c, 1, &got[3], NULL, NULL));
        assert_int_equal(tni_array_wait(got[3]), TN_E_IO);
        (void)tni_engine_wait_all(c->engine);
        choose_release(got, HEADS);
        for (int i = 5; i < 7; i++) /* the running statistics hold the failure, as in any net */
            assert_ok(tni_array_fill(net.in[i], 1));
    }
    test_record(true, true);
    small_call(&net, got); /* nobody asks for its backward */
    test_record(false, false);
    choose_release(got, HEADS);
    test_record(true, true);
    small_call(&net, got);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &got[3], NULL, NULL));
    assert_ok(tni_array_wait(tni_grad_get(net.in[3])));
    choose_release(got, HEADS);
    small_close(&net);
    test_context_close(c);
}

/* One array at two places of the rest: its uses are uses of one variable. */
static void twins(void **state)
{
    tni_context *c = choose_open(*state);
    tni_symbol *x = net_variable(c, "x"), *v[2] = {net_variable(c, "v"), net_variable(c, "u")}, *s;
    tni_array *a[3] = {test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, choose_x),
                       test_vector(c, COLUMNS, (float[]){0.5f, -1, 2})};
    tni_array *grads[2] = {NULL, NULL}, *y = NULL;

    s = net_take(c, "broadcast_mul", net_op(c, "test_choose", 1, &x, NULL), v[0], NULL);
    s = net_take(c, "broadcast_mul", net_take(c, "tanh", s, NULL, NULL), v[1], NULL);
    a[2] = a[1];
    assert_ok(tni_grad_attach(c, a[1], TN_MODE_WRITE, NULL));
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        test_record(true, true);
        net_call(c, s, hybrid, a, &y);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        assert_ok(tni_array_create(c->space, a[1]->storage->device, TN_F32, 1, (int64_t[]){COLUMNS}, "test",
                                   &grads[hybrid]));
        assert_ok(tni_array_copy(tni_grad_get(a[1]), grads[hybrid]));
        tni_array_release(y);
    }
    net_same(grads[1], grads[0], "of a twin");
    for (int i = 0; i < 2; i++) {
        tni_array_release(grads[i]);
        tni_array_release(a[i]);
    }
    tni_symbol_release(s);
    tni_symbol_release(x);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(gradients),
        WITH(recorded_goes_on, "engine.type=threaded"),
        WITH(recorded_goes_on, "engine.type=stepped"),
        WITH(settled_while_walked, "engine.type=threaded"),
        EVERYWHERE(differentiated_twice),
        EVERYWHERE(recorded_failures),
        EVERYWHERE(twins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
