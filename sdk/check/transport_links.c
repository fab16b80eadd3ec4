/*
 * Group transport: how links begin and end, waiting, and what many of them leave behind.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport.h"

static bool is_down(const void *arg)
{
    return ((const chk_end *)arg)->down;
}

static bool is_up(const void *arg)
{
    return ((const chk_end *)arg)->up;
}

static void status_is(chk_env *env, tn_status st, tn_status wanted, const char *what)
{
    chk_count(env);
    if (st != wanted)
        chk_fail(env, NULL, "%s gives %s, not %s", what, tn_status_name(st), tn_status_name(wanted));
}

/* ---- open, listen, connect ---------------------------------------------------------------------------- */

static void info_check(chk_env *env, const chk_site *n)
{
    const tn_transport_ops *o = n->net->ops;
    const uint32_t flags = n->info.flags;

    chk_fail_if(env, flags & ~TN_TRANSPORT_KNOWN, "L-unknown", "info has flags that have no meaning: %#x",
                (unsigned)flags);
    chk_fail_if(env, n->info.reserved, "L-unknown", "`reserved` of info is not 0");
    chk_fail_if(env, !n->info.message_max || !n->info.pieces_max, NULL,
                "info has message_max %llu and pieces_max %u", (unsigned long long)n->info.message_max,
                (unsigned)n->info.pieces_max);
    chk_fail_if(env, !(flags & TN_TRANSPORT_PUT) == (bool)TN_OFFERS(o, tn_transport_ops, put), NULL,
                "info and the table disagree whether there are puts");
    chk_fail_if(env, flags & TN_TRANSPORT_REGIONS && !TN_OFFERS(o, tn_transport_ops, region_add), NULL,
                "regions are asked for, and the table cannot make any");
    chk_fail_if(env, flags & TN_TRANSPORT_ENCRYPTED && !n->config.secret, NULL,
                "it says that it encrypts, without a secret");
}

void chk_transport_open(chk_env *env)
{
    static const uint8_t secret[TN_TRANSPORT_SECRET_BYTES] = {1, 2, 3};
    const tn_transport_config unknown = {.flags = ~TN_OPEN_KNOWN}, with = {.secret = secret};
    const tn_transport_config little = {.message_max = 2000, .receive_bytes = 1999};
    tn_err err = {0};
    chk_site *n = NULL;
    chk_net net;
    tn_status st;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    for (int i = 0; i < 2; i++)
        info_check(env, chk_site_open(&net, NULL)); /* several at a time */
    status_is(env, chk_site_try(&net, &unknown, &n, &err), TN_E_ARG, "open with flags that have no meaning");
    status_is(env, chk_site_try(&net, &little, &n, &err), TN_E_ARG,
              "open with receive_bytes below message_max");
    st = chk_site_try(&net, &with, &n, &err);
    status_is(env, st, net.sites[0].info.flags & TN_TRANSPORT_SECRET ? TN_OK : TN_E_UNSUPPORTED,
              "open with a secret");
    if (TN_OFFERS(net.ops, tn_transport_ops, statistics)) {
        const char *text = net.ops->statistics(net.sites[0].t);

        chk_fail_if(env, !text || text[0] != '{' || text[strlen(text) - 1] != '}', "T-statistics",
                    "statistics gives no JSON object: %.100s", text ? text : "NULL");
    }
    chk_net_close(&net);
}

static tn_status listen_at(chk_site *n, const char *where)
{
    uint8_t address[TN_TRANSPORT_ADDRESS_MAX];
    uint32_t bytes = 0;
    tn_err err = {0};

    return n->net->ops->listen(n->t, where, address, &bytes, &err);
}

static tn_status connect_at(chk_site *n, const char *where)
{
    tn_link *link = NULL;
    tn_err err = {0};

    return n->net->ops->connect(n->t, where, (uint32_t)strlen(where), &link, &err);
}

