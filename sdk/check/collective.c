/*
 * The tests of collectives. A crew is a job: its ranks are threads of this process, each with a communicator
 * of its own; or, of a collective with TN_COLLECTIVE_LAUNCHED, this process is one rank of the job that the
 * launcher made, and the kit runs on each of them alike (`mpirun -n 2 tenon plugins check …`). What each rank
 * puts into a call follows from the seed, so each knows what has to come out.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "lab.h"

#define RANKS 3u
#define PARTS 4u
#define CANARY 0xA5u
#define CANARIES 32u
#define TAIL 48u /* bytes of an event that only a later host knows */
#define EVENTS 4u
#define LIMIT_NS 60000000000u
#define LATE_NS 6000000000u /* that a failure may come late on a busy machine */
#define DEADLINE_NS 300000000u
#define GIVES_UP "the kit gives up"

struct rank;

typedef struct crew {
    chk_env *env;
    chk_host_kind kind;
    chk_plugin plugin;
    const tn_collective_ops *ops;
    void (*script)(struct rank *r);
    char job[64];
    uint32_t ranks;
    atomic_bool launched;
    atomic_uint arrived; /* ranks of this process that have come to a barrier */
    atomic_bool failed;  /* it was to: memory may stay */
} crew;

typedef struct rank {
    crew *crew;
    tn_communicator *c;
    uint32_t rank;
    uint64_t turn, calls; /* calls: numbers them */
    uint8_t *events;
} rank;

typedef struct deed { /* a call, its memory, and what came of it */
    tn_collective_call call;
    tn_collective_part parts[PARTS];
    uint8_t *in[PARTS], *out[PARTS];
    uint64_t number;
    bool ended;
    tn_status status;
    char text[200];
} deed;

/* ---- numbers ------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The same on all ranks, which make the same turns. */
static uint64_t draw(rank *r)
{
    return mix(r->crew->env->seed * 0x9E3779B97F4A7C15u + ++r->turn);
}

/* One loop for each type; sums of floats depend on the order, since they differ in size. */
#define TYPES(each)                                                                                          \
    each(TN_F32, float) each(TN_F64, double) each(TN_I32, int32_t) each(TN_I64, int64_t) each(TN_U8, uint8_t)
static const int32_t types[] = {TN_F32, TN_F64, TN_I32, TN_I64, TN_U8};

static void value_put(int32_t dtype, uint64_t seed, uint64_t i, void *to)
{
    const uint64_t h = mix(seed + i * 0x9E3779B97F4A7C15u);
    const int64_t scaled = ((int64_t)(h % 20001) - 10000) * ((int64_t)1 << (h >> 40) % 20);

    switch (dtype) {
#define PUT(dtype_, T)                                                                                       \
    case dtype_:                                                                                             \
        ((T *)to)[i] = dtype_ == TN_U8 ? (T)(h % 60) : (T)scaled;                                            \
        break;
        TYPES(PUT)
#undef PUT
    default:
        break;
    }
}

/* The host's addition; integers wrap. */
#define PLUS(T, a, b) ((T)0.5 > 0 ? (T)((a) + (b)) : (T)((uint64_t)(a) + (uint64_t)(b)))
static void add(int32_t dtype, uint64_t count, const void *from, void *into)
{
    switch (dtype) {
#define ADD(dtype_, T)                                                                                       \
    case dtype_:                                                                                             \
        for (uint64_t i = 0; i < count; i++)                                                                 \
            ((T *)into)[i] = PLUS(T, ((T *)into)[i], ((const T *)from)[i]);                                  \
        break;
        TYPES(ADD)
#undef ADD
    default:
        break;
    }
}

static uint64_t seed_of(const rank *r, const deed *d, uint32_t of, uint32_t part)
{
    return mix(r->crew->env->seed + d->number * 64 + of * 8 + part);
}

