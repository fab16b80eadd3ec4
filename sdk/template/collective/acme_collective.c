/*
 * A collective of the processes of one host: acme_star. Rank 0 is the hub: the others are connected to it by
 * local sockets, and send it what they put into a call. When all have come, the hub adds in the order of
 * ranks and sends the result back. Sums are ordered, asked for or not.
 *
 * Each side copies what it sends, so no memory of the host is used beside its own call's. Nothing is
 * believed of what comes: lengths are compared with limits, numbers and kinds with those of our own call.
 */
#include "acme_collective.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_NS 500000000u /* for the hub to say who is late */

uint64_t star_now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- frames that go ------------------------------------------------------------------------------------ */

static void frames_free(frame **list)
{
    while (*list) {
        frame *f = *list;

        *list = f->next;
        free(f);
    }
}

/* What it has sent before is still taken. */
static void peer_drop(peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
    frames_free(&p->out);
    frames_free(&p->in);
}

static frame *frame_make(uint32_t kind, uint64_t number, uint64_t what, uint64_t bytes)
{
    frame *f = malloc(sizeof *f + bytes);

    if (f)
        *f = (frame){
            .head = {.magic = STAR_MAGIC, .kind = kind, .number = number, .what = what, .bytes = bytes}};
    return f;
}

static void frame_queue(frame **list, frame *f)
{
    while (*list)
        list = &(*list)->next;
    *list = f;
}

