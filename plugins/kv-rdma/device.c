/*
 * The device of a transport: which one, its port, the index of its GID and the MTU; and why none can be used.
 *
 * Of the GIDs of an Ethernet port only those of RoCE v2 are taken: an address of IPv4 first, then one of
 * IPv6 that is routed, then one that is not. A port of InfiniBand has index 0.
 */
#include "kv_rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#define GIDS_MAX 256u
#define ADVICE                                                                                               \
    "`rdma link add rxe0 type rxe netdev eth0` makes one of an Ethernet port, kvstore.transport = zmq "      \
    "needs none"

tn_status tnrdma_fail_memory(tn_err *err, uint64_t bytes, int number)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (number == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
        return tn_failf(
            err, TN_E_NOMEM,
            "%.1f MiB cannot be pinned for RDMA, the limit of this process is %.1f MiB: raise it (ulimit "
            "-l unlimited, LimitMEMLOCK=infinity), or lower plugin.kv-rdma.ring_bytes",
            (double)bytes / 1048576, (double)limit.rlim_cur / 1048576);
    return tn_failf(err, number == ENOMEM ? TN_E_NOMEM : TN_E_IO,
                    "%.1f MiB cannot be registered for RDMA: %s", (double)bytes / 1048576, strerror(number));
}

uint32_t tnrdma_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

bool tnrdma_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

    return !memcmp(gid->raw, mapped, sizeof mapped);
}

void tnrdma_gid_print(const union ibv_gid *gid, char out[48])
{
    const bool ipv4 = tnrdma_gid_is_ipv4(gid);

    if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), out, 48))
        out[0] = '\0';
}

/* ---- GIDs --------------------------------------------------------------------------------------------- */

/* 0: it is of no use. */
static uint32_t gid_rank(const struct ibv_gid_entry *e, bool ethernet)
{
    static const union ibv_gid none;
    const bool local = e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80;

    if (!memcmp(&e->gid, &none, sizeof none))
        return 0;
    if (!ethernet)
        return e->gid_type == IBV_GID_TYPE_IB ? 1 + !e->gid_index : 0;
    return e->gid_type != IBV_GID_TYPE_ROCE_V2 ? 0 : tnrdma_gid_is_ipv4(&e->gid) ? 3 : local ? 1 : 2;
}

static tn_status gid_choose(const tnrdma_plugin *p, tnrdma_device *d, tn_err *err)
{
    struct ibv_gid_entry *all = calloc(GIDS_MAX, sizeof *all);
    const ssize_t count = all ? p->verbs->gid_table(d->context, all, GIDS_MAX) : 0;
    uint32_t best = 0;

    if (!all)
        return tn_fail(err, TN_E_NOMEM, "out of memory for the table of GIDs");
    for (ssize_t i = 0; i < count; i++) {
        const uint32_t rank = all[i].port_num != d->port ? 0
                              : p->gid >= 0 && (uint32_t)p->gid != all[i].gid_index
                                  ? 0
                                  : gid_rank(&all[i], d->ethernet);

        if (rank <= best)
            continue;
        best = rank;
        d->gid_index = (uint8_t)all[i].gid_index;
        d->gid = all[i].gid;
    }
    free(all);
    if (best || (!d->ethernet && p->gid < 0))
        return TN_OK;
    return p->gid >= 0
               ? tn_failf(err, TN_E_DEVICE,
                          "%s has no GID %d of %s: kvstore.rdma_gid = auto takes the best one", d->name,
                          (int)p->gid, d->ethernet ? "RoCE v2" : "InfiniBand")
               : tn_failf(err, TN_E_DEVICE,
                          "%s has no GID of RoCE v2: its network interface needs an address of IP", d->name);
}

/* ---- ports -------------------------------------------------------------------------------------------- */

static const char *state_name(enum ibv_port_state state)
{
    static const char *const names[] = {"no state", "down",   "initializing",
                                        "armed",    "active", "active, deferred"};

    return (uint32_t)state < sizeof names / sizeof *names ? names[state] : "of a state nobody knows";
}

static tn_status port_use(const tnrdma_plugin *p, tnrdma_device *d, const char *device, uint8_t port,
                          tn_err *err)
{
    struct ibv_port_attr attr = {.state = IBV_PORT_NOP};

    (void)snprintf(d->name, sizeof d->name, "%.60s port %u", device, (unsigned)port);
    d->port = port;
    errno = EINVAL;
    if (p->verbs->port_query(d->context, port, &attr))
        return fail_system(err, d->name);
    if (attr.state != IBV_PORT_ACTIVE)
        return tn_failf(err, TN_E_DEVICE,
                        "%s is %s: its cable, its switch or its network interface (ip link)", d->name,
                        state_name(attr.state));
    d->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    d->lid = attr.lid;
    d->mtu = attr.active_mtu;
    if (p->mtu > tnrdma_mtu_bytes(attr.active_mtu))
        return tn_failf(
            err, TN_E_DEVICE,
            "kvstore.rdma_mtu is %u, but %s has %u: the MTU of its network interface has to be larger",
            (unsigned)p->mtu, d->name, (unsigned)tnrdma_mtu_bytes(attr.active_mtu));
    while (p->mtu && tnrdma_mtu_bytes(d->mtu) > p->mtu)
        d->mtu--;
    return gid_choose(p, d, err);
}

