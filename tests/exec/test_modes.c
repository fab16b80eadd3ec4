/*
 * What a backward may ask for and where it begins: predict mode, gradients of arrays that are no leaves,
 * heads on several devices, what was detached or not recorded. Of operators and of nets alike.
 */
#include "net.h"

#include <math.h>
#include <string.h>

#include "autograd/autograd.h"

static const tni_backward_options retain = {.retain = true}, predict = {.predict = true},
                                  predict_retain = {.retain = true, .predict = true};

static tni_array *leaf(tni_context *c, int64_t rows, int64_t columns, const float *values)
{
    tni_array *a = test_array(c, 2, (int64_t[]){rows, columns}, values);

    assert_ok(tni_grad_attach(c, a, TN_MODE_WRITE, NULL));
    return a;
}

static void read_grad(const tni_array *a, float *to, size_t count)
{
    assert_ok(tni_array_read(tni_grad_get(a), to, count * sizeof *to));
}

/* Half of the elements are dropped in training; in predict mode the gradient passes as it is. */
static void dropout(void **state)
{
    const float values[] = {1, 2, 3, 4, 5, 6}, ones[] = {1, 1, 1, 1, 1, 1};
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_take(c, "Dropout", net_variable(c, "x"), NULL, "p=0.5");

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *x = leaf(c, 2, 3, values), *y = NULL;
        float kept[6], mask[6];

        assert_ok(tni_random_seed(c, 3, NULL));
        test_record(true, true);
        net_call(c, s, hybrid, &x, &y);
        test_record(false, false);
        assert_ok(tni_array_read(y, kept, sizeof kept));
        for (int i = 0; i < 6; i++)
            mask[i] = kept[i] / values[i];
        assert_ok(tni_backward(c, 1, &y, NULL, &predict_retain));
        test_values(tni_grad_get(x), ones, 6, 0);
        assert_ok(tni_backward(c, 1, &y, NULL, &retain));
        test_values(tni_grad_get(x), mask, 6, 0);
        assert_ok(tni_backward(c, 1, &y, NULL, &predict));
        test_values(tni_grad_get(x), ones, 6, 0);
        tni_array_release(x);
        tni_array_release(y);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

/* One tape, recorded in predict mode and then in training: each operator's gradient is that of its mode. */
static void mixed(void **state)
{
    const float values[] = {1, 2, 3, 4, 5, 6};
    tni_context *c = test_context(NULL);
    tni_array *x = leaf(c, 2, 3, values), *h, *y;
    float kept[6], mask[6];

    (void)state;
    test_record(true, false);
    h = test_op(c, "Dropout", 1, &x, "p=0.5", NULL);
    test_record(true, true);
    y = test_op(c, "Dropout", 1, &h, "p=0.5", NULL);
    test_record(false, false);
    assert_ok(tni_array_read(y, kept, sizeof kept));
    for (int i = 0; i < 6; i++)
        mask[i] = kept[i] / values[i];
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(tni_grad_get(x), mask, 6, 0);
    tni_array_release(x);
    tni_array_release(h);
    tni_array_release(y);
    test_context_close(c);
}

/* In training the mean takes all of a constant gradient away; in predict mode it is a number. */
static void batch_norm(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *x = net_variable(c, "x"), *s = net_op(c, "BatchNorm", 1, &x, "fix_gamma=False", NULL);

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tni_array *in[5] = {leaf(c, 4, 1, (float[]){1, 2, 4, 7}), test_vector(c, 1, (float[]){2}),
                            test_vector(c, 1, (float[]){0}), test_vector(c, 1, (float[]){0}),
                            test_vector(c, 1, (float[]){1})},
                  *y = NULL;
        const float by = 2 / sqrtf(5.25f + 1e-3f);
        float trained[4];

        test_record(true, true);
        net_call(c, s, hybrid, in, &y);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, NULL, &predict_retain));
        test_values(tni_grad_get(in[0]), (float[]){by, by, by, by}, 4, 1e-5f);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        read_grad(in[0], trained, 4);
        for (int i = 0; i < 4; i++)
            assert_true(fabsf(trained[i]) < 1e-4f);
        test_values(in[3], (float[]){0.35f}, 1, 1e-5f); /* the statistics moved once */
        for (int i = 0; i < 5; i++)
            tni_array_release(in[i]);
        tni_array_release(y);
    }
    tni_symbol_release(x);
    tni_symbol_release(s);
    test_context_close(c);
}

