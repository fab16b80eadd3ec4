/*
 * Group transport: whoever else finds the port, and peers with another secret.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

#define STRANGERS 200u
#define AT_ONCE 20u

/* The port of an address that is a text or has one in it; 0: it has none. */
static uint16_t port_of(const chk_site *n)
{
    const char *colon = memchr(n->address, ':', n->address_bytes);

    for (const char *next; colon;) {
        const uint64_t left = (uint64_t)(n->address + n->address_bytes - colon) - 1;
        char digits[6] = "";
        size_t count = 0;

        while (count < left && count < 5 && colon[1 + count] >= '0' && colon[1 + count] <= '9') {
            digits[count] = colon[1 + count];
            count++;
        }
        next = memchr(colon + 1, ':', left);
        if (!next)
            return (uint16_t)atoi(digits);
        colon = next;
    }
    return 0;
}

static int stranger_connect(chk_env *env, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    chk_fail_if(env, fd < 0, "kit", "no socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* What strangers say: nothing, zeros, ones, a line of a protocol, random bytes, many of these. */
static void stranger_speak(chk_env *env, int fd, uint32_t index)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    uint8_t bytes[3000];
    size_t count = index % 6 == 0 ? 0 : 1 + (size_t)(chk_random(env) % sizeof bytes);

    memset(bytes, index % 6 == 1 ? 0 : 0xff, sizeof bytes);
    if (index % 6 == 3) {
        memcpy(bytes, http, sizeof http);
        count = sizeof http - 1;
    }
    for (size_t i = 0; index % 6 > 3 && i < count; i++)
        bytes[i] = (uint8_t)chk_random(env);
    if (count)
        (void)!send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void chk_transport_strangers(chk_env *env)
{
    const chk_letter l = {.bytes = 700};
    uint64_t before, after, first = 0;
    chk_end *a, *b;
    int fds[AT_ONCE];
    uint16_t port;
    chk_net net;

    for (uint32_t i = 0; i < AT_ONCE; i++)
        fds[i] = -1;
    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    if (!(port = port_of(b->site)) || (fds[0] = stranger_connect(env, port)) < 0) {
        chk_net_close(&net);
        chk_skip(env, "its address names no port of TCP");
    }
    for (uint32_t i = 0; i < STRANGERS; i++) {
        const uint32_t at = i % AT_ONCE;

        if (fds[at] >= 0)
            (void)close(fds[at]);
        fds[at] = stranger_connect(env, port);
        if (fds[at] >= 0)
            stranger_speak(env, fds[at], i);
        if (!a->waits)
            (void)chk_end_send(a, &l);
        (void)chk_net_turn(&net);
        (void)chk_host_memory(net.plugin.host, &before);
        first = i == AT_ONCE * 2 ? before : first;
        chk_count(env);
    }
    chk_net_until(&net, chk_net_settled, &net, "T-arrive",
                  "strangers came, and messages of a link are missing");
    chk_fail_if(env, a->down || b->down, NULL, "strangers came, and a link went down");
    chk_fail_if(env, chk_site_came(b->site, 1) != NULL, NULL, "a stranger's connection became a link");
    for (uint32_t i = 0; i < AT_ONCE; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    (void)chk_host_memory(net.plugin.host, &after);
    if (after > first + ((uint64_t)1 << 20))
        chk_fail(env, NULL, "160 strangers came and went, and memory grew by %llu bytes",
                 (unsigned long long)(after - first));
    chk_net_close(&net);
}

/* ---- secrets ------------------------------------------------------------------------------------------ */

static bool link_over(const void *arg)
{
    const chk_end *e = arg;

    return e->up || e->down;
}

/* Peers of one secret talk; no others do. */
void chk_transport_secret(chk_env *env)
{
    static const uint8_t one[TN_TRANSPORT_SECRET_BYTES] = {1}, two[TN_TRANSPORT_SECRET_BYTES] = {[31] = 1};
    static const struct {
        const uint8_t *here, *there;
    } rows[] = {{one, one}, {one, two}, {NULL, one}, {one, NULL}, {two, two}};
    const chk_letter l = {.bytes = 1000};
    tn_err err = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tn_transport_config here = {.secret = rows[i].here}, there = {.secret = rows[i].there};
        chk_site *a, *b;
        chk_end *e;
        chk_net net;

        chk_net_open(&net, env, CHK_HOST_EXACT);
        if (chk_site_try(&net, &here, &a, &err) == TN_E_UNSUPPORTED) {
            chk_net_close(&net);
            chk_skip(env, "it uses no secret");
        }
        a = &net.sites[0];
        b = chk_site_open(&net, &there);
        chk_site_listen(b);
        e = chk_site_connect(a, b);
        if (rows[i].here == rows[i].there) {
            chk_end_post(e, &l);
            chk_net_until(&net, chk_net_settled, &net, "T-arrive",
                          "two peers have one secret, and do not talk");
        } else {
            (void)chk_end_send(e, &l);
            chk_net_until(&net, link_over, e, NULL, "a peer has another secret, and DOWN does not come");
            chk_fail_if(env, e->up || chk_site_came(b, 0), NULL, "peers of which %s are let in",
                        rows[i].here && rows[i].there ? "each has a secret of its own" : "one has no secret");
            chk_fail_if(env, e->why != TN_E_PEER, NULL, "a peer has another secret, and DOWN says %s",
                        tn_status_name(e->why));
        }
        chk_net_close(&net);
    }
}
