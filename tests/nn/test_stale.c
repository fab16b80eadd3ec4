/* Gradients of backwards, and old ones: errors of a step, or parameters that it leaves as they are. */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = 1, RIGHT = 2, BOTH = 3, ROOM = 8 };

/* ---- numbers of backwards ----------------------------------------------------------------------------- */

/* That of the last backward that was through the array, however often it is asked; not of gradients that are
 * new arrays, nor of another attached one. */
static void test_turns(void **state)
{
    const int64_t shape[2] = {3, 4};
    tn_app *app = nn_open(NULL);
    tn_array *x = nn_array(app, 2, shape, 1), *other = nn_array(app, 2, shape, 2), *loss, *grad = NULL;
    tn_gradient_call call = {
        .struct_size = TN_SIZE(tn_gradient_call), .head_count = 1, .variable_count = 1, .variables = &x};
    uint32_t last = 0;

    (void)state;
    assert_int_equal(tn_attach_grad(tn_app_ctx(app), x, TN_MODE_WRITE, NULL), TN_OK);
    assert_int_equal(tn_attach_grad(tn_app_ctx(app), other, TN_MODE_WRITE, NULL), TN_OK);
    assert_int_equal(tn_array_grad_turn(x), 0);
    for (int again = 0; again < 2; again++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_l2(app, x, x));
        assert_true(tn_array_grad_turn(x) > last);
        last = tn_array_grad_turn(x);
        assert_int_equal(tn_array_grad_turn(x), last);
        assert_int_equal(tn_array_grad_turn(other), 0);
    }
    tn_app_record(app);
    loss = tn_loss_l2(app, x, other);
    tn_app_pause(app);
    call.heads = &loss;
    assert_int_equal(tn_gradients(tn_app_ctx(app), &call, &grad), TN_OK);
    assert_int_equal(tn_array_grad_turn(x), last);
    tn_array_release(grad);
    tn_app_record(app);
    tn_app_backward(app, tn_loss_l2(app, x, other));
    assert_true(tn_array_grad_turn(x) > last);
    last = tn_array_grad_turn(x);
    assert_int_equal(tn_attach_grad(tn_app_ctx(app), x, TN_MODE_ADD, NULL), TN_OK);
    assert_int_equal(tn_array_grad_turn(x), last);
    tn_array_grad_touch(x);
    assert_true(tn_array_grad_turn(x) > last);
    tn_array_grad_touch(NULL);
    nn_close(app);
}

/* ---- steps -------------------------------------------------------------------------------------------- */

static void two_heads(const tn_x *in, tn_x *out)
{
    out[0] = tn_dense(in[0], .units = 2, .name = "left");
    out[1] = tn_dense(in[0], .units = 2, .name = "right");
}

/* Without a word it is an error, compiled or not; a parameter without a gradient is none, nor are gradients
 * that the program writes. */
static void test_stale(void **state)
{
    enum { PLAIN, WITHOUT, BY_HAND, HYBRID, ALL, WAYS };
    const int64_t shape[2] = {3, 4};

    (void)state;
    for (int way = 0; way < WAYS; way++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_functions(app, two_heads, .outputs = {"left", "right"});
        tn_array *x = nn_array(app, 2, shape, 1), *out[2];
        float before[8], after[8];
        tn_trainer *t;

        tn_net_init(net, .shape = {3, 4});
        if (way == WITHOUT)
            assert_int_equal(tn_net_set(net, "right", .grad = "none"), 2);
        if (way == HYBRID)
            tn_net_hybridize(net);
        t = tn_trainer_new(net, .lr = 0.1, .wd = 0.5);
        for (int step = 0; step < 2; step++) {
            (void)nn_read(app, tn_net_param(net, "right.weight"), before, 8);
            for (int side = 0; side < (way == ALL ? 2 : 1) && way != BY_HAND; side++) {
                tn_app_record(app);
                assert_true(tn_net_run(net, 1, &x, 2, out));
                tn_app_backward(app, out[side]);
            }
            tn_trainer_step(t, 3);
            if (way == PLAIN || way == HYBRID)
                break;
            (void)nn_read(app, tn_net_param(net, "right.weight"), after, 8);
            assert_true((memcmp(before, after, sizeof after) != 0) == (way != WITHOUT));
        }
        if (way != PLAIN && way != HYBRID) {
            nn_close(app);
            continue;
        }
        assert_int_equal(tn_trainer_steps(t), 0); /* the app has failed */
        nn_close_failed(app, "no backward has reached parameter net_right_weight since the last step", 1);
    }
}

