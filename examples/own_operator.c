/*
 * An operator of one's own inside the program: own_swish(data, beta) = data * sigmoid(beta * data), with its
 * gradient and a kernel for the host, in a net that learns sin(x). Its definition comes by tn_op_register,
 * its kernels by tn_plugin_add; a plugin file would hold the same tables.
 *
 * Build it alone: gcc own_operator.c $(pkg-config --cflags --libs tenon) -lm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tenon/plugin/attr.h>
#include <tenon/plugin/util.h>
#include <tenon/tenon.h>

/* ---- what it means ------------------------------------------------------------------------------------- */

#define BETA 0

static const tn_attr_def attrs[] = {
    TN_ATTR_FLOAT("beta", "1.0", "steepness of the sigmoid"),
    TN_ATTR_END,
};

/* `gradients` makes _backward_own_swish, which reads dy and data and gives the gradient of data. */
static const tn_op swish = {.struct_size = (uint32_t)sizeof(tn_op),
                            .version = 1,
                            .name = "own_swish",
                            .doc = "data * sigmoid(beta * data).",
                            .attrs = attrs,
                            .flags = TN_OP_POINTWISE,
                            .types = "T:float",
                            .shapes = "data:(S..) -> output:data",
                            .gradients = "once: dy data -> data"};

/* ---- how it is computed -------------------------------------------------------------------------------- */

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double beta = tn_attrs_float(x->attrs, BETA);
    double in[TN_TILE]; /* some elements, in double whatever the tensors hold */

    (void)plan, (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, in)) > 0; at += n) {
        for (int64_t i = 0; i < n; i++)
            in[i] /= 1 + exp(-beta * in[i]);
        tn_tile_store(x, 0, at, n, in);
    }
    return TN_OK;
}

static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double beta = tn_attrs_float(x->attrs, BETA);
    double dy[TN_TILE], in[TN_TILE];

    (void)plan, (void)err;
    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, dy)) > 0; at += n) {
        tn_tile_load(x, 1, at, in);
        for (int64_t i = 0; i < n; i++) {
            const double s = 1 / (1 + exp(-beta * in[i]));

            dy[i] *= s + beta * in[i] * s * (1 - s);
        }
        tn_tile_store(x, 0, at, n, dy);
    }
    return TN_OK;
}

static const char *const types[] = {"*:f16,bf16,f32,f64", NULL};
static const tn_kernel forward = TN_KERNEL("own_swish", "cpu", types, tn_prepare_pointwise, run);
static const tn_kernel backward =
    TN_KERNEL("_backward_own_swish", "cpu", types, tn_prepare_pointwise, run_backward);
static const tn_kernel_table table = TN_KERNELS("cpu", &forward, &backward);
static const tn_capability *const capabilities[] = {&table.head, NULL};
static const tn_plugin plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                 .magic = TN_MAGIC,
                                 .abi_major = TN_ABI_MAJOR,
                                 .abi_minor = TN_ABI_TARGET,
                                 .abi_minor_min = TN_ABI_MIN,
                                 .name = "own",
                                 .version = "1.0.0",
                                 .vendor = "you",
                                 .license = "Apache-2.0",
                                 .summary = "kernels of this program",
                                 .capabilities = capabilities};

/* ---- a net that uses it -------------------------------------------------------------------------------- */

#define SAMPLES 64
#define UNITS 16
#define WEIGHTS 4

static tn_ctx *ctx;

static void must(tn_status st)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s\n", tn_status_name(st), tn_error_text());
    exit(1);
}

static tn_array *call(const char *op, const char *const *with, uint32_t count, tn_array *const *in)
{
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .op = op, .attrs = with, .in_count = count, .in = in};
    tn_array *out = NULL;

    must(tn_invoke_text(ctx, &c, 1, &out, NULL));
    return out;
}

static tn_array *array(int64_t rows, int64_t columns, const float *values)
{
    tn_array *a = NULL;

    must(tn_array_from(ctx, TN_F32, columns ? 2 : 1, (const int64_t[]){rows, columns}, values, &a));
    return a;
}

/* One step of gradient descent; the mean loss before it. */
static double step(tn_array *x, tn_array *y, tn_array **w)
{
    static const char *const hidden[] = {"num_hidden", "16", NULL}, *const one[] = {"num_hidden", "1", NULL};
    static const char *const beta[] = {"beta", "1.5", NULL}, *const lr[] = {"lr", "0.05", NULL};
    tn_array *made[6];
    double loss;

    (void)tn_record_set(1);
    made[0] = call("FullyConnected", hidden, 3, (tn_array *[]){x, w[0], w[1]});
    made[1] = call("own_swish", beta, 1, &made[0]);
    made[2] = call("FullyConnected", one, 3, (tn_array *[]){made[1], w[2], w[3]});
    made[3] = call("elemwise_sub", NULL, 2, (tn_array *[]){made[2], y});
    made[4] = call("square", NULL, 1, &made[3]);
    made[5] = call("mean", NULL, 1, &made[4]);
    (void)tn_record_set(0);
    must(tn_backward(ctx, 1, &made[5], NULL, 0));
    for (int i = 0; i < WEIGHTS; i++) {
        const tn_op_call update = {.struct_size = TN_SIZE(tn_op_call),
                                   .op = "sgd_update",
                                   .attrs = lr,
                                   .in_count = 2,
                                   .in = (tn_array *[]){w[i], tn_array_grad(w[i])}};

        must(tn_invoke_text(ctx, &update, 1, &w[i], NULL));
    }
    must(tn_array_scalar(made[5], &loss));
    for (int i = 0; i < 6; i++)
        tn_array_release(made[i]);
    return loss;
}

int main(void)
{
    float x[SAMPLES], y[SAMPLES], first[UNITS], second[UNITS], zeros[UNITS] = {0};
    tn_array *xs, *ys, *w[WEIGHTS];
    double loss = 0;

    must(tn_open(NULL, &ctx));
    must(tn_op_register(ctx, &swish));
    must(tn_plugin_add(ctx, &plugin));
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = (float)(i - SAMPLES / 2) / 10;
        y[i] = sinf(x[i]);
    }
    for (int i = 0; i < UNITS; i++) {
        first[i] = sinf((float)i * 7 + 1);
        second[i] = sinf((float)i * 13 + 2) / 4;
    }
    xs = array(SAMPLES, 1, x);
    ys = array(SAMPLES, 1, y);
    w[0] = array(UNITS, 1, first);
    w[1] = array(UNITS, 0, zeros);
    w[2] = array(1, UNITS, second);
    w[3] = array(1, 0, zeros);
    for (int i = 0; i < WEIGHTS; i++)
        must(tn_attach_grad(ctx, w[i], TN_MODE_WRITE, NULL));
    for (int i = 0; i <= 3000; i++) {
        loss = step(xs, ys, w);
        if (i % 1000 == 0)
            (void)printf("step %4d  loss %.4f\n", i, loss);
    }
    for (int i = 0; i < WEIGHTS; i++)
        tn_array_release(w[i]);
    tn_array_release(ys);
    tn_array_release(xs);
    must(tn_close(ctx));
    return loss < 0.01 ? 0 : 1;
}
