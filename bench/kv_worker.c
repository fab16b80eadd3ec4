/*
 * A process of a job of the parameter store, run when stdin says so: Tenon's side of bench/kv, and TCP alone.
 *
 *     kv_worker [SECTION.KEY=VALUE...]     what DMLC_ROLE says: the scheduler, a server or a worker
 *     kv_worker --tcp-server WORKERS       prints its port; takes what WORKERS send, then sends it back
 *     kv_worker --tcp-worker PORT RANK
 *
 * A worker's lines: "make CASE", "check CASE [2bit]" (one round of values that are known, compared with what
 * the sum has to be), "run CASE N" (one round that is not timed, then N: microseconds of each). A case is
 * pull:N (one array of N float32, pushed and pulled), push:N (pushed, until the servers have answered) or
 * resnet50. The numbers and answers are those of kv_mxnet.py.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <tenon/kv.h>
#include <tenon/tenon.h>

#define LINE_BYTES 200
#define ARRAYS_MAX 161
#define ROUNDS_MAX 100000
#define ELEMENTS_MAX ((int64_t)1 << 28)
#define TCP_WORKERS_MAX 16

typedef struct load { /* a case */
    char name[40];
    int64_t sizes[ARRAYS_MAX]; /* elements */
    uint32_t count;
    bool pulls;
    tn_array *in[ARRAYS_MAX], *out[ARRAYS_MAX];
    tn_kv_item items[ARRAYS_MAX];
} load;

typedef struct worker {
    tn_ctx *ctx;
    tn_kv *kv;
    tn_kv_info job;
    int tcp; /* 0: none */
    float *memory, *back;
    int64_t keys;
    load load;
} worker;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- cases ---- */

static void size_add(load *l, int64_t elements)
{
    l->sizes[l->count++] = elements;
}

/* A convolution without bias, and the two of its batch norm. */
static void conv_add(load *l, int64_t out, int64_t in, int64_t kernel)
{
    size_add(l, out * in * kernel * kernel);
    size_add(l, out);
    size_add(l, out);
}

/* Its 161 arrays that have gradients, 25,557,032 numbers. */
static void resnet50_add(load *l)
{
    static const int blocks[4] = {3, 4, 6, 3};
    int64_t in = 64;

    conv_add(l, 64, 3, 7);
    for (int stage = 0; stage < 4; stage++) {
        const int64_t mid = 64 << stage, out = 4 * mid;

        for (int block = 0; block < blocks[stage]; block++) {
            conv_add(l, mid, in, 1);
            conv_add(l, mid, mid, 3);
            conv_add(l, out, mid, 1);
            if (!block)
                conv_add(l, out, in, 1);
            in = out;
        }
    }
    size_add(l, 1000 * in);
    size_add(l, 1000);
}

static bool load_parse(load *l, const char *text)
{
    long long elements;
    char kind[6], end;

    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%s", text);
    l->pulls = true;
    if (!strcmp(text, "resnet50")) {
        resnet50_add(l);
        return true;
    }
    if (sscanf(text, "%4[a-z]:%lld%c", kind, &elements, &end) != 2 || elements < 1 ||
        elements > ELEMENTS_MAX || (strcmp(kind, "pull") && strcmp(kind, "push")))
        return false;
    l->pulls = !strcmp(kind, "pull");
    size_add(l, elements);
    return true;
}

/* What element `i` of worker `rank` is, and the sum of all: small numbers, so that sums are exact. Coded in
 * 2 bits with threshold 0.5, three numbers become 0.5, -0.5 and 0 (no residual yet). */
static float value_at(int64_t i, uint32_t rank, bool coded)
{
    static const float thirds[3] = {0.7f, -0.7f, 0.2f};

    return coded ? thirds[i % 3] : (float)(i % 7 + 1) * (float)(rank + 1);
}

static float sum_at(int64_t i, uint32_t workers, bool coded)
{
    static const float thirds[3] = {0.5f, -0.5f, 0};

    return coded ? thirds[i % 3] * (float)workers
                 : (float)(i % 7 + 1) * (float)(workers * (workers + 1) / 2);
}

/* ---- Tenon ---- */

static void load_drop(worker *w)
{
    for (uint32_t i = 0; i < w->load.count; i++) {
        tn_array_release(w->load.in[i]);
        tn_array_release(w->load.out[i]);
    }
    w->load.count = 0;
}

static tn_status store_make(worker *w)
{
    load *l = &w->load;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < l->count && !st; i++) {
        if ((st = tn_array_zeros(w->ctx, TN_F32, 1, &l->sizes[i], NULL, &l->in[i])) ||
            (st = tn_array_zeros(w->ctx, TN_F32, 1, &l->sizes[i], NULL, &l->out[i])))
            break;
        l->items[i] = (tn_kv_item){
            .number = w->keys++, .priority = -(int32_t)i, .value_count = 1, .values = &l->in[i]};
    }
    if (!st)
        st = tn_kv_init(w->kv, l->count, l->items);
    return st;
}

