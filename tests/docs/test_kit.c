/*
 * docs/kit.md lists every test of the conformance kit with its rule, as sdk/check/tests.list has it.
 * TENON_UPDATE=1 writes the page (scripts/tools/manual does that); otherwise a difference fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "docs/page.h"

#define CHK_TEST(group, name, rule, what, limit, subjects, run) {group, name, rule, what},
#define CHK_BARE(group, name, rule, what, limit, subjects, run) {group, name, rule, what},
static const struct {
    const char *group, *name, *rule, *what;
} tests_of_kit[] = {
#include "../../sdk/check/tests.list"
};
#undef CHK_TEST
#undef CHK_BARE

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
        "`sdk/check/tests.list`; a test compares it.\nA failure names the rule; R1 to R10 stand in "
        "[plugins.md](plugins.md#rules). Tests of kernels, operators,\ndevices and pools run once for each "
        "of these.\n"));
    for (size_t i = 0; i < sizeof tests_of_kit / sizeof *tests_of_kit; i++) {
        if (strcmp(group, tests_of_kit[i].group))
            must(tni_str_addf(&s, "\n## %s\n\n| test | rule | what it proves |\n| --- | --- | --- |\n",
                              tests_of_kit[i].group));
        group = tests_of_kit[i].group;
        must(tni_str_addf(&s, "| `%s/%s` | %s | %s |\n", group, tests_of_kit[i].name, tests_of_kit[i].rule,
                          tests_of_kit[i].what));
    }
    page_compare("docs/kit.md", &s);
    tni_str_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kit_page)};

    return cmocka_run_group_tests_name("docs.kit", tests, NULL, NULL);
}
