/* .npy: heads as NumPy writes them, versions 1 to 3, own files, Fortran order, every wrong head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

static test_space t;
static char path[256];

static int open_space(void **state)
{
    int fd;

    (void)state;
    test_space_open(&t, "naive");
    (void)snprintf(path, sizeof path, "%s/tenon-npy-XXXXXX", scratch_root());
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int close_space(void **state)
{
    (void)state;
    test_space_close(&t);
    return unlink(path);
}

static tn_status load(int version, const char *head, const void *data, size_t bytes, tni_array **out)
{
    unsigned char file[4096] = "\x93NUMPY";
    size_t length = strlen(head), at = version == 1 ? 10 : 12;

    file[6] = (unsigned char)version;
    file[8] = (unsigned char)(length & 0xff);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + at, head, length);
    if (bytes)
        memcpy(file + at + length, data, bytes);
    scratch_put(path, file, at + length + bytes);
    return tni_npy_load(t.space, path, out);
}

static void from_numpy(void **state)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    float out[6];
    tni_array *a = NULL;

    (void)state;
    for (int version = 1; version <= 3; version++) {
        assert_int_equal(
            load(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n", x, 24, &a),
            TN_OK);
        assert_int_equal(a->shape[1], 3);
        assert_int_equal(tni_array_read(a, out, 24), TN_OK);
        assert_memory_equal(x, out, 24);
        tni_array_release(a);
    }
    assert_int_equal(load(1, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}", x, 24, &a), TN_OK);
    assert_int_equal(tni_array_read(a, out, 24), TN_OK);
    assert_memory_equal(((float[]){1, 3, 5, 2, 4, 6}), out, 24);
    tni_array_release(a);
    assert_int_equal(load(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", x, 1, &a), TN_OK);
    assert_int_equal(a->ndim, 0);
    tni_array_release(a);
    assert_int_equal(load(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3L,), }\n", x, 3, &a),
                     TN_OK);
    assert_int_equal(a->dtype, TN_BOOL);
    tni_array_release(a);
    assert_int_equal(load(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (0, 7), }\n", x, 0, &a),
                     TN_OK);
    tni_array_release(a);
}

static void refused(void **state)
{
    static const struct {
        const char *head;
        tn_status want;
    } heads[] = {
        {"", TN_E_FORMAT},
        {"{}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", TN_E_FORMAT},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}",
         TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", TN_E_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'extra': 1, 'shape': (1,)}", TN_E_FORMAT},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", TN_E_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", TN_E_UNSUPPORTED},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", TN_E_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", TN_E_FORMAT},
    };
    const float x = 1;
    tni_array *a = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(load(1, heads[i].head, &x, 4, &a), heads[i].want);
    assert_int_equal(load(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &x, 4, &a),
                     TN_E_FORMAT);
    scratch_put(path, "\x93NUMPY\1\0\xff\xff{", 11);
    assert_int_equal(tni_npy_load(t.space, path, &a), TN_E_FORMAT);
    assert_null(a);
}

static void round_trips(void **state)
{
    static const int64_t shapes[][3] = {{2, 3, 4}, {5, 1, 0}, {7, 0, 0}};
    const double values[24] = {1, 0, 2, 3};
    unsigned char raw[192], back[192];

    (void)state;
    for (int32_t dtype = 0; dtype < TN_I4; dtype++)
        for (int32_t ndim = 0; ndim <= 3; ndim++) {
            tni_array *a = NULL, *b = NULL;
            uint64_t bytes;

            assert_int_equal(
                tni_array_create(t.space, t.cpu, dtype, ndim, shapes[3 - (ndim ? ndim : 1)], NULL, &a),
                TN_OK);
            bytes = tni_array_bytes(a);
            tni_cast(values, TN_F64, 1, raw, dtype, 1, 24);
            assert_int_equal(tni_array_write(a, raw, bytes), TN_OK);
            if (dtype == TN_BF16) {
                assert_int_equal(tni_npy_save(a, path), TN_E_UNSUPPORTED);
            } else {
                assert_int_equal(tni_npy_save(a, path), TN_OK);
                assert_int_equal(tni_npy_load(t.space, path, &b), TN_OK);
                assert_int_equal(b->dtype, dtype);
                assert_int_equal(b->ndim, ndim);
                assert_int_equal(tni_array_read(b, back, bytes), TN_OK);
                assert_memory_equal(raw, back, bytes);
            }
            tni_array_release(a);
            tni_array_release(b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_numpy),
        cmocka_unit_test(refused),
        cmocka_unit_test(round_trips),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