/* What part `p` has to be in the end. */
static void expected_put(const rank *r, const deed *d, uint32_t p, void *to, void *other)
{
    const uint64_t count = d->parts[p].count;
    const bool sum = d->call.kind == TN_COLLECTIVE_SUM;

    for (uint32_t of = 0; of < (sum ? r->crew->ranks : 1); of++) {
        void *at = of ? other : to;

        for (uint64_t i = 0; i < count; i++)
            value_put(d->call.dtype, seed_of(r, d, sum ? of : d->call.root, p), i, at);
        if (of)
            add(d->call.dtype, count, other, to);
    }
}

/* Sums of floats in another order are near. */
static bool is_near(const deed *d, const void *a, const void *b, uint64_t count)
{
    const double most = 1e-2 * (double)(1u << 20);

    for (uint64_t i = 0; i < count; i++)
        if (d->call.dtype == TN_F32 ? !(((const float *)a)[i] - ((const float *)b)[i] < most &&
                                        ((const float *)b)[i] - ((const float *)a)[i] < most)
                                    : !(((const double *)a)[i] - ((const double *)b)[i] < most &&
                                        ((const double *)b)[i] - ((const double *)a)[i] < most))
            return false;
    return true;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static pthread_mutex_t structs = PTHREAD_MUTEX_INITIALIZER; /* those of chk_struct_make are the case's */

static void *struct_make(const rank *r, const void *from, uint32_t now)
{
    void *made;

    (void)pthread_mutex_lock(&structs);
    made = chk_struct_make(r->crew->env, r->crew->kind, from, now, now);
    (void)pthread_mutex_unlock(&structs);
    return made;
}

static void struct_free(void *made)
{
    (void)pthread_mutex_lock(&structs);
    chk_struct_free(made);
    (void)pthread_mutex_unlock(&structs);
}

static void *block_make(chk_env *env, uint64_t bytes)
{
    uint8_t *data = malloc(bytes + CANARIES);

    chk_fail_if(env, !data, "kit", "out of memory");
    memset(data, CANARY, bytes + CANARIES);
    return data;
}

/* A call of so many parts of one type, some of them empty, some in place. */
static void deed_make(rank *r, deed *d, uint32_t kind, uint32_t flags, uint64_t count_max)
{
    const uint64_t h = draw(r);
    const uint32_t parts = kind == TN_COLLECTIVE_BARRIER ? 0 : 1 + (uint32_t)(h % PARTS);

    *d = (deed){.number = ++r->calls};
    d->call = (tn_collective_call){.struct_size = (uint32_t)TN_END(tn_collective_call, name),
                                   .flags = flags,
                                   .kind = kind,
                                   .dtype = types[h / 8 % (sizeof types / sizeof *types)],
                                   .root = (uint32_t)(h / 64 % r->crew->ranks),
                                   .part_count = parts,
                                   .parts = d->parts,
                                   .timeout_ns = LIMIT_NS,
                                   .cookie = d->number << 32 | 7,
                                   .name = "bucket of the kit"};
    for (uint32_t p = 0; p < parts; p++) {
        const uint64_t size = tn_dtype_bytes(d->call.dtype), g = draw(r);
        const uint64_t count = g % 5 ? (g >> 8) % (g % 3 ? 40 : count_max) : 0, bytes = count * size;

        d->out[p] = block_make(r->crew->env, bytes);
        d->in[p] = g >> 60 & 1 ? d->out[p] : block_make(r->crew->env, bytes);
        for (uint64_t i = 0; i < count; i++)
            value_put(d->call.dtype, seed_of(r, d, r->rank, p), i, d->in[p]);
        d->parts[p] = (tn_collective_part){d->in[p], d->out[p], count};
    }
}

static void deed_free(deed *d)
{
    for (uint32_t p = 0; p < d->call.part_count; p++) {
        if (d->in[p] != d->out[p])
            free(d->in[p]);
        free(d->out[p]);
    }
}

static tn_status deed_try(rank *r, deed *d, tn_err *err)
{
    void *made = struct_make(r, &d->call, (uint32_t)TN_END(tn_collective_call, name));
    tn_collective_part parts[PARTS];
    tn_status st;

    memcpy(parts, d->parts, sizeof parts);
    ((tn_collective_call *)made)->parts = parts;
    st = r->crew->ops->start(r->c, made, err);
    memset(parts, 0xEE, sizeof parts); /* the host's for the call alone */
    chk_fail_if(r->crew->env, !chk_struct_intact(made), "R3", "start writes to the host's call");
    struct_free(made);
    return st;
}

static void deed_start(rank *r, deed *d)
{
    tn_err err = {0};
    const tn_status st = deed_try(r, d, &err);

    chk_fail_if(r->crew->env, st, "C-start", "start fails with %s: %s", tn_status_name(st), err.message);
}

static uint32_t stride_of(const crew *w)
{
    return (uint32_t)TN_END(tn_collective_event, text) + (w->kind == CHK_HOST_FUTURE ? TAIL : 0);
}

static void event_take(rank *r, const tn_collective_event *e, deed *deeds, uint32_t count)
{
    chk_env *env = r->crew->env;

    for (uint32_t i = 0; i < count; i++) {
        deed *d = &deeds[i];

        if (d->call.cookie != e->cookie)
            continue;
        chk_fail_if(env, d->ended, "C-end", "a call ends twice");
        chk_fail_if(env, e->status && !e->text, "C-end", "a call fails without a text");
        d->ended = true;
        d->status = e->status;
        (void)snprintf(d->text, sizeof d->text, "%s", e->text ? e->text : "");
        return;
    }
    chk_fail(env, "C-end", "an end comes with the cookie %#llx, which no call under way has",
             (unsigned long long)e->cookie);
}

/* One poll; how many ends came. TN_E_PEER goes into `*failed`. */
static uint32_t poll_once(rank *r, uint64_t timeout_ns, deed *deeds, uint32_t count, bool *failed)
{
    chk_env *env = r->crew->env;
    const uint32_t stride = stride_of(r->crew);
    uint32_t got = EVENTS;
    tn_err err = {0};
    tn_status st;

    memset(r->events, 0xEE, (size_t)EVENTS * stride);
    for (uint32_t i = 0; i < EVENTS; i++) {
        tn_collective_event *e = (tn_collective_event *)(void *)(r->events + (size_t)i * stride);

        *e = (tn_collective_event){.struct_size = stride};
    }
    st = r->crew->ops->poll(r->c, (tn_collective_event *)(void *)r->events, &got, timeout_ns, &err);
    if (failed)
        *failed = st == TN_E_PEER;
    else
        chk_fail_if(env, st, "C-end", "poll fails with %s: %s", tn_status_name(st), err.message);
    if (st)
        return 0;
    chk_fail_if(env, got > EVENTS, "C-end", "poll fills in %u events of %u", got, EVENTS);
    for (uint32_t i = 0; i < EVENTS; i++) {
        const tn_collective_event *e = (const tn_collective_event *)(void *)(r->events + (size_t)i * stride);

        chk_fail_if(env, e->struct_size != stride, "R3", "poll writes events at a distance of its own");
        for (uint32_t k = (uint32_t)TN_END(tn_collective_event, text); k < stride; k++)
            chk_fail_if(env, ((const uint8_t *)e)[k] != 0xEE, "R3", "poll writes behind an event");
        if (i < got)
            event_take(r, e, deeds, count);
    }
    return got;
}

static void until_ended(rank *r, deed *deeds, uint32_t count)
{
    const uint64_t begun = chk_clock_ns(CLOCK_MONOTONIC);
    uint32_t left = 0;

    for (uint32_t i = 0; i < count; i++)
        left += !deeds[i].ended;
    while (left) {
        left -= poll_once(r, 100000000, deeds, count, NULL);
        chk_fail_if(r->crew->env, left && chk_clock_ns(CLOCK_MONOTONIC) - begun > LIMIT_NS, "C-end",
                    "a call does not end in a minute");
    }
}

static void deed_check(rank *r, const deed *d)
{
    chk_env *env = r->crew->env;
    const bool sums = d->call.kind == TN_COLLECTIVE_SUM;
    const bool exact = !sums || d->call.flags & TN_COLLECTIVE_ORDERED || d->call.dtype > TN_F64;

    chk_fail_if(env, d->status, "C-end", "a call ends with %s: %s", tn_status_name(d->status), d->text);
    for (uint32_t p = 0; p < d->call.part_count; p++) {
        const uint64_t bytes = d->parts[p].count * tn_dtype_bytes(d->call.dtype);
        void *want = block_make(env, bytes), *other = block_make(env, bytes);

        expected_put(r, d, p, want, other);
        if (exact ? memcmp(want, d->out[p], bytes) != 0 : !is_near(d, want, d->out[p], d->parts[p].count))
            chk_fail(env, NULL, "part %u of %u, %llu elements of %s: rank %u has another %s than %s", p,
                     d->call.part_count, (unsigned long long)d->parts[p].count, tn_dtype_name(d->call.dtype),
                     r->rank, sums ? "sum" : "value",
                     !sums   ? "the root's"
                     : exact ? "that in the order of ranks"
                             : "those that came");
        for (uint32_t i = 0; i < CANARIES; i++)
            chk_fail_if(env, d->out[p][bytes + i] != CANARY, "C-bounds", "a byte behind a part is written");
        free(want);
        free(other);
    }
    chk_count(env);
}

/* ---- crews -------------------------------------------------------------------------------------------- */

static tn_status rank_open(rank *r, uint32_t ranks, tn_err *err)
{
    crew *w = r->crew;
    const tn_collective_config config = {.struct_size = (uint32_t)TN_END(tn_collective_config, add),
                                         .rank = r->rank,
                                         .ranks = ranks,
                                         .job = w->job,
                                         .timeout_ns = LIMIT_NS,
                                         .add = add};
    void *made = struct_make(r, &config, (uint32_t)TN_END(tn_collective_config, add)), *info;
    const tn_status st = w->ops->open(w->plugin.self, made, &r->c, err);
    tn_collective_info got = {.struct_size = (uint32_t)TN_END(tn_collective_info, count_max)};

    struct_free(made);
    if (st == TN_E_DEVICE && *err->message) /* as of a machine without one */
        chk_skip(w->env, "%s", err->message);
    if (st)
        return st;
    info = struct_make(r, &got, (uint32_t)TN_END(tn_collective_info, count_max));
    w->ops->info(r->c, info);
    memcpy(&got, info, TN_END(tn_collective_info, count_max));
    chk_fail_if(w->env, !chk_struct_intact(info), "R3", "info writes behind the end of the host's struct");
    struct_free(info);
    chk_fail_if(w->env, got.flags & ~TN_COLLECTIVE_KNOWN, "C-open", "info says flags without a meaning");
    chk_fail_if(w->env, got.rank >= got.ranks || (ranks && (got.rank != r->rank || got.ranks != ranks)),
                "C-open", "info says rank %u of %u", got.rank, got.ranks);
    chk_fail_if(w->env, !ranks && !(got.flags & TN_COLLECTIVE_LAUNCHED), "C-open",
                "open without ranks is TN_OK, but TN_COLLECTIVE_LAUNCHED is not said");
    r->rank = got.rank;
    atomic_store(&w->launched, (got.flags & TN_COLLECTIVE_LAUNCHED) != 0);
    if (!ranks)
        w->ranks = got.ranks;
    return TN_OK;
}

static void rank_play(rank *r)
{
    r->events = malloc((size_t)EVENTS * stride_of(r->crew));
    chk_fail_if(r->crew->env, !r->events, "kit", "out of memory");
    r->crew->script(r);
    if (r->c)
        r->crew->ops->close(r->c, LATE_NS);
    free(r->events);
}

static void rank_main(void *arg)
{
    rank *r = arg;
    tn_err err = {0};
    const tn_status st = rank_open(r, r->crew->ranks, &err);

    chk_fail_if(r->crew->env, st, "C-open", "open of rank %u of %u fails with %s: %s", r->rank,
                r->crew->ranks, tn_status_name(st), err.message);
    rank_play(r);
}

static void crew_run(chk_env *env, chk_host_kind kind, uint32_t ranks, void (*script)(rank *r))
{
    crew w = {.env = env, .kind = kind, .script = script, .ranks = ranks};
    rank all[RANKS] = {{.crew = &w}};
    void *args[RANKS];
    tn_err err = {0};
    uint64_t before;
    tn_status st;

    w.ops = chk_capability(env, TN_KIND_COLLECTIVE, env->subject, NULL);
    (void)snprintf(w.job, sizeof w.job, "kit %llu", (unsigned long long)env->seed);
    (void)chk_plugin_open(env, kind, &w.plugin);
    before = chk_host_memory(w.plugin.host, NULL);
    if (!(st = rank_open(&all[0], 0, &err))) {
        rank_play(&all[0]);
    } else {
        chk_fail_if(env, st != TN_E_ARG, "C-open", "open without ranks fails with %s: %s", tn_status_name(st),
                    err.message);
        /* other cases, of this kit and of others, may run now */
        (void)snprintf(w.job, sizeof w.job, "kit %ld %llu", (long)getpid(), (unsigned long long)env->seed);
        for (uint32_t i = 0; i < ranks; i++) {
            all[i] = (rank){.crew = &w, .rank = i};
            args[i] = &all[i];
        }
        chk_fail_if(env, chk_together(ranks, rank_main, args) < ranks, "kit", "no thread");
    }
    if (!atomic_load(&w.failed))
        chk_host_left(w.plugin.host, before, "communicators that were closed");
    (void)chk_plugin_close(env, &w.plugin);
}

static bool is_alone(const rank *r)
{
    if (r->crew->ranks > 1)
        return false;
    chk_skip(r->crew->env, "one rank alone: run the kit under the collective's launcher, on two ranks");
}

/* ---- the tests ---------------------------------------------------------------------------------------- */

static void sums_make(rank *r)
{
    for (uint32_t n = 0; n < 60; n++) {
        deed d;

        deed_make(r, &d, TN_COLLECTIVE_SUM, n % 2 ? TN_COLLECTIVE_ORDERED : 0, n % 20 ? 3000 : 200000);
        deed_start(r, &d);
        until_ended(r, &d, 1);
        deed_check(r, &d);
        deed_free(&d);
    }
}

void chk_collective_sum(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, sums_make);
}

