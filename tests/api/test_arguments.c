/*
 * Wrong arguments to every public function: a status with a text, nothing written, nothing broken. The last
 * test reads the headers and fails if one of their functions is not called here.
 */
#include "api/support.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>

#include "support/scratch.h"

#define HUGE_COUNT 0xffffffffu
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct fixture {
    tn_ctx *ctx, *other;
    tn_array *a, *b, *foreign; /* (2, 3), (4), (2, 3) of another context */
    tn_symbol *x, *net, *foreign_symbol;
    const tn_device *foreign_device;
    int64_t shape[2];
} fixture;

static fixture f;

static int open_all(void **state)
{
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = "FullyConnected",
                                 .name = "fc",
                                 .attrs = LIST("num_hidden", "4"),
                                 .in = &f.x};

    (void)state;
    f = (fixture){.shape = {2, 3}};
    f.ctx = test_open(NULL);
    f.other = test_open(NULL);
    assert_ok(tn_array_zeros(f.ctx, TN_F32, 2, f.shape, NULL, &f.a));
    assert_ok(tn_array_zeros(f.ctx, TN_F32, 1, (int64_t[]){4}, NULL, &f.b));
    assert_ok(tn_array_zeros(f.other, TN_F32, 2, f.shape, NULL, &f.foreign));
    assert_ok(tn_device_get(f.other, NULL, &f.foreign_device));
    assert_ok(tn_symbol_variable(f.ctx, "x", &f.x));
    assert_ok(tn_symbol_variable(f.other, "x", &f.foreign_symbol));
    assert_ok(tn_symbol_op(f.ctx, &call, &f.net));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tn_array_release(f.a);
    tn_array_release(f.b);
    tn_array_release(f.foreign);
    tn_symbol_release(f.x);
    tn_symbol_release(f.net);
    tn_symbol_release(f.foreign_symbol);
    test_close(f.ctx);
    test_close(f.other);
    return 0;
}

/* ---- base, errors, context ----------------------------------------------------------------------- */

static void base_and_errors(void **state)
{
    tn_error_info e = {.struct_size = TN_SIZE(tn_error_info)}, bad = {0};
    int32_t dtype = 77;

    (void)state;
    assert_null(tn_dtype_name(-1));
    assert_null(tn_dtype_name(TN_DTYPE_LIMIT));
    assert_fails(tn_dtype_parse(NULL, &dtype), TN_E_ARG);
    assert_fails(tn_dtype_parse("float32", NULL), TN_E_ARG);
    assert_fails(tn_dtype_parse("float33", &dtype), TN_E_DTYPE);
    assert_int_equal(dtype, 77);
    assert_int_equal(tn_error_number(), TN_E_DTYPE);
    assert_ok(tn_dtype_parse("f16", &dtype));
    assert_int_equal(dtype, TN_F16);
    assert_non_null(tn_status_name(-5));
    assert_non_null(tn_status_name(1000));
    assert_true(tn_version()[0] && tn_build_id());
    tn_error_clear();
    assert_int_equal(tn_error_code(), TN_OK);
    assert_int_equal(tn_error_number(), 0);
    assert_string_equal(tn_error_text(), "");
    assert_fails(tn_error_at(0, NULL), TN_E_ARG);
    assert_fails(tn_error_at(0, &bad), TN_E_ARG);
    assert_fails(tn_error_at(tn_error_count(), &e), TN_E_ARG);
    assert_fails(tn_error_find(1, NULL), TN_E_ARG);
    assert_fails(tn_error_find(999999, &e), TN_E_KEY);
    assert_ok(tn_error_at(0, &e));
    assert_ok(tn_error_find(TN_E_SHAPE, &e));
    assert_true(e.status == TN_E_SHAPE && e.sentence[0] && e.advice[0]);
}

static void opening(void **state)
{
    tn_open_options o = {0};
    tn_ctx *ctx = NULL;

    (void)state;
    assert_fails(tn_open(NULL, NULL), TN_E_ARG);
    assert_fails(tn_open(&o, &ctx), TN_E_ARG); /* no struct_size */
    o.struct_size = 100000;
    assert_fails(tn_open(&o, &ctx), TN_E_ARG);
    o = (tn_open_options){.struct_size = TN_SIZE(tn_open_options), .flags = 0x80000000u};
    assert_fails(tn_open(&o, &ctx), TN_E_ARG);
    assert_fails(test_open_with(LIST("engine.typo=naive"), &ctx), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "engine.type"));
    assert_fails(test_open_with(LIST("engine.type=fast"), &ctx), TN_E_ARG);
    assert_fails(test_open_with(LIST("no assignment"), &ctx), TN_E_ARG);
    assert_fails(test_open_with(LIST("engine.queue_max=1"), &ctx), TN_E_ARG);
    assert_fails(test_open_with(LIST("plugins.require=no-such-plugin"), &ctx), TN_E_DEVICE);
    assert_non_null(strstr(tn_error_text(), "no-such-plugin"));
    assert_fails(test_open_with(LIST("device.default=abacus:0"), &ctx), TN_E_DEVICE);
    o = (tn_open_options){.struct_size = TN_SIZE(tn_open_options),
                          .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                          .files = LIST(scratch_path("absent.ini"))};
    assert_fails(tn_open(&o, &ctx), TN_E_IO);
    o.files = LIST(scratch_write("bad.ini", "[engine]\ntype=naive\ntype=naive\n", 31));
    assert_fails(tn_open(&o, &ctx), TN_E_FORMAT);
    assert_null(ctx);
    assert_ok(tn_close(NULL));
    tn_free(NULL);
}

