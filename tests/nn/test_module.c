/* Modules: step by step and whole trainings, files, buckets, and every call out of order. */
#include "nn/symbols.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/nulls.h"
#include "tenon/nn_module.h"

#define ROOM 4096

static char *folder;

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int folder_open(void **state)
{
    (void)state;
    folder = nn_folder();
    return 0;
}

static int folder_close(void **state)
{
    (void)state;
    nn_folder_remove(folder);
    return 0;
}

/* data -> fc1 -> relu -> BatchNorm -> fc2 -> softmax. */
static tn_symbol *mlp(tn_app *app, const char *classes)
{
    tn_symbol *s = node(app, "Flatten", "flat", NULL, variable(app, "data"));

    s = node(app, "FullyConnected", "fc1", LIST("num_hidden", "16"), s);
    s = node(app, "BatchNorm", "bn", LIST("fix_gamma", "0"), node(app, "relu", "act", NULL, s));
    s = node(app, "FullyConnected", "fc2", LIST("num_hidden", classes), s);
    return node(app, "SoftmaxOutput", "softmax", NULL, s);
}

static tn_module *module_of(tn_app *app, tn_symbol *s)
{
    tn_module *m = tn_module_new(app, .symbol = s);

    tn_symbol_release(s);
    return m;
}

static float param_first(tn_app *app, tn_module *m, const char *name)
{
    tn_params *p = tn_module_params(m);
    tn_array *a = NULL;
    float values[ROOM];

    assert_non_null(p);
    assert_int_equal(tn_params_get(p, name, &a), TN_OK);
    (void)nn_read(app, a, values, ROOM);
    tn_array_release(a);
    tn_params_destroy(p);
    return values[0];
}

static tn_data *digits(tn_app *app, const char *part, int32_t shuffle)
{
    return tn_data_open(app, part, .batch = 50, .shuffle = shuffle);
}

/* ---- trainings -------------------------------------------------------------------------------- */

typedef struct diary {
    int64_t batches, epochs;
    double train, valid;
    int64_t stop_at; /* batch of epoch 0; below 0: never */
} diary;

static int32_t noted(void *arg, tn_module *m, int64_t epoch, int64_t batch, double train, double valid)
{
    diary *d = arg;

    assert_non_null(m);
    if (batch >= 0) {
        d->batches++;
        assert_true(isnan(train) && isnan(valid));
        return d->stop_at >= 0 && !epoch && batch == d->stop_at;
    }
    d->epochs++;
    d->train = train;
    d->valid = valid;
    return 0;
}

