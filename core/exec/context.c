/*
 * Contexts: everything one user opened, made in order and closed in reverse.
 *
 * All open contexts stand in one list for fork(): before it the engines drain and park, after it the parent
 * goes on and the child gets fresh workers with one thread each and host devices only.
 */
#include "exec/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static tni_mutex contexts_lock = TNI_MUTEX_INIT;
static tni_context *contexts; /* newest first */
static tni_context *oldest;   /* from prepare to parent or child */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- fork ---------------------------------------------------------------------------------------- */

/* The engine sees to its device set: that is locked last and given back first. Contexts are locked from the
 * newest on and given back from the oldest on, so that no lock is taken below one that it stands above. */
static void fork_prepare(void) TN_NO_THREAD_CHECK
{
    tni_mutex_lock(&contexts_lock);
    for (tni_context *c = contexts; c; c = c->next) {
        tni_engine_fork(c->engine, TN_FORK_PREPARE);
        tni_registry_fork(c->plugins, TN_FORK_PREPARE);
        oldest = c;
    }
}

static void fork_after(uint32_t phase) TN_NO_THREAD_CHECK
{
    for (tni_context *c = oldest; c; c = c->before) {
        tni_registry_fork(c->plugins, phase);
        tni_engine_fork(c->engine, phase);
        if (phase == TN_FORK_CHILD)
            c->exec->threads = 1;
    }
    oldest = NULL;
    tni_mutex_unlock(&contexts_lock);
}

static void fork_parent(void)
{
    fork_after(TN_FORK_PARENT);
}

static void fork_child(void)
{
    fork_after(TN_FORK_CHILD);
}

static void fork_register(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void contexts_add(tni_context *c)
{
    (void)pthread_once(&fork_once, fork_register);
    tni_mutex_lock(&contexts_lock);
    c->next = contexts;
    if (contexts)
        contexts->before = c;
    contexts = c;
    tni_mutex_unlock(&contexts_lock);
}

static void contexts_remove(tni_context *c)
{
    tni_mutex_lock(&contexts_lock);
    if (c->next)
        c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        contexts = c->next;
    tni_mutex_unlock(&contexts_lock);
}

/* ---- room exec's own part ------------------------------------------------------------------------ */

static uint16_t determinism(const tni_options *o)
{
    const char *text = tni_option_text(o, "run.deterministic");

    if (!strcmp(text, "off"))
        return 0;
    return !strcmp(text, "threads") ? TN_NODE_DETERMINISTIC | TN_NODE_THREAD_INVARIANT
                                    : TN_NODE_DETERMINISTIC;
}

tn_status tni_exec_create(tni_context *c, tni_exec **out)
{
    tni_exec *x = tni_zalloc(sizeof *x);
    tn_status st;

    if (!x)
        return TN_E_NOMEM;
    if (!(x->draws = tni_calloc(TN_DEVICES_MAX, sizeof *x->draws)) || tni_mutex_init(&x->lock)) {
        tni_free(x->draws);
        tni_free(x);
        return TN_E_NOMEM;
    }
    x->ctx = c;
    x->signature_max = (uint64_t)tni_option_int(c->options, "exec.cache_max");
    if (!x->signature_max || x->signature_max > TN_SITE_CACHE_MAX)
        x->signature_max = TN_SITE_CACHE_MAX;
    x->inline_ns = tni_engine_inline_ns(c->engine);
    x->threads = tni_engine_threads(c->engine);
    x->node_flags = determinism(c->options);
    if ((st = tni_device_parse(c->devices, tni_option_text(c->options, "device.default"),
                               &x->default_device))) {
        tni_exec_destroy(x);
        return st;
    }
    for (uint32_t i = 0; i < TN_DEVICES_MAX; i++)
        atomic_init(&x->draws[i].key, (uint64_t)tni_option_int(c->options, "run.seed"));
    *out = x;
    return TN_OK;
}

void tni_exec_destroy(tni_exec *x)
{
    if (!x)
        return;
    tni_signature_clear(x);
    tni_mutex_fini(&x->lock);
    tni_free(x->draws);
    tni_free(x);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static tn_status file_read_if(tni_options *o, const char *path, bool trusted)
{
    return tni_file_exists(path) ? tni_options_read_file(o, path, trusted) : TN_OK;
}

/* A relative XDG_CONFIG_HOME does not count, as its specification says. */
static tn_status system_files_read(tni_options *o)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char path[TN_PATH_BYTES_MAX];
    tn_status st = file_read_if(o, "/etc/tenon/tenon.ini", true);
    int length = 0;

    if (xdg && xdg[0] == '/')
        length = snprintf(path, sizeof path, "%s/tenon/tenon.ini", xdg);
    else if (home && home[0] == '/')
        length = snprintf(path, sizeof path, "%s/.config/tenon/tenon.ini", home);
    if (!st && length > 0 && (size_t)length < sizeof path)
        st = file_read_if(o, path, true);
    return st;
}

tn_status tni_context_log_level(tni_context *c)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    const char *text = tni_option_text(c->options, "log.level");

    for (int32_t i = TN_LOG_ERROR; i <= TN_LOG_DEBUG; i++)
        if (!strcmp(text, levels[i]))
            atomic_store(&c->log.level, i);
    return TN_OK;
}

/* Settings come before the environment, so that its lines are logged as they say; a value's origin decides
 * what holds. */
