/* The plugin kv-rdma: transports that write into the memory of their peers, by libibverbs. */
#include "kv_rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINKS_MAX 65536u
#define TURN_NS 1000000u /* of a wait in `close`, which nobody tells when all is sent */

/* ---- a transport -------------------------------------------------------------------------------------- */

static void transport_free(tn_transport *t)
{
    const int files[] = {t->listener, t->wake, t->epoll};

    tnrdma_device_close(t->plugin, &t->device);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
    explicit_bzero(t->key, sizeof t->key);
    free(t);
}

static bool watch(tn_transport *t, int fd, void *of)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = of};

    return !epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Whether the memory of one link may be pinned is better said now than by the end of the first link. */
static tn_status memory_try(tn_transport *t, tn_err *err)
{
    const uint64_t bytes = 2 * (TNRDMA_URGENT_BYTES + t->ring_bytes);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;
    tn_status st = TN_OK;

    if (at == MAP_FAILED)
        return tnrdma_fail_system(err, "memory for a link");
    mr = t->verbs->mr_reg(t->device.pd, at, bytes, (uintptr_t)at, IBV_ACCESS_LOCAL_WRITE);
    if (mr)
        (void)t->verbs->mr_dereg(mr);
    else
        st = tnrdma_fail_memory(err, bytes, errno);
    (void)munmap(at, bytes);
    return st;
}

static tn_status transport_start(tn_transport *t, tn_err *err)
{
    tn_status st = tnrdma_device_open(t->plugin, &t->device, err);

    if (st)
        return st;
    t->ring_bytes = TNRDMA_RING_MIN;
    while (t->ring_bytes < (uint64_t)t->plugin->ring_bytes && t->ring_bytes < TNRDMA_RING_MAX &&
           t->ring_bytes / 2 < t->config.message_max + TNRDMA_HEAD_BYTES)
        t->ring_bytes *= 2;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (t->epoll < 0 || t->wake < 0 || !watch(t, t->wake, t) ||
        !watch(t, t->device.channel->fd, &t->device) || !watch(t, t->device.context->async_fd, &t->device))
        return tnrdma_fail_system(err, "epoll");
    return memory_try(t, err);
}

static tn_status transport_open(void *self, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    const tnrdma_plugin *p = self;
    tn_transport *t;
    tn_status st;

    if (config->struct_size < TN_END(tn_transport_config, lanes) || config->flags & ~TN_OPEN_KNOWN ||
        config->receive_bytes < config->message_max || config->message_max > (uint64_t)INT64_MAX / 32 ||
        !config->links_max || config->links_max > LINKS_MAX)
        return tn_fail(err, TN_E_ARG, "a configuration with unknown flags, or limits that cannot be");
    if (!(t = calloc(1, sizeof *t)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a transport");
    t->plugin = p;
    t->verbs = p->verbs;
    t->config =
        (tn_transport_config){.flags = config->flags,
                              .receive_bytes = config->receive_bytes,
                              .message_max = config->message_max,
                              .links_max = config->links_max,
                              .lanes = config->lanes < TNRDMA_LANES_MAX ? config->lanes : TNRDMA_LANES_MAX};
    t->config.lanes += !t->config.lanes;
    if (config->secret) {
        memcpy(t->key, config->secret, TN_TRANSPORT_SECRET_BYTES);
        t->key[TN_TRANSPORT_SECRET_BYTES] = 1;
        t->config.secret = t->key;
    }
    t->last = &t->first;
    t->listener = t->wake = t->epoll = -1;
    t->polled_ns = 1;
    t->due_ns = UINT64_MAX;
    t->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? (uint64_t)p->spin_us * 1000 : 0;
    if ((st = transport_start(t, err))) {
        transport_free(t);
        return st;
    }
    *out = t;
    return TN_OK;
}

/* Each packet has a checksum of 32 bits. */
static void transport_info(tn_transport *t, tn_transport_info *out)
{
    const tn_transport_info info = {.struct_size = out->struct_size,
                                    .flags =
                                        TN_TRANSPORT_SECRET | TN_TRANSPORT_CHECKSUMMED | TN_TRANSPORT_PUT,
                                    .message_max = UINT64_MAX,
                                    .pieces_max = TNRDMA_PIECES_MAX};

    (void)t;
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
}

static void transport_release(tn_transport *t, void *held)
{
    tnrdma_incoming_free(t, held); /* starved links go on in `poll` */
}

static void transport_disconnect(tn_link *l)
{
    tnrdma_link_leave(l);
}

/* What is told to nobody. */
static void events_drop(tn_transport *t)
{
    while (t->first) {
        tnrdma_event *e = tnrdma_event_pop(t);

        if (e->kind == TN_EVENT_RECV)
            tnrdma_incoming_free(t, (tnrdma_incoming *)e);
        else if (e->kind == TN_EVENT_SENT)
            free(e);
        else if (e->kind == TN_EVENT_DOWN)
            tnrdma_link_free(e->link);
    }
}

static bool all_sent(const tn_transport *t)
{
    for (const tn_link *l = t->links; l; l = l->next)
        if (l->out[0].queue || l->out[1].queue || !tnrdma_wire_quiet(l))
            return false;
    return true;
}

/* What was written is in the peer's memory, so it reads it also when we are gone. */
static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    const uint64_t from = tnrdma_now_ns();

    if (!t)
        return;
    for (tn_link *l = t->links; l; l = l->next)
        if (l->wire.cq)
            tnrdma_link_active(l);
    do
        events_drop(t);
    while (!all_sent(t) && tnrdma_now_ns() - from < timeout_ns && !tnrdma_turn(t, TURN_NS, NULL));
    while (t->links) {
        if (t->links->state == TNRDMA_UP || t->links->state == TNRDMA_CLOSING)
            tnrdma_bye(t->links);
        tnrdma_link_end(t->links, TN_E_CANCELLED, "closed");
    }
    events_drop(t);
    tnrdma_gone_free(t);
    tnrdma_spare_free(t, 0);
    tnrdma_regions_free(t);
    transport_free(t);
}

static int32_t transport_descriptor(tn_transport *t)
{
    return t->epoll;
}

static const char *transport_statistics(tn_transport *t)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"links", t->open},         {"strangers", t->strangers},
        {"refused", t->refused},    {"malformed", t->faults},
        {"messages_sent", t->sent}, {"messages_received", t->received},
        {"requests", t->requests},  {"notes", t->notes},
        {"bytes_held", t->held},    {"bytes_spare", t->spare_bytes},
    };
    size_t used = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        used += (size_t)snprintf(t->statistics + used, sizeof t->statistics - used, "%s\"%s\": %llu",
                                 i ? ", " : "{", rows[i].name, (unsigned long long)rows[i].value);
    (void)snprintf(t->statistics + used, sizeof t->statistics - used, "}");
    return t->statistics;
}