/* Gradients of h = sin x, y = h h, at x, h and y. */
static void no_leaves(void **state)
{
    const float values[] = {0.5f, -1, 2};
    float to_h[3], to_x[3];
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_take(c, "sin", net_variable(c, "x"), NULL, NULL);

    (void)state;
    for (int i = 0; i < 3; i++) {
        to_h[i] = 2 * sinf(values[i]);
        to_x[i] = to_h[i] * cosf(values[i]);
    }
    for (int k = 0; k < 4; k++) { /* a net or not; recorded in turn or not */
        const tni_backward_options o = {.retain = true, .create = k / 2};
        tni_array *x = leaf(c, 1, 3, values), *of[4] = {NULL, x, NULL, NULL}, *got[4], *other, *head;

        test_record(true, false);
        net_call(c, s, k % 2, &x, &of[0]);
        of[2] = test_op(c, "elemwise_mul", 2, (tni_array *[]){of[0], of[0]}, NULL);
        of[3] = test_op(c, "negative", 1, &x, NULL); /* nothing leads from it */
        test_record(false, false);
        assert_ok(tni_grad(c, 1, &of[2], NULL, 4, of, &o, got));
        test_values(got[0], to_h, 3, 1e-6f);
        test_values(got[1], to_x, 3, 1e-6f);
        test_values(got[2], (float[]){1, 1, 1}, 3, 0);
        test_values(got[3], (float[]){0, 0, 0}, 3, 0);
        test_values(tni_grad_get(x), (float[]){0, 0, 0}, 3, 0);
        for (int i = 0; i < 4; i++)
            tni_array_release(got[i]);
        head = test_array(c, 2, (int64_t[]){1, 3}, (float[]){3, 5, 7});
        assert_ok(tni_grad(c, 1, &of[2], &head, 1, &of[2], &o, got)); /* an array of its own */
        assert_ptr_not_equal(got[0], head);
        assert_ptr_not_equal(got[0]->storage, head->storage);
        test_values(got[0], (float[]){3, 5, 7}, 3, 0);
        tni_array_release(got[0]);
        other = test_array(c, 2, (int64_t[]){1, 3}, values);
        assert_int_equal(tni_grad(c, 1, &of[2], NULL, 1, &other, &o, got), TN_E_STATE);
        assert_int_equal(tni_grad(c, 1, &other, NULL, 1, &x, &o, got), TN_E_STATE);
        assert_int_equal(tni_grad(c, 1, &of[2], NULL, 2, (tni_array *[]){x, x}, &o, got), TN_E_ARG);
        tni_array_release(other);
        tni_array_release(head);
        for (int i = 0; i < 4; i++)
            tni_array_release(of[i]);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

static tni_array *on_device(tni_context *c, const char *device, float first, float second)
{
    const tni_scope before = *tni_scope_get();
    tni_device *d = NULL;
    tni_array *a;

    assert_ok(tni_device_parse(c->devices, device, &d));
    tni_scope_get()->device = d;
    a = leaf(c, 1, 2, (float[]){first, second});
    *tni_scope_get() = before;
    return a;
}

static void several_devices(void **state)
{
    static const char *const devices[] = {"cpu:0", "cpu:1", "fake:0"};
    tni_context *c = test_context(NULL);

    (void)state;
    for (int k = 0; k < 2; k++) {
        const tni_backward_options o = {.create = k};
        tni_array *x[3], *y[3], *got[3];

        for (int i = 0; i < 3; i++)
            x[i] = on_device(c, devices[i], (float)i + 1, (float)i - 1);
        test_record(true, true);
        for (int i = 0; i < 3; i++)
            y[i] = test_op(c, "square", 1, &x[i], NULL);
        test_record(false, false);
        assert_ok(tni_grad(c, 3, y, NULL, 3, x, &o, got));
        for (int i = 0; i < 3; i++) {
            test_values(got[i], (float[]){2 * (float)i + 2, 2 * (float)i - 2}, 2, 0);
            tni_array_release(x[i]);
            tni_array_release(y[i]);
            tni_array_release(got[i]);
        }
    }
    test_context_close(c);
}

/* w = y pause(3 y) + y detach(y), y = 2 x. */
static void detached(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = leaf(c, 1, 2, (float[]){1, 2}), *y, *paused, *off = NULL, *parts[2], *w;

    (void)state;
    test_record(true, true);
    y = test_op(c, "_mul_scalar", 1, &x, "scalar=2", NULL);
    test_record(false, false);
    paused = test_op(c, "_mul_scalar", 1, &y, "scalar=3", NULL);
    assert_null(paused->grad_entry);
    assert_ok(tni_array_detach(y, &off));
    test_record(true, true);
    parts[0] = test_op(c, "elemwise_mul", 2, (tni_array *[]){y, paused}, NULL);
    parts[1] = test_op(c, "elemwise_mul", 2, (tni_array *[]){y, off}, NULL);
    w = test_op(c, "elemwise_add", 2, parts, NULL);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &w, NULL, NULL));
    test_values(tni_grad_get(x), (float[]){16, 32}, 2, 0); /* 2 (6 x + 2 x) */
    tni_array *const all[] = {x, y, paused, off, parts[0], parts[1], w};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tni_array_release(all[i]);
    test_context_close(c);
}

/* Another thread's backward that retains has begun, and not queued anything yet: one that consumes leaves
 * alone what the forward keeps. */
static void retained_beside_consuming(void **state)
{
    tni_context *c = test_context(NULL);
    tni_symbol *s = net_take(c, "exp", net_take(c, "tanh", net_variable(c, "x"), NULL, NULL), NULL, NULL);

    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        tni_array *x = leaf(c, 1, 2, (float[]){0, 0}), *y = NULL;
        tni_tape_walk w = {.heads = &y, .head_count = 1};
        tni_exec_stats before, after;

        test_record(true, true);
        net_call(c, s, true, &x, &y);
        test_record(false, false);
        if (begun) {
            assert_ok(tni_tape_walk_init(&w, c));
            tni_tape_enter(&w, true);
        }
        tni_exec_stats_get(c, &before);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        tni_exec_stats_get(c, &after);
        assert_int_equal(after.programs - before.programs, begun); /* a variant, that only reads */
        test_values(tni_grad_get(x), (float[]){1, 1}, 2, 0);
        if (begun) {
            tni_tape_leave(&w, false);
            tni_tape_walk_fini(&w);
        }
        tni_array_release(x);
        tni_array_release(y);
    }
    tni_symbol_release(s);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout),
        cmocka_unit_test(mixed),
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(no_leaves),
        cmocka_unit_test(several_devices),
        cmocka_unit_test(detached),
        cmocka_unit_test(retained_beside_consuming),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}
