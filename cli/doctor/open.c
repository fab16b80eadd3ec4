/*
 * Opening for `tenon doctor`. First, while this process has one thread, children try what may fail: one
 * starts the library with all that the configuration asks for, then each usable plugin is loaded by one of
 * its own, which tells through a pipe what came of it and which shared objects were mapped with it. Then the
 * context is opened, without loading anything if the start failed.
 */
#include "doctor/doctor.h"

#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_LIMIT_S 30.0
#define PROBES_MAX 256   /* plugins that are tried */
#define ANSWER_MAX 65536 /* bytes of a child's answer */
#define WARNINGS_MAX 200u

static const char *const nothing_at_start[] = {"plugins.require=", "device.default=cpu", NULL};

/* ---- opening ---- */

/* Of the tn_open() that this thread is in. The context lives on, and its log is called from any thread. */
static _Thread_local json_t *opening_warnings;

static void log_keep(void *arg, int32_t level, const char *text)
{
    (void)arg;
    if (opening_warnings && level <= TN_LOG_WARNING && json_array_size(opening_warnings) < WARNINGS_MAX)
        (void)json_array_append_new(opening_warnings, cli_json_text(text));
}

typedef struct opening {
    const char *settings[CLI_SETTINGS_MAX + 8], *files[2];
    tn_open_options options;
} opening;

/* What the command line asks for, then `extra` settings. */
static const tn_open_options *options_of(opening *o, const cli_args *args, const char *const *extra)
{
    size_t count = 0;

    memset(o, 0, sizeof *o);
    for (size_t i = 0; i < args->setting_count; i++)
        o->settings[count++] = args->settings[i];
    for (size_t i = 0; extra && extra[i]; i++)
        o->settings[count++] = extra[i];
    o->files[0] = args->value[OPT_CONFIG];
    o->options.struct_size = TN_SIZE(tn_open_options);
    o->options.flags = TN_OPEN_LOCAL;
    o->options.files = o->files;
    o->options.settings = o->settings;
    return &o->options;
}

static tn_status open_with(const cli_args *args, const char *const *extra, json_t *warnings, tn_ctx **out)
{
    opening o;
    tn_status st;

    (void)options_of(&o, args, extra);
    o.options.log = log_keep;
    opening_warnings = warnings;
    st = tn_open(&o.options, out);
    opening_warnings = NULL;
    return st;
}

/* ---- in the child ---- */

static int library_add(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    if (slash)
        (void)json_array_append_new(arg, cli_json_text(slash + 1));
    return 0;
}

/* Those of `after` that are not in `before`. */
static json_t *libraries_new(const json_t *before, const json_t *after)
{
    json_t *list = json_array(), *item, *old;
    size_t i, k;

    json_array_foreach(after, i, item)
    {
        bool known = false;

        json_array_foreach(before, k, old) known |= json_equal(item, old);
        if (!known)
            (void)json_array_append(list, item);
    }
    return list;
}

static json_t *answer(const char *name, tn_status st, const json_t *before)
{
    json_t *after = json_array(), *o;

    (void)dl_iterate_phdr(library_add, after);
    o = json_pack("{s:o, s:I, s:o, s:o}", "name", cli_json_text(name), "number",
                  (json_int_t)(st ? tn_error_number() : 0), "message",
                  cli_json_text(st ? tn_error_text() : ""), "libraries", libraries_new(before, after));
    json_decref(after);
    return o;
}

/* Why the first device of `provides` ("device:cuda kernels@cuda") does not start, or the one that a transport
 * needs is not there; "": it does, or none is. */
static const char *device_try(tn_ctx *ctx, const char *provides)
{
    const char *at = strstr(provides, "device:");
    const tn_device *device;
    char name[64];

    if (strstr(provides, "transport:rdma"))
        return doctor_no_rdma();
    if (strstr(provides, "collective:nccl"))
        return doctor_no_nccl();
    if (!at || (at != provides && at[-1] != ' '))
        return "";
    at += strlen("device:");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
    return tn_device_get(ctx, name, &device) ? tn_error_text() : "";
}

