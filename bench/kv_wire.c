/*
 * Bytes from one thread to another: over TCP on loopback by the plugin kv-zmq, by libzmq alone in the same
 * pattern (a header's frame, a payload from where it lies) and by a socket; by the plugin kv-shm; and by two
 * memcpy of one thread, as many copies as kv-shm makes of a short payload. The ways take turns, so that a
 * busy minute hits all.
 * One way: bytes of payloads per second until the receiver has the last one, and processor time of both.
 * Push and pull: the same payload back. There and back: 64 bytes.
 * With --rdma only payloads of 4 MiB go, by the plugin kv-rdma from one device to the other.
 *
 *     kv_wire [--rounds N] [--mebibytes N] [--plugins FOLDER] [--curve] [--rdma DEVICE,DEVICE]
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "tenon/plugin/transport.h"

#define ROUNDS_MAX 100
#define HEADER 64
#define LARGEST ((size_t)4 << 20)
#define WINDOW ((size_t)8 << 20) /* of libzmq alone: as the plugin's */
#define PINGS 2000

static unsigned char payload[LARGEST];

/* Two ends of one way. `send` waits for room; `receive` waits for a message. */
typedef struct way {
    const char *name;
    bool (*open)(size_t bytes);
    void (*send)(int end, size_t bytes);
    void (*receive)(int end, size_t bytes);
    void (*flush)(int end); /* all that it has sent is on its way */
    void (*close)(void);
} way;

static void die(const char *what)
{
    (void)fprintf(stderr, "kv_wire: %s\n", what);
    exit(1);
}

/* ---- a socket --------------------------------------------------------------------------------------- */

static int tcp[2];
static unsigned char landing[LARGEST];

