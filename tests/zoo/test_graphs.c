/*
 * The zoo of nn: the graphs of MXNet's 34 nets and the names of their parameters are MXNet's, by the digests
 * of tests/oracle/recorded/zoo_graphs.txt; two of them give the outputs that MXNet recorded, with parameters
 * of a file that a net of another name has saved; names, options, and files that do not fit.
 * `scripts/campaign --only zoo-nets` compares numbers of all of them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "support/scratch.h"
#include "tenon/nn.h"
#include "zoo/zoo.h"

#define LINE_BYTES 256
#define NETS 34
#define VARIANTS 6 /* recorded with other numbers than the nets' defaults */

/* `setting`: one, or several divided by blanks, or NULL. */
static tn_app *app_open(const char *setting)
{
    static char plugins[4096], own[LINE_BYTES];
    const char *settings[8] = {plugins, "plugins.trust=off"};
    size_t count = 2;
    tn_app *app;

    (void)snprintf(own, sizeof own, "%s", setting ? setting : "");
    for (char *rest = own, *one; count < 7 && (one = strtok_r(rest, " \n", &rest));)
        settings[count++] = one;
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    app = tn_app_open(.name = "zoo", .settings = settings, .no_environment = 1);
    assert_true(tn_app_ok(app));
    return app;
}

static void app_close(tn_app *app)
{
    if (!tn_app_ok(app))
        fail_msg("%s", tn_app_error(app));
    assert_int_equal(tn_app_close(app), 0);
}

static void app_fails(tn_app *app, const char *text)
{
    assert_false(tn_app_ok(app));
    if (!strstr(tn_app_error(app), text))
        fail_msg("the error is: %s\nand should contain: %s", tn_app_error(app), text);
    assert_int_not_equal(tn_app_close(app), 0);
}

/* ---- digests ---- */

typedef struct text { /* lines, each with its end */
    char *bytes;
    size_t size;
    FILE *file;
} text;

static void text_begin(text *t)
{
    t->file = open_memstream(&t->bytes, &t->size);
    assert_non_null(t->file);
}

static void text_check(text *t, const char *what, unsigned lines, unsigned crc)
{
    unsigned count = 0, got;

    assert_int_equal(fclose(t->file), 0);
    for (size_t i = 0; i < t->size; i++)
        count += t->bytes[i] == '\n';
    got = (unsigned)crc32(0, (const Bytef *)t->bytes, (uInt)t->size);
    if (count != lines || got != crc)
        fail_msg("%s: %u lines with CRC-32 %08x, MXNet's %u with %08x:\n%.2000s", what, count, got, lines,
                 crc, t->bytes);
    free(t->bytes);
}

static const char *text_at(const json_t *node, const char *key)
{
    const char *value = json_string_value(json_object_get(node, key));

    assert_non_null(value);
    return value;
}

static void places_add(FILE *out, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *place = json_array_get(list, i);

        (void)fprintf(out, "%s%d.%d", i ? "," : "", (int)json_integer_value(json_array_get(place, 0)),
                      (int)json_integer_value(json_array_get(place, 1)));
    }
    (void)fputc('\n', out);
}

static bool is_variable(const json_t *node)
{
    return !strcmp(text_at(node, "op"), "null");
}

/* It has parameters of its own, so its name is no number in the graph. */
static bool is_layer(const json_t *nodes, const json_t *node)
{
    const json_t *inputs = json_object_get(node, "inputs");

    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *place = json_array_get(json_array_get(inputs, i), 0),
                     *from = json_array_get(nodes, (size_t)json_integer_value(place));

        if (is_variable(from) && strcmp(text_at(from, "name"), "data") != 0)
            return true;
    }
    return false;
}

/* As lines_of() of tests/oracle/zoo_nets.py: operator, name, attributes, inputs. */
static void node_add(FILE *out, const json_t *nodes, json_t *node, const char *prefix)
{
    const char *name = is_variable(node) || is_layer(nodes, node) ? text_at(node, "name") : "", *key,
               *more = "";
    json_t *value;

    (void)fprintf(out, "%s %s ", text_at(node, "op"),
                  !strncmp(name, prefix, strlen(prefix)) ? name + strlen(prefix) : name);
    if (!is_variable(node))
        json_object_foreach(json_object_get(node, "attrs"), key, value)
        {
            if (!strncmp(key, "__", 2))
                continue;
            (void)fprintf(out, "%s%s=%s", more, key, json_string_value(value));
            more = ";";
        }
    (void)fputc(' ', out);
    places_add(out, json_object_get(node, "inputs"));
}