static void broadcasts_make(rank *r)
{
    for (uint32_t n = 0; n < 40; n++) {
        deed d;

        deed_make(r, &d, TN_COLLECTIVE_BROADCAST, 0, 3000);
        deed_start(r, &d);
        until_ended(r, &d, 1);
        deed_check(r, &d);
        deed_free(&d);
    }
}

void chk_collective_broadcast(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, broadcasts_make);
}

/* Many calls under way, which ranks start at moments of their own. */
static void crowds_make(rank *r)
{
    enum { CROWD = 16 };
    deed d[CROWD];

    for (uint32_t n = 0; n < 8; n++) {
        for (uint32_t i = 0; i < CROWD; i++) {
            const uint64_t h = draw(r);

            deed_make(r, &d[i],
                      h % 8 ? (h % 3 ? TN_COLLECTIVE_SUM : TN_COLLECTIVE_BROADCAST) : TN_COLLECTIVE_BARRIER,
                      h % 8 && h % 3 && h % 5 ? TN_COLLECTIVE_ORDERED : 0, h % 31 ? 2000 : 200000);
            deed_start(r, &d[i]);
            if (mix(h + r->rank) % 4 == 0)
                chk_sleep_us((uint32_t)(mix(h - r->rank) % 2000));
            if (mix(h ^ r->rank) % 3 == 0)
                (void)poll_once(r, 0, d, i + 1, NULL);
        }
        until_ended(r, d, CROWD);
        for (uint32_t i = 0; i < CROWD; i++) {
            deed_check(r, &d[i]);
            deed_free(&d[i]);
        }
    }
}

