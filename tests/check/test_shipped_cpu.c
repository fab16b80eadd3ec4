/*
 * The plugins with kernels for processors: the kit finds nothing. Half of its tests; the other half is in
 * test_shipped_kernels.c.
 */
#include <stdlib.h>

#include "kit.h"

static void cpu(void **state)
{
    (void)state;
    kit_pass(getenv("TENON_TEST_PLUGINS"), "c*.so", 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpu)};

    kit_setup();
    return cmocka_run_group_tests_name("shipped_cpu", tests, NULL, NULL);
}
