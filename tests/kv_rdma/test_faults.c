/* kv-rdma on a card in memory that has faults: what is said then, and that nothing is left. */
#include "plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

static void says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* ---- open --------------------------------------------------------------------------------------------- */

static const struct {
    card_state card;
    const char *device;
    int32_t gid;
    uint32_t mtu;
    tn_status status;
    const char *says[2];
} refused[] = {
    {{.absent = true}, "auto", -1, 0, TN_E_DEVICE, {"this machine has no RDMA device", "rdma link add rxe0"}},
    {{.absent = true},
     "card0",
     -1,
     0,
     TN_E_DEVICE,
     {"this machine has no RDMA device", "kvstore.transport = zmq"}},
    {{.closed = true},
     "auto",
     -1,
     0,
     TN_E_DEVICE,
     {"device card0 cannot be opened: Permission denied", "infiniband"}},
    {{.port_state = IBV_PORT_DOWN}, "auto", -1, 0, TN_E_DEVICE, {"card0 port 1 is down", "ip link"}},
    {{.port_state = IBV_PORT_INIT}, "card0:1", -1, 0, TN_E_DEVICE, {"card0 port 1 is initializing", ""}},
    {{.port_state = 77}, "auto", -1, 0, TN_E_DEVICE, {"of a state nobody knows", ""}},
    {{.no_gids = true}, "auto", -1, 0, TN_E_DEVICE, {"no GID of RoCE v2", "address of IP"}},
    {{.absent = false},
     "auto",
     1,
     0,
     TN_E_DEVICE,
     {"card0 port 1 has no GID 1 of RoCE v2", "kvstore.rdma_gid"}},
    {{.absent = false}, "auto", 9, 0, TN_E_DEVICE, {"has no GID 9", ""}},
    {{.infiniband = true}, "auto", 9, 0, TN_E_DEVICE, {"has no GID 9 of InfiniBand", ""}},
    {{.absent = false}, "auto", -1, 4096, TN_E_DEVICE, {"kvstore.rdma_mtu is 4096", "card0 port 1 has 1024"}},
    {{.absent = false}, "mlx5_0", -1, 0, TN_E_DEVICE, {"there is no such device", "card0 is one"}},
    {{.absent = false}, "card0:2", -1, 0, TN_E_DEVICE, {"names port 2 of card0, which has 1", ""}},
    {{.absent = false}, "card0:", -1, 0, TN_E_ARG, {"it may be auto, NAME or NAME:PORT", ""}},
    {{.absent = false}, "card0:0", -1, 0, TN_E_ARG, {"NAME:PORT", ""}},
    {{.absent = false}, "card0:x", -1, 0, TN_E_ARG, {"NAME:PORT", ""}},
    {{.absent = false}, ":1", -1, 0, TN_E_ARG, {"NAME:PORT", ""}},
    {{.absent = false}, "", -1, 0, TN_E_ARG, {"NAME:PORT", ""}},
    {{.mr_fails = 1}, "auto", -1, 0, TN_E_NOMEM, {"cannot be pinned for RDMA", "ulimit -l"}},
};

static void refusals(void **state)
{
    struct rlimit before, low;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    low = before;
    low.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                            .message_max = 1000,
                                            .receive_bytes = 1000,
                                            .links_max = 1,
                                            .lanes = 1};
        tn_transport *t = NULL;
        tn_err err = {0};

        card = refused[i].card;
        (void)snprintf(plugin.device, sizeof plugin.device, "%s", refused[i].device);
        plugin.gid = refused[i].gid;
        plugin.mtu = refused[i].mtu;
        assert_int_equal(wire->open(&plugin, &config, &t, &err), refused[i].status);
        says(err.message, refused[i].says[0]);
        says(err.message, refused[i].says[1]);
        assert_int_equal(card_left(), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

/* Which GID and MTU are taken, and that links come up with them. */
static void choices(void **state)
{
    static const struct {
        card_state card;
        int32_t gid;
        uint32_t mtu, index;
        enum ibv_mtu uses;
    } rows[] = {
        {{.absent = false}, -1, 0, 2, IBV_MTU_1024},
        {{.ipv6 = 1}, -1, 0, 3, IBV_MTU_1024},
        {{.absent = false}, 3, 0, 3, IBV_MTU_1024},
        {{.absent = false}, 0, 512, 0, IBV_MTU_512},
        {{.infiniband = true}, -1, 0, 0, IBV_MTU_1024},
        {{.no_inline = true, .mtu = IBV_MTU_4096}, -1, 256, 2, IBV_MTU_256},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wire_node *a, *b;
        tn_link *of_a, *of_b;

        card = rows[i].card;
        plugin.gid = rows[i].gid;
        plugin.mtu = rows[i].mtu;
        a = wire_open(0);
        b = wire_open(0);
        assert_int_equal(a->t->device.gid_index, rows[i].index);
        assert_int_equal(a->t->device.mtu, rows[i].uses);
        wire_pair(a, b, &of_a, &of_b);
        for (uint64_t n = 0; n < 40; n++)
            assert_int_equal(wire_send(of_a, n, 100 * n, NULL, 0), TN_OK);
        WIRE_UNTIL(a, b, b->next[0] == 40);
        wire_close(a, SECOND);
        wire_close(b, SECOND);
    }
}

/* ---- links -------------------------------------------------------------------------------------------- */

/* A link that does not come up: the caller is told why. `fails_in`: registrations from the connect on. */
static void connect_fails(int fails_in, int connect_errno, const char *text)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(3), *b = wire_open(3);

    wire_listen(b, "127.0.0.1:0", address);
    card.mr_fails = fails_in;
    card.connect_fails = connect_errno;
    (void)wire_connect(a, address);
    WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN]);
    says(a->links[0].text, text);
    assert_int_equal(a->links[0].down, TN_E_PEER);
    assert_int_equal(b->seen[TN_EVENT_UP], 0);
    card = (card_state){.absent = false};
    (void)wire_connect(a, address); /* and the next one does */
    WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP]);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

