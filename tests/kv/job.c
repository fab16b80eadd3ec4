#include "kv/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000u

static const tni_log no_log;

void job_begin(job *j, uint32_t workers, uint32_t servers)
{
    memset(j, 0, sizeof *j);
    loop_begin();
    j->setup = (tni_kv_setup){.settings = {.job = 77,
                                           .workers = workers,
                                           .servers = servers,
                                           .beat_ns = SECOND,
                                           .suspect_ns = 3ull * SECOND,
                                           .dead_ns = 10ull * SECOND,
                                           .timeout_ns = 600ull * SECOND,
                                           .control_timeout_ns = 60ull * SECOND,
                                           .part_bytes = 64u << 10,
                                           .credit_bytes = 256u << 10,
                                           .landing_bytes = 64u << 20,
                                           .staleness = UINT32_MAX,
                                           .server_loss = TNI_KV_LOSS_WAIT,
                                           .server_wait_ns = 60ull * SECOND},
                              .ops = &loop_ops,
                              .priority = true,
                              .lanes = 1,
                              .rank = -1,
                              .folder = "",
                              .log = &no_log,
                              .clock = loop_clock};
    strcpy(j->setup.scheduler, "sched:1");
    for (uint32_t i = 0; i < JOB_NODES; i++)
        tni_str_init(&j->disks[i].journal, TN_TEXT_MAX);
}

/* ---- sums of floats, and disks in memory ---- */

static uint64_t update_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == 0 && what == 0 ? bytes : 0;
}

static tn_status update_add(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                            const void *payload, uint64_t bytes)
{
    float *to = sum;
    const float *from = payload, *before = base;

    (void)arg;
    (void)h;
    for (uint64_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = first ? from[i] : before[i] + from[i];
    return TN_OK;
}

static tn_status update_apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                              uint32_t count, uint32_t members)
{
    float *to = value;
    const float *from = sum;

    (void)arg;
    (void)h;
    (void)count;
    (void)members;
    for (uint64_t i = 0; i < bytes / sizeof *to; i++)
        to[i] += from[i];
    return TN_OK;
}

static tn_status snapshot_write(void *arg, uint64_t step, tni_str *text)
{
    const uint64_t bytes = text->length;
    job_disk *d = arg;

    free(d->texts[1]);
    d->texts[1] = d->texts[0];
    d->steps[1] = d->steps[0];
    d->bytes[1] = d->bytes[0];
    if (!(d->texts[0] = malloc(bytes)))
        return TN_E_NOMEM;
    tni_kv_snapshot_seal(text->text, bytes);
    memcpy(d->texts[0], text->text, bytes);
    d->steps[0] = step;
    d->bytes[0] = bytes;
    return TN_OK;
}

static tn_status snapshot_read(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    const job_disk *d = arg;

    for (int i = 0; i < 2 && step; i++)
        if (d->steps[i] == step) {
            *text = d->texts[i];
            *bytes = d->bytes[i];
            return TN_OK;
        }
    return step ? tni_error(TN_E_IO, "no snapshot of step %llu", (unsigned long long)step) : TN_OK;
}

static tn_status journal_append(void *arg, const void *record, uint64_t bytes)
{
    return tni_str_add_bytes(&((job_disk *)arg)->journal, record, bytes);
}

/* ---- threads ---- */

static void serve_run(void *arg)
{
    job_node *n = arg;
    const tni_kv_update update = {.payload_bytes = update_bytes, .add = update_add, .apply = update_apply};
    const tni_kv_snapshots snapshots = {.arg = n->disk, .write = snapshot_write, .read = snapshot_read};
    const tni_kv_start start = {
        .rank = (int32_t)n->rank, .birth = tni_kv_birth(), .steps = {n->disk->steps[0], n->disk->steps[1]}};

    n->status = tni_kv_serve_with(&n->setup, &start, &update, &snapshots);
    tni_error_get(&n->error);
}

static void schedule_run(void *arg)
{
    job_node *n = arg;
    const tni_kv_journal journal = {n->disk, journal_append, NULL};
    tni_kv_post *post;

    n->status = tni_kv_post_open(&n->setup, TNI_KV_SCHEDULER, &post);
    if (!n->status)
        n->status =
            tni_kv_schedule_with(&n->setup, post, &journal, n->disk->journal.text, n->disk->journal.length);
    tni_error_get(&n->error);
}

