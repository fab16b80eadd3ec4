/*
 * Contexts: everything one user opened, made in order and closed in reverse.
 */
#include "context/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- options: their sources, in order ------------------------------------------------------------ */

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

static tn_status profiler_start(tni_opened *o)
{
    const tni_options *options = o->context.options;

    if (!tni_option_bool(options, "profiler.autostart"))
        return TN_OK;
    return tni_trace_start(&o->trace, (uint32_t)tni_option_int(options, "profiler.events_max"));
}

/* Processes of a job that write into one folder write files of their own: profile.worker-1.json. */
static tn_status profile_path(const char *path, tni_str *out)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem =
        dot && dot > path && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    char name[24];

    tni_trace_own_name(name);
    (void)tni_str_add_bytes(out, path, stem);
    return tni_str_addf(out, "%s%s%s", *name ? "." : "", name, path + stem);
}

static void profiler_write(tni_opened *o)
{
    tni_context *c = &o->context;
    const char *path = tni_option_text(c->options, "profiler.file");
    tni_str text, file;
    tn_err err;
    tn_status st;

    if (!o->trace.on)
        return;
    tni_trace_stop(&o->trace);
    if (!path[0])
        return;
    tni_error_get(&err);
    tni_str_init(&text, TN_TEXT_MAX);
    tni_str_init(&file, TN_TEXT_MAX);
    if ((st = profile_path(path, &file)) || (st = tni_trace_json(&o->trace, &text)) ||
        (st = tni_file_write_all(file.text, text.text, text.length)))
        tni_logf(&c->log, TN_LOG_WARNING, "the profile was not written (%s): %s", tni_status_name(st),
                 tni_error_message());
    tni_str_fini(&file);
    tni_str_fini(&text);
    tni_error_set(&err);
}

static void opened_destroy(tni_opened *o)
{
    tni_context *c = &o->context;

    tni_exec_destroy(c->exec);
    tni_selector_destroy(c->selector);
    tni_engine_destroy(c->engine);
    tni_space_destroy(c->space);
    tni_functions_release(c->ops);
    tni_opset_destroy(c->ops);
    tni_device_set_destroy(c->devices);
    tni_registry_destroy(c->plugins);
    tni_options_destroy(c->options);
    tni_free(o);
}

tn_status tni_context_open(const tni_context_options *options, tni_context **out)
{
    tni_opened *o = tni_zalloc(sizeof *o);
    tni_context *c;
    tn_status st;

    if (!o)
        return TN_E_NOMEM;
    c = &o->context;
    tni_ref_init(&c->refs);
    c->log = (tni_log){.fn = options->log, .arg = options->log_arg, .level = TN_LOG_WARNING, .as = &c->log};
    tni_hold(); /* half of a context is of no use to a child; a plugin that forks meanwhile may */
    if ((st = options_open(c, options)) || (st = tni_registry_create(c->options, &c->log, &c->plugins)) ||
        (st = tni_device_set_create(c->options, c->plugins, &c->log, &c->devices)) || (st = engine_open(c)))
        goto cleanup;
    tni_opened_add(o);
    if ((st = tni_space_create(c->engine, c->devices, &c->space)) ||
        (st = tni_opset_create(c->plugins, &c->ops)) ||
        (st = tni_selector_create(c->ops, c->plugins, c->options, &c->log, &c->selector)) ||
        (st = tni_exec_create(c, &c->exec)) || (st = profiler_start(o)))
        tni_opened_remove(o);

cleanup:
    if (st)
        opened_destroy(o);
    else
        *out = c;
    tni_unhold();
    return st;
}

tn_status tni_context_close(tni_context *c, uint64_t timeout_ms)
{
    tni_opened *o = (tni_opened *)c; /* its first member */
    tn_status st;

    if (!c)
        return TN_OK;
    /* Also for what operations push, and hold until they are done: none of it is part of "all" once that is
     * waited for. What is waited for may fork. */
    if ((st = tni_engine_wait_idle(c->engine, timeout_ms)) && timeout_ms)
        return st;
    st = tni_engine_wait_all(c->engine);
    tni_hold();
    tni_opened_remove(o);
    tni_autograd_close(c);
    profiler_write(o);
    opened_destroy(o);
    tni_unhold();
    return st;
}