void chk_collective_order(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, crowds_make);
}

static void barriers_make(rank *r)
{
    crew *w = r->crew;

    for (uint32_t n = 1; n <= 10; n++) {
        deed d;

        deed_make(r, &d, TN_COLLECTIVE_BARRIER, 0, 0);
        if (r->rank == n % w->ranks)
            chk_sleep_us(20000);
        (void)atomic_fetch_add(&w->arrived, 1);
        deed_start(r, &d);
        until_ended(r, &d, 1);
        deed_check(r, &d);
        if (!w->launched)
            chk_fail_if(w->env, atomic_load(&w->arrived) < n * w->ranks, NULL,
                        "a barrier ends before all ranks have started it");
    }
}

void chk_collective_barrier(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, barriers_make);
}

/* Polls until the communicator has failed. */
static void until_failed(rank *r, deed *deeds, uint32_t count)
{
    const uint64_t begun = chk_clock_ns(CLOCK_MONOTONIC);
    bool failed = false;

    atomic_store(&r->crew->failed, true);
    while (!failed) {
        (void)poll_once(r, 50000000, deeds, count, &failed);
        chk_fail_if(r->crew->env, chk_clock_ns(CLOCK_MONOTONIC) - begun > DEADLINE_NS + LATE_NS, NULL,
                    "a job that cannot go on does not fail on rank %u", r->rank);
    }
}

