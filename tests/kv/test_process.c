/* Processes of a job as threads over a loop whose clock the test moves: no real time decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kv/job.h"

#define BIG 100000u /* elements: several parts, longer than what is copied */

static float *numbers(uint32_t count, float first)
{
    float *x = tni_alloc(count * sizeof *x);

    assert_non_null(x);
    for (uint32_t i = 0; i < count; i++)
        x[i] = first + (float)(i % 13);
    return x;
}

static void keys_make(job *j, uint32_t count, const uint32_t *sizes)
{
    for (uint32_t w = 0; w < j->setup.settings.workers; w++)
        for (uint32_t k = 0; k < count; k++)
            assert_int_equal(tni_kv_process_key(j->workers[w], k, 0, sizes[k], sizeof(float)), TN_OK);
}

/* One round of each key: all workers push, and get the value that is made of it. */
static void round_run(job *j, uint32_t count, const uint32_t *sizes, float *const *expected)
{
    const uint32_t workers = j->setup.settings.workers;
    answer a[JOB_NODES * 4];
    float *in[JOB_NODES * 4], *out[JOB_NODES * 4];

    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t i = w * count + k;
            const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL,
                                      .key = k,
                                      .priority = k,
                                      .in = in[i] = numbers(sizes[k], (float)(w + 1)),
                                      .out = out[i] = tni_zalloc(sizes[k] * sizeof(float))};

            job_ask(j->workers[w], &r, &a[i]);
        }
    for (uint32_t i = 0; i < workers * count; i++) {
        const uint32_t k = i % count;

        if (job_wait(&a[i]))
            fail_msg("%s", a[i].error.message);
        for (uint32_t e = 0; i < count && e < sizes[k]; e++)
            expected[k][e] += (float)(workers * (workers + 1)) / 2 + (float)(workers * (e % 13));
        tni_free(in[i]);
    }
    for (uint32_t i = 0; i < workers * count; i++) {
        assert_memory_equal(out[i], expected[i % count], sizes[i % count] * sizeof(float));
        tni_free(out[i]);
    }
}

static void keys_init(job *j, uint32_t count, const uint32_t *sizes, float **values)
{
    answer a[JOB_NODES * 4];

    for (uint32_t k = 0; k < count; k++)
        values[k] = numbers(sizes[k], 0.5f);
    for (uint32_t w = 0; w < j->setup.settings.workers; w++)
        for (uint32_t k = 0; k < count; k++) {
            const tni_kv_request r = {.kind = TNI_KV_DO_INIT, .key = k, .in = values[k]};

            job_ask(j->workers[w], &r, &a[w * count + k]);
        }
    for (uint32_t i = 0; i < j->setup.settings.workers * count; i++)
        assert_int_equal(job_wait(&a[i]), TN_OK);
}

static const uint32_t sizes[] = {3, BIG, 700};

static void free_all(float **values)
{
    for (uint32_t k = 0; k < 3; k++)
        tni_free(values[k]);
}

static void rounds_of_all_sizes(void **state)
{
    float *values[3];
    job j;

    (void)state;
    job_begin(&j, 3, 2);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    for (int i = 0; i < 4; i++)
        round_run(&j, 3, sizes, values);
    assert_true(loop_counts().refused > 0); /* parts waited for room */
    assert_int_equal(tni_kv_process_workers(j.workers[0]), 3);
    assert_int_equal(tni_kv_process_servers(j.workers[0]), 2);
    assert_int_equal(tni_kv_process_dead(j.workers[0], TNI_KV_WORKER), 0);
    free_all(values);
    job_end(&j);
    for (uint32_t i = 0; i < j.node_count; i++)
        assert_int_equal(j.nodes[i].status, TN_OK);
}

/* Servers can be reached through memory, too; these workers have the far transport alone. */
static void near_addresses(void **state)
{
    float *values[3];
    job j;

    (void)state;
    assert_int_equal(tni_kv_far_bytes("a:1;shm:b", 9), 3);
    assert_int_equal(tni_kv_far_bytes("a:1;shm:", 8), 3);
    assert_int_equal(tni_kv_far_bytes("a:1;shm:", 7), 7);
    assert_int_equal(tni_kv_far_bytes("", 0), 0);
    job_begin(&j, 2, 2);
    loop_address_end(";shm:0/127.0.0.1:1");
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    round_run(&j, 3, sizes, values);
    free_all(values);
    job_end(&j);
}