/* The whole training is the steps one by one, to the last bit; what it learns is measured on other digits. */
static void trained(void **state)
{
    static float whole[ROOM], steps[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *train = digits(app, "digits:train", 1), *test = digits(app, "digits:test", 0);
    tn_module *m = module_of(app, mlp(app, "10"));
    diary d = {.stop_at = -1};
    tn_batch batch;
    size_t count;

    (void)state;
    tn_module_bind(m, .shapes = {{50, 1, 8, 8}}, .label_shapes = {{50}});
    tn_module_init_params(m, .seed = 3);
    tn_module_init_optimizer(m, .lr = 0.1, .momentum = 0.9, .wd = 1e-4);
    tn_module_fit(m, train, .valid = test, .epochs = 3, .event = noted, .arg = &d);
    assert_int_equal(d.epochs, 3);
    assert_int_equal(d.batches, 3 * tn_data_batches(train));
    assert_true(d.train > 0.95 && d.valid > 0.88);
    assert_true(fabs(tn_module_score(m, test, NULL) - d.valid) < 1e-12);
    assert_true(tn_module_score(m, test, "cross_entropy") < 0.5);
    assert_int_equal(tn_trainer_steps(tn_module_trainer(m)), d.batches);
    count = nn_read_module(app, m, whole, ROOM);
    m = module_of(app, mlp(app, "10"));
    tn_data_seek(train, 0, 0);
    tn_module_bind(m, .shapes = {{50, 1, 8, 8}}, .label_shapes = {{50}});
    tn_module_init_params(m, .seed = 3);
    tn_module_init_optimizer(m, .lr = 0.1, .momentum = 0.9, .wd = 1e-4);
    for (int epoch = 0; epoch < 3; epoch++)
        while (tn_data_next(train, &batch)) {
            tn_module_forward(m, 1, 2, (tn_array *[]){batch.x, batch.y});
            tn_module_backward(m, NULL);
            tn_module_update(m);
        }
    assert_int_equal(nn_read_module(app, m, steps, ROOM), count);
    assert_memory_equal(whole, steps, count * sizeof *whole);
    nn_close(app);
}

/* Defaults for all that was not done; a callback ends it. */
static void by_defaults(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *train = digits(app, "digits:train", 0);
    tn_module *m = module_of(app, mlp(app, "10"));
    diary d = {.stop_at = 4};

    (void)state;
    tn_module_fit(m, train, .epochs = 2, .event = noted, .arg = &d);
    assert_int_equal(d.batches, 5);
    assert_int_equal(d.epochs, 0);
    assert_int_equal(tn_trainer_steps(tn_module_trainer(m)), 5);
    nn_close(app);
}

/* Two epochs, or one, its files and another one: the same bits. Batches do not divide the data. */
static void goes_on(void **state)
{
    static float whole[ROOM], parts[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *train = tn_data_open(app, "digits:train", .batch = 64, .shuffle = 1);
    tn_module *m = module_of(app, mlp(app, "10"));
    size_t count;

    (void)state;
    assert_true(tn_data_count(train) % 64 != 0);
    tn_module_fit(m, train, .epochs = 2);
    count = nn_read_module(app, m, whole, ROOM);
    m = module_of(app, mlp(app, "10"));
    tn_data_seek(train, 0, 0);
    tn_module_fit(m, train, .epochs = 1, .prefix = path_of("digits"));
    m = tn_module_load(app, path_of("digits"), 1, 1, .name = "again");
    tn_module_fit(m, train, .first = 1, .epochs = 2);
    assert_int_equal(nn_read_module(app, m, parts, ROOM), count);
    assert_memory_equal(whole, parts, count * sizeof *whole);
    assert_int_equal(tn_trainer_steps(tn_module_trainer(m)), 2 * tn_data_batches(train));
    nn_close(app);
}

/* Of .every epochs one leaves files: epochs 2 and 4 of 5. */
static void files_now_and_then(void **state)
{
    tn_app *app = nn_open(NULL);

    (void)state;
    tn_module_fit(module_of(app, mlp(app, "10")), digits(app, "digits:test", 0), .epochs = 5, .every = 2,
                  .prefix = path_of("seldom"));
    for (int epoch = 1; epoch <= 5; epoch++) {
        char name[512];

        assert_true((size_t)snprintf(name, sizeof name, "%s-%04d.params", path_of("seldom"), epoch) <
                    sizeof name);
        assert_int_equal(access(name, F_OK) == 0, epoch % 2 == 0);
    }
    nn_close(app);
}

/* A file of a module is a model that nets load. */
static void loaded_as_a_net(void **state)
{
    static float of_module[ROOM], of_net[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *train = digits(app, "digits:train", 0);
    tn_module *m = module_of(app, mlp(app, "10"));
    tn_batch batch;
    tn_net *net;
    size_t count;

    (void)state;
    tn_module_fit(m, train, .epochs = 1);
    tn_module_save(m, path_of("model"), 0, 0);
    assert_true(tn_data_next(train, &batch));
    tn_module_forward(m, 0, 1, &batch.x); /* without labels */
    count = nn_read(app, tn_module_output(m, 0), of_module, ROOM);
    assert_int_equal(count, 500);
    net = tn_net_load(app, path_of("model"));
    assert_int_equal(nn_read(app, tn_net_forward(net, batch.x), of_net, ROOM), count);
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(of_module[i] - of_net[i]) <= 1e-5f);
    nn_close(app);
}

static void predicted(void **state)
{
    static float all[20 * ROOM], one[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *test = tn_data_open(app, "digits:test", .batch = 64);
    tn_module *m = module_of(app, mlp(app, "10"));
    const int64_t samples = tn_data_count(test);
    tn_array *y;
    tn_batch batch;

    (void)state;
    tn_module_bind(m, .shapes = {{64, 1, 8, 8}}, .predict = 1);
    tn_module_init_params(m, .seed = 1);
    assert_true(samples % 64 != 0 && samples * 10 < 20 * ROOM);
    y = tn_module_predict(m, test, 0);
    nn_shape(y, 2, (int64_t[]){samples, 10});
    (void)nn_read(app, y, all, sizeof all / sizeof *all);
    assert_true(tn_data_next(test, &batch));
    tn_module_forward(m, 0, 1, &batch.x);
    (void)nn_read(app, tn_module_output(m, 0), one, ROOM);
    assert_memory_equal(all, one, 640 * sizeof *one);
    nn_close(app);
}

/* ---- what an optimizer acts on ---------------------------------------------------------------- */

/* Weight decay acts on weights and gammas, not on biases and betas; lr_mult of a variable counts; what is
 * fixed stays. */
static void factors(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_symbol *x = variable(app, "data"), *slow = variable(app, "slow_weight"), *s = NULL;
    tn_symbol *in[] = {x, slow};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 2,
                                 .op = "FullyConnected",
                                 .name = "slow",
                                 .attrs = LIST("num_hidden", "1"),
                                 .in = in};
    tn_array *data = nn_array(app, 2, (int64_t[]){1, 2}, 1);
    tn_module *m;

    (void)state;
    assert_int_equal(tn_symbol_attr_set(slow, "__lr_mult__", "0.5"), TN_OK);
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &s), TN_OK);
    s = node(app, "FullyConnected", "fast", LIST("num_hidden", "1"), s);
    assert_null(tn_module_new(app, .symbol = s, .fixed = LIST("fast_bias", "fast_bais")));
    assert_non_null(strstr(tn_app_error(app), "no parameter's name ends with \"fast_bais\""));
    tn_app_clear(app);
    m = tn_module_new(app, .symbol = s, .fixed = LIST("fast_bias"));
    tn_symbol_release(s);
    tn_symbol_release(x);
    tn_symbol_release(slow);
    tn_module_bind(m, .shapes = {{1, 2}}, .input_grads = 1);
    tn_module_init_params(m, .with = "constant", .scale = 1);
    tn_module_init_optimizer(m, .lr = 0.1, .wd = 0.5);
    tn_module_forward(m, 1, 1, &data);
    tn_module_backward(m, (tn_array *[]){tn_app_array(app, 2, (int64_t[]){1, 1}, (float[]){0})});
    assert_non_null(tn_module_input_grad(m, 0));
    tn_module_update(m); /* all gradients are 0: what changes is weight decay */
    assert_true(fabsf(param_first(app, m, "fast_weight") - 0.95f) < 1e-6f);
    assert_true(fabsf(param_first(app, m, "slow_weight") - 0.975f) < 1e-6f);
    tn_module_forward(m, 1, 1, &data);
    tn_module_backward(m, NULL);
    tn_module_update(m);
    assert_true(param_first(app, m, "slow_bias") != 0);
    assert_true(param_first(app, m, "fast_bias") == 0);
    nn_close(app);
}

