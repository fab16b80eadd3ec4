/* See wire.h. */
#include "wire.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tenon/plugin/plugin.h"

const tn_transport_ops *wire;
uint32_t wire_flags;
static const char *given;
static void *state;
static struct loaded {
    const char *name;
    const tn_plugin *plugin;
    void *state;
} loaded[2];

/* ---- the host --------------------------------------------------------------------------------------- */

static tn_status option_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    char name[40];
    const char *at;

    (void)host;
    (void)snprintf(name, sizeof name, "%s=", key);
    at = given ? strstr(given, name) : NULL;
    *out = at ? strtoll(at + strlen(name), NULL, 10) : fallback;
    return TN_OK;
}

static const tn_options_service options = {
    .head = {.struct_size = (uint32_t)sizeof options, .id = TN_SERVICE_OPTIONS}, .integer = option_integer};

static const tn_service *host_service(const tn_host *host, const char *id)
{
    (void)host;
    return strcmp(id, TN_SERVICE_OPTIONS) == 0 ? &options.head : NULL;
}

static const tn_host host = {.struct_size = (uint32_t)sizeof host,
                             .abi_major = TN_ABI_MAJOR,
                             .abi_minor = TN_ABI_MINOR,
                             .version = "test",
                             .service = host_service};

bool wire_load(const char *name, const char *text)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    struct loaded *l = loaded;
    char path[4096];
    void *file;
    tn_err err = {0};

    while (l->name && strcmp(l->name, name) != 0)
        l++;
    assert_true(l < loaded + sizeof loaded / sizeof *loaded);
    (void)snprintf(path, sizeof path, "%s/%s.so", folder ? folder : "", name);
    if (!l->plugin && (file = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        l->plugin = dlsym(file, "tn_plugin_v1");
    if (!l->plugin) {
        print_message("skipped: the plugin %s was not built\n", name);
        return false;
    }
    l->name = name;
    if (l->state)
        l->plugin->fini(l->state);
    given = text;
    assert_int_equal(l->plugin->init(&host, &l->state, &err), TN_OK);
    wire_use((const tn_transport_ops *)(const void *)l->plugin->capabilities[0], l->state);
    return true;
}

void wire_use(const tn_transport_ops *ops, void *plugin)
{
    wire = ops;
    state = plugin;
}

void *wire_plugin(void)
{
    return state;
}

/* ---- transports ------------------------------------------------------------------------------------- */

uint32_t wire_entries(const char *folder)
{
    static const char *const others[] = {"vader_segment", "sm_segment", "tenon-nccl-double-"};
    DIR *d = opendir(folder);
    uint32_t count = 0;

    for (const struct dirent *e; d && (e = readdir(d));) {
        bool other = e->d_type == DT_DIR;

        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= !strncmp(e->d_name, others[i], strlen(others[i]));
        count += !other;
    }
    if (d)
        (void)closedir(d);
    return count;
}

uint64_t wire_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

wire_node *wire_open_with(const tn_transport_config *config)
{
    wire_node *n = calloc(1, sizeof *n);
    tn_err err = {0};

    assert_non_null(n);
    if (wire->open(state, config, &n->t, &err))
        fail_msg("open: %s", err.message);
    return n;
}

wire_node *wire_open(uint8_t secret)
{
    uint8_t bytes[TN_TRANSPORT_SECRET_BYTES];
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .flags = wire_flags,
                                        .secret = secret ? bytes : NULL,
                                        .receive_bytes = (uint64_t)64 << 20,
                                        .message_max = (uint64_t)8 << 20,
                                        .links_max = 64,
                                        .lanes = 1};

    memset(bytes, secret, sizeof bytes);
    return wire_open_with(&config);
}

void wire_close(wire_node *n, uint64_t timeout_ns)
{
    wire_release(n, n->held_count);
    wire->close(n->t, timeout_ns);
    free(n);
}

void wire_listen(wire_node *n, const char *where, char address[TN_TRANSPORT_ADDRESS_MAX + 1])
{
    uint32_t bytes = TN_TRANSPORT_ADDRESS_MAX;
    tn_err err = {0};

    if (wire->listen(n->t, where, address, &bytes, &err))
        fail_msg("listen at %s: %s", where, err.message);
    assert_in_range(bytes, 1, TN_TRANSPORT_ADDRESS_MAX);
    address[bytes] = '\0';
}

