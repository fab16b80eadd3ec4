/*
 * How ranks meet. Each says hello to rank 0, which gives it NCCL's id and its place among the ranks of its
 * host; it chooses a GPU by that and names it. When all have one of their own, NCCL may begin: it says
 * little of two ranks on one GPU, or of versions that differ, and rank 0 names the ranks.
 */
#include "kv_nccl.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS_MAX 64u       /* links that have not said who they are */
#define STRANGER_NS 1000000000u /* that such a link may be silent where others wait at the door */
#define NAP_NS 20000000u
#define VERDICT_NS 500000000u /* until who waited for others has heard from rank 0 which did not come */

typedef struct meeting {
    tn_communicator *c;
    uint64_t end_ns;
    int door;
    tnnccl_link strangers[STRANGERS_MAX];
    uint64_t since_ns[STRANGERS_MAX];
} meeting;

static uint64_t text_hash(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

/* The same for the processes of one host. */
static uint64_t host_hash(void)
{
    char name[256] = "", boot[64] = "";
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    (void)gethostname(name, sizeof name - 1);
    if (fd >= 0) {
        (void)!read(fd, boot, sizeof boot - 1);
        (void)close(fd);
    }
    return text_hash(text_hash(0xcbf29ce484222325u, name), boot);
}

static tnnccl_note note_of(const tn_communicator *c, tnnccl_kind kind)
{
    return (tnnccl_note){.magic = TNNCCL_MAGIC, .kind = kind, .rank = c->rank};
}

static tnnccl_note hello_of(const tn_communicator *c)
{
    tnnccl_note n = note_of(c, TNNCCL_HELLO);

    n.number = text_hash(0xcbf29ce484222325u, c->config.job);
    n.hash = host_hash();
    n.issued = (uint64_t)c->lib->version << 32 | c->ranks;
    return n;
}

/* ---- rank 0 -------------------------------------------------------------------------------------------- */

static void refuse(tnnccl_link *l, tn_status st, const char *text)
{
    tnnccl_note n = {
        .magic = TNNCCL_MAGIC, .kind = TNNCCL_ABORT, .rank = TNNCCL_NOBODY, .status = (uint32_t)st};

    (void)snprintf(n.text, sizeof n.text, "%.*s", (int)sizeof n.text - 1, text);
    (void)tnnccl_link_send(l, &n);
    tnnccl_link_close(l);
}

/* Who says hello, and rightly, gets the place; others are told why not. */
static void hello_take(meeting *m, tnnccl_link *l)
{
    tn_communicator *c = m->c;
    const tnnccl_note *n = &l->in;
    const tnnccl_note own = hello_of(c);
    char text[200] = "";

    if (n->kind != TNNCCL_HELLO || n->number != own.number)
        (void)snprintf(text, sizeof text, "rank 0 here is of another job than \"%.60s\"", c->config.job);
    else if ((uint32_t)n->issued != c->ranks || n->rank == 0 || n->rank >= c->ranks)
        (void)snprintf(text, sizeof text, "rank %u of %u, but rank 0 is of %u ranks", n->rank,
                       (uint32_t)n->issued, c->ranks);
    else if (c->peers[n->rank].here)
        (void)snprintf(text, sizeof text, "rank %u has come already", n->rank);
    else if (n->issued >> 32 != own.issued >> 32)
        (void)snprintf(text, sizeof text, "rank %u has NCCL %u, rank 0 %d: all need the same", n->rank,
                       (uint32_t)(n->issued >> 32), c->lib->version);
    if (*text) {
        refuse(l, TN_E_PEER, text);
        return;
    }
    c->peers[n->rank].here = true;
    c->peers[n->rank].host = n->hash;
    c->peers[n->rank].link = *l;
    *l = (tnnccl_link){.fd = -1};
}

/* The place of the next stranger: a free one, or that of the oldest if it has been silent for long;
 * STRANGERS_MAX: none, and who comes waits at the door. */
static uint32_t stranger_place(const meeting *m)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < STRANGERS_MAX; i++) {
        if (m->strangers[i].fd < 0)
            return i;
        oldest = m->since_ns[i] < m->since_ns[oldest] ? i : oldest;
    }
    return tnnccl_now() - m->since_ns[oldest] < STRANGER_NS ? STRANGERS_MAX : oldest;
}