static void gradients_add_up(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_array *data = tn_app_array(app, 2, (int64_t[]){1, 2}, (float[]){3, 4});
    float g[2];
    tn_module *m = module_of(app, node(app, "FullyConnected", "fc", LIST("num_hidden", "1", "no_bias", "1"),
                                       variable(app, "data")));

    (void)state;
    tn_module_bind(m, .shapes = {{1, 2}}, .add_grads = 1, .input_grads = 1);
    tn_module_init_params(m, .with = "one");
    for (int i = 0; i < 2; i++) {
        tn_module_forward(m, 1, 1, &data);
        tn_module_backward(m, NULL);
    }
    assert_int_equal(nn_read(app, tn_module_input_grad(m, 0), g, 2), 2);
    assert_true(g[0] == 1 && g[1] == 1); /* of an input: written */
    tn_module_init_optimizer(m, .lr = 1);
    tn_module_update(m);
    assert_true(param_first(app, m, "fc_weight") == 1 - 2 * 3);
    nn_close(app);
}

/* ---- buckets ---------------------------------------------------------------------------------- */

typedef struct counted {
    int calls;
    int64_t bad; /* key that has no symbol; with another parameter: one more */
} counted;

/* Sums over rows of `key` numbers, then a dense layer: the same parameters for each length. */
static tn_symbol *bucket(void *arg, tn_app *app, int64_t key)
{
    counted *c = arg;
    tn_symbol *s;

    c->calls++;
    if (key == c->bad)
        return NULL;
    s = node(app, "sum", NULL, LIST("axis", "1"), variable(app, "data"));
    s = node(app, "FullyConnected", key == c->bad + 1 ? "other" : "fc", LIST("num_hidden", "2"), s);
    return node(app, "SoftmaxOutput", "softmax", NULL, s);
}

