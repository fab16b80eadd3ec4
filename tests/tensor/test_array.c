/* Arrays, storages, views, pending shapes, memory of others; each entry point with bad input; failing
 * allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/space.h"

#define DIMS(...)                                                                                            \
    (const int64_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

TEST_SPACE(t, "naive")

static tni_array *make(int32_t dtype, int32_t ndim, const int64_t *shape)
{
    tni_array *a = NULL;

    assert_int_equal(tni_array_create(t.space, t.cpu, dtype, ndim, shape, NULL, &a), TN_OK);
    return a;
}

static tni_array *counting(int32_t ndim, const int64_t *shape) /* 0 1 2 … */
{
    tni_array *a = make(TN_F32, ndim, shape);
    uint64_t n = tni_array_count(a);
    float *values = tni_alloc(n * sizeof *values);

    for (uint64_t i = 0; i < n; i++)
        values[i] = (float)i;
    assert_int_equal(tni_array_write(a, values, n * sizeof *values), TN_OK);
    tni_free(values);
    return a;
}

static void expect(tni_array *a, const float *want, size_t count)
{
    float got[64];

    assert_true(count <= 64);
    assert_int_equal(tni_array_read(a, got, count * sizeof *got), TN_OK);
    assert_memory_equal(got, want, count * sizeof *got);
}

static void sizes(void **state)
{
    const int64_t many[TN_NDIM_MAX + 1] = {0};
    const int64_t ones[6] = {1, 2, 1, 3, 1, 2};
    tni_array *a = NULL;

    (void)state;
    a = make(TN_F64, 0, NULL);
    assert_int_equal(tni_array_count(a), 1);
    assert_int_equal(tni_array_bytes(a), 8);
    tni_array_release(a);
    a = make(TN_I16, 6, ones);
    assert_int_equal(tni_array_count(a), 12);
    assert_int_equal(a->stride[0], 12);
    assert_int_equal(a->stride[3], 2);
    tni_array_release(a);
    a = make(TN_F32, 3, DIMS(3, 0, 5));
    assert_int_equal(tni_array_bytes(a), 0);
    assert_int_equal(tni_array_write(a, "", 0), TN_OK);
    assert_int_equal(tni_array_read(a, NULL, 0), TN_OK);
    tni_array_release(a);
    a = NULL;
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_DTYPE_LIMIT, 0, NULL, NULL, &a), TN_E_DTYPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, -1, 0, NULL, NULL, &a), TN_E_DTYPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 33, many, NULL, &a), TN_E_SHAPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, -1, many, NULL, &a), TN_E_SHAPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 1, DIMS(-1), NULL, &a), TN_E_SHAPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 2, DIMS(INT64_MAX, 2), NULL, &a), TN_E_SHAPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F64, 1, DIMS((int64_t)1 << 60), NULL, &a),
                     TN_E_SHAPE);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_U8, 3, DIMS(INT64_MAX, 0, INT64_MAX), NULL, &a),
                     TN_E_SHAPE);
    assert_null(a);
}

/* Memory is taken at the first write, counted by its owner, and freed with the last reference. */
static void delayed(void **state)
{
    tni_memory_stats before, during, after;
    tni_array *a, *view = NULL;
    float *zero = tni_zalloc(4000);

    (void)state;
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &before), TN_OK);
    a = make(TN_F32, 1, DIMS(1000));
    assert_null(tni_array_data(a));
    assert_int_equal(tni_array_read(a, zero, 4000), TN_OK); /* nobody wrote it */
    assert_null(tni_array_data(a));
    assert_int_equal(tni_array_slice(a, 10, 20, &view), TN_OK);
    assert_int_equal(tni_array_fill(view, 2), TN_OK);
    assert_int_equal(tni_array_wait(a), TN_OK);
    assert_non_null(tni_array_data(a));
    assert_int_equal((uintptr_t)tni_array_data(a) % 64, 0);
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &during), TN_OK);
    assert_true(during.live >= before.live + 4000);
    tni_array_release(a);
    expect(view, (float[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 10);
    tni_array_release(view);
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &after), TN_OK);
    assert_int_equal(after.live, before.live);
    tni_free(zero);
    a = make(TN_F32, 1, DIMS(4)); /* small data lies in the block */
    assert_non_null(tni_array_data(a));
    assert_int_equal((uintptr_t)tni_array_data(a) % 64, 0);
    tni_array_release(a);
}