static bool tcp_open(size_t bytes)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    socklen_t size = sizeof a;

    (void)bytes;
    tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&a, &size) || connect(tcp[0], (struct sockaddr *)&a, size) ||
        (tcp[1] = accept(listener, NULL, NULL)) < 0)
        return false;
    (void)setsockopt(tcp[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(tcp[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)close(listener);
    return true;
}

static void tcp_send(int end, size_t bytes)
{
    struct iovec part[2] = {{payload, HEADER}, {payload, bytes}};
    struct msghdr m = {.msg_iov = part, .msg_iovlen = bytes ? 2 : 1};

    while (m.msg_iovlen) {
        ssize_t n = sendmsg(tcp[end], &m, MSG_NOSIGNAL);

        if (n < 0)
            die("send");
        for (; m.msg_iovlen && (size_t)n >= m.msg_iov->iov_len; m.msg_iovlen--, m.msg_iov++)
            n -= (ssize_t)m.msg_iov->iov_len;
        if (m.msg_iovlen) {
            m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + n;
            m.msg_iov->iov_len -= (size_t)n;
        }
    }
}

static void tcp_receive(int end, size_t bytes)
{
    unsigned char header[HEADER];

    if (recv(tcp[end], header, HEADER, MSG_WAITALL) != HEADER ||
        (bytes && recv(tcp[end], landing, bytes, MSG_WAITALL) != (ssize_t)bytes))
        die("recv");
}

static void nothing(int end)
{
    (void)end;
}

static void tcp_close(void)
{
    (void)close(tcp[0]);
    (void)close(tcp[1]);
}

/* ---- libzmq alone ------------------------------------------------------------------------------------- */

static void *context[2], *raw[2];

static bool raw_open(size_t bytes)
{
    const int count = bytes ? (int)(WINDOW / bytes) : 1000, off = 0;
    char endpoint[64];
    size_t size = sizeof endpoint;

    for (int i = 0; i < 2; i++) {
        context[i] = zmq_ctx_new();
        raw[i] = zmq_socket(context[i], ZMQ_DEALER);
        if (zmq_setsockopt(raw[i], ZMQ_SNDHWM, &count, sizeof count) ||
            zmq_setsockopt(raw[i], ZMQ_RCVHWM, &count, sizeof count) ||
            zmq_setsockopt(raw[i], ZMQ_LINGER, &off, sizeof off))
            return false;
    }
    return !zmq_bind(raw[1], "tcp://127.0.0.1:*") &&
           !zmq_getsockopt(raw[1], ZMQ_LAST_ENDPOINT, endpoint, &size) && !zmq_connect(raw[0], endpoint);
}

static void keep(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

static void raw_send(int end, size_t bytes)
{
    zmq_msg_t part;

    if (zmq_send(raw[end], payload, HEADER, bytes ? ZMQ_SNDMORE : 0) != HEADER)
        die("zmq_send");
    if (bytes &&
        (zmq_msg_init_data(&part, payload, bytes, keep, NULL) || zmq_msg_send(&part, raw[end], 0) < 0))
        die("zmq_msg_send");
}

static void raw_receive(int end, size_t bytes)
{
    zmq_msg_t part;

    for (int i = 0; i < (bytes ? 2 : 1); i++) {
        (void)zmq_msg_init(&part);
        if (zmq_msg_recv(&part, raw[end], 0) < 0)
            die("zmq_msg_recv");
        (void)zmq_msg_close(&part);
    }
}

static void raw_close(void)
{
    for (int i = 0; i < 2; i++) {
        (void)zmq_close(raw[i]);
        (void)zmq_ctx_term(context[i]);
    }
}

/* ---- two copies ---------------------------------------------------------------------------------------- */

#define STEP ((size_t)64 << 10)

static unsigned char ring[2 << 20];

static bool copy_open(size_t bytes)
{
    (void)bytes;
    return true;
}

/* End 0 copies both ways. */
static void copy_move(int end, size_t bytes)
{
    for (size_t i = 0; !end && i < bytes; i += STEP) {
        memcpy(ring + i % sizeof ring, payload + i, STEP);
        memcpy(landing + i, ring + i % sizeof ring, STEP);
    }
}

static void copy_close(void)
{
}

/* ---- the plugins --------------------------------------------------------------------------------------- */

static struct plugin {
    const char *name;
    const tn_transport_ops *ops;
    void *state[2]; /* of each end */
} plugins[] = {{.name = "kv-zmq"}, {.name = "kv-shm"}, {.name = "kv-rdma"}};
static const tn_transport_ops *ops; /* of the plugin whose turn it is */
static void *const *plugin_state;
static const char *device; /* of RDMA, of the end whose plugin begins */
static uint64_t requests;  /* of end 0 of the last run */
static const uint8_t secret[TN_TRANSPORT_SECRET_BYTES] = {1, 2, 3};
static bool curve;
static tn_transport *ours[2];
static tn_link *links[2];
static uint64_t came[2], taken[2], sent[2], back[2]; /* messages; sent, and their memory is back */

/* One poll of an end; everything that comes is released at once. */
static void ours_poll(int end, uint64_t timeout_ns)
{
    tn_transport_event events[16];
    uint32_t count = 16;

    for (uint32_t i = 0; i < count; i++)
        events[i].struct_size = (uint32_t)sizeof *events;
    if (ops->poll(ours[end], events, &count, timeout_ns, NULL))
        die("poll");
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].kind == TN_EVENT_UP)
            links[end] = events[i].link;
        else if (events[i].kind == TN_EVENT_DOWN)
            die(events[i].text ? events[i].text : "the link is down");
        else if (events[i].kind == TN_EVENT_SENT)
            back[end]++;
        else if (events[i].kind == TN_EVENT_RECV) {
            came[end]++;
            ops->release(ours[end], events[i].held);
        }
    }
}

static bool ours_open(size_t bytes)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .flags = TN_OPEN_SHARED,
                                        .secret = curve ? secret : NULL,
                                        .receive_bytes = (uint64_t)64 << 20,
                                        .message_max = bytes ? bytes : HEADER,
                                        .links_max = 2,
                                        .lanes = 1};
    char address[TN_TRANSPORT_ADDRESS_MAX];
    uint32_t size = sizeof address;
    tn_link *link;
    tn_err err = {0};

    memset(came, 0, sizeof came);
    memset(taken, 0, sizeof taken);
    links[0] = links[1] = NULL;
    memset(sent, 0, sizeof sent);
    memset(back, 0, sizeof back);
    for (int i = 0; i < 2; i++)
        if (ops->open(plugin_state[i], &config, &ours[i], &err))
            die(err.message);
    if (ops->listen(ours[1], "127.0.0.1:0", address, &size, &err) ||
        ops->connect(ours[0], address, size, &link, &err))
        die(err.message);
    while (!links[0] || !links[1]) {
        ours_poll(0, 1000000);
        ours_poll(1, 1000000);
    }
    return true;
}

static void ours_send(int end, size_t bytes)
{
    const tn_piece piece = {.data = payload, .bytes = bytes};
    const tn_send m = {.struct_size = (uint32_t)sizeof m,
                       .flags = bytes ? 0 : TN_SEND_COPY,
                       .header = payload,
                       .pieces = &piece,
                       .piece_count = bytes ? 1 : 0};
    tn_err err = {0};
    tn_status st;

    while ((st = ops->send(links[end], &m, &err)) == TN_PENDING)
        ours_poll(end, UINT64_MAX);
    if (st)
        die(err.message);
    sent[end] += bytes != 0;
}