/* Servers cannot be reached at the addresses that they say. */
static void servers_out_of_reach(void **state)
{
    const float x[3] = {1, 2, 3};
    const tni_kv_request r = {.kind = TNI_KV_DO_INIT, .in = x};
    answer a;
    job j;

    (void)state;
    job_begin(&j, 1, 1);
    loop_address_end("0");
    job_start(&j);
    keys_make(&j, 1, sizes);
    job_ask(j.workers[0], &r, &a);
    assert_int_equal(job_wait(&a), TN_E_TIMEOUT);
    assert_non_null(strstr(a.error.message, "from server 0"));
    assert_non_null(strstr(a.error.message, "never heard"));
    job_end(&j);
}

static void lost_messages_and_links(void **state)
{
    float *values[3];
    job j;

    (void)state;
    job_begin(&j, 2, 2);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    for (uint32_t i = 0; i < 6; i++) {
        loop_lose(i % 2 ? 50 : 0);
        loop_links_down(i % 5);
        round_run(&j, 3, sizes, values);
    }
    loop_lose(0);
    free_all(values);
    job_end(&j);
}

static bool gone(void *arg)
{
    return tni_kv_process_dead(arg, TNI_KV_SERVER) > 0;
}

static bool rolled(void *arg)
{
    uint32_t epochs;

    (void)tni_kv_process_cut(arg, &epochs);
    return epochs > 0;
}

static void a_server_comes_back(void **state)
{
    const tni_kv_request save = {.kind = TNI_KV_DO_SNAPSHOT, .step = 2};
    float *values[3], *cut[3];
    uint32_t epochs;
    job j;

    (void)state;
    job_begin(&j, 2, 2);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    round_run(&j, 3, sizes, values);
    round_run(&j, 3, sizes, values);
    assert_int_equal(job_do(j.workers[0], &save), TN_OK);
    for (uint32_t k = 0; k < 3; k++) {
        cut[k] = tni_alloc(sizes[k] * sizeof(float));
        memcpy(cut[k], values[k], sizes[k] * sizeof(float));
    }
    round_run(&j, 3, sizes, values);
    loop_kill(j.nodes[1].index);
    assert_int_equal(job_node_join(&j.nodes[1]), TN_E_IO);
    assert_true(loop_until(gone, j.workers[0], 60));
    (void)job_serve(&j, 0);
    assert_true(loop_until(rolled, j.workers[0], 60) && loop_until(rolled, j.workers[1], 60));
    assert_int_equal(tni_kv_process_cut(j.workers[0], &epochs), 2);
    assert_int_equal(epochs, 1);
    for (uint32_t w = 0; w < 2; w++)
        for (uint32_t k = 0; k < 3; k++) {
            const tni_kv_request r = {.kind = TNI_KV_DO_PULL, .key = k, .out = values[k], .any = true};

            assert_int_equal(job_do(j.workers[w], &r), TN_OK);
            assert_memory_equal(values[k], cut[k], sizes[k] * sizeof(float));
        }
    round_run(&j, 3, sizes, values);
    free_all(values);
    free_all(cut);
    job_end(&j);
}

static void a_scheduler_comes_back(void **state)
{
    const tni_kv_request barrier = {.kind = TNI_KV_DO_BARRIER};
    float *values[3];
    answer a[2];
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    loop_kill(j.nodes[0].index);
    assert_int_equal(job_node_join(&j.nodes[0]), TN_E_IO);
    round_run(&j, 3, sizes, values); /* rounds need it not */
    job_ask(j.workers[0], &barrier, &a[0]);
    (void)job_schedule(&j);
    job_ask(j.workers[1], &barrier, &a[1]);
    assert_int_equal(job_wait(&a[0]), TN_OK);
    assert_int_equal(job_wait(&a[1]), TN_OK);
    round_run(&j, 3, sizes, values);
    free_all(values);
    job_end(&j);
}

static bool failed(void *arg)
{
    return tni_kv_process_status(arg) != TN_OK;
}

