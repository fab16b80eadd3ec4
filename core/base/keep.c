/*
 * Blocks that are wanted again and again, such as the nodes of a tape: what is given back is kept for the
 * next who asks for that size, so that steps that are alike allocate nothing.
 *
 * Sizes are rounded up to classes, four to a doubling. All that is kept together is bounded; when it is full,
 * the blocks of the largest other class make room. A block carries no header: the C library knows its size.
 */
#include <string.h>

#include "base/base.h"

#define SMALLEST 64u /* bytes: smaller blocks count as this */
#define CLASSES 80u  /* up to 64 MiB, beyond which nothing is kept */

typedef struct keep_block {
    struct keep_block *next;
} keep_block;

struct tni_keep {
    atomic_uint lock;
    uint64_t bytes, bytes_max;
    keep_block *free[CLASSES];
};

#ifdef TN_TEST_SWITCHES
static bool keeps_nothing;

void tni_keep_nothing(bool on)
{
    keeps_nothing = on;
}
#else
#define keeps_nothing false
#endif

tn_status tni_keep_create(uint64_t bytes_max, tni_keep **out)
{
    tni_keep *k = tni_zalloc(sizeof *k);

    if (!k)
        return TN_E_NOMEM;
    k->bytes_max = bytes_max;
    *out = k;
    return TN_OK;
}

static void keep_lock(tni_keep *k)
{
    tni_hold();
    tni_spin_lock(&k->lock);
}

static void keep_unlock(tni_keep *k)
{
    tni_spin_unlock(&k->lock);
    tni_unhold();
}

static uint64_t class_bytes(uint32_t class)
{
    return (uint64_t)SMALLEST / 4 * (4 + class % 4) << class / 4;
}

/* The largest class whose blocks a block of `bytes`, at least SMALLEST, may serve. */
static uint32_t class_below(uint64_t bytes)
{
    const uint32_t power = 63u - (uint32_t)__builtin_clzll(bytes);

    return (power - 6u) * 4u + (uint32_t)(bytes >> (power - 2u) & 3u);
}

static uint32_t class_above(uint64_t bytes)
{
    const uint32_t class = class_below(bytes < SMALLEST ? SMALLEST : bytes);

    return class_bytes(class) < bytes ? class + 1 : class;
}

static void *class_pop_locked(tni_keep *k, uint32_t class)
{
    keep_block *b = k->free[class];

    if (b) {
        k->free[class] = b->next;
        k->bytes -= class_bytes(class);
    }
    return b;
}

void tni_keep_trim(tni_keep *k)
{
    void *b;

    keep_lock(k);
    for (uint32_t class = 0; class < CLASSES; class ++)
        while ((b = class_pop_locked(k, class)) != NULL)
            tni_free(b);
    keep_unlock(k);
}

void tni_keep_destroy(tni_keep *k)
{
    if (!k)
        return;
    tni_keep_trim(k);
    tni_free(k);
}

void *tni_keep_take(tni_keep *k, uint64_t bytes)
{
    uint32_t class;
    void *b;

    if (bytes > class_bytes(CLASSES - 1))
        return tni_alloc(bytes);
    class = class_above(bytes);
    keep_lock(k);
    b = class_pop_locked(k, class);
    keep_unlock(k);
    return b ? b : tni_alloc(class_bytes(class));
}

void *tni_keep_zeroed(tni_keep *k, uint64_t count, uint64_t bytes)
{
    uint64_t total;
    void *b;

    if (!tni_size_mul(count, bytes, &total))
        return tni_calloc(count, bytes); /* says what is wrong */
    if ((b = tni_keep_take(k, total)) != NULL)
        memset(b, 0, total);
    return b;
}

/* True: a block of this class fits beside what is kept. */
static bool room_make_locked(tni_keep *k, uint32_t class)
{
    const uint64_t bytes = class_bytes(class);
    void *b;

    for (uint32_t other = CLASSES; k->bytes + bytes > k->bytes_max && bytes <= k->bytes_max && other-- > 0;)
        while (k->bytes + bytes > k->bytes_max && other != class && (b = class_pop_locked(k, other)) != NULL)
            tni_free(b);
    return k->bytes + bytes <= k->bytes_max;
}

void tni_keep_give(tni_keep *k, void *p)
{
    const uint64_t bytes = p ? tni_mem_bytes(p) : 0;
    const uint32_t class = bytes >= SMALLEST ? class_below(bytes) : CLASSES;
    keep_block *b = p;

    if (class < CLASSES && !keeps_nothing) {
        keep_lock(k);
        if (room_make_locked(k, class)) {
            b->next = k->free[class];
            k->free[class] = b;
            k->bytes += class_bytes(class);
            b = NULL;
        }
        keep_unlock(k);
    }
    tni_free(b);
}

uint64_t tni_keep_bytes(tni_keep *k)
{
    uint64_t bytes;

    keep_lock(k);
    bytes = k->bytes;
    keep_unlock(k);
    return bytes;
}