/* ---- the plugin --------------------------------------------------------------------------------------- */

/* The rows of the library's own options, kvstore.rdma_…, hold for this plugin. */
static tn_status options_read(const tn_host *host, const tn_options_service *o, tnrdma_plugin *p)
{
    const struct {
        const char *key;
        int64_t *to;
    } numbers_of[] = {{"kvstore.rdma_timeout", &p->timeout},
                      {"kvstore.rdma_retry", &p->retry},
                      {"kvstore.rdma_tc", &p->traffic_class},
                      {"handshake_ms", &p->handshake_ms},
                      {"stall_ms", &p->stall_ms},
                      {"ring_bytes", &p->ring_bytes},
                      {"spin_us", &p->spin_us}};
    const bool texts = TN_OFFERS(o, tn_options_service, text);
    const char *device = texts ? o->text(host, "kvstore.rdma_dev") : NULL,
               *gid = texts ? o->text(host, "kvstore.rdma_gid") : NULL,
               *mtu = texts ? o->text(host, "kvstore.rdma_mtu") : NULL;
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < sizeof numbers_of / sizeof *numbers_of; i++)
        st = o->integer(host, numbers_of[i].key, *numbers_of[i].to, numbers_of[i].to);
    (void)snprintf(p->device, sizeof p->device, "%s", device && *device ? device : "auto");
    p->gid = gid && strcmp(gid, "auto") != 0 ? (int32_t)strtol(gid, NULL, 10) : -1;
    p->mtu = mtu && strcmp(mtu, "active") != 0 ? (uint32_t)strtoul(mtu, NULL, 10) : 0;
    return st;
}

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);
    tnrdma_plugin *p = calloc(1, sizeof *p);
    tn_status st = TN_OK;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    *p = (tnrdma_plugin){.verbs = &tnrdma_libibverbs,
                         .device = "auto",
                         .gid = -1,
                         .timeout = 14,
                         .retry = 6,
                         .handshake_ms = 10000,
                         .stall_ms = 30000,
                         .ring_bytes = 16 << 20,
                         .spin_us = 50};
    if (options && TN_OFFERS(options, tn_options_service, integer))
        st = options_read(host, options, p);
    if (st) {
        free(p);
        return tn_fail(err, st, "an option of the plugin cannot be read");
    }
    *plugin = p;
    return TN_OK;
}

static void plugin_fini(void *plugin)
{
    free(plugin);
}

static const tn_transport_ops rdma = {
    .head = TN_CAPABILITY(tn_transport_ops, descriptor, TN_KIND_TRANSPORT, "rdma"),
    .open = transport_open,
    .info = transport_info,
    .listen = tnrdma_listen,
    .connect = tnrdma_connect,
    .send = tnrdma_send,
    .poll = tnrdma_poll,
    .wake = tnrdma_wake,
    .release = transport_release,
    .disconnect = transport_disconnect,
    .close = transport_close,
    .statistics = transport_statistics,
    .region_add = tnrdma_region_add,
    .region_remove = tnrdma_region_remove,
    .landing = tnrdma_landing_add,
    .landing_remove = tnrdma_landing_remove,
    .put = tnrdma_put_message,
    .descriptor = transport_descriptor,
};

#define NUMBER(key_, default_, help_, min_, max_)                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_option_row, max), .key = (key_), .type = "int",                   \
        .default_text = (default_), .help = (help_), .since = "0.1", .min = (min_), .max = (max_)            \
    }

static const tn_option_row numbers[] = {
    NUMBER("handshake_ms", "10000", "how long a peer may take to say whose it is", 1, 36e5),
    NUMBER("stall_ms", "30000", "how long a message that has begun may stop before the link is lost", 1,
           36e5),
    NUMBER("ring_bytes", "16777216",
           "memory of a link for each direction on each side, at most; a power of two, as much as two of the "
           "longest "
           "messages need",
           65536, 268435456),
    NUMBER("spin_us", "50", "how long poll looks for completions before it waits; 0 on one processor", 0,
           1e6),
};
static const tn_option_row *const rows[] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3], NULL};
static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-rdma"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&rdma.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-rdma", "0.1.0", "Tenon", "Apache-2.0", "the transport rdma, into the memory of peers",
                 "", "transport:rdma options", plugin_init, plugin_fini, NULL, capabilities);