static void a_dead_worker_is_named(void **state)
{
    float x[3] = {1, 2, 3};
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .in = x, .out = x};
    float *values[3];
    uint64_t before;
    answer a;
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    job_ask(j.workers[0], &r, &a);
    before = loop_clock();
    tni_kv_process_end(j.workers[1]);
    j.workers[1] = NULL;
    assert_int_equal(job_wait(&a), TN_E_PEER);
    assert_true(loop_clock() - before < 6000000000u); /* its link is lost: no need to wait 10 s */
    assert_non_null(strstr(a.error.message, "worker 1"));
    assert_true(loop_until(failed, j.workers[0], 1));
    assert_int_equal(tni_kv_process_request(j.workers[0], &r, NULL, NULL), TN_OK); /* refused there */
    assert_int_equal(tni_kv_process_leave(j.workers[0]), TN_E_PEER);
    j.workers[0] = NULL;
    free_all(values);
    job_end(&j);
}

/* A worker that goes without a word is named where it is waited for in vain, also if a server is lost at that
 * moment, which stays away or comes back. */
static void lost_with_a_server(void **state)
{
    float x[3] = {1, 2, 3};
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .in = x, .out = x};
    float *values[3];
    answer a;
    job j;

    (void)state;
    for (int back = 0; back < 2; back++) {
        job_begin(&j, 2, 2);
        j.setup.settings.worker_loss = TNI_KV_LOSS_WAIT;
        j.setup.settings.worker_wait_ns = 30000000000u;
        job_start(&j);
        keys_make(&j, 3, sizes);
        keys_init(&j, 3, sizes, values);
        job_ask(j.workers[0], &r, &a);
        loop_kill(j.nodes[1].index);
        tni_kv_process_end(j.workers[1]);
        j.workers[1] = NULL;
        assert_int_equal(job_node_join(&j.nodes[1]), TN_E_IO);
        assert_true(loop_until(gone, j.workers[0], 60));
        if (back)
            (void)job_serve(&j, 0);
        assert_int_not_equal(job_wait(&a), TN_OK);
        assert_true(loop_until(failed, j.workers[0], 60));
        assert_int_equal(tni_kv_process_status(j.workers[0]), TN_E_PEER);
        assert_non_null(strstr(tni_error_message(), "worker 1"));
        free_all(values);
        job_end(&j);
    }
}

/* The scheduler is gone: who leaves waits for kvstore.control_timeout, also behind a barrier that nobody
 * answers, and is not told of a failure. */
static void the_scheduler_is_gone(void **state)
{
    const tni_kv_request barrier = {.kind = TNI_KV_DO_BARRIER}, bye = {.kind = TNI_KV_DO_BYE};
    uint64_t before;
    answer met, left;
    job j;

    (void)state;
    for (int i = 0; i < 2; i++) {
        job_begin(&j, 2, 1);
        j.setup.settings.control_timeout_ns = 20000000000u;
        job_start(&j);
        loop_cut(0, true);
        before = loop_clock();
        if (i)
            job_ask(j.workers[0], &barrier, &met);
        job_ask(j.workers[0], &bye, &left);
        assert_int_equal(job_wait(&left), TN_OK);
        assert_true(loop_clock() - before < 30000000000u);
        if (i)
            assert_int_equal(job_wait(&met), TN_E_TIMEOUT);
        loop_cut(0, false);
        for (uint32_t w = 0; w < 2; w++) {
            tni_kv_process_end(j.workers[w]);
            j.workers[w] = NULL;
        }
        job_end(&j);
    }
}

static void silence_is_named(void **state)
{
    float x[3] = {1, 2, 3};
    tni_kv_request r = {.kind = TNI_KV_DO_PUSH, .in = x};
    float *values[3], *big = numbers(BIG, 1);
    answer a, b;
    job j;

    (void)state;
    job_begin(&j, 1, 1);
    j.setup.settings.dead_ns = 0; /* nobody dies: the deadline speaks */
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    loop_cut(j.nodes[1].index, true);
    job_ask(j.workers[0], &r, &a);
    r.key = 1;
    r.in = big;
    job_ask(j.workers[0], &r, &b);
    assert_int_equal(job_wait(&a), TN_E_TIMEOUT);
    assert_non_null(strstr(a.error.message, "server 0"));
    assert_int_equal(job_wait(&b), TN_E_TIMEOUT);
    assert_int_equal(job_node_join(&j.nodes[1]), TN_E_TIMEOUT); /* it heard nobody either */
    loop_kill(j.nodes[0].index);                                /* it would wait for its server for ever */
    free_all(values);
    tni_free(big);
    job_end(&j);
}

