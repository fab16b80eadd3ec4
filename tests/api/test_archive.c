/*
 * tn_load and tn_save: what NumPy wrote (tests/oracle/npz.py), what is written here, damaged archives, and
 * what is said where the plugin npz is not there.
 */
#include "api/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

static bool built; /* the plugin */

static const char *recorded(const char *name)
{
    static char path[2048];

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/npz/%s", getenv("TENON_TEST_SOURCE"), name);
    return path;
}

/* Element i is i, in the types of tests/oracle/npz.py. */
static const struct {
    const char *name;
    int32_t dtype, ndim;
    int64_t shape[3];
    size_t bytes;
    const void *data;
} wanted[] = {
    {"weight", TN_F32, 2, {3, 4}, 48, (const float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {"arg:bias", TN_F64, 1, {5}, 40, (const double[]){0, 1, 2, 3, 4}},
    {"layer/ids", TN_I64, 3, {1, 2, 3}, 48, (const int64_t[]){0, 1, 2, 3, 4, 5}},
    {"bytes", TN_U8, 1, {300}, 300, NULL},
    {"yes", TN_BOOL, 1, {2}, 2, (const uint8_t[]){1, 0}},
    {"scalar", TN_I32, 0, {0}, 4, (const int32_t[]){7}},
    {"none", TN_F16, 2, {0, 3}, 0, ""},
};
#define WANTED (sizeof wanted / sizeof *wanted)
static uint8_t counted[300];

static const void *data_of(size_t i)
{
    return wanted[i].data ? wanted[i].data : counted;
}

static void same(const tn_params *p)
{
    uint8_t got[512];

    assert_int_equal(tn_params_count(p), WANTED);
    for (size_t i = 0; i < WANTED; i++) {
        const int64_t *shape = NULL;
        tn_array *a = NULL;
        int32_t ndim = 0;

        assert_string_equal(tn_params_name(p, i), wanted[i].name);
        assert_ok(tn_params_at(p, i, &a));
        assert_int_equal(tn_array_dtype(a), wanted[i].dtype);
        assert_ok(tn_array_shape(a, &ndim, &shape));
        assert_int_equal(ndim, wanted[i].ndim);
        assert_memory_equal(shape, wanted[i].shape, (size_t)ndim * sizeof *shape);
        assert_int_equal(tn_array_bytes(a), wanted[i].bytes);
        if (wanted[i].bytes) {
            assert_ok(tn_array_read(a, got, wanted[i].bytes));
            assert_memory_equal(got, data_of(i), wanted[i].bytes);
        }
        tn_array_release(a);
    }
}

static tn_params *made(void)
{
    tn_params *p = NULL;

    assert_ok(tn_params_create(&p));
    for (size_t i = 0; i < WANTED; i++) {
        tn_array *a = NULL;

        assert_ok(tn_array_from(f.ctx, wanted[i].dtype, wanted[i].ndim, wanted[i].shape, data_of(i), &a));
        assert_ok(tn_params_add(p, wanted[i].name, a));
        tn_array_release(a);
    }
    return p;
}

static bool skipped(void)
{
    if (!built)
        print_message("skipped: the plugin npz was not built\n");
    return !built;
}

/* ---- what is whole ---- */

static void of_numpy(void **state)
{
    static const char *const files[] = {"stored.npz", "deflated.npz", "zip64.npz"};
    tn_params *p = NULL;
    int32_t ints[3];
    tn_array *a = NULL;

    (void)state;
    if (skipped())
        return;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(tn_load(f.ctx, recorded(files[i]), &p));
        same(p);
        tn_params_destroy(p);
    }
    assert_ok(tn_load(f.ctx, recorded("empty.npz"), &p));
    assert_int_equal(tn_params_count(p), 0);
    tn_params_destroy(p);
    assert_ok(tn_load(f.ctx, recorded("nameless.npz"), &p));
    assert_int_equal(tn_params_count(p), 2);
    assert_string_equal(tn_params_name(p, 1), "arr_1");
    assert_ok(tn_params_at(p, 0, &a));
    assert_ok(tn_array_read(a, ints, sizeof ints));
    assert_true(ints[0] == 0 && ints[2] == 2);
    tn_array_release(a);
    tn_params_destroy(p);
}

static void copy(const char *from, const char *to)
{
    static char bytes[65536];
    FILE *file = fopen(from, "rb");
    const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    scratch_put(to, bytes, count);
}

/* Stored and deflated, under any name; once more gives the same bytes. */
static void written(void **state)
{
    const char *keep = getenv("TENON_KEEP");
    const char *const settings[] = {"plugin.npz.deflate=true", NULL};
    off_t bytes[2];

    (void)state;
    if (skipped())
        return;
    for (int deflated = 0; deflated < 2; deflated++) {
        const char *path = scratch_path(deflated ? "d.npz" : "s.npz"), *moved = scratch_path("other.bin");
        tn_ctx *ctx = deflated ? test_open(settings) : f.ctx;
        tn_params *p = made(), *again = NULL;
        struct stat s;
        char target[1024];

        assert_ok(tn_save(ctx, p, path));
        assert_int_equal(stat(path, &s), 0);
        bytes[deflated] = s.st_size;
        if (keep) {
            (void)snprintf(target, sizeof target, "%s/%s", keep, deflated ? "deflated.npz" : "stored.npz");
            copy(path, target);
        }
        copy(path, moved);
        tn_params_destroy(p);
        assert_ok(tn_load(f.ctx, moved, &again));
        same(again);
        tn_params_destroy(again);
        if (deflated)
            test_close(ctx);
    }
    assert_true(bytes[1] < bytes[0]);
}

/* The other kinds, by what the file begins with. */
static void others(void **state)
{
    static const char *const files[] = {"a.params", "b", "c.weights"};
    tn_params *p = made(), *again = NULL, *one = NULL;
    tn_array *a = NULL;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(tn_save(f.ctx, p, scratch_path(files[i])));
        assert_ok(tn_load(f.ctx, scratch_path(files[i]), &again));
        assert_int_equal(tn_params_count(again), WANTED);
        tn_params_destroy(again);
    }
    assert_fails(tn_save(f.ctx, p, scratch_path("a.npy")), TN_E_ARG);
    assert_ok(tn_npy_save(f.a, scratch_path("first.npy")));
    assert_ok(tn_load(f.ctx, scratch_path("first.npy"), &one));
    assert_ok(tn_save(f.ctx, one, scratch_path("a.npy")));
    assert_ok(tn_load(f.ctx, scratch_path("a.npy"), &again));
    assert_int_equal(tn_params_count(again), 1);
    assert_ok(tn_params_at(again, 0, &a));
    assert_int_equal(tn_array_count(a), 6);
    tn_array_release(a);
    tn_params_destroy(again);
    if (built) { /* arrays without names get NumPy's */
        assert_ok(tn_save(f.ctx, one, scratch_path("a.npz")));
        assert_ok(tn_load(f.ctx, scratch_path("a.npz"), &again));
        assert_string_equal(tn_params_name(again, 0), "arr_0");
        tn_params_destroy(again);
    }
    tn_params_destroy(one);
    tn_params_destroy(p);
}

