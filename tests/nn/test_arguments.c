/*
 * NULL for every pointer of every function of tenon/nn.h: nothing happens, or the app has TN_E_ARG. The last
 * test reads the header and fails if a function is not called here, or one of its pointers is NULL in no
 * call.
 */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/nulls.h"

typedef struct objects {
    tn_app *app;
    tn_net *net;
    tn_data *data;
    tn_meter *meter;
    tn_trainer *trainer;
    tn_train *train;
    tn_array *x, *labels;
} objects;

static objects o;
static const int64_t sample[4] = {2, 1, 8, 8};

static int objects_open(void **state)
{
    const int64_t two[] = {2};

    (void)state;
    o = (objects){.app = nn_open(NULL)};
    o.net = tn_net_zoo(o.app, "zoo:lenet");
    tn_net_init(o.net);
    o.data = tn_data_open(o.app, "digits:test", .batch = 32);
    o.trainer = tn_trainer_new(o.net, .lr = 0.1);
    o.train = tn_train_open(o.app, .model = "zoo:lenet", .data = "digits", .epochs = 1);
    o.meter = tn_meter_new(o.app, "loss");
    o.x = nn_array(o.app, 4, sample, 1);
    o.labels = tn_app_array(o.app, 1, two, NULL);
    (void)tn_net_forward(o.net, o.x);
    assert_true(tn_app_ok(o.app) && o.train && o.meter);
    return 0;
}

static int objects_close(void **state)
{
    (void)state;
    nn_close(o.app);
    return 0;
}

static size_t unexpected; /* calls, all of which are told */

static void check(bool wrong, const char *call, int line)
{
    const tn_status st = tn_app_status(o.app);

    if (wrong ? st != TN_E_ARG : st != TN_OK) {
        print_error("line %d: %s: status %d: %s\n", line, call, st, tn_app_error(o.app));
        unexpected++;
    }
    tn_app_clear(o.app);
}

static int as_expected(void **state)
{
    const size_t count = unexpected;

    (void)state;
    unexpected = 0;
    return count ? -1 : 0;
}

/* The call does nothing, or the app has TN_E_ARG behind it. */
#define QUIET(call) ((void)(call), check(false, #call, __LINE__))
#define WRONG(call) ((void)(call), check(true, #call, __LINE__))

/* ---- no handle ----------------------------------------------------------------------------------- */

static void apps(void **state)
{
    float value = 5;
    tn_app *none;

    (void)state;
    assert_non_null(none = tn_app_open_(NULL)); /* all from the environment */
    (void)tn_app_close(none);
    assert_int_equal(tn_app_close(NULL), 5);
    assert_int_equal(tn_app_exit_code(NULL), 5);
    assert_int_equal(tn_app_status(NULL), TN_E_NOMEM);
    assert_false(tn_app_ok(NULL));
    assert_non_null(tn_app_error(NULL));
    tn_app_report(NULL);
    tn_app_clear(NULL);
    assert_int_equal(tn_app_fail(NULL, TN_E_IO, "x"), TN_E_IO);
    assert_int_equal(tn_app_fail_number(NULL, 1501, "x"), TN_E_IO);
    assert_int_equal(tn_app_fail_number(NULL, 999999, NULL), TN_E_ARG);
    assert_int_equal(tn_app_check(NULL, TN_E_IO), TN_E_IO);
    assert_null(tn_app_ctx(NULL));
    assert_string_equal(tn_app_device(NULL), "");
    assert_int_equal(tn_app_devices(NULL), 0);
    assert_null(tn_app_part(NULL, o.x, 0));
    assert_null(tn_app_part(o.app, NULL, 0));
    assert_null(tn_app_own(NULL, NULL));
    assert_int_equal(tn_app_mark(NULL), 0);
    tn_app_release(NULL, 0);
    assert_null(tn_app_array(NULL, 4, sample, NULL));
    assert_false(tn_app_read(NULL, o.x, 1, &value));
    tn_app_record(NULL);
    tn_app_pause(NULL);
    tn_app_backward(NULL, o.x);
    QUIET(tn_app_own(o.app, NULL));
    QUIET(tn_app_read(o.app, NULL, 1, &value));
    WRONG(tn_app_read(o.app, o.x, 128, NULL));
    WRONG(tn_app_array(o.app, 4, NULL, NULL));
    QUIET(tn_app_backward(o.app, NULL));
    assert_true(value > 4);
    (void)tn_app_fail(o.app, TN_E_ARG, NULL);
    WRONG(0);
    (void)tn_app_fail_number(o.app, 999999, "x");
    WRONG(0);
}

