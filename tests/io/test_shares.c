/*
 * Shares of text files: every row is in one, the one that the definition says. A line that begins at byte
 * s > 0 is of share ceil(s / step) - 1, where step is the bytes of the file divided by the number of shares,
 * rounded up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

#define ROWS 40

TEST_SPACE(t, "naive")

typedef struct text {
    char bytes[8192];
    size_t count, starts[ROWS]; /* of rows */
    uint32_t drawn;
} text;

static uint32_t draw(text *x, uint32_t below)
{
    x->drawn = x->drawn * 1664525u + 1013904223u;
    return (x->drawn >> 16) % below;
}

/* Rows of random lengths, some empty lines between, line ends of both kinds. */
static void text_make(text *x, uint32_t seed, bool csv, bool header)
{
    *x = (text){.drawn = seed};
    if (header)
        x->count += (size_t)sprintf(x->bytes + x->count, "name,other\n");
    for (int i = 0; i < ROWS; i++) {
        if (i && draw(x, 5) == 0)
            x->count += (size_t)sprintf(x->bytes + x->count, "\n");
        x->starts[i] = x->count;
        x->count +=
            (size_t)sprintf(x->bytes + x->count, csv ? "%d,0.%0*d" : "%d 3:%0*d", i, 1 + (int)draw(x, 20), 5);
        x->count += (size_t)sprintf(x->bytes + x->count, draw(x, 3) ? "\n" : "\r\n");
    }
}

static const char *text_write(const text *x, bool packed)
{
    const char *path = scratch_write("x.txt", x->bytes, x->count);

    if (packed) {
        gzFile g = gzopen(path, "wb");

        assert_int_equal(gzwrite(g, x->bytes, (unsigned)x->count), x->count);
        assert_int_equal(gzclose(g), Z_OK);
    }
    return path;
}

static uint32_t share_of(size_t start, size_t total, uint32_t parts)
{
    const size_t step = (total + parts - 1) / parts;

    return start ? (uint32_t)((start + step - 1) / step - 1) : 0;
}

/* First number of row `row` in the share; rows of it. */
static int64_t load(const char *path, bool csv, uint32_t part, uint32_t parts, uint64_t *before, float *first)
{
    const tni_libsvm_share share = {path, 9, part, parts};
    tni_array *x = NULL, *y = NULL;
    const tn_status st = csv ? tni_csv_load_part(t.space, path, part, parts, before, &x)
                             : tni_libsvm_load_part(t.space, &share, &x, &y, before);
    int64_t rows;

    if (st) {
        assert_int_equal(st, TN_E_FORMAT);
        assert_non_null(strstr(tni_error_message(), "in this share"));
        return 0;
    }
    rows = x->shape[0];
    assert_int_equal(x->shape[1], csv ? 2 : 9);
    for (int64_t i = 0; i < rows; i++)
        first[i] = csv ? ((const float *)tni_array_data(x))[2 * i] : ((const float *)tni_array_data(y))[i];
    tni_array_release(x);
    tni_array_release(y);
    return rows;
}

static void shares(void **state)
{
    static text x;
    float first[ROWS];

    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        const bool csv = seed % 2, header = csv && seed % 4 == 1;
        const uint32_t parts = 2 + seed % 50;
        const char *path;
        int row = 0;

        text_make(&x, seed, csv, header);
        path = text_write(&x, seed % 3 == 0);
        for (uint32_t part = 0; part < parts; part++) {
            uint64_t before = 0;
            const int64_t rows = load(path, csv, part, parts, &before, first);

            if (rows && before != (uint64_t)row)
                fail_msg("seed %u, part %u of %u: %d rows before", seed, part, parts, (int)before);
            for (int64_t i = 0; i < rows; i++, row++)
                if ((int)first[i] != row || share_of(x.starts[row], x.count, parts) != part)
                    fail_msg("seed %u, part %u of %u: row %d", seed, part, parts, (int)first[i]);
        }
        assert_int_equal(row, ROWS);
    }
}

/* A mistake in another share of a LibSVM file is one, too: its columns are those of the whole file. */
static void others(void **state)
{
    const char *path = scratch_write("x", "1 0:1\n2 5:1\n3 1:1\n", 18);
    const tni_libsvm_share share = {path, 0, 0, 3};
    tni_array *x = NULL, *y = NULL;

    (void)state;
    assert_int_equal(tni_libsvm_load_part(t.space, &share, &x, &y, NULL), TN_OK);
    assert_int_equal(x->shape[1], 6);
    tni_array_release(x);
    tni_array_release(y);
    path = scratch_write("x", "1 0:1\n2 5:1\n3 1:z\n", 18);
    assert_int_equal(tni_libsvm_load_part(t.space, &share, &x, &y, NULL), TN_E_FORMAT);
    path = scratch_write("x", "1,2\n", 4);
    assert_int_equal(tni_csv_load_part(t.space, path, UINT32_MAX - 1, UINT32_MAX, NULL, &x), TN_E_FORMAT);
    path = scratch_write("x", "", 0);
    assert_int_equal(tni_csv_load_part(t.space, path, 1, 2, NULL, &x), TN_E_FORMAT);
    assert_int_equal(tni_csv_load_part(t.space, scratch_path("absent"), 1, 2, NULL, &x), TN_E_IO);
}

static tn_status load_once(void *arg)
{
    tni_array *a = NULL;
    const tn_status st = tni_csv_load_part(t.space, arg, 1, 2, NULL, &a);

    tni_array_release(a);
    return st;
}

static void out_of_memory(void **state)
{
    const char *path = scratch_write("fail.csv", "a,b\n1,2\n3,4\n", 12);

    (void)state;
    assert_true(scratch_each_allocation_fails(load_once, (void *)(uintptr_t)path) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(others),
        cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
