/* Saved, exported, loaded again: the same outputs; what does not fit is refused and changes nothing. */
#include "nn/support.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t input[4] = {3, 2, 8, 8};

static tn_net *make(tn_app *app, int64_t units, uint64_t seed)
{
    tn_net *net = tn_net_new(app, .name = "n"), *inner;

    tn_net_conv2d(net, .channels = 3, .kernel = {3}, .activation = "relu");
    tn_net_batchnorm(net);
    inner = tn_net_sequential(net, .name = "tail");
    tn_net_dropout(inner, .rate = 0.5);
    tn_net_dense(inner, .units = units);
    tn_net_init(net, .seed = seed, .shape = {3, 2, 8, 8});
    return net;
}

/* A step of training, so that running statistics are not what they began as. */
static void train_once(tn_app *app, tn_net *net)
{
    const int64_t labels[1] = {3};
    tn_trainer *t = tn_trainer_new(net, .lr = 0.1);

    tn_app_record(app);
    tn_app_backward(app, tn_loss_softmax_ce(app, tn_net_forward(net, nn_array(app, 4, input, 1)),
                                            tn_app_array(app, 1, labels, NULL)));
    tn_trainer_step(t, 3);
}

static size_t output(tn_app *app, tn_net *net, float *out)
{
    tn_array *y = tn_net_forward(net, nn_array(app, 4, input, 9));

    if (!y)
        print_error("%s\n", tn_app_error(app));
    return nn_read(app, y, out, 64);
}

static void test_params(void **state)
{
    char *folder = nn_folder(), path[512], a_hash[65], b_hash[65];
    tn_app *app = nn_open(NULL);
    tn_net *a = make(app, 4, 1), *b = make(app, 4, 2), *c = make(app, 5, 3);
    float x[64], y[64];

    (void)state;
    train_once(app, a);
    (void)snprintf(path, sizeof path, "%s/a.params", folder);
    tn_net_save(a, path);
    assert_int_equal(output(app, a, x), 12);
    assert_int_equal(output(app, b, y), 12);
    assert_memory_not_equal(x, y, 12 * sizeof *x);
    tn_net_load_params(b, path);
    assert_int_equal(output(app, b, y), 12);
    assert_memory_equal(x, y, 12 * sizeof *x);
    assert_true(tn_net_sha256(a, a_hash) && tn_net_sha256(b, b_hash));
    assert_string_equal(a_hash, b_hash);

    assert_int_equal(output(app, c, x), 15);
    tn_net_load_params(c, path); /* another width: refused, nothing changed */
    assert_non_null(strstr(tn_app_error(app), "parameter 2.1.weight is 5×108, the file holds 4×108"));
    tn_app_clear(app);
    assert_int_equal(output(app, c, y), 15);
    assert_memory_equal(x, y, 15 * sizeof *x);
    tn_net_load_params(c, "/nowhere/at/all");
    nn_close_failed(app, "/nowhere/at/all", 2);
    nn_folder_remove(folder);
}

/* ---- a body with another head ------------------------------------------------------------------------- */

static tn_x old_head(tn_x x)
{
    return tn_dense(tn_dense(x, .units = 3, .name = "body"), .units = 4, .name = "old");
}

static tn_x new_head(tn_x x)
{
    return tn_dense(tn_dense(x, .units = 3, .name = "body"), .units = 5, .name = "new");
}

static tn_x body_alone(tn_x x)
{
    return tn_dense(x, .units = 3, .name = "body");
}

static tn_x wide_body(tn_x x)
{
    return tn_dense(tn_dense(x, .units = 3, .name = "other"), .units = 7, .name = "body");
}

/* Loads `path` with these flags; the values are another net's afterwards, or as they were. */
static void some(const char *path, tn_x (*function)(tn_x x), int32_t flags, size_t taken, const char *text)
{
    const int64_t shape[2] = {2, 6};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, function, .name = "b");
    float before[3][64], after[3][64];

    tn_net_init(net, .seed = 8, .shape = {2, 6});
    for (size_t i = 0; i < tn_net_param_count(net) && i < 3; i++)
        (void)nn_read(app, tn_net_param(net, tn_net_param_name(net, i)), before[i], 64);
    assert_int_equal(tn_net_load_some(net, path, flags), taken);
    if (text) {
        if (!strstr(tn_app_error(app), text))
            fail_msg("flags %d: %s", flags, tn_app_error(app));
        tn_app_clear(app);
    }
    for (size_t i = 0; i < tn_net_param_count(net) && i < 3; i++) {
        const size_t count = nn_read(app, tn_net_param(net, tn_net_param_name(net, i)), after[i], 64);

        assert_int_equal(memcmp(before[i], after[i], count * sizeof(float)) != 0,
                         taken && (i == 0 || (i == 2 && taken == 4)));
    }
    assert_non_null(tn_net_forward(net, nn_array(app, 2, shape, 1)));
    nn_close(app);
}

