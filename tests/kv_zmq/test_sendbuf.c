/* The sizes of send buffers: by the rule between two hosts, which a network namespace of its own plays, as
 * the option says, and as the kernel tunes them on one host. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugins/kv-zmq/sendbuf.h"
#include "support/wire.h"

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

#define BYTES ((uint64_t)1 << 20)
#define MESSAGES 40
#define FIRST (2 * (int)TNZMQ_SENDBUF_ALL) /* as the kernel says it */
#define FIXED 4096

/* ---- the rule ------------------------------------------------------------------------------------------ */

#define MOST ((uint64_t)4 << 20)
#define TUNED TNZMQ_SENDBUF_TUNED

static void first(void **state)
{
    static const struct {
        uint32_t round_us, links;
        uint64_t most, bytes;
    } rows[] = {
        {50, 1, MOST, 1 << 18},        {50, 0, MOST, 1 << 18},     {50, 4, MOST, 1 << 16},
        {50, 8, MOST, 1 << 15},        {50, 65536, MOST, 1 << 15}, {1000, 8, MOST, 1 << 15},
        {1001, 8, MOST, TUNED},        {0, 8, MOST, TUNED},        {UINT32_MAX, 8, MOST, TUNED},
        {50, 1, (1 << 18) - 1, TUNED}, {50, 8, 1 << 15, 1 << 15},  {50, 8, (1 << 15) - 1, TUNED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* what there was before the first look tells nothing */
        const tnzmq_measured now = {.acked = (uint64_t)1 << 40, .busy_us = 1, .round_us = rows[i].round_us};
        tnzmq_sendbuf s = {0};
        const uint64_t bytes = tnzmq_sendbuf_next(&s, &now, rows[i].links, rows[i].most);

        if (bytes != rows[i].bytes || s.bytes != bytes)
            fail_msg("row %zu: %llu bytes", i, (unsigned long long)bytes);
    }
}

/* One connection, look by look. */
static void looks(void **state)
{
    static const struct {
        uint64_t acked, busy_us; /* since the look before */
        uint32_t round_us;
        uint64_t bytes;
    } rows[] = {
        {1000, 1000, 50, 1 << 15},
        {1 << 20, TNZMQ_SENDBUF_BUSY_US - 1, 50, 0}, /* not long enough: it counts at the next look */
        {1 << 20, 1, 50, 104857},                    /* 2 MiB in 20 ms: 105 MB/s, times 0.25 ms, times four */
        {12500000, 100000, 50, 125000},
        {0, 20000, 50, 62500}, /* half at most */
        {0, 20000, 50, 1 << 15},
        {12500000, 100000, 1000, 600000},
        {12500000, 100000, 1001, TUNED},
        {12500000, 100000, 50, 125000},
        {2000000000, 20000, 50, TUNED}, /* 100 GB/s: more than is allowed */
        {0, 20000, 50, 1 << 15},
    };
    tnzmq_measured now = {0};
    tnzmq_sendbuf s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bytes;

        now.acked += rows[i].acked;
        now.busy_us += rows[i].busy_us;
        now.round_us = rows[i].round_us;
        bytes = tnzmq_sendbuf_next(&s, &now, 8, MOST);
        if (bytes != rows[i].bytes)
            fail_msg("look %zu: %llu bytes", i, (unsigned long long)bytes);
    }
}

/* Goodput is the link's, or what the buffer holds in each round trip, which takes longer than the shortest.
 * At last the buffer fills the link. */
static void fills_the_link(void **state)
{
    static const double links_bytes_s[] = {12.5e6, 125e6, 1.25e9, 12.5e9};
    static const uint32_t rounds_us[] = {5, 50, 200, 1000};

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        const double link = links_bytes_s[i / 4], round_s = (2 * rounds_us[i % 4] + 100) * 1e-6;
        tnzmq_measured now = {.round_us = rounds_us[i % 4]};
        tnzmq_sendbuf s = {0};

        (void)tnzmq_sendbuf_next(&s, &now, 9, (uint64_t)1 << 30);
        for (int look = 0; look < 20; look++) {
            const double held = 2 * (double)s.bytes / round_s;

            now.acked += (uint64_t)(0.02 * (held < link ? held : link));
            now.busy_us += 20000;
            (void)tnzmq_sendbuf_next(&s, &now, 9, (uint64_t)1 << 30);
        }
        assert_true(2 * (double)s.bytes >= link * round_s);
    }
}

/* ---- connections --------------------------------------------------------------------------------------- */

typedef struct seen {
    int connections, set, first, fixed; /* set: by somebody, so not tuned any more */
    int far;                            /* round trips were too long for the rule */
    bool known;                         /* the kernel says which are set */
} seen;

