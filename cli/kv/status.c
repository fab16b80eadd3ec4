/*
 * tenon kv status, tenon kv doctor: how a running job is, by what its processes say (tn_kv_report): numbers
 * as a table, as JSON or for Prometheus, and in sentences who waits for whom.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kv/pace.h"
#include "plugins/plugins.h"

#define LONG_MS 10000 /* a wait that is told as a problem */

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));

    return text ? text : "";
}

static json_int_t number_of(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static bool is(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

/* What the job says; NULL: it has been said why not. */
static json_t *job_ask(tn_app *app)
{
    char *text = NULL;
    json_t *job = NULL;

    if (tn_app_ok(app) && !tn_app_check(app, tn_kv_report(tn_app_ctx(app), 0, &text)))
        job = json_loads(text, 0, NULL);
    if (text && !job)
        cli_error("out of memory");
    tn_free(text);
    return job;
}

/* ---- a table ---- */

static const struct {
    const char *head, *number; /* of a node's numbers; NULL: a member of the node itself */
} columns[] = {{"node", NULL},
               {"state", NULL},
               {"heard s", NULL},
               {"round", "round_max"},
               {"sent B", "sent_bytes"},
               {"received B", "received_bytes"},
               {"repeats", "repeats_sent"},
               {"refused", "messages_refused"},
               {"waits", NULL}};
#define COLUMNS (sizeof columns / sizeof *columns)

static bool row_add(cli_column_table *t, const json_t *node)
{
    const json_t *numbers = json_object_get(node, "numbers");
    char text[COLUMNS][32], heard[32];
    const char *cells[COLUMNS];

    (void)snprintf(heard, sizeof heard, "%.1f", (double)number_of(node, "heard_ms") / 1e3);
    for (size_t i = 0; i < COLUMNS; i++) {
        cells[i] = text[i];
        if (columns[i].number && !numbers)
            (void)snprintf(text[i], sizeof text[i], "-");
        else
            (void)snprintf(text[i], sizeof text[i], "%lld",
                           columns[i].number ? (long long)number_of(numbers, columns[i].number)
                                             : (long long)number_of(node, "waiting"));
    }
    cells[0] = text_of(node, "node");
    cells[1] = is(node, "answered") ? text_of(node, "state") : "silent";
    cells[2] = heard;
    return cli_table_row(t, cells);
}

static void table_say(const json_t *job)
{
    const json_t *nodes = json_object_get(job, "nodes"), *node;
    cli_column_table t = {.columns = COLUMNS};
    const char *heads[COLUMNS];
    bool ok;
    size_t i;

    cli_say(stdout, "job %s: view %lld, %s, %lld workers, %lld servers, %s\n", text_of(job, "job"),
            (long long)number_of(job, "view"), is(job, "async") ? "dist_async" : "dist_sync",
            (long long)number_of(job, "workers"), (long long)number_of(job, "servers"),
            is(job, "failed")       ? "failed"
            : is(job, "done")       ? "done"
            : is(job, "recovering") ? "a server comes back"
            : is(job, "started")    ? "running"
                                    : "waits for processes");
    for (i = 0; i < COLUMNS; i++)
        heads[i] = columns[i].head;
    ok = cli_table_row(&t, heads);
    json_array_foreach(nodes, i, node) ok = ok && row_add(&t, node);
    if (ok)
        cli_table_print(&t);
    else
        cli_error("out of memory");
    cli_table_free(&t);
    cli_kv_pace_say(job);
}

/* ---- Prometheus ---- */

static void head_say(const char *name, const char *unit, const char *type, const char *help)
{
    cli_say(stdout, "# HELP tenon_kv_%s%s %s\n", name, unit, help);
    cli_say(stdout, "# TYPE tenon_kv_%s%s %s\n", name, unit, type);
}

/* Of times, and of staleness, which has no unit. */
static void times_say(const char *name, const char *unit, const json_t *node)
{
    static const char *const quantiles[][2] = {{"p50", "0.5"}, {"p90", "0.9"}, {"p99", "0.99"}};
    const json_t *t =
        *unit ? json_object_get(json_object_get(node, "times_us"), name) : json_object_get(node, name);
    const double scale = *unit ? 1e6 : 1;
    const char *of = text_of(node, "node");

    if (!t)
        return;
    for (size_t i = 0; i < 3; i++)
        cli_say(stdout, "tenon_kv_%s%s{node=\"%s\",quantile=\"%s\"} %.6f\n", name, unit, of, quantiles[i][1],
                (double)number_of(t, quantiles[i][0]) / scale);
    cli_say(stdout, "tenon_kv_%s%s_sum{node=\"%s\"} %.6f\n", name, unit, of,
            (double)number_of(t, "sum") / scale);
    cli_say(stdout, "tenon_kv_%s%s_count{node=\"%s\"} %lld\n", name, unit, of,
            (long long)number_of(t, "count"));
}

static void prometheus_say(json_t *job)
{
    const json_t *nodes = json_object_get(job, "nodes"), *node;
    const char *name;
    json_t *about;
    size_t i;

    head_say("up", "", "gauge", "1: the process answers");
    json_array_foreach(nodes, i, node)
        cli_say(stdout, "tenon_kv_up{node=\"%s\"} %d\n", text_of(node, "node"), is(node, "answered"));
    json_object_foreach(json_object_get(job, "about"), name, about)
    {
        const char *type = json_string_value(json_array_get(about, 0));
        const bool times = type && !strcmp(type, "summary");
        const char *unit = times                              ? strcmp(name, "staleness") ? "_seconds" : ""
                           : type && !strcmp(type, "counter") ? "_total"
                                                              : "";

        head_say(name, unit, type, json_string_value(json_array_get(about, 1)));
        json_array_foreach(nodes, i, node)
        {
            if (times)
                times_say(name, unit, node);
            else if (is(node, "answered"))
                cli_say(stdout, "tenon_kv_%s%s{node=\"%s\"} %lld\n", name, unit, text_of(node, "node"),
                        (long long)number_of(json_object_get(node, "numbers"), name));
        }
    }
}

#define INTERVAL_MAX 86400

/* 0: none is asked for; below: said why it is none. */
static double interval_of(const cli_args *args)
{
    const char *text = args->value[OPT_INTERVAL];
    double seconds = 0;
    char rest;

    if (!text)
        return 0;
    if (sscanf(text, "%lf%c", &seconds, &rest) != 1 || !(seconds > 0) || seconds > INTERVAL_MAX) {
        cli_error("--interval %s: seconds up to %d are asked", text, INTERVAL_MAX);
        return -1;
    }
    return seconds;
}

/* What the job says, with rates if an interval is asked for. */
static json_t *job_watch(tn_app *app, double interval)
{
    const double begun = cli_now();
    const struct timespec pause = {(time_t)interval, (long)((interval - (double)(time_t)interval) * 1e9)};
    json_t *before = job_ask(app), *job;

    if (!before || interval == 0)
        return before;
    (void)nanosleep(&pause, NULL);
    if ((job = job_ask(app)))
        cli_kv_rates_set(job, before, cli_now() - begun);
    json_decref(before);
    return job;
}

int cmd_kv_status(const cli_args *args)
{
    const double interval = interval_of(args);
    tn_app *app;
    json_t *job;

    if (interval < 0)
        return CLI_EXIT_USAGE;
    app = cli_app_open(args, NULL);
    job = job_watch(app, interval);
    if (job && args->value[OPT_PROMETHEUS])
        prometheus_say(job);
    else if (job && args->value[OPT_JSON])
        cli_json_line(json_incref(job));
    else if (job)
        table_say(job);
    if (job && interval > 0 && !args->value[OPT_PROMETHEUS] && !args->value[OPT_JSON])
        cli_kv_rates_say(job);
    json_decref(job);
    return tn_app_close(app);
}

/* ---- sentences ---- */

typedef struct findings {
    const json_t *nodes;
    json_t *lines; /* NULL: to stdout */
    size_t count, problems;
    bool workers_wait; /* and say for what, so servers need not */
} findings;

static void tell(findings *f, bool problem, const char *text)
{
    if (text && f->lines)
        (void)json_array_append_new(f->lines, json_pack("{s:s,s:b}", "text", text, "problem", problem));
    else if (text)
        cli_say(stdout, "%s %s\n", problem ? "!" : "-", text);
    f->count++;
    f->problems += problem;
}

static const json_t *node_find(const findings *f, const char *name)
{
    const json_t *node;
    size_t i;

    json_array_foreach(f->nodes, i, node) if (!strcmp(text_of(node, "node"), name)) return node;
    return NULL;
}

/* "worker 0 (last heard 41 s ago)": by the scheduler. */
static char *heard(const findings *f, const char *name)
{
    const json_t *node = node_find(f, name);

    return cli_format("%s (last heard %.0f s ago)", name, (double)number_of(node, "heard_ms") / 1e3);
}

static bool alike(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"for", "state", "who"};

    for (size_t i = 0; i < 3; i++)
        if (strcmp(text_of(a, names[i]), text_of(b, names[i])) != 0)
            return false;
    return true;
}

/* True: a wait before it says the same; `more`: so many behind it do. */
static bool told(const json_t *waits, size_t at, size_t *more)
{
    const json_t *w = json_array_get(waits, at);

    *more = 0;
    for (size_t i = 0; i < at; i++)
        if (alike(json_array_get(waits, i), w))
            return true;
    for (size_t i = at + 1; i < json_array_size(waits); i++)
        *more += alike(json_array_get(waits, i), w);
    return false;
}

/* What is not there, of a wait that the answering node holds. */
static const char *lack_of(const char *kind)
{
    static const char *const lacks[][2] = {{"barrier", "has not come to it"},
                                           {"end", "has not ended"},
                                           {"snapshot", "has one under way"},
                                           {"", "has not pushed it"}};
    size_t i = 0;

    while (*lacks[i][0] && strcmp(kind, lacks[i][0]) != 0)
        i++;
    return lacks[i][1];
}

static char *object_of(const json_t *w)
{
    const char *kind = text_of(w, "for");

    if (!strcmp(kind, "init") || strstr(kind, "pu") == kind || !strcmp(kind, "break"))
        return cli_format("key %lld part %lld round %lld at %s", (long long)number_of(w, "key"),
                          (long long)number_of(w, "part"), (long long)number_of(w, "round"),
                          text_of(w, "at"));
    return cli_format("its %s at %s", kind, text_of(w, "at"));
}

static char *reason_of(const findings *f, const json_t *w)
{
    const char *state = text_of(w, "state");
    const json_int_t missing = number_of(w, "missing");
    char *who = missing ? heard(f, text_of(w, "who")) : NULL, *text;

    if (!strcmp(state, "behind"))
        text = cli_format("requests before it are not complete");
    else if (!strcmp(state, "credit"))
        text = cli_format("it has no credit there");
    else if (missing > 1)
        text = cli_format("%s %s, and %lld more", who ? who : "?", lack_of(text_of(w, "for")),
                          (long long)missing - 1);
    else if (missing)
        text = cli_format("%s %s", who ? who : "?", lack_of(text_of(w, "for")));
    else
        text = cli_format("no answer, %s was heard %.1f s ago", text_of(w, "at"),
                          (double)number_of(w, "heard_ms") / 1e3);
    free(who);
    return text;
}

static void waits_tell(findings *f, const json_t *node)
{
    const json_t *waits = json_object_get(node, "waits"), *w;
    size_t i, more;

    json_array_foreach(waits, i, w)
    {
        char *object, *reason, *text, *rest;

        if (told(waits, i, &more))
            continue;
        object = object_of(w);
        reason = reason_of(f, w);
        rest = more ? cli_format("; %zu more of these", more) : cli_format("%s", "");
        text = object && reason && rest
                   ? cli_format("%s waits for %s for %.1f s: %s%s", text_of(node, "node"), object,
                                (double)number_of(w, "age_ms") / 1e3, reason, rest)
                   : NULL;
        tell(f, number_of(w, "age_ms") >= LONG_MS, text);
        free(text);
        free(rest);
        free(reason);
        free(object);
    }
}

/* How many nodes wait for this one, and whether it waits itself. */
static void culprit_tell(findings *f, const json_t *node)
{
    const char *name = text_of(node, "node");
    const json_t *other, *w;
    size_t i, k, count = 0;
    char *text;

    json_array_foreach(f->nodes, i, other)
    {
        bool waits = false;

        json_array_foreach(json_object_get(other, "waits"), k, w) waits =
            waits || (!strncmp(text_of(other, "node"), "worker", 6) && !strcmp(text_of(w, "who"), name));
        count += waits;
    }
    if (!count || !is(node, "answered") || number_of(node, "waiting"))
        return;
    text = cli_format("%s is waited for by %zu, and waits for nobody: its program computes, or hangs", name,
                      count);
    tell(f, false, text);
    free(text);
}

static void node_tell(findings *f, const json_t *node)
{
    const char *state = text_of(node, "state"), *name = text_of(node, "node");
    char *text = NULL;

    if (!strcmp(state, "missing"))
        text = cli_format("%s has not come", name);
    else if (!strcmp(state, "dead") || !strcmp(state, "gone"))
        text = cli_format("%s is %s, last heard %.0f s ago", name, state,
                          (double)number_of(node, "heard_ms") / 1e3);
    else if (!is(node, "answered") && strcmp(state, "left") != 0)
        text = cli_format("%s does not answer, last heard %.0f s ago", name,
                          (double)number_of(node, "heard_ms") / 1e3);
    if (text)
        tell(f, true, text);
    free(text);
    if (strncmp(name, "server", 6) != 0 || !f->workers_wait)
        waits_tell(f, node);
}

int cmd_kv_doctor(const cli_args *args)
{
    tn_app *app = cli_app_open(args, NULL);
    json_t *job = job_ask(app);
    findings f = {.nodes = json_object_get(job, "nodes"),
                  .lines = args->value[OPT_JSON] ? json_array() : NULL};
    const json_t *node;
    size_t i;
    int code;

    if (is(job, "failed")) {
        char *text = cli_format("the job has failed: %s was lost", text_of(job, "failed_by"));

        tell(&f, true, text);
        free(text);
    }
    json_array_foreach(f.nodes, i, node) f.workers_wait =
        f.workers_wait || (!strncmp(text_of(node, "node"), "worker", 6) && number_of(node, "waiting"));
    json_array_foreach(f.nodes, i, node) node_tell(&f, node);
    json_array_foreach(f.nodes, i, node) culprit_tell(&f, node);
    if (job && f.lines)
        cli_json_line(json_pack("{s:O,s:I}", "findings", f.lines, "problems", (json_int_t)f.problems));
    else if (job && !f.count)
        cli_say(stdout, "nobody waits\n");
    json_decref(f.lines);
    json_decref(job);
    code = tn_app_close(app);
    return code ? code : f.problems ? CLI_EXIT_FAILED : 0;
}
