/*
 * Notes between ranks that have met. Rank 0 hears of each call that a rank starts: an end is handed out only
 * once all have started that call, and alike, so that ranks in another order are named and never given each
 * other's sums. Of a call that is late, rank 0 asks all ranks: it names those that do not answer, that have
 * not come to the call, or whose NCCL has not begun it. A link that ends is a rank that has died.
 */
#include "kv_nccl.h"

#include <stdlib.h>

#define ANSWER_NS 500000000u      /* that a rank may take to answer rank 0 */
#define ROOT_ANSWER_NS 900000000u /* and rank 0 to judge */

static tnnccl_note note_of(const tn_communicator *c, tnnccl_kind kind, uint64_t number, const char *text)
{
    tnnccl_note n = {.magic = TNNCCL_MAGIC, .kind = kind, .rank = c->rank, .number = number};

    n.issued = tnnccl_issued(c);
    (void)snprintf(n.text, sizeof n.text, "%s", text);
    return n;
}

/* To all: of rank 0 the others, else rank 0. Where no memory is left nobody hears it: deadlines stay. */
static void tell(tn_communicator *c, const tnnccl_note *n)
{
    for (uint32_t i = 0; i < c->peer_count; i++) {
        (void)tnnccl_link_send(&c->peers[i].link, n);
        (void)tnnccl_link_flush(&c->peers[i].link);
    }
}

static void say(tn_communicator *c, tnnccl_kind kind, uint64_t number, const char *text)
{
    const tnnccl_note n = note_of(c, kind, number, text);

    tell(c, &n);
}

static void fails(tn_communicator *c, tn_status st, const char *text)
{
    (void)snprintf(c->why, sizeof c->why, "%s", text);
    c->failed = st;
    tnnccl_comm_abort(c);
}

/* What all are told as it is. */
__attribute__((__format__(__printf__, 3, 4))) static void fact(tn_communicator *c, tn_status st,
                                                               const char *format, ...)
{
    tnnccl_note n = note_of(c, TNNCCL_ABORT, 0, "");
    va_list args;

    if (c->failed)
        return;
    n.rank = TNNCCL_NOBODY;
    n.status = (uint32_t)st;
    va_start(args, format);
    (void)vsnprintf(n.text, sizeof n.text, format, args);
    va_end(args);
    tell(c, &n);
    fails(c, st, n.text);
}

