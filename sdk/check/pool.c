/*
 * Group pool: one case for each pool of the plugin.
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define MIB ((uint64_t)1 << 20)
#define STREAMS 4u
#define THREADS 4u

static const uint64_t sizes[] = {
    1,       2,     7,       63,   64,      65,      255,         256,           257,      511,
    512,     513,   1000,    4095, 4096,    4097,    32767,       32768,         32769,    65535,
    65536,   65537, MIB - 1, MIB,  MIB + 1, 2 * MIB, 2 * MIB + 1, 3 * MIB + 123, 16 * MIB, 16 * MIB + 1,
    64 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

/* A size as programs ask for: small ones often, large ones sometimes. */
static uint64_t size_random(uint64_t random)
{
    uint64_t bits = 1 + random % 16 + (random >> 8 & 7u) % 5;

    return 1 + (random >> 16) % ((uint64_t)1 << bits);
}

/* ---- blocks of every size ---- */

void chk_pool_sizes(chk_env *env)
{
    static const uint32_t alignments[] = {64, 256, 4096};

    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        chk_pool p, as = {.alignment = alignments[a]};

        chk_pool_open(&p, env, CHK_HOST_EXACT, &as);
        for (size_t i = 0; i < SIZES; i++)
            (void)chk_pool_must(&p, sizes[i]);
        chk_pool_give_all(&p);
        for (size_t i = SIZES; i-- > 0;) /* once more, out of what is cached */
            (void)chk_pool_must(&p, sizes[i] - (sizes[i] > 1));
        chk_pool_close(&p);
    }
}

void chk_pool_huge(chk_env *env)
{
    static const uint64_t huge[] = {UINT64_MAX,        UINT64_MAX - 1,     UINT64_MAX - 63,
                                    UINT64_MAX - 4095, UINT64_MAX / 2 + 1, (uint64_t)INT64_MAX,
                                    (uint64_t)1 << 62, (uint64_t)1 << 48};
    chk_pool p;
    tn_status st;

    chk_pool_open(&p, env, CHK_HOST_EXACT, NULL);
    (void)chk_pool_must(&p, 1000);
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++)
        if (chk_pool_take(&p, huge[i], 0, &st))
            chk_fail(env, NULL, "gives a block of %llu bytes, which no device has",
                     (unsigned long long)huge[i]);
    (void)chk_pool_must(&p, 1000);
    chk_pool_close(&p);
}

/* ---- a random life against the oracle ---- */

static void step(chk_pool *p, uint64_t random)
{
    tn_status st;

    if (p->block_count && (random & 7u) < 3 + (p->block_count > 200) * 3)
        chk_pool_give(p, &p->blocks[(random >> 8) % p->block_count], 0);
    else if (!chk_pool_take(p, size_random(random >> 3), 0, &st))
        chk_fail(p->env, NULL, "a block is refused, though the device has memory");
    if ((random >> 40) % 64 == 0)
        p->ops->trim(p->pool, (random >> 48) % 3 * 65536);
}

void chk_pool_trace(chk_env *env)
{
    uint32_t rounds = env->sizes ? 40 : 4, steps = env->sizes ? 5000 : 1500;

    for (uint32_t r = 0; r < rounds; r++) {
        chk_pool p;

        chk_pool_open(&p, env, CHK_HOST_EXACT, NULL);
        for (uint32_t i = 0; i < steps; i++)
            step(&p, chk_random(env));
        if (r % 2)
            chk_pool_give_all(&p);
        chk_pool_close(&p);
    }
}

void chk_pool_stats(chk_env *env)
{
    chk_pool p;

    chk_pool_open(&p, env, CHK_HOST_EXACT, NULL);
    chk_pool_stats_check(&p);
    for (uint32_t i = 0; i < 400; i++) {
        step(&p, chk_random(env));
        chk_pool_stats_check(&p);
    }
    chk_pool_give_all(&p);
    chk_pool_stats_check(&p);
    p.ops->trim(p.pool, 0);
    chk_pool_stats_check(&p);
    chk_pool_close(&p);
}

/* The memory may be a device's: the pool keeps its books elsewhere. */
void chk_pool_untouched(chk_env *env)
{
    chk_pool p, as = {.untouchable = true};

    chk_pool_open(&p, env, CHK_HOST_EXACT, &as);
    for (uint32_t i = 0; i < 300; i++)
        step(&p, chk_random(env));
    chk_pool_stats_check(&p);
    chk_pool_close(&p);
}

/* ---- giving back ---- */