static void nets(void **state)
{
    (void)state;
    assert_null(tn_net_new_(NULL, NULL));
    assert_null(tn_net_sequential_(NULL, NULL));
    assert_null(tn_net_zoo(NULL, "lenet"));
    assert_non_null(tn_net_zoo_names());
    assert_null(tn_net_zoo_find(NULL));
    tn_net_dense_(NULL, NULL);
    tn_net_conv2d_(NULL, NULL);
    tn_net_maxpool2d_(NULL, NULL);
    tn_net_avgpool2d_(NULL, NULL);
    tn_net_globalavgpool2d_(NULL, NULL);
    tn_net_batchnorm_(NULL, NULL);
    tn_net_batchnormrelu_(NULL, NULL);
    tn_net_syncbatchnorm_(NULL, NULL);
    tn_net_add(NULL, o.net);
    tn_net_layernorm_(NULL, NULL);
    tn_net_embedding_(NULL, NULL);
    tn_net_dropout_(NULL, NULL);
    tn_net_flatten_(NULL, NULL);
    tn_net_activation_(NULL, NULL);
    tn_net_leakyrelu_(NULL, NULL);
    tn_net_reflectionpad2d_(NULL, NULL);
    tn_net_conv1dtranspose_(NULL, NULL);
    tn_net_conv2dtranspose_(NULL, NULL);
    tn_net_conv3dtranspose_(NULL, NULL);
    tn_net_conv1d_(NULL, NULL);
    tn_net_conv3d_(NULL, NULL);
    tn_net_maxpool1d_(NULL, NULL);
    tn_net_maxpool3d_(NULL, NULL);
    tn_net_avgpool1d_(NULL, NULL);
    tn_net_avgpool3d_(NULL, NULL);
    tn_net_globalmaxpool1d_(NULL, NULL);
    tn_net_globalmaxpool2d_(NULL, NULL);
    tn_net_globalmaxpool3d_(NULL, NULL);
    tn_net_globalavgpool1d_(NULL, NULL);
    tn_net_globalavgpool3d_(NULL, NULL);
    tn_net_instancenorm_(NULL, NULL);
    tn_net_groupnorm_(NULL, NULL);
    tn_net_prelu_(NULL, NULL);
    tn_net_elu_(NULL, NULL);
    tn_net_selu_(NULL, NULL);
    tn_net_gelu_(NULL, NULL);
    tn_net_init_(NULL, NULL);
    tn_net_hybridize_(NULL, NULL);
    tn_net_multiply(NULL, ".bias", 1, 1);
    tn_net_cast(NULL, "float16");
    WRONG(tn_net_cast(o.net, NULL));
    WRONG(tn_net_zoo(o.app, NULL));
    WRONG(tn_net_multiply(o.net, NULL, 1, 1));
    tn_net *net = tn_net_new_(o.app, NULL);
    QUIET(tn_net_sequential_(net, NULL));
    WRONG(tn_net_add(net, NULL));
    WRONG(tn_net_add(net, o.net));   /* no function */
    WRONG(tn_net_dense_(net, NULL)); /* units are asked for */
    WRONG(tn_net_conv2d_(net, NULL));
    QUIET(tn_net_globalavgpool2d_(net, NULL));
    QUIET(tn_net_batchnorm_(net, NULL));
    QUIET(tn_net_layernorm_(net, NULL));
    WRONG(tn_net_embedding_(net, NULL));
    QUIET(tn_net_flatten_(net, NULL));
}