tn_link *wire_connect(wire_node *n, const char *address)
{
    tn_link *link = NULL;
    tn_err err = {0};

    if (wire->connect(n->t, address, (uint32_t)strlen(address), &link, &err))
        fail_msg("connect to %s: %s", address, err.message);
    return link;
}

wire_link *wire_of(wire_node *n, const tn_link *link)
{
    uint32_t i = n->links_count;

    while (i-- > 0) /* of links at one address, the last one lives */
        if (n->links[i].link == link)
            return &n->links[i];
    assert_in_range(n->links_count, 0, WIRE_LINKS_MAX - 1);
    n->links[n->links_count] = (wire_link){.link = (tn_link *)(uintptr_t)link};
    return &n->links[n->links_count++];
}

/* ---- messages --------------------------------------------------------------------------------------- */

static unsigned char byte_of(uint64_t number, uint64_t i)
{
    return (unsigned char)(number * 131 + i * 7 + (i >> 8));
}

tn_status wire_send(tn_link *link, uint64_t number, uint64_t bytes, unsigned char *memory, uint32_t flags)
{
    unsigned char header[TN_HEADER_BYTES] = {0}, *payload = memory ? memory : malloc(bytes ? bytes : 1);
    const tn_piece piece = {.data = payload, .bytes = bytes};
    const tn_send send = {.struct_size = (uint32_t)sizeof send,
                          .flags = flags | (memory ? 0 : TN_SEND_COPY),
                          .header = header,
                          .pieces = &piece,
                          .piece_count = bytes ? 1 : 0,
                          .cookie = number};
    tn_err err = {0};
    tn_status st;

    assert_non_null(payload);
    memcpy(header, &number, sizeof number);
    memcpy(header + 8, &bytes, sizeof bytes);
    header[63] = (unsigned char)(flags & TN_SEND_URGENT);
    for (uint64_t i = 0; i < bytes; i++)
        payload[i] = byte_of(number, i);
    st = wire->send(link, &send, &err);
    if (st && st != TN_PENDING)
        assert_true(err.message[0]);
    if (!memory)
        free(payload);
    return st;
}

static void message_check(wire_node *n, const tn_transport_event *e)
{
    uint64_t number, bytes, *next = &n->next[e->header[63] != 0];
    const unsigned char *data = e->data;

    memcpy(&number, e->header, sizeof number);
    memcpy(&bytes, e->header + 8, sizeof bytes);
    assert_int_equal(number, *next);
    ++*next;
    assert_int_equal(e->bytes, bytes);
    assert_int_equal((uintptr_t)data % 8, 0);
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] != byte_of(number, i))
            fail_msg("byte %llu of message %llu", (unsigned long long)i, (unsigned long long)number);
}

static void event_take(wire_node *n, const tn_transport_event *e)
{
    wire_link *link = wire_of(n, e->link);

    if (e->kind == TN_EVENT_UP && link->seen[TN_EVENT_DOWN]) { /* another one at the same address */
        assert_in_range(n->links_count, 0, WIRE_LINKS_MAX - 1);
        link = &n->links[n->links_count++];
        *link = (wire_link){.link = e->link};
    }
    assert_in_range(e->kind, TN_EVENT_UP, TN_EVENT_CREDIT);
    assert_int_equal(link->seen[TN_EVENT_DOWN], 0); /* it is the last one */
    link->seen[e->kind]++;
    n->seen[e->kind]++;
    if (e->kind == TN_EVENT_DOWN) {
        link->down = e->status;
        (void)snprintf(link->text, sizeof link->text, "%s", e->text ? e->text : "");
    } else if (e->kind == TN_EVENT_SENT) {
        n->cookies += e->cookie;
    } else if (e->kind == TN_EVENT_RECV) {
        assert_int_equal(link->seen[TN_EVENT_UP], 1); /* it is the first one */
        assert_int_equal(e->slot, UINT64_MAX);
        n->bytes += e->bytes;
        if (n->received)
            n->received(n, e);
        else
            message_check(n, e);
        if (n->hold) {
            assert_in_range(n->held_count, 0, sizeof n->held / sizeof *n->held - 1);
            n->held[n->held_count++] = e->held;
            n->held_bytes += e->bytes;
        } else {
            wire->release(n->t, e->held);
        }
    }
}

