/*
 * Checkpoints: round trip, order, keeping, damage of every byte with fallback, processes killed and failing
 * at each point, failing allocation.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/io.h"
#include "support/scratch.h"
#include "support/space.h"

static test_space t;
static char folder[256];
static tni_params *params;

static int open_params(void)
{
    const int64_t shape[] = {3, 40};
    tni_array *a = NULL;

    test_space_open(&t, "naive");
    if (tni_params_create(&params) || tni_array_create(t.space, t.cpu, TN_F32, 2, shape, NULL, &a) ||
        tni_array_fill(a, 2.5) || tni_params_add(params, "param:w", a) ||
        tni_params_add(params, "state:w:0", a) || tni_params_add(params, "state:none", NULL))
        return -1;
    tni_array_release(a);
    return 0;
}

static int open_space(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/tenon-checkpoint-XXXXXX", scratch_root());
    return mkdtemp(folder) ? open_params() : -1;
}

static void folder_clear(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

static int close_space(void **state)
{
    (void)state;
    tni_params_destroy(params);
    test_space_close(&t);
    folder_clear();
    return rmdir(folder);
}

static int clear(void **state)
{
    (void)state;
    folder_clear();
    return 0;
}

static size_t files(const char *containing)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.' && strstr(entry->d_name, containing);
    closedir(dir);
    return count;
}

static uint32_t latest(const char *json, const char *skipped)
{
    tni_checkpoint *c = NULL;
    char first[65], second[65];
    uint32_t number;

    assert_int_equal(tni_checkpoint_load_latest(t.space, t.cpu, folder, &c), TN_OK);
    if (json)
        assert_string_equal(c->json, json);
    assert_int_equal(tni_params_sha256(c->params, first), TN_OK);
    assert_int_equal(tni_params_sha256(params, second), TN_OK);
    assert_string_equal(first, second);
    if (skipped)
        assert_non_null(strstr(c->skipped, skipped));
    else
        assert_null(c->skipped);
    number = c->number;
    tni_checkpoint_destroy(c);
    return number;
}

static void round_trip(void **state)
{
    tni_checkpoint *c = NULL;
    tni_params *empty = NULL;
    char *path = NULL, *missing = NULL;

    (void)state;
    assert_int_equal(tni_checkpoint_load_latest(t.space, t.cpu, folder, &c), TN_E_KEY);
    assert_int_equal(tni_path_join(folder, "not-there", &missing), TN_OK);
    assert_int_equal(tni_checkpoint_load_latest(t.space, t.cpu, missing, &c), TN_E_KEY);
    assert_null(c);
    tni_free(missing);
    assert_int_equal(tni_checkpoint_save(folder, "{\"epoch\": 1}", params, 0, &path), TN_OK);
    assert_non_null(strstr(path, "checkpoint-000001.tnck"));
    tni_free(path);
    assert_int_equal(latest("{\"epoch\": 1}", NULL), 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tni_checkpoint_save(folder, "{\"epoch\": 2}", params, 3, NULL), TN_OK);
    assert_int_equal(files(".tnck"), 3);
    assert_int_equal(latest("{\"epoch\": 2}", NULL), 5);
    assert_int_equal(tni_params_create(&empty), TN_OK);
    assert_int_equal(tni_checkpoint_save(folder, "", empty, 1, NULL), TN_OK);
    assert_int_equal(files(""), 1);
    assert_int_equal(tni_checkpoint_load_latest(t.space, t.cpu, folder, &c), TN_OK);
    assert_int_equal(c->number, 6);
    assert_int_equal(c->params->count, 0);
    assert_string_equal(c->json, "");
    tni_checkpoint_destroy(c);
    tni_params_destroy(empty);
}

/* Each byte of a file changed, each place cut: never loaded, and the one before is taken. */
static void damage(void **state)
{
    char *path = NULL, *bytes;
    uint64_t count;

    (void)state;
    assert_int_equal(tni_checkpoint_save(folder, "{\"n\": 1}", params, 0, NULL), TN_OK);
    assert_int_equal(tni_checkpoint_save(folder, "{\"n\": 2}", params, 0, &path), TN_OK);
    assert_int_equal(tni_file_read_all(path, 1 << 20, &bytes, &count), TN_OK);
    for (uint64_t i = 0; i < count; i += 3) {
        tni_checkpoint *c = NULL;

        bytes[i] = (char)(bytes[i] ^ 0x10);
        scratch_put(path, bytes, count);
        assert_int_not_equal(tni_checkpoint_load(t.space, t.cpu, path, &c), TN_OK);
        assert_null(c);
        bytes[i] = (char)(bytes[i] ^ 0x10);
    }
    assert_int_equal(latest("{\"n\": 1}", "checkpoint-000002.tnck"), 1);
    for (uint64_t cut = 0; cut < count; cut += 5) {
        tni_checkpoint *c = NULL;

        scratch_put(path, bytes, cut);
        assert_int_equal(tni_checkpoint_load(t.space, t.cpu, path, &c), TN_E_FORMAT);
    }
    assert_int_equal(latest("{\"n\": 1}", "checkpoint-000002.tnck"), 1);
    scratch_put(path, bytes, count);
    assert_int_equal(latest("{\"n\": 2}", NULL), 2);
    tni_free(bytes);
    tni_free(path);
}

