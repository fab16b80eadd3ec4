/*
 * In which order samples come, and how they are cut into batches: functions of seed, epoch and index alone.
 * Where the last batch rolls over, the epochs lie one behind the other in one stream that is cut into
 * batches; so the place of a batch is a function of epoch and index there, too.
 */
#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/random.h" /* tn_philox */

#define BATCH_MAX (1 << 24)

__extension__ typedef unsigned __int128 wide;

static const char *const lasts[] = {"keep", "pad", "discard", "roll_over", "round", NULL};

tn_status tnn_order_take(tn_app *app, const char *what, const tnn_cut *cut, tnn_order *out)
{
    size_t last = 0;

    while (cut->last && lasts[last] && strcmp(cut->last, lasts[last]))
        last++;
    if (!lasts[last])
        return tnn_unknown(app, "way with the last batch", cut->last, lasts);
    if (cut->batch < 0 || cut->batch > BATCH_MAX)
        return tnn_fail(app, TN_E_ARG, "%s: .batch is out of range", what);
    if (cut->parts < 0 || cut->parts > INT32_MAX || cut->part < 0 ||
        cut->part >= (cut->parts ? cut->parts : 1))
        return tnn_fail(app, TN_E_ARG, "%s: part %lld of %lld, counted from 0", what, (long long)cut->part,
                        (long long)cut->parts);
    *out = (tnn_order){.batch = cut->batch ? cut->batch : 64,
                       .last = (tnn_last)last,
                       .shuffle = cut->shuffle != 0,
                       .order_epoch = -1};
    return tnn_seed(app, cut->seed, &out->seed);
}

tn_status tnn_order_room(tn_app *app, tnn_order *o, const char *name)
{
    if (o->batch > o->count && o->last == TNN_LAST_KEEP)
        o->batch = o->count;
    if (o->batch > o->count && o->last != TNN_LAST_PAD && o->last != TNN_LAST_ROLL_OVER)
        return tnn_fail(app, TN_E_ARG, "%s: a batch of %lld, but there are %lld samples", name,
                        (long long)o->batch, (long long)o->count);
    o->rows = tnn_alloc(app, (size_t)o->batch, sizeof *o->rows);
    if (o->shuffle)
        o->order = tnn_alloc(app, (size_t)o->count, sizeof *o->order);
    return app->status;
}

void tnn_order_free(tnn_order *o)
{
    tnn_buckets_destroy(o->buckets);
    free(o->order);
    free(o->rows);
}

void tnn_share(int64_t count, int64_t parts, int64_t part, int64_t *begin, int64_t *end)
{
    const double each = (double)count / (double)parts;

    *begin = (int64_t)(each * (double)part);
    *end = part + 1 == parts ? count : (int64_t)(each * (double)(part + 1));
}

/* Fisher and Yates, with 64 bits per exchange. */
void tnn_order_shuffle(uint32_t *out, int64_t count, uint64_t key, int64_t epoch, int64_t first)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (uint32_t)(first + i);
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t w[4], kept = out[i];
        uint64_t bits, j;

        tn_philox(key, (uint64_t)epoch, (uint64_t)(first + i), w);
        bits = (uint64_t)w[0] << 32 | w[1];
        j = (uint64_t)((wide)bits * (uint64_t)(i + 1) >> 64);
        out[i] = out[j];
        out[j] = kept;
    }
}

static void shuffle(tnn_order *o, int64_t epoch)
{
    if (o->order_epoch == epoch)
        return;
    tnn_order_shuffle(o->order, o->count, tnn_random_mix(o->seed, TNN_PURPOSE_SHUFFLE), epoch, 0);
    o->order_epoch = epoch;
}

bool tnn_order_streams(const tnn_order *o)
{
    return o->last >= TNN_LAST_ROLL_OVER;
}

/* Of a stream: batches in front of the epoch. One that two epochs share is the later one's, of `round` the
 * earlier one's. */
static int64_t stream_first(const tnn_order *o, int64_t epoch)
{
    const int64_t samples = epoch * o->count;

    return samples / o->batch + (o->last == TNN_LAST_ROUND && samples % o->batch);
}

int64_t tnn_order_batches(const tnn_order *o, int64_t epoch)
{
    if (o->buckets)
        return tnn_buckets_batches(o->buckets);
    if (tnn_order_streams(o))
        return stream_first(o, epoch + 1) - stream_first(o, epoch);
    return (o->count + (o->last == TNN_LAST_DISCARD ? 0 : o->batch - 1)) / o->batch;
}

int64_t tnn_order_rows(tnn_order *o, int64_t epoch, int64_t index)
{
    const int64_t left = o->count - index * o->batch; /* of no stream */
    const int64_t n = o->last == TNN_LAST_KEEP && left < o->batch ? left : o->batch;
    const int64_t begin = (tnn_order_streams(o) ? stream_first(o, epoch) + index : index) * o->batch;

    if (o->buckets)
        return tnn_buckets_rows(o, epoch, index);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (begin + i) % o->count;

        if (o->order)
            shuffle(o, tnn_order_streams(o) ? (begin + i) / o->count : epoch);
        o->rows[i] = o->order ? o->order[at] : (uint32_t)at;
    }
    o->filler = o->last == TNN_LAST_PAD     ? begin + n - o->count
                : o->last == TNN_LAST_ROUND ? begin + n - (epoch + 1) * o->count
                                            : 0;
    o->filler = o->filler > 0 ? o->filler : 0;
    return n;
}
