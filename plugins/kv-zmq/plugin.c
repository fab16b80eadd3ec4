/* The plugin kv-zmq: transports over TCP by libzmq, encrypted by CURVE where the job has a secret. */
#include "kv_zmq.h"

#include "../common/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINKS_MAX 65536

/* ---- a transport ------------------------------------------------------------------------------------ */

/* The secret is a CURVE key; all processes of a job have the same, as servers and as clients. */
static tn_status keys_make(tn_transport *t, tn_err *err)
{
    if (!t->config.secret)
        return TN_OK;
    if (!zmq_has("curve"))
        return tn_fail(err, TN_E_UNSUPPORTED, "this build of libzmq has no CURVE, so it cannot use a secret");
    if (!zmq_z85_encode(t->keys[1], t->config.secret, TN_TRANSPORT_SECRET_BYTES) ||
        zmq_curve_public(t->keys[0], t->keys[1]) || !zmq_z85_decode(t->key, t->keys[0]))
        return tnzmq_fail(err, TN_E_ARG, "the secret");
    return TN_OK;
}

static tn_status transport_start(tn_transport *t, tn_err *err)
{
    struct epoll_event watch = {.events = EPOLLIN};
    uint32_t buckets = 16;
    uint64_t sockets =
        (uint64_t)t->config.links_max * 6 + 16; /* two of a link, each with both ends of its monitor */
    int limit;
    tn_status st = keys_make(t, err);

    if (st)
        return st;
    while (buckets < t->config.links_max)
        buckets *= 2;
    t->buckets = calloc(buckets, sizeof(tn_link *));
    t->buckets_mask = buckets - 1;
    if (!t->buckets)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    if (!(t->context = zmq_ctx_new()) || (t->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (t->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->bell, &watch))
        return tnzmq_fail(err, TN_E_IO, "libzmq's context");
    limit = zmq_ctx_get(t->context, ZMQ_SOCKET_LIMIT);
    sockets = sockets > (uint64_t)limit ? (uint64_t)limit : sockets;
    if (zmq_ctx_set(t->context, ZMQ_IO_THREADS, (int)t->config.lanes) ||
        zmq_ctx_set(t->context, ZMQ_MAX_SOCKETS, (int)sockets))
        return tnzmq_fail(err, TN_E_IO, "the options of libzmq's context");
    return TN_OK;
}

static void transport_free(tn_transport *t)
{
    while (t->context && zmq_ctx_term(t->context) && zmq_errno() == EINTR)
        ;
    tnzmq_links_reap(t); /* the last ones */
    while (t->events.next != &t->events) {
        tnzmq_event *e = (tnzmq_event *)(void *)t->events.next;

        tnzmq_list_remove(&e->node);
        if (e->kind == TN_EVENT_RECV)
            tnzmq_release(t, e);
        else if (e->kind == TN_EVENT_SENT)
            free(e);
    }
    while (t->links.next != &t->links)
        tnzmq_link_destroy((tn_link *)(void *)t->links.next);
    while (t->graves.next != &t->graves)
        tnzmq_link_destroy((tn_link *)(void *)t->graves.next);
    if (t->bell >= 0)
        (void)close(t->bell);
    if (t->epoll >= 0)
        (void)close(t->epoll);
    free(t->buckets);
    free(t);
}

static tn_status transport_open(void *plugin, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    tn_transport *t;
    tn_status st;

    if (config->flags & ~TN_OPEN_KNOWN)
        return tn_failf(err, TN_E_ARG, "flags %u", (unsigned)config->flags);
    if (!config->links_max || config->links_max > LINKS_MAX || config->receive_bytes < config->message_max)
        return tn_fail(err, TN_E_ARG, "1 to 65536 links, and receive_bytes not below message_max");
    if (!(t = calloc(1, sizeof *t)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    t->plugin = plugin;
    t->config = *config;
    t->sendbuf_most = t->plugin->send_bytes ? 0 : tnzmq_sendbuf_most();
    t->config.lanes = config->lanes < 1 ? 1 : config->lanes > 64 ? 64 : config->lanes;
    t->epoll = t->bell = -1;
    t->tick_ns = UINT64_MAX;
    tnzmq_list_init(&t->links);
    tnzmq_list_init(&t->graves);
    tnzmq_list_init(&t->events);
    tnzmq_list_init(&t->ready);
    if ((st = transport_start(t, err))) {
        transport_free(t);
        return st;
    }
    if (config->secret) /* its bytes are the host's; only whether there is one is asked later */
        t->config.secret = t->key;
    *out = t;
    return TN_OK;
}

static void transport_info(tn_transport *t, tn_transport_info *out)
{
    out->flags = TN_TRANSPORT_SECRET;
    if (t->config.secret)
        out->flags |= TN_TRANSPORT_ENCRYPTED | TN_TRANSPORT_CHECKSUMMED;
    out->message_max = t->config.message_max;
    out->pieces_max = TNZMQ_PIECES_MAX;
    out->reserved = 0;
}

static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    const uint64_t ms = timeout_ns / 1000000;
    const int linger = ms > INT32_MAX ? INT32_MAX : (int)ms;

    for (tnzmq_node *n = t->links.next; n != &t->links; n = n->next) {
        tn_link *link = (tn_link *)(void *)n;

        for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
            if (link->state == TNZMQ_UP)
                (void)tnzmq_frame_send(link, i, &(tnzmq_frame){.kind = TNZMQ_BYE});
            tnzmq_monitored_close(t, &link->channel[i].source, &link->channel[i].monitor, linger);
        }
    }
    tnzmq_doors_close(t, linger);
    tnzmq_source_close(t, &t->zap, 0);
    transport_free(t);
}

static const char *transport_statistics(tn_transport *t)
{
    const tnzmq_counters *c = &t->counters;
    const tnzmq_door *d = t->door;
    const statistic rows[] = {
        {"port", d[TNZMQ_CONTROL].port},
        {"bulk_port", d[TNZMQ_BULK].port},
        {"links", t->links_count},
        {"dialled", c->dialled},
        {"lost", c->lost},
        {"connections", (uint64_t)d[TNZMQ_CONTROL].alive + d[TNZMQ_BULK].alive},
        {"accepted", c->accepted},
        {"refused", c->refused},
        {"strangers", c->strangers},
        {"malformed", c->malformed},
        {"messages_sent", c->sent},
        {"bytes_sent", c->sent_bytes},
        {"messages_received", c->received},
        {"bytes_received", c->received_bytes},
        {"bytes_held", t->held_bytes},
    };

    return statistics_print(rows, sizeof rows / sizeof *rows, t->statistics, sizeof t->statistics);
}

/* ---- the plugin ------------------------------------------------------------------------------------- */

static const setting settings[] = {
    SETTING(tnzmq_plugin, handshake_ms, "10000", "how long a connection may take to say whose it is", 1,
            36e5),
    SETTING(tnzmq_plugin, heartbeat_ms, "1000", "how often a link that is silent is asked for a sign of life",
            1, 36e5),
    SETTING(tnzmq_plugin, dead_ms, "10000", "how long the answer may take before the link is lost", 1, 36e5),
    SETTING(
        tnzmq_plugin, send_bytes, "0",
        "bytes of a connection's send buffer; 0: by goodput and round trip, on one host as the kernel tunes "
        "it",
        0, 1e9),
};
static const tn_option_row *const rows[] = {&settings[0].row, &settings[1].row, &settings[2].row,
                                            &settings[3].row, NULL};

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    return settings_plugin(host, settings, sizeof settings / sizeof *settings, sizeof(tnzmq_plugin), plugin,
                           err);
}

static void plugin_fini(void *plugin)
{
    free(plugin);
}

static const tn_transport_ops zmq = {
    .head = TN_CAPABILITY(tn_transport_ops, descriptor, TN_KIND_TRANSPORT, "zmq"),
    .open = transport_open,
    .info = transport_info,
    .listen = tnzmq_listen,
    .connect = tnzmq_connect,
    .send = tnzmq_send,
    .poll = tnzmq_poll,
    .wake = tnzmq_wake,
    .release = tnzmq_release,
    .disconnect = tnzmq_disconnect,
    .close = transport_close,
    .statistics = transport_statistics,
    .descriptor = tnzmq_descriptor,
};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-zmq"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&zmq.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-zmq", "0.1.0", "Tenon", "Apache-2.0", "the transport zmq, over TCP by libzmq", "",
                 "transport:zmq options", plugin_init, plugin_fini, NULL, capabilities);