static char logged[1024]; /* by the one thread that has a log */

static void log_take(void *arg, int32_t level, const char *text)
{
    (void)arg;
    if (level <= TN_LOG_WARNING)
        (void)snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", text);
}

/* Who is waited for is said once, long before the time is over. */
static void nobody_comes(void **state)
{
    static const tni_log quiet;
    const tni_log log = {.fn = log_take, .level = TN_LOG_WARNING};
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    j.setup.log = &log;
    j.workers[0] = job_work(&j, 0);
    assert_true(loop_until(failed, j.workers[0], 100));
    assert_int_equal(tni_kv_process_joined(j.workers[0]), TN_E_TIMEOUT);
    assert_non_null(strstr(tni_error_message(), "scheduler sched:1: no answer"));
    tni_kv_process_end(j.workers[0]);
    assert_non_null(strstr(logged, "waits for the scheduler at sched:1, at most 60 s"));
    assert_ptr_equal(strchr(logged, '\n'), strrchr(logged, '\n'));
    logged[0] = '\0';
    j.setup.log = &quiet;
    (void)job_schedule(&j);
    (void)job_serve(&j, 0);
    j.setup.log = &log;
    j.workers[0] = job_work(&j, 0);
    assert_true(loop_until(failed, j.workers[0], 100));
    assert_int_equal(tni_kv_process_joined(j.workers[0]), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "worker 1 has not come"));
    tni_kv_process_end(j.workers[0]);
    assert_non_null(strstr(logged, "waits for worker 1 and 0 more to join"));
    j.workers[0] = NULL;
    job_end(&j);
    assert_int_equal(j.nodes[0].status, TN_E_PEER);
}

/* Of another job: it is not heard, and the job does not notice. A rank too many is refused. */
static void strangers(void **state)
{
    float *values[3];
    tni_kv_process *other;
    job j;

    (void)state;
    job_begin(&j, 1, 1);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    j.setup.settings.job = 78;
    other = job_work(&j, 0);
    assert_true(loop_until(failed, other, 100));
    assert_int_equal(tni_kv_process_joined(other), TN_E_TIMEOUT);
    tni_kv_process_end(other);
    j.setup.settings.job = 77;
    other = job_work(&j, 3);
    assert_true(loop_until(failed, other, 100));
    assert_int_equal(tni_kv_process_joined(other), TN_E_PEER);
    tni_kv_process_end(other);
    round_run(&j, 3, sizes, values);
    free_all(values);
    job_end(&j);
}

/* ---- async, ends of data, barriers ---- */

static void a_worker_may_not_run_away(void **state)
{
    float x[3] = {1, 1, 1}, out[3];
    const tni_kv_request push = {.kind = TNI_KV_DO_PUSH, .in = x},
                         pull = {.kind = TNI_KV_DO_PULL, .out = out};
    float *values[3];
    answer a;
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    j.setup.settings.async = true;
    j.setup.settings.staleness = 2;
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    for (int i = 0; i < 3; i++)
        assert_int_equal(job_do(j.workers[0], &push), TN_OK); /* needs nobody */
    job_ask(j.workers[0], &pull, &a);
    assert_false(loop_until(job_answered, (void *)(answer *[]){&a, NULL}, 30)); /* the other one is at 0 */
    assert_int_equal(job_do(j.workers[1], &push), TN_OK);
    assert_int_equal(job_wait(&a), TN_OK);
    assert_true(out[0] == values[0][0] + 4);
    free_all(values);
    job_end(&j);
}

