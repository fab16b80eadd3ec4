/* The scratch folder lies in TMPDIR or /tmp, is readable by us only, and goes away with the process that made
 * it. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/runs.h"
#include "support/scratch.h"

#define FAILURES_MAX 100000
#define RUNS_MAX 16
#define ROOT_BYTES_MAX 150

static char folder[SCRATCH_PATH_BYTES / 2], quick[sizeof folder];
static pid_t owner;

static int entry_remove(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static int entry_open(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)walk;
    if (type == FTW_D)
        chmod(path, 0700);
    (void)info;
    return 0;
}

static void folder_remove(void)
{
    const char *const all[] = {folder, quick};

    for (int i = 0; i < 2 && owner == getpid(); i++)
        if (all[i][0]) {
            nftw(all[i], entry_open, 16, FTW_PHYS);
            nftw(all[i], entry_remove, 16, FTW_DEPTH | FTW_PHYS);
        }
}

const char *scratch_root(void)
{
    const char *root = getenv("TMPDIR");

    return root && root[0] == '/' && strlen(root) <= ROOT_BYTES_MAX ? root : "/tmp";
}

const char *scratch_quick_root(void)
{
    return access("/dev/shm", W_OK | X_OK) ? scratch_root() : "/dev/shm";
}

const char *scratch_folder(void)
{
    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "%s/tenon-test-XXXXXX", scratch_root());
    assert_non_null(mkdtemp(folder));
    owner = getpid();
    atexit(folder_remove);
    return folder;
}

static const char *path_in(const char *where, const char *name)
{
    static char paths[8][SCRATCH_PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", where, name);
    return path;
}

const char *scratch_path(const char *name)
{
    return path_in(scratch_folder(), name);
}

const char *scratch_quick_path(const char *name)
{
    (void)scratch_folder(); /* it has the removal of both done */
    if (!quick[0]) {
        snprintf(quick, sizeof quick, "%s/tenon-test-XXXXXX", scratch_quick_root());
        assert_non_null(mkdtemp(quick));
    }
    return path_in(quick, name);
}

void scratch_put(const char *path, const void *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

const char *scratch_write(const char *name, const void *bytes, size_t count)
{
    const char *path = scratch_path(name);

    scratch_put(path, bytes, count);
    return path;
}

static bool begins_with_any(const char *text, const char *const *begins)
{
    while (*begins && strncmp(text, *begins, strlen(*begins)) != 0)
        begins++;
    return *begins;
}

void scratch_environment_clear(const char *const *begins)
{
    static const char *const ours[] = {"TENON_TEST_", NULL};
    char name[256];

    for (size_t i = 0; environ[i];) {
        const bool goes = begins_with_any(environ[i], begins) && !begins_with_any(environ[i], ours);

        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (!goes || unsetenv(name)) /* the next one takes its place */
            i++;
    }
}

/* The blocks that a run with the nth allocation failing leaves; `*st` is its status. */
static long long failing_run(uint64_t nth, tn_status (*body)(void *arg), void *arg, tn_status *st)
{
    tni_mem_stats before, after;

    tni_mem_stats_get(&before);
    tni_mem_fail_at(nth, false, true);
    *st = body(arg);
    tni_mem_fail_at(0, false, true);
    tni_mem_stats_get(&after);
    return (long long)(after.live_count - before.live_count);
}

/* Threads of other contexts each take a few blocks for good when they first get to run, at any time; a leak
   comes again in every run. */
uint64_t scratch_each_allocation_fails(tn_status (*body)(void *arg), void *arg)
{
    for (uint64_t nth = 1; nth < FAILURES_MAX; nth = test_failure_next(nth, 30)) {
        tn_status st;
        long long left = failing_run(nth, body, arg, &st);

        for (int again = 0; left && again < RUNS_MAX; again++)
            left = failing_run(nth, body, arg, &st);
        if (left)
            fail_msg("allocation %llu failing leaves %lld blocks", (unsigned long long)nth, left);
        if (!tni_mem_failed()) {
            if (st)
                fail_msg("without a failing allocation: %s", tni_error_message());
            return nth - 1;
        }
        if (st != TN_E_NOMEM)
            fail_msg("allocation %llu fails, but the status is %s: %s", (unsigned long long)nth,
                     tni_status_name(st), tni_error_message());
        assert_string_not_equal(tni_error_message(), "");
    }
    fail_msg("more than %d allocations", FAILURES_MAX);
    return 0;
}
