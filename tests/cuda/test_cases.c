/* Cases of operators (tests/op) by kernels of plugin cuda, on the double of the driver, beside what they say
 * comes or what the host's kernels make. */
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

/* Files of tests/op; each needs less than a second or two of a processor, `linalg` seven. A run takes all but
 * that one; a build that looks at memory or threads takes some with each commit. TENON_FULL: all. */
static const char *const files[] = {
    "activation", "body",     "choice",     "contrib",    "conv",     "convert", "ctc",
    "detection",  "elemwise", "filter",     "fused",      "image",    "index",   "init",
    "insert",     "join",     "matrix",     "move",       "norm",     "numpy",   "numpy_random",
    "optimizer",  "order",    "pdf",        "pool",       "products", "random",  "rearrange",
    "reduce",     "region",   "regression", "resize",     "rnn",      "sampler", "scan",
    "select",     "sequence", "shape",      "statistics", "unary",    "linalg",
};
#define FILES (sizeof files / sizeof *files)
#define FEW 6 /* of a commit */

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
    const size_t count = test_full() ? FILES : FILES - 1, taken = test_short() && !test_full() ? FEW : count;
    const size_t first = taken < count ? (size_t)test_rotation((count + FEW - 1) / FEW) * FEW : 0;

    (void)state;
    for (size_t i = 0; i < taken; i++)
        file_run(files[(first + i) % count]);
    (void)printf("count %zu\n", taken);
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