static void door_look(meeting *m)
{
    uint32_t place;
    int fd;

    for (uint32_t i = 0; i < STRANGERS_MAX; i++) {
        const int got = tnnccl_link_read(&m->strangers[i]);

        if (got > 0)
            hello_take(m, &m->strangers[i]);
        else if (got < 0)
            tnnccl_link_close(&m->strangers[i]);
    }
    while ((place = stranger_place(m)) < STRANGERS_MAX &&
           (fd = accept4(m->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        tnnccl_link_close(&m->strangers[place]);
        m->strangers[place].fd = fd;
        m->since_ns[place] = tnnccl_now();
    }
}

/* "1, 2"; false: all have `here`. */
static bool absent_list(const tn_communicator *c, bool answers, char *out, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 1; i < c->ranks && used < size; i++)
        if (answers ? !c->peers[i].answered : !c->peers[i].here)
            used += (size_t)snprintf(out + used, size - used, "%s%u", used ? ", " : "", i);
    return used > 0;
}

/* All are told what the meeting ends with. */
static tn_status meeting_fails(meeting *m, tn_status st, tn_err *err)
{
    for (uint32_t i = 1; i < m->c->ranks; i++)
        if (m->c->peers[i].here)
            refuse(&m->c->peers[i].link, st, err->message);
    return st;
}

static tn_status hellos_take(meeting *m, tn_err *err)
{
    tn_communicator *c = m->c;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    char list[200];

    while (absent_list(c, false, list, sizeof list)) {
        const bool room = stranger_place(m) < STRANGERS_MAX;
        struct pollfd files[1 + STRANGERS_MAX] = {{.fd = room ? m->door : -1, .events = POLLIN}};

        for (uint32_t i = 0; i < STRANGERS_MAX; i++)
            files[1 + i] = (struct pollfd){.fd = m->strangers[i].fd, .events = POLLIN};
        if (tnnccl_now() >= m->end_ns) {
            (void)tn_failf(err, TN_E_TIMEOUT, "of %u ranks these did not come within %.3g s: %s", c->ranks,
                           (double)c->config.timeout_ns / 1e9, list);
            return meeting_fails(m, TN_E_TIMEOUT, err);
        }
        (void)ppoll(files, 1 + STRANGERS_MAX, &nap, NULL);
        door_look(m);
    }
    return TN_OK;
}

static uint64_t place_of(const tn_communicator *c, uint32_t rank)
{
    uint64_t place = 0;

    for (uint32_t i = 0; i < rank; i++)
        place += c->peers[i].host == c->peers[rank].host;
    return place;
}

/* Each rank names its GPU; one that cannot says why. */
static tn_status devices_take(meeting *m, tn_err *err)
{
    tn_communicator *c = m->c;
    char list[200];

    while (absent_list(c, true, list, sizeof list)) {
        tnnccl_wait(c, NAP_NS);
        for (uint32_t i = 1; i < c->ranks; i++) {
            tnnccl_link *l = &c->peers[i].link;
            const int got = tnnccl_link_flush(l) ? tnnccl_link_read(l) : -1;

            if (got > 0 && l->in.kind == TNNCCL_DEVICE) {
                c->peers[i].answered = true;
                memcpy(c->peers[i].device, l->in.text, sizeof c->peers[i].device);
            } else if (got) {
                (void)tn_failf(err, TN_E_PEER, "rank %u has given up: %.300s", i,
                               got > 0 && l->in.kind == TNNCCL_ABORT ? l->in.text : "its link has ended");
                return meeting_fails(m, TN_E_PEER, err);
            }
        }
        if (tnnccl_now() >= m->end_ns) {
            (void)tn_failf(err, TN_E_TIMEOUT, "of %u ranks these are silent: %s", c->ranks, list);
            return meeting_fails(m, TN_E_TIMEOUT, err);
        }
    }
    return TN_OK;
}

/* NCCL refuses it, too (2.30.3 and later unless NCCL_MULTI_RANK_GPU_ENABLE is 1), but names nobody. */
static tn_status devices_check(meeting *m, tn_err *err)
{
    const tn_communicator *c = m->c;
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");

    for (uint32_t i = 1; i < c->ranks && !(shared && !strcmp(shared, "1") && c->lib->version >= 23003); i++)
        for (uint32_t k = 0; k < i; k++)
            if (c->peers[i].host == c->peers[k].host &&
                !memcmp(c->peers[i].device, c->peers[k].device, sizeof c->peers[i].device)) {
                (void)tn_failf(err, TN_E_DEVICE,
                               "ranks %u and %u have one GPU, which NCCL does not serve: a GPU for each, by "
                               "CUDA_VISIBLE_DEVICES or plugin.kv-nccl.device",
                               k, i);
                return meeting_fails(m, TN_E_DEVICE, err);
            }
    return TN_OK;
}

static tn_status tell_all(tn_communicator *c, const tnnccl_note *n, bool places, tn_err *err)
{
    for (uint32_t i = 1; i < c->ranks; i++) {
        tnnccl_note own = *n;

        own.number = places ? place_of(c, i) : 0;
        if (!tnnccl_link_send(&c->peers[i].link, &own))
            return tn_fail(err, TN_E_NOMEM, "out of memory");
        (void)tnnccl_link_flush(&c->peers[i].link);
    }
    return TN_OK;
}

static tn_status root_meet(meeting *m, int64_t device, char *id, tn_err *err)
{
    tn_communicator *c = m->c;
    tnnccl_note place = note_of(c, TNNCCL_PLACE), go = note_of(c, TNNCCL_GO);
    ncclUniqueId unique;
    ncclResult_t result;
    tn_status st;

    c->peers[0].host = host_hash();
    c->peers[0].here = true;
    if (c->ranks > 1 && ((st = tnnccl_listen(&c->config, &m->door, err)) || (st = hellos_take(m, err))))
        return st;
    if ((st = tnnccl_device_open(c, device, 0, c->peers[0].device, err)))
        return meeting_fails(m, st, err);
    if ((result = c->lib->nccl.unique_id(&unique)) != ncclSuccess) {
        (void)tn_failf(err, TN_E_DEVICE, "ncclGetUniqueId: %s", c->lib->nccl.text(result));
        return meeting_fails(m, TN_E_DEVICE, err);
    }
    memcpy(id, unique.internal, NCCL_UNIQUE_ID_BYTES);
    memcpy(place.text, id, NCCL_UNIQUE_ID_BYTES);
    return (st = tell_all(c, &place, true, err)) || (st = devices_take(m, err)) ||
                   (st = devices_check(m, err))
               ? st
               : tell_all(c, &go, false, err);
}

/* ---- the others ---------------------------------------------------------------------------------------- */

/* The next note of rank 0, which is to be a `kind`. */
static tn_status note_await(meeting *m, tnnccl_kind kind, tn_err *err)
{
    tnnccl_link *l = &m->c->peers[0].link;

    for (;;) {
        const int got = tnnccl_link_flush(l) ? tnnccl_link_read(l) : -1;

        if (got > 0 && l->in.kind == (uint32_t)kind)
            return TN_OK;
        if (got > 0 && l->in.kind == TNNCCL_ABORT)
            return tn_fail(err, l->in.status && l->in.status < 16 ? (tn_status)l->in.status : TN_E_PEER,
                           l->in.text);
        if (got)
            return tn_fail(err, TN_E_PEER, "rank 0 has left before all had met");
        if (tnnccl_now() >= m->end_ns + VERDICT_NS)
            return tn_failf(err, TN_E_TIMEOUT, "rank 0 says nothing within %.3g s",
                            (double)m->c->config.timeout_ns / 1e9);
        tnnccl_wait(m->c, NAP_NS);
    }
}

static tn_status member_meet(meeting *m, int64_t device, char *id, tn_err *err)
{
    tn_communicator *c = m->c;
    tnnccl_link *l = &c->peers[0].link;
    const tnnccl_note hello = hello_of(c);
    tnnccl_note own = note_of(c, TNNCCL_DEVICE);
    tn_status st = tnnccl_connect(&c->config, m->end_ns, &l->fd, err);

    if (st)
        return st;
    if (!tnnccl_link_send(l, &hello))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    if ((st = note_await(m, TNNCCL_PLACE, err)))
        return st;
    memcpy(id, l->in.text, NCCL_UNIQUE_ID_BYTES);
    if ((st = tnnccl_device_open(c, device, l->in.number, (unsigned char *)own.text, err))) {
        refuse(l, st, err->message);
        return st;
    }
    return tnnccl_link_send(l, &own) ? note_await(m, TNNCCL_GO, err)
                                     : tn_fail(err, TN_E_NOMEM, "out of memory");
}

tn_status tnnccl_meet(tn_communicator *c, int64_t device, char id[NCCL_UNIQUE_ID_BYTES], tn_err *err)
{
    meeting *m = calloc(1, sizeof *m);
    tn_err own = {0};
    tn_status st = TN_E_NOMEM;

    c->peer_count = c->rank ? 1 : c->ranks;
    c->peers = calloc(c->peer_count, sizeof *c->peers);
    for (uint32_t i = 0; c->peers && i < c->peer_count; i++)
        c->peers[i].link.fd = -1;
    if (!m || !c->peers) {
        free(m);
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    }
    m->c = c;
    m->door = -1;
    m->end_ns = tnnccl_now() + c->config.timeout_ns;
    for (uint32_t i = 0; i < STRANGERS_MAX; i++)
        m->strangers[i].fd = -1;
    st = c->rank ? member_meet(m, device, id, &own) : root_meet(m, device, id, &own);
    for (uint32_t i = 0; i < STRANGERS_MAX; i++)
        tnnccl_link_close(&m->strangers[i]);
    if (m->door >= 0)
        (void)close(m->door);
    free(m);
    return st ? tn_fail(err, st, own.message) : TN_OK;
}
