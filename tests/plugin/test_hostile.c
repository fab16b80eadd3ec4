/*
 * The corpus of hostile.c: each file earns exactly its code, none is mapped before that unless its row says
 * so, no code of theirs runs, and the tool lists them all without failing. Then what happens while a file is
 * loaded, and fuzzed headers.
 */
#include "plugin/hostile.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/plugin/philox.h"

static char self[SCRATCH_PATH_BYTES]; /* this program */

#define ROW_PATH_BYTES (SCRATCH_PATH_BYTES + 64)

/* Root alone can give files away. */
static bool possible(const hostile *h)
{
    return geteuid() == 0 || !strstr(h->name, "owner") || !strncmp(h->name, "note-", 5);
}

/* corpus/NAME/in/NAME.so */
static void row_folder(const hostile *h, char out[ROW_PATH_BYTES])
{
    snprintf(out, ROW_PATH_BYTES, "%s/corpus/%s/in", scratch_folder(), h->name);
}

static int corpus_make(void **state)
{
    int made = plugins_build(state);

    if (made)
        return made;
    hostile_begin();
    for (const hostile *h = hostiles; h->name; h++) {
        char folder[ROW_PATH_BYTES], path[2 * ROW_PATH_BYTES];

        if (!possible(h))
            continue;
        row_folder(h, folder);
        assert_int_equal(tni_folder_create(folder), TN_OK);
        snprintf(path, sizeof path, "%s/%s.so", folder, h->name);
        h->make(path, h);
    }
    return 0;
}

/* Owners back, or the folder stays. */
static int corpus_end(void **state)
{
    char command[2 * SCRATCH_PATH_BYTES];

    (void)state;
    snprintf(command, sizeof command, "chmod -R u+rwx '%s/corpus' 2>/dev/null", scratch_folder());
    (void)!system(command);
    hostile_end();
    return 0;
}

/* ---- exact codes --------------------------------------------------------------------------------- */

static const tni_plugin *row_plugin(const tni_registry *r, const hostile *h)
{
    char end[128];

    snprintf(end, sizeof end, "/%s.so", h->name);
    for (size_t i = 0; i < tni_registry_count(r); i++) {
        const tni_plugin *p = tni_registry_at(r, i);
        const size_t length = strlen(p->path), more = strlen(end);

        if (length >= more && !strcmp(p->path + length - more, end))
            return p;
    }
    return NULL;
}

static void row_check(const hostile *h)
{
    char folder[ROW_PATH_BYTES];
    const tni_plugin *p;
    fixture f;

    row_folder(h, folder);
    f = open_with(folder, NULL, NULL);
    assert_int_equal(f.status, TN_OK);
    p = row_plugin(f.registry, h);
    if (!p)
        fail_msg("%s: no candidate", h->name);
    if (h->late || !h->code) {
        if (p->state != TNI_PLUGIN_READY)
            fail_msg("%s: L%02u before it was opened: %s", h->name, p->code, p->reason);
        if (h->late)
            assert_int_not_equal(tni_plugin_load(f.registry, (tni_plugin *)(uintptr_t)p), TN_OK);
    }
    if (p->code != h->code || (h->code && !p->reason[0]))
        fail_msg("%s: L%02u rather than L%02u: %s", h->name, p->code, h->code, p->reason);
    if (h->code && !h->late)
        assert_int_equal(p->state, TNI_PLUGIN_REFUSED);
    assert_true(!h->late || h->code == 11 || h->code == 13 || h->code == 14);
    close_all(&f);
}

static void exact_codes(void **state)
{
    size_t count = 0, skipped = 0;

    (void)state;
    for (const hostile *h = hostiles; h->name; h++) {
        if (possible(h))
            row_check(h);
        else
            skipped++;
        count++;
    }
    if (skipped)
        print_message("skipped: %zu files that only root can make\n", skipped);
    assert_true(count >= 40);
    assert_false(tni_file_exists(scratch_path(HOSTILE_MARKER)));
    print_message("%zu hostile files\n", count - skipped);
}

/* Every code that a row of errors.list has, and is not reserved, is earned here or in test_registry. */
static void every_refusal(void **state)
{
    uint32_t seen = 1u << 7 | 1u << 17 | 1u << 18; /* below_the_floor; tests of plugins.require; a warning */
    size_t count;
    const tni_error_row *rows = tni_error_rows(&count);

    (void)state;
    for (const hostile *h = hostiles; h->name; h++)
        seen |= 1u << h->code;
    for (uint32_t code = 1; code <= 19; code++) {
        const tni_error_row *row = tni_error_row_find(TNI_REFUSAL_BASE + code);

        assert_non_null(row);
        assert_int_equal(row->refusal, code);
        if (!strncmp(row->sentence, "reserved", 8) == !(seen >> code & 1u))
            continue;
        fail_msg("L%02u is %s", code, seen >> code & 1u ? "reserved, but used" : "earned by no file");
    }
    for (size_t i = 0; i < count; i++)
        assert_true(rows[i].refusal <= 19);
}

