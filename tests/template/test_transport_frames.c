/*
 * The template of a transport, against whoever writes to its port: a million malformed frames go through its
 * parser in process, in pieces of every size, and 200 more over sockets while a good link works. What a head
 * may say is written down here once more, and both have to agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#pragma push_macro("TN_PLUGIN_DEFINE")
#include "tenon/plugin/transport.h"
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char frames_has_no_descriptor
#include "../../sdk/template/transport/acme_transport.c"
#include "../../sdk/template/transport/acme_transport_address.c"
#include "../../sdk/template/transport/acme_transport_link.c"
#pragma pop_macro("TN_PLUGIN_DEFINE")

#include <dirent.h>

#define FRAMES 1000000u
#define STRANGERS 200u
#define MESSAGE_MAX 5000u
#define RECEIVE_BYTES 16384u

static uint64_t seed = 0x9E3779B97F4A7C15u;

static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

static const tn_service *no_service(const tn_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

static tn_transport *opened(void **self)
{
    const tn_host host = {.struct_size = (uint32_t)sizeof host, .service = no_service};
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = RECEIVE_BYTES,
                                        .message_max = MESSAGE_MAX,
                                        .links_max = 100};
    tn_transport *t = NULL;
    tn_err err = {0};

    assert_int_equal(init(&host, self, &err), TN_OK);
    assert_int_equal(transport_open(*self, &config, &t, &err), TN_OK);
    return t;
}

/* ---- heads --------------------------------------------------------------------------------------------- */

/* Whether a peer may send this head now: written from the description of the frames alone. */
static bool head_allowed(const head *h, bool greeted, bool called)
{
    if (memcmp(&h->magic, "tcp1", 4) != 0)
        return false;
    if (!greeted)
        return h->kind == (called ? 2 : 1) && h->bytes == 0;
    return (h->kind == 3 && h->bytes <= MESSAGE_MAX) || (h->kind == 4 && h->bytes == 0);
}

/* A head with something wrong, for a link in this state. */
static head head_malformed(bool greeted, bool called)
{
    static const uint64_t lengths[] = {MESSAGE_MAX + 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1,
                                       INT64_MAX,       UINT64_MAX, UINT64_MAX - 79};
    head h;

    do {
        h = (head){.magic = MAGIC, .kind = greeted ? 3 : called ? 2 : 1, .bytes = greeted ? any(100) : 0};
        switch (any(5)) {
        case 0: /* nothing of it is known */
            for (size_t i = 0; i < sizeof h; i++)
                ((uint8_t *)&h)[i] = (uint8_t)any(256);
            break;
        case 1: /* one bit is another one */
            ((uint8_t *)&h)[any(16)] ^= (uint8_t)(1u << any(8));
            break;
        case 2:
            h.bytes = lengths[any(sizeof lengths / sizeof *lengths)];
            break;
        case 3:
            h.kind = any(2) ? (uint32_t)any(6) : (uint32_t)any(UINT32_MAX);
            break;
        default: /* a word that has none */
            h.kind = greeted ? 4 : called ? 2 : 1;
            h.bytes = 1 + any(1000);
        }
    } while (head_allowed(&h, greeted, called));
    return h;
}

/* ---- in process ---------------------------------------------------------------------------------------- */

/* A link without a connection: what is written to it fails. */
static tn_link *link_fake(tn_transport *t, bool greeted, bool called)
{
    tn_link *l = calloc(1, sizeof *l);

    assert_non_null(l);
    *l = (tn_link){.t = t, .next = t->links, .place = &t->links, .fd = -1, .called = called};
    l->state = greeted ? OPEN : GREETING;
    l->seen = greeted || called;
    if (l->next)
        l->next->place = &l->next;
    t->links = l;
    *(l->seen ? &t->open : &t->strangers) += 1;
    return l;
}

/* The bytes go in as they come: in pieces. False: the link has ended. */
static bool feed(tn_link *l, const uint8_t *bytes, uint64_t count)
{
    while (count && l->state != CLOSED) {
        uint64_t want;
        uint8_t *to = tcp_bytes_want(l, &want);
        uint64_t n = 1 + any(any(2) ? 100 : 9);

        if (!want)
            return true; /* it waits for room */
        assert_true(l->got < HEAD_BYTES ? to >= (uint8_t *)&l->head && to + want <= (uint8_t *)(&l->head + 1)
                                        : to >= l->in->data && to + want <= l->in->data + l->in->bytes);
        n = n < want ? n : want;
        n = n < count ? n : count;
        memcpy(to, bytes, n);
        (void)tcp_bytes_got(l, n);
        bytes += n;
        count -= n;
        assert_true(l->t->held <= RECEIVE_BYTES);
    }
    return l->state != CLOSED;
}