/* ---- what is damaged ---- */

static void damaged(void **state)
{
    static const struct {
        const char *file;
        tn_status status;
        const char *says;
    } rows[] = {
        {"twice", TN_E_FORMAT, "two arrays \"x\""},
        {"up", TN_E_FORMAT, "has a path for a name"},
        {"inside", TN_E_FORMAT, "has a path for a name"},
        {"absolute", TN_E_FORMAT, "has a path for a name"},
        {"backslash", TN_E_FORMAT, "has a path for a name"},
        {"control", TN_E_FORMAT, "control character"},
        {"text", TN_E_FORMAT, "\"readme.txt\" is no .npy"},
        {"nameless", TN_E_FORMAT, "is no .npy"},
        {"folder", TN_E_FORMAT, "is no .npy"},
        {"bzip2", TN_E_UNSUPPORTED, "neither stored nor deflated"},
        {"aes", TN_E_FORMAT, "zip archive"},
        {"encrypted", TN_E_UNSUPPORTED, "is encrypted"},
        {"no_npy", TN_E_FORMAT, "is no .npy file of version"},
        {"short", TN_E_FORMAT, "promises 16 bytes, 15 follow"},
        {"long", TN_E_FORMAT, "promises 16 bytes, 17 follow"},
        {"objects", TN_E_UNSUPPORTED, "\"|O8\" are not read"},
        {"huge", TN_E_FORMAT, "promises 39999999996 bytes, 16 follow"},
        {"crc", TN_E_FORMAT, "CRC"},
        {"bomb", TN_E_FORMAT, "promises more than its packed bytes can hold"},
        {"stored", TN_E_FORMAT, "promises more than its packed bytes can hold"},
        {"packed", TN_E_FORMAT, "takes more bytes than the file has"},
        {"overlap", TN_E_FORMAT, "takes more bytes than the file has"},
        {"count", TN_E_FORMAT, "zip archive"},
        {"cut", TN_E_FORMAT, "zip archive"},
    };

    (void)state;
    if (skipped())
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_params *p = NULL;
        char name[64];
        tn_status st;

        (void)snprintf(name, sizeof name, "bad/%s.npz", rows[i].file);
        st = tn_load(f.ctx, recorded(name), &p);
        if (st != rows[i].status || p || !strstr(tn_error_text(), rows[i].says))
            fail_msg("%s: %s: %s", rows[i].file, tn_status_name(st), tn_error_text());
    }
}