static void nets_asked(void **state)
{
    tn_net_output out = {.struct_size = sizeof out}, no_size = {0};
    tn_evaluation found = {.struct_size = sizeof found};
    int64_t shape[8] = {0};
    tn_array *y = NULL;
    int32_t ndim = 7;
    char hex[65] = "";

    (void)state;
    assert_null(tn_net_forward(NULL, o.x));
    assert_true(isnan(tn_net_eval(NULL, o.data, "loss")));
    assert_false(tn_net_takes(NULL, 4, sample, &ndim, shape));
    assert_int_equal(tn_net_gives(NULL), TN_GIVES_OTHER);
    assert_int_equal(tn_net_output_count(NULL), 0);
    assert_false(tn_net_output_at(NULL, 0, 4, sample, &out));
    assert_false(tn_net_forward_all(NULL, o.x, 1, &y));
    assert_false(tn_net_name_classes(NULL, "x"));
    assert_null(tn_net_class_name(NULL, 0));
    assert_false(tn_net_about(NULL, "x"));
    assert_false(tn_net_about(o.net, NULL));
    assert_false(tn_net_units(NULL, NULL, NULL));
    assert_false(tn_net_units(o.net, NULL, NULL));
    assert_false(tn_net_evaluate(NULL, o.data, &found));
    assert_int_equal(tn_net_layers(NULL), 0);
    assert_int_equal(tn_net_param_count(NULL), 0);
    assert_null(tn_net_param_name(NULL, 0));
    assert_null(tn_net_param(NULL, "x"));
    assert_null(tn_net_param_grad(NULL, "x"));
    assert_int_equal(tn_net_param_elements(NULL), 0);
    assert_null(tn_net_input(NULL));
    assert_null(tn_net_input_at(NULL, 0));
    assert_null(tn_net_input_at(o.net, 1));
    assert_null(tn_net_symbol(NULL));
    assert_false(tn_net_sha256(NULL, hex));
    assert_false(tn_net_sha256(NULL, NULL));
    tn_net_summary(NULL, stderr, 4, sample);
    QUIET(tn_net_forward(o.net, NULL));
    QUIET(tn_net_eval(o.net, NULL, "loss"));
    WRONG(tn_net_eval(o.net, o.data, NULL));
    QUIET(tn_net_takes(o.net, 4, NULL, &ndim, shape));
    QUIET(tn_net_takes(o.net, 4, sample, NULL, shape));
    QUIET(tn_net_takes(o.net, 4, sample, &ndim, NULL));
    QUIET(tn_net_takes(o.net, 9, sample, &ndim, shape));
    assert_int_equal(ndim, 7);
    assert_int_equal(tn_net_output_count(o.net), 1);
    assert_false(tn_net_output_at(o.net, 1, 4, sample, &out));
    assert_false(tn_net_output_at(o.net, 0, 4, sample, NULL));
    assert_false(tn_net_output_at(o.net, 0, 4, sample, &no_size));
    assert_false(tn_net_output_at(o.net, 0, 9, sample, &out));
    assert_true(tn_net_output_at(o.net, 0, 0, NULL, &out));
    assert_int_equal(out.ndim, -1);
    assert_true(tn_net_output_at(o.net, 0, 4, sample, &out));
    assert_true(out.ndim == 2 && out.shape[0] == 2 && out.shape[1] == 10 && out.gives == TN_GIVES_SCORES);
    QUIET(tn_net_forward_all(o.net, NULL, 1, &y));
    WRONG(tn_net_forward_all(o.net, o.x, 1, NULL));
    WRONG(tn_net_forward_all(o.net, o.x, 2, &y));
    assert_null(y);
    assert_true(tn_net_forward_all(o.net, o.x, 1, &y));
    assert_int_equal(tn_array_count(y), 20);
    QUIET(tn_net_name_classes(o.net, NULL));
    assert_null(tn_net_class_name(o.net, -1));
    QUIET(tn_net_evaluate(o.net, NULL, &found));
    QUIET(tn_net_evaluate(o.net, o.data, NULL));
    QUIET(tn_net_param(o.net, NULL));
    QUIET(tn_net_param_grad(o.net, NULL));
    QUIET(tn_net_param_name(o.net, 100000));
    WRONG(tn_net_sha256(o.net, NULL));
    QUIET(tn_net_summary(o.net, NULL, 4, sample));
    QUIET(tn_net_summary(o.net, stderr, 4, NULL)); /* as in the last forward */
}