/* A call that cannot end: it fails, and says so; so does the next one. */
static void fails(rank *r, uint64_t timeout_ns, const char *says)
{
    chk_env *env = r->crew->env;
    tn_err err = {0};
    deed d[2];

    for (uint32_t i = 0; i < 2; i++)
        do
            deed_make(r, &d[i], TN_COLLECTIVE_SUM, TN_COLLECTIVE_ORDERED, 2000);
        while (d[i].call.part_count == 0);
    d[0].call.timeout_ns = timeout_ns;
    if (!deed_try(r, &d[0], &err)) {
        until_failed(r, d, 1);
        chk_fail_if(env, !d[0].ended, "C-end", "the communicator has failed, and a call has not ended");
        chk_fail_if(env, d[0].status != TN_E_TIMEOUT && d[0].status != TN_E_PEER, NULL,
                    "a call that cannot end ends with %s", tn_status_name(d[0].status));
    } else {
        (void)snprintf(d[0].text, sizeof d[0].text, "%.199s", err.message);
    }
    chk_fail_if(env, !strstr(d[0].text, says), NULL, "the text of the failure has no \"%s\": %s", says,
                d[0].text);
    chk_fail_if(env, deed_try(r, &d[1], &err) != TN_E_PEER, NULL,
                "the communicator has failed, and start does not say TN_E_PEER");
    chk_count(env);
    for (uint32_t i = 0; i < 2; i++)
        deed_free(&d[i]);
}