/* Members that a newer program knows may not be set; older programs' structs are shorter. */
static void sizes_of_structs(void **state)
{
    struct {
        tn_open_options known;
        uint64_t newer;
    } o = {.known = {.struct_size = (uint32_t)sizeof o, .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM}};
    struct {
        tn_stats known;
        uint64_t newer;
    } s = {.known = {.struct_size = (uint32_t)sizeof s}, .newer = 7};
    tn_ctx *ctx = NULL;

    (void)state;
    o.newer = 1;
    assert_fails(tn_open(&o.known, &ctx), TN_E_UNSUPPORTED);
    o.newer = 0;
    assert_ok(tn_open(&o.known, &ctx));
    assert_ok(tn_ctx_stats(ctx, &s.known));
    assert_int_equal(s.newer, 0);
    s.newer = 7;
    s.known.frames = 99;
    s.known.struct_size = (uint32_t)offsetof(tn_stats, frames);
    assert_ok(tn_ctx_stats(ctx, &s.known));
    assert_true(s.known.frames == 99 && s.newer == 7);
    assert_ok(tn_close(ctx));
}

static void contexts(void **state)
{
    tn_option_info info = {.struct_size = TN_SIZE(tn_option_info)}, bad = {0};
    tn_plugin_info plugin = {.struct_size = TN_SIZE(tn_plugin_info)}, bad_plugin = {0};
    int64_t i = 5;
    double d = 5;
    size_t n = 0;

    (void)state;
    assert_fails(tn_ctx_log(NULL, 0, "x"), TN_E_ARG);
    assert_fails(tn_ctx_log(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_ctx_log(f.ctx, 9, "x"), TN_E_ARG);
    assert_null(tn_ctx_option(NULL, "engine.type"));
    assert_null(tn_ctx_option(f.ctx, NULL));
    assert_null(tn_ctx_option(f.ctx, "engine.tpye"));
    assert_int_equal(tn_error_code(), TN_E_KEY);
    assert_fails(tn_ctx_option_int(NULL, "engine.threads", &i), TN_E_ARG);
    assert_fails(tn_ctx_option_int(f.ctx, "engine.type", &i), TN_E_ARG);
    assert_fails(tn_ctx_option_int(f.ctx, "engine.none", &i), TN_E_KEY);
    assert_fails(tn_ctx_option_int(f.ctx, "engine.threads", NULL), TN_E_ARG);
    assert_fails(tn_ctx_option_float(NULL, "train.lr", &d), TN_E_ARG);
    assert_fails(tn_ctx_option_float(f.ctx, "train.none", &d), TN_E_KEY);
    assert_fails(tn_ctx_option_float(f.ctx, "engine.type", &d), TN_E_ARG);
    assert_true(i == 5 && d == 5);
    assert_fails(tn_ctx_option_set(NULL, "log.level", "info"), TN_E_ARG);
    assert_fails(tn_ctx_option_set(f.ctx, "log.level", NULL), TN_E_ARG);
    assert_fails(tn_ctx_option_set(f.ctx, "log.level", "loud"), TN_E_ARG);
    assert_fails(tn_ctx_option_set(f.ctx, "log.lvl", "info"), TN_E_KEY);
    assert_fails(tn_ctx_option_set(f.ctx, "engine.type", "naive"), TN_E_STATE);
    assert_fails(tn_ctx_option_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_ctx_option_count(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_ctx_option_count(f.ctx, &n));
    assert_fails(tn_ctx_option_at(f.ctx, n, &info), TN_E_ARG);
    assert_fails(tn_ctx_option_at(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_ctx_option_at(f.ctx, 0, &bad), TN_E_ARG);
    assert_fails(tn_ctx_option_at(NULL, 0, &info), TN_E_ARG);
    assert_fails(tn_option_at(tn_option_count(), &info), TN_E_ARG);
    assert_fails(tn_option_at(0, NULL), TN_E_ARG);
    assert_fails(tn_option_at(0, &bad), TN_E_ARG);
    assert_non_null(tn_abi(NULL, NULL, NULL));
    assert_fails(tn_plugin_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_plugin_count(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_plugin_count(f.ctx, &n));
    assert_fails(tn_plugin_at(f.ctx, n, &plugin), TN_E_ARG);
    assert_fails(tn_plugin_at(NULL, 0, &plugin), TN_E_ARG);
    assert_fails(tn_plugin_at(f.ctx, 0, NULL), TN_E_ARG);
    if (n)
        assert_fails(tn_plugin_at(f.ctx, 0, &bad_plugin), TN_E_ARG);
    assert_fails(tn_plugin_load(NULL, "cpu"), TN_E_ARG);
    assert_fails(tn_plugin_load(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_plugin_load(f.ctx, "no-such-plugin"), TN_E_KEY);
    assert_fails(tn_plugin_add(NULL, NULL), TN_E_ARG);
    assert_fails(tn_plugin_add(f.ctx, NULL), TN_E_ARG);
}

static void devices(void **state)
{
    tn_memory_stats m = {.struct_size = TN_SIZE(tn_memory_stats)}, bad = {0};
    const tn_device *d = NULL;
    uint64_t seed = 1, position = 1;
    int32_t count = 7;
    size_t n = 0;

    (void)state;
    assert_fails(tn_device_get(NULL, "cpu", &d), TN_E_ARG);
    assert_fails(tn_device_get(f.ctx, "cpu", NULL), TN_E_ARG);
    assert_fails(tn_device_get(f.ctx, "abacus:0", &d), TN_E_DEVICE);
    assert_fails(tn_device_get(f.ctx, "cpu:-1", &d), TN_E_ARG);
    assert_fails(tn_device_get(f.ctx, "", &d), TN_E_ARG);
    assert_fails(tn_device_get(f.ctx, "cpu:99999999999999999999", &d), TN_E_ARG);
    assert_null(d);
    assert_string_equal(tn_device_type(NULL), "");
    assert_int_equal(tn_device_index(NULL), -1);
    assert_null(tn_device_use(NULL));
    assert_fails(tn_device_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_device_count(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_device_at(f.ctx, 10000, &d), TN_E_ARG);
    assert_fails(tn_device_at(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_device_at(NULL, 0, &d), TN_E_ARG);
    assert_fails(tn_device_available(f.ctx, "abacus", &count), TN_E_DEVICE);
    assert_fails(tn_device_available(f.ctx, NULL, &count), TN_E_ARG);
    assert_fails(tn_device_available(NULL, "cpu", &count), TN_E_ARG);
    assert_int_equal(count, 7);
    assert_fails(tn_device_memory(NULL, NULL, 0, &m), TN_E_ARG);
    assert_fails(tn_device_memory(f.ctx, NULL, 0, NULL), TN_E_ARG);
    assert_fails(tn_device_memory(f.ctx, NULL, 0, &bad), TN_E_ARG);
    assert_fails(tn_device_memory(f.ctx, NULL, 17, &m), TN_E_ARG);
    assert_fails(tn_device_memory(f.ctx, f.foreign_device, 0, &m), TN_E_ARG);
    assert_fails(tn_device_trim(NULL, NULL, 0), TN_E_ARG);
    assert_fails(tn_device_trim(f.ctx, f.foreign_device, 0), TN_E_ARG);
    assert_fails(tn_wait_all(NULL), TN_E_ARG);
    assert_fails(tn_random_seed(NULL, 1, NULL), TN_E_ARG);
    assert_fails(tn_random_seed(f.ctx, 1, f.foreign_device), TN_E_ARG);
    assert_fails(tn_random_save(NULL, NULL, &seed, &position), TN_E_ARG);
    assert_fails(tn_random_save(f.ctx, NULL, NULL, &position), TN_E_ARG);
    assert_fails(tn_random_save(f.ctx, f.foreign_device, &seed, &position), TN_E_ARG);
    assert_fails(tn_random_restore(NULL, NULL, 1, 1), TN_E_ARG);
    assert_fails(tn_random_restore(f.ctx, f.foreign_device, 1, 1), TN_E_ARG);
    assert_true(seed == 1 && position == 1);
}

/* ---- arrays ----------------------------------------------------------------------------------------------
 */

static void arrays_made(void **state)
{
    const int64_t negative[] = {2, -1}, enormous[] = {INT64_MAX, INT64_MAX}, many[33] = {1};
    tn_array_memory m = {.struct_size = TN_SIZE(tn_array_memory), .ndim = 1, .shape = (int64_t[]){4}};
    float data[6] = {0};
    tn_array *a = NULL;

    (void)state;
    assert_fails(tn_array_create(NULL, TN_F32, 2, f.shape, NULL, &a), TN_E_ARG);
    assert_fails(tn_array_create(f.ctx, TN_F32, 2, f.shape, NULL, NULL), TN_E_ARG);
    assert_fails(tn_array_create(f.ctx, TN_F32, 2, NULL, NULL, &a), TN_E_ARG);
    assert_fails(tn_array_create(f.ctx, TN_DTYPE_LIMIT, 2, f.shape, NULL, &a), TN_E_DTYPE);
    assert_fails(tn_array_create(f.ctx, -1, 2, f.shape, NULL, &a), TN_E_DTYPE);
    assert_fails(tn_array_create(f.ctx, TN_F32, 33, many, NULL, &a), TN_E_SHAPE);
    assert_fails(tn_array_create(f.ctx, TN_F32, -1, f.shape, NULL, &a), TN_E_SHAPE);
    assert_fails(tn_array_create(f.ctx, TN_F32, 2, negative, NULL, &a), TN_E_SHAPE);
    assert_fails(tn_array_create(f.ctx, TN_F32, 2, enormous, NULL, &a), TN_E_SHAPE);
    assert_fails(tn_array_create(f.ctx, TN_F32, 2, f.shape, f.foreign_device, &a), TN_E_ARG);
    assert_fails(tn_array_zeros(NULL, TN_F32, 2, f.shape, NULL, &a), TN_E_ARG);
    assert_fails(tn_array_zeros(f.ctx, TN_F32, 2, f.shape, NULL, NULL), TN_E_ARG);
    assert_fails(tn_array_from(f.ctx, TN_F32, 2, f.shape, NULL, &a), TN_E_ARG);
    assert_fails(tn_array_from(f.ctx, TN_F32, 2, f.shape, data, NULL), TN_E_ARG);
    assert_fails(tn_array_from(NULL, TN_F32, 2, f.shape, data, &a), TN_E_ARG);
    assert_fails(tn_array_wrap(NULL, &m, &a), TN_E_ARG);
    assert_fails(tn_array_wrap(f.ctx, NULL, &a), TN_E_ARG);
    assert_fails(tn_array_wrap(f.ctx, &m, NULL), TN_E_ARG);
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_ARG); /* no memory */
    m.data = data;
    m.bytes = 15;
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_ARG); /* too little of it */
    m.bytes = 16;
    m.data = (char *)data + 1;
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_ARG); /* not aligned */
    m.data = data;
    m.stride = (int64_t[]){-1};
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_SHAPE);
    m.stride = (int64_t[]){INT64_MAX};
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_SHAPE);
    m.struct_size = 1;
    assert_fails(tn_array_wrap(f.ctx, &m, &a), TN_E_ARG);
    assert_null(a);
    tn_array_retain(NULL);
    tn_array_release(NULL);
}

static void arrays_asked(void **state)
{
    const int64_t *p = NULL;
    tn_array *out = NULL;
    int32_t ndim = 0;

    (void)state;
    assert_fails(tn_array_shape(NULL, &ndim, &p), TN_E_ARG);
    assert_ok(tn_array_shape(f.a, NULL, NULL));
    assert_fails(tn_array_stride(NULL, &p), TN_E_ARG);
    assert_fails(tn_array_stride(f.a, NULL), TN_E_ARG);
    assert_int_equal(tn_array_dtype(NULL), -1);
    assert_int_equal(tn_array_storage(NULL), -1);
    assert_null(tn_array_device(NULL));
    assert_int_equal(tn_array_count(NULL), 0);
    assert_int_equal(tn_array_bytes(NULL), 0);
    assert_fails(tn_array_aux(NULL, 0, &out), TN_E_ARG);
    assert_fails(tn_array_aux(f.a, 0, &out), TN_E_ARG);
    assert_fails(tn_array_aux(f.a, HUGE_COUNT, &out), TN_E_ARG);
    assert_fails(tn_array_aux(f.a, 0, NULL), TN_E_ARG);
    assert_fails(tn_array_values(NULL, &out), TN_E_ARG);
    assert_fails(tn_array_values(f.a, NULL), TN_E_ARG);
    assert_null(out);
}

static void arrays_valued(void **state)
{
    float data[6] = {0};
    double value = 3;
    tn_array *out = NULL;
    void *p = NULL;

    (void)state;
    assert_fails(tn_array_read(NULL, data, 24), TN_E_ARG);
    assert_fails(tn_array_read(f.a, NULL, 24), TN_E_ARG);
    assert_fails(tn_array_read(f.a, data, 23), TN_E_ARG);
    assert_fails(tn_array_read(f.a, data, 25), TN_E_ARG);
    assert_fails(tn_array_read(f.a, NULL, 0), TN_E_ARG);
    assert_fails(tn_array_write(NULL, data, 24), TN_E_ARG);
    assert_fails(tn_array_write(f.a, NULL, 24), TN_E_ARG);
    assert_fails(tn_array_write(f.a, data, 4), TN_E_ARG);
    assert_fails(tn_array_scalar(NULL, &value), TN_E_ARG);
    assert_fails(tn_array_scalar(f.a, NULL), TN_E_ARG);
    assert_fails(tn_array_scalar(f.a, &value), TN_E_SHAPE);
    assert_true(value == 3);
    assert_fails(tn_array_fill(NULL, 1), TN_E_ARG);
    assert_fails(tn_array_copy(NULL, f.a), TN_E_ARG);
    assert_fails(tn_array_copy(f.a, NULL), TN_E_ARG);
    assert_fails(tn_array_copy(f.a, f.b), TN_E_SHAPE);
    assert_fails(tn_array_copy(f.a, f.foreign), TN_E_ARG);
    assert_fails(tn_array_to(NULL, f.a, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_to(f.ctx, NULL, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_to(f.ctx, f.a, NULL, NULL), TN_E_ARG);
    assert_fails(tn_array_to(f.ctx, f.a, f.foreign_device, &out), TN_E_ARG);
    assert_fails(tn_array_to(f.ctx, f.foreign, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_cast(NULL, f.a, TN_F64, &out), TN_E_ARG);
    assert_fails(tn_array_cast(f.ctx, f.a, 55, &out), TN_E_DTYPE);
    assert_fails(tn_array_cast(f.ctx, f.foreign, TN_F64, &out), TN_E_ARG);
    assert_fails(tn_array_wait(NULL), TN_E_ARG);
    assert_fails(tn_array_wait_write(NULL), TN_E_ARG);
    assert_fails(tn_array_data(NULL, &p), TN_E_ARG);
    assert_fails(tn_array_data(f.a, NULL), TN_E_ARG);
    assert_null(out);
}

static void arrays_viewed(void **state)
{
    const int64_t two_open[] = {-1, -1}, wrong[] = {4}, open[] = {-1, 4}, none[] = {0, -1};
    tn_array *out = NULL;

    (void)state;
    assert_fails(tn_array_reshape(NULL, 1, wrong, &out), TN_E_ARG);
    assert_fails(tn_array_reshape(f.a, 1, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_reshape(f.a, 1, wrong, NULL), TN_E_ARG);
    assert_fails(tn_array_reshape(f.a, 1, wrong, &out), TN_E_SHAPE);
    assert_fails(tn_array_reshape(f.a, 2, two_open, &out), TN_E_SHAPE);
    assert_fails(tn_array_reshape(f.a, 2, open, &out), TN_E_SHAPE);
    assert_fails(tn_array_reshape(f.a, 2, none, &out), TN_E_SHAPE);
    assert_fails(tn_array_reshape(f.a, 40, wrong, &out), TN_E_SHAPE);
    assert_fails(tn_array_reshape(f.a, -2, wrong, &out), TN_E_SHAPE);
    assert_fails(tn_array_slice(NULL, 0, 1, &out), TN_E_ARG);
    assert_fails(tn_array_slice(f.a, 0, 1, NULL), TN_E_ARG);
    assert_fails(tn_array_slice(f.a, 0, 3, &out), TN_E_ARG);
    assert_fails(tn_array_slice(f.a, 2, 1, &out), TN_E_ARG);
    assert_fails(tn_array_slice(f.a, -3, 1, &out), TN_E_ARG);
    assert_fails(tn_array_slice(f.a, INT64_MIN, INT64_MAX, &out), TN_E_ARG);
    assert_fails(tn_array_at(NULL, 0, &out), TN_E_ARG);
    assert_fails(tn_array_at(f.a, 0, NULL), TN_E_ARG);
    assert_fails(tn_array_at(f.a, 2, &out), TN_E_ARG);
    assert_fails(tn_array_at(f.a, -3, &out), TN_E_ARG);
    assert_fails(tn_array_view(NULL, 0, 1, wrong, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_view(f.a, 0, 1, NULL, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_view(f.a, 0, 1, wrong, NULL, NULL), TN_E_ARG);
    assert_fails(tn_array_view(f.a, 3, 1, wrong, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_view(f.a, UINT64_MAX, 1, wrong, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_view(f.a, 0, 1, wrong, (int64_t[]){-1}, &out), TN_E_SHAPE);
    assert_fails(tn_array_detach(NULL, &out), TN_E_ARG);
    assert_fails(tn_array_detach(f.a, NULL), TN_E_ARG);
    assert_null(out);
    assert_fails(tn_array_to_dlpack(NULL, 0, (struct DLManagedTensorVersioned **)&out), TN_E_ARG);
    assert_fails(tn_array_to_dlpack(f.a, 0, NULL), TN_E_ARG);
    assert_fails(tn_array_to_dlpack_legacy(NULL, (struct DLManagedTensor **)&out), TN_E_ARG);
    assert_fails(tn_array_to_dlpack_legacy(f.a, NULL), TN_E_ARG);
    assert_fails(tn_array_from_dlpack(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_from_dlpack_legacy(f.ctx, NULL, &out), TN_E_ARG);
    assert_null(out);
}

/* ---- operators, gradients
 * ------------------------------------------------------------------------------------ */

static void operators(void **state)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)}, bad = {0};
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "elemwise_add", .in_count = 2};
    tn_array *in[2] = {f.a, f.a}, *out = NULL;
    const char *many[2 * 200 + 1];
    tn_site *site = NULL, *lr = NULL;
    uint32_t index = 7, made = 7;
    size_t n;

    (void)state;
    assert_fails(tn_op_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_op_count(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_op_count(f.ctx, &n));
    assert_fails(tn_op_at(f.ctx, n, &info), TN_E_ARG);
    assert_fails(tn_op_at(f.ctx, 0, &bad), TN_E_ARG);
    assert_fails(tn_op_at(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_op_at(NULL, 0, &info), TN_E_ARG);
    assert_fails(tn_op_find(f.ctx, NULL, &info), TN_E_ARG);
    assert_fails(tn_op_find(f.ctx, "Convolutoin", &info), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "Convolution"));
    assert_fails(tn_op_find(f.ctx, "dot", &bad), TN_E_ARG);
    assert_fails(tn_op_register(NULL, NULL), TN_E_ARG);
    assert_fails(tn_op_register(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_op_find(f.ctx, "dot", &info));
    assert_fails(tn_op_register(f.ctx, info.definition), TN_E_KEY);
    assert_fails(tn_site_create(NULL, "dot", NULL, &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, NULL, NULL, &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "dot", NULL, NULL), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "dto", NULL, &site), TN_E_KEY);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_typ", "relu"), &site), TN_E_ATTR);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_type", "rule"), &site), TN_E_ATTR);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_type"), &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "Activation", NULL, &site), TN_E_ATTR);
    for (size_t i = 0; i < 400; i++)
        many[i] = "x";
    many[400] = NULL;
    assert_fails(tn_site_create(f.ctx, "Activation", many, &site), TN_E_ATTR);
    assert_null(site);
    assert_ok(tn_site_create(f.ctx, "elemwise_add", NULL, &site));
    assert_ok(tn_site_create(f.ctx, "sgd_update", LIST("lr", "0.1"), &lr));
    assert_fails(tn_site_attr(NULL, "lr", &index), TN_E_ARG);
    assert_fails(tn_site_attr(lr, NULL, &index), TN_E_ARG);
    assert_fails(tn_site_attr(lr, "lr", NULL), TN_E_ARG);
    assert_fails(tn_site_attr(site, "lr", &index), TN_E_ATTR);
    assert_int_equal(index, 7);
    assert_ok(tn_site_attr(lr, "lr", &index));
    assert_fails(tn_site_set_float(NULL, index, 1), TN_E_ARG);
    assert_fails(tn_site_set_float(lr, HUGE_COUNT, 1), TN_E_ATTR);
    assert_fails(tn_site_set_int(NULL, index, 1), TN_E_ARG);
    assert_fails(tn_site_set_int(lr, HUGE_COUNT, 1), TN_E_ATTR);
    assert_fails(tn_site_set_int(lr, index, 1), TN_E_ATTR);
    tn_site_release(lr);
    tn_site_release(NULL);
    assert_fails(tn_invoke(NULL, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, in, 1, NULL), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, in, 0, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 1, in, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, HUGE_COUNT, in, 1, &out), TN_E_ARG);
    in[1] = NULL;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    in[1] = f.foreign;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    in[1] = f.b;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_SHAPE);
    in[1] = f.a;
    out = f.b; /* an output of another shape stays as it is */
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_SHAPE);
    assert_ptr_equal(out, f.b);
    out = f.foreign;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    out = NULL;
    tn_site_release(site);
    assert_fails(tn_invoke_text(NULL, &call, 1, &out, &made), TN_E_ARG);
    assert_fails(tn_invoke_text(f.ctx, NULL, 1, &out, &made), TN_E_ARG);
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG); /* no inputs */
    call.in = in;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, NULL, &made), TN_E_ARG);
    call.op = NULL;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG);
    call.op = "elemwise_ad";
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_KEY);
    call.struct_size = 0;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG);
    assert_true(!out && made == 7);
}

