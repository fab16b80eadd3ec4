/*
 * Every plugin of the tree, the templates, and binaries kept from earlier: the kit finds nothing. TENON_FULL
 * asks for the long form.
 */
#include <stdlib.h>

#include "kit.h"

static void shipped(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_PLUGINS"), "*.so");
}

static void templates(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_BUILD"), "templates/*.so");
}

static void kept(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_SOURCE"), "tests/golden/plugins/*.so");
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
