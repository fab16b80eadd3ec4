/*
 * Random numbers without state: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011), as the core's. Every number is a function of a key and two counters, computed on the
 * host, so first weights and orders of samples are the same on every device and in whatever order they are
 * asked for.
 */
#include "internal.h"

#include <math.h>

void tnn_random_words(uint64_t key, uint64_t high, uint64_t low, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)low, x1 = (uint32_t)(low >> 32), x2 = (uint32_t)high, x3 = (uint32_t)(high >> 32);

    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;

        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

static double unit(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 21) ^ ((uint64_t)low >> 11)) * (1.0 / 9007199254740992.0);
}

double tnn_random_unit(uint64_t key, uint64_t high, uint64_t low)
{
    uint32_t w[4];

    tnn_random_words(key, high, low, w);
    return unit(w[0], w[1]);
}

/* Box and Muller; 1 - u is above 0. */
double tnn_random_normal(uint64_t key, uint64_t high, uint64_t low)
{
    const double turn = 6.283185307179586476925286766559;
    uint32_t w[4];

    tnn_random_words(key, high, low, w);
    return sqrt(-2.0 * log(1.0 - unit(w[0], w[1]))) * cos(turn * unit(w[2], w[3]));
}

/* SplitMix64's finaliser. */
uint64_t tnn_random_mix(uint64_t seed, uint64_t purpose)
{
    uint64_t x = seed + purpose * 0x9E3779B97F4A7C15u;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

tn_status tnn_seed(tn_app *app, uint64_t given, uint64_t *seed)
{
    int64_t value = 0;
    tn_status st;

    *seed = given;
    if (given)
        return TN_OK;
    st = tnn_check(app, tn_ctx_option_int(app->ctx, "run.seed", &value), "%s", "");
    *seed = (uint64_t)value;
    return st;
}
