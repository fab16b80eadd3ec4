/* The conformance kit on plugin cuda, with the double of the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CLEAN ", 0 failed, 0 crashed, 1 skipped"
#define SKIPPED "SKIP  device/fork/cuda: sanitizers do not follow a fork with threads"
#else
#define CLEAN ", 0 failed, 0 crashed, 0 skipped"
#define SKIPPED ""
#endif

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
        cuda_said(s, CLEAN);
        cuda_said(s, SKIPPED);
    }
}

/* Where managed memory serves as the device's. */
static void managed(void **state)
{
    const said *s =
        cuda_say("TNEMU_SEED=7", "\"$T\" plugins check cuda --only device --set plugin.cuda.memory=managed");

    (void)state;
    assert_int_equal(s->code, 0);
    cuda_said(s, CLEAN);
    cuda_said(s, SKIPPED);
}

/* Values, views and added outputs of a kernel of each family, against those of plugin cpu; TENON_FULL: all
 * tests of all kernels. */
static void kernels(void **state)
{
    static const char *const ops[] = {"FullyConnected",
                                      "_backward_FullyConnected",
                                      "Convolution",
                                      "_backward_Convolution",
                                      "Pooling",
                                      "_backward_Pooling",
                                      "broadcast_add",
                                      "_plus_scalar",
                                      "sqrt",
                                      "clip",
                                      "_backward_tanh",
                                      "Activation",
                                      "sum",
                                      "mean",
                                      "_backward_max",
                                      "softmax",
                                      "_backward_log_softmax",
                                      "pick",
                                      "_backward_pick",
                                      "Reshape",
                                      "sgd_mom_update",
                                      "adam_update",
                                      "multi_sgd_update",
                                      "_move",
                                      "_fill"};
    char command[256];

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const said *s;

        (void)snprintf(command, sizeof command,
                       "\"$T\" plugins check cuda --only kernel/values/%s/plain@cuda", ops[i]);
        if (test_full())
            (void)snprintf(command, sizeof command, "\"$T\" plugins check cuda >/dev/null");
        s = cuda_say("TNEMU_DELAY_US=5", command);
        if (s->code || (!test_full() && !strstr(s->out, "1 passed, 0 failed")))
            fail_msg("%s: %d\n%s", command, s->code, s->out);
        if (test_full())
            break;
    }
}

/* Without a driver the tests of the device and its kernels are skipped, and say why. */
static void absent(void **state)
{
    const said *s =
        cuda_say_without("", "L=$(\"$T\" plugins check cuda); R=$?; echo \"$L\" | grep -m1 libcuda; "
                             "echo \"$L\" | tail -n1; exit $R");

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
        cmocka_unit_test(kernels),
        cmocka_unit_test(absent),
    };

    cuda_setup();
    return cmocka_run_group_tests_name("kit", tests, NULL, NULL);
}