static void gradients(void **state)
{
    tn_gradient_call call = {.struct_size = TN_SIZE(tn_gradient_call)};
    tn_array *heads[] = {f.a}, *nothing[] = {NULL}, *out[1] = {NULL};

    (void)state;
    assert_int_equal(tn_record_set(0), 0);
    assert_int_equal(tn_train_set(0), 0);
    assert_int_equal(tn_recording(), 0);
    assert_int_equal(tn_training(), 0);
    assert_fails(tn_attach_grad(NULL, f.a, TN_MODE_WRITE, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, NULL, TN_MODE_WRITE, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, 77, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.b), TN_E_SHAPE);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.a), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.foreign), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.foreign, TN_MODE_WRITE, NULL), TN_E_ARG);
    tn_detach_grad(NULL);
    tn_detach_grad(f.a);
    assert_null(tn_array_grad(NULL));
    assert_null(tn_array_grad(f.a));
    assert_int_equal(tn_array_grad_mode(NULL), TN_MODE_NONE);
    assert_fails(tn_backward(NULL, 1, heads, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, NULL, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 0, heads, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, nothing, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, heads, NULL, 0x100), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, heads, NULL, 0), TN_E_STATE); /* nothing recorded */
    assert_fails(tn_gradients(NULL, &call, out), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, NULL, out), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, &call, NULL), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    call.head_count = call.variable_count = 1;
    call.heads = heads;
    call.variables = nothing;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    call.variables = heads;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_STATE);
    call.flags = 0x100;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    assert_null(out[0]);
}

