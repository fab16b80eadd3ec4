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
    *out = (void *)v;
    return TN_OK;
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

    if (!ctx || !var || !tni_engine_push(ctx->engine, &task))
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
    if (!ctx || !var)
        return api_null(__func__, "ctx or var");
    return tni_engine_wait_read(ctx->engine, of(var), 0);
}

/* ---- work ---------------------------------------------------------------------------------------- */

typedef struct work {
    tn_status (*run)(void *arg);
    void (*done)(void *arg, tn_status status);
    void *arg;
} work;

static tn_status work_run(void *payload, tni_run *run)
{
    const work *w = payload;
    tn_status st;

    (void)run;
    tni_error_clear();
    st = w->run(w->arg);
    if (st < TN_OK || st > TN_E_INTERNAL)
        return tni_error(TN_E_ARG, "work of the program ended with %d, which is no status", st);
    if (st && tn_error_code() != st)
        return tni_error(st, "work of the program failed");
    return st;
}

static void work_done(void *payload, tni_engine *e, tn_status status)
{
    const work *w = payload;

    (void)e;
    if (w->done)
        w->done(w->arg, status);
}

static tn_status vars_check(uint32_t count, tn_var *const *vars)
{
    if (count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%u variables, at most %u are possible", count, TN_NODE_INPUTS_MAX);
    if (count && !vars)
        return api_null("tn_engine_push", "reads or writes");
    for (uint32_t i = 0; i < count; i++)
        if (!vars[i])
            return tni_error(TN_E_ARG, "tn_engine_push: variable %u is NULL", i);
    return TN_OK;
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
    if (!k->run)
        return api_null(__func__, "run");
    if ((st = vars_check(k->read_count, k->reads)) || (st = vars_check(k->write_count, k->writes)) ||
        (k->device && (st = api_device(ctx, k->device, &d))))
        return st;
    const work w = {k->run, k->done, k->arg};
    const tni_task t = {.run = work_run,
                        .done = k->done ? work_done : NULL,
                        .payload = &w,
                        .payload_bytes = sizeof w,
                        .reads = (void *)k->reads,
                        .writes = (void *)k->writes,
                        .read_count = k->read_count,
                        .write_count = k->write_count,
                        .device = d,
                        .name = k->name ? k->name : "task",
                        .est_ns = k->est_ns,
                        .priority = k->priority};

    return tni_engine_push(ctx->engine, &t);
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
    info.short_way = exec.short_way;
    info.signatures = exec.signatures;
    info.programs = exec.programs;
    info.frames = exec.frames;
    info.by_node = exec.by_node;
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
