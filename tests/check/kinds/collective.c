/*
 * The reference collective: ranks are threads of one process, which meet at a board of their job. A rank that
 * starts a call copies its values to the board; the call ends on each rank when all have. PLANTED says what
 * is wrong with it, NAME what it is called.
 */
#include "tenon/plugin/collective.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    HEALTHY,
    OTHER_ORDER,   /* ordered sums begin with the last rank */
    PART_LOST,     /* the last part of a bucket is not written */
    BEYOND,        /* a byte behind a part is written */
    FIRST_ROOT,    /* a broadcast is always that of rank 0 */
    EARLY_BARRIER, /* a barrier ends at once */
    ENDS_TWICE,    /* every tenth end comes twice */
    OTHER_COOKIE,  /* it comes with another cookie */
    NAMELESS,      /* a late rank is not named */
    NO_DEADLINE,   /* calls wait for ever */
    SILENT_ABORT,  /* the others do not hear why */
    STAYS,         /* a rank that has left is waited for */
    WAKE_LOST,     /* wake does nothing */
    TAKES_ALL,     /* calls that are none are taken */
    STRIDE,        /* events are written at a distance of its own */
    BLOCK_LEFT,    /* a communicator leaves memory behind */
    GROWS,         /* open reads a member that an old host does not have */
};

#define RANKS_MAX 8u
#define CALLS_MAX 64u /* of a board, under way */
#define WORDS 200u

typedef struct post { /* a rank's part in a call */
    uint8_t *data;    /* of all its parts; NULL: it has not come */
    bool taken;
} post;

typedef struct board {
    struct board *next;
    char job[64];
    uint32_t ranks, users;
    bool come[RANKS_MAX], left[RANKS_MAX];
    uint64_t started[RANKS_MAX];
    post posts[CALLS_MAX][RANKS_MAX];
    char failed[WORDS]; /* "": it works */
} board;

typedef struct pending {
    struct pending *next;
    tn_collective_call call;
    uint64_t number, bytes, end_ns;
    tn_collective_part parts[];
} pending;

struct tn_communicator {
    board *b;
    uint32_t rank;
    void (*add)(int32_t dtype, uint64_t count, const void *from, void *into);
    pending *calls;
    bool woken, twice;
    uint64_t ends;
    tn_collective_event again;
    char text[WORDS];
};

static pthread_mutex_t boards_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t boards_moved = PTHREAD_COND_INITIALIZER; /* anything of any board */
static board *boards;

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t); /* of pthread_cond_timedwait */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* [locked] False: it is `end_ns`. */
static bool wait_until(uint64_t end_ns)
{
    const struct timespec t = {.tv_sec = (time_t)(end_ns / 1000000000u),
                               .tv_nsec = (long)(end_ns % 1000000000u)};

    return !pthread_cond_timedwait(&boards_moved, &boards_lock, &t) || now_ns() < end_ns;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

/* [locked] */
static board *board_find(const tn_collective_config *config)
{
    board *b = boards;

    while (b && (strcmp(b->job, config->job) != 0 || b->come[config->rank] || b->ranks != config->ranks))
        b = b->next;
    if (b || !(b = calloc(1, sizeof *b)))
        return b;
    (void)snprintf(b->job, sizeof b->job, "%s", config->job);
    b->ranks = config->ranks;
    b->next = boards;
    boards = b;
    return b;
}

static bool all_came(const board *b)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        if (!b->come[i])
            return false;
    return true;
}

/* [locked] The last one takes it away. */
static void board_leave(board *b, uint32_t rank)
{
    board **at = &boards;

    b->left[rank] = true;
    (void)pthread_cond_broadcast(&boards_moved);
    if (--b->users)
        return;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    for (uint32_t n = 0; n < CALLS_MAX; n++)
        for (uint32_t r = 0; r < RANKS_MAX; r++)
            free(b->posts[n][r].data);
    free(b);
}