static void deadline_pass(rank *r)
{
    if (is_alone(r))
        return;
    if (r->rank)
        fails(r, DEADLINE_NS, "rank 0");
    else
        until_failed(r, NULL, 0);
    chk_count(r->crew->env);
}

void chk_collective_deadline(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, deadline_pass);
}

static void last_aborts(rank *r)
{
    if (is_alone(r))
        return;
    if (r->rank + 1 < r->crew->ranks) {
        fails(r, LIMIT_NS, GIVES_UP);
        return;
    }
    r->crew->ops->abort(r->c, GIVES_UP);
    until_failed(r, NULL, 0);
    r->crew->ops->abort(r->c, "twice");
    chk_count(r->crew->env);
}

void chk_collective_abort(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, last_aborts);
}

static void first_leaves(rank *r)
{
    if (!is_alone(r)) {
        atomic_store(&r->crew->failed, true); /* also where the others are other processes */
        if (r->rank)
            fails(r, LIMIT_NS, "rank 0");
    }
    chk_count(r->crew->env);
}

void chk_collective_left(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, first_leaves);
}

#define TRIES 3u /* a busy machine may be late once */
#define TRY_NS 1000000000u

static void *wake_main(void *arg)
{
    const rank *r = arg;

    chk_sleep_us(50000);
    r->crew->ops->wake(r->c);
    return NULL;
}

