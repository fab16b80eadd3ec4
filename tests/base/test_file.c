/* Files: reading, .gz, memory, atomic writing, folders, paths; each with allocations failing. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/base.h"
#include "support/scratch.h"

static unsigned char pattern[300000];

static int pattern_make(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i * 7 + i / 251);
    return 0;
}

static void reads_in_pieces(tni_file *f)
{
    static const uint64_t steps[] = {1, 7, 4096, 65536, 70000, 100000};
    unsigned char out[100000];
    uint64_t at = 0;

    for (size_t i = 0; at < sizeof pattern; i++) {
        uint64_t n = steps[i % 6] < sizeof pattern - at ? steps[i % 6] : sizeof pattern - at;

        assert_true(tni_file_left(f) >= sizeof pattern - at);
        if (i % 3 == 2) {
            assert_int_equal(tni_file_skip(f, n), TN_OK);
        } else {
            assert_int_equal(tni_file_read(f, out, n), TN_OK);
            assert_memory_equal(out, pattern + at, n);
        }
        at += n;
    }
    assert_int_equal(tni_file_read_some(f, out, 10, &at), TN_OK);
    assert_int_equal(at, 0);
    assert_int_equal(tni_file_read(f, out, 1), TN_E_FORMAT);
    assert_int_equal(tni_file_skip(f, 1), TN_E_FORMAT);
    assert_int_equal(tni_file_left(f), 0);
}

/* Wherever the reader stands, and without moving it. */
static void reads_anywhere(tni_file *f)
{
    static const uint64_t at[] = {70000, 0, sizeof pattern - 5, 1};
    unsigned char out[5];

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        assert_int_equal(tni_file_read_at(f, at[i], out, sizeof out), TN_OK);
        assert_memory_equal(out, pattern + at[i], sizeof out);
        assert_int_equal(tni_file_read(f, out, 2), TN_OK);
        assert_memory_equal(out, pattern + 2 * i, 2);
    }
    assert_int_equal(tni_file_read_at(f, sizeof pattern - 4, out, sizeof out), TN_E_FORMAT);
    assert_int_equal(tni_file_read_at(f, sizeof pattern, out, 0), TN_OK);
}

static const char *gz_make(const char *name, size_t members)
{
    const char *path = scratch_path(name);
    size_t part = sizeof pattern / members;

    unlink(path);
    for (size_t i = 0; i < members; i++) {
        gzFile z = gzopen(path, i ? "ab" : "wb");

        assert_int_equal(gzwrite(z, pattern + i * part, (unsigned)part), part);
        assert_int_equal(gzclose(z), Z_OK);
    }
    return path;
}

static void reading(void **state)
{
    const char *path = scratch_write("plain", pattern, sizeof pattern);
    tni_file *f;

    (void)state;
    assert_int_equal(tni_file_open(path, &f), TN_OK);
    assert_int_equal(tni_file_left(f), sizeof pattern);
    assert_string_equal(tni_file_name(f), path);
    reads_in_pieces(f);
    tni_file_close(f);
    assert_int_equal(tni_file_open(path, &f), TN_OK);
    reads_anywhere(f);
    tni_file_close(f);
    assert_int_equal(tni_file_open_gz(path, sizeof pattern, &f), TN_OK);
    reads_in_pieces(f);
    tni_file_close(f);
    assert_int_equal(tni_file_open_memory(pattern, sizeof pattern, &f), TN_OK);
    reads_in_pieces(f);
    tni_file_close(f);
    for (size_t members = 1; members <= 3; members++) {
        assert_int_equal(tni_file_open_gz(gz_make("packed.gz", members), sizeof pattern, &f), TN_OK);
        reads_in_pieces(f);
        tni_file_close(f);
    }
    tni_file_close(NULL);
}

