/*
 * The numbers of the zoo test by name, shape and seed; tests/oracle/rule.py computes the same bits.
 * Everything is exact or rounded once in double precision before it becomes a float, so no compiler can
 * differ.
 */
#include <math.h>
#include <string.h>

#include "zoo/zoo.h"

#define STEP 0x9E3779B97F4A7C15u

/* Radii are powers of two: their product with u is exact. */
static const struct {
    const char *ending;
    double centre, radius;
} roles[] = {
    {"_gamma", 1, 0.125},      {"_beta", 0, 0.125}, {"_bias", 0, 0.125}, {"_running_mean", 0, 0.125},
    {"_running_var", 1, 0.25}, {"data", 0, 2},      {"head", 0, 1},
};

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);

    return length >= tail && !strcmp(text + length - tail, ending);
}

/* FNV-1a over the name, then the seed. */
static uint64_t key_of(const char *name, uint64_t seed)
{
    uint64_t key = 0xCBF29CE484222325u;

    for (; *name; name++)
        key = (key ^ (uint8_t)*name) * 0x100000001B3u;
    return key + seed * STEP;
}

/* 6: after ReLU the variance stays. Less for the output layer and for what a residual sum adds to. */
static double weight_gain(int32_t ndim, const int64_t *shape)
{
    if (ndim == 2)
        return 3;
    if (ndim == 4 && shape[0] == 4 * shape[1] && shape[0] >= 256 && shape[2] == 1 && shape[3] == 1)
        return 1.5;
    return 6;
}

static bool scale_of(const char *name, int32_t ndim, const int64_t *shape, double *centre, double *radius)
{
    double fan_in = 1;

    for (int32_t i = 1; i < ndim; i++)
        fan_in *= (double)shape[i];
    *centre = 0;
    *radius = sqrt(weight_gain(ndim, shape) / fan_in);
    if (ends_with(name, "_weight"))
        return true;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (ends_with(name, roles[i].ending)) {
            *centre = roles[i].centre;
            *radius = roles[i].radius;
            return true;
        }
    return false;
}

bool zoo_numbers(const char *name, int32_t ndim, const int64_t *shape, uint64_t seed, uint64_t count,
                 float *out)
{
    const uint64_t key = key_of(name, seed);
    double centre, radius;

    if (!scale_of(name, ndim, shape, &centre, &radius))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t z = key + (i + 1) * STEP;

        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        out[i] = (float)(centre + radius * ((double)(z >> 40) / 8388608.0 - 1.0));
    }
    return true;
}