static void in_process(void **unused)
{
    static uint8_t good[2 * HEAD_BYTES + 300];
    void *self = NULL;
    tn_transport *t = opened(&self);

    (void)unused;
    for (uint32_t i = 0; i < FRAMES; i++) {
        const bool greeted = any(4) != 0, called = any(2);
        const uint64_t bytes = any(200);
        const head bad = head_malformed(greeted, called), message = {MAGIC, 3, bytes, {0}};
        tn_link *l = link_fake(t, greeted, called);

        memcpy(good, &message, sizeof message);
        if (greeted && any(2))
            assert_true(feed(l, good, sizeof message + bytes)); /* a message that is well before it */
        assert_false(feed(l, (const uint8_t *)&bad, sizeof bad));
        assert_int_equal(l->why, TN_E_PEER);
        assert_true(l->text[0] != '\0');
        events_drop(t); /* frees the link, if the host was to hear of it */
        gone_free(t);
        assert_null(t->links);
        assert_int_equal(t->held, 0);
    }
    assert_int_equal(t->open + t->strangers, 0);
    transport_close(t, 0);
    fini(self);
}

/* ---- over sockets -------------------------------------------------------------------------------------- */

static uint32_t descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        (void)closedir(d);
    return count;
}

static bool event_next(tn_transport *t, tn_transport_event *e)
{
    uint32_t count = 1;
    tn_err err = {0};

    *e = (tn_transport_event){.struct_size = (uint32_t)sizeof *e};
    assert_int_equal(transport_poll(t, e, &count, 1000000, &err), TN_OK);
    return count != 0;
}

/* A message goes over the good link, whatever else comes. */
static void good_works(tn_transport *t, tn_link *l)
{
    const uint8_t header[TN_HEADER_BYTES] = "good";
    const tn_send message = {
        .struct_size = (uint32_t)sizeof message, .flags = TN_SEND_COPY, .header = header};
    tn_transport_event e;
    tn_err err = {0};
    bool came = false;

    assert_int_equal(tcp_send(l, &message, &err), TN_OK);
    while (!came) {
        if (!event_next(t, &e))
            continue;
        came = e.kind == TN_EVENT_RECV;
        assert_true(came || e.kind == TN_EVENT_UP || e.kind == TN_EVENT_DOWN);
        assert_true(!came || memcmp(e.header, "good", 4) == 0);
        transport_release(t, e.held);
    }
}

/* A connection that says CALL first, or not, and then what is malformed: it is hung up on. */
static void stranger(tn_transport *t, const char *address)
{
    const head call = {.magic = MAGIC, .kind = 1};
    const bool greeted = any(2);
    const head bad = head_malformed(greeted, false);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tn_transport_event e;
    char answer[HEAD_BYTES];
    ssize_t n;

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    if (greeted)
        assert_int_equal(send(fd, &call, sizeof call, MSG_NOSIGNAL), sizeof call);
    (void)send(fd, &bad, sizeof bad, MSG_NOSIGNAL);
    while ((n = recv(fd, answer, sizeof answer, MSG_DONTWAIT)) > 0 || (n < 0 && errno == EAGAIN))
        if (event_next(t, &e))
            assert_true(e.kind == TN_EVENT_UP || (e.kind == TN_EVENT_DOWN && e.status == TN_E_PEER));
    assert_true(n == 0 || errno == ECONNRESET);
    (void)close(fd);
}

static void over_sockets(void **unused)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1] = "";
    void *self = NULL;
    tn_transport *t = opened(&self);
    tn_link *l = NULL;
    tn_transport_event e;
    uint32_t bytes = 0, before, up = 0;
    tn_err err = {0};

    (void)unused;
    assert_int_equal(tcp_listen(t, "127.0.0.1:0", address, &bytes, &err), TN_OK);
    assert_int_equal(tcp_connect(t, address, bytes, &l, &err), TN_OK);
    while (up < 2) /* both ends are this transport's */
        up += event_next(t, &e) && e.kind == TN_EVENT_UP;
    before = descriptors();
    for (uint32_t i = 0; i < STRANGERS; i++) {
        stranger(t, address);
        good_works(t, l);
    }
    while (t->links && (t->open > 2 || t->strangers))
        (void)event_next(t, &e);
    assert_int_equal(descriptors(), before);
    assert_int_equal(t->held, 0);
    transport_close(t, 0);
    fini(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_process), cmocka_unit_test(over_sockets)};

    return cmocka_run_group_tests_name("transport_frames", tests, NULL, NULL);
}