static void graph_check(tn_app *app, tn_net *net, const char *name, unsigned lines, unsigned crc)
{
    tn_symbol *symbol = tn_net_symbol(net);
    char prefix[LINE_BYTES], *json = NULL;
    json_t *graph, *nodes;
    text t;

    text_begin(&t);
    assert_int_equal(tn_app_check(app, tn_symbol_to_json(symbol, &json)), TN_OK);
    graph = json_loads(json, 0, NULL);
    nodes = json_object_get(graph, "nodes");
    (void)snprintf(prefix, sizeof prefix, "%s_", name);
    for (char *dot = prefix; (dot = strchr(dot, '.'));)
        *dot = '_';
    for (size_t i = 0; i < json_array_size(nodes); i++)
        node_add(t.file, nodes, json_array_get(nodes, i), prefix);
    (void)fputs("heads ", t.file);
    places_add(t.file, json_object_get(graph, "heads"));
    text_check(&t, name, lines, crc);
    json_decref(graph);
    tn_free(json);
    tn_symbol_release(symbol);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names as Gluon's save_parameters has them. */
static void names_check(const tn_net *net, const char *what, unsigned lines, unsigned crc)
{
    const size_t count = tn_net_param_count(net);
    const char **names = calloc(count + 1, sizeof *names);
    text t;

    assert_non_null(names);
    text_begin(&t);
    for (size_t i = 0; i < count; i++)
        names[i] = tn_net_param_name(net, i);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(t.file, "%s\n", names[i]);
    text_check(&t, what, lines, crc);
    free(names);
}

static FILE *recorded_open(const char *name)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/%s", getenv("TENON_TEST_SOURCE"), name);
    file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static void graphs_are_mxnets(void **state)
{
    FILE *file = recorded_open("zoo_graphs.txt");
    char line[LINE_BYTES], name[64];
    unsigned lines, crc, params, params_crc, count = 0;
    int used = 0;

    (void)state;
    for (; fgets(line, sizeof line, file); count++) {
        tn_app *app;
        tn_net *net;

        assert_int_equal(sscanf(line, "%63s %u %x %u %x%n", name, &lines, &crc, &params, &params_crc, &used),
                         5);
        app = app_open(line + used);
        net = tn_net_zoo(app, name);
        graph_check(app, net, name, lines, crc);
        names_check(net, name, params, params_crc);
        app_close(app);
    }
    (void)fclose(file);
    assert_int_equal(count, NETS + VARIANTS);
}

/* ---- outputs ---- */

/* The rule's values under the names that MXNet's recording has, in a file. */
static const char *params_write(tn_app *app, tn_net *net, const char *prefix, int64_t seed)
{
    const char *path = scratch_path("net.params");
    tn_params *own = NULL, *out = NULL;

    tn_net_export(net, scratch_path("own"));
    assert_int_equal(tn_params_load(tn_app_ctx(app), scratch_path("own-0000.params"), NULL, &own), TN_OK);
    assert_int_equal(tn_params_create(&out), TN_OK);
    for (size_t i = 0; i < tn_params_count(own); i++) {
        char name[LINE_BYTES];
        const int64_t *shape = NULL;
        tn_array *a = NULL, *filled = NULL;
        int32_t ndim = 0;
        float *values;

        assert_int_equal(tn_params_at(own, i, &a), TN_OK);
        assert_int_equal(tn_array_shape(a, &ndim, &shape), TN_OK);
        values = calloc(tn_array_count(a) + 1, sizeof *values);
        assert_non_null(values);
        (void)snprintf(name, sizeof name, "net_%s", tn_params_name(own, i) + strlen("arg:") + strlen(prefix));
        assert_true(zoo_numbers(name, ndim, shape, (uint64_t)seed, tn_array_count(a), values));
        assert_int_equal(tn_array_from(tn_app_ctx(app), TN_F32, ndim, shape, values, &filled), TN_OK);
        assert_int_equal(tn_params_add(out, name, filled), TN_OK);
        tn_array_release(filled);
        tn_array_release(a);
        free(values);
    }
    assert_int_equal(tn_params_save(out, path), TN_OK);
    tn_params_destroy(out);
    tn_params_destroy(own);
    return path;
}

static void outputs_are_mxnets(void **state)
{
    static const struct {
        const char *name, *prefix;
    } nets[] = {{"mobilenetv2_1.0", "mobilenetv2_1_0_"}, {"squeezenet1.1", "squeezenet1_1_"}};

    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        tn_app *app = app_open(NULL);
        tn_net *net = tn_net_zoo(app, nets[i].name);
        zoo_record r;
        char path[4096];
        tn_array *x = NULL;
        uint64_t count;
        float *values;
        double *got, far = 0, largest = 0;

        (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/%s.params", getenv("TENON_TEST_SOURCE"),
                       nets[i].name);
        assert_int_equal(zoo_record_open(tn_app_ctx(app), path, &r), TN_OK);
        tn_net_init(net, .seed = 1, .shape = {r.shape[0], r.shape[1], r.shape[2], r.shape[3]});
        tn_net_load_params(net, params_write(app, net, nets[i].prefix, r.seed));
        count = (uint64_t)(r.shape[0] * r.shape[1] * r.shape[2] * r.shape[3]);
        values = calloc(count, sizeof *values);
        assert_non_null(values);
        assert_true(zoo_numbers("data", 4, r.shape, (uint64_t)r.seed, count, values));
        assert_int_equal(tn_array_from(tn_app_ctx(app), TN_F32, 4, r.shape, values, &x), TN_OK);
        got = zoo_values(tn_app_ctx(app), tn_net_forward(net, x), &count);
        assert_non_null(got);
        assert_int_equal(count, r.count);
        for (uint64_t k = 0; k < count; k++) {
            far = fmax(far, fabs(got[k] - (double)r.output[k]));
            largest = fmax(largest, fabs((double)r.output[k]));
        }
        print_message("%-16s %.1e of the largest, %g\n", nets[i].name, far / largest, largest);
        assert_true(largest > 0 && far <= 1e-5 * largest);
        free(got);
        free(values);
        tn_array_release(x);
        zoo_record_close(&r);
        app_close(app);
    }
}