static job_node *node_start(job *j, uint32_t role, uint32_t rank)
{
    job_node *n = &j->nodes[j->node_count++];

    assert_true(j->node_count <= JOB_NODES);
    *n = (job_node){.setup = j->setup, .role = role, .rank = rank, .index = j->opened};
    n->disk = &j->disks[role == TNI_KV_SCHEDULER ? 0 : 1 + rank];
    (void)snprintf(n->setup.listen, sizeof n->setup.listen, "%s",
                   role == TNI_KV_SCHEDULER ? j->setup.scheduler : "server:0");
    assert_int_equal(
        tni_thread_create("node", role == TNI_KV_SCHEDULER ? schedule_run : serve_run, n, &n->thread), TN_OK);
    loop_wait_open(++j->opened);
    return n;
}

job_node *job_schedule(job *j)
{
    return node_start(j, TNI_KV_SCHEDULER, 0);
}

job_node *job_serve(job *j, uint32_t rank)
{
    return node_start(j, TNI_KV_SERVER, rank);
}

tni_kv_process *job_work(job *j, uint32_t rank)
{
    tni_kv_setup setup = j->setup;
    tni_kv_process *p = NULL;

    setup.rank = (int32_t)rank;
    assert_int_equal(tni_kv_process_start(&setup, &p), TN_OK);
    j->opened++;
    return p;
}

static bool all_ready(void *arg)
{
    job *j = arg;
    bool ready = true;

    for (uint32_t i = 0; i < j->setup.settings.workers; i++)
        ready = ready && tni_kv_process_ready(j->workers[i]);
    return ready;
}

void job_start(job *j)
{
    (void)job_schedule(j);
    for (uint32_t i = 0; i < j->setup.settings.servers; i++)
        (void)job_serve(j, i);
    for (uint32_t i = 0; i < j->setup.settings.workers; i++)
        j->workers[i] = job_work(j, i);
    assert_true(loop_until(all_ready, j, 30));
    for (uint32_t i = 0; i < j->setup.settings.workers; i++) {
        assert_int_equal(tni_kv_process_joined(j->workers[i]), TN_OK);
        assert_int_equal(tni_kv_process_rank(j->workers[i]), i);
    }
}

tn_status job_node_join(job_node *n)
{
    tni_thread_join(n->thread);
    n->thread = NULL;
    return n->status;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void job_end(job *j)
{
    const tni_kv_request bye = {.kind = TNI_KV_DO_BYE};
    answer a[JOB_NODES];

    for (uint32_t i = 0; i < JOB_NODES; i++)
        if (j->workers[i])
            job_ask(j->workers[i], &bye, &a[i]);
    for (uint32_t i = 0; i < JOB_NODES; i++)
        if (j->workers[i]) {
            (void)job_wait(&a[i]);
            tni_kv_process_end(j->workers[i]);
        }
    (void)loop_until(never, NULL, 900);
    for (uint32_t i = 0; i < j->node_count; i++)
        if (j->nodes[i].thread)
            (void)job_node_join(&j->nodes[i]);
    for (uint32_t i = 0; i < JOB_NODES; i++) {
        tni_str_fini(&j->disks[i].journal);
        free(j->disks[i].texts[0]);
        free(j->disks[i].texts[1]);
    }
    loop_end();
}

/* ---- requests ---- */

static void answered(void *arg, tn_status st)
{
    answer *a = arg;

    a->status = st;
    if (st)
        tni_error_get(&a->error);
    atomic_store(&a->done, true);
}

void job_ask(tni_kv_process *p, const tni_kv_request *r, answer *a)
{
    memset(a, 0, sizeof *a);
    atomic_init(&a->done, false);
    assert_int_equal(tni_kv_process_request(p, r, answered, a), TN_OK);
}

bool job_answered(void *arg)
{
    for (answer *const *a = arg; *a; a++)
        if (!atomic_load(&(*a)->done))
            return false;
    return true;
}

tn_status job_wait(answer *a)
{
    answer *const list[] = {a, NULL};

    if (!loop_until(job_answered, (void *)(uintptr_t)list, 2000))
        fail_msg("no answer");
    if (a->status)
        tni_error_set(&a->error);
    return a->status;
}

tn_status job_do(tni_kv_process *p, const tni_kv_request *r)
{
    answer a;

    job_ask(p, r, &a);
    return job_wait(&a);
}