/* What it takes now; a peer that is gone is told of by what is read. */
static void peer_write(peer *p)
{
    while (p->fd >= 0 && p->out) {
        frame *f = p->out;
        const uint64_t all = sizeof f->head + f->head.bytes;
        const ssize_t n =
            send(p->fd, (uint8_t *)&f->head + f->done, all - f->done, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            return;
        if ((f->done += (uint64_t)n) < all)
            continue;
        p->out = f->next;
        free(f);
    }
}

/* A text to every peer; for want of memory they hear of the end of the connection alone. */
static void tell(tn_communicator *c, uint32_t kind, uint64_t number, const char *text)
{
    for (uint32_t r = c->first; r < c->end; r++) {
        const uint64_t bytes = strlen(text);
        frame *f = c->peers[r].fd < 0 ? NULL : frame_make(kind, number, 0, bytes);

        if (!f)
            continue;
        memcpy(f->body, text, bytes);
        frame_queue(&c->peers[r].out, f);
        peer_write(&c->peers[r]);
    }
}

/* The first failure counts. Others hear of it, but where they said it. */
static void fail(tn_communicator *c, tn_status st, bool say, const char *format, ...)
{
    va_list list;

    if (c->failed)
        return;
    c->failed = st;
    va_start(list, format);
    (void)vsnprintf(c->text, sizeof c->text, format, list);
    va_end(list);
    if (say)
        tell(c, STAR_FAIL, 0, c->text);
}

/* ---- frames that come ---------------------------------------------------------------------------------- */

/* Of the hub: the first rank that has not come to call `number`; `ranks`: all have. */
static uint32_t missing(const tn_communicator *c, uint64_t number)
{
    if (number >= c->started)
        return 0;
    for (uint32_t r = c->first; r < c->end; r++)
        if (!c->peers[r].came || c->peers[r].came->head.number > number)
            return r;
    return c->ranks;
}

/* A whole frame is here; it is ours now. */
static void frame_take(tn_communicator *c, uint32_t r, frame *f)
{
    char text[STAR_TEXT] = "";
    uint32_t late;

    if (f->head.bytes < sizeof text && f->head.kind != STAR_CALL && f->head.kind != STAR_RESULT)
        memcpy(text, f->body, f->head.bytes);
    switch (f->head.kind) {
    case STAR_CALL:
    case STAR_RESULT:
        frame_queue(&c->peers[r].came, f);
        return;
    case STAR_BYE:
        c->peers[r].left = true;
        break;
    case STAR_FAIL:
        fail(c, TN_E_PEER, c->rank == 0, "%s", text);
        break;
    case STAR_ASK:
        if (c->rank == 0 && (late = missing(c, f->head.number)) < c->ranks)
            fail(c, TN_E_TIMEOUT, true, "%s: rank %u has not come", text, (unsigned)late);
        break;
    default:
        fail(c, TN_E_PEER, true, "rank %u says what nobody knows", (unsigned)r);
    }
    free(f);
}

static bool head_right(const frame_head *h)
{
    return h->magic == STAR_MAGIC && h->bytes <= STAR_BYTES_MAX;
}

/* What has come; its end is that of the rank, unless it said BYE. */
static void peer_read(tn_communicator *c, uint32_t r)
{
    peer *p = &c->peers[r];

    while (p->fd >= 0 && !c->failed) {
        const bool in_head = p->got < sizeof p->head;
        uint8_t *to = in_head ? (uint8_t *)&p->head + p->got : p->in->body + (p->got - sizeof p->head);
        const uint64_t left = (in_head ? 0 : p->head.bytes) + sizeof p->head - p->got;
        const ssize_t n = left ? recv(p->fd, to, left, MSG_DONTWAIT) : 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (left && n <= 0) {
            peer_drop(p);
            if (!p->left)
                fail(c, TN_E_PEER, true, "rank %u has died", (unsigned)r);
            return;
        }
        p->got += (uint64_t)n;
        if (in_head && p->got == sizeof p->head) {
            if (!head_right(&p->head))
                fail(c, TN_E_PEER, true, "rank %u speaks another protocol", (unsigned)r);
            else if (!(p->in = frame_make(p->head.kind, p->head.number, p->head.what, p->head.bytes)))
                fail(c, TN_E_NOMEM, true, "rank %u is out of memory", (unsigned)c->rank);
        }
        if (p->in && p->got == sizeof p->head + p->head.bytes) {
            frame *f = p->in;

            p->in = NULL;
            p->got = 0;
            frame_take(c, r, f);
        }
    }
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const call *k, uint32_t part)
{
    return k->parts[part].count * tn_dtype_bytes(k->dtype);
}

/* The result, from the hub or in it. */
static void call_finish(call *k, const uint8_t *data)
{
    for (uint32_t i = 0; i < k->part_count; data += bytes_of(k, i++))
        if (bytes_of(k, i))
            memcpy(k->parts[i].out, data, bytes_of(k, i));
    k->over = true;
}

/* The oldest call of the hub, to which all have come. */
static void call_serve(tn_communicator *c, call *k)
{
    const bool sum = k->kind == TN_COLLECTIVE_SUM;
    uint8_t *data = k->data->body;

    for (uint32_t r = c->first; r < c->end; r++) {
        const frame *f = c->peers[r].came;
        const bool sends = sum || (k->kind == TN_COLLECTIVE_BROADCAST && k->root == r);

        if (f->head.kind != STAR_CALL || f->head.number != k->number || f->head.what != k->what ||
            f->head.bytes != (sends ? k->bytes : 0)) {
            fail(c, TN_E_PEER, true, "%s: rank %u has started another call", k->name, (unsigned)r);
            return;
        }
        if (sum && k->bytes)
            c->add(k->dtype, k->bytes / tn_dtype_bytes(k->dtype), f->body, data);
        else if (sends && k->bytes)
            memcpy(data, f->body, k->bytes);
    }
    for (uint32_t r = c->first; r < c->end; r++) {
        frame *f = c->peers[r].came, *result = frame_make(STAR_RESULT, k->number, k->what, k->bytes);

        c->peers[r].came = f->next;
        free(f);
        if (!result) {
            fail(c, TN_E_NOMEM, true, "rank 0 is out of memory");
            return;
        }
        memcpy(result->body, data, k->bytes);
        frame_queue(&c->peers[r].out, result);
    }
    call_finish(k, data);
}

/* What rank 0 answered before a failure still counts. */
static void calls_move(tn_communicator *c)
{
    for (call *k = c->calls; k && (!c->failed || c->rank != 0); k = k->next) {
        frame *f = c->peers[0].came; /* none of the hub */

        if (k->over)
            continue;
        if (c->rank == 0) {
            const uint32_t r = missing(c, k->number);

            if (r == c->ranks)
                call_serve(c, k);
            else if (c->peers[r].left)
                fail(c, TN_E_PEER, true, "%s: rank %u has left", k->name, (unsigned)r);
        } else if (!f) {
            if (c->peers[0].left)
                fail(c, TN_E_PEER, false, "%s: rank 0 has left", k->name);
        } else if (f->head.kind != STAR_RESULT || f->head.number != k->number || f->head.what != k->what ||
                   f->head.bytes != k->bytes) {
            fail(c, TN_E_PEER, true, "%s: rank 0 answers another call", k->name);
        } else {
            c->peers[0].came = f->next;
            call_finish(k, f->body);
            free(f);
        }
        if (!k->over)
            return; /* in their order */
    }
}

/* The hub says who is late; others ask it. */
static void deadlines_check(tn_communicator *c)
{
    const uint64_t now = star_now_ns();

    for (call *k = c->calls; k && !c->failed; k = k->next) {
        if (k->over || now < k->end_ns)
            continue;
        if (c->rank == 0) {
            fail(c, TN_E_TIMEOUT, true, "%s: rank %u has not come", k->name, (unsigned)missing(c, k->number));
        } else if (!k->asked) {
            k->asked = true;
            k->end_ns = now + ANSWER_NS;
            tell(c, STAR_ASK, k->number, k->name);
        } else {
            fail(c, TN_E_TIMEOUT, true, "%s: rank 0 does not answer", k->name);
        }
    }
}

static bool call_is(const tn_communicator *c, const tn_collective_call *from)
{
    const uint64_t bits = from->dtype < 0 || from->dtype > 64 ? 0 : tn_dtype_bits(from->dtype);

    return from->kind >= TN_COLLECTIVE_SUM && from->kind <= TN_COLLECTIVE_BARRIER &&
           !(from->flags & ~TN_COLLECTIVE_CALL_KNOWN) && from->root < c->ranks &&
           (from->kind == TN_COLLECTIVE_BARRIER ? !from->part_count : bits >= 8);
}

static call *call_make(const tn_communicator *c, const tn_collective_call *from, bool sends)
{
    call *k = calloc(1, sizeof *k + from->part_count * sizeof k->parts[0]);
    uint8_t *to;

    if (!k)
        return NULL;
    k->number = c->started;
    k->kind = from->kind;
    k->dtype = from->dtype;
    k->root = from->root;
    k->part_count = from->part_count;
    k->cookie = from->cookie;
    k->end_ns = star_now_ns();
    k->end_ns = from->timeout_ns < UINT64_MAX - k->end_ns ? k->end_ns + from->timeout_ns : UINT64_MAX;
    (void)snprintf(k->name, sizeof k->name, "%s", from->name ? from->name : "a call");
    for (uint32_t i = 0; i < k->part_count; i++) {
        k->parts[i] = from->parts[i];
        k->bytes += bytes_of(k, i);
    }
    k->what = (uint64_t)k->kind << 56 | (uint64_t)(uint32_t)k->dtype << 32 | k->root;
    k->data = frame_make(STAR_CALL, k->number, k->what, sends || c->rank == 0 ? k->bytes : 0);
    if (!k->data) {
        free(k);
        return NULL;
    }
    to = k->data->body;
    for (uint32_t i = 0; sends && i < k->part_count; to += bytes_of(k, i++))
        if (bytes_of(k, i))
            memcpy(to, k->parts[i].in, bytes_of(k, i));
    return k;
}

static tn_status star_start(tn_communicator *c, const tn_collective_call *from, tn_err *err)
{
    const bool sends = from->kind == TN_COLLECTIVE_SUM || from->root == c->rank;
    uint64_t count = 0;
    call *k, **last = &c->calls;

    if (!call_is(c, from))
        return tn_fail(err, TN_E_ARG, "no such call");
    for (uint32_t i = 0; i < from->part_count; i++) {
        if (from->parts[i].count > STAR_COUNT_MAX - count)
            return tn_fail(err, TN_E_ARG, "more elements than count_max");
        count += from->parts[i].count;
    }
    if (c->failed)
        return tn_fail(err, TN_E_PEER, c->text);
    if (!(k = call_make(c, from, sends)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a call");
    c->started++;
    if (c->rank != 0) {
        frame_queue(&c->peers[0].out, k->data);
        k->data = NULL;
        peer_write(&c->peers[0]);
    }
    while (*last)
        last = &(*last)->next;
    *last = k;
    return TN_OK;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static void call_free(call *k)
{
    free(k->data);
    free(k);
}

static uint32_t ends_take(tn_communicator *c, tn_collective_event *events, uint32_t most)
{
    uint32_t count = 0;

    for (call **at = &c->calls; *at && count < most;) {
        call *k = *at;
        tn_collective_event *e;

        if (!k->over && !c->failed) {
            at = &k->next;
            continue;
        }
        e = tn_collective_event_at(events, count++);
        e->status = k->over ? TN_OK : c->failed;
        e->cookie = k->cookie;
        e->text = k->over ? NULL : c->text;
        *at = k->next;
        call_free(k);
    }
    return count;
}

static void sockets_serve(tn_communicator *c)
{
    for (uint32_t r = c->first; r < c->end; r++) {
        peer_write(&c->peers[r]);
        peer_read(c, r);
    }
}

/* Until something comes, there is room, `wake`, or `end_ns`. False: it is `end_ns`. True once woken, too. */
static bool sockets_wait(tn_communicator *c, uint64_t end_ns)
{
    struct pollfd files[STAR_RANKS_MAX + 1];
    const uint64_t now = star_now_ns();
    uint64_t until = end_ns;
    struct timespec time;

    for (const call *k = c->calls; k; k = k->next)
        until = !k->over && k->end_ns < until ? k->end_ns : until;
    until = until > now ? until - now : 0;
    until = until < 1000000000u ? until : 1000000000u;
    time = (struct timespec){.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    for (uint32_t r = c->first; r < c->end; r++)
        files[r - c->first] = (struct pollfd){.fd = c->peers[r].fd,
                                              .events = (short)(POLLIN | (c->peers[r].out ? POLLOUT : 0))};
    files[c->end - c->first] = (struct pollfd){.fd = c->bell, .events = POLLIN};
    (void)ppoll(files, c->end - c->first + 1, &time, NULL);
    return star_now_ns() < end_ns;
}

static tn_status star_poll(tn_communicator *c, tn_collective_event *events, uint32_t *count,
                           uint64_t timeout_ns, tn_err *err)
{
    const uint32_t most = *count;
    const uint64_t begun = star_now_ns(),
                   end_ns = timeout_ns < UINT64_MAX - begun ? begun + timeout_ns : UINT64_MAX;
    uint64_t rung;

    for (bool more = true;; more = sockets_wait(c, end_ns)) {
        sockets_serve(c);
        calls_move(c);
        deadlines_check(c);
        if ((*count = ends_take(c, events, most)))
            return TN_OK;
        if (c->failed)
            return tn_fail(err, TN_E_PEER, c->text);
        if (read(c->bell, &rung, sizeof rung) > 0 || !more)
            return TN_OK;
    }
}

static void star_wake(tn_communicator *c)
{
    const uint64_t one = 1;

    if (write(c->bell, &one, sizeof one) < 0)
        return; /* it is rung already */
}

static void star_abort(tn_communicator *c, const char *why)
{
    fail(c, TN_E_PEER, true, "rank %u has given up: %s", (unsigned)c->rank, why);
}

static bool all_written(const tn_communicator *c)
{
    for (uint32_t r = c->first; r < c->end; r++)
        if (c->peers[r].fd >= 0 && c->peers[r].out)
            return false;
    return true;
}

void star_free(tn_communicator *c)
{
    while (c->calls) {
        call *k = c->calls;

        c->calls = k->next;
        call_free(k);
    }
    for (uint32_t r = 0; r < STAR_RANKS_MAX; r++) {
        peer_drop(&c->peers[r]);
        frames_free(&c->peers[r].came);
    }
    if (c->bell >= 0)
        (void)close(c->bell);
    free(c);
}

/* What is written stays in the sockets after their end. */
static void star_close(tn_communicator *c, uint64_t timeout_ns)
{
    const uint64_t begun = star_now_ns();

    if (!c)
        return;
    if (!c->failed)
        tell(c, STAR_BYE, 0, "");
    while (!all_written(c) && !c->failed && star_now_ns() - begun < timeout_ns) {
        for (uint32_t r = c->first; r < c->end; r++) {
            struct pollfd file = {.fd = c->peers[r].out ? c->peers[r].fd : -1, .events = POLLOUT};

            (void)poll(&file, 1, 10);
            if (file.revents & (POLLERR | POLLHUP))
                peer_drop(&c->peers[r]);
            peer_write(&c->peers[r]);
        }
    }
    star_free(c);
}

static void star_info(tn_communicator *c, tn_collective_info *out)
{
    out->flags = 0;
    out->rank = c->rank;
    out->ranks = c->ranks;
    out->count_max = STAR_COUNT_MAX;
}

static const tn_collective_ops star_ops = {
    .head = TN_CAPABILITY(tn_collective_ops, close, TN_KIND_COLLECTIVE, "acme_star"),
    .open = star_open,
    .info = star_info,
    .start = star_start,
    .poll = star_poll,
    .wake = star_wake,
    .abort = star_abort,
    .close = star_close,
};

static const tn_capability *const capabilities[] = {&star_ops.head, NULL};

TN_PLUGIN_DEFINE("acme-collective", "1.0.0", "Acme", "Apache-2.0", "sums over processes of one host", "",
                 "collective:acme_star", NULL, NULL, NULL, capabilities);
