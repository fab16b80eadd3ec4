/* Copies of random shapes, strides and types against an element-by-element oracle; between devices; with
 * overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/internal.h"
#include "support/space.h"

#define DIMS(...)                                                                                            \
    (const int64_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static test_space t;
static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

static int open_naive(void **state)
{
    (void)state;
    test_space_open(&t, "naive");
    return 0;
}

static int open_threaded(void **state)
{
    (void)state;
    test_space_open(&t, "threaded");
    return 0;
}

static int close_space(void **state)
{
    (void)state;
    test_space_close(&t);
    return 0;
}

static tni_array *make(tni_device *d, int32_t dtype, int32_t ndim, const int64_t *shape)
{
    tni_array *a = NULL;

    assert_int_equal(tni_array_create(t.space, d, dtype, ndim, shape, NULL, &a), TN_OK);
    return a;
}

/* An array of `shape` that lies in a larger one with its dimensions in another order. */
static tni_array *make_strided(tni_device *d, int32_t dtype, int32_t ndim, const int64_t *shape)
{
    int64_t stride[4], step = 1;
    int32_t order[4] = {0, 1, 2, 3};
    tni_array *whole, *view = NULL;

    for (int32_t i = ndim - 1; i > 0; i--) {
        int32_t j = (int32_t)random_below((uint32_t)i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    for (int32_t i = 0; i < ndim; i++) {
        stride[order[i]] = step;
        step *= shape[order[i]] + random_below(2);
    }
    whole = make(d, dtype, 1, &step);
    assert_int_equal(tni_array_fill(whole, 9), TN_OK);
    assert_int_equal(tni_array_view(whole, 0, ndim, shape, stride, &view), TN_OK);
    tni_array_release(whole);
    return view;
}

static void read_doubles(tni_array *a, double *out)
{
    uint64_t bytes = tni_array_bytes(a);
    void *raw = tni_alloc(bytes);

    assert_int_equal(tni_array_read(a, raw, bytes), TN_OK);
    tni_cast(raw, a->dtype, 1, out, TN_F64, 1, (int64_t)tni_array_count(a));
    tni_free(raw);
}

static void write_doubles(tni_array *a, const double *in)
{
    uint64_t bytes = tni_array_bytes(a);
    void *raw = tni_alloc(bytes);

    tni_cast(in, TN_F64, 1, raw, a->dtype, 1, (int64_t)tni_array_count(a));
    assert_int_equal(tni_array_write(a, raw, bytes), TN_OK);
    tni_free(raw);
}

static void random_copy(tni_device *from, tni_device *to)
{
    int32_t ndim = (int32_t)random_below(5);
    double in[4096], out[4096];
    int64_t shape[4];
    tni_array *src, *dst;
    uint64_t count;

    for (int32_t i = 0; i < ndim; i++)
        shape[i] = 1 + random_below(i ? 7 : 9);
    src = random_below(2) ? make(from, (int32_t)random_below(13), ndim, shape)
                          : make_strided(from, (int32_t)random_below(13), ndim, shape);
    dst = random_below(2) ? make(to, (int32_t)random_below(13), ndim, shape)
                          : make_strided(to, (int32_t)random_below(13), ndim, shape);
    count = tni_array_count(src);
    for (uint64_t i = 0; i < count; i++)
        in[i] = src->dtype == TN_BOOL || dst->dtype == TN_BOOL ? random_below(2) : random_below(101);
    write_doubles(src, in);
    assert_int_equal(tni_array_copy(src, dst), TN_OK);
    tni_array_release(src); /* the copy may still be under way */
    read_doubles(dst, out);
    assert_memory_equal(in, out, count * sizeof *in);
    tni_array_release(dst);
}

static void random_copies(void **state)
{
    tni_device *second;

    (void)state;
    assert_int_equal(tni_device_get(t.devices, "cpu", 1, &second), TN_OK);
    for (int i = 0; i < 400; i++)
        random_copy(i & 1 ? t.cpu : second, i & 2 ? t.cpu : second);
}

static void device_copies(void **state)
{
    tni_device *a, *b;
    int32_t count = 0;

    (void)state;
    if (tni_device_type_count(t.devices, "fake", &count) || count < 2 ||
        tni_device_get(t.devices, "fake", 0, &a) || tni_device_get(t.devices, "fake", 1, &b)) {
        print_message("skipped: no device fake\n");
        skip();
    }
    for (int i = 0; i < 120; i++) {
        random_copy(t.cpu, a);
        random_copy(a, t.cpu);
        random_copy(a, a);
        random_copy(a, b);
    }
}

/* To a device on its lane IN, from it on OUT: each has a stream of its own. */
static void lanes_of_copies(void **state)
{
    const float value[4] = {1, 2, 3, 4};
    const engine_device *lanes;
    tni_array *host, *there;
    tni_device *d;
    int32_t count = 0;

    (void)state;
    if (tni_device_type_count(t.devices, "fake", &count) || count < 2) {
        print_message("skipped: no device fake\n");
        skip();
    }
    assert_int_equal(tni_device_get(t.devices, "fake", count - 1, &d), TN_OK);
    host = make(t.cpu, TN_F32, 1, DIMS(4));
    there = make(d, TN_F32, 1, DIMS(4));
    assert_int_equal(tni_array_write(host, value, sizeof value), TN_OK);
    assert_null(d->engine_data); /* the first use of this device */
    assert_int_equal(tni_array_copy(host, there), TN_OK);
    lanes = d->engine_data;
    assert_true(lanes->lanes[TNI_LANE_IN] && !lanes->lanes[TNI_LANE_OUT]);
    assert_int_equal(tni_array_copy(there, host), TN_OK);
    assert_true(lanes->lanes[TNI_LANE_OUT] && !lanes->lanes[TNI_LANE_COMM]);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    tni_array_release(there);
    tni_array_release(host);
}

static void overlapping(void **state)
{
    float in[100], out[100];
    tni_array *a = make(t.cpu, TN_F32, 1, DIMS(100)), *v = NULL, *w = NULL;

    (void)state;
    for (int i = 0; i < 100; i++)
        in[i] = (float)i;
    assert_int_equal(tni_array_write(a, in, sizeof in), TN_OK);
    assert_int_equal(tni_array_slice(a, 0, 90, &v), TN_OK);
    assert_int_equal(tni_array_slice(a, 10, 100, &w), TN_OK);
    assert_int_equal(tni_array_copy(v, w), TN_OK);
    assert_int_equal(tni_array_read(a, out, sizeof out), TN_OK);
    for (int i = 0; i < 100; i++)
        assert_true(out[i] == (float)(i < 10 ? i : i - 10));
    tni_array_release(v);
    tni_array_release(w);
    assert_int_equal(tni_array_write(a, in, sizeof in), TN_OK);
    assert_int_equal(tni_array_view(a, 0, 2, DIMS(10, 10), DIMS(10, 1), &v), TN_OK);
    assert_int_equal(tni_array_view(a, 0, 2, DIMS(10, 10), DIMS(1, 10), &w), TN_OK);
    assert_int_equal(tni_array_copy(v, w), TN_OK); /* transposed in place */
    assert_int_equal(tni_array_read(a, out, sizeof out), TN_OK);
    for (int i = 0; i < 100; i++)
        assert_true(out[i] == (float)(i % 10 * 10 + i / 10));
    assert_int_equal(tni_array_copy(a, a), TN_OK);
    tni_array_release(v);
    tni_array_release(w);
    tni_array_release(a);
}

static void adding(void **state)
{
    unsigned char dst[6 * 8], src[6 * 8];
    double ones[6] = {1, 2, 3, 4, 5, 6}, got[6];

    (void)state;
    for (int32_t dtype = 0; dtype < TN_I4; dtype++) {
        tn_tensor from = {.data = src, .shape = DIMS(2, 3), .stride = DIMS(1, 2), .ndim = 2, .dtype = dtype};
        tn_tensor to = {.data = dst, .shape = DIMS(2, 3), .stride = DIMS(3, 1), .ndim = 2, .dtype = dtype};

        tni_cast(ones, TN_F64, 1, src, dtype, 1, 6);
        tni_cast(ones, TN_F64, 1, dst, dtype, 1, 6);
        tni_add_strided(&from, &to);
        tni_cast(dst, dtype, 1, got, TN_F64, 1, 6);
        for (int i = 0; i < 6; i++)
            assert_true(got[i] == (dtype == TN_BOOL ? 1 : ones[i] + ones[i / 3 + i % 3 * 2]));
    }
}

/* Wider than a strip of the crosswise loop, with a rest. */
static void transposed(void **state)
{
    static float in[3 * 37 * 53];
    static double out[3 * 37 * 53];
    tni_array *a = make(t.cpu, TN_F32, 3, DIMS(3, 37, 53)), *b = make(t.cpu, TN_F64, 3, DIMS(3, 53, 37)),
              *v = NULL;

    (void)state;
    for (int i = 0; i < 3 * 37 * 53; i++)
        in[i] = (float)i;
    assert_int_equal(tni_array_write(a, in, sizeof in), TN_OK);
    assert_int_equal(tni_array_view(a, 0, 3, DIMS(3, 53, 37), DIMS(37 * 53, 1, 53), &v), TN_OK);
    assert_int_equal(tni_array_copy(v, b), TN_OK);
    assert_int_equal(tni_array_read(b, out, sizeof out), TN_OK);
    for (int i = 0; i < 3 * 37 * 53; i++)
        assert_true(out[i] == i / (37 * 53) * 37 * 53 + i % 37 * 53 + i / 37 % 53);
    tni_array_release(v);
    tni_array_release(a);
    tni_array_release(b);
}

/* The program's memory may begin at any address; a sanitizer sees who takes it for aligned. */
static void any_address(void **state)
{
    char from[4 * 8 + 1], to[4 * 8 + 1];

    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i * 7);
    for (int32_t dtype = 0; dtype < TN_I4; dtype++) {
        const uint64_t bytes = 4 * tn_dtype_bytes(dtype);
        tni_array *whole = make(t.cpu, dtype, 2, DIMS(2, 2)), *turned = NULL;

        memset(to, 0, sizeof to);
        assert_int_equal(tni_array_view(whole, 0, 2, DIMS(2, 2), DIMS(1, 2), &turned), TN_OK);
        assert_int_equal(tni_array_write(turned, from + 1, bytes), TN_OK);
        assert_int_equal(tni_array_read(turned, to + 1, bytes), TN_OK);
        assert_memory_equal(from + 1, to + 1, bytes);
        tni_array_release(turned);
        tni_array_release(whole);
    }
}

static void refusals(void **state)
{
    tni_array *a = make(t.cpu, TN_F32, 2, DIMS(2, 3)), *b = make(t.cpu, TN_F32, 2, DIMS(3, 2));
    tni_array *c = make(t.cpu, TN_F32, 1, DIMS(6));
    float x[6] = {0};

    (void)state;
    assert_int_equal(tni_array_copy(a, b), TN_E_SHAPE);
    assert_int_equal(tni_array_copy(a, c), TN_E_SHAPE);
    assert_int_equal(tni_array_read(a, x, 20), TN_E_ARG);
    assert_int_equal(tni_array_write(a, x, 28), TN_E_ARG);
    a->storage->flags |= TNI_STORAGE_READ_ONLY;
    assert_int_equal(tni_array_write(a, x, 24), TN_E_STATE);
    assert_int_equal(tni_array_fill(a, 0), TN_E_STATE);
    assert_int_equal(tni_array_copy(a, a), TN_E_STATE);
    tni_array_release(a);
    tni_array_release(b);
    tni_array_release(c);
}

static tn_status fail_run(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return tni_error(TN_E_DEVICE, "planted");
}

/* A failure flows through copies, and goes when a whole storage is written. */
static void poison(void **state)
{
    tni_array *a = make(t.cpu, TN_F32, 1, DIMS(600)), *b = make(t.cpu, TN_F32, 1, DIMS(600)), *part = NULL;
    tni_var *var = tni_array_var(a);
    float *x = tni_zalloc(2400);
    char none = 0;
    tni_task task = {.run = fail_run,
                     .payload = &none,
                     .payload_bytes = 1,
                     .writes = &var,
                     .write_count = 1,
                     .device = t.cpu,
                     .name = "planted"};

    (void)state;
    assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
    assert_int_equal(tni_array_copy(a, b), TN_OK);
    assert_int_equal(tni_array_read(b, x, 2400), TN_E_DEVICE);
    assert_int_equal(tni_array_slice(a, 0, 300, &part), TN_OK);
    assert_int_equal(tni_array_write(part, x, 1200), TN_E_DEVICE);
    assert_int_equal(tni_array_write(a, x, 2400), TN_OK);
    assert_int_equal(tni_array_read(a, x, 2400), TN_OK);
    assert_int_equal(tni_array_copy(a, b), TN_OK);
    assert_int_equal(tni_array_read(b, x, 2400), TN_OK);
    tni_array_release(part);
    tni_array_release(a);
    tni_array_release(b);
    tni_free(x);
}

#define COPY_TESTS                                                                                           \
    cmocka_unit_test(lanes_of_copies), cmocka_unit_test(random_copies), cmocka_unit_test(device_copies),     \
        cmocka_unit_test(overlapping), cmocka_unit_test(transposed), cmocka_unit_test(refusals),             \
        cmocka_unit_test(poison), cmocka_unit_test(adding), cmocka_unit_test(any_address)

int main(void)
{
    const struct CMUnitTest tests[] = {COPY_TESTS};
    int failed = cmocka_run_group_tests_name("naive", tests, open_naive, close_space);

    return failed + cmocka_run_group_tests_name("threaded", tests, open_threaded, close_space);
}