/* ---- what a step takes -------------------------------------------------------------------------------- */

typedef struct bench {
    tn_app *app;
    tn_net *net;
    tn_array *x;
    float was[2][ROOM]; /* weights of both sides, as `changed` has read them last */
} bench;

static tn_array *weight(const bench *b, int side)
{
    return tn_net_param(b->net, side == LEFT ? "left.weight" : "right.weight");
}

/* The sides whose weights are others than at the last call. */
static int changed(bench *b)
{
    int sides = 0;

    for (int i = 0; i < 2; i++) {
        float now[ROOM];

        assert_int_equal(nn_read(b->app, weight(b, i ? RIGHT : LEFT), now, ROOM), ROOM);
        if (memcmp(now, b->was[i], sizeof now) != 0)
            sides |= i ? RIGHT : LEFT;
        memcpy(b->was[i], now, sizeof now);
    }
    return sides;
}

static bench open_on(const char *setting)
{
    static const int64_t shape[] = {4, 4};
    bench b = {.app = nn_open(setting, NULL)};

    b.net = tn_net_functions(b.app, two_heads, .outputs = {"left", "right"});
    tn_net_init(b.net, .shape = {4, 4}, .seed = 5);
    b.x = nn_array(b.app, 2, shape, 1);
    (void)changed(&b);
    return b;
}

/* A backward for each of the sides, on one device. */
static void reach_on(bench *b, int sides, size_t device)
{
    tn_array *out[2], *x = tn_app_part(b->app, b->x, device);

    for (int i = 0; i < 2; i++)
        if (sides & (i ? RIGHT : LEFT)) {
            tn_app_record(b->app);
            assert_true(tn_net_run(b->net, 1, &x, 2, out));
            tn_app_backward(b->app, out[i]);
        }
}

static void reach(bench *b, int sides)
{
    for (size_t k = 0; k < tn_app_devices(b->app); k++)
        reach_on(b, sides, k);
}

static void refused(tn_app *app, const char *text)
{
    if (tn_app_ok(app) || tn_app_status(app) != TN_E_STATE || !strstr(tn_app_error(app), text))
        fail_msg("\"%s\" is not refused with \"%s\"", tn_app_error(app), text);
    tn_app_clear(app);
}

/* Of the first device's weight, by the program. */
static void write_grad(bench *b, int side, uint64_t seed)
{
    static const int64_t shape[] = {2, 4}, biases[] = {2};
    const char *bias = side == LEFT ? "left.bias" : "right.bias";

    assert_int_equal(tn_array_copy(nn_array(b->app, 2, shape, seed), tn_array_grad(weight(b, side))), TN_OK);
    assert_int_equal(
        tn_array_copy(nn_array(b->app, 1, biases, seed), tn_array_grad(tn_net_param(b->net, bias))), TN_OK);
}

static void touch(bench *b, int side)
{
    tn_array_grad_touch(weight(b, side));
    tn_array_grad_touch(tn_net_param(b->net, side == LEFT ? "left.bias" : "right.bias"));
}

/* A gradient serves one step of a trainer; a step that was refused has used up none, and asking changes
 * nothing. */
