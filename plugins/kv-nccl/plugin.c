/*
 * The plugin kv-nccl: collectives of several GPUs, by NCCL. A communicator belongs to the thread that opens
 * it; NCCL's never blocks, so that every wait has its deadline.
 */
#include "kv_nccl.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 20000u /* between two looks at a stream */
#define FILES 64u     /* links that are slept on; others are looked at every IDLE_NS */
#define IDLE_NS 20000000u
#define ABORT_NS 1000000000u /* that ncclCommAbort may take: then its memory stays */

uint64_t tnnccl_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tnnccl_wait(tn_communicator *c, uint64_t most_ns)
{
    struct pollfd files[1 + FILES] = {{.fd = c->bell, .events = POLLIN}};
    nfds_t count = 1;
    struct timespec t;

    for (uint32_t i = 0; i < c->peer_count && count <= FILES; i++)
        if (c->peers[i].link.fd >= 0)
            files[count++] =
                (struct pollfd){.fd = c->peers[i].link.fd,
                                .events = (short)(POLLIN | (c->peers[i].link.out_bytes ? POLLOUT : 0))};
    if (count > FILES || most_ns > 999999999u)
        most_ns = most_ns < IDLE_NS || count <= FILES ? most_ns : IDLE_NS;
    t.tv_sec = (time_t)(most_ns / 1000000000u);
    t.tv_nsec = (long)(most_ns % 1000000000u);
    (void)ppoll(files, count, &t, NULL);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

/* What a thread that sticks in NCCL may use stays. */
static void communicator_free(tn_communicator *c, uint64_t end_ns)
{
    const bool whole = tnnccl_comm_gone(c, end_ns);

    for (uint32_t i = 0; i < c->peer_count && c->peers; i++)
        tnnccl_link_close(&c->peers[i].link);
    if (whole && tnnccl_enter(c)) {
        while (c->calls) {
            tnnccl_call *call = c->calls;

            c->calls = call->next;
            tnnccl_call_free(c, call);
        }
        tnnccl_leave(c);
    }
    tnnccl_device_close(c, whole);
    while (c->arrivals) {
        tnnccl_arrival *a = c->arrivals;

        c->arrivals = a->next;
        free(a);
    }
    if (c->bell >= 0)
        (void)close(c->bell);
    free(c->peers);
    free(c);
}

static tn_status device_option(const tn_host *host, int64_t *out)
{
    const tn_options_service *s = tn_host_service(host, TN_SERVICE_OPTIONS);

    *out = -1;
    return s && TN_OFFERS(s, tn_options_service, integer) ? s->integer(host, "device", -1, out) : TN_OK;
}

/* The first thing that all have to come to: nobody leaves before all are here. */
static tn_status begin(tn_communicator *c, uint64_t end_ns, tn_err *err)
{
    c->started = 1;
    tnnccl_started(c, 0, "the beginning");
    for (tnnccl_listen_all(c); !c->agreed && !c->failed && !c->dead && tnnccl_now() < end_ns;
         tnnccl_listen_all(c))
        tnnccl_wait(c, IDLE_NS);
    if (c->failed && !c->agreed)
        return tn_fail(err, c->failed, c->why);
    if (c->dead && !c->agreed)
        return tn_failf(err, TN_E_PEER, "rank %u has died before all had come", c->dead_rank);
    return c->agreed
               ? TN_OK /* what has failed since comes out at the first call */
               : tn_failf(err, TN_E_TIMEOUT, "not all of %u ranks have NCCL's communicator within %.3g s",
                          c->ranks, (double)c->config.timeout_ns / 1e9);
}

static tn_status join(tn_communicator *c, tn_err *err)
{
    const uint64_t end_ns = tnnccl_now() + c->config.timeout_ns;
    char id[NCCL_UNIQUE_ID_BYTES];
    int64_t device;
    tn_status st;

    if ((c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return tn_fail(err, TN_E_IO, "no descriptor is left");
    if ((st = device_option(c->host, &device)))
        return tn_fail(err, st, "plugin.kv-nccl.device is no number");
    if ((st = tnnccl_libraries_get(&c->lib, err)) || (st = tnnccl_meet(c, device, id, err)))
        return st;
    if (((st = tnnccl_comm_open(c, id, end_ns, err)) || (st = begin(c, end_ns, err))) && !c->failed)
        tnnccl_break(c, st, true, "%.300s", err->message);
    return st;
}

static tn_status nccl_open(void *plugin, const tn_collective_config *config, tn_communicator **out,
                           tn_err *err)
{
    tn_communicator *c;
    tn_status st;

    if (config->rank == UINT32_MAX)
        return tn_failf(err, TN_E_ARG,
                        "nothing says which of %u ranks this is: kvstore.rank, or a launcher's variables",
                        config->ranks);
    if (config->flags || !config->ranks || config->ranks > TNNCCL_RANKS_MAX || config->rank >= config->ranks)
        return tn_failf(err, TN_E_ARG, "rank %u of %u, flags %#x", config->rank, config->ranks,
                        config->flags);
    if (!(c = calloc(1, sizeof *c)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    c->host = plugin;
    c->rank = config->rank;
    c->ranks = config->ranks;
    c->config.job = config->job ? config->job : "";
    c->config.root = config->root;
    c->config.timeout_ns = config->timeout_ns;
    c->last = &c->calls;
    st = join(c, err);
    c->config.job = c->config.root = NULL;
    if (st) {
        tnnccl_comm_abort(c);
        communicator_free(c, tnnccl_now() + ABORT_NS);
    } else {
        *out = c;
    }
    return st;
}

static void nccl_info(tn_communicator *c, tn_collective_info *out)
{
    out->flags = 0;
    out->rank = c->rank;
    out->ranks = c->ranks;
    out->count_max = (uint64_t)1 << 44;
}

/* In step with the others; false: some have not left in time. */
static bool leave(tn_communicator *c, uint64_t end_ns)
{
    tnnccl_note all = {.magic = TNNCCL_MAGIC, .kind = TNNCCL_ALL_LEFT};

    tnnccl_bye(c);
    for (tnnccl_listen_all(c); !c->failed && !c->dead && !tnnccl_left(c) && tnnccl_now() < end_ns;
         tnnccl_listen_all(c))
        tnnccl_wait(c, IDLE_NS);
    for (uint32_t i = 1; c->rank == 0 && i < c->ranks && tnnccl_left(c) && !c->failed; i++) {
        (void)tnnccl_link_send(&c->peers[i].link, &all);
        (void)tnnccl_link_flush(&c->peers[i].link);
    }
    return !c->failed && tnnccl_left(c) && tnnccl_comm_close(c, end_ns);
}

static void nccl_close(tn_communicator *c, uint64_t timeout_ns)
{
    const uint64_t end_ns = tnnccl_now() + timeout_ns;
    uint64_t rung;

    (void)!read(c->bell, &rung, sizeof rung); /* else nothing sleeps below */
    if (!c->failed && c->calls)
        tnnccl_break(c, TN_E_PEER, true, "it has left before the end of %s", c->calls->name);
    if (c->failed || !leave(c, end_ns))
        tnnccl_comm_abort(c);
    if (c->calls)
        tnnccl_copies_end(c); /* of parts, which are the host's again */
    communicator_free(c, c->comm ? tnnccl_now() + ABORT_NS : end_ns);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Those that have ended, or all once it has failed, into `events`. */
static uint32_t ends_take(tn_communicator *c, tn_collective_event *events, uint32_t most)
{
    uint32_t count = 0;

    bool in;

    if (!c->calls)
        return 0;
    if (c->failed && !c->quiet)
        tnnccl_copies_end(c);
    c->quiet = c->failed != TN_OK;
    in = tnnccl_enter(c);
    for (tnnccl_call **at = &c->calls; *at && count < most;) {
        tnnccl_call *call = *at;
        const bool well = tnnccl_may_end(c, call);
        tn_collective_event *e;

        if (!well && !c->failed) {
            at = &call->next;
            continue;
        }
        e = tn_collective_event_at(events, count++);
        e->status = well ? TN_OK : c->failed;
        e->cookie = call->cookie;
        e->text = well ? NULL : c->why;
        *at = call->next;
        if (c->failed) /* NCCL may still work in its buffers */
            call->data = call->shares = NULL;
        tnnccl_call_free(c, call);
    }
    if (in)
        tnnccl_leave(c);
    c->last = &c->calls;
    while (*c->last)
        c->last = &(*c->last)->next;
    return count;
}

static tn_status nccl_poll(tn_communicator *c, tn_collective_event *events, uint32_t *count,
                           uint64_t timeout_ns, tn_err *err)
{
    const uint64_t begun_ns = tnnccl_now();
    const uint32_t most = *count;
    uint64_t rung;

    for (;;) {
        uint64_t gone_ns, nap_ns;

        tnnccl_listen_all(c);
        tnnccl_move(c);
        tnnccl_judge(c);
        if ((*count = ends_take(c, events, most)))
            return TN_OK;
        if (c->failed)
            return tn_fail(err, TN_E_PEER, c->why);
        gone_ns = tnnccl_now() - begun_ns;
        if (read(c->bell, &rung, sizeof rung) > 0 || gone_ns >= timeout_ns)
            return TN_OK;
        nap_ns = tnnccl_works(c) ? NAP_NS : IDLE_NS;
        tnnccl_wait(c, timeout_ns - gone_ns < nap_ns ? timeout_ns - gone_ns : nap_ns);
    }
}

static void nccl_wake(tn_communicator *c)
{
    const uint64_t one = 1;

    if (write(c->bell, &one, sizeof one) < 0 && errno != EAGAIN)
        return; /* it is rung already */
}

static void nccl_abort(tn_communicator *c, const char *why)
{
    tnnccl_break(c, TN_E_PEER, true, "%.300s", why);
}

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static const tn_option_row option_device = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "device",
    .type = "int",
    .default_text = "-1",
    .help = "the GPU that sums of a process run on; -1: by its place among the processes of its host",
    .since = "0.1",
    .min = -1,
    .max = 1023,
};

static const tn_option_row *const option_rows[] = {&option_device, NULL};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-nccl"),
    .rows = option_rows,
};

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    *plugin = (void *)(uintptr_t)host;
    return TN_OK;
}

static void plugin_fini(void *plugin)
{
    (void)plugin;
}

static const tn_collective_ops collective = {
    .head = TN_CAPABILITY(tn_collective_ops, close, TN_KIND_COLLECTIVE, "nccl"),
    .open = nccl_open,
    .info = nccl_info,
    .start = tnnccl_start,
    .poll = nccl_poll,
    .wake = nccl_wake,
    .abort = nccl_abort,
    .close = nccl_close,
};

static const tn_capability *const capabilities[] = {&collective.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-nccl", "0.1.0", "Tenon", "Apache-2.0", "collectives of GPUs, by NCCL", "",
                 "collective:nccl options", plugin_init, plugin_fini, NULL, capabilities);