static void buckets(void **state)
{
    tn_app *app = nn_open(NULL);
    counted c = {.bad = 99};
    tn_module *m = tn_module_new(app, .bucket = bucket, .arg = &c, .key = 5);
    tn_array *label = tn_app_array(app, 1, (int64_t[]){2}, (float[]){0, 1});
    float before, after;

    (void)state;
    tn_module_bind(m, .shapes = {{2, 5, 3}});
    tn_module_init_params(m, .seed = 2);
    tn_module_init_optimizer(m, .lr = 0.1);
    before = param_first(app, m, "fc_weight");
    for (int turn = 0; turn < 3; turn++)
        for (int64_t key = 3; key <= 5; key++) {
            tn_array *x = nn_array(app, 3, (int64_t[]){2, key, 3}, (uint64_t)key);

            tn_module_switch(m, key);
            tn_module_forward(m, 1, 2, (tn_array *[]){x, label});
            tn_module_backward(m, NULL);
            tn_module_update(m);
            nn_shape(tn_module_output(m, 0), 2, (int64_t[]){2, 2});
        }
    assert_int_equal(c.calls, 3);
    after = param_first(app, m, "fc_weight");
    assert_true(before != after);
    nn_close(app);
}

static void bad_buckets(void **state)
{
    counted c = {.bad = 99};
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_new(app, .bucket = bucket, .arg = &c, .key = 5);

    (void)state;
    tn_module_switch(m, 99);
    nn_close_failed(app, "no symbol came for key 99", 2);
    app = nn_open(NULL);
    m = tn_module_new(app, .bucket = bucket, .arg = &c, .key = 5);
    tn_module_switch(m, 100);
    nn_close_failed(app, "\"other_weight\" of key 100", 2);
    app = nn_open(NULL);
    m = module_of(app, mlp(app, "3"));
    tn_module_switch(m, 1);
    nn_close_failed(app, "has one symbol", 2);
}

/* ---- values by name --------------------------------------------------------------------------- */