static void versions_differ(void **state)
{
    uint64_t seen[8];

    (void)state;
    for (int i = 0; i < 8; i++) { /* the same block again and again */
        tni_array *a = make(TN_F32, 1, DIMS(1));

        assert_int_equal(tni_array_fill(a, 1), TN_OK);
        assert_int_equal(tni_array_wait(a), TN_OK);
        seen[i] = tni_var_version(tni_array_var(a));
        for (int j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
        tni_array_release(a);
    }
}

static void views(void **state)
{
    tni_array *a = counting(2, DIMS(3, 4)), *v = NULL, *w = NULL;

    (void)state;
    assert_int_equal(tni_array_reshape(a, 3, DIMS(2, 3, 2), &v), TN_OK);
    assert_ptr_equal(tni_array_var(v), tni_array_var(a));
    assert_int_equal(tni_array_at(v, 1, &w), TN_OK);
    expect(w, (float[]){6, 7, 8, 9, 10, 11}, 6);
    tni_array_release(v);
    tni_array_release(w);
    assert_int_equal(tni_array_view(a, 1, 2, DIMS(2, 3), DIMS(1, 4), &v), TN_OK); /* two columns */
    expect(v, (float[]){1, 5, 9, 2, 6, 10}, 6);
    assert_int_equal(tni_array_at(v, 1, &w), TN_OK);
    expect(w, (float[]){2, 6, 10}, 3);
    assert_int_equal(tni_array_write(w, (float[]){-2, -6, -10}, 12), TN_OK);
    expect(a, (float[]){0, 1, -2, 3, 4, 5, -6, 7, 8, 9, -10, 11}, 12);
    tni_array_release(w);
    assert_int_equal(tni_array_reshape(v, 1, DIMS(6), &w), TN_E_SHAPE); /* not contiguous */
    assert_int_equal(tni_array_detach(v, &w), TN_OK);
    assert_int_equal(w->stride[1], 4);
    tni_array_release(w);
    tni_array_release(v);
    assert_int_equal(tni_array_view(a, 4, 2, DIMS(2, 4), DIMS(0, 1), &v), TN_OK); /* one row twice */
    expect(v, (float[]){4, 5, -6, 7, 4, 5, -6, 7}, 8);
    tni_array_release(v);
    assert_int_equal(tni_array_slice(a, 3, 3, &v), TN_OK);
    assert_int_equal(tni_array_count(v), 0);
    tni_array_release(v);
    tni_array_release(a);
}

static void bad_views(void **state)
{
    tni_array *a = counting(2, DIMS(3, 4)), *scalar = make(TN_F32, 0, NULL), *v = NULL;

    (void)state;
    assert_int_equal(tni_array_reshape(a, 1, DIMS(11), &v), TN_E_SHAPE);
    assert_int_equal(tni_array_reshape(a, 2, DIMS(-1, 12), &v), TN_E_SHAPE);
    assert_int_equal(tni_array_slice(a, 0, 4, &v), TN_E_ARG);
    assert_int_equal(tni_array_slice(a, -1, 2, &v), TN_E_ARG);
    assert_int_equal(tni_array_slice(a, 2, 1, &v), TN_E_ARG);
    assert_int_equal(tni_array_at(a, 3, &v), TN_E_ARG);
    assert_int_equal(tni_array_at(a, -1, &v), TN_E_ARG);
    assert_int_equal(tni_array_at(scalar, 0, &v), TN_E_SHAPE);
    assert_int_equal(tni_array_slice(scalar, 0, 0, &v), TN_E_SHAPE);
    assert_int_equal(tni_array_view(a, 0, 1, DIMS(13), NULL, &v), TN_E_ARG);
    assert_int_equal(tni_array_view(a, 12, 1, DIMS(1), NULL, &v), TN_E_ARG);
    assert_int_equal(tni_array_view(a, UINT64_MAX, 1, DIMS(2), NULL, &v), TN_E_ARG);
    assert_int_equal(tni_array_view(a, 0, 1, DIMS(2), DIMS(12), &v), TN_E_ARG);
    assert_int_equal(tni_array_view(a, 0, 1, DIMS(2), DIMS(-1), &v), TN_E_SHAPE);
    assert_int_equal(tni_array_view(a, 0, 2, DIMS(3, 3), DIMS(INT64_MAX, INT64_MAX), &v), TN_E_SHAPE);
    assert_null(v);
    tni_array_release(a);
    tni_array_release(scalar);
}

static int released;

static void on_release(void *arg)
{
    released += *(int *)arg;
}

static void wrapped(void **state)
{
    float memory[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int one = 1;
    tni_array *a = NULL, *v = NULL;

    (void)state;
    released = 0;
    assert_int_equal(tni_array_wrap(t.space, t.cpu, memory, sizeof memory, TN_F32, 2, DIMS(2, 2), DIMS(6, 3),
                                    on_release, &one, &a),
                     TN_OK);
    expect(a, (float[]){0, 3, 6, 9}, 4);
    assert_int_equal(tni_array_at(a, 1, &v), TN_OK);
    tni_array_release(a);
    assert_int_equal(released, 0);
    assert_int_equal(tni_array_fill(v, 5), TN_OK);
    assert_int_equal(tni_array_wait(v), TN_OK);
    assert_true(memory[6] == 5 && memory[9] == 5 && memory[7] == 7);
    tni_array_release(v);
    assert_int_equal(released, 1);
    a = NULL;
    assert_int_equal(
        tni_array_wrap(t.space, t.cpu, memory, 12, TN_F32, 1, DIMS(4), NULL, on_release, &one, &a), TN_E_ARG);
    assert_int_equal(tni_array_wrap(t.space, t.cpu, NULL, 16, TN_F32, 1, DIMS(4), NULL, on_release, &one, &a),
                     TN_E_ARG);
    assert_int_equal(tni_array_wrap(t.space, t.cpu, (char *)memory + 2, 16, TN_F32, 1, DIMS(4), NULL,
                                    on_release, &one, &a),
                     TN_E_ARG);
    assert_int_equal(
        tni_array_wrap(t.space, t.cpu, memory, 48, TN_F32, 1, DIMS(2), DIMS(-1), on_release, &one, &a),
        TN_E_SHAPE);
    assert_null(a);
    assert_int_equal(released, 1);
    assert_int_equal(tni_array_wrap(t.space, t.cpu, NULL, 0, TN_F32, 1, DIMS(0), NULL, on_release, &one, &a),
                     TN_OK);
    tni_array_release(a);
    assert_int_equal(released, 2);
}

typedef struct resolve_task {
    tni_array *a;
    int64_t length;
} resolve_task;

static tn_status resolve_run(void *payload, tni_run *run)
{
    const resolve_task *task = payload;
    tn_status st = tni_array_resolve(task->a, 1, &task->length, run->stream);

    if (!st)
        for (int64_t i = 0; i < task->length; i++)
            ((float *)tni_array_data(task->a))[i] = 7;
    return st;
}

static void pending(void **state)
{
    tni_array *a = NULL, *v = NULL;
    resolve_task payload = {.length = 50};
    tni_var *var;
    tni_task task = {.run = resolve_run,
                     .payload = &payload,
                     .payload_bytes = sizeof payload,
                     .writes = &var,
                     .write_count = 1,
                     .device = t.cpu,
                     .name = "resolve"};

    (void)state;
    assert_int_equal(tni_array_create_pending(t.space, t.cpu, TN_F32, &a), TN_OK);
    assert_int_equal(tni_array_shape_wait(a), TN_E_STATE);
    assert_int_equal(tni_array_slice(a, 0, 1, &v), TN_E_STATE);
    payload.a = a;
    var = tni_array_var(a);
    assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
    assert_int_equal(tni_array_shape_wait(a), TN_OK);
    assert_int_equal(a->ndim, 1);
    assert_int_equal(tni_array_slice(a, 48, 50, &v), TN_OK);
    expect(v, (float[]){7, 7}, 2);
    tni_array_release(v);
    assert_int_equal(tni_array_resolve(a, 1, DIMS(2), NULL), TN_E_STATE);
    tni_array_release(a);
    assert_int_equal(tni_array_create_pending(t.space, t.cpu, TN_F32, &a), TN_OK);
    assert_int_equal(tni_array_resolve(a, 1, DIMS(-3), NULL), TN_E_SHAPE);
    assert_int_equal(tni_array_resolve(a, 2, DIMS(0, 3), NULL), TN_OK);
    tni_array_release(a);
    assert_int_equal(tni_array_create_pending(t.space, t.cpu, 99, &a), TN_E_DTYPE);
}

static void sparse(void **state)
{
    tni_array *ids = make(TN_I64, 1, DIMS(2)), *starts = make(TN_I64, 1, DIMS(4)), *a = NULL, *v = NULL;

    (void)state;
    assert_int_equal(tni_array_create_sparse(t.space, t.cpu, TN_STORAGE_ROW_SPARSE, TN_F32, 2, DIMS(5, 3),
                                             (tni_array *[2]){ids, NULL}, &a),
                     TN_OK);
    assert_int_equal(tni_array_values(a, &v), TN_OK);
    assert_int_equal(v->shape[0], 2);
    assert_int_equal(v->shape[1], 3);
    assert_int_equal(tni_array_write(v, (float[]){1, 2, 3, 4, 5, 6}, 24), TN_OK);
    expect(v, (float[]){1, 2, 3, 4, 5, 6}, 6);
    assert_int_equal(tni_array_copy(a, a), TN_E_UNSUPPORTED);
    assert_int_equal(tni_array_fill(a, 0), TN_E_UNSUPPORTED);
    tni_array_release(v);
    tni_array_release(a);
    a = NULL;
    assert_int_equal(tni_array_create_sparse(t.space, t.cpu, TN_STORAGE_CSR, TN_F32, 2, DIMS(3, 9),
                                             (tni_array *[2]){starts, ids}, &a),
                     TN_OK);
    assert_int_equal(tni_array_values(a, &v), TN_OK);
    assert_int_equal(tni_array_count(v), 2);
    tni_array_release(v);
    tni_array_release(a);
    a = NULL;
    assert_int_equal(tni_array_create_sparse(t.space, t.cpu, TN_STORAGE_CSR, TN_F32, 2, DIMS(9, 9),
                                             (tni_array *[2]){starts, ids}, &a),
                     TN_E_SHAPE);
    assert_int_equal(tni_array_create_sparse(t.space, t.cpu, TN_STORAGE_CSR, TN_F32, 1, DIMS(3),
                                             (tni_array *[2]){starts, ids}, &a),
                     TN_E_SHAPE);
    assert_int_equal(tni_array_create_sparse(t.space, t.cpu, TN_STORAGE_ROW_SPARSE, TN_F32, 1, DIMS(1),
                                             (tni_array *[2]){ids, NULL}, &a),
                     TN_E_SHAPE);
    assert_int_equal(
        tni_array_create_sparse(t.space, t.cpu, 7, TN_F32, 1, DIMS(1), (tni_array *[2]){ids, NULL}, &a),
        TN_E_SHAPE);
    assert_null(a);
    tni_array_release(ids);
    tni_array_release(starts);
}

/* Each allocation of a little story fails once: no crash, no leak, a status. */
static tn_status story(void)
{
    tni_array *a = NULL, *b = NULL, *v = NULL;
    int64_t shape[6] = {2, 2, 2, 2, 2, 8};
    float out[256];
    tn_status st;

    if ((st = tni_array_create(t.space, t.cpu, TN_F32, 6, shape, NULL, &a)) || (st = tni_array_fill(a, 3)) ||
        (st = tni_array_create(t.space, t.cpu, TN_F64, 6, shape, NULL, &b)) || (st = tni_array_copy(a, b)) ||
        (st = tni_array_at(b, 1, &v)) || (st = tni_array_fill(v, 1)) || (st = tni_array_copy(b, a)) ||
        (st = tni_array_read(a, out, sizeof out)))
        goto cleanup;
    assert_true(out[0] == 3 && out[255] == 1);

cleanup:
    tni_array_release(v);
    tni_array_release(a);
    tni_array_release(b);
    return st;
}

static void failing_allocation(void **state)
{
    uint64_t arrays, nth = 0;
    tni_memory_stats before, after;
    tn_status st;

    (void)state;
    assert_int_equal(story(), TN_OK);
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &before), TN_OK);
    do {
        tni_mem_fail_at(++nth, false, false);
        st = story();
        tni_mem_fail_at(0, false, false);
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        tni_space_live(t.space, &arrays, NULL);
        assert_int_equal(arrays, 0);
    } while (tni_mem_failed() && nth < 200);
    assert_true(nth < 200);
    assert_int_equal(tni_device_memory(t.cpu, TN_MEMORY_DEVICE, &after), TN_OK);
    assert_int_equal(before.live, after.live);
}