/* ---- names, options, files ---- */

static void names_are_found(void **state)
{
    size_t count = 0;

    (void)state;
    while (tn_net_zoo_names()[count]) {
        assert_ptr_equal(tn_net_zoo_find(tn_net_zoo_names()[count]), tn_net_zoo_names()[count]);
        count++;
    }
    assert_int_equal(count, NETS + 2);
    assert_string_equal(tn_net_zoo_find("zoo:MobileNet_v2_1_0"), "mobilenetv2_1.0");
    assert_string_equal(tn_net_zoo_find("inception_v3"), "inceptionv3");
    assert_string_equal(tn_net_zoo_find("squeezenet1_1"), "squeezenet1.1");
    assert_string_equal(tn_net_zoo_find("vgg11-bn"), "vgg11_bn");
    assert_string_equal(tn_net_zoo_find("resnet18"), "resnet18_v1"); /* short forms */
    assert_string_equal(tn_net_zoo_find("zoo:MobileNet_v2"), "mobilenetv2_1.0");
    assert_string_equal(tn_net_zoo_find("mobilenet"), "mobilenet1.0");
    assert_string_equal(tn_net_zoo_find("squeezenet"), "squeezenet1.0");
    assert_string_equal(tn_net_zoo_find("mlp"), "mlp");
    assert_null(tn_net_zoo_find("resnet"));
    assert_null(tn_net_zoo_find("resnet18_v"));
    assert_null(tn_net_zoo_find("inception_v"));
    assert_null(tn_net_zoo_find("resnet18_v1_"
                                "2"));
    assert_null(tn_net_zoo_find("zoo:"));
    assert_null(tn_net_zoo_find(""));
    assert_null(tn_net_zoo_find(NULL));
}

static int64_t elements(const char *name, const char *setting, int64_t side)
{
    tn_app *app = app_open(setting);
    tn_net *net = tn_net_zoo(app, name);
    int64_t count;

    tn_net_init(net, .with = "zero", .seed = 1, .shape = {1, 3, side, side});
    count = tn_net_param_elements(net);
    app_close(app);
    return count;
}

static void options_make_nets(void **state)
{
    (void)state;
    assert_int_equal(elements("mobilenet0.25", NULL, 32) - elements("mobilenet0.25", "model.classes=10", 32),
                     990 * (256 + 1));
    /* 3×3 rather than 7×7 for the first convolution, and no BatchNorm behind it */
    assert_int_equal(elements("resnet18_v1", NULL, 32) - elements("resnet18_v1", "model.thumbnail=1", 8),
                     64 * 3 * (49 - 9) + 4 * 64);
    assert_int_equal(elements("vgg11", "model.batch_norm=1", 32), elements("vgg11_bn", NULL, 32));
    assert_int_equal(elements("densenet121", "model.dropout=0.25", 221), elements("densenet121", NULL, 221));
    assert_true(elements("densenet121", "model.bn_size=2", 221) < elements("densenet121", NULL, 221));
}

