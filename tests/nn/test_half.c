/*
 * Nets of float16 and bfloat16 (tn_net_cast), and optimizers that update them in float32 (.multi_precision):
 * eager and compiled alike, through files, over devices; what is refused.
 */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192 };
static const int64_t image[4] = {4, 2, 6, 6};
static const char *dtype = "float16";

static tn_x small(tn_x x)
{
    x = tn_op(x, "Cast", .attrs = {"dtype", dtype});
    x = tn_batchnorm(tn_conv2d(x, .channels = 4, .kernel = {3, 3}));
    return tn_op(tn_dense(tn_relu(x), .units = 3), "Cast", .attrs = {"dtype", "float32"});
}

static tn_net *small_net(tn_app *app, uint64_t seed)
{
    tn_net *net = tn_net_function(app, small, .name = "small");

    tn_net_cast(net, dtype);
    tn_net_init(net, .seed = seed, .shape = {4, 2, 6, 6});
    return net;
}

static void step(tn_app *app, tn_net *net, tn_trainer *t, uint64_t seed)
{
    tn_app_record(app);
    tn_app_backward(app, tn_net_forward(net, nn_array(app, 4, image, seed)));
    tn_trainer_step(t, 4);
}

static const tn_trainer_options sgd = {
    .struct_size = sizeof sgd, .lr = 0.01, .momentum = 0.9, .wd = 0.001, .multi_precision = 1};

static void test_trained(void **state)
{
    static float have[2][ROOM];
    const struct {
        const char *name;
        int32_t dtype;
    } types[] = {{"float16", TN_F16}, {"bfloat16", TN_BF16}, {"float64", TN_F64}};

    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        size_t count[2];

        dtype = types[k].name;
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open("run.deterministic=threads", NULL);
            tn_net *net = small_net(app, 1);
            tn_trainer *t = tn_trainer_new_(net, &sgd);

            if (hybrid)
                tn_net_hybridize(net);
            for (uint64_t i = 0; i < 3; i++)
                step(app, net, t, i);
            count[hybrid] = nn_read_params(app, net, have[hybrid], ROOM);
            assert_int_equal(tn_array_dtype(tn_net_param(net, "conv0.weight")), types[k].dtype);
            assert_int_equal(tn_array_dtype(tn_net_param_grad(net, "dense0.bias")), types[k].dtype);
            assert_int_equal(tn_array_dtype(tn_net_param(net, "batchnorm0.gamma")), k < 2 ? TN_F32 : TN_F64);
            nn_close(app);
        }
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(have[0], have[1], count[0] * sizeof(float));
    }
    dtype = "float16";
}

/* From files it goes on with the same bits, which it cannot without the float32 copies; and a copy follows
 * values that are set. */
static void test_files(void **state)
{
    static float have[3][ROOM];
    char *folder = nn_folder(), params[512], states[512], first[512];
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_net *net = small_net(app, 1), *other = small_net(app, 2), *fresh = small_net(app, 3);
    tn_trainer *t = tn_trainer_new_(net, &sgd), *u = tn_trainer_new_(other, &sgd),
               *plain = tn_trainer_new(fresh, .lr = 0.01, .momentum = 0.9, .wd = 0.001);
    size_t count;

    (void)state;
    (void)snprintf(params, sizeof params, "%s/net.params", folder);
    (void)snprintf(first, sizeof first, "%s/first.params", folder);
    (void)snprintf(states, sizeof states, "%s/net.states", folder);
    tn_net_save(net, first);
    tn_net_load_params(fresh, first);
    for (uint64_t i = 0; i < 2; i++)
        step(app, net, t, i);
    tn_net_save(net, params);
    tn_trainer_save(t, states);
    step(app, other, u, 9);
    tn_net_load_params(other, params);
    tn_trainer_load(u, states);
    for (uint64_t i = 2; i < 4; i++) {
        step(app, net, t, i);
        step(app, other, u, i);
    }
    for (uint64_t i = 0; i < 4; i++)
        step(app, fresh, plain, i);
    count = nn_read_params(app, net, have[0], ROOM);
    assert_int_equal(nn_read_params(app, other, have[1], ROOM), count);
    assert_memory_equal(have[0], have[1], count * sizeof(float));
    (void)nn_read_params(app, fresh, have[2], ROOM);
    assert_memory_not_equal(have[0], have[2],
                            count * sizeof(float)); /* float16 all the way is another thing */
    u = tn_trainer_new(other, .lr = 0.01, .multi_precision = 1);
    step(app, other, u, 5);
    tn_net_load_params(other, first);
    tn_trainer_set_lr(u, 0);
    step(app, other, u, 5);
    tn_net_load_params(net, first);
    assert_int_equal(nn_read(app, tn_net_param(other, "dense0.bias"), have[0], ROOM), 3);
    assert_int_equal(nn_read(app, tn_net_param(net, "dense0.bias"), have[1], ROOM), 3);
    assert_memory_equal(have[0], have[1], 3 * sizeof(float));
    nn_folder_remove(folder);
    nn_close(app);
}

