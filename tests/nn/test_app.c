/* The first error sticks, is told once, decides the exit code; nothing crashes behind it; all is freed. */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void on_error(void *arg, const char *text)
{
    ++*(int *)arg;
    assert_true(*text);
}

static void build_everything(tn_net *net)
{
    assert_null(tn_net_sequential(net));
    tn_net_dense(net, .units = 1);
    tn_net_conv2d(net, .channels = 1, .kernel = {1});
    tn_net_maxpool2d(net);
    tn_net_avgpool2d(net);
    tn_net_globalavgpool2d(net);
    tn_net_batchnorm(net);
    tn_net_dropout(net, .rate = 0.5);
    tn_net_flatten(net);
    tn_net_activation(net, .activation = "relu");
    tn_net_leakyrelu(net);
    tn_net_init(net);
    tn_net_hybridize(net);
    tn_net_multiply(net, ".bias", 1, 0);
}

/* Every call on an app that has failed, or on NULL, does nothing. */
static void call_everything(tn_app *app, tn_net *net, tn_data *data, tn_trainer *trainer, tn_train *train)
{
    const int64_t shape[4] = {1, 1, 8, 8};
    char hex[65];
    float value;
    tn_batch b;
    tn_train_info info = {.struct_size = sizeof info};
    tn_array *x = tn_app_array(app, 4, shape, NULL);
    tn_meter *meter = tn_meter_new(app, "loss");

    assert_null(x);
    assert_null(meter);
    assert_null(tn_net_new(app));
    assert_null(tn_net_zoo(app, "lenet"));
    build_everything(net);
    assert_null(tn_net_forward(net, x));
    assert_true(isnan(tn_net_eval(net, data, "accuracy")));
    assert_int_equal(tn_net_layers(net), 0);
    assert_int_equal(tn_net_param_count(net), 0);
    assert_null(tn_net_param_name(net, 0));
    assert_null(tn_net_param(net, "0.weight"));
    assert_null(tn_net_param_grad(net, "0.weight"));
    assert_int_equal(tn_net_param_elements(net), 0);
    tn_net_save(net, "/nowhere/x");
    tn_net_load_params(net, "/nowhere/x");
    tn_net_export(net, "/nowhere/x");
    assert_false(tn_net_sha256(net, hex));
    assert_null(tn_net_load(app, "/nowhere/x"));
    tn_net_summary(net, stderr, 4, shape);
    assert_null(tn_loss_softmax_ce(app, x, x));
    assert_null(tn_loss_l1(app, x, x));
    assert_null(tn_loss_l2(app, x, x));
    tn_meter_add(meter, x, x);
    tn_meter_reset(meter);
    assert_true(isnan(tn_meter_value(meter)));
    assert_null(tn_data_open(app, "digits"));
    assert_int_equal(tn_data_next(data, &b), 0);
    tn_data_seek(data, 0, 0);
    assert_int_equal(tn_data_count(data), 0);
    assert_int_equal(tn_data_batches(data), 0);
    assert_false(tn_data_sha256(data, hex));
    assert_null(tn_trainer_new(net));
    tn_trainer_step(trainer, 1);
    assert_true(isnan(tn_trainer_lr(trainer)));
    tn_trainer_set_lr(trainer, 1);
    tn_trainer_save(trainer, "/nowhere/x");
    tn_trainer_load(trainer, "/nowhere/x");
    assert_null(tn_train_open(app, .model = "zoo:lenet", .data = "digits"));
    assert_int_equal(tn_train_run(train), 0);
    tn_train_stop(train);
    tn_train_save(train);
    tn_train_info_get(train, 1, &info);
    assert_null(tn_train_net(train));
    tn_app_record(app);
    tn_app_backward(app, x);
    tn_app_pause(app);
    assert_int_equal(tn_app_read(app, x, 1, &value), 0);
    tn_app_release(app, tn_app_mark(app));
}

