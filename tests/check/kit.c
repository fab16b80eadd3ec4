#include "kit.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/runs.h"

void kit_setup(void)
{
    const char *path = getenv("TENON_TEST_TOOL");

    if (!path || access(path, X_OK)) {
        printf("skipped: the tool is not built\n");
        exit(77);
    }
}

json_t *kit_run(const char *file, const char *more, int *code)
{
    char line[4096];
    json_t *answer;
    FILE *from;
    int status;

    (void)snprintf(line, sizeof line, "exec '%s' plugins check '%s' --json %s", getenv("TENON_TEST_TOOL"),
                   file, more);
    (void)fflush(stdout);
    from = popen(line, "r");
    assert_non_null(from);
    answer = json_loadf(from, 0, NULL);
    status = pclose(from);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return answer;
}

const json_t *kit_results(const json_t *answer)
{
    return json_object_get(json_array_get(json_object_get(answer, "files"), 0), "results");
}

const char *kit_text(const json_t *result, const char *name)
{
    const char *text = json_string_value(json_object_get(result, name));

    return text ? text : "";
}

size_t kit_print_failures(const json_t *results)
{
    size_t i, count = 0;
    const json_t *r;

    json_array_foreach(results, i, r)
    {
        const char *result = kit_text(r, "result");

        if (strcmp(result, "PASS") == 0 || strcmp(result, "SKIP") == 0)
            continue;
        count++;
        printf("%s %s/%s/%s: %s: %s\n%s\n", result, kit_text(r, "group"), kit_text(r, "test"),
               kit_text(r, "subject"), kit_text(r, "rule"), kit_text(r, "message"), kit_text(r, "output"));
    }
    return count;
}

/* With TENON_TEST_SHORT=1: of the tests of kernels, what a sanitizer could see more in, one with each commit;
 * all of them take minutes there. Kernels of gradients are among those of kernel/values. */
static const char *const some[] = {"load",      "abi",    "options", "memory", "pool",
                                   "transport", "device", "infer",   NULL};
static const char *const some_of_kernels[] = {"kernel/values", "kernel/bounds", "kernel/future-host"};

static json_int_t one_passes(const char *file, const char *part)
{
    json_int_t passed;
    char more[256];
    json_t *answer;
    int code;

    (void)snprintf(more, sizeof more, "%s%s%s", *part ? "--only " : "", part, test_full() ? " --full" : "");
    answer = kit_run(file, more, &code);
    assert_non_null(answer);
    if (kit_print_failures(kit_results(answer)) || (code && json_array_size(kit_results(answer))))
        fail_msg("%s %s: the kit ends with %d", file, more, code);
    passed = json_integer_value(json_object_get(answer, "passed"));
    json_decref(answer);
    return passed;
}

void kit_pass(const char *root, const char *pattern)
{
    const bool all = !test_short() || test_full();
    const size_t count = all ? 1 : sizeof some / sizeof *some;
    const char *kernels = some_of_kernels[test_rotation(sizeof some_of_kernels / sizeof *some_of_kernels)];
    char path[4096];
    glob_t found;

    (void)snprintf(path, sizeof path, "%s/%s", root, pattern);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        json_int_t passed = 0;

        for (size_t k = 0; k < count; k++)
            passed += one_passes(found.gl_pathv[i], all ? "" : some[k] ? some[k] : kernels);
        printf("%s: %d passed%s%s\n", strrchr(found.gl_pathv[i], '/') + 1, (int)passed,
               all ? "" : ", of those of kernels ", all ? "" : kernels);
        assert_true(passed > 8);
    }
    globfree(&found);
}
