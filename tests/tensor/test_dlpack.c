/* DLPack both ways, both structs, and every field of a capsule wrong once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/space.h"
#include "tensor/dlpack.h"

TEST_SPACE(t, "naive")
static int deleted;

static void on_delete(DLManagedTensorVersioned *m)
{
    (void)m;
    deleted++;
}

static void on_delete_legacy(DLManagedTensor *m)
{
    (void)m;
    deleted++;
}

static tni_array *sample(int32_t dtype)
{
    const int64_t shape[] = {3, 4};
    const double values[12] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1};
    unsigned char raw[96];
    tni_array *a = NULL;

    assert_int_equal(tni_array_create(t.space, t.cpu, dtype, 2, shape, NULL, &a), TN_OK);
    tni_cast(values, TN_F64, 1, raw, dtype, 1, 12);
    assert_int_equal(tni_array_write(a, raw, tni_array_bytes(a)), TN_OK);
    return a;
}

/* Out and in again without a copy; the array lives as long as the capsule. */
static void round_trip(void **state)
{
    (void)state;
    for (int32_t dtype = 0; dtype < TN_I4; dtype++) {
        tni_array *a = sample(dtype), *b = NULL, *c = NULL;
        DLManagedTensorVersioned *m = NULL;
        DLManagedTensor *old = NULL;
        unsigned char raw[96];
        void *data = tni_array_data(a);

        assert_int_equal(tni_dlpack_export(a, true, &m), TN_OK);
        assert_int_equal(tni_dlpack_export_legacy(a, &old), TN_OK);
        tni_array_release(a);
        assert_ptr_equal(m->dl_tensor.data, data);
        assert_int_equal(m->flags, 0);
        assert_int_equal(m->major, 1);
        assert_int_equal(tni_dlpack_import(t.space, m, &b), TN_OK);
        assert_int_equal(tni_dlpack_import_legacy(t.space, old, &c), TN_OK);
        assert_int_equal(b->dtype, dtype);
        assert_ptr_equal(tni_array_data(b), data);
        assert_ptr_equal(tni_array_data(c), data);
        assert_int_equal(tni_array_fill(c, 1), TN_OK);
        assert_int_equal(tni_array_read(b, raw, tni_array_bytes(b)), TN_OK);
        tni_array_release(b);
        tni_array_release(c);
    }
}

static void read_only(void **state)
{
    tni_array *a = sample(TN_F32), *b = NULL, *row = NULL, *view = NULL;
    DLManagedTensorVersioned *m = NULL;
    DLManagedTensor *old = NULL;
    const int64_t shape[] = {2, 2}, stride[] = {4, 2};

    (void)state;
    assert_int_equal(tni_array_view(a, 1, 2, shape, stride, &view), TN_OK);
    assert_int_equal(tni_dlpack_export(view, false, &m), TN_OK);
    assert_int_equal(m->flags & TNI_DL_READ_ONLY, 1);
    assert_int_equal(m->dl_tensor.strides[0], 4);
    assert_int_equal(tni_dlpack_import(t.space, m, &b), TN_OK);
    assert_int_equal(tni_array_fill(b, 0), TN_E_STATE);
    assert_int_equal(tni_array_at(b, 0, &row), TN_OK);
    assert_int_equal(tni_array_fill(row, 0), TN_E_STATE);
    assert_int_equal(tni_dlpack_export(b, true, &m), TN_E_STATE);
    assert_int_equal(tni_dlpack_export_legacy(b, &old), TN_E_STATE);
    tni_array_release(row);
    tni_array_release(b);
    tni_array_release(view);
    tni_array_release(a);
}

static DLManagedTensorVersioned *reset(DLManagedTensorVersioned *m)
{
    static float data[16];
    static int64_t shape[2], strides[2];

    shape[0] = 2;
    shape[1] = 3;
    strides[0] = 4;
    strides[1] = 1;
    *m = (DLManagedTensorVersioned){
        .major = 1,
        .minor = 3,
        .deleter = on_delete,
        .dl_tensor = {.data = data,
                      .device_type = TNI_DL_CPU,
                      .ndim = 2,
                      .dtype = {TNI_DL_FLOAT, 32, 1},
                      .shape = shape,
                      .strides = strides,
                      .byte_offset = 4},
    };
    return m;
}