static void ours_receive(int end, size_t bytes)
{
    (void)bytes;
    while (taken[end] == came[end])
        ours_poll(end, UINT64_MAX);
    taken[end]++;
}

static void ours_flush(int end)
{
    while (back[end] < sent[end])
        ours_poll(end, UINT64_MAX);
}

static void ours_close(void)
{
    const char *at = ops->statistics ? strstr(ops->statistics(ours[0]), "\"requests\": ") : NULL;

    requests = at ? strtoull(at + strlen("\"requests\": "), NULL, 10) : 0;
    for (int i = 0; i < 2; i++)
        ops->close(ours[i], 0);
}

static bool plugin_open(const struct plugin *p, size_t bytes)
{
    ops = p->ops;
    plugin_state = p->state;
    return ours_open(bytes);
}

static bool zmq_way_open(size_t bytes)
{
    return plugin_open(&plugins[0], bytes);
}

static bool shm_way_open(size_t bytes)
{
    return plugin_open(&plugins[1], bytes);
}

static bool rdma_way_open(size_t bytes)
{
    return plugin_open(&plugins[2], bytes);
}

enum { ZMQ, RAW, TCP, SHM, COPY, WAYS, RDMA = WAYS }; /* in the order of `ways`; RDMA goes alone */
static const way ways[] = {
    {"kv-zmq", zmq_way_open, ours_send, ours_receive, ours_flush, ours_close},
    {"libzmq", raw_open, raw_send, raw_receive, nothing, raw_close},
    {"TCP", tcp_open, tcp_send, tcp_receive, nothing, tcp_close},
    {"kv-shm", shm_way_open, ours_send, ours_receive, ours_flush, ours_close},
    {"2 memcpy", copy_open, copy_move, copy_move, nothing, copy_close},
    {"kv-rdma", rdma_way_open, ours_send, ours_receive, ours_flush, ours_close},
};

/* ---- measuring -------------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor_s(void)
{
    struct rusage r;

    (void)getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

typedef struct task {
    const way *w;
    size_t bytes, count;
    bool answers; /* with as many bytes */
} task;

static void *other_end(void *arg)
{
    const task *t = arg;

    for (size_t i = 0; i < t->count; i++) {
        t->w->receive(1, t->bytes);
        if (t->answers)
            t->w->send(1, t->bytes);
    }
    t->w->flush(1);
    return NULL;
}

/* Seconds of a run, and of the processor. */
static double run(const task *t, double *processor)
{
    pthread_t thread;
    double begin, before;

    if (!t->w->open(t->bytes))
        die("open");
    begin = now_s();
    before = processor_s();
    if (pthread_create(&thread, NULL, other_end, (void *)(uintptr_t)t))
        die("a thread");
    for (size_t i = 0; i < t->count; i++) {
        t->w->send(0, t->bytes);
        if (t->answers)
            t->w->receive(0, t->bytes);
    }
    t->w->flush(0);
    (void)pthread_join(thread, NULL);
    begin = now_s() - begin;
    *processor = processor_s() - before;
    t->w->close();
    return begin;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The median of the rounds' ratios. */
static void ratio_print(int a, int b, double rate[][ROUNDS_MAX], int rounds)
{
    double ratio[ROUNDS_MAX];

    for (int r = 0; r < rounds; r++)
        ratio[r] = rate[a][r] / rate[b][r];
    (void)printf("%s / %s: %.2f\n", ways[a].name, ways[b].name, median(ratio, rounds));
}

static void compare_ways(size_t bytes, size_t count, bool answers, int rounds)
{
    static double rate[WAYS][ROUNDS_MAX], cost[WAYS][ROUNDS_MAX], sorted[ROUNDS_MAX];
    const double all = (double)(bytes * count) * (answers ? 2 : 1) / 1e9;
    const size_t some = bytes ? WAYS : COPY; /* a copy has no way back that takes time */

    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < some; i++) {
            const task t = {&ways[i], bytes, count, answers};
            const double seconds = run(&t, &cost[i][r]);

            rate[i][r] = bytes ? all / seconds : seconds / (double)count * 1e6;
            cost[i][r] /= all;
        }
    for (size_t i = 0; i < some; i++) {
        double middle;

        memcpy(sorted, rate[i], sizeof sorted);
        middle = median(sorted, rounds);
        if (bytes)
            (void)printf("%-8s %8zu bytes%s  %6.2f GB/s (%.2f to %.2f)  %.2f processor seconds per GB\n",
                         ways[i].name, bytes, answers ? " there and back" : "", middle, sorted[0],
                         sorted[rounds - 1], median(cost[i], rounds));
        else
            (void)printf("%-8s 64 bytes there and back  %6.1f us (%.1f to %.1f)\n", ways[i].name, middle,
                         sorted[0], sorted[rounds - 1]);
    }
    ratio_print(ZMQ, RAW, rate, rounds);
    ratio_print(ZMQ, TCP, rate, rounds);
    ratio_print(SHM, ZMQ, rate, rounds);
    if (bytes)
        ratio_print(SHM, COPY, rate, rounds);
}

