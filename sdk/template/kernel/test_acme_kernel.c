/*
 * What `make test` runs: relu by the plugin's kernel gives the bits of the plain one, and how long either
 * takes.
 *
 * usage: test_acme_kernel ./acme-kernel.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

#define COUNT 100003
#define RUNS 200

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    exit(1);
}
#define MUST(call) must((call), #call)

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* A pin leaves no other kernel for the operator: it is this one, or an error. */
static double relu(const char *path, const char *pin, const float *values, float *out)
{
    const char *settings[] = {path, pin, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    tn_array *x = NULL, *y = NULL;
    tn_ctx *ctx = NULL;
    double begin = 0;

    MUST(tn_open(&options, &ctx));
    MUST(tn_array_from(ctx, TN_F32, 1, (const int64_t[]){COUNT}, values, &x));
    const tn_op_call c = {.struct_size = TN_SIZE(tn_op_call), .op = "relu", .in_count = 1, .in = &x};
    for (int i = 0; i <= RUNS; i++) {
        tn_array_release(y);
        y = NULL;
        begin = i == 1 ? now_us() : begin; /* the first one plans */
        MUST(tn_invoke_text(ctx, &c, 1, &y, NULL));
        MUST(tn_array_wait(y));
    }
    begin = (now_us() - begin) / RUNS;
    MUST(tn_array_read(y, out, COUNT * sizeof *out));
    tn_array_release(y);
    tn_array_release(x);
    MUST(tn_close(ctx));
    return begin;
}

int main(int argc, char **argv)
{
    static float values[COUNT], plain[COUNT], fast[COUNT];
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL,
                     *slash = file ? strrchr(file, '/') : NULL;
    double plain_us, fast_us;

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-kernel.so\n", argv[0]);
        return 2;
    }
    *slash = '\0';
    (void)snprintf(path, sizeof path, "plugins.path=%s", file);
    free(file);
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i % 201 - 100) / 7;
    plain_us = relu(path, "kernel.relu@cpu=cpu", values, plain);
    fast_us = relu(path, "kernel.relu@cpu=acme-kernel", values, fast);
    if (memcmp(plain, fast, sizeof plain)) {
        (void)fprintf(stderr, "relu by acme-kernel gives other bits than by cpu\n");
        return 1;
    }
    (void)printf("relu of %d elements: %.1f us by cpu, %.1f us by acme-kernel, the same bits\n", COUNT,
                 plain_us, fast_us);
    return 0;
}
