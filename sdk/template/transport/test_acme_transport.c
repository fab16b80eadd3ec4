/*
 * What `make test` runs: the core takes the plugin; then two of its transports talk, without the core: values
 * stay whole, a peer that does not release holds the other one up, strangers are hung up on.
 *
 * usage: test_acme_transport ./acme-transport.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tenon/plugin/transport.h>
#include <tenon/tenon.h>

#define MESSAGES 2000u
#define BYTES_MAX 100000u
#define SMALL_BYTES 20000u

static const tn_plugin *plugin;
static const tn_transport_ops *ops;
static uint8_t data[BYTES_MAX + 100];

static void must(tn_status st, const char *what, const char *why)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), why);
    exit(1);
}

static void require(int holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s does not hold\n", what);
    exit(1);
}

/* ---- a host with one option ---------------------------------------------------------------------------- */

static const char *stall_ms; /* NULL: the default */

static const char *option_text(const tn_host *host, const char *key)
{
    (void)host;
    return strcmp(key, "stall_ms") == 0 ? stall_ms : NULL;
}

static tn_status option_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    const char *text = option_text(host, key);

    *out = text ? atoll(text) : fallback;
    return TN_OK;
}

static tn_status option_number(const tn_host *host, const char *key, double fallback, double *out)
{
    (void)host;
    (void)key;
    *out = fallback;
    return TN_OK;
}

static const tn_service *service(const tn_host *host, const char *id)
{
    static const tn_options_service options = {
        .head = {.struct_size = (uint32_t)sizeof options, .id = TN_SERVICE_OPTIONS},
        .text = option_text,
        .integer = option_integer,
        .number = option_number};

    (void)host;
    return strcmp(id, TN_SERVICE_OPTIONS) ? NULL : &options.head;
}

static const tn_host host = {.struct_size = (uint32_t)sizeof host,
                             .abi_major = TN_ABI_MAJOR,
                             .abi_minor = TN_ABI_MINOR,
                             .version = "test",
                             .service = service};

/* ---- two transports and a link ------------------------------------------------------------------------- */

typedef struct pair {
    void *self;
    tn_transport *here, *there;
    tn_link *link, *back; /* back: the other end; NULL before TN_EVENT_UP */
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
} pair;

static tn_transport *transport_open(void *self, uint64_t receive_bytes)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = receive_bytes,
                                        .message_max = BYTES_MAX,
                                        .links_max = 8,
                                        .lanes = 1};
    tn_transport *t = NULL;
    tn_err err = {0};

    must(ops->open(self, &config, &t, &err), "open", err.message);
    return t;
}

/* The next event of `t`, if one is there or comes within `ms`. */
static int event_wait(tn_transport *t, tn_transport_event *out, uint64_t ms)
{
    uint32_t count = 1;
    tn_err err = {0};

    *out = (tn_transport_event){.struct_size = (uint32_t)sizeof *out};
    must(ops->poll(t, out, &count, ms * 1000000, &err), "poll", err.message);
    return (int)count;
}

static void pair_open(pair *p, const char *stall, uint64_t receive_bytes)
{
    tn_transport_event e;
    uint32_t bytes = 0;
    tn_err err = {0};

    *p = (pair){.self = NULL};
    stall_ms = stall;
    must(plugin->init(&host, &p->self, &err), "init", err.message);
    p->here = transport_open(p->self, receive_bytes);
    p->there = transport_open(p->self, receive_bytes);
    must(ops->listen(p->there, "127.0.0.1:0", p->address, &bytes, &err), "listen", err.message);
    must(ops->connect(p->here, p->address, bytes, &p->link, &err), "connect", err.message);
    for (int up = 0; !up || !p->back;) {
        if (event_wait(p->here, &e, 1))
            require(up = e.kind == TN_EVENT_UP && e.link == p->link, "the link is up");
        if (event_wait(p->there, &e, 1)) {
            require(e.kind == TN_EVENT_UP, "its other end is up");
            p->back = e.link;
        }
    }
}

static void pair_close(pair *p)
{
    ops->close(p->here, 0);
    ops->close(p->there, 0);
    plugin->fini(p->self);
}

static uint32_t length_of(uint32_t index)
{
    return index % 7 ? index * 37 % 5000 : index * 977 % BYTES_MAX;
}

static tn_status send_number(tn_link *link, uint32_t index, uint64_t bytes)
{
    uint8_t header[TN_HEADER_BYTES] = {0};
    const tn_piece pieces[] = {{data + index % 100, bytes / 3, NULL},
                               {data + index % 100 + bytes / 3, bytes - bytes / 3, NULL}};
    const tn_send message = {.struct_size = (uint32_t)sizeof message,
                             .header = header,
                             .pieces = pieces,
                             .piece_count = 2,
                             .cookie = index};
    tn_err err = {0};
    tn_status st;

    memcpy(header, &index, sizeof index);
    st = ops->send(link, &message, &err);
    must(st == TN_PENDING ? TN_OK : st, "send", err.message);
    return st;
}

static void received_check(const tn_transport_event *e, uint32_t index, uint64_t bytes)
{
    uint32_t number;

    memcpy(&number, e->header, sizeof number);
    require(number == index, "messages in their order");
    require(e->bytes == bytes && !memcmp(e->data, data + index % 100, bytes), "values that are those sent");
}