static void data_ends_unevenly(void **state)
{
    float x[3] = {1, 2, 3}, out[2][3];
    const tni_kv_request end = {.kind = TNI_KV_DO_END, .step = 1}, later = {.kind = TNI_KV_DO_END, .step = 3};
    float *values[3];
    answer a, b;
    job j;

    (void)state;
    job_begin(&j, 2, 1);
    j.setup.settings.uneven = TNI_KV_JOIN;
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    for (uint32_t i = 0; i < 3; i++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .in = x, .out = out[0]},
                             other = {.kind = TNI_KV_DO_PUSHPULL, .in = x, .out = out[1]};

        job_ask(j.workers[0], &r, &a);
        if (i == 0)
            assert_int_equal(job_do(j.workers[1], &other), TN_OK);
        assert_int_equal(job_wait(&a), TN_OK);
        if (i == 0)
            job_ask(j.workers[1], &end, &b);
    }
    assert_int_equal(job_do(j.workers[0], &later), TN_OK);
    assert_int_equal(job_wait(&b), TN_OK);
    assert_true(out[0][1] == values[0][1] + 8); /* 2 of both, then 2 of one, twice */
    free_all(values);
    job_end(&j);
}

static void barriers(void **state)
{
    const tni_kv_request r = {.kind = TNI_KV_DO_BARRIER};
    answer a[3];
    job j;

    (void)state;
    job_begin(&j, 3, 1);
    job_start(&j);
    for (int round = 0; round < 3; round++) {
        job_ask(j.workers[0], &r, &a[0]);
        job_ask(j.workers[2], &r, &a[2]);
        assert_false(loop_until(job_answered, (void *)(answer *[]){&a[0], NULL}, 10));
        job_ask(j.workers[1], &r, &a[1]);
        for (int w = 0; w < 3; w++)
            assert_int_equal(job_wait(&a[w]), TN_OK);
    }
    job_end(&j);
}

/* ---- hostile peers ---- */

static uint64_t random_state = 3;

static uint8_t random_byte(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(random_state >> 56);
}

/* Signed well: the job's number, a checksum that is right, any fields. */
static void forge(uint8_t header[TNI_KV_HEADER_BYTES], uint8_t *payload, uint64_t bytes, uint16_t to)
{
    tni_kv_header h = {
        .type = (uint8_t)(1 + random_byte() % (TNI_KV_TYPE_END - 1)),
        .flags = random_byte() & TNI_KV_CHECKED,
        .what = random_byte() % 8,
        .from = (uint16_t)(random_byte() % 3 ? random_byte() << 8 | random_byte() % 4 : (int)TNI_KV_UNKNOWN),
        .to = to,
        .view = random_byte() % 8,
        .incarnation = random_byte() % 8,
        .round = random_byte() % 8,
        .job = 77,
        .sequence = random_byte(),
        .key = (uint64_t)(random_byte() % 3) << 16 | random_byte() % 3,
        .bytes = bytes};

    for (uint64_t i = 0; i < bytes; i++)
        payload[i] = random_byte();
    tni_kv_encode(&h, payload, header);
    if (random_byte() % 4 == 0)
        header[random_byte() % TNI_KV_HEADER_BYTES] ^= (uint8_t)(1 + random_byte() % 255);
}

static void poll_out(tn_transport *t)
{
    tn_transport_event e[16];
    tn_err err;
    uint32_t count = 16;

    for (uint32_t i = 0; i < 16; i++)
        e[i].struct_size = (uint32_t)sizeof *e;
    assert_int_equal(loop_ops.poll(t, e, &count, 0, &err), TN_OK);
    for (uint32_t i = 0; i < count; i++)
        if (e[i].kind == TN_EVENT_RECV)
            loop_ops.release(t, e[i].held);
}

/* Frames of a peer that knows the job's number, but is no member: the rounds of the others go on. */
static void forged_frames(void **state)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = 1u << 20,
                                        .message_max = 1u << 20,
                                        .links_max = 64};
    const char *const places[] = {"sched:1", "server:1", "server:2"};
    float *values[3];
    uint8_t payload[2000], header[TNI_KV_HEADER_BYTES];
    tn_transport *t;
    tn_err err;
    job j;

    (void)state;
    job_begin(&j, 2, 2);
    job_start(&j);
    keys_make(&j, 3, sizes);
    keys_init(&j, 3, sizes, values);
    assert_int_equal(loop_ops.open(NULL, &config, &t, &err), TN_OK);
    for (uint32_t i = 0; i < 300; i++) {
        tn_link *link;

        assert_int_equal(loop_ops.connect(t, places[i % 3], (uint32_t)strlen(places[i % 3]), &link, &err),
                         TN_OK);
        for (uint32_t n = 0; n < 3; n++) {
            const uint64_t bytes = random_byte() % 2 ? random_byte() * 7u : 0;
            const tn_piece piece = {.data = payload, .bytes = bytes};
            const tn_send send = {.struct_size = (uint32_t)sizeof send,
                                  .flags = TN_SEND_COPY,
                                  .header = header,
                                  .pieces = &piece,
                                  .piece_count = bytes > 0};

            forge(header, payload, bytes,
                  i % 3 ? TNI_KV_NODE(TNI_KV_SERVER, i % 3 - 1) : TNI_KV_SCHEDULER_NODE);
            (void)loop_ops.send(link, &send, &err);
        }
        poll_out(t);
        if (i % 5 == 0)
            loop_ops.disconnect(link);
        poll_out(t);
    }
    loop_ops.close(t, 0);
    j.opened++;
    round_run(&j, 3, sizes, values);
    round_run(&j, 3, sizes, values);
    free_all(values);
    job_end(&j);
}