static void below_the_floor(void **state)
{
    tni_abi_range range = *tni_abi_of_core();
    tni_note note;
    uint64_t count;
    const char *bytes = hostile_base(&count);

    (void)state;
    assert_int_equal(tni_note_read_memory(bytes, count, "t", &note), TN_OK);
    range.minor = range.floor = note.body.abi_minor + 1;
    assert_int_equal(tni_refuse_note(&note, &range), TN_E_UNSUPPORTED);
    assert_int_equal(tni_refusal_code(), 7);
    tni_note_clear(&note);
}

/* ---- while it is loaded -------------------------------------------------------------------------- */

/* The file shrinks after it was found: refused when it is looked at again. */
static void shrinks(void **state)
{
    const char *folder = folder_new("shrinks");
    fixture f;
    tni_plugin *p;

    (void)state;
    copy(plain, in(folder, "acme.so"));
    f = open_with(folder, NULL, NULL);
    p = tni_registry_find(f.registry, "acme");
    assert_non_null(p);
    assert_int_equal(truncate(in(folder, "acme.so"), 4096), 0);
    assert_int_not_equal(tni_plugin_load(f.registry, p), TN_OK);
    assert_int_equal(p->code, 3);
    close_all(&f);
}

/* In a process of its own, which stops at the failpoint between the last look and the mapping. */
static int shrink_late(const char *folder)
{
    tni_plugin *p;
    fixture f = open_with(folder, NULL, NULL);

    p = tni_registry_find(f.registry, "acme");
    if (!p)
        return 2;
    if (!tni_plugin_load(f.registry, p) || p->code != 13)
        return 3;
    close_all(&f);
    return 0;
}

static void shrinks_late(void **state)
{
    const char *folder = folder_new("late");
    int status = 0;
    pid_t child;

    (void)state;
#if !defined(TN_FAILPOINTS)
    print_message("skipped: a build without failpoints\n");
    skip();
#endif
    copy(plain, in(folder, "acme.so"));
    if (!(child = fork())) {
        (void)setenv("TENON_FAILPOINT", "plugin.map=stop", 1);
        (void)execl(self, self, "--shrink-late", folder, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(truncate(in(folder, "acme.so"), 4096), 0);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- the tool, and what is mapped ---------------------------------------------------------------- */

/* "plugins.path=…" of the folders of at most `max` rows from `*h` on. */
static void path_setting(const hostile **h, size_t max, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "plugins.path=");
    const size_t begin = used;

    for (; (*h)->name && max; (*h)++) {
        char folder[ROW_PATH_BYTES];

        if (!possible(*h))
            continue;
        row_folder(*h, folder);
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > begin ? ", " : "", folder);
        assert_true(used < size);
        max--;
    }
}

static void tool_lists(void **state)
{
    const char *tool = getenv("TENON_TEST_TOOL");
    const hostile *h = hostiles;
    char setting[65536], command[70000];

    (void)state;
    if (!tool || access(tool, X_OK) != 0) {
        print_message("skipped: the tool was not built\n");
        skip();
    }
    while (h->name) {
        path_setting(&h, 60, setting, sizeof setting);
        snprintf(command, sizeof command, "'%s' plugins list --json --set '%s' >'%s'", tool, setting,
                 scratch_path("list.json"));
        assert_int_equal(system(command), 0);
    }
    assert_false(tni_file_exists(scratch_path(HOSTILE_MARKER)));
}

/* Under strace: every folder is scanned and everything that is ready is loaded; prints nothing. */
static int load_all(const char *list)
{
    tni_options *options = NULL;
    tni_registry *r = NULL;

    if (tni_options_create(NULL, &options) || tni_options_set(options, list) ||
        tni_registry_create(options, NULL, &r))
        return 1;
    for (size_t i = 0; i < tni_registry_count(r); i++)
        (void)tni_plugin_load(r, tni_registry_at(r, i));
    tni_registry_destroy(r);
    tni_options_destroy(options);
    return 0;
}

static bool strace_works(void)
{
    return system("strace -o /dev/null -e trace=none true >/dev/null 2>&1") == 0;
}

static void not_mapped(void **state)
{
    const hostile *h = hostiles;
    char setting[65536], command[80000], end[160];
    char *trace = NULL;
    size_t late = 0;

    (void)state;
    if (!strace_works()) {
        print_message("skipped: strace is not here, or may not trace\n");
        skip();
    }
    while (h->name) {
        const hostile *from = h;
        uint64_t count;

        path_setting(&h, 60, setting, sizeof setting);
        snprintf(command, sizeof command,
                 "ASAN_OPTIONS=detect_leaks=0 strace -f -y -s 4096 -e trace=mmap,openat -o '%s' '%s' "
                 "--load-all '%s'",
                 scratch_path("trace"), self, setting);
        assert_int_equal(system(command), 0);
        assert_int_equal(tni_file_read_all(scratch_path("trace"), 1u << 28, &trace, &count), TN_OK);
        for (; from != h; from++) {
            snprintf(end, sizeof end, "/%s.so>", from->name);
            for (const char *line = trace; line && (line = strstr(line, end)); line++) {
                const char *begin = memrchr(trace, '\n', (size_t)(line - trace));

                begin = begin ? begin + 1 : trace;
                if (!memmem(begin, (size_t)(line - begin), "mmap(", 5) ||
                    !memmem(begin, (size_t)(line - begin), "PROT_EXEC", 9))
                    continue;
                late++;
                if (!from->late && from->code != 0 && from->code != 15)
                    fail_msg("%s: mapped, executable", from->name);
            }
        }
        tni_free(trace);
    }
    assert_true(late > 5); /* the late ones were: the trace sees such mappings */
    assert_false(tni_file_exists(scratch_path(HOSTILE_MARKER)));
}

/* 200 notes are listed without one dlopen: nothing of theirs is mapped at all. */
static void many_without_dlopen(void **state)
{
    const char *folder = folder_new("many"), *tool = getenv("TENON_TEST_TOOL");
    char command[4 * SCRATCH_PATH_BYTES], name[32];
    char *text;
    uint64_t count;

    (void)state;
    if (!tool || access(tool, X_OK) != 0 || !strace_works()) {
        print_message("skipped: no tool, or no strace that may trace\n");
        skip();
    }
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "p%03d", i);
        patched(in(folder, "x"), offsetof(tn_note_body, name), name, 5);
        snprintf(name, sizeof name, "p%03d.so", i);
        assert_int_equal(rename(in(folder, "x"), in(folder, name)), 0);
    }
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 strace -f -y -e trace=mmap -o '%s' '%s' plugins list --json --set "
             "plugins.path='%s' >'%s'",
             scratch_path("trace"), tool, folder, scratch_path("list.json"));
    assert_int_equal(system(command), 0);
    assert_int_equal(tni_file_read_all(scratch_path("trace"), 1u << 28, &text, &count), TN_OK);
    assert_null(strstr(text, "/many/p"));
    tni_free(text);
    assert_int_equal(tni_file_read_all(scratch_path("list.json"), 1u << 28, &text, &count), TN_OK);
    assert_non_null(strstr(text, "\"p000\""));
    assert_non_null(strstr(text, "\"p199\""));
    tni_free(text);
}

