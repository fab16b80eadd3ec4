/*
 * Parameters by patterns, gradients by hand, norms, hooks (tenon/nn_params.h): what they do, and what they
 * refuse; NULL for every pointer.
 */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/nulls.h"

enum { ROOM = 512 };
static const int64_t image[4] = {2, 1, 4, 4};

static tn_net *small_net(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "small"), *inner;

    tn_net_conv2d(net, .channels = 2, .kernel = {3, 3});
    tn_net_batchnorm(net, .no_scale = 1);
    inner = tn_net_sequential(net, .name = "head");
    tn_net_dense(inner, .units = 3, .activation = "tanh");
    tn_net_dense(net, .units = 2);
    tn_net_init(net, .seed = 1, .shape = {2, 1, 4, 4});
    return net;
}

static void backward(tn_app *app, tn_net *net, uint64_t seed)
{
    tn_app_record(app);
    tn_app_backward(app, tn_net_forward(net, nn_array(app, 4, image, seed)));
}

static size_t gradient(tn_app *app, tn_net *net, const char *name, float *out)
{
    return nn_read(app, tn_net_param_grad(net, name), out, ROOM);
}

static void test_match(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = small_net(app);
    static const char *const biases[] = {"0.bias", "2.0.bias", "3.bias"};
    size_t found = 0, count = tn_net_param_count(net);

    (void)state;
    for (size_t i = tn_net_match(net, ".*bias$", 0); i < count; i = tn_net_match(net, ".*bias$", i + 1))
        assert_string_equal(tn_net_param_name(net, i), biases[found++]);
    assert_int_equal(found, 3);
    assert_int_equal(tn_net_match(net, "bias", 0), count); /* from the beginning of a name on */
    assert_int_equal(tn_net_match(net, "3|2", 0), 6);
    assert_int_equal(tn_net_match(net, "3|bias", 0), 8);
    assert_int_equal(tn_net_match(net, ".*", 10000), count);
    nn_close(app);
}

/* Frozen ones stay, others move by their factors. */
static void test_set(void **state)
{
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = small_net(app);
        tn_trainer *t;
        float before[4][ROOM], after[4][ROOM], grad[ROOM];
        static const char *const names[] = {"0.weight", "2.0.weight", "3.weight", "3.bias"};
        size_t counts[4];

        (void)state;
        if (hybrid)
            tn_net_hybridize(net);
        assert_int_equal(tn_net_set(net, "0|2", .grad = "none"), 4);
        assert_int_equal(tn_net_set(net, "3.bias", .lr_mult = 0.5), 1);
        assert_int_equal(tn_net_set(net, "3.weight", .lr_mult = -1), 1);
        assert_int_equal(tn_net_set(net, "1", .grad = "write"),
                         4); /* gamma and statistics have no gradient */
        assert_null(tn_net_param_grad(net, "0.weight"));
        assert_null(tn_net_param_grad(net, "1.gamma"));
        assert_null(tn_net_param_grad(net, "1.running_mean"));
        for (int i = 0; i < 4; i++)
            counts[i] = nn_read(app, tn_net_param(net, names[i]), before[i], ROOM);
        t = tn_trainer_new(net, .lr = 0.5);
        backward(app, net, 1);
        tn_trainer_step(t, 1);
        for (int i = 0; i < 4; i++)
            (void)nn_read(app, tn_net_param(net, names[i]), after[i], ROOM);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(before[i], after[i], counts[i] * sizeof(float));
        (void)gradient(app, net, "3.bias", grad);
        for (size_t i = 0; i < counts[3]; i++)
            assert_true(fabsf(after[3][i] - (before[3][i] - 0.25f * grad[i])) < 1e-6f);
        assert_int_equal(tn_net_set(net, "0", .grad = "write"), 2); /* behind the first step */
        backward(app, net, 2);
        tn_trainer_step(t, 1);
        nn_close_failed(app, "parameter small_conv0_weight was not trained at its trainer's first step", 1);
    }
}