/* An address of this machine that is not loopback; "": it has none. */
static void own_address(char out[INET_ADDRSTRLEN + 8])
{
    struct ifaddrs *list = NULL;

    out[0] = '\0';
    if (getifaddrs(&list))
        return;
    for (const struct ifaddrs *i = list; i && !out[0]; i = i->ifa_next) {
        const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)i->ifa_addr;

        if (a && a->sin_family == AF_INET && ntohl(a->sin_addr.s_addr) >> 24 != 127 &&
            inet_ntop(AF_INET, &a->sin_addr, out, INET_ADDRSTRLEN))
            (void)strcat(out, ":0");
    }
    freeifaddrs(list);
}

/* A port that is taken: by a plain socket, which listens. */
static int port_take(chk_env *env, char out[32])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    chk_fail_if(env,
                fd < 0 || bind(fd, (struct sockaddr *)&a, bytes) || listen(fd, 8) ||
                    getsockname(fd, (struct sockaddr *)&a, &bytes),
                "kit", "no socket could be made");
    (void)snprintf(out, 32, "127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
    return fd;
}

void chk_transport_listen(chk_env *env)
{
    static const char *const nowhere[] = {
        "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-1", "300.0.0.1:0"};
    char taken[32], own[INET_ADDRSTRLEN + 8];
    chk_site *a, *b;
    chk_end *e;
    chk_net net;
    int fd;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    a = chk_site_open(&net, NULL);
    b = chk_site_open(&net, NULL);
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        if (listen_at(b, nowhere[i]) != TN_E_ARG)
            chk_fail(env, NULL, "listen takes \"%s\" for a place", nowhere[i]);
        if (connect_at(a, nowhere[i]) != TN_E_ARG)
            chk_fail(env, "T-connect", "connect takes \"%s\" for a place", nowhere[i]);
    }
    fd = port_take(env, taken);
    status_is(env, listen_at(b, taken), TN_E_IO, "listen on a port that is taken");
    (void)close(fd);
    status_is(env, connect_at(a, "192.0.2.1:9"), TN_E_STATE, "connect beyond loopback without a secret");
    own_address(own);
    if (own[0])
        status_is(env, listen_at(b, own), TN_E_STATE, "listen beyond loopback without a secret");
    chk_site_listen(b); /* what was refused leaves it as it was */
    status_is(env, listen_at(b, "127.0.0.1:0"), TN_E_STATE, "listen a second time");
    e = chk_site_connect(a, b);
    chk_net_until(&net, is_up, e, "T-up", "connect was called, and UP has not come");
    chk_net_close(&net);
}

/* Nobody listens there: the port was somebody's a moment ago. */
void chk_transport_nobody(chk_env *env)
{
    const chk_letter l = {.bytes = 50};
    char where[32];
    chk_site *a;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    a = chk_site_open(&net, NULL);
    for (int i = 0; i < 3; i++) {
        chk_end *e;

        (void)close(port_take(env, where));
        e = chk_site_connect_text(a, where);
        for (int k = 0; k < i && !e->waits; k++)
            (void)chk_end_send(e, &l);
        chk_net_until(&net, is_down, e, NULL, "nobody listens, and DOWN does not come");
        chk_fail_if(env, e->up || e->why != TN_E_PEER, NULL, "nobody listens; the link %s ends with %s",
                    e->up ? "comes up and" : "", tn_status_name(e->why));
        chk_fail_if(env, e->cancelled != (uint32_t)(e->sent_all), NULL,
                    "nobody listens, and %u of %u messages are said to have gone",
                    (unsigned)(e->sent_all - e->cancelled), (unsigned)e->sent_all);
    }
    chk_net_close(&net);
}

/* ---- the end of a link -------------------------------------------------------------------------------- */

static tn_status send_gone(chk_end *e)
{
    uint8_t header[TN_HEADER_BYTES] = {0};
    const tn_send what = {
        .struct_size = (uint32_t)TN_END(tn_send, offset), .flags = TN_SEND_COPY, .header = header};
    tn_err err = {0};

    return e->site->net->ops->send(e->link, &what, &err);
}

static bool ends_down(const void *arg)
{
    const chk_end *const *e = arg;

    return e[0]->down && e[1]->down;
}

