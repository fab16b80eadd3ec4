/*
 * A peer over a transport is killed, or stopped for a while, at 20 points of a link's life: the side that
 * connects, and the side that listens. Who survives a kill is told that the link ended, and why; a peer that
 * was stopped goes on. Then descriptors, mappings and /dev/shm hold what they held before. A usual run takes
 * every fourth point of each of the four kinds, TENON_SEED says which; TENON_FULL=1 takes all of them.
 * TENON_TRANSPORT=PLUGIN takes this transport alone.
 */
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/runs.h"

#define SECOND 1000000000u
#define MESSAGES 20u /* of each side; number 1 is long */
#define LONG_BYTES ((uint64_t)3 << 20)
#define FULL_MAX 400u /* of 64 KiB, more than a peer has room for */

#define POINTS(X)                                                                                            \
    X(opened)                                                                                                \
    X(reached_out)                                                                                           \
    X(polled_1)                                                                                              \
    X(polled_2) X(polled_3) X(up) X(sent) X(long_sent) X(long_polled) X(urgent_sent) X(got_first)            \
        X(got_long) X(midst) X(half_sent) X(all_sent) X(all_got) X(full) X(full_polled) X(disconnected)      \
            X(closed)
#define POINT_ENUM(name) AT_##name,
#define POINT_NAME(name) #name,
typedef enum point { POINTS(POINT_ENUM) POINTS_COUNT } point;
static const char *const names[] = {POINTS(POINT_NAME)};

/* ---- the peer ---- */

typedef struct peer {
    point at;
    int how; /* SIGKILL, SIGSTOP */
    wire_node *n;
    tn_link *link;
    uint64_t sent;
} peer;

static void here(const peer *p, point at)
{
    if (at == p->at)
        (void)raise(p->how);
}

/* Sends the next one, once there is room. */
static void say(peer *p)
{
    const uint64_t bytes = p->sent == 1 ? LONG_BYTES : 1000 + p->sent;

    while (wire_send(p->link, p->sent, bytes, NULL, 0) != TN_OK)
        (void)wire_poll(p->n);
    p->sent++;
}

static void hear(const peer *p, uint64_t count)
{
    while (p->n->next[0] < count)
        (void)wire_poll(p->n);
}

static void talk(peer *p)
{
    say(p);
    here(p, AT_sent);
    say(p);
    here(p, AT_long_sent);
    (void)wire_poll(p->n);
    here(p, AT_long_polled);
    while (wire_send(p->link, 0, 50, NULL, TN_SEND_URGENT) != TN_OK)
        (void)wire_poll(p->n);
    here(p, AT_urgent_sent);
    hear(p, 1);
    here(p, AT_got_first);
    hear(p, 2);
    here(p, AT_got_long);
    while (p->sent < MESSAGES) {
        if (p->sent == MESSAGES / 4)
            here(p, AT_midst);
        if (p->sent == MESSAGES / 2)
            here(p, AT_half_sent);
        say(p);
    }
    here(p, AT_all_sent);
    hear(p, MESSAGES);
    here(p, AT_all_got);
    for (uint32_t i = 0; i < FULL_MAX && !wire_send(p->link, p->sent, 65536, NULL, 0); i++)
        p->sent++;
    here(p, AT_full);
    (void)wire_poll(p->n);
    here(p, AT_full_polled);
}

/* `ask`: where the address comes from that it connects to; `tell`: where its own goes to. */
static _Noreturn void peer_run(peer *p, bool listens, int ask, int tell)
{
    char own[TN_TRANSPORT_ADDRESS_MAX + 1], address[TN_TRANSPORT_ADDRESS_MAX + 1] = "";

    (void)alarm(200);
    assert_true(listens || read(ask, address, sizeof address - 1) > 0);
    (void)close(ask);
    p->n = wire_open(0);
    here(p, AT_opened);
    if (listens) {
        wire_listen(p->n, "127.0.0.1:0", own);
        assert_true(write(tell, own, strlen(own)) > 0);
        (void)close(tell);
    } else {
        p->link = wire_connect(p->n, address);
    }
    here(p, AT_reached_out);
    for (point at = AT_polled_1; at <= AT_polled_3; at++) {
        (void)wire_poll(p->n);
        here(p, at);
    }
    while (!p->n->seen[TN_EVENT_UP])
        (void)wire_poll(p->n);
    p->link = p->n->links[0].link;
    here(p, AT_up);
    talk(p);
    wire->disconnect(p->link);
    here(p, AT_disconnected);
    wire_close(p->n, 10u * SECOND);
    here(p, AT_closed);
    _exit(0);
}

/* ---- who survives ---- */

/* Mappings of memory that a file or device is behind, but for programs and libraries. */
static uint32_t mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t count = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        count += strstr(line, "memfd:") || strstr(line, "/dev/shm/") || strstr(line, "/dev/infiniband");
    (void)fclose(f);
    return count;
}

typedef struct held {
    uint32_t files, mappings, named;
} held;

static held held_now(void)
{
    return (held){wire_entries("/proc/self/fd"), mappings(), wire_entries("/dev/shm")};
}

/* All links that there were have ended. */
static bool all_down(const wire_node *n)
{
    for (uint32_t i = 0; i < n->links_count; i++)
        if (!n->links[i].seen[TN_EVENT_DOWN])
            return false;
    return true;
}