/* ---- fuzzed headers ------------------------------------------------------------------------------ */

/* Up to eight bytes of headers, dynamic section and note are changed: refused with a code, or found good. */
static void fuzzed(void **state)
{
    const char *folder = folder_new("fuzzed");
    uint64_t refused = 0;

    (void)state;
    for (uint64_t run = 0; run < 400; run++) {
        uint64_t count;
        char *bytes = hostile_copy(&count);
        fixture f;

        for (uint64_t k = 0; k <= run % 8; k++) {
            uint32_t bits[4];

            tn_philox(run, 7, k, bits);
            bytes[bits[0] % (bits[1] % 2 ? 2048 : count)] = (char)bits[2];
        }
        hostile_write(in(folder, "x.so"), bytes, count);
        f = open_with(folder, NULL, NULL);
        assert_int_equal(f.status, TN_OK);
        assert_int_equal(tni_registry_count(f.registry), 1);
        if (tni_registry_at(f.registry, 0)->state == TNI_PLUGIN_REFUSED) {
            const uint32_t code = tni_registry_at(f.registry, 0)->code;

            refused++;
            if ((code < 3 || code > 8) && code != 12 && code != 19)
                fail_msg("run %llu: L%02u", (unsigned long long)run, code);
        }
        close_all(&f);
    }
    assert_true(refused > 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_codes), cmocka_unit_test(every_refusal), cmocka_unit_test(below_the_floor),
        cmocka_unit_test(shrinks),     cmocka_unit_test(shrinks_late),  cmocka_unit_test(tool_lists),
        cmocka_unit_test(not_mapped),  cmocka_unit_test(fuzzed),        cmocka_unit_test(many_without_dlopen),
    };

    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return 1;
    if (argc == 3 && !strcmp(argv[1], "--load-all"))
        return load_all(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "--shrink-late"))
        return shrink_late(argv[2]);
    return cmocka_run_group_tests(tests, corpus_make, corpus_end);
}
