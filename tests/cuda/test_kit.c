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

#define PARTS 4        /* commits until each kernel of the list was looked at */
#define PARTS_SHORT 12 /* the same where TENON_TEST_SHORT=1 */

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
                                  "_reorder",
                                  "_fill",
                                  "_fused_pointwise",
                                  "_fold_weight",
                                  "_fold_bias",
                                  "transpose",
                                  "slice",
                                  "_backward_slice",
                                  "Concat",
                                  "SliceChannel",
                                  "tile",
                                  "_backward_repeat",
                                  "reverse",
                                  "_np_roll",
                                  "_npi_tril",
                                  "diag",
                                  "shape_array",
                                  "Cast",
                                  "UpSampling",
                                  "amp_multicast",
                                  "add_n",
                                  "where",
                                  "_npi_where",
                                  "_npi_around",
                                  "_npi_bitwise_and",
                                  "_arange",
                                  "_eye",
                                  "_npi_indices",
                                  "LeakyReLU",
                                  "_backward_LinearRegressionOutput",
                                  "norm",
                                  "argmax",
                                  "_np_trace",
                                  "dot",
                                  "_backward_batch_dot",
                                  "take",
                                  "Embedding",
                                  "_backward_Embedding",
                                  "gather_nd",
                                  "scatter_nd",
                                  "one_hot",
                                  "BatchNorm",
                                  "_backward_BatchNorm",
                                  "_contrib_SyncBatchNorm",
                                  "_backward__contrib_SyncBatchNorm",
                                  "LayerNorm",
                                  "_backward_GroupNorm",
                                  "LRN",
                                  "Dropout",
                                  "_random_normal_like",
                                  "_sample_gamma",
                                  "_random_randint",
                                  "_backward_SoftmaxOutput",
                                  "softmax_cross_entropy",
                                  "topk",
                                  "_backward_sort",
                                  "SequenceReverse",
                                  "_backward_npi_pad",
                                  "_multi_mp_adamw_update",
                                  "multi_all_finite",
                                  "_np_cumsum",
                                  "_npi_matmul",
                                  "_backward__npi_tensordot",
                                  "_npi_einsum",
                                  "_linalg_gemm",
                                  "_contrib_interleaved_matmul_selfatt_qk",
                                  "_backward__contrib_interleaved_matmul_encdec_valatt",
                                  "Deconvolution",
                                  "_backward_im2col",
                                  "moments",
                                  "_npi_average",
                                  "_linalg_potri",
                                  "_linalg_maketrian",
                                  "_npi_svd",
                                  "_backward__npi_solve",
                                  "_npi_norm",
                                  "CTCLoss",
                                  "RNN",
                                  "_backward_RNN",
                                  "_backward__contrib_BilinearResize2D",
                                  "SpatialTransformer",
                                  "_backward_BilinearSampler",
                                  "_backward__contrib_ROIAlign",
                                  "_backward_Correlation",
                                  "_contrib_MultiBoxTarget",
                                  "_contrib_MultiBoxDetection",
                                  "_contrib_box_nms",
                                  "_backward__contrib_box_nms",
                                  "_contrib_Proposal",
                                  "_image_resize",
                                  "_image_random_color_jitter",
                                  "_backward__random_pdf_gamma",
                                  "_contrib_fft",
                                  "_multi_mp_lamb_update",
                                  "_sample_multinomial",
                                  "_npi_choice",
                                  "_npi_insert_tensor",
                                  "_npi_delete",
                                  "_npi_boolean_mask_assign_tensor",
                                  "_npi_percentile",
                                  "_contrib_DeformableConvolution",
                                  "_backward__contrib_ModulatedDeformableConvolution",
                                  "_npi_diff",
                                  "_histogram"};

/* Kernels of each family against those of plugin cpu, a part of them with each commit; TENON_FULL: all tests
 * of all kernels. */
static void kernels(void **state)
{
    const size_t count = sizeof ops / sizeof *ops, parts = test_short() ? PARTS_SHORT : PARTS;
    char command[256];

    (void)state;
    if (test_full()) {
        const said *s = cuda_say("TNEMU_DELAY_US=5", "\"$T\" plugins check cuda");

        if (s->code)
            fail_msg("the kit ends with %d\n%s", s->code, s->out);
        return;
    }
    for (size_t i = (size_t)test_rotation(parts); i < count; i += parts) {
        const said *s;

        print_message("%s, of part %d of %zu\n", ops[i], (int)test_rotation(parts), parts);
        (void)snprintf(command, sizeof command,
                       "\"$T\" plugins check cuda --only kernel/values/%s/plain@cuda", ops[i]);
        s = cuda_say("TNEMU_DELAY_US=0", command);
        if (s->code || !strstr(s->out, "1 passed, 0 failed"))
            fail_msg("%s: %d\n%s", command, s->code, s->out);
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
