/*
 * How much of a step's sums hides behind backward, with kvstore.type = mpi, where the wire is the limit and
 * not the processor: bench/mpi-overlap shapes the wire, and backward is a device that works elsewhere, so
 * this thread sleeps for each layer's time. A step sums the gradient of each layer once it is there
 * (overlapped), or all of them behind the last layer (behind); what a step takes beyond backward is exposed.
 * Both take turns. Rank 0 prints medians in ms. Sums are compared with what they have to be.
 *
 *     mpirun -n 2 overlap [SECTION.KEY=VALUE...]
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tenon/kv.h>
#include <tenon/tenon.h>

#define LAYERS 8u
#define LAYER_ELEMENTS ((int64_t)1 << 18) /* 1 MiB */
#define STEPS 7u
#define SETTINGS_MAX 16

typedef struct job {
    tn_kv *kv;
    tn_kv_info info;
    tn_array *gradients[LAYERS], *sums[LAYERS];
    tn_kv_item items[LAYERS];
} job;

static void check(tn_status st, const char *what)
{
    if (!st)
        return;
    (void)fprintf(stderr, "overlap: %s: %s\n", what, tn_error_text());
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void device_works(double ms)
{
    const struct timespec t = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(fmod(ms, 1e3) * 1e6)};

    (void)nanosleep(&t, NULL);
}

static void job_open(job *j, tn_ctx *ctx)
{
    const int64_t shape[] = {LAYER_ELEMENTS};

    check(tn_kv_create(ctx, "mpi", &j->kv), "the store");
    j->info.struct_size = TN_SIZE(tn_kv_info);
    check(tn_kv_info_get(j->kv, &j->info), "the store");
    for (uint32_t i = 0; i < LAYERS; i++) {
        void *data;

        check(tn_array_zeros(ctx, TN_F32, 1, shape, NULL, &j->gradients[i]), "a gradient");
        check(tn_array_zeros(ctx, TN_F32, 1, shape, NULL, &j->sums[i]), "a sum");
        check(tn_array_data(j->gradients[i], &data), "a gradient");
        for (int64_t k = 0; k < LAYER_ELEMENTS; k++)
            ((float *)data)[k] = (float)((int64_t)i + k % 7 + (int64_t)j->info.rank);
        j->items[i] =
            (tn_kv_item){.number = i, .priority = -(int32_t)i, .value_count = 1, .values = &j->gradients[i]};
    }
    check(tn_kv_init(j->kv, LAYERS, j->items), "init");
    for (uint32_t i = 0; i < LAYERS; i++) {
        j->items[i].out_count = 1;
        j->items[i].outs = &j->sums[i];
    }
}

static void sums_check(job *j)
{
    const int64_t n = j->info.workers;

    for (uint32_t i = 0; i < LAYERS; i++) {
        void *data;

        check(tn_array_data(j->sums[i], &data), "a sum");
        for (int64_t k = 0; k < LAYER_ELEMENTS; k++)
            if (((float *)data)[k] != (float)(n * ((int64_t)i + k % 7) + n * (n - 1) / 2))
                check(TN_E_STATE, "a sum is wrong");
    }
}

/* A step with `layer_ms` for each layer of backward, the last one first; its time. */
static double step(job *j, double layer_ms, bool overlapped)
{
    double begun;

    check(tn_kv_barrier(j->kv), "barrier");
    begun = now_ms();
    for (uint32_t i = LAYERS; i-- > 0;) {
        if (layer_ms > 0)
            device_works(layer_ms);
        if (overlapped)
            check(tn_kv_pushpull(j->kv, 1, &j->items[i]), "pushpull");
    }
    if (!overlapped)
        check(tn_kv_pushpull(j->kv, LAYERS, j->items), "pushpull");
    for (uint32_t i = 0; i < LAYERS; i++)
        check(tn_array_wait(j->sums[i]), "a sum");
    return now_ms() - begun;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times)
{
    qsort(times, STEPS, sizeof *times, by_value);
    return times[STEPS / 2];
}

/* The longest of all ranks, so that all work for the same time. */
static double agreed(job *j, tn_ctx *ctx, double ms)
{
    const int64_t shape[] = {1};
    tn_kv_item item = {.number = LAYERS, .value_count = 1};
    tn_array *own, *sum;
    void *data;

    check(tn_array_zeros(ctx, TN_F32, 1, shape, NULL, &own), "a number");
    check(tn_array_zeros(ctx, TN_F32, 1, shape, NULL, &sum), "a number");
    item.values = &own;
    check(tn_kv_init(j->kv, 1, &item), "init");
    check(tn_array_data(own, &data), "a number");
    *(float *)data = (float)ms;
    item.out_count = 1;
    item.outs = &sum;
    check(tn_kv_pushpull(j->kv, 1, &item), "pushpull");
    check(tn_array_data(sum, &data), "a number");
    ms = (double)*(float *)data / j->info.workers;
    tn_array_release(own);
    tn_array_release(sum);
    return ms;
}

int main(int argc, char **argv)
{
    const char *settings[SETTINGS_MAX + 1] = {NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    double wire[STEPS], both[2][STEPS], layer_ms, exposed[2];
    tn_ctx *ctx;
    job j = {0};

    for (int i = 1; i < argc && i <= SETTINGS_MAX; i++)
        settings[i - 1] = argv[i];
    check(tn_open(&options, &ctx), "tenon");
    job_open(&j, ctx);
    (void)step(&j, 0, false); /* the first is not counted */
    sums_check(&j);
    for (uint32_t n = 0; n < STEPS; n++)
        wire[n] = step(&j, 0, false);
    layer_ms = agreed(&j, ctx, median(wire)) * 1.1 / LAYERS;
    for (uint32_t n = 0; n < STEPS; n++)
        for (int way = 0; way < 2; way++)
            both[way][n] = step(&j, layer_ms, way == 1) - layer_ms * LAYERS;
    sums_check(&j);
    for (int way = 0; way < 2; way++)
        exposed[way] = median(both[way]);
    if (!j.info.rank)
        printf(
            "%u layers of 1 MiB, %u ranks: sums alone %.1f ms, backward %.1f ms; exposed behind it %.1f ms, "
            "overlapped %.1f ms: %.2f\n",
            LAYERS, j.info.workers, wire[STEPS / 2], layer_ms * LAYERS, exposed[0], exposed[1],
            exposed[1] / exposed[0]);
    for (uint32_t i = 0; i < LAYERS; i++) {
        tn_array_release(j.gradients[i]);
        tn_array_release(j.sums[i]);
    }
    tn_kv_destroy(j.kv);
    check(tn_close(ctx), "close");
    return 0;
}
