/* Nets from symbol files: the same bits as the net they came from, every head, what cannot be trained, what a
 * model takes and gives. */
#include "nn/support.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *folder;

static const char *path_of(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
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

/* data -> FullyConnected fc1 (weight, bias) -> `head`, "" for none; saved. */
static const char *graph_save(tn_app *app, const char *head, const char *const *attrs, const char *name)
{
    const char *fc[] = {"num_hidden", "10", NULL}, *file = path_of(name);
    tn_symbol *data = NULL, *scores = NULL, *out = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .in = &data};

    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), "data", &data), TN_OK);
    call.op = "FullyConnected";
    call.name = "fc1";
    call.attrs = fc;
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &scores), TN_OK);
    call.op = head;
    call.name = "softmax";
    call.attrs = attrs;
    call.in = &scores;
    if (*head)
        assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &out), TN_OK);
    assert_int_equal(tn_symbol_save(out ? out : scores, file), TN_OK);
    tn_symbol_release(data);
    tn_symbol_release(scores);
    tn_symbol_release(out);
    return file;
}

static void net_trained(tn_app *app, tn_net *net, const char *json, char hash[65], double *loss)
{
    tn_train_info i = {.struct_size = sizeof i};
    tn_train *t = tn_train_open(app, .net = net, .model = json, .data = "digits", .epochs = 1, .batch = 128,
                                .seed = 3, .lr = 0.1, .warmup = -1);

    if (!tn_train_run(t))
        fail_msg("%s", tn_app_error(app));
    tn_train_info_get(t, 1, &i);
    *loss = i.valid_loss;
    assert_true(tn_net_sha256(tn_train_net(t), hash));
    tn_net_export(tn_train_net(t), path_of("trained"));
}

/* A softmax at the head changes nothing; it is exported again, and its loss is that of the scores. */
static void test_heads(void **state)
{
    static const struct {
        const char *op;
        int32_t gives;
    } heads[] = {{"", TN_GIVES_SCORES},
                 {"SoftmaxOutput", TN_GIVES_PROBABILITIES},
                 {"softmax", TN_GIVES_PROBABILITIES},
                 {"SoftmaxActivation", TN_GIVES_PROBABILITIES},
                 {"log_softmax", TN_GIVES_LOGARITHMS}};
    char want[65] = "", have[65];
    double loss;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        tn_app *app = nn_open("run.deterministic=threads", NULL);
        const char *json = graph_save(app, heads[i].op, NULL, "graph.json");
        tn_evaluation e = {.struct_size = sizeof e};
        tn_data *data;
        tn_net *model;

        net_trained(app, NULL, json, have, &loss);
        if (i)
            assert_string_equal(have, want);
        memcpy(want, have, sizeof want);
        model = tn_net_load(app, path_of("trained"));
        data = tn_data_open(app, "digits:test");
        assert_int_equal(tn_net_gives(model), heads[i].gives);
        assert_true(tn_net_evaluate(model, data, &e));
        assert_true(fabs(e.loss - loss) < 1e-4);
        assert_true(fabs(tn_net_eval(model, data, "loss") - loss) < 1e-4);
        assert_true(e.classes == 10 && e.samples == 360);
        nn_close(app);
    }
}

/* Layer by layer, as a program, as the graph of a file: the same bits; random numbers too. */
static void test_same_bits(void **state)
{
    char want[65], have[65];
    double loss, other;

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open("run.deterministic=threads",
                              hybrid ? "train.hybridize=true" : "train.hybridize=false", NULL);
        tn_net *net = tn_net_new(app, .name = "n");

        tn_net_conv2d(net, .channels = 4, .kernel = {3}, .activation = "relu");
        tn_net_batchnorm(net);
        tn_net_dropout(net, .rate = 0.2);
        tn_net_dense(net, .units = 10);
        tn_net_init(net, .seed = 3, .shape = {128, 1, 8, 8});
        tn_net_export(net, path_of("fresh"));
        net_trained(app, net, NULL, want, &loss);
        nn_close(app);
        app = nn_open("run.deterministic=threads", hybrid ? "train.hybridize=true" : "train.hybridize=false",
                      NULL);
        net_trained(app, NULL, path_of("fresh-symbol.json"), have, &other);
        assert_string_equal(have, want);
        assert_true(loss == other);
        nn_close(app);
    }
}

