/*
 * .params: golden files of every version, round trips, every truncation and thousands of mutations of each,
 * heap bounds against files that promise more than they hold, failing allocation.
 */
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

#define DIMS(...)                                                                                            \
    (const int64_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static test_space t;
static char folder[256];
static const char *const golden[] = {"v0",       "v1",         "v1-none",   "v2", "v2-none",
                                     "v2-empty", "v2-unnamed", "v2-sparse", "v3"};
#define GOLDEN (sizeof golden / sizeof *golden)

static int open_space(void **state)
{
    (void)state;
    test_space_open(&t, "naive");
    (void)snprintf(folder, sizeof folder, "%s/tenon-params-XXXXXX", scratch_root());
    return mkdtemp(folder) ? 0 : -1;
}

static int close_space(void **state)
{
    (void)state;
    test_space_close(&t);
    return rmdir(folder);
}

static void golden_path(const char *name, char *out, size_t size)
{
    const char *source = getenv("TENON_TEST_SOURCE");

    (void)snprintf(out, size, "%s/tests/golden/params/%s", source ? source : ".", name);
}

static void golden_read(const char *name, char **bytes, uint64_t *count)
{
    char path[600], file[64];

    (void)snprintf(file, sizeof file, "%s.params", name);
    golden_path(file, path, sizeof path);
    assert_int_equal(tni_file_read_all(path, 1 << 20, bytes, count), TN_OK);
}

/* ---- golden files ------------------------------------------------------------------------------------ */

static char *cursor;

static const char *word(void)
{
    char *start = cursor + strspn(cursor, " \n");

    assert_true(*start != '\0');
    cursor = start + strcspn(start, " \n");
    if (*cursor)
        *cursor++ = '\0';
    return start;
}

static long long number(void)
{
    return atoll(word());
}

static void values_expect(tni_array *a)
{
    uint64_t count = tni_array_count(a), bytes = tni_array_bytes(a);
    void *raw = tni_alloc(bytes), *want = tni_alloc(bytes);

    assert_int_equal(number(), count);
    assert_int_equal(tni_array_read(a, raw, bytes), TN_OK);
    for (uint64_t i = 0; i < count; i++) {
        double value;

        assert_true(tni_parse_f64(word(), &value));
        tni_cast(&value, TN_F64, 1, (char *)want + i * tn_dtype_bytes(a->dtype), a->dtype, 1, 1);
    }
    assert_memory_equal(raw, want, bytes);
    tni_free(raw);
    tni_free(want);
}

static void entry_expect(const char *name, tni_array *a)
{
    const char *want = word(), *dtype = word();
    tni_array *values = NULL;
    int64_t index;

    assert_string_equal(name, strcmp(want, "-") ? want : "");
    if (!strcmp(dtype, "none")) {
        assert_null(a);
        return;
    }
    assert_non_null(a);
    assert_int_equal(a->dtype, atoi(dtype));
    assert_int_equal(a->storage_type, number());
    assert_int_equal(a->ndim, number());
    for (int32_t i = 0; i < a->ndim; i++)
        assert_int_equal(a->shape[i], number());
    if (a->storage_type == TN_STORAGE_DENSE) {
        values_expect(a);
        return;
    }
    assert_int_equal(tni_array_values(a, &values), TN_OK);
    values_expect(values);
    tni_array_release(values);
    for (int k = 0; k < a->storage_type; k++) {
        assert_int_equal(tni_array_count(a->aux[k]), number());
        for (int64_t i = 0; i < a->aux[k]->shape[0]; i++) {
            index = ((const int64_t *)tni_array_data(a->aux[k]))[i];
            assert_int_equal(index, number());
        }
    }
}

static void golden_files(void **state)
{
    char path[600], name[64], hex[65];
    char *text, *start;
    uint64_t bytes;

    (void)state;
    golden_path("expected.txt", path, sizeof path);
    assert_int_equal(tni_file_read_all(path, 1 << 20, &text, &bytes), TN_OK);
    start = cursor = text;
    for (size_t i = 0; i < GOLDEN; i++) {
        tni_params *p = NULL;

        assert_string_equal(word(), "file");
        (void)snprintf(name, sizeof name, "%s.params", word());
        golden_path(name, path, sizeof path);
        assert_int_equal(tni_params_load(t.space, t.cpu, path, &p), TN_OK);
        assert_int_equal(p->count, number());
        assert_int_equal(tni_params_sha256(p, hex), TN_OK);
        assert_string_equal(hex, word());
        for (size_t k = 0; k < p->count; k++)
            entry_expect(p->names[k], p->arrays[k]);
        tni_params_destroy(p);
    }
    tni_free(start);
}

/* ---- round trips --------------------------------------------------------------------------------------- */

/* What was loaded is written as versions 2 and 3, and means the same. */
static void round_trips(void **state)
{
    char path[300], first[65], second[65];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/x.params", folder);
    for (size_t i = 0; i < GOLDEN; i++) {
        tni_params *p = NULL, *q = NULL, *r = NULL;
        char *bytes;
        void *image = NULL;
        uint64_t count, image_count;

        golden_read(golden[i], &bytes, &count);
        assert_int_equal(tni_params_load_memory(t.space, t.cpu, bytes, count, &p), TN_OK);
        assert_int_equal(tni_params_save(p, path), TN_OK);
        assert_int_equal(tni_params_load(t.space, t.cpu, path, &q), TN_OK);
        assert_int_equal(tni_params_save_memory(q, &image, &image_count), TN_OK);
        if (golden[i][1] >= '2' &&
            strcmp(golden[i], "v3")) { /* of the same version: the same but for the device */
            assert_int_equal(image_count, count);
        }
        assert_int_equal(tni_params_load_memory(t.space, t.cpu, image, image_count, &r), TN_OK);
        assert_int_equal(tni_params_sha256(p, first), TN_OK);
        assert_int_equal(tni_params_sha256(r, second), TN_OK);
        assert_string_equal(first, second);
        assert_int_equal(p->count, r->count);
        for (size_t k = 0; k < p->count; k++)
            assert_string_equal(p->names[k], r->names[k]);
        tni_params_destroy(p);
        tni_params_destroy(q);
        tni_params_destroy(r);
        tni_free(image);
        tni_free(bytes);
    }
    assert_int_equal(unlink(path), 0);
}

static void lists(void **state)
{
    tni_params *p = NULL, *q = NULL;
    tni_array *a = NULL, *view = NULL, *got = NULL;
    void *image = NULL;
    uint64_t count;
    float out[4];
    char *long_name = tni_zalloc(TN_NAME_MAX + 2);

    (void)state;
    memset(long_name, 'x', TN_NAME_MAX + 1);
    assert_int_equal(tni_array_create(t.space, t.cpu, TN_F32, 2, DIMS(4, 4), NULL, &a), TN_OK);
    assert_int_equal(tni_array_fill(a, 3), TN_OK);
    assert_int_equal(tni_array_view(a, 0, 2, DIMS(2, 2), DIMS(1, 4), &view), TN_OK);
    assert_int_equal(tni_params_create(&p), TN_OK);
    assert_int_equal(tni_params_add(p, "arg:w", view), TN_OK);
    assert_int_equal(tni_params_add(p, "aux:m", a), TN_OK);
    assert_int_equal(tni_params_add(p, "plain", NULL), TN_OK);
    assert_int_equal(tni_params_add(p, "arg:w", a), TN_E_KEY);
    assert_int_equal(tni_params_add(p, long_name, a), TN_E_ARG);
    assert_int_equal(p->count, 3);
    assert_int_equal(tni_params_get(p, "w", &got), TN_OK);
    assert_ptr_equal(got, view);
    assert_int_equal(tni_params_get(p, "m", &got), TN_OK);
    assert_int_equal(tni_params_get(p, "aux:m", &got), TN_OK);
    assert_int_equal(tni_params_get(p, "plain", &got), TN_E_KEY);
    assert_int_equal(tni_params_get(p, "nothing", &got), TN_E_KEY);
    assert_string_equal(tni_params_plain_name("arg:w"), "w");
    assert_string_equal(tni_params_plain_name("w"), "w");
    assert_int_equal(tni_params_save_memory(p, &image, &count), TN_OK);
    assert_int_equal(tni_params_load_memory(t.space, t.cpu, image, count, &q), TN_OK);
    assert_int_equal(tni_params_get(q, "w", &got), TN_OK);
    assert_int_equal(tni_array_read(got, out, sizeof out), TN_OK);
    assert_true(out[0] == 3 && out[3] == 3);
    assert_int_equal(tni_params_save(p, "/nowhere/at/all.params"), TN_E_IO);
    tni_params_destroy(p);
    tni_params_destroy(q);
    tni_array_release(a);
    tni_array_release(view);
    tni_free(image);
    tni_free(long_name);
}

static void other_devices(void **state)
{
    tni_device *second;
    tni_params *p = NULL;
    char *bytes;
    uint64_t count;

    (void)state;
    assert_int_equal(tni_device_get(t.devices, "cpu", 1, &second), TN_OK);
    golden_read("v0", &bytes, &count);
    assert_int_equal(tni_params_load_memory(t.space, second, bytes, count, &p), TN_OK);
    assert_ptr_equal(p->arrays[0]->storage->device, second);
    tni_params_destroy(p);
    tni_free(bytes);
}

/* ---- damaged files ------------------------------------------------------------------------------------- */

/* Loads an exact copy, so that a sanitizer sees any read beyond it. */
static tn_status load_copy(const char *bytes, uint64_t count)
{
    tni_params *p = NULL;
    char *exact = tni_alloc(count);
    tn_status st;

    memcpy(exact, bytes, count);
    st = tni_params_load_memory(t.space, t.cpu, exact, count, &p);
    assert_true((st == TN_OK) == (p != NULL));
    tni_params_destroy(p);
    tni_free(exact);
    return st;
}

static void truncations(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN; i++) {
        char *bytes;
        uint64_t count;

        golden_read(golden[i], &bytes, &count);
        for (uint64_t cut = 0; cut < count; cut++)
            assert_int_equal(load_copy(bytes, cut), TN_E_FORMAT);
        assert_int_equal(load_copy(bytes, count), TN_OK);
        tni_free(bytes);
    }
}

