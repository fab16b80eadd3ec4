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

#define FORK_LOOK_NS 50000u         /* who forks looks so often whether it may */
#define FORK_SLICE_NS 5000000u      /* at one engine */
#define FORK_GAP_NS 100000000u      /* between two tries, at most */
#define FORK_PATIENCE_NS 125000000u /* of the first try; each further one has twice as much */
#define FORK_DRAIN_NS 32000000000u  /* of the last one, by a thread that can drain the engines */
#define FORK_INSIDE_NS 4000000000u  /* by one inside a callback */

static tni_mutex contexts_lock = TNI_MUTEX_INIT;
static tni_context *contexts; /* newest first */
static tni_context *oldest;   /* from prepare to parent or child, as the next two */
static bool fork_drained, fork_still;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- fork ---------------------------------------------------------------------------------------- */

/* Adds up what the engines have done; a context is not closed while one of them is waited for. */
static bool engines_drain(uint64_t *done)
{
    bool drained = true;

    *done = 0;
    tni_mutex_lock(&contexts_lock);
    for (tni_context *c = contexts; c; c = c->next) {
        c->pinned = true;
        tni_mutex_unlock(&contexts_lock);
        drained &= tni_engine_fork_drain(c->engine, tni_clock_ns() + FORK_SLICE_NS, done);
        tni_mutex_lock(&contexts_lock);
        c->pinned = false;
    }
    tni_mutex_unlock(&contexts_lock);
    return drained;
}

static void engines_unlock(tni_context *from)
{
    for (tni_context *c = from; c; c = c->before)
        tni_engine_fork_unlock(c->engine);
}

/* The door is closed to all. Engines are locked from the newest on and given back from the oldest on, so that
 * no lock is taken below one that it stands above. True: it may be forked, and the list's lock is held. */
static bool all_lock(bool drain) TN_NO_THREAD_CHECK
{
    bool locked = true;

    tni_mutex_lock(&contexts_lock);
    oldest = NULL;
    for (tni_context *c = contexts; c && drain && (locked = tni_engine_fork_lock(c->engine)); c = c->next)
        oldest = c;
    if (locked && tni_fork_alone(drain))
        return true;
    engines_unlock(oldest);
    tni_mutex_unlock(&contexts_lock);
    return false;
}

/* One try. False: something holds on for longer than `patience` without anything having been done meanwhile,
 * or *urgent: another thread is to fork first, since it sits in what we drain. */
static bool fork_try(uint64_t patience, bool drain, bool *urgent)
{
    const unsigned level = drain ? 1 : 2;
    uint64_t until = tni_clock_ns() + patience, before = 0, done = 0;

    tni_fork_close(level);
    while (!(*urgent = drain && tni_fork_urgent()) && tni_clock_ns() < until) {
        const bool drained = !drain || engines_drain(&done);

        until = done == before ? until : tni_clock_ns() + patience;
        before = done;
        if (drained && tni_fork_alone(drain)) {
            tni_fork_close(2);
            if (all_lock(drain))
                return true;
            tni_fork_close(level);
        }
        tni_sleep_ns(FORK_LOOK_NS);
    }
    return false;
}

/* Between tries all others go on: what a thread holds may hang on one that waits at the door. A wait that
 * nothing ends has its own end: then the child is left with what it finds, and its engines are dead. */
static void fork_prepare(void) TN_NO_THREAD_CHECK
{
    const bool drain = !tni_engine_inside();
    const uint64_t most = drain ? FORK_DRAIN_NS : FORK_INSIDE_NS;
    uint64_t patience = FORK_PATIENCE_NS;
    bool still = false, urgent;

    while (tni_fork_begin(!drain), patience <= most && !(still = fork_try(patience, drain, &urgent))) {
        tni_fork_pause();
        tni_sleep_ns(patience / 4 < FORK_GAP_NS ? patience / 4 : FORK_GAP_NS);
        patience = urgent ? patience : 2 * patience;
    }
    fork_drained = still && drain;
    fork_still = still;
    if (!still) {
        tni_fork_close(2);
        tni_mutex_lock(&contexts_lock);
    }
    for (tni_context *c = contexts; c; c = c->next) {
        if (still)
            tni_registry_fork(c->plugins, TN_FORK_PREPARE);
        oldest = c;
    }
}

static void fork_after(uint32_t phase) TN_NO_THREAD_CHECK
{
    for (tni_context *c = oldest; c; c = c->before) {
        if (phase == TN_FORK_CHILD)
            tni_engine_forked(c->engine, fork_drained);
        if (phase == TN_FORK_CHILD && c->exec)
            c->exec->threads = 1;
        if (fork_drained)
            tni_engine_fork_unlock(c->engine);
    }
    for (tni_context *c = oldest; c && fork_still; c = c->before)
        tni_registry_fork(c->plugins, phase);
    oldest = NULL;
    tni_mutex_unlock(&contexts_lock);
    tni_fork_end(phase == TN_FORK_CHILD);
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
    while (c->pinned) {
        tni_mutex_unlock(&contexts_lock);
        tni_sleep_ns(FORK_LOOK_NS);
        tni_mutex_lock(&contexts_lock);
    }
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
    tni_hold(); /* half of a context is of no use to a child; a plugin that forks meanwhile may */
    if ((st = options_open(c, o)) || (st = tni_registry_create(c->options, &c->log, &c->plugins)) ||
        (st = tni_device_set_create(c->options, c->plugins, &c->log, &c->devices)) || (st = engine_open(c)))
        goto cleanup;
    contexts_add(c);
    if ((st = space_open(c)) || (st = tni_opset_create(c->plugins, &c->ops)) ||
        (st = tni_selector_create(c->ops, c->plugins, c->options, &c->log, &c->selector)) ||
        (st = tni_exec_create(c, &c->exec)) || (st = profiler_start(c)))
        contexts_remove(c);

cleanup:
    if (st)
        context_destroy(c);
    else
        *out = c;
    tni_unhold();
    return st;
}

tn_status tni_context_close(tni_context *c, void (*upper)(tni_context *c))
{
    tn_status st;

    if (!c)
        return TN_OK;
    st = tni_engine_wait_all(c->engine); /* what is waited for may fork */
    tni_hold();
    contexts_remove(c);
    if (upper)
        upper(c);
    profiler_write(c);
    context_destroy(c);
    tni_unhold();
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