/* One side disconnects while messages are under way both ways; some payloads are still held. */
static void disconnect_one(chk_env *env, bool caller, uint32_t messages)
{
    const chk_letter l = {.bytes = messages > 100 ? 200000 : 20000}; /* more than the system's buffers hold */
    chk_end *ends[2], *quits;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &ends[0], &ends[1]);
    quits = ends[!caller];
    ends[0]->site->keeps = ends[1]->site->keeps = true;
    for (uint32_t i = 0; i < messages; i++)
        for (int k = 0; k < 2; k++)
            if (!ends[k]->waits)
                (void)chk_end_send(ends[k], &l);
    for (uint32_t i = 0; i < messages % 5; i++)
        (void)chk_net_turn(&net);
    quits->quits = true;
    net.ops->disconnect(quits->link);
    status_is(env, send_gone(quits), TN_E_PEER, "send behind disconnect");
    ends[0]->site->keeps = ends[1]->site->keeps = false; /* what waits for room comes before DOWN */
    chk_net_until(&net, ends_down, ends, NULL,
                  "a link was disconnected, and DOWN does not come at both ends");
    chk_fail_if(env, quits->why != TN_E_CANCELLED, NULL, "DOWN behind disconnect says %s",
                tn_status_name(quits->why));
    for (int i = 0; i < 20; i++)
        (void)chk_net_turn(&net);       /* nothing more comes of it */
    chk_site_release(ends[0]->site, 0); /* also behind the end of the link */
    chk_net_close(&net);
}

void chk_transport_down(chk_env *env)
{
    for (uint32_t messages = 0; messages < 200; messages = messages * 3 + 1)
        for (int caller = 0; caller < 2; caller++)
            disconnect_one(env, caller, messages);
}

typedef struct closer {
    const chk_net *net;
    tn_transport *t;
    atomic_bool over;
} closer;

static void *close_call(void *arg)
{
    closer *c = arg;

    c->net->ops->close(c->t, 60000000000u);
    atomic_store(&c->over, true);
    return NULL;
}

/* close with room in time sends all that waits, as the peer takes it; then comes DOWN. */
static void close_sends(chk_env *env)
{
    const chk_letter l = {.bytes = 100000};
    chk_end *a, *b;
    chk_net net;
    closer c = {.net = &net};
    pthread_t id;
    uint32_t sent = 0;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    while (sent < 400 && !a->waits)
        sent += chk_end_send(a, &l) == TN_OK;
    c.t = a->site->t;
    chk_fail_if(env, pthread_create(&id, NULL, close_call, &c), "kit", "no thread");
    while (!atomic_load(&c.over))
        (void)chk_site_poll(b->site, 1000000);
    (void)pthread_join(id, NULL);
    chk_site_closed(a->site);
    chk_net_until(&net, is_down, b, NULL, "the peer's transport was closed, and DOWN does not come");
    chk_fail_if(env, b->received_all != sent, NULL,
                "close had time for what waited, and %u of %u messages have come", (unsigned)b->received_all,
                (unsigned)sent);
    chk_net_close(&net);
}

/* close without time, in each state that a link may be in. Memory that it was handed is gone then. */
static void close_cuts(chk_env *env, uint32_t turns, uint32_t messages)
{
    const tn_transport_config small = {.receive_bytes = 65536, .message_max = 65536};
    const chk_letter l = {.bytes = 60000};
    chk_site *a, *b;
    chk_end *e;
    chk_net net;

    chk_net_two(&net, env, NULL, &small, &a, &b);
    e = chk_site_connect(a, b);
    for (uint32_t i = 0; i < messages && !e->waits; i++)
        (void)chk_end_send(e, &l);
    for (uint32_t i = 0; i < turns; i++)
        (void)chk_net_turn(&net);
    chk_site_close(a, 0);
    for (uint32_t i = 0; i < 10; i++)
        (void)chk_net_turn(&net);
    if (chk_site_came(b, 0))
        chk_net_until(&net, is_down, chk_site_came(b, 0), NULL,
                      "the peer's transport was closed, and DOWN does not come");
    chk_net_close(&net);
}

