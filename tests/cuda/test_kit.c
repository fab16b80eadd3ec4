/* The conformance kit on plugin cuda, with the double of the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"

static void device(void **state)
{
    const uint64_t runs = test_runs(3);

    (void)state;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        char settings[64];
        const said *s;

        (void)snprintf(settings, sizeof settings, "TNEMU_SEED=%u", (unsigned)seed);
        s = cuda_say(settings, "\"$T\" plugins check cuda --only device");
        if (s->code)
            fail_msg("%s: the kit ends with %d\n%s", settings, s->code, s->out);
        cuda_said(s, ", 0 failed, 0 crashed, 0 skipped");
    }
}

/* Where managed memory serves as the device's. */
static void managed(void **state)
{
    const said *s =
        cuda_say("TNEMU_SEED=7", "\"$T\" plugins check cuda --only device --set plugin.cuda.memory=managed");

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, ", 0 failed, 0 crashed, 0 skipped");
}

/* Without a driver the tests of the device are skipped, and say why. */
static void absent(void **state)
{
    const said *s = cuda_say_without("", "\"$T\" plugins check cuda");

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, "libcuda.so.1 was not found");
    cuda_said(s, ", 0 failed, 0 crashed, ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device),
        cmocka_unit_test(managed),
        cmocka_unit_test(absent),
    };

    cuda_setup();
    return cmocka_run_group_tests_name("kit", tests, NULL, NULL);
}