static void rdma_measure(size_t count, int rounds)
{
    const task t = {&ways[RDMA], LARGEST, count, false};

    for (int r = 0; r < rounds; r++) {
        double processor;
        const double seconds = run(&t, &processor);

        (void)printf(
            "kv-rdma %zu parts of %zu bytes: %.3f MiB/s, %.2f requests a part, %.3f processor seconds\n",
            count, LARGEST, (double)(count * LARGEST) / (1 << 20) / seconds, (double)requests / (double)count,
            processor);
    }
}

/* ---- the plugins' host -------------------------------------------------------------------------------- */

static const char *option_text(const tn_host *host, const char *key)
{
    (void)host;
    return strcmp(key, "kvstore.rdma_dev") ? NULL : device;
}

static tn_status option_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    (void)host;
    (void)key;
    *out = fallback;
    return TN_OK;
}

static const tn_options_service options = {
    .head = {.struct_size = (uint32_t)sizeof options, .id = TN_SERVICE_OPTIONS},
    .text = option_text,
    .integer = option_integer};

static const tn_service *host_service(const tn_host *host, const char *id)
{
    (void)host;
    return strcmp(id, TN_SERVICE_OPTIONS) ? NULL : &options.head;
}

static void plugin_load(const char *folder, struct plugin *p, const char *const devices[2])
{
    char path[4096] = "";
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 64);
    static const tn_host host = {.struct_size = (uint32_t)sizeof host, .service = host_service};
    const tn_plugin *plugin = NULL;
    void *file;

    if (folder)
        (void)snprintf(path, sizeof path, "%s/%s.so", folder, p->name);
    else if (size > 0)
        (void)sprintf(strrchr(path, '/'), "/../lib/tenon/plugins-1/%s.so", p->name);
    if (!(file = dlopen(path, RTLD_NOW | RTLD_LOCAL)) || !(plugin = dlsym(file, "tn_plugin_v1")))
        die("a plugin is missing; --plugins FOLDER says where kv-zmq, kv-shm and kv-rdma are");
    for (int i = 0; i < 2; i++) {
        device = devices[i];
        if (plugin->init(&host, &p->state[i], NULL))
            die("a plugin does not begin");
    }
    p->ops = (const tn_transport_ops *)(const void *)plugin->capabilities[0];
}

int main(int argc, char **argv)
{
    long rounds = 7, mebibytes = 1024;
    const char *folder = NULL, *devices[2] = {NULL, NULL};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atol(argv[++i]);
        else if (!strcmp(argv[i], "--mebibytes") && i + 1 < argc)
            mebibytes = atol(argv[++i]);
        else if (!strcmp(argv[i], "--plugins") && i + 1 < argc)
            folder = argv[++i];
        else if (!strcmp(argv[i], "--curve"))
            curve = true;
        else if (!strcmp(argv[i], "--rdma") && i + 1 < argc && strchr(argv[i + 1], ',')) {
            devices[0] = strtok(argv[++i], ",");
            devices[1] = strtok(NULL, ",");
        } else
            die("usage: kv_wire [--rounds N] [--mebibytes N] [--plugins FOLDER] [--curve] [--rdma "
                "DEVICE,DEVICE]");
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || mebibytes < 4 || mebibytes > 1 << 20)
        die("1 to 100 rounds, 4 to 1048576 MiB");
    if (devices[1]) {
        plugin_load(folder, &plugins[2], devices);
        rdma_measure((size_t)mebibytes / 4, (int)rounds);
        return 0;
    }
    for (size_t i = 0; i < 2; i++)
        plugin_load(folder, &plugins[i], devices);
    compare_ways(LARGEST, (size_t)mebibytes / 4, false, (int)rounds);
    compare_ways((size_t)256 << 10, (size_t)mebibytes * 4, false, (int)rounds);
    compare_ways(LARGEST, (size_t)mebibytes / 8, true, (int)rounds);
    compare_ways(0, PINGS, true, (int)rounds);
    return 0;
}
