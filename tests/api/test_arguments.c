/*
 * Wrong arguments to every public function: a status with a text, nothing written, nothing broken. The last
 * test reads the headers and fails if one of their functions is not called in test_arguments*.c, or one of
 * its pointers is NULL in no call.
 */
#include "api/fixture.h"

#include <dirent.h>
#include <stdio.h>

#include "support/nulls.h"
#include "support/scratch.h"

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
    assert_int_equal(tn_text_escape(NULL, 9, "x"), 0);
    assert_int_equal(tn_text_escape((char *)&dtype, 0, "x"), 0);
    assert_int_equal(dtype, TN_F16);
    assert_int_equal(tn_text_escape((char *)&dtype, sizeof dtype, NULL), 0);
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
    assert_ok(tn_close_within(NULL, 1));
    tn_free(NULL);
}

static void variables(void **state)
{
    tn_variable_info info = {.struct_size = TN_SIZE(tn_variable_info)}, none = {0};
    size_t count = tn_variable_count(), named = 0;
    char text[64];

    (void)state;
    assert_true(count > 200);
    assert_fails(tn_variable_at(0, NULL), TN_E_ARG);
    assert_fails(tn_variable_at(0, &none), TN_E_ARG); /* no struct_size */
    assert_fails(tn_variable_at(count, &info), TN_E_ARG);
    assert_fails(tn_variable_translate(count, "1", text, sizeof text), TN_E_ARG);
    assert_fails(tn_variable_translate(0, NULL, text, sizeof text), TN_E_ARG);
    assert_fails(tn_variable_translate(0, "1", NULL, sizeof text), TN_E_ARG);
    assert_fails(tn_variable_translate(0, "1", text, 0), TN_E_ARG);
    for (size_t i = 0; i < count; i++) {
        assert_ok(tn_variable_at(i, &info));
        assert_true(!info.key[0] == !!info.reason[0]);
        if (!info.key[0])
            assert_fails(tn_variable_translate(i, "1", text, sizeof text), TN_E_KEY);
        if (strcmp(info.name, "MXNET_ENGINE_TYPE") != 0)
            continue;
        named++;
        assert_string_equal(info.key, "engine.type");
        assert_ok(tn_variable_translate(i, "NaiveEngine", text, sizeof text));
        assert_string_equal(text, "naive");
        assert_fails(tn_variable_translate(i, "Naive", text, sizeof text), TN_E_ARG);
        assert_fails(tn_variable_translate(i, "NaiveEngine", text, 3), TN_E_ARG);
    }
    assert_int_equal(named, 1);
}

static void problem_count(void *arg, const tn_problem *p)
{
    size_t *counts = arg;

    assert_true(p->struct_size == TN_SIZE(tn_problem) && p->level >= TN_LOG_ERROR && p->level <= TN_LOG_INFO);
    assert_true(p->text[0] && (p->level != TN_LOG_ERROR) == !p->status);
    counts[p->level]++;
}

static void checking(void **state)
{
    static const char bad[] = "[engine]\ntyp = naive\nthreads = many\n[plugins\nload = x\n[engine]\n"
                              "type = naive\ntype = naive\n: = 1\n[memory.cqu]\npool = none\n"
                              "[plugin.nobody]\nx = 1\n";
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM};
    size_t counts[4] = {0};

    (void)state;
    assert_fails(tn_config_check(&o, NULL, NULL), TN_E_ARG);
    assert_ok(tn_config_check(&o, problem_count, counts));
    assert_true(!counts[0] && !counts[1] && !counts[2]);
    o.files = LIST(scratch_write("check.ini", bad, sizeof bad - 1), scratch_path("absent.ini"));
    o.settings = LIST("engine.queue_max=1", "nonsense", "train.lr=high", "plugins.require=nobody, no-one");
    assert_ok(tn_config_check(&o, problem_count, counts));
    assert_int_equal(counts[TN_LOG_ERROR], 5 + 1 + 3 + 2 + 1); /* file, absent one, settings, required, cqu */
    assert_int_equal(counts[TN_LOG_WARNING], 0);
    assert_int_equal(counts[TN_LOG_INFO], 1); /* the section of an absent plugin */
    o.flags = 0x80000000u;
    assert_fails(tn_config_check(&o, problem_count, counts), TN_E_ARG);
    o.struct_size = 0;
    assert_fails(tn_config_check(&o, problem_count, counts), TN_E_ARG);
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
    assert_fails(tn_plugin_open(NULL, "/x.so", &n), TN_E_ARG);
    assert_fails(tn_plugin_open(f.ctx, NULL, &n), TN_E_ARG);
    assert_fails(tn_plugin_open(f.ctx, "x.so", &n), TN_E_ARG);
    assert_int_equal(tn_error_number(), 3001);
    assert_fails(tn_plugin_open(f.ctx, "/no/such/folder/x.so", NULL), TN_E_IO);
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

