/* Servers and schedulers: the loop of post.c around their machines, on the thread that calls. */
#include "kv/kv.h"

#include <malloc.h>
#include <string.h>
#include <sys/random.h>

#include "kv/disk.h"
#include "kv/post.h"
#include "kv/process.h"
#include "kv/update.h"

#define FLUSH_NS 1000000000u
#define KEPT_BYTES (256 << 20) /* of memory that is free: a process that serves gets the same sizes again */

typedef struct acting { /* one of the two */
    tni_kv_server *server;
    const tni_kv_snapshots *snapshots; /* NULL: none that are written meanwhile */
    tni_kv_scheduler *scheduler;
    uint64_t next_ns;
} acting;

static uint64_t earlier(acting *a, uint64_t next)
{
    a->next_ns = next < a->next_ns ? next : a->next_ns;
    return a->next_ns;
}

uint64_t tni_kv_birth(void)
{
    uint64_t birth = 0;

    if (getrandom(&birth, sizeof birth, GRND_NONBLOCK) != (ssize_t)sizeof birth)
        birth = tni_clock_wall_ns();
    return birth | 1u;
}

/* ---- server ---- */

static uint64_t server_receive(void *arg, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now)
{
    acting *a = arg;

    return earlier(a, tni_kv_server_receive(a->server, header, payload, bytes, now));
}

static uint64_t server_step(void *arg, uint64_t now)
{
    acting *a = arg;
    uint64_t step;
    tn_status st;

    if (a->snapshots && a->snapshots->over(a->snapshots->arg, &step, &st)) {
        tni_kv_server_saved(a->server, step, st, now);
        a->next_ns = now;
    }
    return now < a->next_ns ? a->next_ns : (a->next_ns = tni_kv_server_tick(a->server, now));
}

static const tni_kv_view *server_view(void *arg)
{
    return tni_kv_server_view(((acting *)arg)->server);
}

static tni_kv_hold *server_hold(void *arg)
{
    return tni_kv_server_sending(((acting *)arg)->server);
}

static void server_wake(void *post)
{
    tni_kv_post_wake(post);
}

static bool server_over(void *arg)
{
    const tni_kv_server *s = ((acting *)arg)->server;

    return tni_kv_server_finished(s) || tni_kv_server_status(s);
}

tn_status tni_kv_serve_with(tni_kv_setup *setup, const tni_kv_start *from, const tni_kv_update *update,
                            const tni_kv_snapshots *snapshots)
{
    acting a = {0};
    const tni_kv_role role = {.arg = &a,
                              .receive = server_receive,
                              .step = server_step,
                              .view = server_view,
                              .over = server_over,
                              .hold = server_hold};
    tni_kv_start start = *from;
    tni_kv_post *post = NULL;
    tni_kv_host host;
    tn_status st = tni_kv_post_open(setup, TNI_KV_SERVER, &post);

    if (st)
        return st;
    tni_kv_post_address(post, &start.address, &start.address_bytes);
    tni_kv_post_host(post, &host);
    st = tni_kv_server_create(&setup->settings, &host, &start, update, snapshots, &a.server);
    if (snapshots && snapshots->wakes) {
        a.snapshots = snapshots;
        snapshots->wakes(snapshots->arg, server_wake, post);
    }
    if (!st && !(st = tni_kv_post_run(post, &role)))
        st = tni_kv_server_status(a.server);
    if (a.snapshots)
        snapshots->wakes(snapshots->arg, NULL, NULL);
    if (st == TN_E_TIMEOUT && *tni_kv_post_why(post)) {
        tn_err error;

        tni_error_get(&error);
        st = tni_error(st, "scheduler %.100s: %.250s; %.100s", setup->scheduler, error.message,
                       tni_kv_post_why(post));
    }
    tni_kv_server_destroy(a.server); /* gives back what it keeps */
    tni_kv_post_close(post, FLUSH_NS);
    return st;
}

/* ---- scheduler ---- */

static uint64_t scheduler_receive(void *arg, const uint8_t *header, const void *payload, uint64_t bytes,
                                  uint64_t now)
{
    acting *a = arg;

    return earlier(a, tni_kv_scheduler_receive(a->scheduler, header, payload, bytes, now));
}

static uint64_t scheduler_step(void *arg, uint64_t now)
{
    acting *a = arg;

    return now < a->next_ns ? a->next_ns : (a->next_ns = tni_kv_scheduler_tick(a->scheduler, now));
}

static void scheduler_lost(void *arg, uint16_t node, uint64_t birth)
{
    tni_kv_scheduler_lost(((acting *)arg)->scheduler, node, birth);
}

static const tni_kv_view *scheduler_view(void *arg)
{
    return tni_kv_scheduler_view(((acting *)arg)->scheduler);
}

static bool scheduler_over(void *arg)
{
    return tni_kv_scheduler_finished(((acting *)arg)->scheduler);
}

/* What the job came to: its failure, in the words of the view. */
static tn_status job_status(const tni_kv_scheduler *s)
{
    const tni_kv_view *v = tni_kv_scheduler_view(s);

    return v->flags & TNI_KV_JOB_FAILED ? tni_kv_view_failure(v) : TN_OK;
}

