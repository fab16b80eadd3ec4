/* IDX: every type, plain and gzip, pairs, the shipped digits, truncations, lies, bombs,
 * failing allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

static test_space t;
static char folder[256], path[300], other[300];

static int open_space(void **state)
{
    (void)state;
    test_space_open(&t, "naive");
    (void)snprintf(folder, sizeof folder, "%s/tenon-idx-XXXXXX", scratch_root());
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof path, "%s/x", folder);
    (void)snprintf(other, sizeof other, "%s/y", folder);
    return 0;
}

static int close_space(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(other);
    test_space_close(&t);
    return rmdir(folder);
}

static void save(const char *to, const void *bytes, size_t count, bool gz)
{
    gzFile g;

    if (!gz) {
        scratch_put(to, bytes, count);
        return;
    }
    g = gzopen(to, "wb");
    assert_non_null(g);
    if (count)
        assert_int_equal(gzwrite(g, bytes, (unsigned)count), count);
    assert_int_equal(gzclose(g), Z_OK);
}

static tn_status load(const void *bytes, size_t count, bool gz)
{
    tni_array *a = NULL;
    tn_status st;

    save(path, bytes, count, gz);
    st = tni_idx_load(t.space, path, &a);
    assert_true((st == TN_OK) == (a != NULL));
    tni_array_release(a);
    return st;
}

/* 2 x 3 elements 1, 2, … as big-endian numbers. */
static size_t sample(unsigned char code, unsigned char *out)
{
    static const unsigned char head[] = {0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3};
    static const unsigned char floats[6][2] = {{0x3f, 0x80}, {0x40, 0},    {0x40, 0x40},
                                               {0x40, 0x80}, {0x40, 0xa0}, {0x40, 0xc0}};
    static const unsigned char doubles[6][2] = {{0x3f, 0xf0}, {0x40, 0},    {0x40, 8},
                                                {0x40, 0x10}, {0x40, 0x14}, {0x40, 0x18}};
    size_t item = code <= 9 ? 1 : code == 0xb ? 2 : code == 0xe ? 8 : 4;

    memcpy(out, head, sizeof head);
    out[2] = code;
    memset(out + sizeof head, 0, 6 * item);
    for (size_t i = 0; i < 6; i++)
        if (code == 0xd)
            memcpy(out + sizeof head + i * item, floats[i], 2);
        else if (code == 0xe)
            memcpy(out + sizeof head + i * item, doubles[i], 2);
        else
            out[sizeof head + i * item + item - 1] = (unsigned char)(i + 1);
    return sizeof head + 6 * item;
}

static const unsigned char codes[] = {8, 9, 0xb, 0xc, 0xd, 0xe};
static const int32_t dtypes[] = {TN_U8, TN_I8, TN_I16, TN_I32, TN_F32, TN_F64};

static void every_type(void **state)
{
    unsigned char bytes[128];

    (void)state;
    for (size_t i = 0; i < sizeof codes; i++)
        for (int gz = 0; gz < 2; gz++) {
            size_t count = sample(codes[i], bytes);
            unsigned char raw[48];
            double values[6];
            tni_array *a = NULL;

            save(path, bytes, count, gz);
            assert_int_equal(tni_idx_load(t.space, path, &a), TN_OK);
            assert_int_equal(a->dtype, dtypes[i]);
            assert_int_equal(a->ndim, 2);
            assert_int_equal(a->shape[1], 3);
            assert_int_equal(tni_array_read(a, raw, tni_array_bytes(a)), TN_OK);
            tni_cast(raw, a->dtype, 1, values, TN_F64, 1, 6);
            for (int k = 0; k < 6; k++)
                assert_true(values[k] == k + 1);
            tni_array_release(a);
        }
}

static void truncations(void **state)
{
    unsigned char bytes[128], packed[256];
    uint64_t packed_count;
    size_t count = sample(0xc, bytes);
    char *whole;

    (void)state;
    for (size_t cut = 0; cut < count; cut++) {
        assert_int_equal(load(bytes, cut, false), TN_E_FORMAT);
        assert_int_equal(load(bytes, cut, true), TN_E_FORMAT);
    }
    save(path, bytes, count, true);
    assert_int_equal(tni_file_read_all(path, sizeof packed, &whole, &packed_count), TN_OK);
    for (uint64_t cut = 0; cut < packed_count; cut++)
        assert_int_equal(load(whole, cut, false), TN_E_FORMAT);
    tni_free(whole);
    bytes[count] = 0;
    assert_int_equal(load(bytes, count + 1, false), TN_E_FORMAT);
    assert_int_equal(load(bytes, count + 1, true), TN_E_FORMAT);
}

static void mutations(void **state)
{
    unsigned char bytes[128], changed[128];
    uint64_t random = 7;
    size_t count = sample(8, bytes);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        memcpy(changed, bytes, count);
        random = random * 6364136223846793005u + 1442695040888963407u;
        changed[(random >> 33) % count] = (unsigned char)(random >> 20);
        (void)load(changed, count, i & 1);
    }
}