static void mutations(void **state)
{
    uint64_t random = 1, arrays;
    tni_mem_stats before, after;

    (void)state;
    tni_mem_stats_get(&before);
    for (size_t i = 0; i < GOLDEN; i++) {
        char *bytes, *changed;
        uint64_t count;

        golden_read(golden[i], &bytes, &count);
        changed = tni_alloc(count + 16);
        for (int round = 0; round < 4000; round++) {
            memcpy(changed, bytes, count);
            for (int k = 0; k <= round % 3; k++) {
                uint64_t at;

                random = random * 6364136223846793005u + 1442695040888963407u;
                at = (random >> 33) % count;
                changed[at] =
                    random >> 20 & 1 ? (char)(random >> 24) : (char)(random >> 21 & 1 ? 0xff : 0x7f);
            }
            (void)load_copy(changed, count);
        }
        tni_free(changed);
        tni_free(bytes);
    }
    tni_space_live(t.space, &arrays, NULL);
    assert_int_equal(arrays, 0);
    tni_mem_stats_get(&after);
    assert_true(after.live_bytes < before.live_bytes + ((uint64_t)4 << 20)); /* what pools and threads keep */
}

typedef struct image {
    char bytes[4096];
    uint64_t count;
} image;

static void put(image *im, const void *bytes, uint64_t count)
{
    assert_true(im->count + count <= sizeof im->bytes);
    if (count)
        memcpy(im->bytes + im->count, bytes, count);
    im->count += count;
}