void chk_transport_close(chk_env *env)
{
    close_sends(env);
    for (uint32_t turns = 0; turns < 4; turns++)
        for (uint32_t messages = 0; messages <= 60; messages += 20)
            close_cuts(env, turns * turns, messages);
}

/* ---- a peer that dies --------------------------------------------------------------------------------- */

/* Another process: listens, tells where, takes messages until it is killed. */
static _Noreturn void victim(chk_env *env, int out)
{
    static chk_net net;
    chk_site *n;
    tn_err err = {0};

    (void)alarm(300);
    net = (chk_net){.env = env, .ops = chk_capability(env, TN_KIND_TRANSPORT, env->subject, NULL)};
    net.sites = calloc(CHK_SITES_MAX, sizeof *net.sites);
    if (!net.sites || chk_plugin_try(env, CHK_HOST_EXACT, &net.plugin, &err) ||
        chk_site_try(&net, NULL, &n, &err) ||
        net.ops->listen(n->t, "127.0.0.1:0", n->address, &n->address_bytes, &err) ||
        write(out, n->address, TN_TRANSPORT_ADDRESS_MAX) < 0 ||
        write(out, &n->address_bytes, sizeof n->address_bytes) < 0)
        _exit(1);
    for (;;) {
        tn_transport_event e = {.struct_size = (uint32_t)TN_END(tn_transport_event, text)};
        uint32_t count = 1;

        if (net.ops->poll(n->t, &e, &count, UINT64_MAX, &err))
            _exit(1);
        if (count && e.kind == TN_EVENT_RECV)
            net.ops->release(n->t, e.held);
    }
}

void chk_transport_killed(chk_env *env)
{
    const chk_letter l = {.bytes = 50000};
    chk_site there = {.address_bytes = 0};
    int ends[2];
    chk_end *e;
    chk_net net;
    pid_t pid;

    chk_fail_if(env, pipe(ends), "kit", "no pipe");
    (void)fflush(NULL);
    pid = fork();
    chk_fail_if(env, pid < 0, "kit", "no process could be started");
    if (!pid)
        victim(env, ends[1]);
    (void)close(ends[1]);
    chk_fail_if(env,
                read(ends[0], there.address, sizeof there.address) != sizeof there.address ||
                    read(ends[0], &there.address_bytes, sizeof there.address_bytes) <= 0,
                NULL, "a process of its own cannot listen");
    chk_net_open(&net, env, CHK_HOST_EXACT);
    e = chk_site_connect(chk_site_open(&net, NULL), &there);
    chk_net_until(&net, is_up, e, "T-up", "a process was connected to, and UP has not come");
    for (int i = 0; i < 20 && !e->waits; i++)
        (void)chk_end_send(e, &l);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    for (int i = 0; i < 20 && !e->waits && !e->down; i++)
        (void)chk_end_send(e, &l);
    chk_net_until(&net, is_down, e, NULL, "a peer was killed, and DOWN does not come");
    chk_fail_if(env, e->why != TN_E_PEER, NULL, "a peer was killed, and DOWN says %s",
                tn_status_name(e->why));
    (void)close(ends[0]);
    chk_net_close(&net);
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

typedef struct waker {
    chk_site *site;
    atomic_bool polls, over; /* polls: the case's thread is about to wait; over: it has gone on */
} waker;

/* Calls wake, and looks whether the thread that waits goes on. */
static void *wake_later(void *arg)
{
    waker *w = arg;
    chk_stillness still = {0};

    while (!atomic_load(&w->polls))
        ;
    chk_quiet_us(2000); /* so that it most often waits already */
    w->site->net->ops->wake(w->site->t);
    while (!atomic_load(&w->over)) {
        if (chk_is_over(&still, CHK_QUIET))
            chk_fail(w->site->net->env, NULL, "wake was called, and the poll that waits does not return");
        chk_sleep_us(200);
    }
    return NULL;
}

/* A poll that waits for ever, between `wake` before it, or by another thread. */
static void wake_once(waker *w, bool before)
{
    pthread_t id;

    atomic_store(&w->polls, false);
    atomic_store(&w->over, false);
    chk_fail_if(w->site->net->env, pthread_create(&id, NULL, wake_later, w), "kit", "no thread");
    if (before)
        w->site->net->ops->wake(w->site->t);
    atomic_store(&w->polls, true);
    (void)chk_site_poll(w->site, UINT64_MAX);
    atomic_store(&w->over, true);
    (void)pthread_join(id, NULL);
    (void)chk_site_poll(w->site, 0); /* the other one's wake, if both came at once */
    chk_count(w->site->net->env);
}

void chk_transport_wake(chk_env *env)
{
    waker w;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    w = (waker){.site = chk_site_open(&net, NULL)};
    chk_site_listen(w.site);
    for (int i = 0; i < 20; i++)
        wake_once(&w, i % 2);
    chk_net_close(&net);
}

/* No poll ends before its time without an event; none is much later than others that wait for nothing. */
void chk_transport_timeout(chk_env *env)
{
    static const uint64_t waits[] = {1000, 1000000, 30000000};
    chk_end *a, *b;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    for (int i = 0; i < 50; i++)
        (void)chk_site_poll(a->site, 0); /* returns, though nothing comes */
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const uint64_t from = chk_clock_ns(CLOCK_MONOTONIC);
        const uint32_t count = chk_site_poll(a->site, waits[i]);
        const uint64_t took = chk_clock_ns(CLOCK_MONOTONIC) - from;

        chk_count(env);
        if (!count && took < waits[i])
            chk_fail(env, NULL, "poll for %llu ns returns after %llu, with no event",
                     (unsigned long long)waits[i], (unsigned long long)took);
    }
    chk_net_close(&net);
}

