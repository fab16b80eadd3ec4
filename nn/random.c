/*
 * Random numbers without state: Philox4x32-10, as the core's. Every number is a function of a key and two
 * counters, computed on the host, so first weights and orders of samples are the same on every device and in
 * whatever order they are asked for.
 */
#include "internal.h"

#include <math.h>

#include "tenon/random.h" /* tn_philox */

static double unit(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 21) ^ ((uint64_t)low >> 11)) * (1.0 / 9007199254740992.0);
}

double tnn_random_unit(uint64_t key, uint64_t high, uint64_t low)
{
    uint32_t w[4];

    tn_philox(key, high, low, w);
    return unit(w[0], w[1]);
}

/* Box and Muller; 1 - u is above 0. */
double tnn_random_normal(uint64_t key, uint64_t high, uint64_t low)
{
    const double turn = 6.283185307179586476925286766559;
    uint32_t w[4];

    tn_philox(key, high, low, w);
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