static void test_some(void **state)
{
    char *folder = nn_folder(), path[512], prefix[512], exported[560];
    const int32_t both = TN_PARAMS_MISSING | TN_PARAMS_EXTRA;
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, old_head, .name = "a");

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a.params", folder);
    (void)snprintf(prefix, sizeof prefix, "%s/a", folder);
    (void)snprintf(exported, sizeof exported, "%s/a-0000.params", folder);
    tn_net_init(net, .seed = 4, .shape = {2, 6});
    tn_net_save(net, path);
    tn_net_export(net, prefix);
    nn_close(app);
    for (int i = 0; i < 2; i++) { /* structural names, and those of the graph, with another net's */
        const char *file = i ? exported : path;

        some(file, new_head, both, 2, NULL);
        some(file, old_head, 0, 4, NULL);
        some(file, old_head, TN_PARAMS_MISSING, 4, NULL);
        some(file, old_head, TN_PARAMS_EXTRA, 4, NULL);
        some(file, body_alone, TN_PARAMS_EXTRA, 2, NULL);
        some(file, body_alone, 0, 0, "holds 4 arrays, net b has 2 parameters");
        some(file, body_alone, TN_PARAMS_MISSING, 0,
             i ? "\"arg:a_old_weight\", which net b has not" : "\"old.weight\", which net b has not");
        some(file, new_head, TN_PARAMS_EXTRA, 0, "new");
        some(file, wide_body, both, 0, "is 7×3, the file holds 3×6");
    }
    some(path, new_head, 4, 0, "flags 4 are not known");
    some("/nowhere/at/all", new_head, both, 0, "/nowhere/at/all");
    app = nn_open(NULL);
    net = tn_net_load(app, prefix);
    assert_int_equal(tn_net_load_some(net, path, both), 0);
    nn_close_failed(app, "was loaded: it has its values", 1);
    app = nn_open(NULL);
    net = tn_net_new(app); /* numbers for names */
    tn_net_dense(net, .units = 3);
    tn_net_init(net, .shape = {2, 6});
    assert_int_equal(tn_net_load_some(net, path, both), 0);
    nn_close_failed(app, "has no parameter of net net; the first one there is \"body.weight\"", 2);
    nn_folder_remove(folder);
}

/* A net whose sizes are not known yet takes them from the file. */
static void test_deferred(void **state)
{
    char *folder = nn_folder(), path[512];
    tn_app *app = nn_open(NULL);
    tn_net *a = make(app, 4, 1), *b = tn_net_new(app), *inner;
    float x[64], y[64];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a.params", folder);
    tn_net_save(a, path);
    tn_net_conv2d(b, .channels = 3, .kernel = {3}, .activation = "relu");
    tn_net_batchnorm(b);
    inner = tn_net_sequential(b);
    tn_net_dropout(inner, .rate = 0.5);
    tn_net_dense(inner, .units = 4);
    tn_net_load_params(b, path);
    tn_net_hybridize(b);
    assert_int_equal(output(app, a, x), 12);
    assert_int_equal(output(app, b, y), 12);
    assert_memory_equal(x, y, 12 * sizeof *x);
    nn_close(app);
    nn_folder_remove(folder);
}

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void test_export(void **state)
{
    char *folder = nn_folder(), prefix[256], file[512], a_hash[65], b_hash[65], *json;
    tn_app *app = nn_open(NULL);
    tn_net *a = make(app, 4, 1), *b;
    tn_params *params = NULL;
    float x[64], y[64];

    (void)state;
    train_once(app, a);
    (void)snprintf(prefix, sizeof prefix, "%s/model", folder);
    tn_net_export(a, prefix);
    assert_int_equal(output(app, a, x), 12);
    assert_true(tn_net_sha256(a, a_hash));
    nn_close(app);

    app = nn_open(NULL);
    b = tn_net_load(app, prefix);
    assert_int_equal(output(app, b, y), 12);
    assert_memory_equal(x, y, 12 * sizeof *x);
    assert_true(tn_net_sha256(b, b_hash));
    assert_string_equal(a_hash, b_hash);
    assert_int_equal(tn_net_param_count(b), 8);
    tn_net_dense(b, .units = 3); /* a loaded net takes no layers */
    nn_close_failed(app, "was loaded", 1);

    (void)snprintf(file, sizeof file, "%s-symbol.json", prefix);
    json = slurp(file);
    assert_non_null(strstr(json, "\"name\": \"data\""));
    assert_non_null(strstr(json, "n_conv0_weight"));
    assert_non_null(strstr(json, "BatchNorm"));
    free(json);
    app = nn_open(NULL);
    (void)snprintf(file, sizeof file, "%s-0000.params", prefix);
    assert_int_equal(tn_params_load(tn_app_ctx(app), file, NULL, &params), TN_OK);
    assert_int_equal(tn_params_count(params), 8);
    assert_string_equal(tn_params_name(params, 0), "arg:n_conv0_weight");
    assert_string_equal(tn_params_name(params, 7), "aux:n_batchnorm0_running_var");
    tn_params_destroy(params);
    assert_null(tn_net_load_files(app, "/nowhere/x.json", file, NULL));
    nn_close_failed(app, "/nowhere/x.json", 2);
    app = nn_open(NULL);
    (void)snprintf(prefix, sizeof prefix, "%s/model-symbol.json", folder);
    assert_null(tn_net_load_files(app, prefix, file, "pixels"));
    nn_close_failed(app, "\"pixels\"", 2);
    nn_folder_remove(folder);
}