/* Woken before, or from another thread while it waits. */
static void wake_try(rank *r, bool before)
{
    bool early = false;

    for (uint32_t n = 0; n < TRIES && !early; n++) {
        const uint64_t begun = chk_clock_ns(CLOCK_MONOTONIC);
        pthread_t id;

        if (before)
            r->crew->ops->wake(r->c);
        else
            chk_fail_if(r->crew->env, pthread_create(&id, NULL, wake_main, r), "kit", "no thread");
        (void)poll_once(r, TRY_NS, NULL, 0, NULL);
        early = chk_clock_ns(CLOCK_MONOTONIC) - begun < TRY_NS;
        if (!before)
            (void)pthread_join(id, NULL);
    }
    chk_fail_if(r->crew->env, !early, NULL, "wake %s does not end it",
                before ? "before poll" : "during poll");
    chk_count(r->crew->env);
}

static void wakes(rank *r)
{
    wake_try(r, true);
    wake_try(r, false);
}

void chk_collective_wake(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, 1, wakes);
}

/* Nothing of what is refused is under way: the next call works. */
static void refusals_make(rank *r)
{
    static const struct {
        const char *what;
        uint32_t kind, flags, root;
        int32_t dtype;
    } rows[] = {
        {"a kind 0", 0, 0, 0, TN_F32},
        {"a kind 4", 4, 0, 0, TN_F32},
        {"flags without a meaning", TN_COLLECTIVE_SUM, 0x80, 0, TN_F32},
        {"a root that is no rank", TN_COLLECTIVE_BROADCAST, 0, 65536, TN_F32},
        {"a type that is none", TN_COLLECTIVE_SUM, 0, 0, 9999},
        {"a type below 0", TN_COLLECTIVE_SUM, 0, 0, -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_err err = {0};
        tn_status st;
        deed d;

        do
            deed_make(r, &d, TN_COLLECTIVE_SUM, 0, 100);
        while (!d.call.part_count);
        d.call.kind = rows[i].kind;
        d.call.flags = rows[i].flags;
        d.call.root = rows[i].root;
        d.call.dtype = rows[i].dtype;
        st = deed_try(r, &d, &err);
        chk_fail_if(r->crew->env, st != TN_E_ARG, NULL, "start of a call with %s says %s, not TN_E_ARG",
                    rows[i].what, tn_status_name(st));
        deed_free(&d);
    }
    sums_make(r);
}

void chk_collective_refused(chk_env *env)
{
    crew_run(env, CHK_HOST_EXACT, RANKS, refusals_make);
}

/* A later communicator of the same plugin; hosts of other ages come one behind the other. */
void chk_collective_hosts(chk_env *env)
{
    crew_run(env, CHK_HOST_OLD, 2, broadcasts_make);
}

void chk_collective_future(chk_env *env)
{
    crew_run(env, CHK_HOST_FUTURE, 2, crowds_make);
}

void chk_collective_bare(chk_env *env)
{
    crew_run(env, CHK_HOST_BARE, 2, sums_make);
}
