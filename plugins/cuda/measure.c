/*
 * Measuring: each way runs a few times in a row, all ways by turns, and the host's clock says how long a row
 * took. A row is long enough that asking for it and waiting for it do not count; a way that takes long by
 * itself runs once.
 */
#include "measure.h"

#include <stddef.h>
#include <time.h>

#define ROW_NS 1000000u  /* how long a row of runs is to take */
#define RUNS_MOST 64u    /* in a row */
#define ROUNDS 3u        /* of all ways by turns; the least counts */
#define LONG_NS 5000000u /* from here on one run tells enough */
#define WORDS 8192u      /* of numbers that come from the host */

/* From here on a way that ran once is out: others take so much less. */
#define OUT(ns) (200000u + 4 * (ns))
/* What a later way has to be ahead of one: what the clock may be off, and a part of the time. */
#define MARGIN(ns) (4000u + (ns) / 64)

static uint64_t clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Numbers of either sign and below 1, as float16, bfloat16, float32 and float64: of zeros a GPU computes
 * faster than of others, as it needs less power for them. */
static bool numbers_copy(const tncuda_driver *d, tncuda_stream stream, char *memory, uint64_t bytes)
{
    uint16_t words[WORDS];
    uint64_t done = bytes < sizeof words ? bytes : sizeof words;
    uint32_t random = 1;
    bool well;

    for (size_t i = 0; i < WORDS; i++) {
        random = random * 1664525u + 1013904223u;
        words[i] = (uint16_t)(0x3800u | (random >> 16 & 0x83ffu)); /* the sign, and exponents in the middle */
    }
    well = !d->copy((tncuda_address)(uintptr_t)memory, (tncuda_address)(uintptr_t)words, done, stream);
    while (well && done < bytes) {
        const uint64_t part = bytes - done < done ? bytes - done : done;

        well = !d->copy((tncuda_address)(uintptr_t)(memory + done), (tncuda_address)(uintptr_t)memory, part,
                        stream);
        done += part;
    }
    return !d->stream_wait(stream) && well;
}

/* Of `runs` of a way; UINT64_MAX: it cannot run. */
static uint64_t time_of(const tncuda_trial *t, uint32_t way, char *memory, tncuda_stream stream,
                        uint32_t runs)
{
    const uint64_t began = clock_ns();
    bool well = true;

    for (uint32_t i = 0; i < runs && well; i++)
        well = t->run(t->state, way, memory, stream);
    return t->driver->stream_wait(stream) || !well ? UINT64_MAX : clock_ns() - began + 1;
}

/* Of one run each, behind one that loads what it needs; 0: it cannot run. Returns the least. */
static uint64_t once_each(const tncuda_trial *t, char *memory, tncuda_stream stream, uint64_t *out)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < t->count; i++) {
        out[i] = time_of(t, i, memory, stream, 1);
        out[i] = out[i] == UINT64_MAX ? UINT64_MAX : time_of(t, i, memory, stream, 1);
        least = out[i] < least ? out[i] : least;
        out[i] = out[i] == UINT64_MAX ? 0 : out[i];
    }
    return least;
}

/* The least of a few rows, of ways that are not out. */
static void rows_each(const tncuda_trial *t, char *memory, tncuda_stream stream, uint64_t once, uint64_t *out)
{
    const uint64_t wanted = ROW_NS / once + 1;
    const uint32_t runs = wanted < RUNS_MOST ? (uint32_t)wanted : RUNS_MOST;

    for (uint32_t i = 0; i < t->count; i++)
        out[i] = out[i] && out[i] < OUT(once) ? UINT64_MAX : 0;
    for (uint32_t k = 0; k < ROUNDS * t->count; k++) {
        const uint32_t i = k % t->count;
        const uint64_t now = out[i] ? time_of(t, i, memory, stream, runs) : 0;

        out[i] = now < out[i] ? now : out[i];
    }
}

static uint32_t fastest(const tncuda_trial *t, char *memory, tncuda_stream stream)
{
    uint64_t times[TNCUDA_WAYS];
    const uint64_t once = once_each(t, memory, stream, times);
    uint32_t best = 0;

    if (once < LONG_NS)
        rows_each(t, memory, stream, once, times);
    for (uint32_t i = 0; i < t->count; i++)
        if (times[i] &&
            (!times[best] || (times[i] < times[best] && times[best] - times[i] > MARGIN(times[best]))))
            best = i;
    return best;
}

uint32_t tncuda_fastest(const tncuda_trial *t)
{
    const tncuda_driver *d = t->driver;
    tncuda_stream stream = NULL;
    tncuda_address address = 0;
    uint32_t best = 0;

    if (d->memory_alloc(&address, t->bytes))
        return 0;
    if (!d->stream_create(&stream, TNCUDA_STREAM_NON_BLOCKING, 0)) {
        char *memory = (char *)(uintptr_t)address;

        if (numbers_copy(d, stream, memory, t->bytes) && (!t->bind || t->bind(t->state, stream)))
            best = fastest(t, memory, stream);
        if (t->bind)
            (void)t->bind(t->state, NULL);
        (void)d->stream_destroy(stream);
    }
    (void)d->memory_free(address);
    return best;
}
