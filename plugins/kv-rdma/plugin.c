/* The plugin kv-rdma: transports that write into the memory of their peers, by libibverbs. */
#include "kv_rdma.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- a transport -------------------------------------------------------------------------------------- */

static void transport_free(tn_transport *t)
{
    tnrdma_device_close(t->plugin, &t->device);
    ring_destroy(t);
}

/* Whether the memory of one link may be pinned is better said now than by the end of the first link. */
static tn_status memory_try(tn_transport *t, tn_err *err)
{
    const uint64_t bytes = 2 * (TNRDMA_URGENT_BYTES + t->ring_bytes);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;
    tn_status st = TN_OK;

    if (at == MAP_FAILED)
        return fail_system(err, "memory for a link");
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
    if ((st = ring_loop_open(t, err)))
        return st;
    if (!ring_watch(t, t->device.channel->fd, &t->device) ||
        !ring_watch(t, t->device.context->async_fd, &t->device))
        return fail_system(err, "epoll");
    return memory_try(t, err);
}

static tn_status transport_open(void *self, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    const tnrdma_plugin *p = self;
    tn_transport *t;
    tn_status st = ring_create(&tnrdma_links, self, config, &t, err);

    if (st)
        return st;
    t->verbs = p->verbs;
    t->config.lanes = config->lanes < 1                  ? 1
                      : config->lanes < TNRDMA_LANES_MAX ? config->lanes
                                                         : TNRDMA_LANES_MAX;
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
                                    .pieces_max = RING_PIECES_MAX};

    (void)t;
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
}

/* Links that have starved go on in `poll`. */
static void transport_release(tn_transport *t, void *held)
{
    ring_incoming_free(t, held);
}

/* What was written is in the peer's memory, so it reads it also when we are gone. */
static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    if (!t)
        return;
    ring_flush(t, timeout_ns);
    for (tn_link *l = t->links; l; l = l->next)
        if (l->state == RING_UP || l->state == RING_CLOSING)
            tnrdma_bye(l);
    ring_close(t);
    tnrdma_regions_free(t);
    transport_free(t);
}

static const char *transport_statistics(tn_transport *t)
{
    const statistic rows[] = {RING_STATISTICS(t), {"requests", t->requests}, {"notes", t->notes}};

    return statistics_print(rows, sizeof rows / sizeof *rows, t->statistics, sizeof t->statistics);
}

/* ---- the plugin --------------------------------------------------------------------------------------- */

static const setting settings[] = {
    SETTING(tnrdma_plugin, handshake_ms, "10000", "how long a peer may take to say whose it is", 1, 36e5),
    SETTING(tnrdma_plugin, stall_ms, "30000",
            "how long a message that has begun may stop before the link is lost", 1, 36e5),
    SETTING(tnrdma_plugin, ring_bytes, "16777216",
            "memory of a link for each direction on each side, at most; a power of two, as much as two of "
            "the longest messages need",
            65536, 268435456),
    SETTING(tnrdma_plugin, spin_us, "50",
            "how long poll looks for completions before it waits; 0 on one processor", 0, 1e6),
};
static const tn_option_row *const rows[] = {&settings[0].row, &settings[1].row, &settings[2].row,
                                            &settings[3].row, NULL};

/* Options of the library that hold for this plugin: its own rows say their range. */
static const setting shared[] = {
    SETTING_OF(tnrdma_plugin, timeout, "kvstore.rdma_timeout", "14", "", 0, 0),
    SETTING_OF(tnrdma_plugin, retry, "kvstore.rdma_retry", "6", "", 0, 0),
    SETTING_OF(tnrdma_plugin, traffic_class, "kvstore.rdma_tc", "0", "", 0, 0),
};

static const char *text_read(const tn_host *host, const char *key, const char *none)
{
    const tn_options_service *o = tn_host_service(host, TN_SERVICE_OPTIONS);
    const char *text = o && TN_OFFERS(o, tn_options_service, text) ? o->text(host, key) : NULL;

    return text && *text && strcmp(text, none) != 0 ? text : NULL;
}

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    const char *device = text_read(host, "kvstore.rdma_dev", ""),
               *gid = text_read(host, "kvstore.rdma_gid", "auto"),
               *mtu = text_read(host, "kvstore.rdma_mtu", "active");
    void *state;
    tn_status st = settings_plugin(host, settings, sizeof settings / sizeof *settings, sizeof(tnrdma_plugin),
                                   &state, err);
    tnrdma_plugin *p;

    if (st)
        return st;
    p = state;
    if ((st = settings_read(host, shared, sizeof shared / sizeof *shared, p, err))) {
        free(p);
        return st;
    }
    p->verbs = &tnrdma_libibverbs;
    (void)snprintf(p->device, sizeof p->device, "%s", device ? device : "auto");
    p->gid = gid ? (int32_t)strtol(gid, NULL, 10) : -1;
    p->mtu = mtu ? (uint32_t)strtoul(mtu, NULL, 10) : 0;
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
    .poll = ring_poll,
    .wake = ring_wake,
    .release = transport_release,
    .disconnect = tnrdma_link_leave,
    .close = transport_close,
    .statistics = transport_statistics,
    .region_add = tnrdma_region_add,
    .region_remove = tnrdma_region_remove,
    .landing = tnrdma_landing_add,
    .landing_remove = tnrdma_landing_remove,
    .put = tnrdma_put_message,
    .descriptor = ring_descriptor,
};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "kv-rdma"),
    .rows = rows,
};

static const tn_capability *const capabilities[] = {&rdma.head, &options.head, NULL};

TN_PLUGIN_DEFINE("kv-rdma", "0.1.0", "Tenon", "Apache-2.0", "the transport rdma, into the memory of peers",
                 "", "transport:rdma options", plugin_init, plugin_fini, NULL, capabilities);
