/*
 * Loops and branches as MXNet 1.9.1 saved them give what it computed for them, gradients too: as loaded, and
 * once they were saved and loaded here, in each engine. With TENON_CONTROL_SAVED=FOLDER what is saved here
 * stays there, for `tests/oracle/control.py --check`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mxnet/replay.h"

static bound bounds(const call *c, stage s, int32_t dtype)
{
    (void)c, (void)s, (void)dtype;
    return (bound){1e-5, 1e-6};
}

static const char *path_of(const char *name, const char *end)
{
    static char path[4096];
    const char *source = getenv("TENON_TEST_SOURCE");

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/control/%s%s", source ? source : ".", name,
                   end);
    return path;
}

static tn_ctx *open_with(const char *engine)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char plugins[4096];
    const char *const settings[] = {engine, plugins, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    tn_ctx *ctx = NULL;

    assert_non_null(folder);
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", folder);
    if (tn_open(&options, &ctx))
        fail_msg("%s", tn_error_text());
    return ctx;
}

static void same_numbers(tn_ctx *ctx, const call *c, tn_symbol *s, const char *what)
{
    tn_cached_op *net = NULL;
    verdict v;

    assert_int_equal(tn_cached_op_create(ctx, s, NULL, &net), TN_OK);
    for (stage st = VALUES; st <= GRADIENTS; st++) {
        if (!replay_net(ctx, net, c, st, bounds, &v))
            fail_msg("%s has no %s", c->op, st == VALUES ? "outputs" : "gradients");
        if (*v.text)
            fail_msg("%s, %s: %s", c->op, what, v.text);
    }
    tn_cached_op_release(net);
}

static void save(tn_symbol *s, const char *name)
{
    const char *folder = getenv("TENON_CONTROL_SAVED");
    char path[4096];

    if (!folder)
        return;
    (void)snprintf(path, sizeof path, "%s/%s-symbol.json", folder, name);
    if (tn_symbol_save(s, path))
        fail_msg("%s", tn_error_text());
}

static void replayed(void **state)
{
    tn_ctx *ctx = open_with(*state);
    recording r;

    assert_true(recording_open(path_of("calls", ".txt.gz"), &r));
    assert_true(r.count >= 12);
    for (size_t i = 0; i < r.count; i++) {
        tn_symbol *s = NULL, *again = NULL;
        char *json = NULL;

        if (tn_symbol_load(ctx, path_of(r.calls[i].op, "-symbol.json"), &s))
            fail_msg("%s: %s", r.calls[i].op, tn_error_text());
        same_numbers(ctx, &r.calls[i], s, "as MXNet wrote it");
        assert_int_equal(tn_symbol_to_json(s, &json), TN_OK);
        assert_int_equal(tn_symbol_from_json(ctx, json, strlen(json), &again), TN_OK);
        same_numbers(ctx, &r.calls[i], again, "as it was written here");
        save(again, r.calls[i].op);
        tn_free(json);
        tn_symbol_release(s);
        tn_symbol_release(again);
    }
    recording_close(&r);
    assert_int_equal(tn_close(ctx), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(replayed, (void *)"engine.type=threaded"),
        cmocka_unit_test_prestate(replayed, (void *)"engine.type=naive"),
        cmocka_unit_test_prestate(replayed, (void *)"engine.type=stepped"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