/* Which plugins may be loaded, as a bit for each index. This loads nothing, so it starts no thread. */
static void usable_find(const cli_args *args, uint64_t usable[PROBES_MAX / 64])
{
    size_t count = 0;
    tn_ctx *ctx = NULL;

    if (!open_with(args, nothing_at_start, NULL, &ctx) && !tn_plugin_count(ctx, &count))
        for (size_t i = 0; i < count && i < PROBES_MAX; i++) {
            tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

            if (!tn_plugin_at(ctx, i, &p) && p.state == TN_PLUGIN_READY)
                usable[i / 64] |= (uint64_t)1 << i % 64;
        }
    if (ctx)
        (void)tn_close(ctx);
}

/* Loads plugin number `index`; NULL: it is not there any more. */
static json_t *plugin_try(const cli_args *args, size_t index, const json_t *before, int announce)
{
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_ctx *ctx = NULL;
    tn_status st;
    json_t *o;

    if (open_with(args, nothing_at_start, NULL, &ctx) || tn_plugin_at(ctx, index, &p) ||
        p.state != TN_PLUGIN_READY)
        return NULL;
    /* Its name first: the rest may never come. */
    if (write(announce, p.name, strlen(p.name)) < 0 || write(announce, "\n", 1) < 0)
        return NULL;
    st = tn_plugin_load(ctx, p.name);
    o = answer(p.name, st, before);
    if (!st)
        (void)json_object_set_new(o, "device", cli_json_text(device_try(ctx, p.provides)));
    return o;
}

static void problem_keep(void *arg, const tn_problem *p)
{
    (void)json_array_append_new(arg, json_pack("{s:i, s:I, s:o}", "level", (int)p->level, "number",
                                               (json_int_t)p->number, "text", cli_json_text(p->text)));
}

/* Everything that is wrong with the configuration, then whether the library starts with it. */
static json_t *start_try(const cli_args *args, const json_t *before)
{
    json_t *problems = json_array(), *o;
    tn_ctx *ctx = NULL;
    opening how;

    (void)tn_config_check(options_of(&how, args, NULL), problem_keep, problems);
    o = answer("", open_with(args, NULL, NULL, &ctx), before);
    (void)json_object_set_new(o, "problems", problems);
    return o;
}

/* What a child does: plugin `index`, or the start with everything (-1). */
static void child(const cli_args *args, long index, int to)
{
    json_t *before = json_array(), *o;
    char *text;

    (void)!freopen("/dev/null", "w", stdout); /* what a plugin prints is none of our results */
    (void)!freopen("/dev/null", "w", stderr);
    (void)dl_iterate_phdr(library_add, before);
    if (index < 0) {
        if (write(to, "\n", 1) < 0)
            return;
        o = start_try(args, before);
    } else {
        o = plugin_try(args, (size_t)index, before, to);
    }
    text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (text)
        (void)!write(to, text, strlen(text));
}

/* ---- in the parent ---- */

/* All that comes, until the end or the limit; false: the limit. */
static bool answer_read(int from, char *text, size_t bytes)
{
    double until = cli_now() + PROBE_LIMIT_S;
    struct pollfd fd = {.fd = from, .events = POLLIN};
    size_t used = 0;
    ssize_t n = 1;

    while (n > 0 && used + 1 < bytes) {
        double left = until - cli_now();

        if (left <= 0 || poll(&fd, 1, (int)(left * 1000) + 1) == 0)
            break;
        n = read(from, text + used, bytes - used - 1);
        used += n > 0 ? (size_t)n : 0;
    }
    text[used] = '\0';
    return n == 0;
}