/* The number of stored elements comes later, once, and fits the shape. */
static void sparse_later(void **state)
{
    tni_array *a = NULL, *v = NULL;

    (void)state;
    assert_int_equal(
        tni_array_create_sparse_pending(t.space, t.cpu, TN_STORAGE_ROW_SPARSE, TN_F32, 2, DIMS(5, 3), &a),
        TN_OK);
    assert_true(tni_sparse_pending(a));
    assert_int_equal(tni_sparse_resolve(a, -1), TN_E_SHAPE);
    assert_int_equal(tni_sparse_resolve(a, 6), TN_E_SHAPE);
    assert_true(tni_sparse_pending(a));
    assert_int_equal(tni_sparse_resolve(a, 2), TN_OK);
    assert_false(tni_sparse_pending(a));
    assert_int_equal(tni_sparse_resolve(a, 2), TN_E_STATE);
    assert_int_equal(tni_array_values(a, &v), TN_OK);
    assert_true(tni_array_has_shape(v, 2, DIMS(2, 3)));
    assert_false(tni_array_writable(a->aux[0]));
    assert_true(tni_array_writable(v));
    tni_array_release(v);
    tni_array_release(a);
    assert_int_equal(
        tni_array_create_sparse_pending(t.space, t.cpu, TN_STORAGE_CSR, TN_F32, 2, DIMS(3, 9), &a), TN_OK);
    assert_int_equal(tni_sparse_resolve(a, 28), TN_E_SHAPE);
    assert_int_equal(tni_sparse_resolve(a, 27), TN_OK);
    assert_true(tni_array_has_shape(a->aux[0], 1, DIMS(4)) && tni_array_has_shape(a->aux[1], 1, DIMS(27)));
    tni_array_release(a);
    a = NULL;
    assert_int_equal(tni_array_create_sparse_pending(t.space, t.cpu, TN_STORAGE_CSR, TN_F32, 1, DIMS(3), &a),
                     TN_E_SHAPE);
    assert_int_equal(tni_array_create_sparse_pending(t.space, t.cpu, 7, TN_F32, 2, DIMS(3, 3), &a),
                     TN_E_SHAPE);
    assert_int_equal(tni_array_create_sparse_pending(t.space, t.cpu, TN_STORAGE_CSR, 99, 2, DIMS(3, 3), &a),
                     TN_E_DTYPE);
    assert_null(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),           cmocka_unit_test(delayed),
        cmocka_unit_test(versions_differ), cmocka_unit_test(views),
        cmocka_unit_test(bad_views),       cmocka_unit_test(wrapped),
        cmocka_unit_test(pending),         cmocka_unit_test(sparse),
        cmocka_unit_test(sparse_later),    cmocka_unit_test(failing_allocation),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