static tn_status context_use(const tnrdma_plugin *p, tnrdma_device *d, const char *device, uint32_t port,
                             tn_err *err)
{
    struct ibv_device_attr attr;
    tn_status st = TN_E_DEVICE;

    if (p->verbs->device_query(d->context, &attr))
        return fail_system(err, device);
    if (attr.max_sge < (int)TNRDMA_SGES_MAX)
        return tn_failf(err, TN_E_DEVICE, "%s takes %d pieces of a request, and %u are needed", device,
                        attr.max_sge, TNRDMA_SGES_MAX);
    if (port > attr.phys_port_cnt)
        return tn_failf(err, TN_E_DEVICE, "kvstore.rdma_dev names port %u of %s, which has %u",
                        (unsigned)port, device, (unsigned)attr.phys_port_cnt);
    for (uint32_t i = port ? port : 1; st && i <= (port ? port : attr.phys_port_cnt); i++)
        st = port_use(p, d, device, (uint8_t)i, err);
    return st;
}

/* ---- devices ------------------------------------------------------------------------------------------ */

static bool nonblocking(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static tn_status device_use(const tnrdma_plugin *p, tnrdma_device *d, struct ibv_device *device,
                            uint32_t port, tn_err *err)
{
    const char *name = p->verbs->device_name(device);
    tn_status st;

    if (!(d->context = p->verbs->device_open(device)))
        return tn_failf(err, TN_E_DEVICE, "device %s cannot be opened: %s (/dev/infiniband is for its group)",
                        name, strerror(errno));
    if ((st = context_use(p, d, name, port, err)))
        return st;
    if (!(d->pd = p->verbs->pd_alloc(d->context)) || !(d->channel = p->verbs->channel_create(d->context)) ||
        !nonblocking(d->channel->fd) || !nonblocking(d->context->async_fd))
        return fail_system(err, name);
    return TN_OK;
}

void tnrdma_device_close(const tnrdma_plugin *p, tnrdma_device *d)
{
    if (d->channel)
        (void)p->verbs->channel_destroy(d->channel);
    if (d->pd)
        (void)p->verbs->pd_free(d->pd);
    if (d->context)
        (void)p->verbs->device_close(d->context);
    *d = (tnrdma_device){.context = NULL};
}

/* "auto", "NAME" or "NAME:PORT"; port 0: the first that is active. */
static bool name_split(const char *text, char name[64], uint32_t *port)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);

    *port = 0;
    (void)snprintf(name, 64, "%.*s", (int)(length < 63 ? length : 63), text);
    if (!colon)
        return length > 0;
    *port = (uint32_t)strtoul(colon + 1, NULL, 10);
    return length > 0 && colon[1] && strlen(colon + 1) <= 3 &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1) && *port > 0 && *port < 256;
}

static tn_status device_choose(const tnrdma_plugin *p, tnrdma_device *d, struct ibv_device **list, int count,
                               tn_err *err)
{
    char name[64];
    uint32_t port;
    bool any;
    tn_status st = TN_E_DEVICE;

    if (!name_split(p->device, name, &port))
        return tn_failf(err, TN_E_ARG, "kvstore.rdma_dev is \"%.60s\"; it may be auto, NAME or NAME:PORT",
                        p->device);
    any = !strcmp(name, "auto");
    (void)tn_failf(err, st, "kvstore.rdma_dev is %s, and there is no such device; %s is one", name,
                   count ? p->verbs->device_name(list[0]) : "");
    for (int i = 0; st && i < count; i++) {
        if (!any && strcmp(p->verbs->device_name(list[i]), name) != 0)
            continue;
        st = device_use(p, d, list[i], port, err); /* of several the last one says why */
        if (st)
            tnrdma_device_close(p, d);
    }
    return st;
}

tn_status tnrdma_device_open(const tnrdma_plugin *p, tnrdma_device *d, tn_err *err)
{
    int count = 0;
    struct ibv_device **list = p->verbs->device_list(&count);
    tn_status st;

    *d = (tnrdma_device){.context = NULL};
    if (!list || !count)
        st = tn_fail(err, TN_E_DEVICE, "this machine has no RDMA device: " ADVICE);
    else
        st = device_choose(p, d, list, count, err);
    if (list)
        p->verbs->device_list_free(list);
    return st;
}