/* Gradients of several backwards are added up, until they are zeroed. */
static void test_add(void **state)
{
    (void)state;
    for (int devices = 1; devices <= 2; devices++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(devices == 2 ? "device.default=cpu:0,cpu:1" : "device.default=cpu:0", NULL);
            tn_net *net = small_net(app);
            float one[ROOM], two[ROOM], sum[ROOM];
            size_t count;

            if (hybrid)
                tn_net_hybridize(net);
            backward(app, net, 1);
            count = gradient(app, net, "0.weight", one);
            backward(app, net, 2);
            (void)gradient(app, net, "0.weight", two);
            assert_int_equal(tn_net_set(net, ".*", .grad = "add"), tn_net_param_count(net));
            for (int turn = 0; turn < 2; turn++) {
                backward(app, net, 1);
                backward(app, net, 2);
                (void)gradient(app, net, "0.weight", sum);
                for (size_t i = 0; i < count; i++)
                    assert_true(fabsf(sum[i] - one[i] - two[i]) < 1e-5f);
                tn_net_zero_grad(net);
                (void)gradient(app, net, "0.weight", sum);
                for (size_t i = 0; i < count; i++)
                    assert_true(sum[i] == 0);
            }
            nn_close(app);
        }
}

static void test_zero_rows(void **state)
{
    static const int64_t ids[1] = {3};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    tn_array *x = tn_app_array(app, 1, ids, NULL), *values = NULL;

    (void)state;
    tn_net_embedding(net, .count = 5, .units = 2, .sparse_grad = 1);
    tn_net_init(net, .seed = 1, .shape = {3});
    tn_app_record(app);
    tn_app_backward(app, tn_net_forward(net, x));
    tn_net_zero_grad(net);
    assert_int_equal(tn_array_values(tn_net_param_grad(net, "0.weight"), &values), TN_OK);
    assert_int_equal(tn_array_count(values), 0);
    tn_array_release(values);
    nn_close(app);
}

static void count_net(void *arg, tn_net *net)
{
    char *paths = arg;

    (void)snprintf(paths + strlen(paths), ROOM - strlen(paths), "%s;", tn_net_path(net));
}

static tn_net *called;

static tn_x calls(tn_x x)
{
    return tn_net_call(called, x);
}

static void test_apply(void **state)
{
    tn_app *app = nn_open(NULL);
    char paths[ROOM] = "";
    tn_net *net = small_net(app), *outer;

    (void)state;
    called = net;
    outer = tn_net_function(app, calls, .name = "outer");
    (void)tn_net_forward(outer, nn_array(app, 4, image, 1));
    tn_net_apply(outer, count_net, paths);
    assert_string_equal(paths, "small.head;small;outer;");
    nn_close(app);
}

static void test_clip(void **state)
{
    static const int64_t two[1] = {2};
    static const float values[2] = {3, 4}, wild[2] = {3, INFINITY};
    tn_app *app = nn_open(NULL);
    tn_array *arrays[3] = {tn_app_array(app, 1, two, values), tn_app_array(app, 1, two, values), NULL};
    float out[2];

    (void)state;
    assert_int_equal(tn_array_cast(tn_app_ctx(app), arrays[0], TN_F16, &arrays[2]), TN_OK);
    (void)tn_app_own(app, arrays[2]);
    assert_true(fabs(tn_app_clip_norm(app, 3, arrays, 10) - sqrt(75)) < 1e-5);
    assert_int_equal(nn_read(app, arrays[0], out, 2), 2);
    assert_memory_equal(out, values, sizeof out);
    assert_true(fabs(tn_app_clip_norm(app, 3, arrays, 1) - sqrt(75)) < 1e-5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nn_read(app, arrays[i], out, 2), 2);
        assert_true(fabs((double)out[0] - 3 / sqrt(75)) < 1e-3 && fabs((double)out[1] - 4 / sqrt(75)) < 1e-3);
    }
    arrays[1] = tn_app_array(app, 1, two, wild);
    assert_true(isinf(tn_app_clip_norm(app, 2, arrays, 0.1)));
    assert_int_equal(nn_read(app, arrays[0], out, 2), 2);
    assert_true(out[0] > 0.3f); /* as it was */
    nn_close(app);
}