/* A head that promises 4 GB with nothing behind it, plain and packed. */
static void lies(void **state)
{
    static const unsigned char huge[] = {0, 0, 8, 2, 0, 1, 0, 0, 0, 1, 0, 0};
    static const unsigned char overflow[] = {0,   0,   14,  3,   255, 255, 255, 255,
                                             255, 255, 255, 255, 255, 255, 255, 255};
    static const unsigned char no_dims[] = {0, 0, 8, 0, 1}, many[] = {0, 0, 8, 33, 1},
                               code[] = {0, 0, 10, 1, 1};
    static const unsigned char magic[] = {0x50, 0x4b, 8, 1, 0, 0, 0, 0}, empty[] = {0, 0, 8, 1, 0, 0, 0, 0};
    tni_mem_stats before, after;
    tni_array *a = NULL;

    (void)state;
    tni_mem_stats_get(&before);
    for (int gz = 0; gz < 2; gz++) {
        assert_int_equal(load(huge, sizeof huge, gz), TN_E_FORMAT);
        assert_int_equal(load(overflow, sizeof overflow, gz), TN_E_FORMAT);
        assert_int_equal(load(no_dims, sizeof no_dims, gz), TN_E_FORMAT);
        assert_int_equal(load(many, sizeof many, gz), TN_E_FORMAT);
        assert_int_equal(load(code, sizeof code, gz), TN_E_FORMAT);
        assert_int_equal(load(magic, sizeof magic, gz), TN_E_FORMAT);
        assert_int_equal(load(empty, sizeof empty, gz), TN_OK);
    }
    tni_mem_stats_get(&after);
    assert_true(after.peak_bytes < before.live_bytes + ((uint64_t)8 << 20));
    assert_int_equal(tni_idx_load(t.space, "/nowhere/at/all", &a), TN_E_IO);
    assert_int_equal(tni_idx_load(t.space, folder, &a), TN_E_IO);
}

/* 32 MiB of zeros in 32 KiB: memory follows what comes, not what is promised. */
static void bombs(void **state)
{
    const size_t count = 8 + ((size_t)32 << 20);
    unsigned char *bytes = tni_zalloc(count);
    tni_mem_stats before, after;

    (void)state;
    bytes[2] = 8, bytes[3] = 1, bytes[4] = 2;
    assert_int_equal(load(bytes, count, true), TN_OK);
    bytes[4] = 0x40; /* promises 1 GiB */
    save(path, bytes, count, true);
    tni_free(bytes);
    tni_mem_stats_get(&before);
    {
        tni_array *a = NULL;

        assert_int_equal(tni_idx_load(t.space, path, &a), TN_E_FORMAT);
        assert_null(a);
    }
    tni_mem_stats_get(&after);
    assert_true(after.peak_bytes <= before.live_bytes + 2 * count + ((uint64_t)64 << 20));
}

static void pairs(void **state)
{
    static const unsigned char images[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 5, 6};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0},
                               three[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 2};
    static const unsigned char floats[] = {0, 0, 13, 1, 0, 0, 0, 1, 0, 0, 0, 0};
    tni_array *x = NULL, *y = NULL;

    (void)state;
    save(path, images, sizeof images, false);
    save(other, labels, sizeof labels, true);
    assert_int_equal(tni_idx_load_pair(t.space, path, other, &x, &y), TN_OK);
    assert_int_equal(x->shape[0], y->shape[0]);
    tni_array_release(x);
    tni_array_release(y);
    x = y = NULL;
    save(other, three, sizeof three, false);
    assert_int_equal(tni_idx_load_pair(t.space, path, other, &x, &y), TN_E_FORMAT);
    save(other, floats, sizeof floats, false);
    assert_int_equal(tni_idx_load_pair(t.space, path, other, &x, &y), TN_E_FORMAT);
    assert_int_equal(tni_idx_load_pair(t.space, other, path, &x, &y), TN_E_FORMAT);
    assert_null(x);
    assert_null(y);
}

static void digits(void **state)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char images[600], labels[600];
    tni_array *x = NULL, *y = NULL;

    (void)state;
    for (int by_writer = 0; by_writer < 2; by_writer++) {
        const char *set = by_writer ? "digits-by-writer" : "digits", *end = by_writer ? ".gz" : "";

        (void)snprintf(images, sizeof images, "%s/examples/data/%s/train-images-idx3-ubyte%s",
                       source ? source : ".", set, end);
        (void)snprintf(labels, sizeof labels, "%s/examples/data/%s/train-labels-idx1-ubyte%s",
                       source ? source : ".", set, end);
        assert_int_equal(tni_idx_load_pair(t.space, images, labels, &x, &y), TN_OK);
        assert_int_equal(x->shape[0], 1437);
        assert_int_equal(x->shape[1], 8);
        assert_int_equal(x->shape[2], 8);
        for (int64_t i = 0; i < y->shape[0]; i++)
            assert_true(((const uint8_t *)tni_array_data(y))[i] < 10);
        tni_array_release(x);
        tni_array_release(y);
    }
}

static void failing_allocation(void **state)
{
    unsigned char bytes[128];
    size_t count = sample(0xd, bytes);

    (void)state;
    for (int gz = 0; gz < 2; gz++) {
        uint64_t nth = 0, arrays;
        tn_status st;

        save(path, bytes, count, gz);
        do {
            tni_array *a = NULL;

            tni_mem_fail_at(++nth, false, true);
            st = tni_idx_load(t.space, path, &a);
            tni_mem_fail_at(0, false, false);
            assert_true(st == TN_E_NOMEM || (st == TN_OK && !tni_mem_failed()));
            tni_array_release(a);
            tni_space_live(t.space, &arrays, NULL);
            assert_int_equal(arrays, 0);
        } while (st && nth < 100);
        assert_true(nth < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type), cmocka_unit_test(truncations),
        cmocka_unit_test(mutations),  cmocka_unit_test(lies),
        cmocka_unit_test(bombs),      cmocka_unit_test(pairs),
        cmocka_unit_test(digits),     cmocka_unit_test(failing_allocation),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
