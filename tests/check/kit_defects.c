#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "support/runs.h"

#define TESTS_MAX 160
#define STEP_SHORT 6 /* with TENON_TEST_SHORT=1 every sixth, from the first or the fourth in turns */

static const char *plugins; /* prefix of their files */

static void defect_path(const char *name, char *path, size_t bytes)
{
    (void)snprintf(path, bytes, "%s/tests/check/%s%s.so", getenv("TENON_TEST_BUILD"), plugins, name);
    for (char *at = strrchr(path, '/'); *at; at++)
        *at = *at == '_' ? '-' : *at;
}

static void defect_is_found(void **state)
{
    const kit_defect *d = *state;
    bool found = false, sanitized = false;
    char path[4096];
    json_t *answer;
    const json_t *r;
    size_t i;
    int code;

    defect_path(d->file, path, sizeof path);
    answer = kit_run(path, d->more, &code);
    assert_non_null(answer);
    json_array_foreach(kit_results(answer), i, r)
    {
        const char *result = kit_text(r, "result"), *rule = kit_text(r, "rule");

        sanitized |= strcmp(result, "SKIP") == 0 && strstr(kit_text(r, "message"), "sanitizer") &&
                     strcmp(rule, d->rule) == 0;
        if (strcmp(result, "PASS") == 0 || strcmp(result, "SKIP") == 0)
            continue;
        found |= strcmp(rule, d->rule) == 0;
        if (strcmp(rule, d->rule) != 0 && (!d->also || strcmp(rule, d->also) != 0)) {
            (void)kit_print_failures(kit_results(answer));
            fail_msg("%s breaks %s, but %s was said to fail, too", d->file, d->rule, rule);
        }
    }
    if (!found && sanitized && !code) {
        json_decref(answer);
        print_message("skipped: %s: a build with a sanitizer cannot tell\n", d->file);
        skip();
    }
    assert_int_equal(code, 1);
    if (!found) {
        (void)kit_print_failures(kit_results(answer));
        fail_msg("%s breaks %s, and the kit did not say so", d->file, d->rule);
    }
    json_decref(answer);
}

/* What a defect is planted in passes as it is. */
static void healthy_passes(void **state)
{
    char name[64], path[4096];
    json_t *answer;
    int code;

    (void)snprintf(name, sizeof name, "%s-healthy", (const char *)*state);
    defect_path(name, path, sizeof path);
    answer = kit_run(path, "", &code);
    assert_non_null(answer);
    if (code || kit_print_failures(kit_results(answer)))
        fail_msg("the kit says that %s is not: it ends with %d", name, code);
    json_decref(answer);
}

int kit_defects(const char *group, const char *prefix, const kit_defect *rows, size_t count,
                const char *const *healthy)
{
    const size_t step = test_short() && !test_full() ? STEP_SHORT : 1;
    static struct CMUnitTest tests[TESTS_MAX];
    size_t used = 0;

    kit_setup();
    plugins = prefix;
    for (; *healthy && used < TESTS_MAX; healthy++)
        tests[used++] = (struct CMUnitTest){
            .name = *healthy, .test_func = healthy_passes, .initial_state = (void *)(uintptr_t)*healthy};
    for (size_t i = step > 1 ? 3 * (size_t)test_rotation(2) : 0; i < count && used < TESTS_MAX; i += step)
        tests[used++] = (struct CMUnitTest){
            .name = rows[i].file, .test_func = defect_is_found, .initial_state = (void *)(uintptr_t)&rows[i]};
    if (used == TESTS_MAX)
        return 1; /* some were left out, perhaps */
    return _cmocka_run_group_tests(group, tests, used, NULL, NULL);
}