static void test_values(void **state)
{
    tn_app *app = nn_open(NULL);
    const char *json = graph_save(app, "", NULL, "graph.json");
    const int64_t shape[4] = {2, 1, 8, 8};
    tn_net *net = tn_net_from_symbol(app, json), *other = tn_net_from_symbol(app, json);
    char a[65], b[65], *text = NULL;
    size_t bytes = 0;
    FILE *out;

    (void)state;
    assert_int_equal(tn_net_param_count(net), 2);
    assert_string_equal(tn_net_input(net), "data");
    tn_net_init(net, .seed = 9, .shape = {2, 1, 8, 8});
    assert_int_equal(tn_net_param_elements(net), 650);
    tn_net_export(net, path_of("v"));
    tn_net_load_params(other, path_of("v-0000.params"));
    assert_non_null(tn_net_forward(other, nn_array(app, 4, shape, 1)));
    assert_true(tn_net_sha256(net, a) && tn_net_sha256(other, b));
    assert_string_equal(a, b);
    tn_net_save(net, path_of("structural.params"));
    tn_net_load_params(other, path_of("structural.params"));
    assert_true(tn_app_ok(app));
    out = open_memstream(&text, &bytes);
    tn_net_summary(net, out, 4, shape);
    fclose(out);
    assert_non_null(strstr(text, "2×10"));
    free(text);
    tn_net_dense(net, .units = 3);
    nn_close_failed(app, "takes no further layers", 1);
}

/* The data may be called as it specs. */
static void test_other_name(void **state)
{
    tn_app *app = nn_open(NULL);
    json_t *root = json_load_file(path_of("v-symbol.json"), 0, NULL), *node;
    const int64_t shape[4] = {3, 1, 8, 8};
    size_t index;
    tn_net *model, *net;

    (void)state;
    json_array_foreach(json_object_get(root, "nodes"), index, node)
    {
        if (!strcmp(json_string_value(json_object_get(node, "name")), "data"))
            json_object_set_new(node, "name", json_string("pixels"));
    }
    assert_int_equal(json_dump_file(root, path_of("pixels.json"), 0), 0);
    json_decref(root);
    model = tn_net_load_files(app, path_of("pixels.json"), path_of("v-0000.params"), NULL);
    assert_string_equal(tn_net_input(model), "pixels");
    nn_shape(tn_net_forward(model, nn_array(app, 4, shape, 1)), 2, (const int64_t[]){3, 10});
    net = tn_net_from_symbol(app, path_of("pixels.json"));
    assert_string_equal(tn_net_input(net), "pixels");
    assert_true(tn_train_run(tn_train_open(app, .net = net, .data = "digits", .epochs = 1)));
    nn_close(app);
    app = nn_open(NULL);
    assert_null(tn_net_load_files(app, path_of("pixels.json"), path_of("v-0000.params"), "data"));
    nn_close_failed(app, "no free input \"data\"; it has pixels", 2);
}

/* lr_mult of a file's variables: 0 leaves the weight alone. */
static void test_factors(void **state)
{
    tn_app *app = nn_open(NULL);
    json_t *root = json_load_file(graph_save(app, "", NULL, "graph.json"), 0, NULL), *node;
    float x[2][640];
    size_t index;
    tn_net *net;
    tn_train *t;

    (void)state;
    json_array_foreach(json_object_get(root, "nodes"), index, node)
    {
        if (!strcmp(json_string_value(json_object_get(node, "name")), "fc1_weight"))
            json_object_set_new(node, "attrs", json_pack("{s:s}", "__lr_mult__", "0"));
    }
    assert_int_equal(json_dump_file(root, path_of("factor.json"), 0), 0);
    json_decref(root);
    net = tn_net_from_symbol(app, path_of("factor.json"));
    tn_net_init(net, .seed = 2, .shape = {8, 1, 8, 8});
    tn_net_save(net, path_of("before.params"));
    t = tn_train_open(app, .net = net, .data = "digits", .epochs = 1, .seed = 2, .lr = 0.1);
    assert_true(tn_train_run(t));
    assert_int_equal(nn_read(app, tn_net_param(net, "fc1_weight"), x[0], 640), 640);
    tn_net_load_params(net, path_of("before.params"));
    assert_int_equal(nn_read(app, tn_net_param(net, "fc1_weight"), x[1], 640), 640);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    nn_close(app);
}

