/*
 * Functions of the program: values, gradients by every mode, several outputs and uses, failures and what
 * they reach, callbacks that misbehave, on all three engines with one worker.
 */
#include "api/own.h"

#include <sched.h>

#define COUNT 3
static const float left[COUNT] = {1, -2, 3}, right[COUNT] = {0.5f, 4, -1};

typedef struct setting {
    tn_ctx *ctx;
    own o;
    tn_array *a, *b;
} setting;

static void begin(setting *s, const own_engine *engine, uint32_t out_count)
{
    const char *const settings[] = {engine->type, "engine.threads=1", engine->device, NULL};
    const int64_t shape[] = {COUNT};

    memset(s, 0, sizeof *s);
    s->ctx = s->o.ctx = test_open(settings);
    s->o.out_count = out_count;
    s->a = test_array(s->ctx, 1, shape, left);
    s->b = test_array(s->ctx, 1, shape, right);
    assert_ok(tn_attach_grad(s->ctx, s->a, TN_MODE_WRITE, NULL));
    assert_ok(tn_attach_grad(s->ctx, s->b, TN_MODE_ADD, NULL));
}

static void drop(setting *s)
{
    tn_array_release(s->a);
    tn_array_release(s->b);
}

static void end(setting *s)
{
    drop(s);
    test_close(s->ctx);
}

static tn_array *sum(tn_ctx *ctx, tn_array *x)
{
    tn_array *out;

    (void)tn_record_set(1);
    out = test_op(ctx, "sum", NULL, 1, &x);
    (void)tn_record_set(0);
    return out;
}

/* ---- what is right ------------------------------------------------------------------------------------- */

static void not_recorded(void **state)
{
    setting s;
    tn_function f;
    tn_array *out[2] = {NULL};

    begin(&s, *state, 2);
    f = own_function(&s.o);
    assert_ok(tn_function_call(s.ctx, &f, 2, (tn_array *const[]){s.a, s.b}, 2, out));
    assert_int_equal(atomic_load(&s.o.destroyed), 1);
    test_values(out[0], (float[]){0.5f, -8, -3}, COUNT, 0);
    test_values(out[1], (float[]){1.5f, 2, 2}, COUNT, 0);
    assert_fails(tn_backward(s.ctx, 1, out, NULL, 0), TN_E_STATE);
    tn_array_release(out[0]);
    tn_array_release(out[1]);
    end(&s);
}

/* Twice with retain, then the last time; the other output gets zeros. */
static void modes(void **state)
{
    setting s;
    tn_array *y;

    begin(&s, *state, 2);
    (void)tn_train_set(1);
    y = own_call(&s.o, s.a, s.b);
    (void)tn_train_set(0);
    assert_int_equal(s.o.recording, 0);
    assert_int_equal(s.o.training, 1);
    for (int turn = 1; turn <= 2; turn++) {
        assert_ok(tn_backward(s.ctx, 1, &y, NULL, turn == 1 ? TN_BACKWARD_RETAIN : TN_BACKWARD_PREDICT));
        test_values(tn_array_grad(s.a), right, COUNT, 0);
        test_values(tn_array_grad(s.b), (float[]){1.f * (float)turn, -2.f * (float)turn, 3.f * (float)turn},
                    COUNT, 0);
        assert_int_equal(s.o.recording, 0);
        assert_int_equal(s.o.training, turn == 1);
    }
    assert_fails(tn_backward(s.ctx, 1, &y, NULL, 0), TN_E_STATE);
    assert_non_null(strstr(tn_error_text(), "own"));
    assert_int_equal(atomic_load(&s.o.backwards), 2);
    assert_int_equal(atomic_load(&s.o.destroyed), 0);
    tn_array_release(y);
    assert_ok(tn_wait_all(s.ctx));
    assert_int_equal(atomic_load(&s.o.destroyed), 1);
    end(&s);
}

