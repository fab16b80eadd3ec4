/* tenon/engine.h. A tn_var is a tni_var. */
#include "tenon/engine.h"
#include "api/api.h"

static tni_var *of(tn_var *v)
{
    return (void *)v;
}

/* ---- variables ----------------------------------------------------------------------------------- */

tn_status tn_var_create(tn_ctx *ctx, tn_var **out)
{
    tni_var *v;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (!(v = tni_zalloc(sizeof *v)))
        return TN_E_NOMEM;
    tni_var_init(v);
    v->owner = ctx->engine;
    *out = (void *)v;
    return TN_OK;
}

static tn_status owner_check(const char *function, const tn_ctx *ctx, const tn_var *var, uint32_t index)
{
    const tni_var *v = (const void *)var;

    if (!v->owner || v->owner == ctx->engine)
        return TN_OK;
    return tni_error(TN_E_ARG, "%s: variable %u belongs to another context", function, index);
}

static tn_status var_last(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return TN_OK;
}

static void var_free(void *payload, tni_engine *e, tn_status status)
{
    tni_var *v = *(tni_var **)payload;

    (void)e;
    (void)status;
    tni_var_fini(v);
    tni_free(v);
}

void tn_var_destroy(tn_ctx *ctx, tn_var *var)
{
    tni_var *v = of(var);
    const tni_task task = {.run = var_last,
                           .done = var_free,
                           .payload = &v,
                           .payload_bytes = sizeof v,
                           .flags = TNI_TASK_ALWAYS,
                           .writes = &v,
                           .write_count = 1,
                           .name = "tn_var_destroy"};

    if (!ctx || !var || owner_check(__func__, ctx, var, 0) || !tni_engine_push(ctx->engine, &task))
        return;
    (void)tni_engine_wait_all(ctx->engine); /* no memory for an operation: the long way */
    tni_var_fini(v);
    tni_free(v);
}

tn_var *tn_array_var(tn_array *a)
{
    return a ? (void *)tni_array_var(a) : NULL;
}

tn_status tn_var_wait(tn_ctx *ctx, tn_var *var)
{
    tn_status st;

    if (!ctx || !var)
        return api_null(__func__, "ctx or var");
    st = owner_check(__func__, ctx, var, 0);
    return st ? st : tni_engine_wait_read(ctx->engine, of(var), 0);
}

/* ---- work ---------------------------------------------------------------------------------------- */

typedef struct work {
    tn_status (*run)(void *arg);
    tn_status (*begin)(void *arg, uint64_t handle);
    void (*done)(void *arg, tn_status status);
    void *arg;
    uint64_t handle; /* of one with `begin` */
} work;

static tn_status work_status(tn_status st)
{
    if (st < TN_OK || st > TN_E_INTERNAL)
        return tni_error(TN_E_ARG, "work of the program ended with %d, which is no status", st);
    if (st && tn_error_code() != st)
        return tni_error(st, "work of the program failed");
    return st;
}

static tn_status work_run(void *payload, tni_run *run)
{
    const work *w = payload;

    (void)run;
    tni_error_clear();
    return work_status(w->run(w->arg));
}

static tn_status work_begin(void *payload, tni_run *run)
{
    const work *w = payload;
    tn_status st;

    tni_error_clear();
    tni_handle_begin(w->handle, run->op);
    st = w->begin(w->arg, w->handle);
    if (st == TN_PENDING || !tni_handle_end(w->handle))
        return TN_PENDING;
    return work_status(st);
}

static void work_done(void *payload, tni_engine *e, tn_status status)
{
    const work *w = payload;

    (void)e;
    if (w->begin)
        (void)tni_handle_end(w->handle); /* it was skipped or cancelled */
    if (w->done)
        w->done(w->arg, status);
}

static tn_status var_refuse(const tn_ctx *ctx, const tn_var *var, uint32_t index)
{
    return var ? owner_check("tn_engine_push", ctx, var, index)
               : tni_error(TN_E_ARG, "tn_engine_push: variable %u is NULL", index);
}