static void all_damaged(void **state)
{
    tni_checkpoint *c = NULL;
    char *path = NULL;

    (void)state;
    assert_int_equal(tni_checkpoint_save(folder, "{}", params, 0, &path), TN_OK);
    scratch_put(path, "nothing", 7);
    assert_int_equal(tni_checkpoint_load_latest(t.space, t.cpu, folder, &c), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "no checkpoint of 1"));
    assert_null(c);
    tni_free(path);
}

/* Names that are not ours stay; half-written files of the dead go. */
static void strangers(void **state)
{
    static const char *const names[] = {"checkpoint-1.tnck",      "checkpoint-000000.tnck",
                                        "checkpoint-abc.tnck",    "checkpoint-000001.tnckx",
                                        "checkpoint--00001.tnck", "notes.txt"};
    char *path;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(tni_path_join(folder, names[i], &path), TN_OK);
        scratch_put(path, "x", 1);
        tni_free(path);
    }
    assert_int_equal(tni_path_join(folder, "checkpoint-000009.tnck.tmp-77-0", &path), TN_OK);
    scratch_put(path, "x", 1);
    tni_free(path);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_checkpoint_save(folder, "{}", params, 1, NULL), TN_OK);
    assert_int_equal(files(""), 7);
    assert_int_equal(latest("{}", NULL), 3);
}

#ifdef TN_FAILPOINTS
/* A process that dies or fails at each point leaves the old state or the new one. */
static void killed(void **state)
{
    static const struct {
        const char *point;
        bool written;
    } points[] = {{"checkpoint_begin", false}, {"writer_write", false},      {"checkpoint_written", false},
                  {"writer_sync", false},      {"checkpoint_synced", false}, {"writer_rename", false},
                  {"writer_renamed", true},    {"checkpoint_renamed", true}};

    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        for (int kill = 0; kill < 2; kill++) {
            uint32_t before;
            pid_t child;
            int result;

            assert_int_equal(tni_checkpoint_save(folder, "{}", params, 2, NULL), TN_OK);
            before = latest("{}", NULL);
            child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                char value[64];

                (void)snprintf(value, sizeof value, "%s=%s", points[i].point, kill ? "kill" : "error");
                (void)setenv("TENON_FAILPOINT", value, 1); /* read once per program: so it runs anew */
                (void)execl("/proc/self/exe", "test_checkpoint", folder, (char *)NULL);
                _exit(9);
            }
            assert_int_equal(waitpid(child, &result, 0), child);
            if (kill)
                assert_true(WIFSIGNALED(result));
            else
                assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 3);
            assert_int_equal(latest("{}", NULL), before + points[i].written);
            if (!kill)
                assert_int_equal(files(".tmp"), 0);
        }
    assert_int_equal(tni_checkpoint_save(folder, "{}", params, 2, NULL), TN_OK);
    assert_int_equal(files(".tmp"), 0);
}
#endif

static void failing_allocation(void **state)
{
    uint64_t nth = 0, arrays, mine;
    tn_status st;

    (void)state;
    tni_space_live(t.space, &mine, NULL);
    assert_int_equal(tni_checkpoint_save(folder, "{\"a\": 1}", params, 2, NULL), TN_OK);
    do {
        tni_checkpoint *c = NULL;

        tni_mem_fail_at(++nth, false, true);
        st = tni_checkpoint_save(folder, "{\"a\": 1}", params, 2, NULL);
        if (!st)
            st = tni_checkpoint_load_latest(t.space, t.cpu, folder, &c);
        tni_mem_fail_at(0, false, false);
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        tni_checkpoint_destroy(c);
        tni_space_live(t.space, &arrays, NULL);
        assert_int_equal(arrays, mine);
    } while (tni_mem_failed() && nth < 400);
    assert_true(nth > 10 && nth < 400);
    (void)latest("{\"a\": 1}", NULL);
    assert_int_equal(files(".tmp"), 0);
}

/* With a folder as argument: the process that is killed while it saves. */
static int save_once(const char *to)
{
    return open_params() || tni_checkpoint_save(to, "{}", params, 2, NULL) ? 3 : 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(round_trip, clear),
        cmocka_unit_test_setup(damage, clear),
        cmocka_unit_test_setup(all_damaged, clear),
        cmocka_unit_test_setup(strangers, clear),
#ifdef TN_FAILPOINTS
        cmocka_unit_test_setup(killed, clear),
#endif
        cmocka_unit_test_setup(failing_allocation, clear),
    };

    if (argc > 1)
        return save_once(argv[1]);
#ifndef TN_FAILPOINTS
    print_message("built without TN_FAILPOINTS: the test of killed processes is left out\n");
#endif
    return cmocka_run_group_tests(tests, open_space, close_space);
}