/* Every message arrives, whole and in order, and every cookie comes back. */
static void test_values(void)
{
    uint32_t sent = 0, back = 0, received = 0;
    int waits = 0;
    pair p;

    pair_open(&p, NULL, (uint64_t)1 << 20);
    while (back < MESSAGES || received < MESSAGES) {
        tn_transport_event e;

        while (!waits && sent < MESSAGES)
            if ((waits = send_number(p.link, sent, length_of(sent)) == TN_PENDING) == 0)
                sent++;
        while (event_wait(p.here, &e, 0)) {
            require(e.kind == TN_EVENT_SENT || e.kind == TN_EVENT_CREDIT, "SENT and CREDIT");
            require(e.kind != TN_EVENT_SENT || e.cookie == back, "cookies in their order");
            back += e.kind == TN_EVENT_SENT;
            waits &= e.kind != TN_EVENT_CREDIT;
        }
        while (event_wait(p.there, &e, 1)) {
            require(e.kind == TN_EVENT_RECV, "messages alone");
            received_check(&e, received, length_of(received));
            received++;
            ops->release(p.there, e.held);
        }
    }
    pair_close(&p);
}

/* A peer that does not release takes no more than receive_bytes, and the sender waits; then all come. */
static void test_slow(void)
{
    static void *held[MESSAGES];
    const uint64_t limit = 10 * (uint64_t)SMALL_BYTES;
    uint32_t sent = 0, received = 0, released = 0;
    int waits = 0;
    tn_transport_event e;
    pair p;

    pair_open(&p, NULL, limit);
    while (!waits && sent < MESSAGES) { /* up to what the system's own buffers take */
        if ((waits = send_number(p.link, sent, SMALL_BYTES) == TN_PENDING) == 0)
            sent++;
        while (event_wait(p.there, &e, 0)) {
            received_check(&e, received, SMALL_BYTES);
            held[received++] = e.held;
        }
        require((uint64_t)received * SMALL_BYTES <= limit, "receive_bytes is a limit");
    }
    require(waits, "send says that there is no room");
    while (waits || received < sent) {
        while (released < received)
            ops->release(p.there, held[released++]);
        while (event_wait(p.there, &e, 0)) {
            received_check(&e, received, SMALL_BYTES);
            held[received++] = e.held;
        }
        while (event_wait(p.here, &e, 1))
            waits &= e.kind != TN_EVENT_CREDIT;
    }
    while (released < received)
        ops->release(p.there, held[released++]);
    pair_close(&p);
}

/* ---- strangers ----------------------------------------------------------------------------------------- */

static int stranger_connect(const pair *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_port = htons((uint16_t)atoi(strrchr(p->address, ':') + 1));
    require(fd >= 0 && !connect(fd, (const struct sockaddr *)&to, sizeof to), "a plain connection");
    return fd;
}

/* Waits until the transport has hung up. */
static void stranger_end(pair *p, int fd)
{
    tn_transport_event e;
    char byte;
    ssize_t n;

    while ((n = recv(fd, &byte, 1, MSG_DONTWAIT)) != 0 && (n > 0 || errno != ECONNRESET))
        (void)event_wait(p->there, &e, 1);
    (void)close(fd);
}

/* The first frame of one that connects, and a message of which so many bytes come. */
static void frames_write(int fd, uint64_t bytes)
{
    uint8_t frames[2][16 + TN_HEADER_BYTES] = {"tcp1\1", "tcp1\3\0\0\0\0\20"};

    require(write(fd, frames, bytes) == (ssize_t)bytes, "a plain write");
}

static void test_strangers(void)
{
    static const char http[100] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n";
    pair p;
    int fd;

    pair_open(&p, "50", (uint64_t)1 << 20);
    fd = stranger_connect(&p); /* says nothing */
    stranger_end(&p, fd);
    fd = stranger_connect(&p);
    require(write(fd, http, sizeof http) == sizeof http, "a plain write");
    stranger_end(&p, fd);
    for (uint64_t bytes = 1; bytes < 160;
         bytes += 53) { /* stops in the first frame, or in a message's head */
        fd = stranger_connect(&p);
        frames_write(fd, bytes);
        stranger_end(&p, fd);
    }
    fd = stranger_connect(&p); /* stops before the payload */
    frames_write(fd, 160);
    stranger_end(&p, fd);
    require(strstr(ops->statistics(p.there), "\"links\":1,\"strangers\":0") != NULL, "one link is left");
    require(send_number(p.link, 1, 100) == TN_OK, "the link of the pair works");
    pair_close(&p);
}

int main(int argc, char **argv)
{
    char path[4096], *file = argc > 1 ? realpath(argv[1], NULL) : NULL;
    char *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    tn_ctx *ctx;
    void *handle;

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-transport.so\n", argv[0]);
        return 2;
    }
    (void)snprintf(path, sizeof path, "plugins.path=%.*s", (int)(slash - file), file);
    must(tn_open(&options, &ctx), "tn_open", tn_error_text());
    must(tn_plugin_load(ctx, "acme-transport"), "tn_plugin_load", tn_error_text());
    must(tn_close(ctx), "tn_close", tn_error_text());
    require((handle = dlopen(file, RTLD_NOW)) && (plugin = dlsym(handle, "tn_plugin_v1")), "a plugin");
    ops = (const tn_transport_ops *)(const void *)plugin->capabilities[0];
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i / 251 + i);
    test_values();
    test_slow();
    test_strangers();
    free(file);
    (void)printf("acme_tcp: values, a slow peer, strangers: ok\n");
    return 0;
}