/* Two devices, each with half of the batch: the same values on both behind a step. */
static void test_devices(void **state)
{
    static float have[2][ROOM];

    (void)state;
    for (int devices = 1; devices <= 2; devices++) {
        tn_app *app = nn_open("run.deterministic=threads",
                              devices == 2 ? "device.default=cpu:0,cpu:1" : "device.default=cpu:0", NULL);
        tn_net *net = tn_net_new(app);
        tn_trainer *t;
        const int64_t rows[2] = {4, 8};
        size_t count;

        tn_net_dense(net, .units = 3);
        tn_net_cast(net, "float16");
        tn_net_init(net, .seed = 1, .shape = {4, 8});
        t = tn_trainer_new_(net, &sgd);
        for (uint64_t i = 0; i < 3; i++) {
            tn_array *x = nn_array(app, 2, rows, i), *half = NULL;

            assert_int_equal(tn_array_cast(tn_app_ctx(app), x, TN_F16, &half), TN_OK);
            for (size_t k = 0; k < tn_app_devices(app); k++) {
                tn_app_record(app);
                tn_app_backward(app, tn_net_forward(net, tn_app_part(app, half, k)));
            }
            tn_trainer_step(t, 4);
            tn_array_release(half);
        }
        count = nn_read(app, tn_net_param(net, "0.weight"), have[devices - 1], ROOM);
        assert_int_equal(count, 24);
        nn_close(app);
    }
    for (int i = 0; i < 24; i++) /* sums of halves of the batch are rounded to float16 */
        assert_true(have[0][i] - have[1][i] < 0.002f && have[1][i] - have[0][i] < 0.002f);
}

static bool files_same(const char *a, const char *b)
{
    static char texts[2][65536];
    size_t count[2] = {0};

    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i ? b : a, "rb");

        assert_non_null(f);
        count[i] = fread(texts[i], 1, sizeof texts[i], f);
        assert_true(count[i] > 0 && count[i] < sizeof texts[i]);
        assert_int_equal(fclose(f), 0);
    }
    return count[0] == count[1] && !memcmp(texts[0], texts[1], count[0]);
}

typedef struct stored {
    tn_app *app;
    tn_net *net;
    tn_trainer *t;
} stored;

/* Of halves: beside the float32 of a BatchNorm. */
static stored stored_open(int where)
{
    stored s = {.app = nn_open("run.deterministic=threads", "device.default=cpu:0,cpu:1", NULL)};

    s.net = tn_net_new(s.app);
    tn_net_dense(s.net, .units = 3);
    tn_net_batchnorm(s.net);
    tn_net_dense(s.net, .units = 2);
    tn_net_cast(s.net, dtype);
    tn_net_init(s.net, .seed = 1, .shape = {4, 8});
    s.t = tn_trainer_new(s.net, .optimizer = "adam", .lr = 0.001, .multi_precision = 1,
                         .update_on_kvstore = where);
    return s;
}