/* One array twice; a gradient that nobody wants; one of an array on the way; arrays without any. */
static void uses(void **state)
{
    setting s;
    tn_array *y, *z, *g = NULL;

    begin(&s, *state, 1);
    y = own_call(&s.o, s.b, s.b); /* b^2, added to zeros */
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
    test_values(tn_array_grad(s.b), (float[]){1, 8, -2}, COUNT, 0);
    tn_array_release(y);
    tn_detach_grad(s.b);
    y = own_call(&s.o, s.b, s.a);
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
    test_values(tn_array_grad(s.a), right, COUNT, 0);
    assert_true(!s.o.wanted[0] && s.o.wanted[1]);
    tn_array_release(y);
    y = own_call(&s.o, s.a, s.b);
    z = own_call(&s.o, y, y);
    assert_ok(tn_gradients(s.ctx,
                           &(tn_gradient_call){.struct_size = TN_SIZE(tn_gradient_call),
                                               .head_count = 1,
                                               .variable_count = 1,
                                               .heads = &z,
                                               .variables = &y},
                           &g));
    test_values(g, (float[]){1, -16, -6}, COUNT, 0);
    tn_array_release(g);
    tn_array_release(z);
    tn_array_release(y);
    y = own_call(&s.o, s.b, s.b); /* no gradient is attached: nothing is recorded */
    assert_fails(tn_backward(s.ctx, 1, &y, NULL, 0), TN_E_STATE);
    tn_array_release(y);
    end(&s);
}