static void values_by_name(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = module_of(app, mlp(app, "3")), *other = module_of(app, mlp(app, "3"));
    static float a[ROOM], b[ROOM];
    tn_params *p, *few = NULL;
    tn_array *bias = tn_app_array(app, 1, (int64_t[]){3}, (float[]){7, 8, 9});

    (void)state;
    tn_module_bind(m, .shapes = {{4, 5}});
    tn_module_init_params(m, .seed = 9);
    p = tn_module_params(m);
    assert_non_null(p);
    tn_module_bind(other, .shapes = {{4, 5}});
    tn_module_set_params(other, p, 0);
    assert_int_equal(nn_read_module(app, m, a, ROOM), nn_read_module(app, other, b, ROOM));
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(tn_params_create(&few), TN_OK);
    assert_int_equal(tn_params_add(few, "fc2_bias", bias), TN_OK);
    tn_module_set_params(other, few, TN_PARAMS_MISSING);
    assert_true(param_first(app, other, "fc2_bias") == 7);
    assert_int_equal(tn_params_add(few, "nobody", bias), TN_OK);
    tn_module_set_params(other, few, TN_PARAMS_MISSING | TN_PARAMS_EXTRA);
    tn_params_destroy(p);
    tn_params_destroy(few);
    nn_close(app);
}

static void seen(void *arg, const char *name, tn_array *a)
{
    assert_non_null(a);
    (void)snprintf(arg, 64, "%s", name);
}

static void watched(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = module_of(app, mlp(app, "3"));
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 5}, 1);
    char last[64] = "";

    (void)state;
    tn_module_bind(m, .shapes = {{4, 5}});
    tn_module_init_params(m, .seed = 9);
    tn_module_forward(m, 0, 1, &x);
    tn_module_monitor(m, seen, last, 0);
    tn_module_forward(m, 0, 1, &x);
    assert_string_equal(last, "softmax_output");
    last[0] = 0;
    tn_module_monitor(m, NULL, NULL, 0);
    tn_module_forward(m, 0, 1, &x);
    assert_string_equal(last, "");
    nn_close(app);
}

/* ---- what goes wrong -------------------------------------------------------------------------- */

typedef struct wrong {
    void (*run)(tn_app *app, tn_module *m); /* m: an MLP of 3 classes over 5 numbers, bound and filled */
    const char *text;
    int exit_code;
} wrong;

static void no_symbol(tn_app *app, tn_module *m)
{
    (void)m;
    assert_null(tn_module_new(app, .name = "x"));
}

static void no_such_input(tn_app *app, tn_module *m)
{
    (void)m;
    assert_null(module_of(app, node(app, "relu", "act", NULL, variable(app, "x"))));
}

static void input_twice(tn_app *app, tn_module *m)
{
    tn_symbol *s = mlp(app, "2");

    (void)m;
    assert_null(tn_module_new(app, .symbol = s, .data = LIST("data", "data")));
    tn_symbol_release(s);
}

static void no_shape(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_bind(m, .label_shapes = {{4}});
}

static void negative_shape(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_bind(m, .shapes = {{4, -5}});
}

static void other_width(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_bind(m, .shapes = {{4, 6}});
}

static void other_width_later(tn_app *app, tn_module *m)
{
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 6}, 1);

    tn_module_forward(m, 0, 1, &x);
}

static void predict_with_gradients(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_bind(m, .shapes = {{4, 5}}, .predict = 1, .input_grads = 1);
}

static void not_bound(tn_app *app, tn_module *m)
{
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 5}, 1);

    m = module_of(app, mlp(app, "3"));
    tn_module_forward(m, 0, 1, &x);
}

static void not_filled(tn_app *app, tn_module *m)
{
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 5}, 1);

    m = module_of(app, mlp(app, "3"));
    tn_module_bind(m, .shapes = {{4, 5}});
    tn_module_forward(m, 0, 1, &x);
}

static void init_too_early(tn_app *app, tn_module *m)
{
    m = module_of(app, mlp(app, "3"));
    tn_module_init_params(m, .seed = 1);
}

static void too_many(tn_app *app, tn_module *m)
{
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 5}, 1);

    tn_module_forward(m, 0, 3, (tn_array *[]){x, x, x});
}

static void null_array(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_forward(m, 0, 1, (tn_array *[]){NULL});
}

static void backward_first(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_backward(m, NULL);
}

static void update_without_optimizer(tn_app *app, tn_module *m)
{
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 5}, 1);

    tn_module_forward(m, 1, 1, &x);
    tn_module_backward(m, NULL);
    tn_module_update(m);
}

