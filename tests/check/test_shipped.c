/*
 * Every plugin of the tree but the large ones, the templates, and binaries kept from earlier: the kit finds
 * nothing. TENON_FULL asks for the long form.
 */
#include <stdlib.h>

#include "kit.h"

static void shipped(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_PLUGINS"), "[!c]*.so", 0, 1);
}

static void templates(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_BUILD"), "templates/*.so", 0, 1);
}

static void kept(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_SOURCE"), "tests/golden/plugins/*.so", 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped),
        cmocka_unit_test(templates),
        cmocka_unit_test(kept),
    };

    kit_setup();
    return cmocka_run_group_tests_name("shipped", tests, NULL, NULL);
}
