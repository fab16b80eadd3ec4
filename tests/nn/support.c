/* The helpers of tests/nn. */
#include "nn/support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"

#define SETTINGS_MAX 32

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    assert_non_null(value);
    return value;
}

tn_app *nn_open(const char *setting, ...)
{
    static char plugins[4096], data[4096];
    /* Nets are compared with calls to the last bit, so without the passes that only keep within bounds. */
    const char *settings[SETTINGS_MAX + 1] = {plugins, data, "compile.passes_off=fold,fuse,layout"};
    size_t n = 3;
    va_list more;
    tn_app *app;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", environment("TENON_TEST_PLUGINS"));
    (void)snprintf(data, sizeof data, "data.path=%s/examples/data", environment("TENON_TEST_SOURCE"));
    va_start(more, setting);
    for (const char *s = setting; s && n < SETTINGS_MAX; s = va_arg(more, const char *))
        settings[n++] = s;
    va_end(more);
    app = tn_app_open(.name = "test", .settings = settings, .no_environment = 1);
    assert_non_null(app);
    if (!tn_app_ok(app))
        print_error("%s\n", tn_app_error(app));
    assert_true(tn_app_ok(app));
    return app;
}

void nn_close(tn_app *app)
{
    if (!tn_app_ok(app))
        print_error("%s\n", tn_app_error(app));
    assert_true(tn_app_ok(app));
    assert_int_equal(tn_app_close(app), 0);
}

void nn_close_failed(tn_app *app, const char *text, int exit_code)
{
    assert_false(tn_app_ok(app));
    if (!strstr(tn_app_error(app), text))
        print_error("the error is: %s\nand should contain: %s\n", tn_app_error(app), text);
    assert_non_null(strstr(tn_app_error(app), text));
    assert_int_equal(tn_app_close(app), exit_code);
}

void nn_numbers(float *out, size_t count, uint64_t seed)
{
    uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;

    for (size_t i = 0; i < count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        out[i] = (float)((double)(x >> 33) / 2147483648.0 * 2 - 1);
    }
}

tn_array *nn_array(tn_app *app, int32_t ndim, const int64_t *shape, uint64_t seed)
{
    size_t count = 1;
    float *values;
    tn_array *a;

    for (int32_t i = 0; i < ndim; i++)
        count *= (size_t)shape[i];
    values = calloc(count ? count : 1, sizeof *values);
    assert_non_null(values);
    nn_numbers(values, count, seed);
    a = tn_app_array(app, ndim, shape, values);
    free(values);
    return a;
}

size_t nn_read(tn_app *app, tn_array *a, float *out, size_t room)
{
    size_t count = tn_array_count(a);

    assert_non_null(a);
    assert_true(count <= room);
    if (!tn_app_read(app, a, count, out))
        print_error("%s\n", tn_app_error(app));
    assert_true(tn_app_ok(app));
    return count;
}

size_t nn_read_module(tn_app *app, tn_module *m, float *out, size_t room)
{
    tn_params *p = tn_module_params(m);
    size_t n = 0;

    for (size_t i = 0; i < tn_params_count(p); i++) {
        tn_array *a = NULL;

        assert_int_equal(tn_params_at(p, i, &a), TN_OK);
        n += nn_read(app, a, out + n, room - n);
        tn_array_release(a);
    }
    tn_params_destroy(p);
    return n;
}

size_t nn_read_params(tn_app *app, tn_net *net, float *out, size_t room)
{
    size_t at = 0;

    for (size_t p = 0; p < tn_net_param_count(net); p++) {
        const char *name = tn_net_param_name(net, p);

        at += nn_read(app, tn_net_param(net, name), out + at, room - at);
        if (tn_net_param_grad(net, name))
            at += nn_read(app, tn_net_param_grad(net, name), out + at, room - at);
    }
    return at;
}

void nn_shape(tn_array *a, int32_t ndim, const int64_t *shape)
{
    const int64_t *have = NULL;
    int32_t have_ndim = -1;

    assert_non_null(a);
    assert_int_equal(tn_array_shape(a, &have_ndim, &have), TN_OK);
    assert_int_equal(have_ndim, ndim);
    for (int32_t i = 0; i < ndim; i++)
        assert_int_equal(have[i], shape[i]);
}

static char *folder_below(const char *root)
{
    char pattern[200], *folder;

    (void)snprintf(pattern, sizeof pattern, "%s/tenon-nn-XXXXXX", root);
    folder = mkdtemp(pattern) ? strdup(pattern) : NULL;
    assert_non_null(folder);
    return folder;
}

char *nn_folder(void)
{
    return folder_below(scratch_root());
}

char *nn_quick_folder(void)
{
    return folder_below(scratch_quick_root());
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

void nn_folder_remove(char *folder)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