static void nets_run(void **state)
{
    tn_array *y = NULL;

    (void)state;
    assert_false(tn_net_run(NULL, 1, &o.x, 1, &y));
    assert_int_equal(tn_net_input_count(NULL), 0);
    tn_net_retrace(NULL);
    tn_net_init_where_(NULL, ".weight", NULL);
    WRONG(tn_net_init_where_(o.net, NULL, NULL));
    QUIET(tn_net_run(o.net, 1, NULL, 1, &y));
    QUIET(tn_net_run(o.net, 1, &o.x, 1, NULL));
    QUIET(tn_net_run(o.net, 1, (tn_array *[]){NULL}, 1, &y));
    WRONG(tn_net_run(o.net, 2, (tn_array *[]){o.x, o.x}, 1, &y));
    WRONG(tn_net_run(o.net, 1, &o.x, 2, &y));
    assert_true(tn_net_run(o.net, 1, &o.x, 1, &y));
    assert_int_equal(tn_array_count(y), 20);
}

static void files(void **state)
{
    (void)state;
    tn_net_save(NULL, "/nowhere/x");
    tn_net_load_params(NULL, "/nowhere/x");
    assert_int_equal(tn_net_load_some(NULL, "/nowhere/x", 0), 0);
    WRONG(tn_net_load_some(o.net, NULL, TN_PARAMS_MISSING));
    WRONG(tn_net_load_some(o.net, "/nowhere/x", 4));
    tn_net_export(NULL, "/nowhere/x");
    assert_null(tn_app_symbol(NULL, "x"));
    assert_null(tn_net_load(NULL, "x"));
    assert_null(tn_net_load_files(NULL, "x", "y", NULL));
    assert_null(tn_net_from_symbol(NULL, "x"));
    WRONG(tn_net_save(o.net, NULL));
    WRONG(tn_net_load_params(o.net, NULL));
    WRONG(tn_net_export(o.net, NULL));
    WRONG(tn_app_symbol(o.app, NULL));
    WRONG(tn_net_load(o.app, NULL));
    WRONG(tn_net_load(o.app, "x-symbol.json")); /* the prefix is "x" */
    WRONG(tn_net_load_files(o.app, NULL, "y", NULL));
    WRONG(tn_net_load_files(o.app, "x", NULL, NULL));
    WRONG(tn_net_from_symbol(o.app, NULL));
}

