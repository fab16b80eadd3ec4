/* How much of what a connection sends lies in the system: by the rule between two machines, which a network
 * namespace of its own plays, as the option says, and as the system likes on one. */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugins/kv-zmq/room.h"
#include "support/wire.h"

#define BYTES ((uint64_t)1 << 20)
#define MESSAGES 40
#define FIRST (2 * (int)TNZMQ_ROOM_ALL) /* as the system says it */
#define FIXED 4096

/* ---- the rule ------------------------------------------------------------------------------------------ */

static void rule(void **state)
{
    static const struct {
        uint64_t rate; /* bytes/s */
        uint32_t round_us, links;
        uint64_t room;
    } rows[] = {
        {0, UINT32_MAX, 1, 1 << 18},
        {0, UINT32_MAX, 0, 1 << 18},
        {0, 1000, 4, 1 << 16},
        {0, 1000, 8, 1 << 15},
        {0, 1000, 65536, 1 << 15},
        {15625000, 50, 8, 1 << 15},
        {125000000, 50, 9, 125000},
        {125000000, 1000, 9, 600000},
        {1250000000, 30, 9, 1150000},
        {125000000, UINT32_MAX, 9, 100000},
        {UINT64_MAX, 0, 9, 1 << 30},
        {125000000, 1001, 9, TNZMQ_ROOM_ANY},
        {0, UINT32_MAX - 1, 1, TNZMQ_ROOM_ANY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t room = tnzmq_room(rows[i].rate, rows[i].round_us, rows[i].links);

        if (room < rows[i].room - 1 || (room > rows[i].room && room - 1 > rows[i].room))
            fail_msg("row %zu: %llu bytes", i, (unsigned long long)room);
    }
}

/* Where the room bounds the rate, the next one is twice as large, at four times the shortest round, too. */
static void grows(void **state)
{
    static const uint32_t rounds_us[] = {2, 20, 100, 500, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof rounds_us / sizeof *rounds_us; i++)
        for (uint64_t room = TNZMQ_ROOM_LEAST; room < TNZMQ_ROOM_MOST / 2; room *= 2) {
            const double seconds = 4 * ((double)rounds_us[i] + TNZMQ_ROOM_HOSTS_US) * 1e-6;

            /* the system takes twice the room, for its own notes, too */
            assert_true(tnzmq_room((uint64_t)(2 * (double)room / seconds), rounds_us[i], 8) >= 2 * room - 2);
        }
}

/* ---- connections --------------------------------------------------------------------------------------- */

typedef struct seen {
    int connections, locked, first, fixed; /* locked: no longer as the system likes */
} seen;

static void look_at(int fd, seen *out)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer, int_bytes = sizeof(int);
    int protocol = 0, room = 0, lock = 0;

    if (getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes) ||
        getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &int_bytes) || protocol != IPPROTO_TCP)
        return;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &int_bytes), 0);
#ifdef SO_BUF_LOCK
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, &int_bytes), 0);
#endif
    out->connections++;
    out->locked += lock & 1;
    out->first += room == FIRST;
    out->fixed += room == 2 * FIXED;
}

static seen look(void)
{
    DIR *all = opendir("/proc/self/fd");
    seen out = {0};

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

static void one_machine(void **state)
{
    pair p = pair_open("127.0.0.1:0");
    seen s;

    (void)state;
    pair_talk(&p, 4);
    s = look();
    assert_int_equal(s.connections, 4); /* two connections of the link, both ends of each are here */
    assert_int_equal(s.locked, 0);
    pair_close(&p);
}

/* A namespace with two addresses, the first of which is the own one for who calls the second. */
static bool two_machines(void)
{
    return !unshare(CLONE_NEWNET) &&
           !system("PATH=$PATH:/usr/sbin:/sbin; exec >/dev/null 2>&1; ip link set lo up && "
                   "ip addr add 10.9.0.1/32 dev lo && ip addr add 10.9.0.2/32 dev lo && "
                   "ip route change local 10.9.0.2 dev lo table local src 10.9.0.1");
}

/* What a socket may ask for, at most; 0: the system does not say it. */
static long room_allowed(void)
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
    assert_int_equal(s.locked, 0);
    pair_talk(&p, 1);
    s = look();
    if (allowed) { /* both ends of `bulk`, before anything was measured */
        assert_int_equal(s.first, allowed < (long)TNZMQ_ROOM_ALL ? 0 : 2);
#ifdef SO_BUF_LOCK
        assert_int_equal(s.locked, s.first);
#endif
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

static void another_machine(void **state)
{
    const long allowed = room_allowed(); /* of all namespaces */
    const pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (!pid) {
        if (!two_machines())
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
        cmocka_unit_test(rule),
        cmocka_unit_test(grows),
        cmocka_unit_test(one_machine),
        cmocka_unit_test(another_machine),
    };

    if (!wire_load("kv-zmq", ""))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
