/*
 * SyncBatchNorm on CUDA: of one device it is BatchNorm, with its gradient; statistics of several are refused,
 * never those of one in their place. The program is its own child, which has the double of the driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/must.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

#define INPUTS 5
#define CHANNELS 3
#define COUNT (4 * CHANNELS * 2)

/* ---- in the child -------------------------------------------------------------------------------------- */

static void inputs_make(tn_ctx *ctx, tn_array **in)
{
    static const int64_t shape[] = {4, CHANNELS, 2}, channels[] = {CHANNELS};
    float values[COUNT];

    for (int i = 0; i < INPUTS; i++) {
        for (int k = 0; k < COUNT; k++)
            values[k] = (float)((k * 7 + i) % 11) * 0.25f + 0.5f;
        MUST(tn_array_from(ctx, TN_F32, i ? 1 : 3, i ? channels : shape, values, &in[i]));
        if (i < 3)
            MUST(tn_attach_grad(ctx, in[i], TN_MODE_WRITE, NULL));
    }
}

static tn_status invoke(tn_ctx *ctx, const char *op, const char *const *attrs, bool train, tn_array **in,
                        tn_array **y)
{
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = INPUTS, .op = op, .attrs = attrs, .in = in};
    tn_status st;

    tn_record_set(train);
    tn_train_set(train);
    st = tn_invoke_text(ctx, &call, 1, y, NULL);
    tn_record_set(0);
    tn_train_set(0);
    return st;
}

/* y, moving statistics, gradients. */
static size_t trained(tn_ctx *ctx, const char *op, const char *const *attrs, float *out)
{
    tn_array *in[INPUTS], *y = NULL;
    size_t at = 0;

    inputs_make(ctx, in);
    MUST(invoke(ctx, op, attrs, true, in, &y));
    MUST(tn_backward(ctx, 1, &y, &in[0], 0)); /* the data as what arrives: no sum over it is 0 */
    for (int i = 0; i < INPUTS + 1; i++) {
        tn_array *a = i == INPUTS ? y : i < 3 ? tn_array_grad(in[i]) : in[i];

        MUST(tn_array_read(a, out + at, tn_array_count(a) * sizeof *out));
        at += tn_array_count(a);
    }
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(in[i]);
    tn_array_release(y);
    return at;
}

static void operators(tn_ctx *ctx)
{
    static const char *const one[] = {"key", "k", "fix_gamma", "False", "eps", "0.01", NULL}, *const two[] = {
                                                                                                  "key", "k",
                                                                                                  "ndev", "2",
                                                                                                  NULL};
    float sync[3 * COUNT], plain[3 * COUNT];
    const size_t count = trained(ctx, "_contrib_SyncBatchNorm", one, sync);
    tn_array *in[INPUTS], *y = NULL;
    tn_status st;

    (void)trained(ctx, "BatchNorm", one + 2, plain);
    printf("ndev=1 is BatchNorm: %s\n", memcmp(sync, plain, count * sizeof *sync) ? "no" : "yes");
    inputs_make(ctx, in);
    st = invoke(ctx, "_contrib_SyncBatchNorm", two, true, in, &y);
    printf("ndev=2 in training: %s: %s\n", tn_status_name(st), tn_error_text());
    MUST(invoke(ctx, "_contrib_SyncBatchNorm", two, false, in, &y));
    MUST(tn_array_wait(y));
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(in[i]);
    tn_array_release(y);
}

static int child(void)
{
    char plugins[4200];
    const char *const settings[] = {plugins, "device.default=cuda:0", NULL},
                      *const several[] = {plugins, "device.default=cuda:0,cuda:1", NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    tn_ctx *ctx = NULL;
    tn_app *app;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    MUST(tn_open(&o, &ctx));
    operators(ctx);
    MUST(tn_close(ctx));
    app = tn_app_open(.name = "sync", .settings = several, .errors = stdout);
    tn_net_syncbatchnorm(tn_net_new(app));
    printf("the app ends with %d\n", tn_app_close(app));
    return 0;
}

/* -------------------------------------------------------------------------------------------------------- */

static char self[4096];

static void one_device(void **state)
{
    char command[sizeof self + 16];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command, "\"%s\" child", self);
    s = cuda_say("TNEMU_DELAY_US=0 TNEMU_DEVICES=2", command);
    if (s->code)
        fail_msg("%s ends with %d\n%s", command, s->code, s->out);
    cuda_said(s, "ndev=1 is BatchNorm: yes");
    cuda_said(s, "ndev=2 in training: TN_E_UNSUPPORTED: ");
    cuda_said(s, "CUDA has statistics of one device only (ndev=1)");
    cuda_said(s,
              "its 2 devices need each other's numbers, and only host devices (cpu) have a kernel for that");
    cuda_said(s, "the app ends with 1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_device)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 1)
        return child();
    cuda_setup();
    return cmocka_run_group_tests_name("sync", tests, NULL, NULL);
}