/* Operators before and behind, with the bits of the same formula without a function. */
static void among_operators(void **state)
{
    float got[2][COUNT];
    setting s;

    begin(&s, *state, 1);
    for (int with = 0; with < 2; with++) {
        tn_array *h, *y, *z, *head;

        (void)tn_record_set(1);
        h = test_op(s.ctx, "tanh", NULL, 1, &s.a);
        y = with ? own_call(&s.o, h, s.a)
                 : test_op(s.ctx, "broadcast_mul", NULL, 2, (tn_array *const[]){h, s.a});
        (void)tn_record_set(1);
        z = test_op(s.ctx, "exp", NULL, 1, &y);
        (void)tn_record_set(0);
        head = sum(s.ctx, z);
        assert_ok(tn_backward(s.ctx, 1, &head, NULL, 0));
        assert_ok(tn_array_read(tn_array_grad(s.a), got[with], sizeof got[with]));
        tn_array_release(h);
        tn_array_release(y);
        tn_array_release(z);
        tn_array_release(head);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    end(&s);
}

/* What is saved is written by work that waits for the gradient: the function reads it before. */
static void saved_are_held(void **state)
{
    static const char *const lr[] = {"lr", "1", NULL};
    setting s;
    tn_array *y;

    begin(&s, *state, 1);
    y = own_call(&s.o, s.a, s.b);
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
    for (int i = 0; i < 2; i++) { /* a - b, twice: the gradient of a is b */
        const tn_op_call update = {.struct_size = TN_SIZE(tn_op_call),
                                   .in_count = 2,
                                   .op = "sgd_update",
                                   .attrs = lr,
                                   .in = (tn_array *const[]){s.a, tn_array_grad(s.a)}};

        assert_ok(tn_invoke_text(s.ctx, &update, 1, &s.a, NULL));
    }
    test_values(tn_array_grad(s.b), left, COUNT, 0);
    test_values(s.a, (float[]){0, -10, 5}, COUNT, 0);
    tn_array_release(y);
    end(&s);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static const tn_status forward_status[] = {TN_OK, TN_E_ARG, TN_E_ARG, TN_E_PEER, TN_E_ARG, TN_E_ARG};

static void forward_fails(void **state)
{
    setting s;
    tn_function f;
    tn_array *out[2];

    begin(&s, *state, 2);
    s.o.other = test_open(NULL);
    f = own_function(&s.o);
    for (s.o.forward_fault = OWN_FAILS; s.o.forward_fault <= OWN_FOREIGN; s.o.forward_fault++) {
        out[0] = s.a;
        out[1] = s.b;
        (void)tn_record_set(1);
        assert_fails(tn_function_call(s.ctx, &f, 2, (tn_array *const[]){s.a, s.b}, 2, out),
                     forward_status[s.o.forward_fault]);
        assert_int_equal(tn_recording(), 1);
        (void)tn_record_set(0);
        assert_non_null(strstr(tn_error_text(), "own"));
        assert_ptr_equal(out[0], s.a);
        assert_ptr_equal(out[1], s.b);
        assert_int_equal(atomic_load(&s.o.destroyed), 0);
    }
    test_close(s.o.other);
    end(&s);
}

static const struct {
    tn_status status;
    const char *text;
} backward_failure[OWN_FAULTS] = {
    [OWN_FAILS] = {TN_E_ARG, "tn_array_read"},     [OWN_NO_STATUS] = {TN_E_ARG, "77"},
    [OWN_SILENT] = {TN_E_PEER, "without saying"},  [OWN_NOTHING] = {TN_E_ARG, "no gradient for input 0"},
    [OWN_FOREIGN] = {TN_E_ARG, "another context"}, [OWN_SHAPE] = {TN_E_SHAPE, "input 0"},
    [OWN_DTYPE] = {TN_E_DTYPE, "float16"},         [OWN_LATE] = {TN_E_ARG, "take"},
};

/* h = a^2 is behind the function, c beside it: the gradient of a fails, that of c is right, and the next
 * backward is as if nothing had been. */
static void backward_fails(void **state)
{
    const own_engine *engine = *state;
    const int faults = engine->device ? OWN_LATE : OWN_FAULTS; /* a kernel that fails fails its device */
    setting s;

    begin(&s, *state, 1);
    s.o.other = test_open(NULL);
    for (s.o.backward_fault = OWN_FAILS; s.o.backward_fault < faults; s.o.backward_fault++) {
        tn_array *c = test_array(s.ctx, 1, (int64_t[]){COUNT}, right), *h, *y, *z, *head;

        assert_ok(tn_attach_grad(s.ctx, c, TN_MODE_WRITE, NULL));
        (void)tn_record_set(1);
        h = test_op(s.ctx, "square", NULL, 1, &s.a);
        y = own_call(&s.o, h, s.a);
        (void)tn_record_set(1);
        z = test_op(s.ctx, "broadcast_mul", NULL, 2, (tn_array *const[]){y, c});
        (void)tn_record_set(0);
        head = sum(s.ctx, z);
        assert_ok(tn_backward(s.ctx, 1, &head, NULL, TN_BACKWARD_RETAIN));
        assert_fails(tn_array_wait(tn_array_grad(s.a)), backward_failure[s.o.backward_fault].status);
        assert_non_null(strstr(tn_error_text(), backward_failure[s.o.backward_fault].text));
        assert_non_null(strstr(tn_error_text(), "own"));
        test_values(tn_array_grad(c), (float[]){1, -8, 27}, COUNT, 0);
        {
            const int fault = s.o.backward_fault;

            (void)tn_wait_all(s.ctx);
            s.o.backward_fault = OWN_FINE;
            assert_ok(tn_backward(s.ctx, 1, &head, NULL, 0));
            test_values(tn_array_grad(s.a), (float[]){1.5f, 48, -27}, COUNT, 0);
            s.o.backward_fault = fault;
        }
        tn_array_release(c);
        tn_array_release(h);
        tn_array_release(y);
        tn_array_release(z);
        tn_array_release(head);
    }
    test_close(s.o.other);
    drop(&s);
    own_close(s.ctx);
}

/* What arrives is a failure already: backward is not called, what depends on it fails, and data goes. */
static void poisoned(void **state)
{
    static const char *const strict[] = {"mode", "raise", NULL};
    const own_engine *engine = *state;
    const float far = 1000;
    setting s;
    tn_array *y, *index, *head;

    if (engine->device) /* all of it fails with a kernel */
        return;
    begin(&s, *state, 1);
    index = test_array(s.ctx, 1, (int64_t[]){1}, &far);
    head = test_op(s.ctx, "take", strict, 2, (tn_array *const[]){s.b, index});
    y = own_call(&s.o, s.a, s.b);
    tn_array_release(y);
    y = own_call(&s.o, s.a, index);
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
    test_values(tn_array_grad(s.a), (float[]){far, far, far}, COUNT, 0);
    tn_array_release(y);
    assert_int_equal(atomic_load(&s.o.backwards), 1);
    y = own_call(&s.o, index, head);
    tn_array_release(y);
    assert_ok(tn_attach_grad(s.ctx, index, TN_MODE_WRITE, NULL));
    y = own_call(&s.o, index, index);
    assert_ok(tn_backward(s.ctx, 1, &y, &head, 0));
    assert_fails(tn_array_wait(tn_array_grad(index)), TN_E_ARG);
    assert_int_equal(atomic_load(&s.o.backwards), 1);
    tn_array_release(y);
    (void)tn_wait_all(s.ctx);
    assert_int_equal(atomic_load(&s.o.destroyed), 4);
    tn_array_release(index);
    tn_array_release(head);
    drop(&s);
    own_close(s.ctx);
}

static void refused(void **state)
{
    setting s;
    tn_function f;
    tn_array *y, *g = NULL;

    begin(&s, *state, 1);
    y = own_call(&s.o, s.a, s.b);
    assert_fails(tn_gradients(s.ctx,
                              &(tn_gradient_call){.struct_size = TN_SIZE(tn_gradient_call),
                                                  .flags = TN_BACKWARD_CREATE,
                                                  .head_count = 1,
                                                  .variable_count = 1,
                                                  .heads = &y,
                                                  .variables = &s.a},
                              &g),
                 TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "function own"));
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0)); /* nothing was lost */
    test_values(tn_array_grad(s.a), right, COUNT, 0);
    tn_array_release(y);
    f = own_function(&s.o);
    f.backward = NULL;
    y = NULL;
    (void)tn_record_set(1);
    assert_ok(tn_function_call(s.ctx, &f, 2, (tn_array *const[]){s.a, s.b}, 1, &y));
    (void)tn_record_set(0);
    assert_fails(tn_backward(s.ctx, 1, &y, NULL, 0), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "own"));
    test_values(tn_array_grad(s.a), right, COUNT, 0);
    tn_array_release(y);
    end(&s);
}