static void states_without_optimizer(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_save(m, path_of("x"), 1, 1);
}

static void no_prefix(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_save(m, "", 1, 0);
}

static void no_files(tn_app *app, tn_module *m)
{
    (void)m;
    assert_null(tn_module_load(app, path_of("nothing"), 1, 0, .name = NULL));
}

static void missing_values(tn_app *app, tn_module *m)
{
    tn_params *p = NULL;

    (void)app;
    assert_int_equal(tn_params_create(&p), TN_OK);
    tn_module_set_params(m, p, 0);
    tn_params_destroy(p);
}

static void unlike_values(tn_app *app, tn_module *m)
{
    tn_array *two = tn_app_array(app, 1, (int64_t[]){2}, (float[]){1, 2});
    tn_params *p = NULL;

    assert_int_equal(tn_params_create(&p), TN_OK);
    assert_int_equal(tn_params_add(p, "arg:fc2_bias", two), TN_OK);
    tn_module_set_params(m, p, TN_PARAMS_MISSING);
    tn_params_destroy(p);
}

static void null_params(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_set_params(m, NULL, 0);
}

static void odd_name(tn_app *app, tn_module *m)
{
    tn_symbol *in[] = {variable(app, "data"), variable(app, "strange")}, *s = NULL;
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 2, .op = "elemwise_add", .in = in};

    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &s), TN_OK);
    m = module_of(app, s);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    tn_module_bind(m, .shapes = {{4, 5}});
    tn_module_init_params(m, .seed = 1);
}

static void no_labels(tn_app *app, tn_module *m)
{
    tn_data *d = tn_data_from_arrays(app, .fields = {{"data", nn_array(app, 2, (int64_t[]){4, 5}, 1)}});

    assert_true(isnan(tn_module_score(m, d, NULL)));
}

static void no_data(tn_app *app, tn_module *m)
{
    (void)app;
    tn_module_fit_(m, NULL, NULL);
}

static void epochs_below_none(tn_app *app, tn_module *m)
{
    tn_module_fit(m, digits(app, "digits:test", 0), .epochs = -1);
}

static void every_below_none(tn_app *app, tn_module *m)
{
    tn_module_fit(m, digits(app, "digits:test", 0), .every = -1);
}

static void fit_in_prediction(tn_app *app, tn_module *m)
{
    m = module_of(app, mlp(app, "10"));
    tn_module_bind(m, .shapes = {{50, 1, 8, 8}}, .predict = 1);
    tn_module_init_params(m, .seed = 1);
    tn_module_fit(m, digits(app, "digits:test", 0), .epochs = 1);
}

static void no_such_output(tn_app *app, tn_module *m)
{
    m = module_of(app, mlp(app, "10"));
    tn_module_bind(m, .shapes = {{50, 1, 8, 8}}, .predict = 1);
    tn_module_init_params(m, .seed = 1);
    assert_null(tn_module_predict(m, digits(app, "digits:test", 0), 1));
}