/* ---- arrays -------------------------------------------------------------------------------------------- */

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
    const tn_array_sparse sparse = {0};
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
    assert_fails(tn_array_sparse_from(NULL, &sparse, &out), TN_E_ARG);
    assert_fails(tn_array_sparse_from(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_array_sparse_from(f.ctx, &sparse, NULL), TN_E_ARG);
    assert_fails(tn_array_sparse_from(f.ctx, &sparse, &out), TN_E_ARG); /* no struct_size */
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
    assert_fails(tn_array_to_storage(NULL, f.a, TN_STORAGE_CSR, &out), TN_E_ARG);
    assert_fails(tn_array_to_storage(f.ctx, f.a, 3, &out), TN_E_ARG);
    assert_fails(tn_array_to_storage(f.ctx, f.foreign, TN_STORAGE_CSR, &out), TN_E_ARG);
    assert_fails(tn_array_retain_rows(NULL, f.a, f.b, &out), TN_E_ARG);
    assert_fails(tn_array_retain_rows(f.ctx, f.a, f.b, &out), TN_E_ARG); /* it is dense */
    assert_fails(tn_array_retain_rows(f.ctx, f.a, f.foreign, &out), TN_E_ARG);
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

/* ---- files, engine ----------------------------------------------------------------------------------- */

static void files(void **state)
{
    const char *path = scratch_path("absent");
    char hex[65];
    tn_params *p = NULL, *q = NULL;
    tn_checkpoint *c = NULL;
    tn_array *a = NULL;
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
    assert_fails(tn_checkpoint_load_file(NULL, path, NULL, &c), TN_E_ARG);
    assert_fails(tn_checkpoint_load_file(f.ctx, NULL, NULL, &c), TN_E_ARG);
    assert_fails(tn_checkpoint_load_file(f.ctx, path, NULL, NULL), TN_E_ARG);
    assert_fails(tn_checkpoint_load_file(f.ctx, "", NULL, &c), TN_E_ARG);
    assert_fails(tn_checkpoint_load_file(f.ctx, "/nowhere/at/all", NULL, &c), TN_E_IO);
    assert_fails(tn_checkpoint_load_file(f.ctx, "/dev/zero", NULL, &c), TN_E_IO);
    assert_fails(tn_checkpoint_load_file(f.ctx, "/", NULL, &c), TN_E_IO);
    assert_fails(tn_checkpoint_load_file(f.ctx, "/proc/self/exe", NULL, &c), TN_E_FORMAT);
    tn_checkpoint_destroy(NULL);
    assert_string_equal(tn_checkpoint_json(NULL), "");
    assert_string_equal(tn_checkpoint_path(NULL), "");
    assert_string_equal(tn_checkpoint_skipped(NULL), "");
    assert_int_equal(tn_checkpoint_number(NULL), 0);
    assert_null(tn_checkpoint_params(NULL));
    tn_params_destroy(p);
    tn_params_destroy(NULL);
    assert_true(!a && !c && !q && !data);
}

static void data_sets(void **state)
{
    const char *path = scratch_path("absent");
    tn_csv_words words = {.struct_size = sizeof words, .column = -1};
    tn_array *a = NULL, *b = NULL;
    char *found = NULL;

    (void)state;
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
    assert_fails(tn_csv_load(NULL, path, &a), TN_E_ARG);
    assert_fails(tn_csv_load(f.ctx, path, NULL), TN_E_ARG);
    assert_fails(tn_csv_load(f.ctx, path, &a), TN_E_IO);
    assert_fails(tn_csv_from_memory(NULL, "1", 1, "m", &a), TN_E_ARG);
    assert_fails(tn_csv_from_memory(f.ctx, NULL, 1, "m", &a), TN_E_ARG);
    assert_fails(tn_csv_from_memory(f.ctx, "1", 1, NULL, &a), TN_E_ARG);
    assert_fails(tn_csv_from_memory(f.ctx, "x,1", 3, "m", &a), TN_E_FORMAT);
    assert_fails(tn_csv_load_words(f.ctx, path, NULL, 0, &words, &a), TN_E_IO);
    assert_fails(tn_csv_load_words(f.ctx, "m", "x,1", 3, &words, &a), TN_E_FORMAT);
    words.column = 0; /* without word() */
    assert_fails(tn_csv_load_words(f.ctx, "m", "1,1", 3, &words, &a), TN_E_ARG);
    assert_fails(tn_csv_load_words(f.ctx, "m", "1,1", 3, &(tn_csv_words){.column = -1}, &a), TN_E_ARG);
    assert_fails(tn_data_find(NULL, "digits", &found), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, NULL, &found), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, "digits", NULL), TN_E_ARG);
    assert_fails(tn_data_find(f.ctx, "no-such-data", &found), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "examples/data"));
    assert_fails(tn_data_find(f.ctx, "", &found), TN_E_KEY);
    assert_fails(tn_data_find(f.ctx, "..", &found), TN_E_KEY);
    assert_fails(tn_data_find(f.ctx, "/nowhere/at/all", &found), TN_E_KEY);
    assert_true(!a && !b && !found);
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
    assert_fails(tn_task_complete(0, TN_OK, NULL), TN_E_ARG);
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

