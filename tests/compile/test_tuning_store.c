/* The file of tuned kernels: what is kept, what damages it, who else writes it, where it may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "compile/tuning.h"
#include "support/scratch.h"

static uint32_t told[TN_LOG_DEBUG + 1]; /* lines of the log */

static void log_line(void *arg, int32_t level, const char *message)
{
    (void)arg;
    (void)message;
    told[level]++;
}

static const tni_log test_log = {.fn = log_line, .level = TN_LOG_DEBUG};

static tni_tuning_store *store_open(const char *path)
{
    tni_tuning_store *s = NULL;

    memset(told, 0, sizeof told);
    assert_int_equal(tni_tuning_store_create(path, &test_log, &s), TN_OK);
    return s;
}

static void put(tni_tuning_store *s, const char *key, const void *blob, uint64_t bytes)
{
    const tni_str k = {.text = (char *)(uintptr_t)key, .length = strlen(key)};

    tni_tuning_store_set(s, &k, blob, bytes);
}

/* `blob` NULL: there must be none. */
static void expect(tni_tuning_store *s, const char *key, const char *blob)
{
    const tni_str k = {.text = (char *)(uintptr_t)key, .length = strlen(key)};
    uint64_t bytes = 0;
    char *got = tni_tuning_store_find(s, &k, &bytes);

    if (!blob) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_int_equal(bytes, strlen(blob));
    assert_memory_equal(got, blob, bytes);
    tni_free(got);
}

/* A file with two entries, and its bytes. */
static char *file_make(const char *path, uint64_t *bytes)
{
    tni_tuning_store *s;
    char *text = NULL;

    (void)unlink(path);
    s = store_open(path);
    put(s, "one", "first", 5);
    put(s, "two", "second", 6);
    tni_tuning_store_destroy(s);
    assert_int_equal(tni_file_read_all(path, 1u << 20, &text, bytes), TN_OK);
    return text;
}

static void kept(void **state)
{
    const char *path = scratch_path("new/folders/tuning.bin");
    tni_tuning_store *s = store_open(path);

    (void)state;
    expect(s, "one", NULL);
    put(s, "one", "first", 5);
    put(s, "two", "second", 6);
    put(s, "one", "other", 5);
    expect(s, "one", "other");
    tni_tuning_store_destroy(s);
    s = store_open(path);
    expect(s, "one", "other");
    expect(s, "two", "second");
    expect(s, "on", NULL);
    put(s, "two", "second", 6); /* nothing new: nothing is written */
    assert_int_equal(unlink(path), 0);
    tni_tuning_store_destroy(s);
    assert_false(tni_file_exists(path));
    s = store_open("");
    put(s, "one", "first", 5);
    expect(s, "one", "first");
    tni_tuning_store_destroy(s);
    for (int i = 0; i <= TN_LOG_DEBUG; i++)
        assert_int_equal(told[i], 0);
}

/* A damaged file is as good as none: one line, and a new file. */
static void rejected(const char *path, const void *bytes, uint64_t count)
{
    tni_tuning_store *s;

    scratch_put(path, bytes, count);
    s = store_open(path);
    expect(s, "one", NULL);
    expect(s, "two", NULL);
    assert_int_equal(told[TN_LOG_WARNING], 1);
    put(s, "three", "third", 5);
    tni_tuning_store_destroy(s);
    assert_int_equal(told[TN_LOG_WARNING], 1);
    s = store_open(path);
    expect(s, "one", NULL);
    expect(s, "three", "third");
    tni_tuning_store_destroy(s);
    assert_int_equal(told[TN_LOG_WARNING], 0);
}

static void crc_set(char *text, uint64_t bytes)
{
    const uint32_t crc = tni_crc32(0, text + 12, bytes - 12);

    for (int i = 0; i < 4; i++)
        text[8 + i] = (char)(crc >> 8 * i);
}

static void damaged(void **state)
{
    const char *path = scratch_quick_path("damaged.bin");
    uint64_t bytes;
    char *text = file_make(path, &bytes);

    (void)state;
    for (uint64_t cut = 0; cut < bytes; cut++)
        rejected(path, text, cut);
    for (uint64_t i = 0; i < bytes; i++) {
        text[i] ^= (char)(1 << i % 8);
        rejected(path, text, bytes);
        text[i] ^= (char)(1 << i % 8);
    }
    /* Sizes and counts that lie, under a right checksum. */
    for (uint64_t i = 12; i < bytes; i++) {
        const char was = text[i];

        if (i >= 24 && i < 32)
            continue; /* a key and a blob may be anything */
        if (i >= 40)
            break;
        text[i] = (char)0xff;
        crc_set(text, bytes);
        rejected(path, text, bytes);
        text[i] = was;
    }
    tni_free(text);
    (void)unlink(path);
}