/* ---- symbols, programs
 * ------------------------------------------------------------------------------------------ */

static void symbols_composed(void **state)
{
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call)};
    tn_symbol *out = NULL, *in[1] = {f.x}, *nothing[1] = {NULL};
    uint32_t index = 9;

    (void)state;
    assert_fails(tn_symbol_variable(NULL, "x", &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, "", &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, "x", NULL), TN_E_ARG);
    assert_fails(tn_symbol_op(NULL, &call, &out), TN_E_ARG);
    assert_fails(tn_symbol_op(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.op = "Activatoin";
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_KEY);
    call.op = "Activation";
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ATTR);
    call.attrs = LIST("act_type", "relu");
    call.in_count = 1;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = nothing;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = &f.foreign_symbol;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = in;
    call.in_names = LIST("wieght");
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_KEY);
    call.in_names = NULL;
    call.in_count = HUGE_COUNT;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(NULL, 0, NULL, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(f.net, 1, NULL, in, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(f.net, 1, LIST("nowhere"), in, &out), TN_E_KEY);
    assert_fails(tn_symbol_group(0, in, &out), TN_E_ARG);
    assert_fails(tn_symbol_group(1, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_group(1, nothing, &out), TN_E_ARG);
    assert_fails(tn_symbol_internals(NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_internals(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_children(NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_children(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_output(NULL, 0, &out), TN_E_ARG);
    assert_fails(tn_symbol_output(f.net, 1, &out), TN_E_ARG);
    assert_int_equal(tn_symbol_output_count(NULL), 0);
    assert_fails(tn_symbol_find(NULL, "fc_output", &index), TN_E_ARG);
    assert_fails(tn_symbol_find(f.net, NULL, &index), TN_E_ARG);
    assert_fails(tn_symbol_find(f.net, "fc_out", &index), TN_E_KEY);
    assert_int_equal(index, 9);
    tn_symbol_retain(NULL);
    tn_symbol_release(NULL);
    assert_fails(tn_symbol_prefix_push(NULL), TN_E_ARG);
    tn_symbol_prefix_pop();
    assert_null(out);
}

static void symbols_asked(void **state)
{
    tn_known known[2] = {{.name = NULL, .ndim = -1, .dtype = -1}, {.ndim = -1, .dtype = -1}}, found;
    const char *path = scratch_path("absent-symbol.json"), *text = NULL;
    tn_inferred *inferred = NULL;
    char **names = NULL, *json = NULL;
    tn_symbol *out = NULL;
    size_t count = 9;

    (void)state;
    assert_fails(tn_symbol_list(NULL, 0, &count, &names), TN_E_ARG);
    assert_fails(tn_symbol_list(f.net, 17, &count, &names), TN_E_ARG);
    assert_fails(tn_symbol_list(f.net, 0, NULL, &names), TN_E_ARG);
    assert_int_equal(count, 9);
    assert_fails(tn_symbol_infer(NULL, 0, NULL, 0, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 1, NULL, 0, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 0, NULL, 8, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 0, NULL, 0, &inferred), TN_E_SHAPE);
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_ARG);
    known[0].name = "nowhere";
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_KEY);
    known[0] = (tn_known){.name = "x", .ndim = 33, .shape = f.shape, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_SHAPE);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = (int64_t[]){-2, 3}, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_SHAPE);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = NULL, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_ARG);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = f.shape, .dtype = 99};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_DTYPE);
    known[0].dtype = -1;
    known[1] = (tn_known){.name = "fc_weight", .ndim = 2, .shape = (int64_t[]){4, 5}, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 2, known, 0, &inferred), TN_E_SHAPE); /* they contradict */
    assert_null(inferred);
    assert_ok(tn_symbol_infer(f.net, 0, NULL, TN_SYMBOL_PARTIAL, &inferred));
    assert_int_equal(tn_inferred_complete(inferred), 0);
    assert_fails(tn_inferred_at(NULL, 0, 0, &found), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, 0, 0, NULL), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, 9, 0, &found), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, TN_LIST_AUX, 0, &found), TN_E_ARG);
    tn_inferred_destroy(inferred);
    tn_inferred_destroy(NULL);
    assert_int_equal(tn_inferred_complete(NULL), 0);
    assert_fails(tn_symbol_attr_get(NULL, "k", &text), TN_E_ARG);
    assert_fails(tn_symbol_attr_get(f.net, NULL, &text), TN_E_ARG);
    assert_fails(tn_symbol_attr_get(f.net, "k", NULL), TN_E_ARG);
    assert_fails(tn_symbol_attr_set(NULL, "k", "v"), TN_E_ARG);
    assert_fails(tn_symbol_attr_set(f.net, "k", NULL), TN_E_ARG);
    assert_fails(tn_symbol_load(NULL, path, &out), TN_E_ARG);
    assert_fails(tn_symbol_load(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_load(f.ctx, path, &out), TN_E_IO);
    assert_fails(tn_symbol_from_json(NULL, "{}", 2, &out), TN_E_ARG);
    assert_fails(tn_symbol_from_json(f.ctx, NULL, 2, &out), TN_E_ARG);
    assert_fails(tn_symbol_from_json(f.ctx, "{}", 2, &out), TN_E_FORMAT);
    assert_fails(tn_symbol_from_json(f.ctx, "", 0, &out), TN_E_FORMAT);
    assert_fails(tn_symbol_save(NULL, path), TN_E_ARG);
    assert_fails(tn_symbol_save(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_save(f.net, "/nowhere/at/all.json"), TN_E_IO);
    assert_fails(tn_symbol_to_json(NULL, &json), TN_E_ARG);
    assert_fails(tn_symbol_to_json(f.net, NULL), TN_E_ARG);
    assert_true(!out && !json && !names);
}

static void programs(void **state)
{
    tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .static_shape = 1};
    const char *path = scratch_path("absent.params");
    tn_array *in[3] = {f.a, f.a, f.a}, *out = NULL;
    tn_cached_op *op = NULL;
    tn_program *p = NULL;
    tn_params *params = NULL;
    uint64_t planned = 0, bound = 0;

    (void)state;
    assert_fails(tn_cached_op_create(NULL, f.net, NULL, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, NULL, NULL, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, f.net, &o, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, f.foreign_symbol, NULL, &op), TN_E_ARG);
    assert_ok(tn_cached_op_create(f.ctx, f.net, NULL, &op));
    assert_fails(tn_cached_op_call(NULL, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 0, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 1, NULL), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_SHAPE);
    in[2] = NULL;
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_ARG);
    in[2] = f.foreign;
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_memory(NULL, &planned, &bound), TN_E_ARG);
    assert_fails(tn_cached_op_memory(op, NULL, &bound), TN_E_ARG);
    assert_fails(tn_cached_op_memory(op, &planned, &bound), TN_E_STATE);
    tn_cached_op_release(op);
    tn_cached_op_release(NULL);
    assert_ok(tn_params_create(&params));
    assert_fails(tn_program_create(NULL, f.net, params, &p), TN_E_ARG);
    assert_fails(tn_program_create(f.ctx, f.net, NULL, &p), TN_E_ARG);
    assert_fails(tn_program_create(f.ctx, f.foreign_symbol, params, &p), TN_E_ARG);
    assert_fails(tn_program_load(f.ctx, path, NULL, NULL, &p), TN_E_ARG);
    assert_fails(tn_program_load(f.ctx, path, path, NULL, &p), TN_E_IO);
    assert_fails(tn_program_load(f.ctx, path, path, f.foreign_device, &p), TN_E_ARG);
    assert_null(p);
    assert_ok(tn_program_create(f.ctx, f.net, params, &p));
    assert_int_equal(tn_program_input_count(p), 3);
    assert_null(tn_program_input(p, 3));
    assert_null(tn_program_input(NULL, 0));
    assert_null(tn_program_output(p, 1));
    assert_null(tn_program_output(NULL, 0));
    assert_int_equal(tn_program_input_count(NULL), 0);
    assert_int_equal(tn_program_output_count(NULL), 0);
    assert_fails(tn_program_run(NULL, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 3, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 3, in, 1, &out), TN_E_ARG); /* of another context */
    in[0] = in[1] = in[2] = NULL;
    assert_fails(tn_program_run(p, 3, in, 1, &out), TN_E_SHAPE); /* nothing tells the shapes */
    assert_fails(tn_program_run(p, 3, in, 0, &out), TN_E_ARG);
    assert_fails(tn_program_memory(NULL, &planned, &bound), TN_E_ARG);
    assert_fails(tn_program_memory(p, &planned, &bound), TN_E_STATE);
    assert_null(out);
    tn_program_destroy(p);
    tn_program_destroy(NULL);
    tn_params_destroy(params);
}