/* Links on which nobody speaks are closed after a while. */
static void mute_links(void **state)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = 1u << 20,
                                        .message_max = 1u << 20,
                                        .links_max = 64};
    uint32_t down = 0;
    tn_transport *t;
    tn_err err;
    job j;

    (void)state;
    job_begin(&j, 1, 1);
    job_start(&j);
    assert_int_equal(loop_ops.open(NULL, &config, &t, &err), TN_OK);
    for (uint32_t i = 0; i < 40; i++) {
        tn_link *link;

        assert_int_equal(loop_ops.connect(t, "sched:1", 7, &link, &err), TN_OK);
    }
    loop_watch(t);
    (void)loop_until(job_answered, (void *)(answer *[]){&(answer){.done = false}, NULL}, 30);
    for (uint32_t turn = 0; turn < 10; turn++) {
        tn_transport_event e[16];
        uint32_t count = 16;

        for (uint32_t i = 0; i < 16; i++)
            e[i].struct_size = (uint32_t)sizeof *e;
        assert_int_equal(loop_ops.poll(t, e, &count, 0, &err), TN_OK);
        for (uint32_t i = 0; i < count; i++)
            down += e[i].kind == TN_EVENT_DOWN;
    }
    assert_int_equal(down, 40);
    loop_ops.close(t, 0);
    job_end(&j);
}

static void wrong_calls(void **state)
{
    const tni_kv_request unknown = {.kind = TNI_KV_DO_PULL, .key = 9}, kind = {.kind = (tni_kv_kind)99};
    job j;

    (void)state;
    job_begin(&j, 1, 1);
    job_start(&j);
    assert_int_equal(tni_kv_process_call(j.workers[0], &unknown), TN_E_KEY);
    assert_int_equal(tni_kv_process_call(j.workers[0], &kind), TN_E_ARG);
    assert_int_equal(tni_kv_process_key(j.workers[0], 0, 0, 3, 0), TN_E_ARG);
    assert_int_equal(tni_kv_process_key(j.workers[0], 0, 0, 3, 4), TN_OK);
    assert_int_equal(tni_kv_process_key(j.workers[0], 0, 0, 3, 4), TN_E_KEY);
    assert_int_equal(tni_kv_process_dead(j.workers[0], 17), 0);
    assert_int_equal(tni_kv_process_break(j.workers[0], 1), TN_OK);
    assert_int_equal(tni_kv_process_resume(j.workers[0]), TN_OK);
    assert_int_equal(tni_kv_process_leave(NULL), TN_OK);
    tni_kv_process_end(NULL);
    job_end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_all_sizes),
        cmocka_unit_test(near_addresses),
        cmocka_unit_test(servers_out_of_reach),
        cmocka_unit_test(lost_messages_and_links),
        cmocka_unit_test(a_server_comes_back),
        cmocka_unit_test(a_scheduler_comes_back),
        cmocka_unit_test(a_dead_worker_is_named),
        cmocka_unit_test(lost_with_a_server),
        cmocka_unit_test(the_scheduler_is_gone),
        cmocka_unit_test(silence_is_named),
        cmocka_unit_test(nobody_comes),
        cmocka_unit_test(strangers),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(a_worker_may_not_run_away),
        cmocka_unit_test(data_ends_unevenly),
        cmocka_unit_test(barriers),
        cmocka_unit_test(forged_frames),
        cmocka_unit_test(mute_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