static char *death_text(bool in_time, int status)
{
    if (!in_time)
        return cli_format("it has not loaded after %.0f s", PROBE_LIMIT_S);
    if (WIFSIGNALED(status))
        return cli_format("loading it ends the process with signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    return cli_format("loading it ends the process with exit code %d", WEXITSTATUS(status));
}

/* Runs one child. False: there is no plugin of this index that may be loaded, or no child could be made. */
static bool probe(const cli_args *args, long index, doctor_probe *out)
{
    char text[ANSWER_MAX], *body;
    const char *device;
    bool in_time;
    int ends[2], status = 0;
    pid_t pid;
    json_t *o;

    if (pipe(ends))
        return false;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child(args, index, ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    in_time = pid > 0 && answer_read(ends[0], text, sizeof text);
    (void)close(ends[0]);
    if (pid < 0)
        return false;
    if (!in_time)
        (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    if (!*text)
        return false;
    body = text + strcspn(text, "\n{");
    o = json_loads(*body == '\n' ? body + 1 : body, 0, NULL);
    *body = '\0';
    *out = (doctor_probe){.name = cli_format("%s", text)};
    if (o) {
        out->number = (uint32_t)json_integer_value(json_object_get(o, "number"));
        out->message = cli_format("%s", json_string_value(json_object_get(o, "message")));
        if ((device = json_string_value(json_object_get(o, "device"))))
            out->device = cli_format("%s", device);
        out->libraries = json_incref(json_object_get(o, "libraries"));
        out->problems = json_incref(json_object_get(o, "problems"));
        json_decref(o);
    } else {
        out->number = TN_E_INTERNAL;
        out->message = death_text(in_time, status);
    }
    return true;
}

static void probe_fini(doctor_probe *p)
{
    free(p->name);
    free(p->message);
    free(p->device);
    json_decref(p->libraries);
    json_decref(p->problems);
}

char *doctor_no_device(const cli_args *args, size_t index)
{
    doctor_probe p;
    char *why = NULL;

    if (!probe(args, (long)index, &p))
        return NULL;
    if (p.device && *p.device) {
        why = p.device;
        p.device = NULL;
    }
    probe_fini(&p);
    return why;
}

void doctor_open(doctor *d)
{
    uint64_t usable[PROBES_MAX / 64] = {0};
    doctor_probe p;

    if (probe(d->args, -1, &p)) {
        d->problems = json_incref(p.problems);
        if (p.number) {
            d->start_error = p.message;
            d->start_number = p.number;
            p.message = NULL;
        }
        probe_fini(&p);
    }
    d->probes = calloc(PROBES_MAX, sizeof *d->probes);
    usable_find(d->args, usable);
    for (long i = 0; d->probes && i < PROBES_MAX; i++)
        if (usable[i / 64] >> i % 64 & 1 && probe(d->args, i, &p))
            d->probes[d->probe_count++] = p;
    if (open_with(d->args, d->start_error ? nothing_at_start : NULL, d->warnings, &d->ctx))
        d->ctx_error = cli_format("%s", tn_error_text());
}

/* "plugins.load=a,b": those that have loaded. */
static char *good_plugins(const doctor *d)
{
    char *list = cli_format("plugins.load="), *more;

    for (size_t i = 0; list && i < d->probe_count; i++) {
        if (d->probes[i].number)
            continue;
        more = cli_format("%s%s%s", list, cli_ends_with(list, "=") ? "" : ",", d->probes[i].name);
        free(list);
        list = more;
    }
    return list;
}

bool doctor_reader_open(doctor *d)
{
    char *load = good_plugins(d);
    const char *const settings[] = {"plugins.require=", "device.default=cpu", load, NULL};
    const tn_open_options bare = {.struct_size = TN_SIZE(tn_open_options),
                                  .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                                  .settings = settings};

    if (load && open_with(d->args, settings, NULL, &d->reader) && tn_open(&bare, &d->reader))
        doctor_say(d, DOCTOR_BAD, "correct what is said above, then ask again", "no run was looked at: %s",
                   tn_error_text());
    free(load);
    return d->reader != NULL;
}

void doctor_close(doctor *d)
{
    for (size_t i = 0; i < d->probe_count; i++)
        probe_fini(&d->probes[i]);
    free(d->probes);
    free(d->ctx_error);
    free(d->start_error);
    json_decref(d->warnings);
    json_decref(d->problems);
    if (d->reader)
        (void)tn_close(d->reader);
    if (d->ctx)
        (void)tn_close(d->ctx);
}