static void connects(void **state)
{
    (void)state;
    connect_fails(1, 0, "MiB cannot be");
    connect_fails(2, 0, "MiB cannot be");
    connect_fails(3, 0, "refuses: ");
    connect_fails(4, 0, "MiB cannot be");
    connect_fails(0, ETIMEDOUT, "10.0.0.1 is not reached from 10.0.0.1 (card0 port 1)");
    connect_fails(0, ENETUNREACH, "another subnet");
    connect_fails(0, EINVAL, "the queue pair from 10.0.0.1 to 10.0.0.1: Invalid argument");
}

/* A request that fails ends the link at both ends, and every cookie comes back. */
static void statuses(void **state)
{
    static const struct {
        enum ibv_wc_status status;
        const char *text;
    } rows[] = {{IBV_WC_RETRY_EXC_ERR, "does not answer"},
                {IBV_WC_RNR_RETRY_EXC_ERR, "takes no more messages"},
                {IBV_WC_REM_ACCESS_ERR, "a token or an offset is wrong"},
                {IBV_WC_REM_INV_REQ_ERR, "refuses a request"},
                {IBV_WC_REM_OP_ERR, "cannot serve a request"},
                {IBV_WC_WR_FLUSH_ERR, "has ended the queue pair"},
                {IBV_WC_LOC_PROT_ERR, "cannot be reached (local protection error)"},
                {IBV_WC_GENERAL_ERR, "cannot be reached"}};
    static unsigned char memory[2][10000];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wire_node *a = wire_open(0), *b = wire_open(0);
        tn_link *of_a, *of_b;

        wire_pair(a, b, &of_a, &of_b);
        card.status_of = (int)rows[i].status;
        card.status_in = 2;
        assert_int_equal(wire_send(of_a, 0, 10000, memory[0], 0), TN_OK);
        assert_int_equal(wire_send(of_a, 1, 10000, memory[1], 0), TN_OK);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN]);
        says(a->links[0].text, rows[i].text);
        says(a->links[0].text, "127.0.0.1:"); /* who it is */
        assert_int_equal(a->links[0].down, TN_E_PEER);
        assert_int_equal(b->links[0].down, TN_E_PEER);
        assert_int_equal(a->seen[TN_EVENT_SENT], 2);
        wire_close(a, SECOND);
        wire_close(b, SECOND);
    }
}

/* A peer that does not acknowledge is named once retries are over; messages wait meanwhile, in bounds. */
static void silent(void **state)
{
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;
    uint64_t sent = 0;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    card.silent = true;
    while (wire_send(of_a, sent, 1000, NULL, 0) == TN_OK)
        assert_in_range(++sent, 1, 100000);
    (void)wire_poll(a);
    assert_int_equal(a->seen[TN_EVENT_DOWN], 0);
    card_give_up();
    WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN]);
    says(a->links[0].text, "does not answer");
    card.silent = false;
    wire_close(a, 0);
    wire_close(b, 0);
}

/* disconnect while nothing is acknowledged ends within its time, and close at once. */
static void silent_ends(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        wire_node *a = wire_open(0), *b = wire_open(0);
        tn_link *of_a, *of_b;

        wire_pair(a, b, &of_a, &of_b);
        card.silent = true;
        assert_int_equal(wire_send(of_a, 0, 1000, NULL, 0), TN_OK);
        if (!closes) {
            wire->disconnect(of_a);
            WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN]);
            assert_int_equal(a->links[0].down, TN_E_CANCELLED);
        }
        wire_close(a, 0);
        WIRE_UNTIL(b, NULL, b->seen[TN_EVENT_DOWN]);
        card.silent = false;
        wire_close(b, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLUGIN_TEST(refusals), PLUGIN_TEST(choices), PLUGIN_TEST(connects),
        PLUGIN_TEST(statuses), PLUGIN_TEST(silent),  PLUGIN_TEST(silent_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
