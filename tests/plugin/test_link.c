/*
 * What the linker would do with a file, read from the file: hand-made ones (the seeds of the fuzz target),
 * the plugins of this build, and the libraries that they need.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/elf.h"
#include "plugin/kit.h"

static char *seed_read(const char *name, tni_elf *e)
{
    const char *root = getenv("TENON_TEST_SOURCE");
    char path[SCRATCH_PATH_BYTES];
    uint64_t count;
    char *bytes;

    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/elf/%s", root ? root : ".", name);
    assert_int_equal(tni_file_read_all(path, 1u << 20, &bytes, &count), TN_OK);
    *e = (tni_elf){.name = name, .bytes = (const unsigned char *)bytes, .fd = -1, .size = count};
    return bytes;
}

/* A file with two constructors, and the same with one, or none, by its dynamic section. */
static void constructors(void **state)
{
    tni_link l;
    tni_elf e;
    char *bytes = seed_read("init", &e);

    (void)state;
    assert_int_equal(tni_link_read(&e, &l), TN_OK);
    assert_int_equal(l.init_count, 2);
    assert_int_equal(l.relocation_count, 2);
    assert_int_equal(tni_link_quiet(&e, &l), TN_E_UNSUPPORTED);
    assert_int_equal(tni_refusal_code(), 19);
    assert_non_null(strstr(tni_error_message(), "would run 1 functions by being opened"));
    l.init_count = 1;
    assert_int_equal(tni_link_quiet(&e, &l), TN_OK);
    l.init_count = 0;
    assert_int_equal(tni_link_quiet(&e, &l), TN_OK);
    l.init_count = 3; /* more than the file holds there */
    l.init_array = UINT64_MAX - 7;
    assert_int_equal(tni_link_quiet(&e, &l), TN_E_FORMAT);
    l.init_count = UINT64_MAX;
    assert_int_equal(tni_link_quiet(&e, &l), TN_E_UNSUPPORTED);
    tni_free(bytes);
}

static void seeds(void **state)
{
    static const struct {
        const char *name, *needed;
        uint32_t count;
    } cases[] = {
        {"gnu", "libc.so.6", 1},
        {"sysv", "libm.so.6, libc.so.6", 2},
        {"many", "l0.so, l1.so", 64},
        {"none", "", 0},
    };
    char text[TNI_LIBRARY_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tni_link l;
        tni_elf e;
        char *bytes = seed_read(cases[i].name, &e);

        assert_int_equal(tni_link_read(&e, &l), TN_OK);
        assert_int_equal(l.needed_count, cases[i].count);
        tni_link_needed(&e, &l, text, sizeof text);
        assert_int_equal(strncmp(text, cases[i].needed, strlen(cases[i].needed)), 0);
        assert_int_equal(tni_link_text(&e, &l, l.run_path, text, sizeof text), TN_OK);
        assert_string_equal(text, "$ORIGIN/../lib");
        assert_int_equal(tni_link_text(&e, &l, l.run_path, text, 14), TN_E_FORMAT); /* no room for its end */
        assert_int_equal(tni_link_text(&e, &l, l.strings_size, text, sizeof text), TN_E_FORMAT);
        assert_int_equal(tni_link_defines(&e, &l, TNI_ENTRY), TN_OK);
        assert_int_equal(tni_link_defines(&e, &l, "tn_plugin_v2"), TN_E_FORMAT);
        assert_int_equal(tni_refusal_code(), 12);
        tni_free(bytes);
    }
}

/* One library more than the limit. */
static void too_many(void **state)
{
    tni_link l;
    tni_elf e;
    char *bytes = seed_read("many", &e), *entry = memmem(bytes + 176, e.size - 176, "\5\0\0\0\0\0\0\0", 8);

    (void)state;
    assert_non_null(entry); /* DT_STRTAB, right behind the last DT_NEEDED */
    *entry = 1;
    assert_int_equal(tni_link_read(&e, &l), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "over 64 libraries"));
    tni_free(bytes);
}

static void own_plugins(void **state)
{
    static const char *const names[] = {"cpu.so", "mempool.so", "fake.so"};
    const char *folder = getenv("TENON_TEST_PLUGINS");

    (void)state;
    for (size_t i = 0; folder && i < 3; i++) {
        char path[SCRATCH_PATH_BYTES];
        struct stat info;
        tni_link l;
        tni_elf e = {.name = path};

        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if ((e.fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
            continue;
        assert_int_equal(fstat(e.fd, &info), 0);
        e.size = (uint64_t)info.st_size;
        assert_int_equal(tni_link_read(&e, &l), TN_OK);
        assert_int_equal(tni_link_defines(&e, &l, TNI_ENTRY), TN_OK);
        close(e.fd);
    }
}

static void libraries(void **state)
{
    const char *folder = folder_new("libraries");
    char path[TN_PATH_BYTES_MAX], expected[SCRATCH_PATH_BYTES];

    (void)state;
    assert_true(tni_library_find("libc.so.6", folder, "", path, sizeof path));
    assert_true(path[0] == '/' && strstr(path, "libc.so.6"));
    assert_false(tni_library_find("libno-such-thing.so.9", folder, "", path, sizeof path));
    assert_false(tni_library_find("", folder, "", path, sizeof path));
    assert_false(tni_library_find("relative/libc.so.6", folder, "", path, sizeof path));
    copy(plain, in(folder, "libmine.so"));
    assert_false(tni_library_find("libmine.so", folder, "", path, sizeof path));
    snprintf(expected, sizeof expected, "%s/libmine.so", folder);
    assert_true(tni_library_find("libmine.so", folder, "/nowhere:$ORIGIN", path, sizeof path));
    assert_string_equal(path, expected);
    assert_true(tni_library_find("libmine.so", folder, "${ORIGIN}:/nowhere", path, sizeof path));
    assert_true(tni_library_find(expected, folder, "", path, sizeof path));
    put_file(in(folder, "libtext.so"), "no library", 10); /* of that name, but none */
    assert_false(tni_library_find("libtext.so", folder, "$ORIGIN", path, sizeof path));
    assert_int_equal(setenv("LD_LIBRARY_PATH", folder, 1), 0);
    assert_true(tni_library_find("libmine.so", "/", "", path, sizeof path));
    assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
    assert_false(tni_library_find("libmine.so", folder, "$ORIGIN", path, 8)); /* no room */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds),       cmocka_unit_test(constructors), cmocka_unit_test(too_many),
        cmocka_unit_test(own_plugins), cmocka_unit_test(libraries),
    };

    return cmocka_run_group_tests(tests, plugins_build, NULL);
}