static void wrong_ones_are_refused(void **state)
{
    static const struct {
        const char *name, *setting, *error;
    } cases[] = {
        {"resnet19_v1", NULL, "did you mean \"resnet18_v1\""},
        {"zoo:vgg", NULL, "unknown net of the zoo \"vgg\""},
        {"", NULL, "unknown net of the zoo"},
        {"resnet18_v1", "model.pad=1", "unknown option in [model] \"pad\""},
        {"resnet18_v1", "model.dropout=0", "\"dropout\""},
        {"lenet", "model.thumbnail=1", "thumbnail"},
        {"alexnet", "model.classes=0", "model.classes"},
        {"alexnet", "model.classes=ten", "model.classes"},
        {"alexnet", "model.dropout=1", "model.dropout"},
        {"alexnet", "model.dropout=0,5", "model.dropout"},
        {"alexnet", "model.dropout=0.5.5", "model.dropout"},
        {"alexnet", "model.dropout=-0", "model.dropout"},
        {"densenet121", "model.bn_size=99", "model.bn_size"},
        {"vgg16", "model.batch_norm=2", "model.batch_norm"},
        {"resnet50_v2", "model.thumbnail=yes", "model.thumbnail"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_app *app = app_open(cases[i].setting);

        assert_null(tn_net_zoo(app, cases[i].name));
        app_fails(app, cases[i].error);
    }
}

/* Images that are too small, and files of another net. */
static void what_does_not_fit_is_refused(void **state)
{
    tn_app *app = app_open(NULL);
    tn_net *net = tn_net_zoo(app, "inceptionv3");

    (void)state;
    tn_net_init(net, .seed = 1, .shape = {1, 3, 75, 75});
    app_fails(app, "inceptionv3.pool");
    app = app_open("model.classes=3");
    net = tn_net_zoo(app, "mobilenet0.25");
    tn_net_init(net, .seed = 1, .shape = {1, 3, 32, 32});
    tn_net_save(net, scratch_path("small.params"));
    tn_net_export(net, scratch_path("small"));
    app_close(app);
    app = app_open(NULL); /* as many parameters, another shape */
    net = tn_net_zoo(app, "mobilenet0.25");
    tn_net_init(net, .seed = 1, .shape = {1, 3, 32, 32});
    tn_net_load_params(net, scratch_path("small-0000.params"));
    app_fails(app, "output.weight");
    app = app_open(NULL);
    net = tn_net_zoo(app, "mobilenetv2_0.25");
    tn_net_init(net, .seed = 1, .shape = {1, 3, 32, 32});
    tn_net_load_params(net, scratch_path("small.params"));
    app_fails(app, "small.params");
}

/* One of the parameters has a name that the net has not, behind a prefix of the file's own. */
static void files_of_other_names_are_refused(void **state)
{
    tn_app *app = app_open(NULL);
    tn_net *net = tn_net_zoo(app, "mobilenet0.25");
    tn_params *own = NULL, *out = NULL;

    (void)state;
    tn_net_init(net, .with = "zero", .seed = 1, .shape = {1, 3, 32, 32});
    tn_net_export(net, scratch_path("own"));
    assert_int_equal(tn_params_load(tn_app_ctx(app), scratch_path("own-0000.params"), NULL, &own), TN_OK);
    assert_int_equal(tn_params_create(&out), TN_OK);
    for (size_t i = 0; i < tn_params_count(own); i++) {
        char name[LINE_BYTES];
        tn_array *a = NULL;

        assert_int_equal(tn_params_at(own, i, &a), TN_OK);
        (void)snprintf(name, sizeof name, "other_%s%s", tn_params_name(own, i) + strlen("arg:mobilenet0_25_"),
                       i == 5 ? "s" : "");
        assert_int_equal(tn_params_add(out, name, a), TN_OK);
        tn_array_release(a);
    }
    assert_int_equal(tn_params_save(out, scratch_path("other.params")), TN_OK);
    tn_params_destroy(out);
    tn_params_destroy(own);
    tn_net_load_params(net, scratch_path("other.params"));
    app_fails(app, "other_batchnorm1_beta");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_mxnets),
        cmocka_unit_test(outputs_are_mxnets),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(options_make_nets),
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(files_of_other_names_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