static void losses(void **state)
{
    (void)state;
    assert_null(tn_loss_softmax_ce(NULL, o.x, o.labels));
    assert_null(tn_loss_l1(NULL, o.x, o.labels));
    assert_null(tn_loss_l2(NULL, o.x, o.labels));
    assert_null(tn_meter_new(NULL, "loss"));
    assert_null(tn_meter_open_(NULL, "loss", NULL));
    tn_meter_add(NULL, o.x, o.labels);
    tn_meter_reset(NULL);
    assert_true(isnan(tn_meter_value(NULL)));
    assert_int_equal(tn_meter_count(NULL), 0);
    assert_null(tn_meter_at(NULL, 0));
    assert_null(tn_meter_name(NULL));
    QUIET(tn_loss_softmax_ce(o.app, NULL, o.labels));
    QUIET(tn_loss_softmax_ce(o.app, o.x, NULL));
    QUIET(tn_loss_l1(o.app, NULL, NULL));
    QUIET(tn_loss_l2(o.app, NULL, o.labels));
    QUIET(tn_loss_l2(o.app, o.x, NULL));
    WRONG(tn_meter_new(o.app, NULL));
    WRONG(tn_meter_open_(o.app, NULL, NULL));
    QUIET(tn_meter_open_(o.app, "f1", NULL));
    QUIET(tn_meter_add(o.meter, NULL, o.labels));
    QUIET(tn_meter_add(o.meter, o.x, NULL));
}

static void data(void **state)
{
    int64_t epoch = 5, index = 5, shape[4] = {5, 5, 5, 5};
    char hex[65] = "";
    tn_batch b;

    (void)state;
    assert_null(tn_data_open_(NULL, "digits", NULL));
    assert_false(tn_data_next(NULL, &b));
    tn_data_tell(NULL, &epoch, &index);
    assert_true(!epoch && !index);
    tn_data_seek(NULL, 0, 0);
    assert_int_equal(tn_data_count(NULL), 0);
    assert_int_equal(tn_data_batches(NULL), 0);
    assert_int_equal(tn_data_filler(NULL), 0);
    assert_int_equal(tn_data_classes(NULL), 0);
    tn_data_shape(NULL, shape);
    assert_int_equal(shape[0], 0);
    tn_data_shape(NULL, NULL);
    tn_data_tell(NULL, NULL, NULL);
    assert_false(tn_data_name(NULL) && *tn_data_name(NULL));
    assert_false(tn_data_file(NULL, 0) && *tn_data_file(NULL, 0));
    assert_null(tn_data_class_name(NULL, 0));
    assert_null(tn_data_column(NULL, 0));
    assert_int_equal(tn_data_task(NULL), TN_TASK_NONE);
    assert_string_equal(tn_data_note(NULL), "");
    assert_false(tn_data_about_save(NULL, "x"));
    assert_false(tn_data_field_at(NULL, 0, &(tn_field_info){.struct_size = sizeof(tn_field_info)}));
    assert_false(tn_data_field_at(o.data, 0, NULL));
    assert_false(tn_data_field_at(o.data, 0, &(tn_field_info){.struct_size = 0}));
    assert_false(tn_data_field_at(o.data, 9, &(tn_field_info){.struct_size = sizeof(tn_field_info)}));
    assert_false(tn_net_field(NULL, o.data, 0, &(tn_field_info){.struct_size = sizeof(tn_field_info)}));
    assert_false(tn_net_field(o.net, NULL, 0, &(tn_field_info){.struct_size = sizeof(tn_field_info)}));
    assert_false(tn_net_field(o.net, o.data, 9, &(tn_field_info){.struct_size = sizeof(tn_field_info)}));
    assert_false(tn_net_field(o.net, o.data, 0, NULL));
    QUIET(tn_data_units(NULL, NULL, NULL));
    QUIET(tn_data_units(o.data, NULL, NULL));
    assert_null(tn_data_column(o.data, -1));
    WRONG(tn_data_about_save(o.data, NULL));
    assert_false(tn_data_sha256(NULL, hex));
    assert_false(tn_data_sha256(NULL, NULL));
    assert_null(tn_data_from_arrays_(NULL, NULL));
    assert_null(tn_data_field(NULL, "data"));
    WRONG(tn_data_open_(o.app, NULL, NULL));
    WRONG(tn_data_from_arrays_(o.app, NULL));
    QUIET(tn_data_field(o.data, NULL));
    QUIET(tn_data_field(o.data, "data")); /* no batch is there */
    QUIET(tn_data_next(o.data, NULL));
    QUIET(tn_data_tell(o.data, NULL, NULL));
    tn_data_seek(o.data, 2, 3);
    QUIET(tn_data_tell(o.data, &epoch, NULL));
    QUIET(tn_data_tell(o.data, NULL, &index));
    assert_true(epoch == 2 && index == 3);
    QUIET(tn_data_shape(o.data, NULL));
    WRONG(tn_data_sha256(o.data, NULL));
    (void)tn_data_file(o.data, -1);
    (void)tn_data_file(o.data, 2);
    assert_null(tn_data_class_name(o.data, -1));
}

