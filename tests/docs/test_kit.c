/*
 * docs/kit.md lists every test of the conformance kit with its rule, as sdk/check/tests.list has it, and the
 * rules that are no test's own (rules.list). What the sources can name is there, and nothing else.
 * TENON_UPDATE=1 writes the page (scripts/tools/manual does that); otherwise a difference fails.
 */
#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "docs/page.h"

#define CHK_TEST(group, name, rule, what, limit, subjects, run) {group, name, rule, what},
#define CHK_BARE(group, name, rule, what, limit, subjects, run) {group, name, rule, what},
#define CHK_TWIN CHK_BARE
#define CHK_MANY CHK_BARE
static const struct {
    const char *group, *name, *rule, *what;
} tests_of_kit[] = {
#include "../../sdk/check/tests.list"
};
#undef CHK_TEST
#undef CHK_BARE
#undef CHK_TWIN
#undef CHK_MANY

#define CHK_RULE(name, what) {name, what},
static const struct {
    const char *name, *what;
} rules_of_kit[] = {
#include "../../sdk/check/rules.list"
};
#undef CHK_RULE

#define TESTS (sizeof tests_of_kit / sizeof *tests_of_kit)
#define RULES (sizeof rules_of_kit / sizeof *rules_of_kit)

static void kit_page(void **state)
{
    const char *group = "";
    tni_str s;

    (void)state;
    tni_str_init(&s, PAGE_BYTES_MAX);
    must(tni_str_add(
        &s,
        "# The conformance kit\n\n"
        "What `tenon plugins check` tries on a plugin. Written by `scripts/tools/manual` from "
        "`sdk/check/tests.list` and `rules.list`; a test\ncompares it. A failure names the rule: that of the "
        "test, or another one that it came across ([below](#other-rules)). R1 to R10\nstand in "
        "[plugins.md](plugins.md#rules). Tests of kernels, operators, devices and pools run once for each "
        "of these, those of\nkernels for the host and for a device that the same plugin brings.\n"));
    for (size_t i = 0; i < TESTS; i++) {
        if (strcmp(group, tests_of_kit[i].group))
            must(tni_str_addf(&s, "\n## %s\n\n| test | rule | what it proves |\n| --- | --- | --- |\n",
                              tests_of_kit[i].group));
        group = tests_of_kit[i].group;
        must(tni_str_addf(&s, "| `%s/%s` | %s | %s |\n", group, tests_of_kit[i].name, tests_of_kit[i].rule,
                          tests_of_kit[i].what));
    }
    must(tni_str_add(&s,
                     "\n## Other rules\n\nAny test may find one of these broken.\n\n| rule | what it asks |\n"
                     "| --- | --- |\n"));
    for (size_t i = 0; i < RULES; i++)
        must(tni_str_addf(&s, "| %s | %s |\n", rules_of_kit[i].name, rules_of_kit[i].what));
    page_compare("docs/kit.md", &s);
    tni_str_fini(&s);
}

/* ---- names in the sources ---------------------------------------------------------------------------- */

/* Length of the rule's name at `text`, as a literal of C: "R7", "K-values", "kit"; 0: it is none. */
static size_t rule_at(const char *text)
{
    size_t n = 2;

    if (strncmp(text, "\"kit\"", 5) == 0)
        return 3;
    if (*text != '"' || !isupper((unsigned char)text[1]))
        return 0;
    if (text[1] == 'R' && isdigit((unsigned char)text[2]))
        while (isdigit((unsigned char)text[n]))
            n++;
    else if (text[2] == '-' && islower((unsigned char)text[3]))
        while (islower((unsigned char)text[n]) || text[n] == '-')
            n++;
    return n > 2 && text[n] == '"' ? n - 1 : 0;
}

static bool is_listed(const char *name, size_t length, bool *seen)
{
    bool listed = false;

    for (size_t i = 0; i < TESTS; i++)
        listed |= strlen(tests_of_kit[i].rule) == length && !memcmp(tests_of_kit[i].rule, name, length);
    for (size_t i = 0; i < RULES; i++)
        if (strlen(rules_of_kit[i].name) == length && !memcmp(rules_of_kit[i].name, name, length))
            listed = seen[i] = true;
    return listed;
}

/* Every name in the file is on the page. */
static size_t file_names(const char *path, bool *seen)
{
    size_t bytes, names = 0;
    char *text = calloc(1, PAGE_BYTES_MAX);
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_non_null(text);
    bytes = fread(text, 1, PAGE_BYTES_MAX - 1, f);
    assert_true(bytes > 0 && bytes < PAGE_BYTES_MAX - 1);
    for (const char *at = text; (at = strchr(at, '"')); at++) {
        const size_t length = rule_at(at);

        names += length > 0;
        if (length && !is_listed(at + 1, length, seen))
            fail_msg("%s names the rule %.*s, which sdk/check/rules.list lacks", path, (int)length, at + 1);
    }
    (void)fclose(f);
    free(text);
    return names;
}

static void names_are_listed(void **state)
{
    bool seen[RULES] = {false};
    const char *root = getenv("TENON_TEST_SOURCE");
    char pattern[4096];
    size_t names = 0;
    glob_t found;

    (void)state;
    (void)snprintf(pattern, sizeof pattern, "%s/sdk/check/*.[ch]", root ? root : ".");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        names += file_names(found.gl_pathv[i], seen);
    globfree(&found);
    assert_true(names > 50);
    for (size_t i = 0; i < RULES; i++) {
        if (!seen[i])
            fail_msg("nothing in sdk/check names the rule %s of rules.list", rules_of_kit[i].name);
        for (size_t k = 0; k < TESTS; k++)
            if (strcmp(rules_of_kit[i].name, tests_of_kit[k].rule) == 0)
                fail_msg("rules.list repeats the rule %s of %s/%s", tests_of_kit[k].rule,
                         tests_of_kit[k].group, tests_of_kit[k].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kit_page), cmocka_unit_test(names_are_listed)};

    return cmocka_run_group_tests_name("docs.kit", tests, NULL, NULL);
}