static void test_once(void **state)
{
    bench b = open_on(NULL);
    tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1), *other = tn_trainer_new(b.net, .lr = 0.1);

    (void)state;
    reach(&b, BOTH);
    assert_true(tn_array_grad_turn(weight(&b, LEFT)) != 0);
    tn_trainer_step(t, 1);
    assert_int_equal(changed(&b), BOTH);
    tn_trainer_step(other, 1); /* its own first step of them */
    assert_int_equal(changed(&b), BOTH);
    for (int again = 0; again < 2; again++) {
        tn_trainer_step(t, 1);
        refused(b.app, "no backward has reached parameter net_left_weight since the last step");
        tn_trainer_update(other, 1);
        refused(b.app, "net_left_weight");
    }
    reach(&b, LEFT);
    for (int again = 0; again < 2; again++) {
        tn_trainer_step(t, 1);
        refused(b.app, "net_right_weight");
    }
    reach(&b, RIGHT);
    assert_int_equal(changed(&b), 0);
    tn_trainer_step(t, 1);
    assert_int_equal(changed(&b), BOTH);
    assert_int_equal(tn_trainer_steps(t), 2);
    assert_int_equal(tn_trainer_steps(other), 1);
    nn_close(b.app);
}

/* Some gradients of a backward, others written by the program, which says so. */
static void test_partly_by_hand(void **state)
{
    (void)state;
    for (int ignores = 0; ignores < 2; ignores++) {
        bench b = open_on(NULL);
        tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1, .ignore_stale_grad = ignores);

        reach(&b, LEFT);
        write_grad(&b, RIGHT, 3);
        tn_trainer_step(t, 1);
        if (!ignores)
            refused(b.app, "tn_array_grad_touch()");
        assert_int_equal(changed(&b), ignores ? LEFT : 0);
        reach(&b, LEFT);
        touch(&b, RIGHT);
        tn_trainer_step(t, 1);
        assert_int_equal(changed(&b), BOTH);
        nn_close(b.app);
    }
}

/* What a backward has not reached stays, also where it has reached nothing; the rate follows the parameter
 * with the most updates. */
static void test_ignored(void **state)
{
    static const struct {
        int sides;
        double lr; /* of the next step, in halves */
    } rows[] = {{0, 1}, {LEFT, 0.5}, {RIGHT, 0.5}, {0, 0.5}, {BOTH, 0.25}, {RIGHT, 0.125}, {LEFT, 0.125}};
    bench b = open_on(NULL);
    tn_trainer *t = tn_trainer_new(b.net, .lr = 1, .wd = 0.5, .schedule = "factor", .every = 1, .factor = 0.5,
                                   .ignore_stale_grad = 1);

    (void)state;
    reach(&b, BOTH); /* by another trainer */
    tn_trainer_step(tn_trainer_new(b.net, .lr = 0.1), 1);
    tn_trainer_step(t, 1);
    assert_int_equal(changed(&b), BOTH);
    assert_true(tn_trainer_lr(t) == 0.5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reach(&b, rows[i].sides);
        tn_trainer_step(t, 1);
        assert_int_equal(changed(&b), rows[i].sides);
        if (tn_trainer_lr(t) != rows[i].lr / 2)
            fail_msg("row %zu: the rate is %g", i, tn_trainer_lr(t));
    }
    assert_int_equal(tn_trainer_steps(t), 1 + sizeof rows / sizeof *rows);
    nn_close(b.app);
}