static void refusing(void **state)
{
    const char *fifo = scratch_path("fifo");
    tni_file *f = NULL;
    char *text = NULL;
    uint64_t bytes;

    (void)state;
    assert_int_equal(tni_file_open("", &f), TN_E_ARG);
    assert_int_equal(tni_file_open(NULL, &f), TN_E_ARG);
    assert_int_equal(tni_file_open(scratch_path("absent"), &f), TN_E_IO);
    assert_non_null(strstr(tni_error_message(), "absent"));
    assert_int_equal(tni_file_open(scratch_folder(), &f), TN_E_IO);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(tni_file_open(fifo, &f), TN_E_IO); /* and does not hang */
    assert_int_equal(tni_file_read_all(scratch_write("five", "12345", 5), 4, &text, &bytes), TN_E_FORMAT);
    assert_int_equal(tni_file_open_gz(scratch_path("five"), 4, &f), TN_E_FORMAT);
    assert_int_equal(tni_file_read_all(scratch_path("five"), 5, &text, &bytes), TN_OK);
    assert_string_equal(text, "12345");
    tni_free(text);
    assert_null(f);
}

static tn_status gz_drain(const char *path, uint64_t max)
{
    unsigned char out[5000];
    tni_file *f;
    uint64_t got = 1;
    tn_status st = tni_file_open_gz(path, max, &f);

    while (!st && got)
        st = tni_file_read_some(f, out, sizeof out, &got);
    if (!st)
        assert_int_equal(tni_file_left(f), 0);
    tni_file_close(f);
    return st;
}

static void damaged_gz(void **state)
{
    char *bytes;
    uint64_t count;

    (void)state;
    assert_int_equal(tni_file_read_all(gz_make("whole.gz", 1), 1u << 20, &bytes, &count), TN_OK);
    assert_int_equal(gz_drain(scratch_path("whole.gz"), sizeof pattern - 1),
                     TN_E_FORMAT); /* inflates too far */
    for (uint64_t cut = 3; cut < count; cut += count / 50 + 1)
        assert_int_equal(gz_drain(scratch_write("cut.gz", bytes, cut), 1u << 20), TN_E_FORMAT);
    for (uint64_t at = 2; at < count; at += count / 50 + 1) { /* no crash, an error or the same length */
        bytes[at] = (char)(bytes[at] ^ 0x55);
        gz_drain(scratch_write("bent.gz", bytes, count), 1u << 20);
        bytes[at] = (char)(bytes[at] ^ 0x55);
    }
    bytes[count - 6] = (char)(bytes[count - 6] ^ 1); /* the checksum */
    assert_int_equal(gz_drain(scratch_write("sum.gz", bytes, count), 1u << 20), TN_E_FORMAT);
    tni_free(bytes);
}