/* ---- the descriptor ----------------------------------------------------------------------------------- */

/* A site that has nothing more to do. */
static void site_quiet(chk_site *n)
{
    while (chk_site_poll(n, 0))
        ;
}

static bool readable(int32_t fd)
{
    struct pollfd f = {.fd = fd, .events = POLLIN};

    return poll(&f, 1, 1) > 0;
}

/* Waits by the descriptor of `to` until it has so many messages; `from` is served meanwhile. */
static void descriptor_tells(chk_site *from, chk_end *to, uint32_t received, const char *what)
{
    const int32_t fd = to->site->net->ops->descriptor(to->site->t);
    chk_env *env = to->site->net->env;
    chk_stillness still = {0};

    while (to->received_all < received || to->waits) {
        site_quiet(from);
        if (readable(fd))
            site_quiet(to->site);
        else if (chk_is_over(&still, CHK_QUIET * chk_patience()))
            chk_fail(env, NULL, "%s, and the descriptor does not tell", what);
    }
    chk_count(env);
}

void chk_transport_descriptor(chk_env *env)
{
    chk_stillness still = {0};
    chk_end *a, *b;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    if (!TN_OFFERS(net.ops, tn_transport_ops, descriptor) || net.ops->descriptor(a->site->t) < 0) {
        chk_net_close(&net);
        chk_skip(env, "it offers no descriptor");
    }
    for (uint32_t i = 0; i < 100; i++) {
        const chk_letter l = {.bytes = i % 5 ? i : 900000, .flags = i % 3 ? 0 : TN_SEND_COPY};
        chk_end *from = i % 2 ? a : b, *to = i % 2 ? b : a;

        site_quiet(to->site);
        if (chk_end_send(from, &l) == TN_OK)
            descriptor_tells(from->site, to, to->received_all + 1, "a message was sent");
    }
    site_quiet(a->site);
    net.ops->wake(a->site->t);
    while (!readable(net.ops->descriptor(a->site->t)))
        if (chk_is_over(&still, CHK_QUIET * chk_patience()))
            chk_fail(env, NULL, "wake was called, and the descriptor does not tell");
    site_quiet(a->site);
    b->quits = true;
    net.ops->disconnect(b->link);
    while (!a->down) {
        site_quiet(b->site);
        if (readable(net.ops->descriptor(a->site->t)))
            site_quiet(a->site);
        else if (chk_is_over(&still, CHK_QUIET * chk_patience()))
            chk_fail(env, NULL, "a peer disconnected, and the descriptor does not tell");
    }
    chk_net_close(&net);
}