void chk_pool_trim(chk_env *env)
{
    uint64_t taken, kept;
    chk_pool p;

    chk_pool_open(&p, env, CHK_HOST_EXACT, NULL);
    for (size_t i = 0; i < SIZES; i++)
        (void)chk_pool_must(&p, sizes[i]);
    p.ops->trim(p.pool, 0); /* nothing that is out goes */
    chk_count(env);
    chk_pool_give_all(&p);
    taken = p.takes;
    kept = p.given;
    p.ops->trim(p.pool, kept);
    if (p.takes != taken)
        chk_fail(env, NULL, "trim to %llu bytes, which is all that is cached, leaves %llu",
                 (unsigned long long)kept, (unsigned long long)p.given);
    for (uint64_t keep = 128 * MIB; keep; keep /= 8) {
        p.ops->trim(p.pool, keep);
        if (p.given > keep)
            chk_fail(env, NULL, "trim to %llu bytes keeps %llu", (unsigned long long)keep,
                     (unsigned long long)p.given);
        chk_count(env);
    }
    p.ops->trim(p.pool, 0);
    if (p.given)
        chk_fail(env, NULL, "with no block out, trim to 0 keeps %llu bytes", (unsigned long long)p.given);
    (void)chk_pool_must(&p, 5000);
    chk_pool_close(&p);
}

/* What is refused leaves nothing behind in the host. */
static void refused_again(chk_pool *p)
{
    uint64_t before;
    tn_status st;

    (void)chk_pool_take(p, 60 * MIB, 0, &st);
    before = chk_host_memory(p->plugin.host, NULL);
    for (int i = 0; i < 20; i++)
        (void)chk_pool_take(p, 60 * MIB, 0, &st);
    chk_host_left(p->plugin.host, before, "20 allocations that are refused");
}

/* Full: what is cached in other sizes goes back to the device before an allocation is refused. */
void chk_pool_full(chk_env *env)
{
    chk_pool p, as = {.limit = 67 * MIB + 4096};
    tn_status st;

    chk_pool_open(&p, env, CHK_HOST_EXACT, &as);
    for (int i = 0; i < 16; i++)
        (void)chk_pool_must(&p, 2 * MIB);
    chk_pool_give_all(&p);
    (void)chk_pool_must(&p, 40 * MIB);
    chk_pool_give_all(&p);
    for (int i = 0; i < 16; i++)
        (void)chk_pool_must(&p, 2 * MIB);
    while (p.block_count < CHK_BLOCKS_MAX - 1 && chk_pool_take(&p, 3 * MIB, 0, &st))
        chk_count(env);
    refused_again(&p);
    chk_pool_stats_check(&p);
    chk_pool_give_all(&p);
    (void)chk_pool_must(&p, 40 * MIB);
    chk_pool_close(&p);
}

void chk_pool_destroy(chk_env *env)
{
    uint64_t before = 0;

    for (int i = 0; i < 6; i++) {
        chk_pool p;

        chk_pool_begin(&p, env, CHK_HOST_EXACT, NULL);
        for (int k = 0; k < 3; k++) {
            tn_err err;

            chk_fail_if(env, chk_pool_create(&p, &err), NULL, "create fails: %s", err.message);
            for (int n = 0; n < 20 * i; n++)
                step(&p, chk_random(env));
            if (k < 2) { /* with blocks out */
                p.ops->destroy(p.pool);
                p.block_count = 0;
            }
        }
        chk_pool_close(&p);
        before = i < 2 ? chk_host_memory(p.plugin.host, NULL) : before;
        chk_count(env);
        chk_host_left(p.plugin.host, before, "destroy");
    }
}

/* ---- where memory fails ---- */

static void nomem_life(chk_env *env, chk_pool *p, bool *complete)
{
    tn_status st = TN_OK;
    tn_err err;

    if ((st = chk_pool_create(p, &err))) {
        if (st != TN_E_NOMEM)
            chk_fail(env, NULL, "create fails with %s instead of TN_E_NOMEM", tn_status_name(st));
        return;
    }
    for (size_t i = 0; i < 12; i++) {
        (void)chk_pool_take(p, sizes[i * 2], 0, &st);
        if (i % 3 == 2 && p->block_count)
            chk_pool_give(p, &p->blocks[0], 0);
        if (!st && i % 4 == 3)
            p->ops->trim(p->pool, 4096);
    }
    *complete = !p->failed && !chk_host_failed(p->plugin.host);
    chk_host_fail_at(p->plugin.host, 0);
    p->fail_at = 0;
    chk_pool_stats_check(p);
    for (size_t i = 0; i < 12; i++)
        (void)chk_pool_must(p, sizes[i]);
    chk_pool_give_all(p);
}

/* The n-th allocation fails, of the device (even rounds) or of the host: nothing is lost, and it goes on
 * after. */