/* 100 MB of zeros in 100 KB: what may be left is bounded by what the file can hold. */
static void gz_bomb(void **state)
{
    static const char zeros[65536];
    const char *path = scratch_path("bomb.gz");
    gzFile z = gzopen(path, "wb9");
    struct stat info;
    tni_file *f;

    (void)state;
    for (int i = 0; i < 160; i++)
        assert_int_equal(gzwrite(z, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(gzclose(z), Z_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(tni_file_open_gz(path, UINT64_MAX / 2, &f), TN_OK);
    assert_in_range(tni_file_left(f), 160 * sizeof zeros, (uint64_t)info.st_size * 1032 + 40000);
    tni_file_close(f);
    assert_int_equal(gz_drain(path, 1u << 20), TN_E_FORMAT);
    assert_int_equal(gz_drain(path, 160 * sizeof zeros), TN_OK);
}

static size_t files_in(const char *folder)
{
    DIR *d = opendir(folder);
    size_t count = 0;

    assert_non_null(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count - 2;
}

static void writing(void **state)
{
    const char *folder = scratch_path("writing/a/b");
    char path[SCRATCH_PATH_BYTES + 8];
    tni_writer *w;
    char *text;
    uint64_t count;
    struct stat info;
    mode_t mask = umask(027);

    (void)state;
    assert_int_equal(tni_folder_create(folder), TN_OK);
    assert_int_equal(tni_folder_create(folder), TN_OK);
    snprintf(path, sizeof path, "%s/out", folder);
    assert_int_equal(tni_writer_open(path, &w), TN_OK);
    for (size_t at = 0; at < sizeof pattern; at += 1000)
        assert_int_equal(tni_writer_write(w, pattern + at, 1000), TN_OK);
    assert_false(tni_file_exists(path));
    assert_int_equal(tni_writer_commit(w), TN_OK);
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(tni_file_read_all(path, 1u << 20, &text, &count), TN_OK);
    assert_int_equal(count, sizeof pattern);
    assert_memory_equal(text, pattern, count);
    tni_free(text);
    assert_int_equal(tni_writer_open(path, &w), TN_OK);
    assert_int_equal(tni_writer_write(w, "x", 1), TN_OK);
    tni_writer_abandon(w);
    assert_int_equal(tni_file_write_all(path, "new", 3), TN_OK); /* replaces */
    assert_int_equal(files_in(folder), 1);                       /* no temporary file is left */
    assert_int_equal(tni_writer_open(scratch_path("no/such/folder/x"), &w), TN_E_IO);
    assert_int_equal(tni_folder_create(path), TN_E_IO); /* a file of this name */
    assert_int_equal(tni_folder_create(""), TN_E_ARG);
    assert_int_equal(tni_writer_open("", &w), TN_E_ARG);
}

/* A write that the system refuses: the error sticks, the old file stays, nothing else is left. */
static void writing_fails(void **state)
{
    const struct rlimit small = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    const char *folder = scratch_path("full");
    char path[SCRATCH_PATH_BYTES + 8];
    char *text;
    uint64_t count;
    tni_writer *w;

    (void)state;
    assert_int_equal(tni_folder_create(folder), TN_OK);
    snprintf(path, sizeof path, "%s/out", folder);
    assert_int_equal(tni_file_write_all(path, "old", 3), TN_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){small.rlim_cur, before.rlim_max}), 0);
    assert_int_equal(tni_writer_open(path, &w), TN_OK);
    assert_int_equal(tni_writer_write(w, pattern, sizeof pattern), TN_E_IO);
    assert_int_equal(tni_writer_write(w, "x", 1), TN_E_IO);
    tni_error_clear();
    assert_int_equal(tni_writer_commit(w), TN_E_IO);
    assert_non_null(strstr(tni_error_message(), "write"));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(tni_file_read_all(path, 100, &text, &count), TN_OK);
    assert_string_equal(text, "old");
    tni_free(text);
    assert_int_equal(files_in(folder), 1);
}

static tn_status files_body(void *arg)
{
    char *path = NULL, *text = NULL;
    uint64_t count;
    tni_file *f = NULL;
    unsigned char out[1000];
    tn_status st;

    (void)arg;
    if ((st = tni_path_join(scratch_folder(), "memory.gz", &path)) ||
        (st = tni_file_write_all(path, pattern, 1000)) ||
        (st = tni_file_read_all(path, 1000, &text, &count)) ||
        (st = tni_file_open_gz(scratch_path("packed.gz"), sizeof pattern, &f)) ||
        (st = tni_file_read(f, out, sizeof out)))
        goto cleanup;

cleanup:
    tni_file_close(f);
    tni_free(path);
    tni_free(text);
    return st;
}

static void files_without_memory(void **state)
{
    (void)state;
    gz_make("packed.gz", 1);
    assert_true(scratch_each_allocation_fails(files_body, NULL) > 8);
}

static void paths(void **state)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}, {"/", "b", "/b"}};
    char *path;
    char *big = calloc(1, TN_PATH_BYTES_MAX + 10);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tni_path_join(cases[i][0], cases[i][1], &path), TN_OK);
        assert_string_equal(path, cases[i][2]);
        tni_free(path);
    }
    memset(big, 'x', TN_PATH_BYTES_MAX + 1);
    assert_int_equal(tni_path_join("a", big, &path), TN_E_NOMEM);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(refusing),
        cmocka_unit_test(damaged_gz),
        cmocka_unit_test(gz_bomb),
        cmocka_unit_test(writing),
        cmocka_unit_test(writing_fails),
        cmocka_unit_test(files_without_memory),
        cmocka_unit_test(paths),
    };

    return cmocka_run_group_tests(tests, pattern_make, NULL);
}