/* Polls and answers until the peer has ended and its links are down; its status. */
static int outlive(wire_node *n, pid_t pid)
{
    const uint64_t begin = wire_now_ns();
    uint64_t sent = 0;
    bool ended = false;
    int status = 0;

    while (!ended || !all_down(n)) {
        int now;

        (void)wire_poll(n);
        if (n->seen[TN_EVENT_UP] && !n->seen[TN_EVENT_DOWN] && sent < MESSAGES)
            sent += wire_send(n->links[0].link, sent, sent == 1 ? LONG_BYTES : 1000, NULL, 0) == TN_OK;
        if (!ended && waitpid(pid, &now, WNOHANG | WUNTRACED) == pid) {
            status = now;
            ended = !WIFSTOPPED(now);
            for (int i = 0; i < 20 && !ended; i++)
                (void)wire_poll(n);
            if (!ended)
                assert_int_equal(kill(pid, SIGCONT), 0);
        }
        if (wire_now_ns() - begin > 100u * (uint64_t)SECOND)
            fail_msg("the peer %s, its link is still there", ended ? "has ended" : "lives");
    }
    return status;
}

/* The peer, and then this side. A child beside threads of libzmq could not allocate under a sanitizer: one of
 * them may hold a lock of its allocator. */
static pid_t peer_start(peer *p, bool listens, wire_node **out)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1] = "";
    int ask[2], tell[2];
    ssize_t got = 0;
    wire_node *n;
    pid_t pid;

    assert_int_equal(pipe(ask) + pipe(tell), 0);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        (void)close(ask[1]);
        (void)close(tell[0]);
        peer_run(p, listens, ask[0], tell[1]);
    }
    (void)close(ask[0]);
    (void)close(tell[1]);
    n = *out = wire_open(0);
    if (!listens) {
        wire_listen(n, "127.0.0.1:0", address);
        assert_true(write(ask[1], address, strlen(address)) > 0);
    }
    (void)close(ask[1]);
    if (listens && p->at == AT_opened && p->how == SIGSTOP) { /* it has no address before it goes on */
        int status;

        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_int_equal(kill(pid, SIGCONT), 0);
    }
    if (listens)
        got = read(tell[0], address, sizeof address - 1);
    (void)close(tell[0]);
    if (got > 0)
        (void)wire_of(n, wire_connect(n, address)); /* so that its end is waited for */
    return pid;
}

static void strike(point at, int how, bool listens)
{
    const char *side = listens ? "listens" : "connects", *what = how == SIGKILL ? "kill" : "stop";
    peer p = {.at = at, .how = how};
    wire_node *n;
    const pid_t pid = peer_start(&p, listens, &n);
    const int status = outlive(n, pid);

    if (how == SIGKILL ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0)
        fail_msg("point %s, %s of who %s: status %#x", names[at], what, side, (unsigned)status);
    if (how == SIGSTOP && n->next[0] < MESSAGES)
        fail_msg("point %s, stop of who %s: %llu of %u messages came", names[at], side,
                 (unsigned long long)n->next[0], MESSAGES);
    if (how == SIGKILL && at >= AT_up && at < AT_disconnected &&
        (n->links_count != 1 || n->links[0].down != TN_E_PEER || !n->links[0].text[0]))
        fail_msg("point %s, kill of who %s: %u links, status %d, \"%s\"", names[at], side, n->links_count,
                 (int)n->links[0].down, n->links[0].text);
    wire_close(n, SECOND);
}

static void each_point(void **state)
{
    const char *seed = getenv("TENON_SEED");
    const uint32_t step = test_full() ? 1 : 4, first = seed ? (uint32_t)strtoul(seed, NULL, 10) % step : 0;
    uint32_t count = 0;
    held before;

    (void)state;
    strike(AT_closed, SIGSTOP, false); /* what the first one alone takes */
    before = held_now();
    for (uint32_t i = 0; i < 4 * POINTS_COUNT; i++) { /* so that each fourth one is another point */
        const uint32_t kind = i / POINTS_COUNT;
        held after;

        if ((i % POINTS_COUNT + kind + first) % step)
            continue;
        strike((point)(i % POINTS_COUNT), kind % 2 ? SIGSTOP : SIGKILL, kind / 2);
        after = held_now();
        if (memcmp(&before, &after, sizeof after) != 0)
            fail_msg("point %s: %u descriptors, %u mappings, %u files in /dev/shm; before: %u, %u, %u",
                     names[i % POINTS_COUNT], after.files, after.mappings, after.named, before.files,
                     before.mappings, before.named);
        count++;
    }
    print_message("count %u\n", count);
}

int main(void)
{
    static const char *const transports[] = {"kv-shm", "kv-zmq"};
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_point)};
    const char *only = getenv("TENON_TRANSPORT");
    int failures = 0, ran = 0;

    for (size_t i = 0; i < (only ? 1 : sizeof transports / sizeof *transports); i++)
        if (wire_load(only ? only : transports[i], "")) {
            failures += cmocka_run_group_tests(tests, NULL, NULL);
            ran++;
        }
    if (!ran)
        printf("skipped: no transport is built\n");
    return ran ? failures : 77;
}
