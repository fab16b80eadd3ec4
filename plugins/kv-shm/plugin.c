/* The plugin kv-shm: transports between the processes of one host, through shared memory. */
#include "kv_shm.h"

#include <unistd.h>

/* ---- a transport -------------------------------------------------------------------------------------- */

static void transport_free(tn_transport *t)
{
    if (t->port >= 0)
        (void)close(t->port);
    ring_destroy(t);
}

static tn_status transport_open(void *self, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    tn_transport *t;
    tn_status st = ring_create(&tnshm_links, self, config, &t, err);

    if (st)
        return st;
    t->port = -1;
    if ((st = ring_loop_open(t, err))) {
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
                                    .pieces_max = RING_PIECES_MAX};

    (void)t;
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
}

/* Links that have starved go on in `poll`. */
static void transport_release(tn_transport *t, void *held)
{
    tnshm_incoming_free(t, held);
}

static void transport_disconnect(tn_link *l)
{
    ring_link_end(l, TN_E_CANCELLED, "disconnected");
}

/* Messages are in memory that the peer has mapped, so it reads them also when we are gone. */
static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    if (!t)
        return;
    ring_flush(t, timeout_ns);
    ring_close(t);
    transport_free(t);
}

static const char *transport_statistics(tn_transport *t)
{
    const statistic rows[] = {RING_STATISTICS(t)};

    return statistics_print(rows, sizeof rows / sizeof *rows, t->statistics, sizeof t->statistics);
}

/* ---- the plugin --------------------------------------------------------------------------------------- */

static const setting settings[] = {
    SETTING(tnshm_plugin, handshake_ms, "10000", "how long a peer may take to say whose it is", 1, 36e5),
    SETTING(tnshm_plugin, stall_ms, "30000",
            "how long a message that has begun may stop before the link is lost", 1, 36e5),
    SETTING(tnshm_plugin, ring_bytes, "2097152",
            "shared memory of a link for each direction, rounded up to a power of two", 65536, 67108864),
};
static const tn_option_row *const rows[] = {&settings[0].row, &settings[1].row, &settings[2].row, NULL};

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_status st = settings_plugin(host, settings, sizeof settings / sizeof *settings,
                                         sizeof(tnshm_plugin), plugin, err);
    uint64_t ring = TNSHM_RING_MIN;
    tnshm_plugin *p;

    if (st)
        return st;
    p = *plugin;
    while (ring < (uint64_t)p->ring_bytes && ring < TNSHM_RING_MAX)
        ring *= 2;
    p->ring_bytes = (int64_t)ring;
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
    .poll = ring_poll,
    .wake = ring_wake,
    .release = transport_release,
    .disconnect = transport_disconnect,
    .close = transport_close,
    .statistics = transport_statistics,
    .descriptor = ring_descriptor,
};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-shm"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&shm.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-shm", "0.1.0", "Tenon", "Apache-2.0", "the transport shm, through memory of one host",
                 "", "transport:shm options", plugin_init, plugin_fini, NULL, capabilities);
