/* Machines where something is missing: each command says what, and ends with 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda.h"

#define TRAIN "\"$T\" train zoo:lenet --data digits --epochs 1 --set device.default="

static void driver(void **state)
{
    static const char *const names[] = {"cuda:0", "gpu:0", "'gpu(0)'"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[256];
        const said *s;

        (void)snprintf(command, sizeof command, TRAIN "%s", names[i]);
        s = cuda_say_without("", command);
        assert_int_equal(s->code, 3);
        cuda_said(s, "there is no NVIDIA driver: libcuda.so.1 was not found; install");
    }
    cuda_said(cuda_say_without("", "\"$T\" doctor --set device.default=cuda:0"),
              "device.default: cuda: there is no NVIDIA driver");
    assert_int_equal(cuda_say_without("", "\"$T\" plugins list")->code, 0);
}

static void what_is_wrong(void **state)
{
    static const struct {
        const char *settings, *says;
        int code;
    } rows[] = {
        {"TNEMU_VERSION=11080", "the driver is for CUDA 11.8; install one for CUDA 12.0 or later", 3},
        {"TNEMU_DEVICES=0", "the NVIDIA driver finds no GPU", 3},
        {"TNEMU_FAULT=cuInit:1:999", "the driver does not start: cuInit gives", 3},
        {"TNEMU_FAULT=cuInit:1:34", "is the toolkit's stub, not a driver", 3},
        {"TNEMU_FAULT=cuDeviceGetCount:1:1", "cuDeviceGetCount gives CUDA_ERROR_INVALID_VALUE (1)", 70},
        {"TNEMU_FAULT=cuDevicePrimaryCtxRetain:1:2",
         "cuDevicePrimaryCtxRetain gives CUDA_ERROR_OUT_OF_MEMORY (2)", 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const said *s = cuda_say(rows[i].settings, TRAIN "cuda:0");

        cuda_said(s, rows[i].says);
        assert_int_equal(s->code, rows[i].code);
    }
}

static void no_such_index(void **state)
{
    const said *s = cuda_say("TNEMU_DEVICES=1", TRAIN "cuda:1");

    (void)state;
    assert_int_equal(s->code, 3);
    cuda_said(s, "device cuda:1, but there is 1 of this type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver),
        cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(no_such_index),
    };

    cuda_setup();
    return cmocka_run_group_tests_name("absent", tests, NULL, NULL);
}