uint32_t wire_poll(wire_node *n)
{
    tn_transport_event events[16];
    uint32_t count = 16;
    tn_err err = {0};

    memset(events, 0, sizeof events);
    for (uint32_t i = 0; i < count; i++)
        events[i].struct_size = (uint32_t)sizeof *events;
    if (wire->poll(n->t, events, &count, 1000000, &err))
        fail_msg("poll: %s", err.message);
    for (uint32_t i = 0; i < count; i++)
        event_take(n, &events[i]);
    return count;
}

void wire_release(wire_node *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        wire->release(n->t, n->held[i]);
    memmove(n->held, n->held + count, (n->held_count - count) * sizeof *n->held);
    n->held_count -= count;
}

uint64_t wire_statistic(wire_node *n, const char *name)
{
    const char *text = wire->statistics(n->t), *at;
    char key[40];

    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    if (!(at = strstr(text, key)))
        fail_msg("no %s in %s", name, text);
    return strtoull(at + strlen(key), NULL, 10);
}

void wire_pair(wire_node *a, wire_node *b, tn_link **of_a, tn_link **of_b)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    const uint32_t before = b->links_count;

    wire_listen(b, "127.0.0.1:0", address);
    *of_a = wire_connect(a, address);
    WIRE_UNTIL(a, b, wire_of(a, *of_a)->seen[TN_EVENT_UP] && b->links_count > before);
    *of_b = b->links[before].link;
    assert_int_equal(b->links[before].seen[TN_EVENT_UP], 1);
}

static const struct {
    const char *where;
    tn_status listen, connect; /* without a secret */
} places[] = {
    {"", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1", TN_E_ARG, TN_E_ARG},
    {":80", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:65536", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:8o", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:-1", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:0", TN_OK, TN_E_ARG},
    {"lo:0", TN_OK, TN_E_ARG},
    {"localhost:0", TN_OK, TN_E_ARG},
    {"lo;127.0.0.1:1", TN_E_ARG, TN_E_ARG},
    {"tcp://127.0.0.1:1", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:1\n", TN_E_ARG, TN_E_ARG},
    {"::1:80", TN_E_ARG, TN_E_ARG},
    {"[::1:80", TN_E_ARG, TN_E_ARG},
    {"[]:80", TN_E_ARG, TN_E_ARG},
    {"[:80", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1:000080", TN_E_ARG, TN_E_ARG},
    {"127.0.0.1 :80", TN_E_ARG, TN_E_ARG},
    {"0.0.0.0:0", TN_E_ARG, TN_E_ARG},
    {"[::]:0", TN_E_ARG, TN_E_ARG},
    {"[fe80::1]:9", TN_E_ARG, TN_E_ARG},
    {"[fe80::1%lo]:9", TN_E_ARG, TN_E_ARG},
    {"*:0", TN_E_ARG, TN_E_ARG},
    {"no-such-interface:0", TN_E_ARG, TN_E_ARG},
    {"192.0.2.1:9", TN_E_STATE, TN_E_STATE}, /* TEST-NET-1, RFC 5737 */
    {"[2001:db8::1]:9", TN_E_STATE, TN_E_STATE},
    {"[::ffff:192.0.2.1]:9", TN_E_STATE, TN_E_STATE},
    {"127.9.9.9:0", TN_OK, TN_E_ARG},
};

void wire_places(void)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    tn_link *link;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = places[i].where;
        wire_node *n = wire_open(0);
        uint32_t bytes = TN_TRANSPORT_ADDRESS_MAX;
        tn_err err = {0};

        if (wire->listen(n->t, text, address, &bytes, &err) != places[i].listen)
            fail_msg("listen at \"%s\": %d %s", text, err.code, err.message);
        if (wire->connect(n->t, text, (uint32_t)strlen(text), &link, &err) != places[i].connect)
            fail_msg("connect to \"%s\": %d %s", text, err.code, err.message);
        if (!places[i].listen) /* once */
            assert_int_equal(wire->listen(n->t, text, address, &bytes, &err), TN_E_STATE);
        wire_close(n, 0);
    }
}