/* Cut after each byte, and each byte another one: an error, or arrays; nothing else. */
static void every_byte(void **state)
{
    static const char *const files[] = {"stored.npz", "deflated.npz"};

    (void)state;
    if (skipped())
        return;
    for (size_t k = 0; k < 2; k++) {
        static char bytes[4096];
        FILE *file = fopen(recorded(files[k]), "rb");
        const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        const char *path = scratch_quick_path("x.npz");

        assert_true(count > 500 && !fclose(file));
        for (size_t i = 0; i < count; i++) {
            const char kept = bytes[i];
            tn_params *p = NULL;

            scratch_put(path, bytes, i);
            assert_true(tn_load(f.ctx, path, &p) != TN_OK && !p);
            bytes[i] = (char)(kept ^ (1 << i % 8));
            scratch_put(path, bytes, count);
            if (!tn_load(f.ctx, path, &p))
                tn_params_destroy(p);
            bytes[i] = kept;
        }
    }
}

static void refused(void **state)
{
    tn_params *p = made(), *q = NULL, *bf = NULL;
    tn_array *a = NULL;

    (void)state;
    assert_fails(tn_load(NULL, "x", &q), TN_E_ARG);
    assert_fails(tn_load(f.ctx, NULL, &q), TN_E_ARG);
    assert_fails(tn_load(f.ctx, "x", NULL), TN_E_ARG);
    assert_fails(tn_save(NULL, p, "x"), TN_E_ARG);
    assert_fails(tn_save(f.ctx, NULL, "x"), TN_E_ARG);
    assert_fails(tn_save(f.ctx, p, NULL), TN_E_ARG);
    assert_fails(tn_load(f.ctx, scratch_path("absent.npz"), &q), TN_E_IO);
    assert_fails(tn_load(f.ctx, scratch_write("page", "<!DOCTYPE html>", 15), &q), TN_E_FORMAT);
    assert_fails(tn_load(f.ctx, scratch_write("nothing", "", 0), &q), TN_E_FORMAT);
    if (built) {
        assert_fails(tn_save(f.ctx, p, "/nowhere/at/all.npz"), TN_E_IO);
        assert_ok(tn_array_zeros(f.ctx, TN_BF16, 1, (int64_t[]){2}, NULL, &a));
        assert_ok(tn_params_create(&bf));
        assert_ok(tn_params_add(bf, "half", a));
        assert_fails(tn_save(f.ctx, bf, scratch_path("bf.npz")), TN_E_UNSUPPORTED);
        assert_ok(tn_params_add(p, "../../up", f.a));
        assert_fails(tn_save(f.ctx, p, scratch_path("up.npz")), TN_E_ARG);
        assert_non_null(strstr(tn_error_text(), "has a path for a name"));
        assert_int_equal(access(scratch_path("up.npz"), F_OK), -1);
        tn_params_destroy(bf);
        tn_array_release(a);
    }
    assert_null(q);
    tn_params_destroy(p);
}

/* Without the plugin: which one is missing, with its number and exit code 3. */
static void without(void **state)
{
    const char *const settings[] = {"plugins.load=cpu", NULL};
    tn_ctx *ctx = test_open(settings);
    tn_params *p = made(), *q = NULL;

    (void)state;
    assert_fails(tn_load(ctx, recorded("stored.npz"), &q), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "needs the plugin npz"));
    assert_int_equal(tn_error_number(), 1304);
    assert_fails(tn_save(ctx, p, scratch_path("no.npz")), TN_E_UNSUPPORTED);
    assert_int_equal(tn_error_number(), 1304);
    assert_int_equal(access(scratch_path("no.npz"), F_OK), -1);
    tn_params_destroy(p);
    test_close(ctx);
}

static tn_status load_once(void *arg)
{
    tn_params *p = NULL;
    const tn_status st = tn_load(f.ctx, arg, &p);

    tn_params_destroy(p);
    (void)tn_wait_all(f.ctx);
    return st;
}

static tn_status save_once(void *arg)
{
    return tn_save(f.ctx, arg, scratch_quick_path("memory.npz"));
}

static void out_of_memory(void **state)
{
    tn_params *p = made();

    (void)state;
    if (built) {
        assert_true(scratch_each_allocation_fails(load_once, (void *)(uintptr_t)recorded("stored.npz")) > 10);
        assert_true(scratch_each_allocation_fails(save_once, p) > 10);
    }
    tn_params_destroy(p);
}

static int open_all(void **state)
{
    char path[2048];

    for (size_t i = 0; i < sizeof counted; i++)
        counted[i] = (uint8_t)i;
    (void)snprintf(path, sizeof path, "%s/npz.so", getenv("TENON_TEST_PLUGINS"));
    built = !access(path, R_OK);
    return fixture_open(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_numpy),   cmocka_unit_test(written),       cmocka_unit_test(others),
        cmocka_unit_test(damaged),    cmocka_unit_test(refused),       cmocka_unit_test(without),
        cmocka_unit_test(every_byte), cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, open_all, fixture_close);
}