static void put_u32(image *im, uint32_t v)
{
    put(im, &v, 4);
}

static void put_u64(image *im, uint64_t v)
{
    put(im, &v, 8);
}

static void start(image *im, uint64_t entries)
{
    im->count = 0;
    put_u64(im, 0x112);
    put_u64(im, 0);
    put_u64(im, entries);
}

static void expect_bad(const image *im, const char *text)
{
    tni_mem_stats before, after;

    tni_mem_stats_get(&before);
    assert_int_equal(load_copy(im->bytes, im->count), TN_E_FORMAT);
    tni_mem_stats_get(&after);
    assert_true(after.live_bytes <= before.live_bytes + (1 << 20));
    if (!strstr(tni_error_message(), text))
        fail_msg("\"%s\" was expected in: %s", text, tni_error_message());
}

/* A V2 record up to its shape. */
static void record(image *im, uint32_t storage_type, int32_t ndim, const int64_t *shape)
{
    put_u32(im, 0xF993FAC9);
    put_u32(im, storage_type);
    put_u32(im, (uint32_t)ndim);
    put(im, shape, ndim > 0 ? (uint64_t)ndim * 8 : 0);
}

static void types(image *im, int32_t dtype)
{
    put_u32(im, 1);
    put_u32(im, 0);
    put_u32(im, (uint32_t)dtype);
}

