/*
 * The codecs of gradients on one core: bytes of float32 that go in per second, beside memcpy and a sum of the
 * same bytes. The ways take turns, so that a busy minute hits all. The gradient is new in each round, the
 * residual stays; by default both fit into the second-level cache of one core, as a part on its way does.
 *
 *     kv_codec [--elements N] [--rounds N] [--json]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kv/kv.h"

#define ROUNDS_MAX 1000
#define PASSES 16 /* of a round, over the same memory */

typedef struct data {
    float *x, *residual, *out;
    uint8_t *coded;
    uint64_t count;
} data;

static const tni_kv_codec codecs[] = {{2, 0.5f}, {1, 0}};

static void copy(const data *d)
{
    memcpy(d->out, d->x, d->count * sizeof *d->x);
}

static void add(const data *d)
{
    for (uint64_t i = 0; i < d->count; i++)
        d->out[i] += d->x[i];
}

static void encode_2bit(const data *d)
{
    tni_kv_codec_encode(&codecs[0], d->x, d->residual, d->count, d->coded);
}

static void decode_2bit(const data *d)
{
    tni_kv_codec_decode(&codecs[0], d->coded, d->count, d->out, true);
}

static void encode_1bit(const data *d)
{
    tni_kv_codec_encode(&codecs[1], d->x, d->residual, d->count, d->coded);
}

static void decode_1bit(const data *d)
{
    tni_kv_codec_decode(&codecs[1], d->coded, d->count, d->out, true);
}

static const struct {
    const char *name;
    void (*run)(const data *d);
} ways[] = {
    {"memcpy", copy},
    {"add", add},
    {"2bit encode", encode_2bit},
    {"2bit decode and add", decode_2bit},
    {"1bit encode", encode_1bit},
    {"1bit decode and add", decode_1bit},
};
enum { WAYS = sizeof ways / sizeof *ways };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const data *d, int rounds, double (*rates)[ROUNDS_MAX])
{
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++) {
            double start;

            for (uint64_t i = 0; i < d->count; i++)
                d->x[i] = (float)((i * 2654435761u + (uint64_t)r * 97) % 2048) / 1024 - 1;
            start = now_s();
            for (int pass = 0; pass < PASSES; pass++) {
                ways[w].run(d);
                __asm__ volatile("" ::: "memory"); /* each pass is made */
            }
            rates[w][r] = (double)d->count * sizeof *d->x * PASSES / (now_s() - start) / 1e9;
        }
}

static void print(int rounds, double (*rates)[ROUNDS_MAX], bool json)
{
    for (int w = 0; w < WAYS; w++) {
        qsort(rates[w], (size_t)rounds, sizeof **rates, by_value);
        if (json)
            printf("%s{\"way\":\"%s\",\"median_gbs\":%.2f,\"best_gbs\":%.2f}%s", w ? "," : "[", ways[w].name,
                   rates[w][rounds / 2], rates[w][rounds - 1], w == WAYS - 1 ? "]\n" : "");
        else
            printf("%-20s median %6.2f GB/s, best %6.2f GB/s of float32\n", ways[w].name,
                   rates[w][rounds / 2], rates[w][rounds - 1]);
    }
}

int main(int argc, char **argv)
{
    static double rates[WAYS][ROUNDS_MAX];
    data d = {.count = 65536};
    int rounds = 30;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--elements"))
            d.count = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && !strcmp(argv[i], "--rounds"))
            rounds = atoi(argv[++i]);
        else
            rounds = 0;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || d.count < 1 || d.count > 1u << 28) {
        fprintf(stderr, "usage: kv_codec [--elements 1..%u] [--rounds 1..%d] [--json]\n", 1u << 28,
                ROUNDS_MAX);
        return 2;
    }
    d.x = calloc(d.count, sizeof *d.x);
    d.residual = calloc(d.count, sizeof *d.residual);
    d.out = calloc(d.count, sizeof *d.out);
    d.coded = calloc(1, tni_kv_codec_bytes(&codecs[0], d.count));
    if (!d.x || !d.residual || !d.out || !d.coded)
        return 1;
    measure(&d, rounds, rates);
    print(rounds, rates, json);
    free(d.x);
    free(d.residual);
    free(d.out);
    free(d.coded);
    return 0;
}