/* ---- hooks --------------------------------------------------------------------------------------- */

typedef struct heard {
    char text[4096];
    size_t numbers;
} heard;

static void hears(void *arg, const tn_call_info *call)
{
    heard *h = arg;
    float values[ROOM];
    const tn_x x = call->out_count ? call->out[0] : call->in[0];

    (void)snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%s%s%s %d %lld;",
                   call->out_count ? "" : ">", call->path, call->op ? "*" : "", tn_ndim(x),
                   (long long)tn_dim(x, 1));
    if (tn_dim(x, 0) == 2 && tn_ndim(x) == 2)
        h->numbers += (size_t)tn_read(x, (size_t)(2 * tn_dim(x, 1)), values);
}

static void test_hooks(void **state)
{
    heard h = {.numbers = 0}, b = {.numbers = 0};
    tn_app *app = nn_open(NULL);
    tn_net *net = small_net(app);
    int32_t after, before;

    (void)state;
    after = tn_net_hook(net, .hook = hears, .arg = &h, .layers = 1);
    before = tn_net_hook(net, .hook = hears, .arg = &b, .before = 1);
    assert_true(after == 1 && before == 2);
    (void)tn_net_forward(net, nn_array(app, 4, image, 1));
    /* the chain within has a hook of its own only if one was given for it */
    assert_string_equal(b.text, ">small 4 1;");
    assert_string_equal(h.text, "small.conv0* 4 2;small.batchnorm0* 4 2;small.head.dense0* 2 3;"
                                "small.dense0* 2 2;small 2 2;");
    assert_true(h.numbers == 3);
    *h.text = *b.text = 0;
    tn_net_hybridize(net);
    (void)tn_net_forward(net, nn_array(app, 4, image, 1)); /* a program */
    assert_string_equal(b.text, "");
    tn_net_hybridize(net, .off = 1);
    tn_net_unhook(net, after);
    (void)tn_net_forward(net, nn_array(app, 4, image, 1));
    assert_string_equal(h.text, "");
    assert_string_equal(b.text, ">small 4 1;");
    nn_close(app);
}

static void test_hooks_within(void **state)
{
    heard h = {.numbers = 0};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app, .name = "small"), *head = tn_net_sequential(net, .name = "head"), *outer;

    (void)state;
    tn_net_dense(head, .units = 3);
    tn_net_init(net, .seed = 1);
    called = net;
    outer = tn_net_function(app, calls, .name = "outer");
    (void)tn_net_hook(head, .hook = hears, .arg = &h, .before = 1, .layers = 1);
    (void)tn_net_hook(outer, .hook = hears, .arg = &h, .layers = 1);
    (void)tn_net_forward(outer, nn_array(app, 4, image, 1));
    assert_string_equal(h.text, ">small.head 4 1;>small.head.dense0* 4 1;small.head.dense0* 2 3;outer 2 3;");
    nn_close(app);
}

static void calls_layers(void *arg, const tn_call_info *call)
{
    const int *how = arg;

    if (*how == 0)
        (void)tn_dense(call->in[0], .units = 2);
    else if (*how == 1)
        tn_scope_begin(call->in[0], "a");
    else if (*how == 2)
        tn_scope_end(call->in[0]);
    else
        (void)tn_net_call(called, call->in[0]);
}

static void test_calling_hooks(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++)
        for (int kind = 0; kind < 4; kind++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = small_net(app);

            called = small_net(app);
            (void)tn_net_hook(net, .hook = calls_layers, .arg = &how, .before = kind / 2, .layers = kind % 2);
            (void)tn_net_forward(net, nn_array(app, 4, image, 1));
            nn_close_failed(app, "a hook must not call layers", 1);
        }
}