static void lies(void **state)
{
    static const int64_t zeros[40];
    static const char zip[16] = "PK\3\4", npy[16] = "\x93NUMPY\1";
    image im;

    (void)state;
    start(&im, UINT64_MAX), expect_bad(&im, "entries");
    start(&im, 1u << 20), expect_bad(&im, "entries");
    start(&im, 30000), expect_bad(&im, "too early");
    start(&im, 1), put_u32(&im, 33), expect_bad(&im, "no version");
    start(&im, 1), put_u32(&im, 0xF993FACB), expect_bad(&im, "no version");
    start(&im, 1), record(&im, 3, 1, DIMS(1)), expect_bad(&im, "storage type");
    start(&im, 1), record(&im, (uint32_t)-1, 1, DIMS(1)), expect_bad(&im, "storage type");
    start(&im, 1), record(&im, 0, 33, zeros), expect_bad(&im, "number of dimensions");
    start(&im, 1), record(&im, 0, -1, NULL), expect_bad(&im, "number of dimensions");
    start(&im, 1), record(&im, 0, 1, DIMS(-1)), expect_bad(&im, "dimension -1");
    start(&im, 1), record(&im, 0, 1, DIMS(1)), types(&im, 13), expect_bad(&im, "data type 13");
    start(&im, 1), record(&im, 0, 1, DIMS(1)), types(&im, -1), expect_bad(&im, "data type -1");
    start(&im, 1), record(&im, 0, 1, DIMS((int64_t)1 << 40)), types(&im, 0),
        expect_bad(&im, "only 0 are left");
    start(&im, 1), record(&im, 0, 2, DIMS(INT64_MAX, INT64_MAX)), types(&im, 0),
        expect_bad(&im, "too many elements");
    start(&im, 1), record(&im, 0, 3, DIMS(INT64_MAX, 0, INT64_MAX)), types(&im, 0),
        expect_bad(&im, "too many");
    start(&im, 0), put_u64(&im, 1), expect_bad(&im, "0 arrays and 1 names");
    start(&im, 0), put_u64(&im, 0), put_u32(&im, 7), expect_bad(&im, "behind its end");
    start(&im, 1), record(&im, 0, 0, NULL), put_u64(&im, 1), put_u64(&im, 5000),
        expect_bad(&im, "name of entry 0");
    start(&im, 1), record(&im, 0, 0, NULL), put_u64(&im, 1), put_u64(&im, 3), put(&im, "a\0b", 3),
        expect_bad(&im, "NUL");
    start(&im, 2), record(&im, 0, 0, NULL), record(&im, 0, 0, NULL), put_u64(&im, 2), put_u64(&im, 1),
        put(&im, "a", 1), put_u64(&im, 1), put(&im, "a", 1), expect_bad(&im, "twice");
    im.count = 0, put(&im, "something else", 14), expect_bad(&im, "no .params file");
    assert_int_equal(load_copy(zip, sizeof zip), TN_E_UNSUPPORTED);
    assert_int_equal(load_copy(npy, sizeof npy), TN_E_UNSUPPORTED);
}

static void csr(image *im, const int64_t *starts, const int64_t *columns)
{
    start(im, 1);
    record(im, 2, 1, DIMS(2));
    put_u32(im, 2);
    put(im, DIMS(2, 3), 16);
    types(im, 3);
    put_u32(im, 6), put_u32(im, 1), put_u64(im, 3);
    put_u32(im, 6), put_u32(im, 1), put_u64(im, 2);
    put(im, "ab", 2);
    put(im, starts, 24);
    put(im, columns, 16);
    put_u64(im, 0);
}

static void rows(image *im, int64_t values, int64_t ids, const int64_t *id, int32_t dtype)
{
    start(im, 1);
    record(im, 1, 1, DIMS(values));
    put_u32(im, 1);
    put_u64(im, 5);
    types(im, 3);
    put_u32(im, (uint32_t)dtype), put_u32(im, 1), put_u64(im, (uint64_t)ids);
    put(im, "abcdef", (uint64_t)values);
    put(im, id, (uint64_t)ids * 8);
    put_u64(im, 0);
}

