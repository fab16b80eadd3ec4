/* What a kernel of NCCL does: ranks give each other their chunks, and wait until all have read them. */
#include "double.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../plugins/common/functions.h"

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
uint64_t double_random(struct ncclComm *c)
{
    const char *seed = getenv("TNNCCL_SEED");
    uint64_t z = (seed ? strtoull(seed, NULL, 10) : 0) * 0x9e3779b97f4a7c15u +
                 (uint64_t)c->rank * 0xbf58476d1ce4e5b9u + ++c->turns;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void nap(uint32_t ms)
{
    const struct timespec t = {ms / 1000, ms ? (long)(ms % 1000) * 1000000 : 20000};

    (void)nanosleep(&t, NULL);
}

/* Until counter `which` of all ranks is `value`; false: the communicator was aborted. */
static bool all_at(struct ncclComm *c, size_t which, uint64_t value)
{
    for (int r = 0; r < c->ranks; r++) {
        const atomic_ullong *at =
            (const atomic_ullong *)(const void *)((const char *)&c->room->places[r] + which);

        for (uint32_t looks = 0; atomic_load(at) < value; looks++) {
            if (atomic_load(&c->aborted))
                return false;
            if (looks < 100)
                (void)sched_yield();
            else
                nap(0);
        }
    }
    return !atomic_load(&c->aborted);
}
#define ALL_AT(c, member, value) all_at((c), offsetof(double_place, member), (value))

/* The others' chunks can be read until `read`. */
static bool chunk_give(struct ncclComm *c, const void *from, uint64_t bytes)
{
    double_place *own = &c->room->places[c->rank];

    if (!ALL_AT(c, read, atomic_load(&own->wrote)))
        return false;
    if (bytes)
        memcpy(own->chunk, from, bytes);
    (void)atomic_fetch_add(&own->wrote, 1u);
    return ALL_AT(c, wrote, atomic_load(&own->wrote));
}

static void chunk_read(struct ncclComm *c)
{
    (void)atomic_fetch_add(&c->room->places[c->rank].read, 1u);
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

static uint64_t size_of(uint32_t dtype)
{
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

    return sizes[dtype];
}

#define ADD(T)                                                                                               \
    for (uint64_t i = 0; i < count; i++)                                                                     \
        ((T *)into)[i] = (T)(((T *)into)[i] + ((const T *)from)[i]);                                         \
    break;

static void add(uint32_t dtype, void *into, const void *from, uint64_t count)
{
    switch (dtype) {
    case ncclFloat32:
        ADD(float)
    case ncclFloat64:
        ADD(double)
    case ncclInt8:
    case ncclUint8:
        ADD(uint8_t)
    case ncclInt32:
    case ncclUint32:
        ADD(uint32_t)
    case ncclInt64:
    case ncclUint64:
        ADD(uint64_t)
    case ncclFloat16:
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)into)[i] = tnb_float_half(tnb_half_float(((uint16_t *)into)[i]) +
                                                   tnb_half_float(((const uint16_t *)from)[i]));
        break;
    default:
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)into)[i] = tnb_float_bf16(tnb_bf16_float(((uint16_t *)into)[i]) +
                                                   tnb_bf16_float(((const uint16_t *)from)[i]));
    }
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static void together(double_work *w)
{
    struct ncclComm *c = w->comm;
    const uint64_t size = size_of(w->op.dtype), all = w->op.count * size;
    const bool root = w->op.kind != DOUBLE_BROADCAST || (uint32_t)c->rank == w->op.root;
    const char *in = w->in[0];
    char *out = w->out[0];

    for (uint64_t at = 0; at < all; at += DOUBLE_CHUNK) {
        const uint64_t bytes = all - at < DOUBLE_CHUNK ? all - at : DOUBLE_CHUNK;

        if (!chunk_give(c, in + at, root ? bytes : 0))
            return;
        for (int r = 0; r < c->ranks; r++) {
            const unsigned char *chunk = c->room->places[r].chunk;

            if (w->op.kind == DOUBLE_GATHER)
                memcpy(out + (uint64_t)r * all + at, chunk, bytes);
            else if (w->op.kind == DOUBLE_BROADCAST ? (uint32_t)r == w->op.root : r == 0)
                memcpy(out + at, chunk, bytes);
            else if (w->op.kind == DOUBLE_SUM)
                add(w->op.dtype, out + at, chunk, bytes / size);
        }
        chunk_read(c);
    }
}

/* Round d: to rank + d, from rank - d. */
static void exchange(double_work *w)
{
    struct ncclComm *c = w->comm;

    for (int d = 0; d < c->ranks; d++) {
        const int to = (c->rank + d) % c->ranks, from = (c->rank - d + c->ranks) % c->ranks;

        for (uint64_t at = 0; at < w->op.count; at += DOUBLE_CHUNK) {
            const uint64_t bytes = w->op.count - at < DOUBLE_CHUNK ? w->op.count - at : DOUBLE_CHUNK;

            if (!chunk_give(c, (const char *)w->in[to] + at, bytes))
                return;
            memcpy((char *)w->out[from] + at, c->room->places[from].chunk, bytes);
            chunk_read(c);
        }
    }
}

/* Ranks that come with other operations wait for each other: NCCL says nothing of them either. */
static bool alike(double_work *w)
{
    struct ncclComm *c = w->comm;
    double_place *own = &c->room->places[c->rank];

    if (!ALL_AT(c, read, atomic_load(&own->wrote)))
        return false;
    own->op = w->op;
    (void)atomic_fetch_add(&own->came, 1u);
    if (!ALL_AT(c, came, atomic_load(&own->came)))
        return false;
    for (int r = 0; r < c->ranks; r++)
        if (memcmp(&c->room->places[r].op, &w->op, sizeof w->op) != 0)
            w->stuck = true;
    return true;
}

void double_work_run(void *work)
{
    double_work *w = work;
    struct ncclComm *c = w->comm;

    for (uint32_t ms = 0; ms < w->late_ms && !atomic_load(&c->aborted); ms++)
        nap(1);
    if (alike(w) && !w->stuck) {
        if (w->op.kind == DOUBLE_EXCHANGE)
            exchange(w);
        else
            together(w);
    }
    while (w->stuck && !atomic_load(&c->aborted))
        nap(1);
    free(w);
    (void)atomic_fetch_sub(&c->under_way, 1u);
}