static tn_status store_round(worker *w)
{
    load *l = &w->load;
    tn_status st;

    for (uint32_t i = 0; i < l->count; i++) {
        l->items[i].out_count = l->pulls;
        l->items[i].outs = &l->out[i];
    }
    st = (l->pulls ? tn_kv_pushpull : tn_kv_push)(w->kv, l->count, l->items);
    for (uint32_t i = 0; i < l->count && !st && l->pulls; i++)
        st = tn_array_wait(l->out[i]);
    return st || l->pulls ? st : tn_wait_all(w->ctx);
}

static tn_status store_check(worker *w, bool coded, bool *right)
{
    load *l = &w->load;
    tn_status st = TN_OK;
    void *data;

    for (uint32_t k = 0; k < l->count && !st; k++) {
        if ((st = tn_array_data(l->in[k], &data)))
            break;
        for (int64_t i = 0; i < l->sizes[k]; i++)
            ((float *)data)[i] = value_at(i, w->job.rank, coded);
    }
    if (!st)
        st = store_round(w);
    *right = l->pulls;
    for (uint32_t k = 0; k < l->count && !st && *right; k++) {
        if ((st = tn_array_data(l->out[k], &data)))
            break;
        for (int64_t i = 0; i < l->sizes[k] && *right; i++)
            *right = ((const float *)data)[i] == sum_at(i, w->job.workers, coded);
    }
    *right = *right || !l->pulls;
    return st;
}

/* ---- TCP alone ---- */