static void test_not_ready(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);

    (void)state;
    tn_net_export(net, "/tmp/x");
    nn_close_failed(app, "no layers", 1);
    app = nn_open(NULL);
    net = tn_net_new(app);
    tn_net_dense(net, .units = 2);
    tn_net_init(net);
    tn_net_save(net, "/tmp/x");
    nn_close_failed(app, "no values yet", 1);
    app = nn_open(NULL);
    net = make(app, 2, 1);
    tn_net_export(net, "/nowhere/at/all/x");
    nn_close_failed(app, "/nowhere/at/all/x-symbol.json", 1);
}

static int count_of(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    (void)closedir(dir);
    return count;
}

static uint64_t bytes_of(const char *path, unsigned char *out)
{
    FILE *file = fopen(path, "rb");
    size_t n;

    assert_non_null(file);
    n = fread(out, 1, 1 << 16, file);
    (void)fclose(file);
    assert_in_range(n, 1, (1 << 16) - 1);
    return n;
}

/* A graph's file that cannot be replaced: the parameters stay as they were, or away. */
static void test_export_back(void **state)
{
    static unsigned char old[1 << 16], new[1 << 16];
    char *folder = nn_folder(), prefix[256], json[512], file[512];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/model", folder);
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    (void)snprintf(file, sizeof file, "%s-0000.params", prefix);
    for (int there = 1; there >= 0; there--) {
        tn_app *app = nn_open(NULL);
        tn_net *net = make(app, 4, 1);
        uint64_t n = 0;

        train_once(app, net);
        if (there) {
            tn_net_export(net, prefix);
            n = bytes_of(file, old);
            train_once(app, net);
            assert_int_equal(unlink(json), 0);
            assert_int_equal(mkdir(json, 0700), 0);
        } else {
            assert_int_equal(unlink(file), 0);
        }
        tn_net_export(net, prefix);
        assert_int_equal(count_of(folder), 1 + there);
        if (there) {
            assert_int_equal(bytes_of(file, new), n);
            assert_memory_equal(old, new, n);
        }
        nn_close_failed(app, "model-symbol.json: Is a directory", 1);
    }
    assert_int_equal(rmdir(json), 0);
    nn_folder_remove(folder);
}

typedef struct writer {
    tn_net *net;
    const char *prefix;
} writer;

static void *exports(void *arg)
{
    const writer *w = arg;

    for (int i = 0; i < 20; i++)
        tn_net_export(w->net, w->prefix);
    return NULL;
}

/* Two threads write one pair: each whole, nothing is left beside it. */
static void test_export_together(void **state)
{
    char *folder = nn_folder(), prefix[256];
    pthread_t threads[2];
    tn_app *apps[2];
    writer w[2];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/model", folder);
    for (int i = 0; i < 2; i++) {
        apps[i] = nn_open(NULL);
        w[i] = (writer){make(apps[i], 4, 1), prefix};
        train_once(apps[i], w[i].net);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, exports, &w[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        if (!tn_app_ok(apps[i]))
            fail_msg("%s", tn_app_error(apps[i]));
        nn_close(apps[i]);
    }
    assert_int_equal(count_of(folder), 2);
    nn_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_params),      cmocka_unit_test(test_deferred),
        cmocka_unit_test(test_some),        cmocka_unit_test(test_export),
        cmocka_unit_test(test_export_back), cmocka_unit_test(test_export_together),
        cmocka_unit_test(test_not_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