/* Variables and arrays of another context are refused wherever one is taken, and nothing is queued. */
static void variables_of_another_context(void **state)
{
    tn_stats before = {.struct_size = TN_SIZE(tn_stats)}, after = before;
    tn_var *strange = NULL, *own = NULL, *list[2];
    tn_task task = {.struct_size = TN_SIZE(tn_task), .run = task_nothing};

    (void)state;
    assert_ok(tn_var_create(f.ctx, &own));
    assert_ok(tn_var_create(f.other, &strange));
    assert_ok(tn_ctx_stats(f.ctx, &before));
    tn_var *const wrong[] = {strange, tn_array_var(f.foreign)};
    for (size_t i = 0; i < 2; i++) {
        assert_fails(tn_var_wait(f.ctx, wrong[i]), TN_E_ARG);
        assert_non_null(strstr(tn_error_text(), "belongs to another context"));
        list[0] = own;
        list[1] = wrong[i];
        task.reads = list;
        task.read_count = 2;
        assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
        assert_non_null(strstr(tn_error_text(), "variable 1 belongs to another context"));
        task.read_count = 0;
        task.writes = list;
        task.write_count = 2;
        assert_fails(tn_engine_push(f.ctx, &task), TN_E_ARG);
        task.write_count = 0;
    }
    tn_error_clear();
    tn_var_destroy(f.ctx, strange); /* is not freed, and the text says so */
    assert_int_equal(tn_error_code(), TN_E_ARG);
    assert_ok(tn_ctx_stats(f.ctx, &after));
    assert_int_equal(after.pushed, before.pushed);
    task.writes = &strange;
    task.write_count = 1;
    assert_ok(tn_engine_push(f.other, &task)); /* it is as it was */
    assert_ok(tn_var_wait(f.other, strange));
    assert_ok(tn_var_wait(f.ctx, tn_array_var(f.a)));
    tn_var_destroy(f.other, strange);
    tn_var_destroy(f.ctx, own);
    assert_ok(tn_wait_all(f.ctx));
    assert_ok(tn_wait_all(f.other));
}

/* ---- none is left out -------------------------------------------------------------------------------- */

static void every_function_is_here(void **state)
{
    char *tests[] = {nulls_source("tests/api/test_arguments.c"),
                     nulls_source("tests/api/test_arguments_graph.c"),
                     nulls_source("tests/api/test_arguments_executor.c"),
                     nulls_source("tests/api/test_arguments_kv.c"),
                     nulls_source("tests/api/test_arguments_plugin.c"),
                     nulls_source("tests/api/test_arguments_null.c"), NULL};
    const char *root = getenv("TENON_TEST_SOURCE");
    size_t missing = 0, headers = 0, functions = 0;
    struct dirent *entry;
    char path[4096];
    DIR *dir;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/sdk/include/tenon", root ? root : ".");
    assert_non_null(dir = opendir(path));
    while ((entry = readdir(dir)) != NULL) {
        char *header;

        if (!strstr(entry->d_name, ".h") || !strncmp(entry->d_name, "nn", 2))
            continue;
        (void)snprintf(path, sizeof path, "sdk/include/tenon/%s", entry->d_name);
        header = nulls_source(path);
        missing += nulls_missing(entry->d_name, header, tests, &functions);
        headers++;
        free(header);
    }
    (void)closedir(dir);
    for (size_t i = 0; tests[i]; i++)
        free(tests[i]);
    assert_true(headers >= 16 && functions > 150);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_and_errors),
        cmocka_unit_test(opening),
        cmocka_unit_test(sizes_of_structs),
        cmocka_unit_test(variables),
        cmocka_unit_test(checking),
        cmocka_unit_test(contexts),
        cmocka_unit_test(devices),
        cmocka_unit_test(arrays_made),
        cmocka_unit_test(arrays_asked),
        cmocka_unit_test(arrays_valued),
        cmocka_unit_test(arrays_viewed),
        cmocka_unit_test(files),
        cmocka_unit_test(data_sets),
        cmocka_unit_test(engines),
        cmocka_unit_test(variables_of_another_context),
        cmocka_unit_test(every_function_is_here),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