static void refused(DLManagedTensorVersioned *m, tn_status want)
{
    tni_array *a = NULL;

    tni_error_clear();
    assert_int_equal(tni_dlpack_import(t.space, m, &a), want);
    assert_null(a);
    assert_int_equal(deleted, 0);
    assert_true(strlen(tni_error_message()) > 10);
}

static void bad_numbers(void **state)
{
    DLManagedTensorVersioned m;
    tni_array *a = NULL;

    (void)state;
    deleted = 0;
    refused(NULL, TN_E_ARG);
    reset(&m)->major = 2;
    refused(&m, TN_E_UNSUPPORTED);
    reset(&m)->dl_tensor.device_type = 2;
    refused(&m, TN_E_UNSUPPORTED);
    reset(&m)->dl_tensor.ndim = -1;
    refused(&m, TN_E_SHAPE);
    reset(&m)->dl_tensor.ndim = 33;
    refused(&m, TN_E_SHAPE);
    reset(&m)->dl_tensor.shape = NULL;
    refused(&m, TN_E_ARG);
    reset(&m)->dl_tensor.data = NULL;
    refused(&m, TN_E_ARG);
    reset(&m)->dl_tensor.byte_offset = 2;
    refused(&m, TN_E_ARG);
    reset(&m)->dl_tensor.byte_offset = UINT64_MAX - 8;
    refused(&m, TN_E_ARG);
    reset(&m)->dl_tensor.dtype.lanes = 4;
    refused(&m, TN_E_DTYPE);
    reset(&m)->dl_tensor.dtype.bits = 31;
    refused(&m, TN_E_DTYPE);
    reset(&m)->dl_tensor.dtype.code = 5;
    refused(&m, TN_E_DTYPE);
    reset(&m)->dl_tensor.strides[0] = -4;
    refused(&m, TN_E_SHAPE);
    reset(&m)->dl_tensor.strides[0] = INT64_MAX;
    refused(&m, TN_E_SHAPE);
    reset(&m)->dl_tensor.shape[1] = -3;
    refused(&m, TN_E_SHAPE);
    reset(&m)->dl_tensor.shape[1] = INT64_MAX;
    refused(&m, TN_E_SHAPE);
    (void)reset(&m);
    assert_int_equal(tni_dlpack_import(t.space, &m, &a), TN_OK);
    assert_int_equal(deleted, 0);
    tni_array_release(a);
    assert_int_equal(deleted, 1);
}

static void legacy_and_empty(void **state)
{
    DLManagedTensorVersioned m;
    DLManagedTensor old = {.deleter = on_delete_legacy};
    tni_array *a = NULL;

    (void)state;
    old.dl_tensor = reset(&m)->dl_tensor;
    deleted = 0;
    assert_int_equal(tni_dlpack_import_legacy(t.space, NULL, &a), TN_E_ARG);
    old.dl_tensor.dtype.code = 9;
    assert_int_equal(tni_dlpack_import_legacy(t.space, &old, &a), TN_E_DTYPE);
    old.dl_tensor = m.dl_tensor;
    old.dl_tensor.strides = NULL;
    assert_int_equal(tni_dlpack_import_legacy(t.space, &old, &a), TN_OK);
    assert_true(a->flags & TNI_ARRAY_CONTIGUOUS);
    tni_array_release(a);
    assert_int_equal(deleted, 1);
    m.dl_tensor.shape[0] = 0;
    m.dl_tensor.data = NULL;
    m.deleter = NULL;
    assert_int_equal(tni_dlpack_import(t.space, &m, &a), TN_OK);
    assert_int_equal(tni_array_count(a), 0);
    tni_array_release(a);
}

static void failing_allocation(void **state)
{
    uint64_t nth = 0;

    (void)state;
    do {
        DLManagedTensorVersioned m, *out = NULL;
        tni_array *a = NULL;
        tn_status st;

        deleted = 0;
        (void)reset(&m);
        tni_mem_fail_at(++nth, false, true);
        st = tni_dlpack_import(t.space, &m, &a);
        if (!st)
            st = tni_dlpack_export(a, true, &out);
        tni_mem_fail_at(0, false, false);
        assert_int_equal(deleted, 0);
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        if (out)
            out->deleter(out);
        tni_array_release(a);
        assert_int_equal(deleted, a != NULL);
    } while (tni_mem_failed() && nth < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),         cmocka_unit_test(read_only),
        cmocka_unit_test(bad_numbers),        cmocka_unit_test(legacy_and_empty),
        cmocka_unit_test(failing_allocation),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