/* ---- callbacks that do more, or what they should not --------------------------------------------------- */

/* Refused, and the context goes on. */
static tn_status closes(own *o, tn_function_run *run)
{
    (void)run;
    assert_fails(tn_close(o->ctx), TN_E_STATE);
    assert_fails(tn_close_within(o->ctx, 1), TN_E_STATE);
    return TN_OK;
}

static tn_status saves_again(own *o, tn_function_run *run)
{
    tn_array *one = NULL;

    assert_ok(tn_array_from(o->ctx, TN_F32, 1, (int64_t[]){1}, left, &one));
    assert_fails(tn_function_save(run, 1, &one), TN_E_STATE);
    tn_array_release(one);
    return TN_OK;
}

/* The whole formula once more, recorded and walked back inside; then the same inside of that. */
static tn_status nests(own *o, tn_function_run *run)
{
    own inner = {.ctx = o->ctx, .out_count = 1, .in_backward = o->in_backward};
    tn_array *x, *y;

    (void)run;
    if (o->out_count != 2)
        return TN_OK;
    x = test_array(o->ctx, 1, (int64_t[]){COUNT}, left);
    inner.inside = nests;
    assert_ok(tn_attach_grad(o->ctx, x, TN_MODE_WRITE, NULL));
    y = own_call(&inner, x, x);
    assert_ok(tn_backward(o->ctx, 1, &y, NULL, 0));
    test_values(tn_array_grad(x), (float[]){2, -4, 6}, COUNT, 0);
    tn_array_release(x);
    tn_array_release(y);
    (void)tn_record_set(1); /* not given back */
    while (atomic_load(&inner.destroyed) == 0)
        (void)sched_yield();
    return TN_OK;
}

static tn_status waits(own *o, tn_function_run *run)
{
    const tn_status st = tn_wait_all(o->ctx);

    assert_int_equal(st, run->wanted ? TN_E_STATE : TN_OK);
    return TN_OK;
}

static tn_status (*const insides[])(own *o, tn_function_run *run) = {closes, saves_again, nests, waits};