void tnnccl_break(tn_communicator *c, tn_status st, bool mine, const char *format, ...)
{
    tnnccl_note n = note_of(c, TNNCCL_ABORT, 0, "");
    va_list args;

    if (c->failed)
        return;
    n.status = TN_E_PEER;
    va_start(args, format);
    (void)vsnprintf(n.text, sizeof n.text, format, args);
    va_end(args);
    if (mine)
        tell(c, &n);
    fails(c, st, n.text);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void agreed_move(tn_communicator *c)
{
    uint64_t least = c->peers[0].started;

    for (uint32_t i = 1; i < c->ranks; i++)
        least = c->peers[i].started < least ? c->peers[i].started : least;
    if (least == c->agreed)
        return;
    c->agreed = least;
    while (c->arrivals && c->arrivals->number <= least) {
        tnnccl_arrival *a = c->arrivals;

        c->arrivals = a->next;
        free(a);
    }
    say(c, TNNCCL_AGREED, least, "");
}

/* Rank 0: `rank` has started call `number`. */
static void arrival_take(tn_communicator *c, uint32_t rank, uint64_t number, uint64_t hash, const char *text)
{
    tnnccl_arrival **at = &c->arrivals, *a;

    if (number != c->peers[rank].started + 1) {
        fact(c, TN_E_PEER, "rank %u counts its calls wrongly", rank);
        return;
    }
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    if (*at && (*at)->number == number && (*at)->hash != hash) {
        fact(c, TN_E_PEER,
             "call %llu of rank %u is %.180s; that of rank %u is %.180s: all make the same calls "
             "in the same order",
             (unsigned long long)number - 1, rank, text, (*at)->rank, (*at)->text);
        return;
    }
    if (!*at) {
        if (!(a = calloc(1, sizeof *a))) {
            tnnccl_break(c, TN_E_NOMEM, true, "out of memory");
            return;
        }
        a->number = number;
        a->hash = hash;
        a->rank = rank;
        (void)snprintf(a->text, sizeof a->text, "%s", text);
        *at = a;
    }
    c->peers[rank].started = number;
    agreed_move(c);
}

void tnnccl_started(tn_communicator *c, uint64_t hash, const char *text)
{
    tnnccl_note n = note_of(c, TNNCCL_CALL, c->started, text);

    n.hash = hash;
    if (c->rank == 0) {
        arrival_take(c, 0, c->started, hash, text);
        return;
    }
    if (!tnnccl_link_send(&c->peers[0].link, &n))
        tnnccl_break(c, TN_E_NOMEM, true, "out of memory for a note to rank 0");
    (void)tnnccl_link_flush(&c->peers[0].link);
}

/* ---- who is late --------------------------------------------------------------------------------------- */

/* Rank 0 asks, about one call at a time: the first that is late is the cause of others. */
static void doubt(tn_communicator *c, uint64_t number, const char *text)
{
    if (c->doubt.number || c->failed)
        return;
    c->doubt.number = number;
    c->doubt.since_ns = tnnccl_now();
    (void)snprintf(c->doubt.text, sizeof c->doubt.text, "%s", text);
    for (uint32_t i = 0; i < c->peer_count; i++)
        c->peers[i].answered = i == c->rank;
    say(c, c->rank ? TNNCCL_ASK : TNNCCL_PING, number, text);
}

void tnnccl_late(tn_communicator *c, const tnnccl_call *call)
{
    char text[300];

    (void)snprintf(text, sizeof text, "%s of %s did not end within %.3g s", tnnccl_kind_name(call->kind),
                   call->name, (double)call->timeout_ns / 1e9);
    doubt(c, call->number, text);
}

/* "rank 1 is silent; rank 2 has not come to it" */
static void missing_list(tn_communicator *c, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    c->peers[0].issued = tnnccl_issued(c);
    for (uint32_t i = 0; i < c->ranks && used < size; i++) {
        const tnnccl_peer *p = &c->peers[i];
        const char *what = p->left                        ? "has left"
                           : !p->answered                 ? "is silent"
                           : p->started < c->doubt.number ? "has not come to it"
                           : p->issued < c->doubt.number  ? "has come to it, but its NCCL has not begun"
                                                          : NULL;

        if (what)
            used += (size_t)snprintf(out + used, size - used, "%srank %u %s", used ? "; " : "", i, what);
    }
    if (!used)
        (void)snprintf(out, size, "all ranks have begun it; NCCL_DEBUG=INFO of all ranks says more");
}

void tnnccl_judge(tn_communicator *c)
{
    const uint64_t gone_ns = tnnccl_now() - c->doubt.since_ns;
    bool answered = true;
    char missing[200];

    if (!c->doubt.number || c->failed)
        return;
    if (c->rank) {
        if (gone_ns >= ROOT_ANSWER_NS)
            tnnccl_break(c, TN_E_TIMEOUT, true, "%s: rank 0 is silent", c->doubt.text);
        return;
    }
    for (uint32_t i = 0; i < c->ranks; i++)
        answered = answered && (c->peers[i].answered || c->peers[i].left);
    if (!answered && gone_ns < ANSWER_NS)
        return;
    missing_list(c, missing, sizeof missing);
    fact(c, TN_E_TIMEOUT, "%s: %s", c->doubt.text, missing);
}

/* ---- what comes ---------------------------------------------------------------------------------------- */

static void member_heard(tn_communicator *c, uint32_t rank, const tnnccl_note *n)
{
    tnnccl_peer *p = &c->peers[rank];

    p->issued = n->issued;
    if (n->kind == TNNCCL_CALL)
        arrival_take(c, rank, n->number, n->hash, n->text);
    else if (n->kind == TNNCCL_ASK)
        doubt(c, n->number, n->text);
    else if (n->kind == TNNCCL_PONG)
        p->answered = true;
    else if (n->kind == TNNCCL_BYE)
        p->left = true;
    else if (n->kind == TNNCCL_ABORT)
        fact(c, TN_E_PEER, "rank %u has given up: %s", rank, n->text);
    else
        fact(c, TN_E_PEER, "rank %u says what it may not", rank);
}

static void root_heard(tn_communicator *c, const tnnccl_note *n)
{
    const tn_status st = n->status && n->status < 16 ? (tn_status)n->status : TN_E_PEER;
    if (n->kind == TNNCCL_AGREED)
        c->agreed = n->number;
    else if (n->kind == TNNCCL_PING)
        say(c, TNNCCL_PONG, n->number, "");
    else if (n->kind == TNNCCL_BYE)
        c->root_left = true;
    else if (n->kind == TNNCCL_ALL_LEFT)
        c->all_left = true;
    else if (n->kind == TNNCCL_ABORT && n->rank == TNNCCL_NOBODY && !c->failed)
        fails(c, st, n->text);
    else if (n->kind == TNNCCL_ABORT)
        tnnccl_break(c, TN_E_PEER, false, "rank 0 has given up: %s", n->text);
}

/* The first call under way; NULL: none. */
static const char *first_name(const tn_communicator *c)
{
    const tnnccl_call *call = c->calls;

    while (call && tnnccl_may_end(c, call))
        call = call->next;
    return call ? call->name : c->arrivals ? c->arrivals->text : NULL;
}

static void link_ended(tn_communicator *c, uint32_t i)
{
    const bool left = c->rank ? c->root_left || c->all_left : c->peers[i].left;

    tnnccl_link_close(&c->peers[i].link);
    if (left || c->dead)
        return;
    c->dead = true;
    c->dead_rank = i;
    c->dead_ns = tnnccl_now();
}

/* Calls that the dead rank has made end; the first that does not is named. */
static void dead_check(tn_communicator *c)
{
    const char *name = c->dead && tnnccl_now() - c->dead_ns >= ANSWER_NS ? first_name(c) : NULL;

    if (name && c->rank)
        tnnccl_break(c, TN_E_PEER, false, "rank 0 has died: its link ended, and %.119s does not end", name);
    else if (name)
        fact(c, TN_E_PEER, "rank %u has died: its link ended, and %.180s does not end", c->dead_rank, name);
}

/* A rank that has left comes to nothing more. */
static void left_check(tn_communicator *c)
{
    if (c->rank && c->root_left && c->started > c->agreed && !c->failed)
        tnnccl_break(c, TN_E_PEER, true, "rank 0 has left before %.119s",
                     first_name(c) ? first_name(c) : "all had come");
    for (uint32_t i = 1; c->rank == 0 && i < c->ranks && c->arrivals; i++)
        if (c->peers[i].left && c->peers[i].started < c->arrivals->number)
            fact(c, TN_E_PEER, "rank %u has left before %.180s", i, c->arrivals->text);
}

void tnnccl_listen_all(tn_communicator *c)
{
    for (uint32_t i = 0; i < c->peer_count; i++) {
        tnnccl_link *l = &c->peers[i].link;
        int got = 0;

        while ((got = tnnccl_link_read(l)) > 0) {
            const tnnccl_note n = l->in;

            if (c->rank)
                root_heard(c, &n);
            else
                member_heard(c, i, &n);
        }
        if (got < 0 || !tnnccl_link_flush(l))
            link_ended(c, i);
    }
    left_check(c);
    dead_check(c);
}

/* ---- leaving ------------------------------------------------------------------------------------------- */

void tnnccl_bye(tn_communicator *c)
{
    say(c, TNNCCL_BYE, c->started, "");
}

bool tnnccl_left(const tn_communicator *c)
{
    for (uint32_t i = 1; c->rank == 0 && i < c->ranks; i++)
        if (!c->peers[i].left)
            return false;
    return c->rank == 0 || c->all_left;
}