tn_status tni_kv_schedule_with(tni_kv_setup *setup, tni_kv_post *post, const tni_kv_journal *journal,
                               const void *text, uint64_t bytes)
{
    acting a = {0};
    const tni_kv_role role = {.arg = &a,
                              .receive = scheduler_receive,
                              .step = scheduler_step,
                              .view = scheduler_view,
                              .over = scheduler_over,
                              .lost = scheduler_lost};
    tni_kv_host host;
    tn_status st;

    tni_kv_post_host(post, &host);
    tni_kv_trace_own(setup->settings.job, TNI_KV_SCHEDULER_NODE, 1, 0, 0);
    st = tni_kv_scheduler_create(&setup->settings, &host, journal, text, bytes, setup->clock(), &a.scheduler);
    if (!st && !(st = tni_kv_post_run(post, &role)) && !(st = tni_kv_scheduler_status(a.scheduler)))
        st = job_status(a.scheduler);
    tni_kv_post_close(post, FLUSH_NS);
    tni_kv_scheduler_destroy(a.scheduler);
    return st;
}

/* ---- by the options of a context ---- */

/* A port that the transport chose becomes part of what the scheduler is called. */
static tn_status port_take(tni_kv_setup *setup, const tni_kv_post *post)
{
    char *colon = strrchr(setup->scheduler, ':');
    const void *address;
    const char *port;
    uint32_t bytes;

    if (!colon || strcmp(colon, ":0") != 0)
        return TN_OK;
    tni_kv_post_address(post, &address, &bytes);
    (void)snprintf(setup->listen, sizeof setup->listen, "%.*s", (int)bytes, (const char *)address);
    port = strrchr(setup->listen, ':');
    if (!port || strlen(setup->listen) != bytes || !port[1] ||
        strspn(port + 1, "0123456789") != strlen(port + 1))
        return tni_error(TN_E_UNSUPPORTED,
                         "transport %s does not tell its port: kvstore.scheduler_port may not be 0",
                         setup->ops->head.id);
    (void)snprintf(colon, sizeof setup->scheduler - (size_t)(colon - setup->scheduler), "%s", port);
    return TN_OK;
}

tn_status tni_kv_schedule(tni_context *c, tn_kv_command_fn fn, void *arg)
{
    tni_kv_journal journal = {0};
    const void *text = NULL;
    tni_kv_disk *disk = NULL;
    tni_kv_post *post = NULL;
    uint64_t bytes = 0;
    tni_kv_setup setup;
    tn_status st;

    if ((st = tni_kv_setup_read(c, TNI_KV_SCHEDULER, false, &setup)) ||
        (st = tni_kv_post_open(&setup, TNI_KV_SCHEDULER, &post)) || (st = port_take(&setup, post)))
        goto cleanup;
    tni_kv_setup_job(&setup, tni_option_text(c->options, "kvstore.job"));
    if (*setup.folder && (st = tni_kv_disk_journal(setup.folder, setup.settings.job, setup.log, &journal,
                                                   &text, &bytes, &disk)))
        goto cleanup;
    tni_logf(setup.log, TN_LOG_INFO, "kvstore: the scheduler listens on %s", setup.scheduler);
    if (fn)
        fn(arg, TN_KV_LISTENS, setup.scheduler);
    st = tni_kv_schedule_with(&setup, post, *setup.folder ? &journal : NULL, text, bytes);
    post = NULL;

cleanup:
    tni_kv_post_close(post, 0);
    tni_kv_disk_close(disk);
    memset(setup.secret, 0, sizeof setup.secret);
    return st;
}

/* Snapshots belong to a rank, which a server has to know before it comes. */
static tn_status snapshots_open(const tni_kv_setup *setup, tni_kv_start *start, tni_kv_snapshots *out,
                                tni_kv_disk **disk)
{
    tn_status st;

    if (!*setup->folder)
        return TN_OK;
    if (setup->rank < 0)
        return tni_error(TN_E_ATTR, "kvstore.state_folder is set: a server then needs kvstore.rank");
    st = tni_kv_disk_snapshots(setup->folder, setup->settings.job, (uint32_t)setup->rank, setup->log,
                               start->steps, disk);
    if (!st)
        *out = tni_kv_disk_table(*disk);
    return st;
}

tn_status tni_kv_serve(tni_context *c, int32_t rank, tn_kv_command_fn fn, void *arg)
{
    tni_kv_start start = {.birth = tni_kv_birth()};
    tni_kv_snapshots snapshots = {0};
    tni_kv_updates *updates = NULL;
    tni_kv_disk *disk = NULL;
    tni_kv_update table;
    tni_kv_setup setup;
    tn_status st = tni_kv_setup_read(c, TNI_KV_SERVER, false, &setup);

    if (st)
        return st;
    if (rank >= 0)
        setup.rank = rank;
    start.rank = setup.rank;
    if (!(st = snapshots_open(&setup, &start, &snapshots, &disk)) &&
        !(st = tni_kv_updates_create(c, false, fn, arg, &updates))) {
        table = tni_kv_updates_table(updates);
        st = tni_kv_serve_with(&setup, &start, &table, disk ? &snapshots : NULL);
    }
    tni_kv_updates_destroy(updates);
    tni_kv_disk_close(disk);
    memset(setup.secret, 0, sizeof setup.secret);
    return st;
}

tn_status tni_kv_run_role(tni_context *c, tn_kv_command_fn fn, void *arg, int32_t *ran)
{
    const char *role = tni_option_text(c->options, "kvstore.role");

    *ran = strcmp(role, "worker") != 0;
    if (!*ran)
        return TN_OK;
    if (strcmp(role, "server") != 0)
        return tni_kv_schedule(c, fn, arg);
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 8); /* else each message of a part brings its pages anew */
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    return tni_kv_serve(c, -1, fn, arg);
}