/* ---- many --------------------------------------------------------------------------------------------- */

#define LINKS 24u

typedef struct many {
    chk_net *net;
    uint32_t up, down; /* that are awaited, of links by connect */
} many;

static bool many_there(const void *arg)
{
    const many *m = arg;
    uint32_t up = 0, down = 0;

    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++) {
        const chk_end *e = &m->net->ends[i];

        up += e->used && e->called && e->up && !e->down;
        down += e->used && e->called && e->down;
    }
    return up == m->up && down == m->down;
}

/* As many links as there may be; further ones are hung up on, and once one goes there is room again. */
void chk_transport_links(chk_env *env)
{
    const tn_transport_config limits = {.links_max = LINKS};
    const chk_letter l = {.bytes = 500};
    chk_net net;
    many m = {.net = &net, .up = LINKS};
    chk_site *a, *b;
    chk_end *ends[LINKS], *more;

    chk_net_two(&net, env, NULL, &limits, &a, &b);
    for (uint32_t i = 0; i < LINKS; i++)
        ends[i] = chk_site_connect(a, b);
    chk_net_until(&net, many_there, &m, "T-up", "links_max connects were called, and not all links are up");
    for (uint32_t i = 0; i < 20 * LINKS; i++)
        (void)chk_end_send(ends[i * 7 % LINKS], &l);
    chk_net_until(&net, chk_net_settled, &net, "T-arrive", "messages of many links are missing");
    more = chk_site_connect(a, b);
    chk_net_until(&net, is_down, more, NULL, "a link beyond the peer's links_max does not go down");
    status_is(env, connect_at(b, "127.0.0.1:9"), TN_E_STATE, "connect with links_max links");
    ends[3]->quits = true;
    net.ops->disconnect(ends[3]->link);
    m = (many){.net = &net, .up = LINKS - 1, .down = 2};
    chk_net_until(&net, many_there, &m, "T-down", "a link was disconnected, and DOWN does not come");
    while (!chk_site_came(b, 0)->down && !many_there(&m))
        (void)chk_net_turn(&net);
    for (bool up = false; !up;) { /* its other end may still be on its way out */
        more = chk_site_connect(a, b);
        while (!more->up && !more->down)
            (void)chk_net_turn(&net);
        up = more->up;
        (void)chk_net_turn(&net);
    }
    chk_net_close(&net);
}

static uint32_t entries_of(const char *folder)
{
    DIR *d = opendir(folder);
    uint32_t count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        (void)closedir(d);
    return count;
}

#define FLAT_TURNS 1000u /* polls within which the last link has closed all that it held */

typedef struct traces {
    uint32_t files, threads;
    uint64_t blocks;
} traces;

static traces traces_of(const chk_net *net)
{
    return (traces){.files = entries_of("/proc/self/fd"),
                    .threads = entries_of("/proc/self/task"),
                    .blocks = chk_host_memory(net->plugin.host, NULL)};
}

static bool grew(const traces *before, const traces *after)
{
    return after->files > before->files || after->threads > before->threads || after->blocks > before->blocks;
}

/* A link comes, carries a message and goes. */
static void cycle(chk_net *net, chk_site *a, const chk_site *b, uint32_t round)
{
    const chk_letter l = {.bytes = 1000, .flags = round % 2 ? TN_SEND_COPY : 0, .plain = true};
    chk_end *ends[2];

    ends[0] = chk_site_connect(a, b);
    chk_end_post(ends[0], &l);
    chk_net_until(net, chk_net_settled, net, "T-arrive", "the message of a link is missing");
    ends[1] = chk_site_came(b, 0);
    ends[round % 2]->quits = true;
    net->ops->disconnect(ends[round % 2]->link);
    chk_net_until(net, ends_down, ends, "T-down", "a link was disconnected, and DOWN does not come");
    memset(net->ends, 0, CHK_ENDS_MAX * sizeof *net->ends);
    net->received = net->post_count = 0;
    (void)chk_net_turn(net);
    chk_site_release(a, 0);
    chk_site_release((chk_site *)(uintptr_t)b, 0);
    chk_count(net->env);
}