static bool all_send(int socket, const char *data, size_t bytes)
{
    while (bytes) {
        const ssize_t n = send(socket, data, bytes, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool all_receive(int socket, void *data, size_t bytes)
{
    return recv(socket, data, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static tn_status tcp_round(worker *w)
{
    const uint64_t bytes = (uint64_t)w->load.sizes[0] * sizeof(float);

    return all_send(w->tcp, (const char *)&bytes, sizeof bytes) &&
                   all_send(w->tcp, (const char *)w->memory, bytes) && all_receive(w->tcp, w->back, bytes)
               ? TN_OK
               : TN_E_IO;
}

/* One thread for each worker; none answers before all have come, as in a round of the store. */
typedef struct tcp_peer {
    int socket;
    pthread_barrier_t *met;
    pthread_t thread;
} tcp_peer;

static void *tcp_serve(void *arg)
{
    const tcp_peer *p = arg;
    uint64_t bytes, room = 0;
    char *memory = NULL;

    while (all_receive(p->socket, &bytes, sizeof bytes) && bytes <= (uint64_t)ELEMENTS_MAX * sizeof(float)) {
        if (bytes > room) {
            free(memory);
            memory = malloc(room = bytes);
        }
        if (!memory || !all_receive(p->socket, memory, bytes))
            break;
        (void)pthread_barrier_wait(p->met);
        if (!all_send(p->socket, memory, bytes))
            break;
    }
    free(memory);
    return NULL;
}

static int tcp_server(unsigned workers)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    tcp_peer peers[TCP_WORKERS_MAX];
    pthread_barrier_t met;
    socklen_t size = sizeof a;

    if (!workers || workers > TCP_WORKERS_MAX || bind(listener, (struct sockaddr *)&a, sizeof a) ||
        listen(listener, TCP_WORKERS_MAX) || getsockname(listener, (struct sockaddr *)&a, &size) ||
        pthread_barrier_init(&met, NULL, workers))
        return 1;
    printf("%u\n", ntohs(a.sin_port));
    fflush(stdout);
    for (unsigned i = 0; i < workers; i++) {
        peers[i].met = &met;
        if ((peers[i].socket = accept(listener, NULL, NULL)) < 0)
            return 1;
        (void)setsockopt(peers[i].socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (pthread_create(&peers[i].thread, NULL, tcp_serve, &peers[i]))
            return 1;
    }
    for (unsigned i = 0; i < workers; i++)
        (void)pthread_join(peers[i].thread, NULL);
    return 0;
}

static bool tcp_connect(worker *w, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;

    a.sin_port = htons((uint16_t)atoi(port));
    w->tcp = socket(AF_INET, SOCK_STREAM, 0);
    return !connect(w->tcp, (struct sockaddr *)&a, sizeof a) &&
           !setsockopt(w->tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static tn_status tcp_make(worker *w)
{
    const uint64_t bytes = (uint64_t)w->load.sizes[0] * sizeof(float);

    free(w->memory);
    free(w->back);
    w->memory = calloc(1, bytes);
    w->back = calloc(1, bytes);
    return w->memory && w->back ? TN_OK : TN_E_NOMEM;
}

static tn_status tcp_check(worker *w, bool *right)
{
    tn_status st;

    for (int64_t i = 0; i < w->load.sizes[0]; i++)
        w->memory[i] = value_at(i, w->job.rank, false);
    st = tcp_round(w);
    *right = !memcmp(w->memory, w->back, (size_t)w->load.sizes[0] * sizeof(float));
    return st;
}

/* ---- what stdin says ---- */

static tn_status load_make(worker *w, const char *text)
{
    load_drop(w);
    if (!load_parse(&w->load, text) || (w->tcp && w->load.count > 1)) {
        fprintf(stderr, "kv_worker: there is no case %s\n", text);
        return TN_E_ARG;
    }
    return w->tcp ? tcp_make(w) : store_make(w);
}

/* Printed when all rounds are done: a worker that waits for its reader in the midst holds up the others. */
static tn_status load_run(worker *w, long rounds)
{
    double *times = malloc((size_t)rounds * sizeof *times);
    tn_status st = times ? (w->tcp ? tcp_round : store_round)(w) : TN_E_NOMEM;

    for (long i = 0; i < rounds && !st; i++) {
        const double begun = now_us();

        st = (w->tcp ? tcp_round : store_round)(w);
        times[i] = now_us() - begun;
    }
    for (long i = 0; i < rounds && !st; i++)
        printf("%s%.2f", i ? " " : "", times[i]);
    printf("\n");
    free(times);
    return st;
}

static tn_status obey(worker *w, const char *line)
{
    char word[8] = "", name[40] = "", last[16] = "";
    const int words = sscanf(line, "%7s %39s %15s", word, name, last);
    const long rounds = atol(last);
    bool right = true;
    tn_status st = TN_E_ARG;

    if (words == 2 && !strcmp(word, "make")) {
        st = load_make(w, name);
        printf("made\n");
    } else if (words >= 2 && !strcmp(word, "check") && !strcmp(name, w->load.name)) {
        st = w->tcp ? tcp_check(w, &right) : store_check(w, !strcmp(last, "2bit"), &right);
        printf("%s\n", right ? "right" : "wrong");
    } else if (words == 3 && !strcmp(word, "run") && !strcmp(name, w->load.name) && rounds > 0 &&
               rounds <= ROUNDS_MAX) {
        st = load_run(w, rounds);
    } else {
        fprintf(stderr, "kv_worker: \"%s\" is no order here\n", line);
    }
    fflush(stdout);
    return st;
}

static tn_status serve(worker *w)
{
    char line[LINE_BYTES];
    tn_status st = TN_OK;

    printf("ready %s\n", w->tcp ? "TCP" : tn_version());
    fflush(stdout);
    while (!st && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        st = obey(w, line);
    }
    return st;
}

static tn_status run(worker *w, const char *const *settings)
{
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    const char *coded = NULL;
    int32_t ran = 0;
    tn_status st;

    if ((st = tn_open(&options, &w->ctx)) || (st = tn_kv_run_role(w->ctx, NULL, NULL, &ran)) || ran)
        return st;
    if (!(st = tn_kv_create(w->ctx, "dist_sync", &w->kv)) && !(st = tn_kv_info_get(w->kv, &w->job)) &&
        (coded = tn_ctx_option(w->ctx, "kvstore.compress")) && !strcmp(coded, "2bit"))
        st = tn_kv_set_compression(w->kv, (const char *[]){"type", "2bit", "threshold", "0.5", NULL});
    return st ? st : serve(w);
}

int main(int argc, char **argv)
{
    static worker w = {.job = {.struct_size = TN_SIZE(tn_kv_info)}};
    tn_status st = TN_E_ARG;

    if (argc == 3 && !strcmp(argv[1], "--tcp-server"))
        return tcp_server((unsigned)atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "--tcp-worker")) {
        w.job.rank = (uint32_t)atoi(argv[3]);
        st = tcp_connect(&w, argv[2]) ? serve(&w) : TN_E_IO;
    } else if (argc < 2 || strncmp(argv[1], "--", 2)) {
        st = run(&w, (const char *const *)argv + 1);
    }
    if (st)
        fprintf(stderr, "kv_worker: %s: %s\n", tn_status_name(st), tn_error_text());
    if (!w.tcp)
        load_drop(&w);
    free(w.memory);
    free(w.back);
    tn_kv_destroy(w.kv);
    if (w.ctx && tn_close(w.ctx) && !st)
        st = TN_E_INTERNAL;
    return st != TN_OK;
}