static void no_place(void **state)
{
    const char *folder = scratch_path("a folder"), *file = scratch_write("a file", "x", 1);
    char below[SCRATCH_PATH_BYTES + 16];
    tni_tuning_store *s;

    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    s = store_open(folder);
    expect(s, "one", NULL);
    put(s, "one", "first", 5);
    tni_tuning_store_destroy(s);
    assert_int_equal(told[TN_LOG_WARNING], 1);
    assert_int_equal(told[TN_LOG_DEBUG], 1);
    assert_int_equal(rmdir(folder), 0); /* it is still there, and empty */
    snprintf(below, sizeof below, "%s/tuning.bin", file);
    s = store_open(below);
    expect(s, "one", NULL);
    put(s, "one", "first", 5);
    expect(s, "one", "first"); /* in this process */
    tni_tuning_store_destroy(s);
    assert_int_equal(told[TN_LOG_WARNING], 0);
    assert_int_equal(told[TN_LOG_DEBUG], 1);
}

/* Who writes later keeps what was written since he read. */
static void two_writers(void **state)
{
    const char *path = scratch_path("two.bin");
    tni_tuning_store *a = store_open(path), *b = store_open(path);

    (void)state;
    expect(a, "one", NULL);
    expect(b, "one", NULL);
    put(a, "one", "first", 5);
    put(b, "two", "second", 6);
    tni_tuning_store_destroy(a);
    tni_tuning_store_destroy(b);
    a = store_open(path);
    expect(a, "one", "first");
    expect(a, "two", "second");
    tni_tuning_store_destroy(a);
}

/* The oldest go; what is too large is not kept. */
static void limits(void **state)
{
    enum { BLOBS = 100 };
    const char *path = scratch_path("limits.bin");
    char *blob = calloc(1, TNI_TUNING_BLOB_MAX + 1), *long_key = calloc(1, TNI_TUNING_KEY_MAX + 2), key[16];
    tni_tuning_store *s = store_open(path);
    struct stat info;

    (void)state;
    assert_non_null(blob);
    assert_non_null(long_key);
    memset(blob, 'b', TNI_TUNING_BLOB_MAX);
    memset(long_key, 'k', TNI_TUNING_KEY_MAX + 1);
    for (int i = 0; i < BLOBS; i++) {
        snprintf(key, sizeof key, "key %d", i);
        put(s, key, blob, TNI_TUNING_BLOB_MAX);
    }
    put(s, "large", blob, TNI_TUNING_BLOB_MAX + 1);
    put(s, long_key, blob, 1);
    put(s, "empty", blob, 0);
    tni_tuning_store_destroy(s);
    assert_int_equal(stat(path, &info), 0);
    assert_in_range(info.st_size, TNI_TUNING_FILE_MAX / 2, TNI_TUNING_FILE_MAX);
    s = store_open(path);
    expect(s, "key 0", NULL);
    expect(s, "key 99", blob);
    expect(s, "large", NULL);
    expect(s, "empty", NULL);
    tni_tuning_store_destroy(s);
    free(blob);
    free(long_key);
}

/* Without memory nothing is found or kept; nothing breaks, and nothing is left behind. */
static void no_memory(void **state)
{
    const char *path = scratch_quick_path("memory.bin");
    uint64_t bytes, nth = 0;
    char *text = file_make(path, &bytes);
    bool failed = true;

    (void)state;
    while (failed) {
        const tni_str one = {.text = (char *)(uintptr_t) "one", .length = 3};
        tni_mem_stats before, after;
        tni_tuning_store *s = NULL;
        uint64_t count = 0;

        scratch_put(path, text, bytes);
        tni_mem_stats_get(&before);
        tni_mem_fail_at(++nth, false, true);
        if (tni_tuning_store_create(path, &test_log, &s) == TN_OK) {
            tni_free(tni_tuning_store_find(s, &one, &count));
            put(s, "three", "third", 5);
            tni_tuning_store_destroy(s);
        }
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        tni_mem_stats_get(&after);
        assert_int_equal(after.live_count, before.live_count);
    }
    assert_true(nth > 8);
    tni_free(text);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),        cmocka_unit_test(damaged), cmocka_unit_test(no_place),
        cmocka_unit_test(two_writers), cmocka_unit_test(limits),  cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