void chk_transport_flat(chk_env *env)
{
    const char *asked = getenv("TENON_CHECK_CYCLES"); /* for campaigns */
    const uint32_t count = asked ? (uint32_t)atol(asked) : env->sizes ? 2000 : 100;
    traces before = {0}, after;
    chk_site *a, *b;
    chk_net net;

    chk_net_two(&net, env, NULL, NULL, &a, &b);
    for (uint32_t i = 0; i < count + 8; i++) {
        if (i == 8)
            before = traces_of(&net);
        cycle(&net, a, b, i);
    }
    after = traces_of(&net);
    for (uint32_t i = 0; grew(&before, &after) && i < FLAT_TURNS; i++) { /* its threads may still close */
        (void)chk_net_turn(&net);
        after = traces_of(&net);
    }
    if (grew(&before, &after))
        chk_fail(env, NULL,
                 "%u links came and went: %u descriptors, %u threads and %llu blocks became %u, %u and %llu",
                 (unsigned)count, (unsigned)before.files, (unsigned)before.threads,
                 (unsigned long long)before.blocks, (unsigned)after.files, (unsigned)after.threads,
                 (unsigned long long)after.blocks);
    chk_net_close(&net);
}

/* Transports come and go, too. What belongs to one may be closed by a thread of the library beneath it. */
void chk_transport_lifecycle(chk_env *env)
{
    uint32_t files = 0, left;

    for (uint32_t i = 0; i < 12; i++) {
        const chk_letter l = {.bytes = 1000};
        chk_end *a, *b;
        chk_net net;

        chk_net_open(&net, env, CHK_HOST_EXACT);
        chk_net_pair(&net, &a, &b);
        for (uint32_t k = 0; k < i && !a->waits; k++)
            (void)chk_end_send(a, &l);
        chk_net_close(&net);
        files = i == 2 ? entries_of("/proc/self/fd") : files;
        chk_count(env);
    }
    left = entries_of("/proc/self/fd");
    for (uint32_t i = 0; left > files && i < FLAT_TURNS; i++) {
        (void)poll(NULL, 0, 1); /* there is no transport to turn */
        left = entries_of("/proc/self/fd");
    }
    if (left > files)
        chk_fail(env, NULL, "9 transports were closed, and %u descriptors became %u", (unsigned)files,
                 (unsigned)left);
}

/* ---- where memory fails ------------------------------------------------------------------------------- */

/* A life in which one allocation fails: statuses are TN_OK or TN_E_NOMEM, links may go down, all else holds.
 */
static void nomem_life(chk_net *net, tn_err *err)
{
    const chk_letter letters[] = {{.bytes = 1000}, {.bytes = 500, .flags = TN_SEND_COPY}};
    chk_site *a = NULL, *b = NULL;
    chk_end *e;
    tn_status st = chk_site_try(net, NULL, &a, err);

    if (!st)
        st = chk_site_try(net, NULL, &b, err);
    if (!st)
        st = net->ops->listen(b->t, "127.0.0.1:0", b->address, &b->address_bytes, err);
    if (st) {
        chk_fail_if(net->env, st != TN_E_NOMEM, NULL, "out of memory, open or listen say %s: %s",
                    tn_status_name(st), err->message);
        return;
    }
    if (!(e = chk_site_connect(a, b)))
        return;
    for (uint32_t i = 0; i < 4 && !e->waits; i++)
        (void)chk_end_send(e, &letters[i % 2]);
    for (uint32_t i = 0; i < 30; i++)
        (void)chk_net_turn(net);
}

void chk_transport_memory(chk_env *env)
{
    bool over = false;

    for (uint64_t nth = 1; !over && nth < 2000; nth++) {
        tn_err err = {0};
        chk_net net;

        chk_net_open(&net, env, CHK_HOST_EXACT);
        net.forgives = true;
        chk_host_fail_at(net.plugin.host, nth);
        nomem_life(&net, &err);
        over = !chk_host_failed(net.plugin.host);
        chk_host_fail_at(net.plugin.host, 0);
        chk_net_close(&net); /* what is left behind is M-leak there */
        chk_count(env);
    }
}