static void trainings(void **state)
{
    tn_train_info info = {.struct_size = sizeof info};

    (void)state;
    assert_null(tn_trainer_new_(NULL, NULL));
    tn_trainer_step(NULL, 1);
    tn_trainer_allreduce_grads(NULL);
    tn_trainer_update(NULL, 1);
    assert_int_equal(tn_trainer_steps(NULL), 0);
    assert_true(isnan(tn_trainer_lr(NULL)));
    tn_trainer_set_lr(NULL, 1);
    tn_trainer_save(NULL, "x");
    tn_trainer_load(NULL, "x");
    (void)tn_schedule_lr(NULL, 0);
    assert_null(tn_train_open_(NULL, NULL));
    assert_false(tn_train_run(NULL));
    assert_false(tn_fit_(NULL, NULL, NULL));
    WRONG(tn_fit_(o.net, NULL, NULL));
    tn_train_stop(NULL);
    assert_int_equal(tn_train_speed(NULL, TN_TRAIN_STEP, o.train), 0);
    assert_int_equal(tn_train_speed(&(tn_speed){.out = stderr}, TN_TRAIN_STEP, NULL), 0);
    assert_int_equal(tn_train_speed(&(tn_speed){.out = NULL}, TN_TRAIN_STEP, o.train), 0);
    assert_int_equal(tn_train_progress(NULL, TN_TRAIN_STEP, o.train), 0);
    assert_int_equal(tn_train_progress(&(tn_progress){.out = stderr}, TN_TRAIN_STEP, NULL), 0);
    assert_int_equal(tn_train_progress(&(tn_progress){.out = NULL}, TN_TRAIN_STEP, o.train), 0);
    tn_train_info_get(NULL, 1, &info);
    tn_train_info_get(NULL, 1, NULL);
    tn_train_save(NULL);
    assert_null(tn_train_net(NULL));
    assert_null(tn_train_data(NULL));
    assert_null(tn_train_valid(NULL));
    assert_null(tn_train_trainer(NULL));
    WRONG(tn_trainer_save(o.trainer, NULL));
    WRONG(tn_trainer_load(o.trainer, NULL));
    WRONG(tn_train_info_get(o.train, 1, NULL));
    QUIET(tn_train_info_get(o.train, 0, &info));
    QUIET(tn_trainer_new_(o.net, NULL));
}

/* ---- none is left out ---------------------------------------------------------------------------- */

static void every_function_is_here(void **state)
{
    char *header = nulls_source("sdk/include/tenon/nn.h"),
         *tests[] = {nulls_source("tests/nn/test_arguments.c"), NULL};
    size_t functions = 0;

    (void)state;
    assert_int_equal(nulls_missing("nn.h", header, tests, &functions), 0);
    assert_true(functions > 90);
    free(header);
    free(tests[0]);
}

#define CALLS(test) cmocka_unit_test_teardown(test, as_expected)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS(apps),     CALLS(nets),      CALLS(nets_asked),
        CALLS(nets_run), CALLS(files),     CALLS(losses),
        CALLS(data),     CALLS(trainings), cmocka_unit_test(every_function_is_here),
    };

    return cmocka_run_group_tests(tests, objects_open, objects_close);
}