void chk_pool_memory(chk_env *env)
{
    bool device_over = false, host_over = false;
    uint64_t before;

    for (uint64_t nth = 1; (!device_over || !host_over) && nth < 1000; nth++)
        for (int host = 0; host < 2; host++) {
            bool *over = host ? &host_over : &device_over;
            chk_pool p;

            if (*over)
                continue;
            chk_pool_begin(&p, env, CHK_HOST_EXACT, NULL);
            before = chk_host_memory(p.plugin.host, NULL);
            if (host)
                chk_host_fail_at(p.plugin.host, nth);
            else
                p.fail_at = nth;
            nomem_life(env, &p, over);
            chk_host_fail_at(p.plugin.host, 0);
            if (p.pool)
                p.ops->destroy(p.pool);
            p.pool = NULL;
            chk_host_left(p.plugin.host, before, "where allocation %llu of the %s fails",
                          (unsigned long long)nth, host ? "host" : "device");
            chk_pool_close(&p);
            chk_count(env);
        }
}

/* ---- streams ---- */

static void streams_step(chk_pool *p, uint64_t random)
{
    const uintptr_t stream = 1 + (random >> 32) % STREAMS;
    tn_status st;

    if (p->block_count && (random & 7u) < 3 + (p->block_count > 60) * 3)
        chk_pool_give(p, &p->blocks[(random >> 8) % p->block_count], stream);
    else
        (void)chk_pool_take(p, size_random(random >> 3), stream, &st);
    for (size_t m = p->mark_count; m-- > 0 && p->mark_count - m < 64;) /* streams move on */
        if ((random >> 20) % 7 == m % 7)
            chk_pool_mark_done(p, m);
    if ((random >> 40) % 64 == 0)
        p->ops->trim(p->pool, (random >> 48) % 3 * 65536);
}

/* What has no mark stays its stream's. */
static void streams_unmarked(chk_env *env)
{
    chk_pool p, as = {.streams = true, .marks_fail = 5};

    chk_pool_open(&p, env, CHK_HOST_EXACT, &as);
    for (uint32_t i = 0; i < 500; i++)
        streams_step(&p, chk_random(env));
    while (p.block_count)
        chk_pool_give(&p, &p.blocks[0], 1 + p.block_count % STREAMS);
    chk_pool_stats_check(&p);
    chk_pool_close(&p);
}

void chk_pool_streams(chk_env *env)
{
    chk_pool p, as = {.streams = true, .limit = 32 * MIB};
    uint32_t steps = env->sizes ? 8000 : 2000;

    chk_pool_open(&p, env, CHK_HOST_EXACT, &as);
    for (uint32_t i = 0; i < steps; i++)
        streams_step(&p, chk_random(env));
    while (p.block_count)
        chk_pool_give(&p, &p.blocks[0], 1 + p.block_count % STREAMS);
    chk_pool_stats_check(&p);
    chk_pool_marks_finish(&p);
    p.ops->trim(p.pool, 0);
    if (p.given)
        chk_fail(env, "P-trim", "all streams are done, and trim to 0 keeps %llu bytes",
                 (unsigned long long)p.given);
    chk_pool_close(&p);
    streams_unmarked(env);
}

/* ---- threads ---- */

typedef struct worker {
    chk_pool pool;
    pthread_t id;
    uint64_t random;
} worker;

static void *work(void *arg)
{
    worker *w = arg;

    for (uint32_t i = 0; i < 1500; i++) {
        w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
        step(&w->pool, w->random >> 16);
    }
    return NULL;
}

/* One pool is one caller's at a time; two pools are two callers'. */
void chk_pool_threads(chk_env *env)
{
    static worker workers[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        chk_pool_open(&workers[i].pool, env, CHK_HOST_EXACT, NULL);
        workers[i].random = chk_random(env);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        chk_fail_if(env, pthread_create(&workers[i].id, NULL, work, &workers[i]), "kit", "no thread");
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(workers[i].id, NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        chk_pool_close(&workers[i].pool);
}

/* ---- hosts ---- */

void chk_pool_hosts(chk_env *env)
{
    static const chk_host_kind kinds[] = {CHK_HOST_OLD, CHK_HOST_FUTURE, CHK_HOST_BARE};

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        chk_pool p, as = {.streams = true};

        chk_pool_open(&p, env, kinds[k], &as);
        for (uint32_t i = 0; i < 200; i++)
            step(&p, chk_random(env));
        chk_pool_stats_check(&p);
        chk_fail_if(env, !chk_struct_intact(p.source), NULL, "writes behind the end of the source's table");
        chk_pool_close(&p);
    }
}
