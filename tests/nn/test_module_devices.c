/* Modules on several devices: each has a part of a batch, and all have the parameters of one. */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tenon/nn_module.h"

#define ROOM 512

/* data -> fc1 -> relu -> fc2 -> softmax: no statistics of a batch, but for those of all its parts. */
static tn_symbol *mlp_symbol(tn_app *app, bool synced)
{
    const struct {
        const char *op, *name, *attrs[5];
    } nodes[] = {{"FullyConnected", "fc1", {"num_hidden", "6"}},
                 {"_contrib_SyncBatchNorm", "norm", {"key", "file", "ndev", "3"}},
                 {"relu", "act", {NULL}},
                 {"FullyConnected", "fc2", {"num_hidden", "3"}},
                 {"SoftmaxOutput", "softmax", {NULL}}};
    tn_symbol *s = NULL;

    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), "data", &s), TN_OK);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i += i || synced ? 1 : 2) {
        tn_symbol *in = s;
        const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                     .in_count = 1,
                                     .op = nodes[i].op,
                                     .name = nodes[i].name,
                                     .attrs = nodes[i].attrs,
                                     .in = &in};

        assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &s), TN_OK);
        tn_symbol_release(in);
    }
    return s;
}

static tn_module *mlp(tn_app *app)
{
    tn_symbol *s = mlp_symbol(app, false);
    tn_module *m = tn_module_new(app, .symbol = s);

    tn_symbol_release(s);
    return m;
}

/* Steps over batches of several sizes; parameters, then outputs and input gradients of the last one. The
 * module is of a file, unless that is NULL. */
static size_t module_steps(const char *json, const char *devices, const char *store, int update, float *out)
{
    static const int64_t rows[] = {6, 5, 2, 6};
    tn_app *app = nn_open(devices, NULL);
    tn_module *m = json ? tn_module_new(app, .json = json) : mlp(app);
    size_t n;

    tn_module_bind(m, .shapes = {{6, 4}}, .input_grads = 1);
    tn_module_init_params(m, .seed = 3);
    tn_module_init_optimizer(m, .lr = 0.2, .momentum = 0.9, .kvstore = store, .update_on_kvstore = update);
    for (int step = 0; step < 4; step++) {
        const int64_t shape[] = {rows[step], 4};
        float classes[6];
        tn_array *in[2] = {nn_array(app, 2, shape, (uint64_t)step)};

        for (int i = 0; i < rows[step]; i++)
            classes[i] = (float)((i + step) % 3);
        in[1] = tn_app_array(app, 1, shape, classes);
        tn_module_forward(m, 1, 2, in);
        tn_module_backward(m, NULL);
        if (step < 3)
            tn_module_update(m);
    }
    n = nn_read_module(app, m, out, ROOM);
    n += nn_read(app, tn_module_output(m, 0), out + n, ROOM - n);
    n += nn_read(app, tn_module_input_grad(m, 0), out + n, ROOM - n);
    nn_close(app);
    return n;
}

static void several_devices(void **state)
{
    static const struct {
        const char *devices, *store;
        int update;
    } rows[] = {{"device.default=cpu:0,cpu:1", "local", 1},
                {"device.default=cpu:0,cpu:1", "device", -1},
                {"device.default=cpu:0,cpu:1", "device", 1},
                {"device.default=cpu:0,cpu:1", NULL, 0}};
    static float one[ROOM], first[ROOM], other[ROOM];
    const size_t n = module_steps(NULL, "device.default=cpu", NULL, 0, one);
    tn_app *app;
    tn_module *m;
    tn_array *in[2];

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        assert_int_equal(
            module_steps(NULL, rows[r].devices, rows[r].store, rows[r].update, r ? other : first), n);
        if (r)
            assert_memory_equal(first, other, n * sizeof *first);
    }
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(one[i] - first[i]) < 1e-5f);
    app = nn_open("device.default=cpu:0,cpu:1", NULL); /* a row for two devices */
    m = mlp(app);
    in[0] = nn_array(app, 2, (const int64_t[]){1, 4}, 1);
    in[1] = nn_array(app, 1, (const int64_t[]){1}, 1);
    tn_module_bind(m, .shapes = {{1, 4}});
    tn_module_init_params(m, .seed = 3);
    tn_module_forward(m, 0, 1, in); /* not in training: the first one runs it */
    assert_non_null(tn_module_output(m, 0));
    tn_module_forward(m, 1, 2, in);
    nn_close_failed(app, "1 rows for 2 devices", 1);
}

/* A file's SyncBatchNorm is of as many devices as the module has, whatever the file says. */
static void synced_file(void **state)
{
    static float one[ROOM], two[ROOM];
    char *folder = nn_quick_folder(), json[512];
    tn_app *app = nn_open("device.default=cpu", NULL);
    tn_symbol *s = mlp_symbol(app, true);
    size_t n;

    (void)state;
    (void)snprintf(json, sizeof json, "%s/net-symbol.json", folder);
    assert_int_equal(tn_symbol_save(s, json), TN_OK);
    tn_symbol_release(s);
    nn_close(app);
    n = module_steps(json, "device.default=cpu", NULL, 0, one);
    assert_int_equal(module_steps(json, "device.default=cpu:0,cpu:1", NULL, 0, two), n);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(one[i] - two[i]) < 1e-5f))
            fail_msg("number %zu is %.9g, of one device %.9g", i, (double)two[i], (double)one[i]);
    nn_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_devices),
        cmocka_unit_test(synced_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