static tn_status options_read(const tni_context_options *o, tni_options *options, tni_context *c)
{
    bool files = o->files && o->files[0];
    tn_status st = o->system_files ? system_files_read(options) : TN_OK;

    if (!st && o->local_file && !files) /* --config takes its place */
        st = file_read_if(options, "tenon.ini", false);
    for (size_t i = 0; !st && files && o->files[i]; i++)
        st = tni_options_read_file(options, o->files[i], true);
    for (size_t i = 0; !st && o->settings && o->settings[i]; i++)
        st = tni_options_problem(options, tni_options_set(options, o->settings[i]));
    if (!st && c)
        st = tni_context_log_level(c);
    if (!st && o->environment)
        st = tni_options_read_environment(options);
    return st;
}

tn_status tni_context_options_read(const tni_context_options *o, tni_options *options)
{
    return options_read(o, options, NULL);
}

static tn_status options_open(tni_context *c, const tni_context_options *o)
{
    tn_status st = tni_options_create(&c->log, &c->options);

    if (!st)
        st = options_read(o, c->options, c);
    return st ? st : tni_context_log_level(c);
}

static void entry_release(void *grad_entry)
{
    tni_tape_entry_release(grad_entry);
}

static tn_status space_open(tni_context *c)
{
    tn_status st = tni_space_create(c->engine, c->devices, &c->space);

    if (!st)
        c->space->grad_release = entry_release;
    return st;
}

static tn_status engine_open(tni_context *c)
{
    tni_engine_options e = {0};

    e.type = tni_option_text(c->options, "engine.type");
    e.threads = (uint32_t)tni_option_int(c->options, "engine.threads");
    e.queue_max = (uint64_t)tni_option_int(c->options, "engine.queue_max");
    e.inline_ns = (uint64_t)tni_option_int(c->options, "engine.inline_ns");
    e.wait_warn_ms = 1000u * (uint64_t)tni_option_int(c->options, "engine.wait_warn_s");
    e.workers = (uint32_t)tni_option_int(c->options, "engine.workers");
    return tni_engine_create(&e, c->devices, &c->log, &c->engine);
}

/* ---- the profiler: one for the process; each context that wants it writes what it saw ------------- */

static tn_status profiler_start(tni_context *c)
{
    if (!tni_option_bool(c->options, "profiler.autostart"))
        return TN_OK;
    return tni_trace_start(&c->trace, (uint32_t)tni_option_int(c->options, "profiler.events_max"));
}

static void profiler_write(tni_context *c)
{
    const char *path = tni_option_text(c->options, "profiler.file");
    tni_str text;
    tn_err err;
    tn_status st;

    if (!c->trace.on)
        return;
    tni_trace_stop(&c->trace);
    if (!path[0])
        return;
    tni_error_get(&err);
    tni_str_init(&text, TN_TEXT_MAX);
    if ((st = tni_trace_json(&c->trace, &text)) || (st = tni_file_write_all(path, text.text, text.length)))
        tni_logf(&c->log, TN_LOG_WARNING, "the profile was not written (%s): %s", tni_status_name(st),
                 tni_error_message());
    tni_str_fini(&text);
    tni_error_set(&err);
}

static void context_destroy(tni_context *c)
{
    if (c->space)
        c->space->grad_release =
            NULL; /* what late arrays recorded needs all that goes now: it stays behind */
    tni_exec_destroy(c->exec);
    tni_selector_destroy(c->selector);
    tni_engine_destroy(c->engine);
    tni_space_destroy(c->space);
    tni_opset_destroy(c->ops);
    tni_device_set_destroy(c->devices);
    tni_registry_destroy(c->plugins);
    tni_options_destroy(c->options);
    tni_free(c);
}

tn_status tni_context_open(const tni_context_options *o, tni_context **out)
{
    tni_context *c = tni_zalloc(sizeof *c);
    tn_status st;

    if (!c)
        return TN_E_NOMEM;
    tni_ref_init(&c->refs);
    c->log = (tni_log){.fn = o->log, .arg = o->log_arg, .level = TN_LOG_WARNING, .as = &c->log};
    if ((st = options_open(c, o)) || (st = tni_registry_create(c->options, &c->log, &c->plugins)) ||
        (st = tni_device_set_create(c->options, c->plugins, &c->log, &c->devices)) || (st = engine_open(c)) ||
        (st = space_open(c)) || (st = tni_opset_create(c->plugins, &c->ops)) ||
        (st = tni_selector_create(c->ops, c->plugins, c->options, &c->log, &c->selector)) ||
        (st = tni_exec_create(c, &c->exec)) || (st = profiler_start(c))) {
        context_destroy(c);
        return st;
    }
    contexts_add(c);
    *out = c;
    return TN_OK;
}

tn_status tni_context_close(tni_context *c, void (*upper)(tni_context *c))
{
    tn_status st;

    if (!c)
        return TN_OK;
    contexts_remove(c);
    st = tni_engine_wait_all(c->engine);
    if (upper)
        upper(c);
    profiler_write(c);
    context_destroy(c);
    return st;
}

void tni_exec_stats_get(tni_context *c, tni_exec_stats *out)
{
    tni_exec *x = c->exec;
    uint64_t signatures;

    tni_mutex_lock(&x->lock);
    signatures = x->signature_count;
    tni_mutex_unlock(&x->lock);
    *out = (tni_exec_stats){.hits = atomic_load(&x->hits),
                            .misses = atomic_load(&x->misses),
                            .short_way = atomic_load(&x->short_way),
                            .signatures = signatures,
                            .programs = atomic_load(&x->programs),
                            .frames = atomic_load(&x->frames),
                            .by_node = atomic_load(&x->by_node)};
}