static void test_refused(void **state)
{
    static const struct {
        const char *head, *attr, *value, *says;
        int code;
    } rows[] = {
        {"LinearRegressionOutput", NULL, NULL, "ends in LinearRegressionOutput", 1},
        {"MakeLoss", NULL, NULL, "ends in MakeLoss", 1},
        {"SoftmaxOutput", "use_ignore", "True", "use_ignore=True", 1},
        {"SoftmaxOutput", "grad_scale", "2", "grad_scale=2", 1},
        {"SoftmaxOutput", "smooth_alpha", "0.1", "smooth_alpha=0.1", 1},
        {"softmax", "axis", "0", "ends in softmax", 1},
        {"SliceChannel", "num_outputs", "2", "has 2 outputs", 1},
    };
    tn_app *app;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *attrs[] = {rows[i].attr, rows[i].value, NULL};

        app = nn_open(NULL);
        assert_null(tn_net_from_symbol(app, graph_save(app, rows[i].head, attrs, "bad.json")));
        nn_close_failed(app, rows[i].says, rows[i].code);
    }
    app = nn_open(NULL);
    assert_null(tn_net_from_symbol(app, NULL));
    nn_close_failed(app, "missing", 2);
    app = nn_open(NULL);
    assert_null(tn_net_from_symbol(app, path_of("absent.json")));
    nn_close_failed(app, "absent.json", 2);
    assert_null(tn_net_from_symbol(NULL, "x"));
    app = nn_open(NULL); /* an output that is no (N, classes) */
    assert_null(tn_train_open(
        app, .model = graph_save(app, "expand_dims", (const char *[]){"axis", "1", NULL}, "b.json"),
        .data = "digits"));
    nn_close_failed(app, "not (N, classes)", 1);
    app = nn_open(NULL);
    assert_null(tn_trainer_new(tn_net_load(app, path_of("trained"))));
    nn_close_failed(app, "tn_net_from_symbol", 1);
}

static void test_takes(void **state)
{
    tn_app *app = nn_open(NULL);
    const int64_t good[4] = {5, 1, 8, 8}, flat[2] = {5, 64}, bad[2] = {5, 63};
    int64_t out[8];
    int32_t ndim = 7;
    tn_net *model = tn_net_load(app, path_of("v"));

    (void)state;
    assert_true(tn_net_takes(model, 4, good, &ndim, out));
    assert_true(ndim == 2 && out[0] == 5 && out[1] == 10);
    assert_true(tn_net_takes(model, 2, flat, &ndim, out));
    assert_false(tn_net_takes(model, 2, bad, &ndim, out));
    assert_non_null(strstr(tn_error_text(), "63"));
    assert_true(tn_app_ok(app));
    assert_false(tn_net_takes(model, 9, good, &ndim, out));
    assert_false(tn_net_takes(NULL, 2, flat, &ndim, out));
    assert_false(tn_net_takes(model, 2, NULL, &ndim, out));
    assert_null(tn_net_class_name(model, 0));
    assert_false(tn_net_name_classes(model, path_of("absent.txt")));
    nn_close_failed(app, "absent.txt", 2);
}

/* Names of classes from files that are none. */
static void test_names(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } bad[] = {{"a\n\nb\n", 5}, {"a\0b\n", 4}, {"a\033[1m\n", 6}, {"\n", 1}};
    FILE *file = fopen(path_of("good.txt"), "w");
    tn_app *app = nn_open(NULL);
    tn_net *model = tn_net_load(app, path_of("v"));
    char *line = malloc(400);

    (void)state;
    fputs("zero\r\none\ntwo words", file);
    fclose(file);
    assert_true(tn_net_name_classes(model, path_of("good.txt")));
    assert_string_equal(tn_net_class_name(model, 0), "zero");
    assert_string_equal(tn_net_class_name(model, 2), "two words");
    assert_null(tn_net_class_name(model, 3));
    assert_null(tn_net_class_name(model, -1));
    nn_close(app);
    memset(line, 'x', 400);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const bool longest = i == sizeof bad / sizeof *bad;

        file = fopen(path_of("bad.txt"), "w");
        fwrite(longest ? line : bad[i].text, 1, longest ? 400 : bad[i].bytes, file);
        fclose(file);
        app = nn_open(NULL);
        assert_false(tn_net_name_classes(tn_net_load(app, path_of("v")), path_of("bad.txt")));
        nn_close_failed(app, "bad.txt:", 4);
    }
    app = nn_open(NULL);
    assert_false(tn_net_name_classes(tn_net_load(app, path_of("v")), "/dev/zero"));
    nn_close_failed(app, "/dev/zero", 4);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),      cmocka_unit_test(test_same_bits), cmocka_unit_test(test_values),
        cmocka_unit_test(test_other_name), cmocka_unit_test(test_factors),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_takes),      cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