static void wrong_calls(void **state)
{
    static const wrong rows[] = {
        {no_symbol, "one of .symbol, .json and .bucket", 2},
        {no_such_input, "no input \"data\"", 2},
        {input_twice, "named twice", 2},
        {no_shape, "the shape of \"data\" is missing", 2},
        {negative_shape, "dimension 1 of \"data\" is -5", 1},
        {other_width, "parameter fc1_weight is 16×5, these inputs want 16×6", 1},
        {other_width_later, "fc1", 1},
        {predict_with_gradients, ".predict has no gradients", 2},
        {not_bound, "tn_module_bind() comes before", 1},
        {not_filled, "tn_module_init_params() comes before", 1},
        {init_too_early, "tn_module_bind() comes before", 1},
        {too_many, "takes 1 inputs and 1 labels, 3 arrays are given", 2},
        {null_array, "the array of \"data\" is NULL", 2},
        {backward_first, "tn_module_forward() comes before", 1},
        {update_without_optimizer, "tn_module_init_optimizer() comes before", 1},
        {states_without_optimizer, "no optimizer whose states", 1},
        {no_prefix, "the prefix is missing", 2},
        {no_files, "nothing-symbol.json", 2},
        {missing_values, "the list has no parameter \"fc1_weight\"", 2},
        {unlike_values, "fc2_bias", 1},
        {null_params, "params is NULL", 2},
        {odd_name, "parameter strange: its name does not say", 1},
        {no_labels, "the metric compares with labels, and there are none", 2},
        {no_data, "the data is NULL", 2},
        {epochs_below_none, ".epochs, .first or .every is out of range", 2},
        {every_below_none, ".epochs, .first or .every is out of range", 2},
        {fit_in_prediction, "bound for prediction", 1},
        {no_such_output, "has no output 1", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);
        tn_module *m = module_of(app, mlp(app, "3"));

        tn_module_bind(m, .shapes = {{4, 5}});
        tn_module_init_params(m, .seed = 9);
        rows[i].run(app, m);
        nn_close_failed(app, rows[i].text, rows[i].exit_code);
    }
}

/* On an app that has failed, or without a module, nothing happens. */
static void nothing_there(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = module_of(app, mlp(app, "3"));

    (void)state;
    assert_null(tn_module_new_(NULL, NULL));
    assert_null(tn_module_load_(NULL, "x", 0, 0, NULL));
    assert_null(tn_module_load_(app, NULL, 0, 0, NULL));
    tn_module_bind_(NULL, NULL);
    tn_module_init_params_(NULL, NULL);
    tn_module_set_params(NULL, NULL, 0);
    assert_null(tn_module_params(NULL));
    tn_module_init_optimizer_(NULL, NULL);
    assert_null(tn_module_trainer(NULL));
    tn_module_switch(NULL, 0);
    tn_module_forward(NULL, 0, 0, NULL);
    tn_module_backward(NULL, NULL);
    tn_module_update(NULL);
    assert_int_equal(tn_module_output_count(NULL), 0);
    assert_null(tn_module_output(NULL, 0));
    assert_null(tn_module_input_grad(NULL, 0));
    tn_module_measure(NULL, NULL, NULL);
    tn_module_monitor(NULL, NULL, NULL, 0);
    tn_module_fit_(NULL, NULL, NULL);
    assert_int_equal(tn_module_speed(NULL, m, 0, 50, 0, 0), 0);
    assert_int_equal(tn_module_speed(&(tn_speed){.out = stderr}, NULL, 0, 50, 0, 0), 0);
    assert_true(isnan(tn_module_score(NULL, NULL, NULL)));
    assert_true(isnan(tn_module_score_by(NULL, NULL, NULL)));
    assert_null(tn_module_predict(NULL, NULL, 0));
    tn_module_save(NULL, NULL, 0, 0);
    tn_module_forward(m, 1, 0, NULL); /* the app has failed */
    tn_module_fit_(m, NULL, NULL);
    assert_null(tn_module_params(m));
    nn_close_failed(app, "the prefix is missing", 2);
}

static void every_function_is_here(void **state)
{
    char *header = nulls_source("sdk/include/tenon/nn_module.h"),
         *tests[] = {nulls_source("tests/nn/test_module.c"), NULL};
    size_t functions = 0;

    (void)state;
    assert_int_equal(nulls_missing("nn_module.h", header, tests, &functions), 0);
    assert_true(functions > 18);
    free(header);
    free(tests[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(trained),
        cmocka_unit_test(by_defaults),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(files_now_and_then),
        cmocka_unit_test(loaded_as_a_net),
        cmocka_unit_test(predicted),
        cmocka_unit_test(factors),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(buckets),
        cmocka_unit_test(bad_buckets),
        cmocka_unit_test(values_by_name),
        cmocka_unit_test(watched),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(every_function_is_here),
    };

    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
