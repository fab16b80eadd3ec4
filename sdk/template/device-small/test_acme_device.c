/*
 * What `make test` runs: the same small training on the host and on the plugin's device ends with the same
 * bits; memory comes back; a device that does not exist is an error.
 *
 * usage: test_acme_device ./acme-device.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#define ROWS 16
#define COLUMNS 8

static tn_ctx *ctx;

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    exit(1);
}
#define MUST(call) must((call), #call)

static void require(int holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s does not hold\n", what);
    exit(1);
}

static tn_array *call(const char *op, const char *const *attrs, uint32_t count, tn_array *const *in)
{
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .op = op, .attrs = attrs, .in_count = count, .in = in};
    tn_array *out = NULL;

    MUST(tn_invoke_text(ctx, &c, 1, &out, NULL));
    return out;
}

static tn_array *numbers(int32_t ndim, const int64_t *shape, uint32_t seed)
{
    float values[ROWS * COLUMNS];
    tn_array *a = NULL;

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
    MUST(tn_array_from(ctx, TN_F32, ndim, shape, values, &a));
    return a;
}

/* A dense layer learns zeros; the weights after `steps`. */
static void train(const char *device_name, int steps, float weights[COLUMNS])
{
    static const char *const dense[] = {"num_hidden", "1", "no_bias", "True", NULL}, *const lr[] = {
                                                                                         "lr", "0.1", NULL};
    const tn_device *device = NULL;

    MUST(tn_device_get(ctx, device_name, &device));
    (void)tn_device_use(device);
    tn_array *x = numbers(2, (const int64_t[]){ROWS, COLUMNS}, 1);
    tn_array *w = numbers(2, (const int64_t[]){1, COLUMNS}, 2);

    MUST(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    for (int i = 0; i < steps; i++) {
        (void)tn_record_set(1);
        tn_array *y = call("FullyConnected", dense, 2, (tn_array *[]){x, w});
        tn_array *loss = call("square", NULL, 1, &y);
        (void)tn_record_set(0);
        MUST(tn_backward(ctx, 1, &loss, NULL, 0));
        const tn_op_call step = {.struct_size = TN_SIZE(tn_op_call),
                                 .op = "sgd_update",
                                 .attrs = lr,
                                 .in_count = 2,
                                 .in = (tn_array *[]){w, tn_array_grad(w)}};
        MUST(tn_invoke_text(ctx, &step, 1, &w, NULL));
        tn_array_release(loss);
        tn_array_release(y);
    }
    MUST(tn_array_read(w, weights, COLUMNS * sizeof *weights));
    tn_array_release(w);
    tn_array_release(x);
    (void)tn_device_use(NULL);
}

static void test_same_bits(void)
{
    float on_host[COLUMNS], on_device[COLUMNS];

    train("cpu", 20, on_host);
    train("acme-device:0", 20, on_device);
    require(!memcmp(on_host, on_device, sizeof on_host), "the same bits on the host and on the device");
}

static uint64_t live_bytes(void)
{
    tn_memory_stats stats = {.struct_size = TN_SIZE(tn_memory_stats)};
    const tn_device *device = NULL;

    MUST(tn_device_get(ctx, "acme-device:0", &device));
    MUST(tn_wait_all(ctx));
    MUST(tn_device_memory(ctx, device, TN_MEMORY_DEVICE, &stats));
    return stats.live;
}

static void test_memory(void)
{
    const uint64_t before = live_bytes(); /* of the programs that are kept */
    const tn_device *device = NULL;
    float weights[COLUMNS];

    train("acme-device:0", 20, weights);
    require(live_bytes() == before, "no more live bytes after another training");
    require(tn_device_get(ctx, "acme-device:7", &device) == TN_E_DEVICE,
            "an error for a device that is not there");
}

int main(int argc, char **argv)
{
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL,
                     *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, "kernel.prefer=cpu", "run.deterministic=threads", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-device.so\n", argv[0]);
        return 2;
    }
    *slash = '\0';
    (void)snprintf(path, sizeof path, "plugins.path=%s", file);
    free(file);
    MUST(tn_open(&options, &ctx));
    MUST(tn_plugin_load(ctx, "acme-device"));
    test_same_bits();
    test_memory();
    MUST(tn_close(ctx));
    (void)printf("acme-device:0: a training with the host's bits, memory, errors: ok\n");
    return 0;
}
