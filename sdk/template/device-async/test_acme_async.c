/*
 * What `make test` runs: two chains of operators at once on the plugin's device end with the bits of the
 * host, and the calls return before the work is done, so what waits for nothing would read other numbers.
 *
 * usage: test_acme_async ./acme-async.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#define COUNT 4096
#define STEPS 50

static tn_ctx *ctx;

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    exit(1);
}
#define MUST(call) must((call), #call)

static tn_array *call(const char *op, uint32_t count, tn_array *const *in)
{
    const tn_op_call c = {.struct_size = TN_SIZE(tn_op_call), .op = op, .in_count = count, .in = in};
    tn_array *out = NULL;

    MUST(tn_invoke_text(ctx, &c, 1, &out, NULL));
    return out;
}

/* x = tanh(x + first), again and again: each step needs the one before. */
static tn_array *chain(double first)
{
    float values[COUNT];
    tn_array *start = NULL, *x;

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(first * (i % 97) / 97);
    MUST(tn_array_from(ctx, TN_F32, 1, (const int64_t[]){COUNT}, values, &start));
    x = call("tanh", 1, &start);
    for (int i = 0; i < STEPS; i++) {
        tn_array *sum = call("elemwise_add", 2, (tn_array *[]){x, start});

        tn_array_release(x);
        x = call("tanh", 1, &sum);
        tn_array_release(sum);
    }
    tn_array_release(start);
    return x;
}

static void run_on(const char *name, float out[2][COUNT])
{
    const tn_device *device = NULL;

    MUST(tn_device_get(ctx, name, &device));
    (void)tn_device_use(device);
    tn_array *one = chain(0.25), *other = chain(-1.5);
    MUST(tn_array_read(other, out[1], sizeof out[1]));
    MUST(tn_array_read(one, out[0], sizeof out[0]));
    tn_array_release(one);
    tn_array_release(other);
    (void)tn_device_use(NULL);
}

int main(int argc, char **argv)
{
    static float host[2][COUNT], device[2][COUNT];
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL,
                     *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, "kernel.prefer=cpu", "run.deterministic=threads", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-async.so\n", argv[0]);
        return 2;
    }
    *slash = '\0';
    (void)snprintf(path, sizeof path, "plugins.path=%s", file);
    free(file);
    MUST(tn_open(&options, &ctx));
    MUST(tn_plugin_load(ctx, "acme-async"));
    run_on("cpu", host);
    run_on("acme-async:0", device);
    MUST(tn_close(ctx));
    if (memcmp(host, device, sizeof host)) {
        (void)fprintf(stderr, "acme-async:0 gives other bits than the host\n");
        return 1;
    }
    (void)printf("acme-async:0: two chains of %d steps with the host's bits: ok\n", STEPS);
    return 0;
}
