/* Machines where something is missing: each command says what; those that need it end with 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"

#define TRAIN "\"$T\" train zoo:lenet --data digits --epochs 1 --set device.default="

static void driver(void **state)
{
    static const char *const names[] = {"cuda:0", "gpu:0", "'gpu(0)'", "gpu"};
    const said *s;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[256];

        (void)snprintf(command, sizeof command, TRAIN "%s", names[i]);
        s = cuda_say_without("", command);
        assert_int_equal(s->code, 3);
        cuda_said(s, "there is no NVIDIA driver: libcuda.so.1 was not found; install");
    }
    s = cuda_say_without("", "\"$T\" doctor --set device.default=cuda:0");
    assert_int_equal(s->code, 1); /* a problem is found */
    cuda_said(s, "device.default: cuda: there is no NVIDIA driver");
    s = cuda_say_without("", "\"$T\" plugins list");
    assert_int_equal(s->code, 0);
    cuda_said(s, "no device: cuda: there is no NVIDIA driver: libcuda.so.1 was not found; install");
    s = cuda_say_without("", "\"$T\" plugins why FullyConnected --set device.default=cuda:0");
    assert_int_equal(s->code, 3);
    cuda_said(s, "there is no NVIDIA driver");
}

/* A process that uses no GPU opens nothing of NVIDIA's, though all is there; another one opens the driver. */
static void nothing_of_it(void **state)
{
    static const char *const command = TRAIN "%s --progress none --out $D/run 2>&1 | "
                                             "grep -c 'file=lib\\(cuda\\|cublas\\|cudnn\\|nccl\\|nvrtc\\)'";
    char line[512];

    (void)state;
    for (int gpu = 0; gpu < 2; gpu++) {
        const said *s;

        (void)snprintf(line, sizeof line, "D=$(mktemp -d); trap 'rm -r $D' EXIT; LD_DEBUG=files ");
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), command, gpu ? "cuda:0" : "cpu");
        s = cuda_say("TNEMU_DELAY_US=0", line);
        if (gpu != (strtoul(s->out, NULL, 10) > 0))
            fail_msg("on %s the loader is asked for this many: %s", gpu ? "cuda:0" : "cpu", s->out);
    }
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

/* A library that is not there, or not whole: the log and the kit say so, whichever it is. L: its folder. */
static void libraries(void **state)
{
    static const char none[] = "L=none", other[] = "L=$D";
    static const struct {
        const char *kernel, *file, *folder, *says;
    } rows[] = {
        {"dot/cublaslt", "", none,
         "products of matrices run on plain kernels: cuBLASLt cannot be opened (plugin.cuda.libraries is "
         "none); install cuBLAS of CUDA 12 or 13, or name its folder in plugin.cuda.libraries\n"},
        {"dot/cublaslt", "", other, "/libcublasLt.so.13: cannot open shared object file: No such file"},
        {"dot/cublaslt", "", "L=/gone", "plugin.cuda.libraries: /gone: No such file or directory"},
        {"dot/cublaslt", "libcublasLt.so.13", other,
         "libcublasLt.so.13 has no cublasLtGetVersion; install cuBLAS of CUDA 12 or 13, or name its folder "
         "in "
         "plugin.cuda.libraries\n"},
        {"Convolution/cudnn", "", none,
         "cuDNN is not used, convolutions are our own: plugin.cuda.libraries is none\n"},
        {"Convolution/cudnn", "libcudnn.so.9", other,
         "cuDNN is not used, convolutions are our own: libcudnn.so.9 has no cudnnGetVersion; install cuDNN "
         "9\n"},
        {"_fused_pointwise/nvrtc", "", none,
         "chains of pointwise operators are interpreted: libnvrtc.so.13 and libnvrtc.so.12 were not found; "
         "install NVRTC of CUDA 12 or 13, or name its folder: plugin.cuda.libraries\n"},
        {"_fused_pointwise/nvrtc", "libnvrtc.so.13", other,
         "chains of pointwise operators are interpreted: libnvrtc.so.13 has no nvrtcGetErrorString; install "
         "NVRTC of CUDA 12 or 13\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[1024];
        const said *s;

        (void)snprintf(command, sizeof command,
                       "D=$(mktemp -d); trap 'rm -r $D' EXIT; F=\"%s\"; "
                       "[ -z \"$F\" ] || { echo 'int nothing;' >$D/a.c; "
                       "${CC:-cc} -shared -fPIC -o $D/$F $D/a.c; }; %s; "
                       "\"$T\" plugins check cuda --reproduce kernel/values/%s@cuda "
                       "--set plugin.cuda.libraries=\"$L\"",
                       rows[i].file, rows[i].folder, rows[i].kernel);
        s = cuda_say("", command);
        assert_int_equal(s->code, 0);
        cuda_said(s, rows[i].says);
        cuda_said(s, "0 failed, 0 crashed, 1 skipped");
    }
}

/* The script for GPUs: without one it says so, and on the emulator stages pass, are skipped, fail. */
static void script(void **state)
{
    static const char *const without = "bash -c 'nvidia-smi() { :; }; export -f nvidia-smi; "
                                       "\"$TENON_TEST_SOURCE/scripts/gpu\" --stage memory'";
    static const char *const with =
        "bash -c 'nvidia-smi() { case \"$*\" in *memory.total*) echo 16384 ;; *) echo emulated ;; esac; }; "
        "export -f nvidia-smi; \"$TENON_TEST_SOURCE/scripts/gpu\" --prebuilt \"$TENON_TEST_BUILD\" %s'";
    static const struct {
        const char *options, *says[3];
        int code;
    } rows[] = {
        {"--stage memory",
         {"cuda:0 has no 32.0 GiB", "memory    passed", "1 passed, 0 failed, 0 skipped"},
         0},
        {"--stage build --stage nets", {"build     skipped", "nets      skipped", "0 failed, 2 skipped"}, 0},
        {"--stage memory --limit memory=0.01",
         {"memory    FAILED", "cut at its limit of 0.01 s", "1 failed"},
         1},
        {"--stage mempry", {"there is no stage mempry", "usage:", "sanitizer"}, 2},
        {"--stage", {"--stage needs a word behind it", "usage:", "sanitizer"}, 2},
    };
    const said *s = cuda_say_without("", without);
    char command[1024];

    (void)state;
    assert_int_equal(s->code, 77);
    cuda_said(s, "skipped: no GPU here: nvidia-smi lists none");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(command, sizeof command, with, rows[i].options); /* NOLINT: one of the two above */
        s = cuda_say("TNEMU_DELAY_US=0", command);
        for (size_t k = 0; k < 3; k++)
            cuda_said(s, rows[i].says[k]);
        assert_int_equal(s->code, rows[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(script),        cmocka_unit_test(driver),    cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(no_such_index), cmocka_unit_test(libraries), cmocka_unit_test(nothing_of_it),
    };

    cuda_setup();
    return cmocka_run_group_tests_name("absent", tests, NULL, NULL);
}
