/*
 * What `make test` runs: arrays come and go with the plugin's pool under them; values stay whole, memory is
 * used again, and the numbers of the pool add up.
 *
 * usage: test_acme_pool ./acme-pool.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#define SLOTS 24
#define ROUNDS 400

static tn_ctx *ctx;
static const tn_device *cpu;

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

static tn_memory_stats stats_now(void)
{
    tn_memory_stats stats = {.struct_size = TN_SIZE(tn_memory_stats)};

    MUST(tn_wait_all(ctx));
    MUST(tn_device_memory(ctx, cpu, TN_MEMORY_DEVICE, &stats));
    return stats;
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Every element of array `slot` is its number, so blocks that overlap are seen. */
static void check_values(tn_array *a, uint32_t value)
{
    const uint64_t count = tn_array_count(a);
    float *values = malloc(count * sizeof *values);

    require(values != NULL, "enough memory for this test");
    MUST(tn_array_read(a, values, count * sizeof *values));
    for (uint64_t i = 0; i < count; i++)
        require(values[i] == (float)value, "values that nobody else wrote over");
    free(values);
}

static void test_reuse(void)
{
    tn_array *slot[SLOTS] = {NULL};
    uint32_t value[SLOTS] = {0}, seed = 1;
    tn_memory_stats stats;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t at = next(&seed) % SLOTS;
        const int64_t shape[] = {1 + next(&seed) % 20000};

        if (slot[at])
            check_values(slot[at], value[at]);
        tn_array_release(slot[at]);
        value[at] = round;
        MUST(tn_array_create(ctx, TN_F32, 1, shape, cpu, &slot[at]));
        MUST(tn_array_fill(slot[at], round));
    }
    stats = stats_now();
    require(stats.live > 0 && stats.peak >= stats.live, "live and peak bytes");
    require(stats.hits > stats.misses, "most blocks are used again");
    for (uint32_t i = 0; i < SLOTS; i++)
        tn_array_release(slot[i]);
    stats = stats_now();
    require(stats.live == 0 && stats.cached > 0, "everything is cached once nothing is live");
    MUST(tn_device_trim(ctx, cpu, 0));
    require(stats_now().cached == 0, "nothing is cached after a trim");
}

int main(int argc, char **argv)
{
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL,
                     *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, "memory.cpu.pool=first-fit", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-pool.so\n", argv[0]);
        return 2;
    }
    *slash = '\0';
    (void)snprintf(path, sizeof path, "plugins.path=%s", file);
    free(file);
    MUST(tn_open(&options, &ctx));
    MUST(tn_plugin_load(ctx, "acme-pool"));
    MUST(tn_device_get(ctx, "cpu", &cpu));
    test_reuse();
    MUST(tn_close(ctx));
    (void)printf("first-fit: values, reuse, trim: ok\n");
    return 0;
}