/* ---- files, engine
 * ------------------------------------------------------------------------------------------------ */

static void files(void **state)
{
    const char *path = scratch_path("absent");
    char hex[65], *found = NULL;
    tn_params *p = NULL, *q = NULL;
    tn_checkpoint *c = NULL;
    tn_array *a = NULL, *b = NULL;
    uint64_t bytes = 0;
    void *data = NULL;

    (void)state;
    assert_fails(tn_params_create(NULL), TN_E_ARG);
    assert_ok(tn_params_create(&p));
    assert_fails(tn_params_add(NULL, "a", f.a), TN_E_ARG);
    assert_fails(tn_params_add(p, NULL, f.a), TN_E_ARG);
    assert_fails(tn_params_add(p, "a", NULL), TN_E_ARG);
    assert_fails(tn_params_get(p, "a", &a), TN_E_KEY);
    assert_fails(tn_params_get(p, NULL, &a), TN_E_ARG);
    assert_fails(tn_params_get(NULL, "a", &a), TN_E_ARG);
    assert_int_equal(tn_params_count(NULL), 0);
    assert_int_equal(tn_params_count(p), 0);
    assert_null(tn_params_name(p, 0));
    assert_null(tn_params_name(NULL, 0));
    assert_fails(tn_params_at(p, 0, &a), TN_E_ARG);
    assert_fails(tn_params_at(NULL, 0, &a), TN_E_ARG);
    assert_fails(tn_params_load(NULL, path, NULL, &q), TN_E_ARG);
    assert_fails(tn_params_load(f.ctx, NULL, NULL, &q), TN_E_ARG);
    assert_fails(tn_params_load(f.ctx, path, NULL, &q), TN_E_IO);
    assert_fails(tn_params_load(f.ctx, path, f.foreign_device, &q), TN_E_ARG);
    assert_fails(tn_params_from_memory(f.ctx, NULL, 8, NULL, &q), TN_E_ARG);
    assert_fails(tn_params_from_memory(f.ctx, "12345678", 8, NULL, &q), TN_E_FORMAT);
    assert_fails(tn_params_from_memory(f.ctx, NULL, 0, NULL, &q), TN_E_FORMAT);
    assert_fails(tn_params_save(NULL, path), TN_E_ARG);
    assert_fails(tn_params_save(p, NULL), TN_E_ARG);
    assert_fails(tn_params_save(p, "/nowhere/at/all"), TN_E_IO);
    assert_fails(tn_params_to_memory(NULL, &data, &bytes), TN_E_ARG);
    assert_fails(tn_params_to_memory(p, NULL, &bytes), TN_E_ARG);
    assert_fails(tn_params_sha256(NULL, hex), TN_E_ARG);
    assert_fails(tn_params_sha256(p, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_save(NULL, "{}", p, 1, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_save(path, NULL, p, 1, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_save(path, "{}", NULL, 1, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_save(path, "{}", p, HUGE_COUNT, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_load(NULL, path, NULL, &c), TN_E_ARG);
    assert_fails(tn_checkpoint_load(f.ctx, NULL, NULL, &c), TN_E_ARG);
    assert_fails(tn_checkpoint_load(f.ctx, path, NULL, &c), TN_E_KEY);
    tn_checkpoint_destroy(NULL);
    assert_string_equal(tn_checkpoint_json(NULL), "");
    assert_string_equal(tn_checkpoint_path(NULL), "");
    assert_string_equal(tn_checkpoint_skipped(NULL), "");
    assert_int_equal(tn_checkpoint_number(NULL), 0);
    assert_null(tn_checkpoint_params(NULL));
    tn_params_destroy(p);
    tn_params_destroy(NULL);
    assert_fails(tn_idx_load(NULL, path, &a), TN_E_ARG);
    assert_fails(tn_idx_load(f.ctx, NULL, &a), TN_E_ARG);
    assert_fails(tn_idx_load(f.ctx, path, &a), TN_E_IO);
    assert_fails(tn_idx_load_pair(f.ctx, path, NULL, &a, &b), TN_E_ARG);
    assert_fails(tn_idx_load_pair(f.ctx, path, path, &a, &b), TN_E_IO);
    assert_fails(tn_npy_load(NULL, path, &a), TN_E_ARG);
    assert_fails(tn_npy_load(f.ctx, path, &a), TN_E_IO);
    assert_fails(tn_npy_save(NULL, path), TN_E_ARG);
    assert_fails(tn_npy_save(f.a, NULL), TN_E_ARG);
    assert_fails(tn_npy_save(f.a, "/nowhere/at/all.npy"), TN_E_IO);
    assert_fails(tn_data_find(NULL, "digits", &found), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, NULL, &found), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, "digits", NULL), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, "no-such-data", &found), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "examples/data"));
    assert_fails(tn_data_find(f.ctx, "", &found), TN_E_KEY);
    assert_fails(tn_data_find(f.ctx, "..", &found), TN_E_KEY);
    assert_fails(tn_data_find(f.ctx, "/nowhere/at/all", &found), TN_E_KEY);
    assert_true(!a && !b && !c && !q && !data && !found);
}

static tn_status task_nothing(void *arg)
{
    (void)arg;
    return TN_OK;
}

static void engines(void **state)
{
    tn_task task = {.struct_size = TN_SIZE(tn_task)};
    tn_stats stats = {0};
    tn_var *var = NULL, *none[1] = {NULL};
    char *text = NULL;

    (void)state;
    assert_fails(tn_var_create(NULL, &var), TN_E_ARG);
    assert_fails(tn_var_create(f.ctx, NULL), TN_E_ARG);
    tn_var_destroy(f.ctx, NULL);
    assert_null(tn_array_var(NULL));
    assert_fails(tn_var_wait(NULL, tn_array_var(f.a)), TN_E_ARG);
    assert_fails(tn_var_wait(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_engine_push(NULL, &task), TN_E_ARG);
    assert_fails(tn_engine_push(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG); /* nothing to run */
    task.run = task_nothing;
    task.read_count = 1;
    assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
    task.reads = none;
    assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
    task.read_count = HUGE_COUNT;
    assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
    task.read_count = 0;
    task.device = f.foreign_device;
    assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
    assert_fails(tn_ctx_stats(NULL, &stats), TN_E_ARG);
    assert_fails(tn_ctx_stats(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_ctx_stats(f.ctx, &stats), TN_E_ARG);
    assert_fails(tn_engine_dump(NULL, &text), TN_E_ARG);
    assert_fails(tn_engine_dump(f.ctx, NULL), TN_E_ARG);
    assert_fails(tn_trace_start(0), TN_E_ARG);
    assert_fails(tn_trace_json(NULL), TN_E_ARG);
    tn_trace_stop();
    assert_true(!var && !text);
}

/* ---- none is left out
 * -------------------------------------------------------------------------------------------- */

static char *text_read(const char *folder, const char *name)
{
    char path[4096], *text;
    size_t got;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    text = malloc(1 << 20);
    assert_true(file && text);
    got = fread(text, 1, (1 << 20) - 1, file);
    text[got] = '\0';
    (void)fclose(file);
    return text;
}

/* The name in front of the first parenthesis behind each TN_API. */
static size_t header_check(const char *header, const char *tests, const char *name)
{
    size_t missing = 0;

    for (const char *at = header; (at = strstr(at, "\nTN_API ")) != NULL;) {
        const char *end = strchr(at, '('), *begin = end;
        char call[128];

        while (begin && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
            begin--;
        (void)snprintf(call, sizeof call, "%.*s(", (int)(end - begin), begin);
        at = end;
        if (!strstr(tests, call)) {
            print_error("%s: %s) is not called with wrong arguments\n", name, call);
            missing++;
        }
    }
    return missing;
}

static void every_function_is_here(void **state)
{
    const char *root = getenv("TENON_TEST_SOURCE");
    char folder[4096];
    struct dirent *entry;
    size_t missing = 0, headers = 0;
    char *tests;
    DIR *dir;

    (void)state;
    if (!root)
        skip();
    tests = text_read(root, "tests/api/test_arguments.c");
    (void)snprintf(folder, sizeof folder, "%s/sdk/include/tenon", root);
    assert_non_null(dir = opendir(folder));
    while ((entry = readdir(dir)) != NULL) {
        char *header;

        if (!strstr(entry->d_name, ".h") || !strncmp(entry->d_name, "nn", 2))
            continue;
        header = text_read(folder, entry->d_name);
        missing += header_check(header, tests, entry->d_name);
        headers++;
        free(header);
    }
    (void)closedir(dir);
    free(tests);
    assert_true(headers >= 16);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_and_errors),
        cmocka_unit_test(opening),
        cmocka_unit_test(sizes_of_structs),
        cmocka_unit_test(contexts),
        cmocka_unit_test(devices),
        cmocka_unit_test(arrays_made),
        cmocka_unit_test(arrays_asked),
        cmocka_unit_test(arrays_valued),
        cmocka_unit_test(arrays_viewed),
        cmocka_unit_test(operators),
        cmocka_unit_test(gradients),
        cmocka_unit_test(symbols_composed),
        cmocka_unit_test(symbols_asked),
        cmocka_unit_test(programs),
        cmocka_unit_test(files),
        cmocka_unit_test(engines),
        cmocka_unit_test(every_function_is_here),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