static void test_null(void **state)
{
    (void)state;
    call_everything(NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(tn_app_close(NULL), 5);
    assert_int_equal(tn_app_exit_code(NULL), 5);
    assert_false(tn_app_ok(NULL));
    assert_string_equal(tn_app_error(NULL), "out of memory");
}

static void test_sticks(void **state)
{
    int told = 0;
    char text[512] = "";
    FILE *errors = fmemopen(text, sizeof text, "w");
    tn_app *app =
        tn_app_open(.name = "x", .errors = errors, .on_error = on_error, .arg = &told,
                    .settings = (const char *const[]){"engine.tipe=naive", NULL}, .no_environment = 1);
    tn_net *net = tn_net_new(app, .name = "net");

    (void)state;
    assert_false(tn_app_ok(app));
    assert_int_equal(told, 1);
    assert_int_equal(tn_app_status(app), TN_E_KEY);
    call_everything(app, net, NULL, NULL, NULL);
    assert_int_equal(told, 1);
    assert_non_null(strstr(tn_app_error(app), "engine.type")); /* did you mean */
    tn_app_report(app);
    assert_int_equal(tn_app_close(app), 2);
    (void)fclose(errors);
    assert_non_null(strstr(text, "error[TN-"));
    assert_null(strstr(strstr(text, "error[") + 1, "error[")); /* told once */
}

static void test_objects_of_a_failed_app(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_zoo(app, "zoo:lenet");
    tn_data *data = tn_data_open(app, "digits:test", .batch = 32);
    tn_trainer *trainer = tn_trainer_new(net, .lr = 0.1);
    tn_train *train = tn_train_open(app, .model = "zoo:lenet", .data = "digits", .epochs = 1);

    (void)state;
    assert_non_null(train);
    assert_int_equal(tn_app_fail(app, TN_E_CANCELLED, "enough"), TN_E_CANCELLED);
    assert_int_equal(tn_app_fail(app, TN_E_ARG, "later"), TN_E_ARG);
    call_everything(app, net, data, trainer, train);
    assert_string_equal(tn_app_error(app), "enough");
    tn_app_clear(app);
    assert_true(tn_app_ok(app));
    assert_int_equal(tn_data_count(data), 360);
    nn_close(app);
}

/* By number: of the list, with its status and exit code; told once; the first error stays. */
static void test_numbers(void **state)
{
    int told = 0;
    char text[512] = "";
    FILE *errors = fmemopen(text, sizeof text, "w");
    tn_app *app =
        tn_app_open(.name = "x", .errors = errors, .on_error = on_error, .arg = &told, .no_environment = 1);

    (void)state;
    assert_int_equal(tn_app_fail_number(NULL, 1501, "a"), TN_E_IO);
    assert_int_equal(tn_app_fail_number(app, 1501, "no\x1b[31m x"), TN_E_IO);
    assert_int_equal(tn_app_fail_number(app, 1, "later"), TN_E_ARG);
    assert_int_equal(told, 1);
    assert_int_equal(tn_app_status(app), TN_E_IO);
    tn_app_report(app);
    assert_int_equal(tn_app_close(app), 2);
    (void)fclose(errors);
    assert_string_equal(text, "error[TN-1501]: no\\x1b[31m x\n");
    for (size_t i = 0; i < 3; i++) {
        static const uint32_t wrong[] = {0, 16, UINT32_MAX};

        app = nn_open(NULL);
        assert_int_equal(tn_app_fail_number(app, wrong[i], "a"), TN_E_ARG);
        nn_close_failed(app, "there is no error ", 2);
    }
    app = nn_open(NULL);
    assert_int_equal(tn_app_fail_number(app, 1501, NULL), TN_E_IO);
    nn_close_failed(app, "there is no such file or folder", 2);
}

static void test_exit_codes(void **state)
{
    static const struct {
        tn_status status;
        int code;
    } rows[] = {{TN_E_ARG, 2},  {TN_E_KEY, 2},         {TN_E_DEVICE, 3}, {TN_E_FORMAT, 4}, {TN_E_NOMEM, 5},
                {TN_E_PEER, 6}, {TN_E_CANCELLED, 130}, {TN_E_SHAPE, 1},  {TN_E_IO, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);

        (void)tn_app_fail(app, rows[i].status, "text");
        nn_close_failed(app, "text", rows[i].code);
    }
}

static void test_backward_unrecorded(void **state)
{
    tn_app *app = tn_app_open(.no_environment = 1);

    (void)state;
    tn_app_backward(app, nn_array(app, 1, (const int64_t[]){3}, 1));
    nn_close_failed(app, "backward without tn_app_record(): ", 1);
}

static void test_device_missing(void **state)
{
    tn_app *app = tn_app_open(.device = "abacus:0", .no_environment = 1);

    (void)state;
    nn_close_failed(app, "abacus", 3);
    app = tn_app_open(.config = "/nowhere/tenon.ini", .no_environment = 1);
    nn_close_failed(app, "/nowhere/tenon.ini", 2);
}

/* Temporaries die with their batch; loops nest; leaving one early is fine. */
static void test_scopes(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *outer = tn_data_open(app, "digits:test", .batch = 100),
            *inner = tn_data_open(app, "digits:test");
    const int64_t shape[1] = {3};
    const size_t start = tn_app_mark(app);
    tn_batch b, c;
    size_t held;

    (void)state;
    while (tn_data_next(outer, &b)) {
        assert_int_equal(tn_app_mark(app), start + 2);
        assert_non_null(nn_array(app, 1, shape, 1));
        held = tn_app_mark(app);
        while (tn_data_next(inner, &c))
            assert_int_equal(tn_app_mark(app), held + 2);
        assert_int_equal(tn_app_mark(app), held);
        (void)tn_data_next(inner, &c); /* and left there: the outer one ends it */
        assert_int_equal(tn_array_count(b.x), (uint64_t)b.n * 64);
        tn_data_seek(inner, 0, 0);
    }
    assert_int_equal(tn_app_mark(app), start);
    (void)tn_data_next(outer, &b);
    (void)tn_data_next(inner, &c);
    (void)tn_data_next(outer, &b); /* ends the inner one too */
    assert_int_equal(tn_app_mark(app), start + 2);
    assert_int_equal(tn_array_count(b.x), (uint64_t)b.n * 64);
    (void)tn_data_next(inner, &c); /* does not touch what the outer one gave */
    assert_int_equal(tn_array_count(b.x), (uint64_t)b.n * 64);
    tn_app_release(app, start);
    nn_close(app);
}

static void test_many_apps(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_zoo(app, "lenet");
        const int64_t shape[4] = {2, 1, 8, 8};

        tn_net_init(net, .seed = 1);
        tn_app_record(app); /* left on: closing ends it */
        assert_non_null(tn_net_forward(net, nn_array(app, 4, shape, 1)));
        assert_int_equal(tn_recording(), 1);
        nn_close(app);
        assert_int_equal(tn_recording(), 0);
        assert_int_equal(tn_training(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_sticks),
        cmocka_unit_test(test_objects_of_a_failed_app),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_backward_unrecorded),
        cmocka_unit_test(test_device_missing),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_many_apps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
