/* Cases of operators (tests/op) by kernels of plugin cuda, on the double of the driver: some files with each
 * commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"

/* Files of tests/op. A run takes two of the quick ones, which need a few seconds each; TENON_FULL: all of
 * both. */
static const char *const quick[] = {"products",  "statistics", "ctc",      "conv",   "rnn",
                                    "matrix",    "convert",    "elemwise", "insert", "filter",
                                    "optimizer", "choice",     "resize"};
static const char *const slow[] = {"linalg", "pool", "norm", "contrib", "reduce"};

static void file_run(const char *name)
{
    char command[256];
    const said *s;

    (void)snprintf(command, sizeof command, "\"$TENON_TEST_BUILD/tests/op/test_%s\"", name);
    s = cuda_say("TNEMU_DELAY_US=0 TENON_CASE_DEVICE=cuda", command);
    if (s->code)
        fail_msg("%s: it ends with %d\n%s", name, s->code, s->out);
}

static void cases(void **state)
{
    const size_t count = sizeof quick / sizeof *quick, first = (size_t)test_rotation(count);

    (void)state;
    for (size_t i = 0; i < (test_full() ? count : 2); i++)
        file_run(quick[(first + i) % count]);
    for (size_t i = 0; test_full() && i < sizeof slow / sizeof *slow; i++)
        file_run(slow[i]);
}

/* Without the double the files say why they do nothing. */
static void absent(void **state)
{
    const said *s = cuda_say("TENON_CASE_DEVICE=cuda TENON_TEST_DRIVER=/nowhere",
                             "\"$TENON_TEST_BUILD/tests/op/test_ctc\"");

    (void)state;
    assert_int_equal(s->code, 77);
    cuda_said(s, "skipped: no double of the driver");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases), cmocka_unit_test(absent)};
    const char *build = getenv("TENON_TEST_BUILD");

    cuda_setup();
    if (!build || chdir(build)) {
        printf("skipped: TENON_TEST_BUILD names no folder\n");
        return 77;
    }
    return cmocka_run_group_tests_name("cases", tests, NULL, NULL);
}
