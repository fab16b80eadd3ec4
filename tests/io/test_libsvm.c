/* LibSVM: rows, labels and sizes, comments, gzip; what is no such file, each with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

#define MARK "\xef\xbb\xbf" /* of UTF-8 */

TEST_SPACE(t, "naive")

static void ints_check(tni_array *a, int64_t count, const int64_t *want)
{
    assert_int_equal(a->dtype, TN_I64);
    assert_int_equal(a->shape[0], count);
    assert_memory_equal(tni_array_data(a), want, (size_t)count * sizeof *want);
}

/* Three rows: 0.5 at 0 and 2 at 3; nothing; -1 at 1. */
static void rows_check(tni_array *x, tni_array *y, int64_t columns)
{
    static const float labels[] = {1, -1, 2.5f}, values[] = {0.5f, 2, -1};
    tni_array *dense = NULL;

    assert_int_equal(x->storage_type, TN_STORAGE_CSR);
    assert_true(x->ndim == 2 && x->shape[0] == 3 && x->shape[1] == columns);
    ints_check(x->aux[0], 4, (int64_t[]){0, 2, 2, 3});
    ints_check(x->aux[1], 3, (int64_t[]){0, 3, 1});
    assert_int_equal(tni_array_values(x, &dense), TN_OK);
    assert_memory_equal(tni_array_data(dense), values, sizeof values);
    tni_array_release(dense);
    assert_true(y->ndim == 1 && y->shape[0] == 3 && y->dtype == TN_F32);
    assert_memory_equal(tni_array_data(y), labels, sizeof labels);
}

static void read_well(void **state)
{
    static const char *const texts[] = {
        "1 0:0.5 3:2\n-1\n2.5 1:-1\n",
        "1 0:0.5 3:2\n-1\n2.5 1:-1",
        "# three rows\n+1.0\t0:.5  3:2e0 # the first\r\n\n-1 \r\n2.5 1:-1\r\n#\n",
        MARK "1 0:0.5 3:2\n  -1\n2.5 1:-1\n",
    };

    (void)state;
    for (int gz = 0; gz < 2; gz++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            const char *path = scratch_write("x.libsvm", texts[i], strlen(texts[i]));
            tni_array *x = NULL, *y = NULL;

            if (gz) {
                gzFile g = gzopen(path, "wb");

                assert_int_equal(gzwrite(g, texts[i], (unsigned)strlen(texts[i])), strlen(texts[i]));
                assert_int_equal(gzclose(g), Z_OK);
            }
            if (tni_libsvm_load(t.space, path, i % 2 ? 7 : 0, &x, &y))
                fail_msg("%zu: %s", i, tni_error_message());
            rows_check(x, y, i % 2 ? 7 : 4);
            tni_array_release(x);
            tni_array_release(y);
        }
}

/* Labels alone: no columns, or as many as are asked for. */
static void empty_rows(void **state)
{
    const char *path = scratch_write("x.libsvm", "1\n2\n", 4);

    (void)state;
    for (int64_t columns = 0; columns < 3; columns += 2) {
        tni_array *x = NULL, *y = NULL;

        assert_int_equal(tni_libsvm_load(t.space, path, columns, &x, &y), TN_OK);
        assert_true(x->shape[0] == 2 && x->shape[1] == columns && y->shape[0] == 2);
        ints_check(x->aux[0], 3, (int64_t[]){0, 0, 0});
        tni_array_release(x);
        tni_array_release(y);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "holds no rows"},
        {"\n# nothing\n", "holds no rows"},
        {"yes 0:1\n", "x.libsvm:1: the label is no finite"},
        {"1\ninf 0:1\n", "x.libsvm:2: the label is no finite"},
        {"1e99 0:1\n", "the label is no finite"},
        {"1:2 0:1\n", "the label is no finite"},
        {"1 2\n", "no pair of a whole index and a value: \"2\""},
        {"1 a:2\n", "no pair"},
        {"1 -1:2\n", "no pair"},
        {"1 :2\n", "no pair"},
        {"1 1.5:2\n", "no pair"},
        {"1 9999999999999999999:2\n", "no pair"},
        {"1 0:\n", "no finite float32 number behind the index: \"0:\""},
        {"1 0:nan\n", "no finite float32 number"},
        {"1 0:0x10\n", "no finite float32 number"},
        {"1 0:1:2\n", "no finite float32 number"},
        {"1 1:1 1:2\n", "x.libsvm:1: indices do not rise along the line: \"1:2\""},
        {"1 3:1 0:2\n", "do not rise"},
        {"1\n\n1 7:1\n", "x.libsvm:3: index 7, but there are 7 columns"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = scratch_write("x.libsvm", rows[i].text, strlen(rows[i].text));
        tni_array *x = NULL, *y = NULL;

        assert_int_equal(tni_libsvm_load(t.space, path, 7, &x, &y), TN_E_FORMAT);
        if (!strstr(tni_error_message(), rows[i].says))
            fail_msg("row %zu: %s", i, tni_error_message());
        assert_true(!x && !y);
    }
}

static void other_files(void **state)
{
    const char page[] = "<!doctype html><html></html>";
    tni_array *x = NULL, *y = NULL;

    (void)state;
    assert_int_equal(tni_libsvm_load(t.space, scratch_path("absent"), 0, &x, &y), TN_E_IO);
    assert_int_equal(tni_libsvm_load(t.space, scratch_write("x", "1 0:1\0\n", 7), 0, &x, &y), TN_E_FORMAT);
    assert_int_equal(tni_libsvm_load(t.space, scratch_write("x", page, sizeof page - 1), 0, &x, &y),
                     TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "page"));
}

static tn_status once(void *arg)
{
    tni_array *x = NULL, *y = NULL;
    const tn_status st = tni_libsvm_load(t.space, arg, 0, &x, &y);

    tni_array_release(x);
    tni_array_release(y);
    return st;
}

static void no_memory(void **state)
{
    char *path = strdup(scratch_write("x.libsvm", "1 0:1\n", 6));

    (void)state;
    assert_true(scratch_each_allocation_fails(once, path) > 5);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_well),   cmocka_unit_test(empty_rows), cmocka_unit_test(refused),
        cmocka_unit_test(other_files), cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