static void stored_step(stored *s, uint64_t i)
{
    const int64_t rows[2] = {4, 8};
    tn_array *x = nn_array(s->app, 2, rows, i), *cast = NULL;

    assert_int_equal(
        tn_array_cast(tn_app_ctx(s->app), x, tn_array_dtype(tn_net_param(s->net, "0.weight")), &cast), TN_OK);
    for (size_t k = 0; k < tn_app_devices(s->app); k++) {
        tn_app_record(s->app);
        tn_app_backward(s->app, tn_net_forward(s->net, tn_app_part(s->app, cast, k)));
    }
    tn_trainer_step(s->t, 4);
    tn_array_release(cast);
}

/* Bytes of all values, not through a narrower type. */
static size_t stored_read(stored *s, char *out)
{
    size_t at = 0;

    for (size_t p = 0; p < tn_net_param_count(s->net); p++) {
        tn_array *a = tn_net_param(s->net, tn_net_param_name(s->net, p));
        const size_t bytes = (size_t)tn_array_count(a) * tn_dtype_bytes(tn_array_dtype(a));

        assert_true(at + bytes <= ROOM);
        assert_int_equal(tn_array_read(a, out + at, bytes), TN_OK);
        at += bytes;
    }
    return at;
}

/* Wherever it is updated, and where states with the float32 copies were loaded half-way, in a store or a
 * trainer: the same bits, and the same states in files. */
static void test_store(void **state)
{
    static const char *const types[] = {"float16", "bfloat16", "float32", "float64"};
    static char want[ROOM], have[ROOM];
    char *folder = nn_folder(), states[2][512], params[2][512];

    (void)state;
    for (int i = 0; i < 24; i++) { /* all of it, twice; then the second half, with the states of either */
        const int run = i % 6, from = run < 2 ? 0 : 1, where = run % 2 ? 1 : -1,
                  file = run < 2 ? run : (run - 2) / 2;
        size_t count;
        stored s;

        dtype = types[i / 6];
        s = stored_open(where);
        (void)snprintf(states[file], sizeof states[file], "%s/%d.states", folder, file);
        (void)snprintf(params[file], sizeof params[file], "%s/%d.params", folder, file);
        if (from) {
            tn_net_load_params(s.net, params[file]);
            tn_trainer_load(s.t, states[file]);
        }
        for (int step = 3 * from; step < 6; step++) {
            stored_step(&s, (uint64_t)step);
            if (step == 2) {
                tn_net_save(s.net, params[file]);
                tn_trainer_save(s.t, states[file]);
            }
        }
        count = stored_read(&s, run ? have : want);
        nn_close(s.app);
        if (run && memcmp(have, want, count) != 0)
            fail_msg("%s, run %d: other bits", dtype, run);
        if (run == 1)
            assert_true(files_same(states[0], states[1]));
    }
    dtype = types[0];
    nn_folder_remove(folder);
}

static tn_x inner_function(tn_x x)
{
    return tn_dense(x, .units = 2);
}

static tn_net *inner;

static tn_x outer_function(tn_x x)
{
    return tn_net_call(inner, tn_dense(x, .units = 4));
}

/* Nets within are cast, whether they have been called before or not. */
static void test_within(void **state)
{
    (void)state;
    for (int called = 0; called < 2; called++) {
        tn_app *app = nn_open(NULL);
        const int64_t rows[2] = {4, 8};
        tn_net *outer = tn_net_function(app, outer_function);
        tn_array *half = NULL;

        inner = tn_net_function(app, inner_function, .name = "inner");
        tn_net_init(outer, .seed = 1);
        if (called)
            (void)tn_net_forward(outer, nn_array(app, 2, rows, 1));
        tn_net_cast(outer, "float16");
        assert_int_equal(tn_array_cast(tn_app_ctx(app), nn_array(app, 2, rows, 1), TN_F16, &half), TN_OK);
        assert_int_equal(tn_array_dtype(tn_net_forward(outer, half)), TN_F16);
        assert_int_equal(tn_array_dtype(tn_net_param(outer, "inner.dense0.weight")), TN_F16);
        tn_array_release(half);
        nn_close(app);
    }
}