static inline tn_status vars_check(const tn_ctx *ctx, uint32_t count, tn_var *const *vars)
{
    if (count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%u variables, at most %u are possible", count, TN_NODE_INPUTS_MAX);
    if (count && !vars)
        return api_null("tn_engine_push", "reads or writes");
    for (uint32_t i = 0; i < count; i++) {
        const tni_var *v = (const void *)vars[i];

        if (TN_UNLIKELY(!v || (v->owner && v->owner != ctx->engine)))
            return var_refuse(ctx, vars[i], i);
    }
    return TN_OK;
}

static tn_status kind_check(const tn_task *k, const tni_device *d)
{
    if (TN_LIKELY(k->run && !k->begin && !k->flags && k->lane < TNI_LANES))
        return TN_OK;
    if (!k->run == !k->begin)
        return tni_error(TN_E_ARG, "tn_engine_push: a task has either `run` or `begin`, this one has %s",
                         k->run ? "both" : "neither");
    if (k->flags & ~TN_TASK_HOST)
        return tni_error(TN_E_ARG, "tn_engine_push: flags 0x%x are not known", k->flags & ~TN_TASK_HOST);
    if (k->lane >= TNI_LANES)
        return tni_error(TN_E_ARG, "tn_engine_push: lane %u, but lanes go from 0 to %u", k->lane,
                         TNI_LANES - 1);
    if ((k->flags & TN_TASK_HOST) && (k->lane || (d && !d->host)))
        return tni_error(TN_E_ARG,
                         "tn_engine_push: a task with TN_TASK_HOST runs on a callback thread; it has "
                         "no lane and no device but the host");
    return TN_OK;
}

static tn_status task_check(tn_ctx *ctx, const tn_task *k, tni_device **device)
{
    tn_status st;

    if ((st = vars_check(ctx, k->read_count, k->reads)) ||
        (st = vars_check(ctx, k->write_count, k->writes)) ||
        (k->device && (st = api_device(ctx, k->device, device))))
        return st;
    return kind_check(k, *device);
}

/* Functions of a program see no stream: on a device with streams they begin when what they touch is there. */
static uint32_t task_flags(const tn_task *k, const tni_device *d)
{
    return (k->begin ? TNI_TASK_ASYNC : 0u) | (k->flags & TN_TASK_HOST ? TNI_TASK_HOST_CALL : 0u) |
           (d && !d->host ? TNI_TASK_ARRIVED : 0u);
}

tn_status tn_engine_push(tn_ctx *ctx, const tn_task *task)
{
    const tn_task *k = task;
    tni_device *d = NULL;
    tn_task other;
    tn_status st;

    if (!ctx || !task)
        return api_null(__func__, "ctx or task");
    if (task->struct_size != sizeof other) { /* built against another version: taken over member by member */
        if ((st = api_options(__func__, task, &other, (uint32_t)sizeof other)))
            return st;
        k = &other;
    }
    if ((st = task_check(ctx, k, &d)))
        return st;
    work w = {k->run, k->begin, k->done, k->arg, 0};
    const tni_task t = {.run = k->begin ? work_begin : work_run,
                        .done = k->done || k->begin ? work_done : NULL,
                        .payload = &w,
                        .payload_bytes = sizeof w,
                        .flags = task_flags(k, d),
                        .reads = (void *)k->reads,
                        .writes = (void *)k->writes,
                        .read_count = k->read_count,
                        .write_count = k->write_count,
                        .room = NULL, /* all members: nothing is cleared that is written behind that */
                        .room_bytes = 0,
                        .device = d,
                        .name = k->name ? k->name : "task",
                        .origin = NULL,
                        .est_ns = k->est_ns,
                        .lane = k->lane,
                        .priority = k->priority};

    if (k->begin && (st = tni_handle_take(ctx->engine, &w.handle)))
        return st;
    if ((st = tni_engine_push(ctx->engine, &t)) && k->begin)
        (void)tni_handle_end(w.handle);
    return st;
}

tn_status tn_task_complete(uint64_t handle, tn_status status, const char *text)
{
    tn_err err = {0};

    if (status < TN_OK || status > TN_E_INTERNAL)
        return tni_error(TN_E_ARG, "tn_task_complete: %d is no status", status);
    if (status)
        tni_err_format(&err, status, "%s", text && *text ? text : "work of the program failed");
    return tni_handle_complete(handle, status, status ? &err : NULL);
}

/* ---- counters ------------------------------------------------------------------------------------ */

tn_status tn_ctx_stats(tn_ctx *ctx, tn_stats *out)
{
    tni_engine_stats engine;
    tni_exec_stats exec;
    tni_mem_stats memory;
    tn_stats info = {0};

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    tni_engine_stats_get(ctx->engine, &engine);
    tni_exec_stats_get(ctx, &exec);
    tni_mem_stats_get(&memory);
    tni_space_live(ctx->space, &info.arrays, &info.storages);
    info.threads = tni_engine_threads(ctx->engine);
    info.pushed = engine.pushed;
    info.done = engine.done;
    info.inlined = engine.inlined;
    info.failed = engine.failed;
    info.skipped = engine.skipped;
    info.over_limit = engine.over_limit;
    info.event_waits = engine.event_waits;
    info.queue_peak = engine.queue_peak;
    info.hits = exec.hits;
    info.misses = exec.misses;
    info.fast_path = exec.fast_path;
    info.signatures = exec.signatures;
    info.programs = exec.programs;
    info.frames = exec.frames;
    info.cuts = exec.cuts;
    info.graphs = exec.graphs;
    info.graph_launches = exec.graph_launches;
    info.graph_updates = exec.graph_updates;
    info.host_bytes = memory.live_bytes;
    info.host_blocks = memory.live_count;
    info.host_allocations = memory.alloc_count;
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_engine_dump(tn_ctx *ctx, char **text)
{
    tni_str str;
    tn_status st;

    if (!ctx || !text)
        return api_null(__func__, "ctx or text");
    tni_str_init(&str, TN_TEXT_MAX);
    if (!(st = tni_engine_dump(ctx->engine, &str)))
        st = tni_str_take(&str, text);
    tni_str_fini(&str);
    return st;
}

/* ---- trace --------------------------------------------------------------------------------------- */

static tni_trace_user program; /* its own trace; contexts have theirs */

tn_status tn_trace_start(uint32_t events_max)
{
    if (!events_max)
        return tni_error(TN_E_ARG, "a trace of no events");
    return tni_trace_start(&program, events_max);
}

void tn_trace_stop(void)
{
    tni_trace_stop(&program);
}

tn_status tn_trace_json(char **text)
{
    tni_str str;
    tn_status st;

    if (!text)
        return api_null(__func__, "text");
    tni_str_init(&str, TN_TEXT_MAX);
    if (!(st = tni_trace_json(&program, &str)))
        st = tni_str_take(&str, text);
    tni_str_fini(&str);
    return st;
}
