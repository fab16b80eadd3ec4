/* The helpers of tests/exec. */
#include "context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void test_ok(tn_status st, const char *what, const char *file, int line)
{
    if (st) {
        print_error("%s:%d: %s: %s: %s\n", file, line, what, tni_status_name(st), tni_error_message());
        fail();
    }
}

const char *const *test_variant;

static const char *const variants[][4] = {
    {"engine.type=threaded"},  {"engine.type=threaded", "engine.inline_ns=0"},
    {"engine.type=naive"},     {"device.default=fake:0", "plugin.fake.seed=3", "plugin.fake.delay_us=20"},
    {"memory.cpu.pool=round"}, {"run.deterministic=threads"},
};

int test_variants_run(int (*group)(void))
{
    int failed = 0;

    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        test_variant = variants[v];
        print_message("with %s %s\n", variants[v][0], variants[v][1] ? variants[v][1] : "");
        failed += group();
    }
    return failed;
}

heard test_logged = HEARD(TN_LOG_WARNING);

static void log_line(void *arg, int32_t level, const char *message)
{
    print_message("log %d: %s\n", level, message);
    heard_take(arg, level, message);
}

tn_status test_context_try(const char *const *more, tni_context **out)
{
    char path[TN_PATH_BYTES_MAX];
    /* Nets are compared with calls to the last bit, so without the passes that only keep within bounds. */
    const char *settings[32] = {"compile.passes_off=fold,fuse,layout", path, NULL};
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    tni_context_options o = {.settings = settings, .log = log_line, .log_arg = &test_logged};
    size_t n = 1;

    heard_clear(&test_logged);
    snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    for (size_t i = 0; test_variant && test_variant[i] && n < 30; i++)
        settings[++n] = test_variant[i];
    for (size_t i = 0; more && more[i] && n < 30; i++)
        settings[++n] = more[i];
    settings[n + 1] = NULL;
    return tni_context_open(&o, out);
}

tni_context *test_context(const char *const *more)
{
    tni_context *c = NULL;

    assert_ok(test_context_try(more, &c));
    return c;
}

void test_context_close(tni_context *c)
{
    assert_ok(tni_context_close(c, 0));
}

void test_record(bool on, bool train)
{
    tni_scope_get()->recording = on;
    tni_scope_get()->training = train;
}

uint64_t test_cuts(tni_context *c)
{
    tni_exec_stats stats;

    tni_exec_stats_get(c, &stats);
    return stats.cuts;
}

tni_array *test_array(tni_context *c, int32_t ndim, const int64_t *shape, const float *values)
{
    tni_device *d;
    tni_array *a = NULL;

    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_array_create(c->space, d, TN_F32, ndim, shape, "test", &a));
    if (values)
        assert_ok(tni_array_write(a, values, tni_array_bytes(a)));
    return a;
}

tni_array *test_vector(tni_context *c, int64_t count, const float *values)
{
    return test_array(c, 1, &count, values);
}

void test_values(tni_array *a, const float *expected, size_t count, float tolerance)
{
    float got[1024];

    assert_true(count <= 1024);
    assert_int_equal(tni_array_count(a), count);
    assert_ok(tni_array_read(a, got, count * sizeof *got));
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= tolerance)) {
            print_error("element %zu: got %g, expected %g\n", i, (double)got[i], (double)expected[i]);
            fail();
        }
}

void test_attrs_take(test_attrs *a, va_list pairs)
{
    const char *pair;

    for (a->count = 0; (pair = va_arg(pairs, const char *)) != NULL; a->count++) {
        char *name = a->buffer[a->count];

        assert_true(a->count < TEST_ATTRS && strlen(pair) < sizeof a->buffer[0]);
        strcpy(name, pair);
        *strchr(name, '=') = '\0';
        a->names[a->count] = name;
        a->texts[a->count] = strchr(pair, '=') + 1;
    }
}

tni_array *test_op(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in, ...)
{
    tni_array *out[4] = {NULL};
    test_attrs a;
    va_list pairs;

    va_start(pairs, in);
    test_attrs_take(&a, pairs);
    va_end(pairs);
    assert_ok(tni_invoke_text(c, op, in_count, in, a.count, a.names, a.texts, 4, out, NULL));
    return out[0];
}