/* A norm that float16 cannot hold. */
static void test_clip_norm(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    const int64_t rows[2] = {1, 8};
    tn_trainer *t;
    tn_array *half = NULL;
    float before[8], after[8];

    (void)state;
    tn_net_dense(net, .units = 1, .no_bias = 1);
    tn_net_cast(net, "float16");
    tn_net_init(net, .seed = 1, .shape = {1, 8});
    t = tn_trainer_new(net, .lr = 1, .clip_norm = 0.5, .multi_precision = 1);
    (void)nn_read(app, tn_net_param(net, "0.weight"), before, 8);
    assert_int_equal(tn_array_cast(tn_app_ctx(app), nn_array(app, 2, rows, 1), TN_F16, &half), TN_OK);
    assert_int_equal(tn_array_fill(half, 60000), TN_OK);
    tn_app_record(app);
    tn_app_backward(app, tn_net_forward(net, half));
    tn_trainer_step(t, 1);
    (void)nn_read(app, tn_net_param(net, "0.weight"), after, 8);
    for (int i = 0; i < 8; i++) /* 0.5 / sqrt(8) */
        assert_true(before[i] - after[i] > 0.175f && before[i] - after[i] < 0.178f);
    tn_array_release(half);
    nn_close(app);
}

static void test_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {"unknown data type of a net \"float8\"; did you mean",
                                            "unknown data type of a net \"\"", "has no .no_bias_correction",
                                            "a store has no optimizer sgld"};
        static const int codes[] = {2, 2, 2, 1};
        tn_app *app = nn_open(i == 3 ? "device.default=cpu:0,cpu:1" : "device.default=cpu:0", NULL);
        tn_net *net = tn_net_new(app);

        tn_net_dense(net, .units = 2);
        tn_net_cast(net, i == 0 ? "float8" : i == 1 ? NULL : "float16");
        tn_net_init(net, .seed = 1, .shape = {2, 3});
        tn_trainer_new(net, .optimizer = i == 3 ? "sgld" : "sgd", .lr = 0.1, .no_bias_correction = i == 2,
                       .update_on_kvstore = i == 3, .multi_precision = 1);
        nn_close_failed(app, texts[i], codes[i]);
    }
    tn_net_cast(NULL, "float16");
}

static tn_x halves(tn_x x)
{
    return tn_dense(tn_relu(x), .units = 3);
}

/* Parts of a chain that come behind the cast are of its type. */
static void test_parts_to_come(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app), *part;
    tn_array *x = NULL;
    int64_t shape[8] = {0};
    int32_t ndim = -1;
    float y[12];

    (void)state;
    tn_net_cast(net, "float16");
    part = tn_net_sequential(net);
    tn_net_conv2d(part, .channels = 4, .kernel = {3, 3});
    tn_net_batchnorm(part);
    tn_net_add(net, tn_net_function(app, halves));
    tn_net_init(net, .seed = 1);
    assert_int_equal(tn_array_cast(tn_app_ctx(app), nn_array(app, 4, image, 1), TN_F16, &x), TN_OK);
    assert_int_equal(nn_read(app, tn_net_forward(net, x), y, 12), 12);
    for (size_t i = 0; i < tn_net_param_count(net); i++)
        assert_int_equal(tn_array_dtype(tn_net_param(net, tn_net_param_name(net, i))),
                         strstr(tn_net_param_name(net, i), "0.1.") ? TN_F32 : TN_F16);
    assert_true(tn_net_takes(net, 4, image, &ndim, shape) && ndim == 2 && shape[1] == 3);
    assert_true(tn_net_takes(part, 4, image, &ndim, shape) && ndim == 4 && shape[1] == 4);
    tn_array_release(x);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trained), cmocka_unit_test(test_files),
        cmocka_unit_test(test_devices), cmocka_unit_test(test_store),
        cmocka_unit_test(test_within),  cmocka_unit_test(test_clip_norm),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_parts_to_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
