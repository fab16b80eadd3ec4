/*
 * Measuring one call: two series whose rounds take turns on the same code. What differs between them is the
 * machine; where it differs too much, nothing is said to be known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/table.h"

#define SPREAD_MAX 0.10
#define SLOWER_MAX 2.0      /* median over best round */
#define ROUND_SECONDS 0.002 /* a round takes at least this, if a call is shorter */
#define CALLS_MAX 100000u
#define WARM_ROUNDS 2
#define ROUNDS_DEFAULT 15
#define ROUNDS_MAX 1000

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* So many calls that a round is long enough to be measured; they warm up, too. */
static tn_status calls_find(tn_status (*run)(void *arg, uint32_t calls), void *arg, uint32_t *calls)
{
    double seconds = 0;
    tn_status st = run(arg, 1);

    for (*calls = 1; !st && *calls < CALLS_MAX; *calls *= 2) {
        const double start = cli_now();

        st = run(arg, *calls);
        seconds = cli_now() - start;
        if (seconds >= ROUND_SECONDS)
            break;
    }
    return st;
}

static void figures(cli_series *s, double *series[2], double *both, uint32_t rounds)
{
    const double m[2] = {median(series[0], rounds), median(series[1], rounds)};
    double sum = 0, squares = 0;

    for (uint32_t i = 0; i < 2 * rounds; i++)
        sum += both[i];
    s->mean = sum / (2.0 * rounds);
    for (uint32_t i = 0; i < 2 * rounds; i++)
        squares += (both[i] - s->mean) * (both[i] - s->mean);
    s->sd = sqrt(squares / (2.0 * rounds - 1));
    s->median = median(both, 2 * (size_t)rounds);
    s->best = both[0];
    s->spread = fabs(m[0] - m[1]) / fmin(m[0], m[1]);
    s->rounds = 2 * rounds;
    s->noisy = !(s->spread <= SPREAD_MAX) || !(s->best > 0) || s->median > SLOWER_MAX * s->best;
}

tn_status cli_series_measure(tn_status (*run)(void *arg, uint32_t calls), void *arg, uint32_t rounds,
                             cli_series *out)
{
    double *values = calloc(4ull * rounds + 1, sizeof *values), *series[2] = {values, values + rounds};
    double *both = values + 2ull * rounds;
    tn_status st;

    if (!values)
        return TN_E_NOMEM;
    memset(out, 0, sizeof *out);
    st = calls_find(run, arg, &out->calls);
    for (uint32_t i = 0; !st && i < WARM_ROUNDS; i++)
        st = run(arg, out->calls);
    for (uint32_t i = 0; !st && i < 2 * rounds; i++) {
        const double start = cli_now();

        st = run(arg, out->calls);
        series[i % 2][i / 2] = both[i] = (cli_now() - start) * 1e9 / out->calls;
    }
    if (!st)
        figures(out, series, both, rounds);
    free(values);
    return st;
}

uint32_t cli_repeat_of(const cli_args *args)
{
    const char *text = args->value[OPT_REPEAT];
    char *end = NULL;
    long value = ROUNDS_DEFAULT;

    if (text)
        value = strtol(text, &end, 10);
    if (text && (*end || end == text || value < 3 || value > ROUNDS_MAX)) {
        cli_error("--repeat %s: a whole number from 3 to %d is needed", text, ROUNDS_MAX);
        return 0;
    }
    return (uint32_t)value;
}

tn_status cli_array_fill(tn_array *a, double low, double high)
{
    const size_t count = (size_t)tn_array_count(a);
    const int32_t dtype = tn_array_dtype(a);
    uint32_t random = 1;
    double *values;
    float *singles;
    tn_status st;

    if (dtype != TN_F32 && dtype != TN_F64)
        return tn_array_fill(a, 1);
    if (!(values = malloc((count + 1) * sizeof *values))) {
        cli_error("out of host memory for the %zu values of an input", count);
        return TN_E_NOMEM;
    }
    singles = (float *)(void *)values; /* only one of the two is used */
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        if (dtype == TN_F64)
            values[i] = low + (high - low) * (random >> 8) / 16777216.0;
        else
            singles[i] = (float)(low + (high - low) * (random >> 8) / 16777216.0);
    }
    st = tn_array_write(a, values, tn_array_bytes(a));
    free(values);
    return st;
}