static void look_at(int fd, seen *out)
{
    struct sockaddr_storage peer;
    struct tcp_info info = {0};
    socklen_t bytes = sizeof peer, int_bytes = sizeof(int), info_bytes = sizeof info;
    int protocol = 0, size = 0, lock = 0;

    if (getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes) ||
        getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &int_bytes) || protocol != IPPROTO_TCP)
        return;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &int_bytes), 0);
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes);
    if (getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, &int_bytes)) {
        assert_int_equal(errno, ENOPROTOOPT);
        out->known = false;
    }
    out->connections++;
    out->set += lock & 1;
    out->first += size == FIRST;
    out->fixed += size == 2 * FIXED;
    out->far += info.tcpi_min_rtt > TNZMQ_SENDBUF_FAR_US;
}

static seen look(void)
{
    DIR *all = opendir("/proc/self/fd");
    seen out = {.known = true};

    assert_non_null(all);
    for (const struct dirent *d; (d = readdir(all)) != NULL;)
        look_at(atoi(d->d_name), &out);
    (void)closedir(all);
    return out;
}

typedef struct pair {
    wire_node *a, *b;
    tn_link *of_a, *of_b;
} pair;

static pair pair_open(const char *where)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    pair p = {.a = wire_open(5), .b = wire_open(5)};

    wire_listen(p.b, where, address);
    p.of_a = wire_connect(p.a, address);
    WIRE_UNTIL(p.a, p.b, p.a->seen[TN_EVENT_UP] && p.b->seen[TN_EVENT_UP]);
    p.of_b = p.b->links[0].link;
    return p;
}

/* `count` messages each way. */
static void pair_talk(pair *p, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (int way = 0; way < 2; way++) {
            wire_node *to = way ? p->a : p->b;
            const uint64_t number = to->next[0];

            WIRE_UNTIL(p->a, p->b, wire_send(way ? p->of_b : p->of_a, number, BYTES, NULL, 0) == TN_OK);
            WIRE_UNTIL(p->a, p->b, to->next[0] == number + 1);
        }
}

static void pair_close(pair *p)
{
    wire_close(p->a, 0);
    wire_close(p->b, 0);
}

static void one_host(void **state)
{
    pair p = pair_open("127.0.0.1:0");
    seen s;

    (void)state;
    pair_talk(&p, 4);
    s = look();
    assert_int_equal(s.connections, 4); /* two connections of the link, both ends of each are here */
    assert_int_equal(s.set, 0);
    pair_close(&p);
}

/* A namespace with two addresses; connections to the second one come from the first. */
static bool two_hosts(void)
{
    return !unshare(CLONE_NEWNET) &&
           !system("PATH=$PATH:/usr/sbin:/sbin; exec >/dev/null 2>&1; ip link set lo up && "
                   "ip addr add 10.9.0.1/32 dev lo && ip addr add 10.9.0.2/32 dev lo && "
                   "ip route change local 10.9.0.2 dev lo table local src 10.9.0.1");
}

/* The largest send buffer that a socket may ask for; 0: the system does not say it. */
static long sendbuf_allowed(void)
{
    FILE *f = fopen("/proc/sys/net/core/wmem_max", "r");
    char text[32] = "0";

    if (f) {
        (void)!fgets(text, sizeof text, f);
        (void)fclose(f);
    }
    return strtol(text, NULL, 10);
}

static void apart(long allowed)
{
    pair p = pair_open("10.9.0.2:0");
    seen s = look();

    assert_int_equal(s.connections, 4);
    assert_int_equal(s.set, 0);
    pair_talk(&p, 1);
    s = look();
    if (!allowed || !s.known || s.far) {
        print_message("skipped: sizes of send buffers: the system does not say them, or is too slow\n");
    } else { /* both ends of `bulk`, before anything was measured */
        assert_int_equal(s.first, allowed < (long)TNZMQ_SENDBUF_ALL ? 0 : 2);
        assert_int_equal(s.set, s.first);
    }
    pair_talk(&p, MESSAGES);
    assert_int_equal(look().connections, 4);
    pair_close(&p);
}

static void apart_fixed(void)
{
    char options[64];
    pair p;

    (void)snprintf(options, sizeof options, "send_bytes=%d", FIXED);
    assert_true(wire_load("kv-zmq", options));
    p = pair_open("10.9.0.2:0");
    pair_talk(&p, 4);
    assert_int_equal(look().fixed, 4);
    pair_close(&p);
}

static void another_host(void **state)
{
    const long allowed = sendbuf_allowed(); /* of all namespaces */
    const pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (!pid) {
        if (!two_hosts())
            _exit(77);
        apart(allowed);
        apart_fixed();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no network of its own may be made, or ip is missing\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first),        cmocka_unit_test(looks),    cmocka_unit_test(fills_the_link),
        cmocka_unit_test(another_host), cmocka_unit_test(one_host),
    };

    if (!wire_load("kv-zmq", ""))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
