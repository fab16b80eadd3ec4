/* Named points: a process that is killed or fails there leaves the old file and says so. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/scratch.h"

enum { WROTE = 10, REFUSED = 11, ODD = 12, STOPPED = 100 };

/* Runs in a child: this process must not read TENON_FAILPOINT, which is read once. */
static int write_in_child(const char *failpoint, const char *text)
{
    const char *path = scratch_path("file");
    int status = 0, stops = 0;
    pid_t pid = fork();

    if (pid == 0) {
        tn_status st;

        setenv("TENON_FAILPOINT", failpoint, 1);
        st = tni_file_write_all(path, text, strlen(text));
        _exit(st == TN_OK                                                 ? WROTE
              : st == TN_E_IO && strstr(tni_error_message(), "failpoint") ? REFUSED
                                                                          : ODD);
    }
    while (assert_int_equal(waitpid(pid, &status, WUNTRACED), pid), WIFSTOPPED(status)) {
        stops++;
        assert_int_equal(kill(pid, SIGCONT), 0);
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status) + stops * STOPPED;
}

static void content_is(const char *expected)
{
    char text[64] = "";
    FILE *f = fopen(scratch_path("file"), "rb");

    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_string_equal(text, expected);
}

static size_t temporaries(void)
{
    DIR *d = opendir(scratch_folder());
    struct dirent *e;
    size_t count = 0;

    while ((e = readdir(d)))
        count += strstr(e->d_name, ".tmp-") != NULL;
    closedir(d);
    return count;
}

static void points(void **state)
{
    (void)state;
    assert_int_equal(write_in_child("", "one"), WROTE);
#if !defined(TN_FAILPOINTS)
    print_message("skipped: this build holds no failpoints\n");
    skip();
#endif
    assert_int_equal(write_in_child("writer_write=error", "two"), REFUSED);
    assert_int_equal(write_in_child("writer_sync=error", "two"), REFUSED);
    assert_int_equal(write_in_child("writer_rename=error", "two"), REFUSED);
    content_is("one");
    assert_int_equal(temporaries(), 0);
    assert_int_equal(write_in_child("writer_sync=kill", "two"), -SIGKILL);
    assert_int_equal(write_in_child("writer_rename=kill", "two"), -SIGKILL);
    content_is("one");
    assert_int_equal(temporaries(), 2);
    assert_int_equal(write_in_child("writer_renamed:1=kill", "three"), -SIGKILL);
    content_is("three");
    assert_int_equal(write_in_child("writer_sync:2=error,other=kill,bad", "four"),
                     WROTE); /* only the second time */
    assert_int_equal(write_in_child("writer_sync=stop", "five"), WROTE + STOPPED);
    content_is("five");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
