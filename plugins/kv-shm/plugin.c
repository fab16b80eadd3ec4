/* The plugin kv-shm: transports between the processes of one host, through shared memory. */
#include "kv_shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINKS_MAX 65536u
#define TURN_NS 1000000u /* of a wait in `close`, which nobody tells when all is sent */

/* ---- a transport -------------------------------------------------------------------------------------- */

static void transport_free(tn_transport *t)
{
    const int files[] = {t->listener, t->port, t->wake, t->epoll};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
    explicit_bzero(t->key, sizeof t->key);
    free(t);
}

static tn_status transport_open(void *self, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    struct epoll_event e = {.events = EPOLLIN};
    tn_transport *t;

    if (config->struct_size < TN_END(tn_transport_config, lanes) || config->flags & ~TN_OPEN_KNOWN ||
        config->receive_bytes < config->message_max || config->message_max > (uint64_t)INT64_MAX / 32 ||
        !config->links_max || config->links_max > LINKS_MAX)
        return tn_fail(err, TN_E_ARG, "a configuration with unknown flags, or limits that cannot be");
    if (!(t = calloc(1, sizeof *t)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a transport");
    t->plugin = self;
    t->config = (tn_transport_config){.flags = config->flags,
                                      .receive_bytes = config->receive_bytes,
                                      .message_max = config->message_max,
                                      .links_max = config->links_max};
    if (config->secret) {
        memcpy(t->key, config->secret, TN_TRANSPORT_SECRET_BYTES);
        t->key[TN_TRANSPORT_SECRET_BYTES] = 1;
        t->config.secret = t->key;
    }
    t->last = &t->first;
    t->listener = t->port = -1;
    t->polled_ns = 1;
    t->due_ns = UINT64_MAX;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e.data.ptr = t;
    if (t->epoll < 0 || t->wake < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->wake, &e)) {
        const tn_status st = tnshm_fail_system(err, "epoll");

        transport_free(t);
        return st;
    }
    *out = t;
    return TN_OK;
}

/* Memory damages no bytes on their way. */
static void transport_info(tn_transport *t, tn_transport_info *out)
{
    const tn_transport_info info = {.struct_size = out->struct_size,
                                    .flags = TN_TRANSPORT_SECRET | TN_TRANSPORT_CHECKSUMMED,
                                    .message_max = UINT64_MAX,
                                    .pieces_max = TNSHM_PIECES_MAX};

    (void)t;
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
}

static void transport_release(tn_transport *t, void *held)
{
    tnshm_incoming_free(t, held); /* starved links go on in `poll` */
}

static void transport_disconnect(tn_link *l)
{
    tnshm_link_end(l, TN_E_CANCELLED, "disconnected");
}

/* What is told to nobody. */
static void events_drop(tn_transport *t)
{
    while (t->first) {
        tnshm_event *e = tnshm_event_pop(t);

        if (e->kind == TN_EVENT_RECV)
            tnshm_incoming_free(t, (tnshm_incoming *)e);
        else if (e->kind == TN_EVENT_SENT)
            free(e);
        else if (e->kind == TN_EVENT_DOWN)
            tnshm_link_free(e->link);
    }
}

static bool all_sent(const tn_transport *t)
{
    for (const tn_link *l = t->links; l; l = l->next)
        for (uint32_t i = 0; i < TNSHM_LANES; i++)
            if (l->out[i].queue)
                return false;
    return true;
}

/* Messages are in memory that the peer has mapped, so it reads them also when we are gone. */
static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    const uint64_t from = tnshm_now_ns();

    if (!t)
        return;
    for (tn_link *l = t->links; l; l = l->next)
        if (l->state == TNSHM_UP)
            tnshm_link_active(l);
    do
        events_drop(t);
    while (!all_sent(t) && tnshm_now_ns() - from < timeout_ns && !tnshm_turn(t, TURN_NS, NULL));
    while (t->links)
        tnshm_link_end(t->links, TN_E_CANCELLED, "closed");
    events_drop(t);
    tnshm_gone_free(t);
    tnshm_spare_free(t, 0);
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
        {"links", t->open},       {"strangers", t->strangers},     {"refused", t->refused},
        {"malformed", t->faults}, {"messages_sent", t->sent},      {"messages_received", t->received},
        {"bytes_held", t->held},  {"bytes_spare", t->spare_bytes},
    };
    size_t used = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        used += (size_t)snprintf(t->statistics + used, sizeof t->statistics - used, "%s\"%s\": %llu",
                                 i ? ", " : "{", rows[i].name, (unsigned long long)rows[i].value);
    (void)snprintf(t->statistics + used, sizeof t->statistics - used, "}");
    return t->statistics;
}

/* ---- the plugin --------------------------------------------------------------------------------------- */

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);
    tnshm_plugin *p = calloc(1, sizeof *p);
    uint64_t ring = TNSHM_RING_MIN;
    tn_status st = TN_OK;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    *p = (tnshm_plugin){.handshake_ms = 10000, .stall_ms = 30000, .ring_bytes = 2 << 20};
    if (options && TN_OFFERS(options, tn_options_service, integer)) {
        (void)((st = options->integer(host, "handshake_ms", p->handshake_ms, &p->handshake_ms)) ||
               (st = options->integer(host, "stall_ms", p->stall_ms, &p->stall_ms)) ||
               (st = options->integer(host, "ring_bytes", p->ring_bytes, &p->ring_bytes)));
    }
    if (st) {
        free(p);
        return tn_fail(err, st, "an option of the plugin cannot be read");
    }
    while (ring < (uint64_t)p->ring_bytes && ring < TNSHM_RING_MAX)
        ring *= 2;
    p->ring_bytes = (int64_t)ring;
    *plugin = p;
    return TN_OK;
}

static void plugin_fini(void *plugin)
{
    free(plugin);
}

static const tn_transport_ops shm = {
    .head = TN_CAPABILITY(tn_transport_ops, descriptor, TN_KIND_TRANSPORT, "shm"),
    .open = transport_open,
    .info = transport_info,
    .listen = tnshm_listen,
    .connect = tnshm_connect,
    .send = tnshm_send,
    .poll = tnshm_poll,
    .wake = tnshm_wake,
    .release = transport_release,
    .disconnect = transport_disconnect,
    .close = transport_close,
    .statistics = transport_statistics,
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
    NUMBER("ring_bytes", "2097152",
           "shared memory of a link for each direction, rounded up to a power of two", 65536, 67108864),
};
static const tn_option_row *const rows[] = {&numbers[0], &numbers[1], &numbers[2], NULL};
static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-shm"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&shm.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-shm", "0.1.0", "Tenon", "Apache-2.0", "the transport shm, through memory of one host",
                 "", "transport:shm options", plugin_init, plugin_fini, NULL, capabilities);