/* The norm is that of the gradients that a step takes: as if the old ones were zeros. */
static void test_clip_norm(void **state)
{
    float got[2][ROOM];

    (void)state;
    for (int zeros = 0; zeros < 2; zeros++) {
        bench b = open_on(NULL);
        tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1, .clip_norm = 1e-3, .ignore_stale_grad = 1);

        reach(&b, BOTH);
        tn_trainer_step(t, 1);
        (void)changed(&b);
        if (zeros) {
            tn_net_zero_grad(b.net);
            touch(&b, RIGHT);
        }
        reach(&b, LEFT);
        tn_trainer_step(t, 1);
        assert_int_equal(changed(&b), LEFT);
        memcpy(got[zeros], b.was[0], sizeof got[zeros]);
        nn_close(b.app);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

/* States of a file begin anew: what was left out before it was read counts no more. */
static void test_load(void **state)
{
    char *folder = nn_folder(), path[512];
    bench b = open_on(NULL);
    tn_trainer *t = tn_trainer_new(b.net, .optimizer = "adam", .lr = 0.1, .ignore_stale_grad = 1);
    float want[ROOM];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/states", folder);
    for (int step = 0; step < 10; step++) {
        reach(&b, step < 2 ? BOTH : LEFT);
        tn_trainer_step(t, 1);
        if (step == 2)
            tn_trainer_save(t, path);
    }
    for (int fresh = 0; fresh < 2; fresh++) {
        tn_trainer *u = fresh ? tn_trainer_new(b.net, .optimizer = "adam", .lr = 0.1) : t;
        static const int64_t shape[] = {2, 4};

        assert_int_equal(tn_array_copy(nn_array(b.app, 2, shape, 9), weight(&b, RIGHT)), TN_OK);
        tn_trainer_load(u, path);
        assert_int_equal(tn_trainer_steps(u), 3);
        reach(&b, BOTH);
        tn_trainer_step(u, 1);
        (void)changed(&b);
        if (!fresh)
            memcpy(want, b.was[1], sizeof want);
        for (int k = 0; k < ROOM; k++)
            assert_true(isfinite(b.was[1][k]));
    }
    assert_memory_equal(want, b.was[1], sizeof want);
    nn_close(b.app);
    nn_folder_remove(folder);
}

/* A device that stands idle would bring an old gradient to the sum. */
static void test_devices(void **state)
{
    (void)state;
    for (int ignores = 0; ignores < 2; ignores++) {
        bench b = open_on("device.default=cpu:0,cpu:1");
        tn_trainer *t =
            tn_trainer_new(b.net, .lr = 0.1, .update_on_kvstore = -1, .ignore_stale_grad = ignores);

        reach(&b, BOTH);
        tn_trainer_step(t, 4);
        assert_int_equal(changed(&b), BOTH);
        reach_on(&b, BOTH, 0);
        tn_trainer_step(t, 4);
        if (!ignores)
            refused(b.app, "net_left_weight");
        assert_int_equal(changed(&b), 0);
        reach_on(&b, BOTH, 1);
        tn_trainer_step(t, 4);
        assert_int_equal(changed(&b), BOTH); /* that of device 0 was not used */
        reach(&b, BOTH);
        tn_trainer_allreduce_grads(t);
        tn_trainer_update(t, 4);
        assert_int_equal(changed(&b), BOTH);
        nn_close(b.app);
    }
}

/* A store that updates takes old gradients, too; what no backward has ever reached is an error still. */
static void test_store(void **state)
{
    (void)state;
    for (int ignores = 0; ignores < 2; ignores++) {
        bench b = open_on("device.default=cpu:0");
        tn_trainer *t = tn_trainer_new(b.net, .lr = 0.1, .kvstore = "local", .update_on_kvstore = 1,
                                       .ignore_stale_grad = ignores);

        reach(&b, LEFT);
        tn_trainer_step(t, 4);
        if (!ignores)
            refused(b.app, "net_right_weight");
        assert_int_equal(changed(&b), ignores ? LEFT : 0);
        reach(&b, BOTH);
        tn_trainer_step(t, 4);
        assert_int_equal(changed(&b), BOTH);
        reach(&b, LEFT);
        tn_trainer_step(t, 4);
        assert_int_equal(changed(&b), BOTH);
        nn_close(b.app);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),   cmocka_unit_test(test_stale),
        cmocka_unit_test(test_once),    cmocka_unit_test(test_partly_by_hand),
        cmocka_unit_test(test_ignored), cmocka_unit_test(test_clip_norm),
        cmocka_unit_test(test_load),    cmocka_unit_test(test_devices),
        cmocka_unit_test(test_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