static tn_status board_open(void *plugin, const tn_collective_config *config, tn_communicator **out,
                            tn_err *err)
{
    const uint64_t end_ns = now_ns() + config->timeout_ns;
    tn_communicator *c;
    bool late = false;

    (void)plugin;
    if (config->flags || !config->add || config->rank >= config->ranks || config->ranks > RANKS_MAX)
        return tn_fail(err, TN_E_ARG, "no rank of a job");
    if (PLANTED == GROWS && ((const char *)(config + 1))[0] == 'x')
        return tn_fail(err, TN_E_ARG, "a member of tomorrow");
    if (!(c = calloc(1, sizeof *c)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    (void)pthread_mutex_lock(&boards_lock);
    if ((c->b = board_find(config))) {
        c->rank = config->rank;
        c->add = config->add;
        c->b->users++;
        c->b->come[c->rank] = true;
        (void)pthread_cond_broadcast(&boards_moved);
        while (!all_came(c->b) && !late)
            late = !wait_until(end_ns);
        if (late)
            board_leave(c->b, c->rank);
    }
    (void)pthread_mutex_unlock(&boards_lock);
    if (c->b && !late) {
        *out = c;
        return TN_OK;
    }
    late = late && c->b;
    free(c);
    return late ? tn_fail(err, TN_E_TIMEOUT, "ranks did not come")
                : tn_fail(err, TN_E_NOMEM, "out of memory");
}

static void board_info(tn_communicator *c, tn_collective_info *out)
{
    out->flags = 0;
    out->rank = c->rank;
    out->ranks = c->b->ranks;
    out->count_max = UINT64_MAX;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static bool call_is(const tn_communicator *c, const tn_collective_call *call)
{
    const uint64_t bits = call->dtype < 0 || call->dtype > 64 ? 0 : tn_dtype_bits(call->dtype);

    return call->kind >= TN_COLLECTIVE_SUM && call->kind <= TN_COLLECTIVE_BARRIER &&
           !(call->flags & ~TN_COLLECTIVE_CALL_KNOWN) && call->root < c->b->ranks &&
           (call->kind == TN_COLLECTIVE_BARRIER ? !call->part_count : bits >= 8);
}

static uint64_t bytes_of(const pending *p, uint32_t part)
{
    return p->parts[part].count * tn_dtype_bytes(p->call.dtype);
}

static uint8_t *parts_copy(const pending *p, bool reads)
{
    uint8_t *data = calloc(1, p->bytes + 1), *at = data;

    for (uint32_t i = 0; data && reads && i < p->call.part_count; at += bytes_of(p, i++))
        if (bytes_of(p, i))
            memcpy(at, p->parts[i].in, bytes_of(p, i));
    return data;
}

static tn_status board_start(tn_communicator *c, const tn_collective_call *call, tn_err *err)
{
    pending *p, **last = &c->calls;
    uint8_t *data;

    if (!call_is(c, call) && !(PLANTED == TAKES_ALL))
        return tn_fail(err, TN_E_ARG, "no such call");
    if (!(p = calloc(1, sizeof *p + call->part_count * sizeof p->parts[0])))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    p->call = *call;
    if (call->part_count)
        memcpy(p->parts, call->parts, call->part_count * sizeof p->parts[0]);
    for (uint32_t i = 0; i < call->part_count; i++)
        p->bytes += bytes_of(p, i);
    data = parts_copy(p, call->kind == TN_COLLECTIVE_SUM || call->root == c->rank || PLANTED == FIRST_ROOT);
    (void)pthread_mutex_lock(&boards_lock);
    if (!data || c->b->failed[0]) {
        tn_status st =
            data ? tn_fail(err, TN_E_PEER, c->b->failed) : tn_fail(err, TN_E_NOMEM, "out of memory");

        (void)pthread_mutex_unlock(&boards_lock);
        free(data);
        free(p);
        return st;
    }
    p->number = c->b->started[c->rank]++;
    p->end_ns = now_ns() + call->timeout_ns;
    while (c->b->posts[p->number % CALLS_MAX][c->rank].data) /* others are that far behind */
        (void)pthread_cond_wait(&boards_moved, &boards_lock);
    c->b->posts[p->number % CALLS_MAX][c->rank].data = data;
    (void)pthread_cond_broadcast(&boards_moved);
    (void)pthread_mutex_unlock(&boards_lock);
    while (*last)
        last = &(*last)->next;
    *last = p;
    return TN_OK;
}

/* [locked] The result of `p` into its parts, and this rank's place on the board back. */
static void call_finish(tn_communicator *c, const pending *p)
{
    post *posts = c->b->posts[p->number % CALLS_MAX];
    const uint32_t ranks = c->b->ranks;
    uint64_t at = 0;
    bool all = true;

    for (uint32_t i = 0; i < p->call.part_count; at += bytes_of(p, i++)) {
        const bool sum = p->call.kind == TN_COLLECTIVE_SUM;
        const uint32_t first = PLANTED == OTHER_ORDER  ? ranks - 1
                               : sum                   ? 0
                               : PLANTED == FIRST_ROOT ? 0
                                                       : p->call.root;

        if (PLANTED == PART_LOST && i && i + 1 == p->call.part_count)
            continue;
        if (bytes_of(p, i))
            memcpy(p->parts[i].out, posts[sum || PLANTED == FIRST_ROOT ? first : p->call.root].data + at,
                   bytes_of(p, i));
        for (uint32_t r = 1; sum && r < ranks; r++)
            c->add(p->call.dtype, p->parts[i].count, posts[(first + r) % ranks].data + at, p->parts[i].out);
        if (PLANTED == BEYOND)
            ((uint8_t *)p->parts[i].out)[bytes_of(p, i)] ^= 1;
    }
    posts[c->rank].taken = true;
    for (uint32_t r = 0; r < ranks; r++)
        all = all && posts[r].taken;
    for (uint32_t r = 0; all && r < ranks; r++) {
        free(posts[r].data);
        posts[r] = (post){NULL, false};
    }
    (void)pthread_cond_broadcast(&boards_moved);
}

/* [locked] The ranks that have not come, or that have left; false: all have. */
static bool missing_say(const tn_communicator *c, const pending *p, bool late, char out[WORDS])
{
    bool any = false;

    for (uint32_t r = 0; r < c->b->ranks; r++) {
        if (c->b->started[r] > p->number || !(late || (c->b->left[r] && !(PLANTED == STAYS))))
            continue;
        any = true;
        (void)snprintf(out, WORDS, PLANTED == NAMELESS ? "somebody has not come to %s" : "%s: rank %u %s",
                       p->call.name, r, c->b->left[r] ? "has left" : "has not come");
        break;
    }
    return any;
}

/* [locked] 1: it has ended, 0: not yet. */
static bool call_over(tn_communicator *c, pending *p)
{
    const post *posts = c->b->posts[p->number % CALLS_MAX];
    bool all = true;

    for (uint32_t r = 0; r < c->b->ranks; r++)
        all = all && c->b->started[r] > p->number && posts[r].data;
    if (all || (PLANTED == EARLY_BARRIER && p->call.kind == TN_COLLECTIVE_BARRIER)) {
        if (all)
            call_finish(c, p);
        return true;
    }
    if (!c->b->failed[0] &&
        missing_say(c, p, now_ns() > p->end_ns && !(PLANTED == NO_DEADLINE), c->b->failed))
        (void)pthread_cond_broadcast(&boards_moved);
    return false;
}

static void event_put(tn_communicator *c, tn_collective_event *e, const pending *p, tn_status st)
{
    e->status = st;
    e->cookie = p->call.cookie + (PLANTED == OTHER_COOKIE && ++c->ends % 10 == 0);
    e->text = st ? c->text : NULL;
    if (PLANTED == ENDS_TWICE && ++c->ends % 10 == 0) {
        c->again = *e;
        c->twice = true;
    }
}

/* [locked] */
static uint32_t ends_take(tn_communicator *c, tn_collective_event *events, uint32_t most)
{
    uint32_t count = 0;

    (void)snprintf(c->text, sizeof c->text, "%s", c->b->failed);
    if (c->twice) {
        const uint32_t size = events->struct_size;

        c->twice = false;
        *events = c->again;
        events->struct_size = size;
        return 1;
    }
    for (pending **at = &c->calls; *at && count < most;) {
        pending *p = *at;
        const bool over = call_over(c, p);

        if (!over && !c->text[0]) {
            at = &p->next;
            continue;
        }
        event_put(c, PLANTED == STRIDE ? &events[count] : tn_collective_event_at(events, count), p,
                  over ? TN_OK : TN_E_PEER);
        count++;
        *at = p->next;
        free(p);
    }
    return count;
}

static tn_status board_poll(tn_communicator *c, tn_collective_event *events, uint32_t *count,
                            uint64_t timeout_ns, tn_err *err)
{
    const uint32_t most = *count;
    const uint64_t end_ns = now_ns() + timeout_ns;
    tn_status st = TN_OK;
    bool over = false;

    (void)pthread_mutex_lock(&boards_lock);
    while (!(*count = ends_take(c, events, most)) && !over) {
        uint64_t until_ns = end_ns;

        if (c->b->failed[0] && !c->calls) {
            st = tn_fail(err, TN_E_PEER, c->b->failed);
            break;
        }
        if (c->b->failed[0])
            continue;
        if (c->woken && !(PLANTED == WAKE_LOST))
            break;
        for (const pending *p = c->calls; p; p = p->next)
            until_ns = p->end_ns < until_ns && !(PLANTED == NO_DEADLINE) ? p->end_ns + 1 : until_ns;
        over = !wait_until(until_ns) && now_ns() >= end_ns;
    }
    c->woken = false;
    (void)pthread_mutex_unlock(&boards_lock);
    return st;
}

static void board_wake(tn_communicator *c)
{
    (void)pthread_mutex_lock(&boards_lock);
    c->woken = true;
    (void)pthread_cond_broadcast(&boards_moved);
    (void)pthread_mutex_unlock(&boards_lock);
}

static void board_abort(tn_communicator *c, const char *why)
{
    (void)pthread_mutex_lock(&boards_lock);
    if (!c->b->failed[0])
        (void)snprintf(c->b->failed, sizeof c->b->failed, "rank %u has given up: %s", c->rank,
                       PLANTED == SILENT_ABORT ? "" : why);
    (void)pthread_cond_broadcast(&boards_moved);
    (void)pthread_mutex_unlock(&boards_lock);
}

static void board_close(tn_communicator *c, uint64_t timeout_ns)
{
    (void)timeout_ns;
    (void)pthread_mutex_lock(&boards_lock);
    while (c->calls) {
        pending *p = c->calls;

        c->calls = p->next;
        free(p);
    }
    board_leave(c->b, c->rank);
    (void)pthread_mutex_unlock(&boards_lock);
    if (!(PLANTED == BLOCK_LEFT))
        free(c);
}

static const tn_collective_ops board_ops = {
    .head = TN_CAPABILITY(tn_collective_ops, close, TN_KIND_COLLECTIVE, "board"),
    .open = board_open,
    .info = board_info,
    .start = board_start,
    .poll = board_poll,
    .wake = board_wake,
    .abort = board_abort,
    .close = board_close,
};
static const tn_capability *const tables[] = {&board_ops.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a collective of threads", "", "collective:board", NULL,
                 NULL, NULL, tables);