static void callbacks(void **state)
{
    for (size_t i = 0; i < sizeof insides / sizeof *insides; i++)
        for (int in_backward = 0; in_backward < 2; in_backward++) {
            setting s;
            tn_array *y;

            begin(&s, *state, 2);
            s.o.inside = insides[i];
            s.o.in_backward = in_backward != 0;
            y = own_call(&s.o, s.a, s.b);
            assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
            test_values(tn_array_grad(s.a), right, COUNT, 0);
            assert_int_equal(tn_recording(), 0);
            tn_array_release(y);
            end(&s);
        }
}

static tn_status hands_on(tn_function_run *run, tn_array *const *in, tn_array **out)
{
    for (uint32_t i = 0; i < run->out_count; i++)
        tn_array_retain(out[i] = in[0]);
    return TN_OK;
}

static tn_status hands_back(tn_function_run *run, tn_array *const *out_grads, tn_array **in_grads)
{
    (void)run;
    tn_array_retain(in_grads[0] = out_grads[1]);
    return TN_OK;
}

/* Inputs that are outputs stay what they are, and an array may be handed out twice. */
static void identity(void **state)
{
    const tn_function f = {.struct_size = TN_SIZE(tn_function), .forward = hands_on, .backward = hands_back};
    setting s;
    tn_array *y[2] = {NULL};

    begin(&s, *state, 1);
    (void)tn_record_set(1);
    assert_ok(tn_function_call(s.ctx, &f, 1, &s.a, 2, y));
    (void)tn_record_set(0);
    assert_true(y[0] != s.a && y[1] != s.a && y[0] != y[1]);
    test_values(y[1], left, COUNT, 0);
    assert_ok(tn_backward(s.ctx, 2, y, (tn_array *const[]){s.a, s.b}, 0));
    test_values(tn_array_grad(s.a), right, COUNT, 0);
    tn_array_release(y[0]);
    tn_array_release(y[1]);
    end(&s);
}

static tn_status ones(tn_function_run *run, tn_array *const *in, tn_array **out)
{
    (void)in;
    assert_ok(tn_function_save(run, 0, out));
    return tn_array_from(run->ctx, TN_F32, 1, (int64_t[]){COUNT}, left, out);
}

static void no_inputs(void **state)
{
    const tn_function f = {.struct_size = TN_SIZE(tn_function), .forward = ones};
    setting s;
    tn_array *y = NULL;

    begin(&s, *state, 1);
    (void)tn_record_set(1);
    assert_ok(tn_function_call(s.ctx, &f, 0, NULL, 1, &y));
    (void)tn_record_set(0);
    test_values(y, left, COUNT, 0);
    assert_fails(tn_backward(s.ctx, 1, &y, NULL, 0), TN_E_STATE);
    tn_array_release(y);
    y = NULL;
    assert_fails(tn_function_call(s.ctx, &f, 0, NULL, 0, &y), TN_E_ARG);
    end(&s);
}

static void empty(void **state)
{
    setting s;
    tn_array *e, *y;

    begin(&s, *state, 2);
    e = test_array(s.ctx, 1, (int64_t[]){0}, left);
    assert_ok(tn_attach_grad(s.ctx, e, TN_MODE_WRITE, NULL));
    y = own_call(&s.o, e, e);
    assert_ok(tn_backward(s.ctx, 1, &y, NULL, 0));
    assert_ok(tn_array_wait(tn_array_grad(e)));
    assert_int_equal(atomic_load(&s.o.backwards), 1);
    tn_array_release(y);
    tn_array_release(e);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_recorded),    cmocka_unit_test(modes),          cmocka_unit_test(uses),
        cmocka_unit_test(among_operators), cmocka_unit_test(saved_are_held), cmocka_unit_test(forward_fails),
        cmocka_unit_test(backward_fails),  cmocka_unit_test(poisoned),       cmocka_unit_test(refused),
        cmocka_unit_test(callbacks),       cmocka_unit_test(identity),       cmocka_unit_test(no_inputs),
        cmocka_unit_test(empty),
    };

    return own_run(tests, sizeof tests / sizeof *tests, OWN_ENGINES);
}