static void test_refused(void **state)
{
    (void)state;
    for (int i = 1; i < 9; i++) {
        static const char *const texts[] = {NULL,
                                            "at most 16 hooks",
                                            "has no hook 3",
                                            "no parameter of net small fits \"weight\"",
                                            "pattern \"(\"",
                                            "unknown way of a gradient \"wrote\"; did you mean \"write\"",
                                            "a factor is not finite",
                                            "the norm is not above 0",
                                            "pattern \"x)|(bias\""};
        heard h = {.numbers = 0};
        static const int codes[] = {0, 2, 2, 2, 2, 2, 2, 2, 2};
        tn_app *app = nn_open(NULL);
        tn_net *net = small_net(app);
        tn_array *x = nn_array(app, 4, image, 1);
        const size_t count = tn_net_param_count(net);

        for (int k = 0; i == 1 && k < 17; k++)
            assert_int_equal(tn_net_hook(net, .hook = hears, .arg = &h), k < 16 ? k + 1 : 0);
        if (i == 2)
            tn_net_unhook(net, 3);
        if (i == 3)
            assert_int_equal(tn_net_set(net, "weight", .lr_mult = 2), 0);
        if (i == 4)
            assert_int_equal(tn_net_match(net, "(", 0), count);
        if (i == 5)
            assert_int_equal(tn_net_set(net, ".*", .grad = "wrote"), 0);
        if (i == 6)
            assert_int_equal(tn_net_set(net, ".*", .wd_mult = (double)NAN), 0);
        if (i == 7)
            assert_true(isnan(tn_app_clip_norm(app, 1, &x, (double)NAN)));
        if (i == 8)
            assert_int_equal(tn_net_match(net, "x)|(bias", 0), count);
        (void)tn_net_forward(net, x);
        nn_close_failed(app, texts[i], codes[i]);
    }
}

/* ---- none is left out ---------------------------------------------------------------------------- */

static void test_nulls(void **state)
{
    char *header = nulls_source("sdk/include/tenon/nn_params.h"),
         *tests[] = {nulls_source("tests/nn/test_params.c"), NULL}, paths[ROOM] = "";
    tn_app *app = nn_open(NULL);
    tn_net *net = small_net(app);
    tn_array *none[1] = {NULL}, *x = nn_array(app, 4, image, 1);
    size_t functions = 0;

    (void)state;
    assert_int_equal(tn_net_set_(NULL, ".*", NULL), 0);
    assert_int_equal(tn_net_match(NULL, ".*", 0), 0);
    tn_net_zero_grad(NULL);
    tn_net_apply(NULL, count_net, paths);
    assert_string_equal(tn_net_path(NULL), "");
    assert_true(isnan(tn_app_clip_norm(NULL, 1, &x, 1)));
    assert_int_equal(tn_net_hook_(NULL, NULL), 0);
    tn_net_unhook(NULL, 1);
    assert_true(tn_app_ok(app));
    assert_int_equal(tn_net_set_(net, ".*", NULL), tn_net_param_count(net)); /* nothing is asked for */
    assert_int_equal(tn_net_set_(net, NULL, NULL), 0);
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    (void)tn_net_match(net, NULL, 0);
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    tn_net_apply(net, NULL, NULL);
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_true(isnan(tn_app_clip_norm(app, 1, NULL, 1)));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_true(isnan(tn_app_clip_norm(app, 1, none, 1)));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_int_equal(tn_net_hook_(net, NULL), 0);
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_int_equal(nulls_missing("nn_params.h", header, tests, &functions), 0);
    assert_true(functions >= 8);
    free(header);
    free(tests[0]);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),     cmocka_unit_test(test_set),
        cmocka_unit_test(test_add),       cmocka_unit_test(test_apply),
        cmocka_unit_test(test_zero_rows), cmocka_unit_test(test_clip),
        cmocka_unit_test(test_hooks),     cmocka_unit_test(test_hooks_within),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_calling_hooks),
        cmocka_unit_test(test_nulls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