static void sparse_lies(void **state)
{
    image im;

    (void)state;
    csr(&im, DIMS(0, 1, 2), DIMS(0, 2));
    assert_int_equal(load_copy(im.bytes, im.count), TN_OK);
    csr(&im, DIMS(0, 2, 1), DIMS(0, 2)), expect_bad(&im, "row start");
    csr(&im, DIMS(1, 1, 2), DIMS(0, 2)), expect_bad(&im, "row start");
    csr(&im, DIMS(0, 1, 3), DIMS(0, 2)), expect_bad(&im, "row start");
    csr(&im, DIMS(0, 1, 1), DIMS(0, 2)), expect_bad(&im, "row starts end");
    csr(&im, DIMS(0, 1, 2), DIMS(0, 3)), expect_bad(&im, "column");
    csr(&im, DIMS(0, 1, 2), DIMS(-1, 2)), expect_bad(&im, "column");
    rows(&im, 2, 2, DIMS(1, 4), 6);
    assert_int_equal(load_copy(im.bytes, im.count), TN_OK);
    rows(&im, 2, 2, DIMS(4, 1), 6), expect_bad(&im, "row id");
    rows(&im, 2, 2, DIMS(1, 1), 6), expect_bad(&im, "row id");
    rows(&im, 2, 2, DIMS(1, 5), 6), expect_bad(&im, "row id");
    rows(&im, 2, 2, DIMS(-1, 1), 6), expect_bad(&im, "row id");
    rows(&im, 2, 3, DIMS(0, 1, 2), 6), expect_bad(&im, "fit their ids");
    rows(&im, 6, 6, DIMS(0, 1, 2, 3, 4, 5), 6), expect_bad(&im, "cannot be");
    rows(&im, 2, 2, DIMS(1, 4), 0), expect_bad(&im, "index array");
}

/* 64 MB of the smallest entries: heap stays below twice the file and 64 MiB. */
static void many_entries(void **state)
{
    const uint64_t counts[] = {1u << 15, 1u << 18, 1u << 20};
    static const char entry[21] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        uint64_t bytes = 24 + counts[k] * (sizeof entry + 14) + 8, at = 24;
        char *file = tni_zalloc(bytes), name[16];
        const uint64_t head[3] = {0x112, 0, counts[k]}, length = 6;
        tni_mem_stats before, after;
        tni_params *p = NULL;
        tn_status st;

        memcpy(file, head, sizeof head);
        for (uint64_t i = 0; i < counts[k]; i++, at += sizeof entry)
            memcpy(file + at, entry, sizeof entry);
        memcpy(file + at, &counts[k], 8);
        at += 8;
        for (uint64_t i = 0; i < counts[k]; i++, at += 14) {
            memcpy(file + at, &length, 8);
            (void)snprintf(name, sizeof name, "%06x", (unsigned)i);
            memcpy(file + at + 8, name, 6);
        }
        tni_mem_stats_get(&before);
        st = tni_params_load_memory(t.space, t.cpu, file, bytes, &p);
        tni_mem_stats_get(&after);
        assert_int_equal(st, k == 0 ? TN_OK : TN_E_FORMAT);
        assert_true(after.peak_bytes - before.live_bytes <= 2 * bytes + ((uint64_t)64 << 20));
        tni_params_destroy(p);
        tni_free(file);
    }
}

/* ---- failing allocation ------------------------------------------------------------------------------ */

static tn_status story(const char *bytes, uint64_t count, const char *path)
{
    tni_params *p = NULL, *q = NULL;
    void *saved = NULL;
    uint64_t saved_count;
    char hex[65];
    tn_status st;

    if (!(st = tni_params_load_memory(t.space, t.cpu, bytes, count, &p)) &&
        !(st = tni_params_save(p, path)) && !(st = tni_params_save_memory(p, &saved, &saved_count)) &&
        !(st = tni_params_load(t.space, t.cpu, path, &q)))
        st = tni_params_sha256(q, hex);
    tni_params_destroy(p);
    tni_params_destroy(q);
    tni_free(saved);
    return st;
}

static void failing_allocation(void **state)
{
    static const char *const files[] = {"v1", "v2-sparse", "v3"};
    char path[300];
    uint64_t nth = 0, arrays;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/y.params", folder);
    for (size_t i = 0; i < 3; i++) {
        char *bytes;
        uint64_t count;
        tn_status st;

        golden_read(files[i], &bytes, &count);
        assert_int_equal(story(bytes, count, path), TN_OK);
        nth = 0;
        do {
            tni_mem_fail_at(++nth, false, true);
            st = story(bytes, count, path);
            tni_mem_fail_at(0, false, false);
            assert_true(st == TN_OK || st == TN_E_NOMEM);
            tni_space_live(t.space, &arrays, NULL);
            assert_int_equal(arrays, 0);
        } while (tni_mem_failed() && nth < 1000);
        assert_true(nth > 10 && nth < 1000);
        tni_free(bytes);
    }
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files), cmocka_unit_test(round_trips),
        cmocka_unit_test(lists),        cmocka_unit_test(other_devices),
        cmocka_unit_test(truncations),  cmocka_unit_test(mutations),
        cmocka_unit_test(lies),         cmocka_unit_test(sparse_lies),
        cmocka_unit_test(many_entries), cmocka_unit_test(failing_allocation),
    };

    return cmocka_run_group_tests(tests, open_space, close_space);
}
