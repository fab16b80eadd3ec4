/*
 * tenon kv trace: the profiles of a job's processes as one trace of Chrome's format.
 *
 * Each file says whose it is, and what the scheduler's clock shows more than that of its machine, measured
 * when the process registered, give or take half of the way there and back. Of the processes of one machine,
 * which have one clock, the closest measure counts for all. Numbers of processes: workers by rank, then
 * servers, the scheduler last; a further one of the same name (it was started again) is behind all of these.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define RANKS_MAX 16384
#define AGAIN (4 * RANKS_MAX)
#define JOB_DIGITS 16u

typedef struct profile {
    const char *path;
    json_t *root;
    const json_t *events;
    const char *node, *clock, *job;
    json_int_t ahead_ns, error_ns, shift_ns, pid;
} profile;

static int no_profile(const char *path, const char *why)
{
    cli_error("%s: %s", path, why);
    return CLI_EXIT_DATA;
}

/* "worker 2" → 2, "server 0" → 16384, "scheduler" → 32768; below 0: no name of a node. */
static json_int_t pid_of(const char *node)
{
    static const char *const roles[] = {"worker ", "server "};
    char *end;

    if (!strcmp(node, "scheduler"))
        return 2 * RANKS_MAX;
    for (json_int_t i = 0; i < 2; i++) {
        const char *digits = node + strlen(roles[i]);
        long rank;

        if (strncmp(node, roles[i], strlen(roles[i])) != 0 || *digits < '0' || *digits > '9')
            continue;
        rank = strtol(digits, &end, 10);
        if (!*end && rank < RANKS_MAX)
            return i * RANKS_MAX + rank;
    }
    return -1;
}

static int profile_read(const char *path, profile *out)
{
    json_error_t error = {.text = ""};
    FILE *file = fopen(path, "re");
    const json_t *facts;

    *out = (profile){.path = path};
    if (!file) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;

        cli_error("%s: %s", path, strerror(errno));
        return absent ? CLI_EXIT_USAGE : CLI_EXIT_FAILED;
    }
    out->root = json_loadf(file, 0, &error);
    (void)fclose(file);
    if (!out->root)
        return no_profile(path, *error.text ? error.text : "cannot be read");
    facts = json_object_get(out->root, "otherData");
    out->events = json_object_get(out->root, "traceEvents");
    out->node = json_string_value(json_object_get(facts, "node"));
    out->job = json_string_value(json_object_get(facts, "job"));
    out->clock = json_string_value(json_object_get(facts, "clock"));
    out->ahead_ns = json_integer_value(json_object_get(facts, "clock_ahead_ns"));
    out->error_ns = json_integer_value(json_object_get(facts, "clock_error_ns"));
    if (!json_is_array(out->events) || !out->node || !out->job || !out->clock ||
        strlen(out->job) != JOB_DIGITS || strspn(out->job, "0123456789abcdef") != JOB_DIGITS ||
        (out->pid = pid_of(out->node)) < 0)
        return no_profile(path, "no profile of a process of a job");
    return 0;
}

/* Of all processes whose clock is that of `p`. */
static const profile *closest(const profile *all, size_t count, const profile *p)
{
    const profile *best = NULL;

    for (size_t i = 0; i < count && *p->clock; i++)
        if (!strcmp(all[i].clock, p->clock) && (!best || all[i].error_ns < best->error_ns))
            best = &all[i];
    return best ? best : p;
}

/* Sets what depends on the others: the clock, and a number that none of those before it has. */
static int profiles_join(profile *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].job, all[0].job) != 0)
            return no_profile(all[i].path, "of another job than the first file");
        all[i].shift_ns = closest(all, count, &all[i])->ahead_ns;
        for (size_t k = 0; k < i; k++)
            if (all[k].pid == all[i].pid) {
                all[i].pid += AGAIN;
                k = SIZE_MAX; /* from the first on */
            }
    }
    return 0;
}

static bool event_write(FILE *out, const json_t *event, const profile *p, bool first)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)event);
    const double ts = json_number_value(json_object_get(event, "ts"));
    bool ok = copy != NULL;

    ok = ok && !json_object_set_new(copy, "pid", json_integer(p->pid));
    if (ok && json_object_get(event, "ts"))
        ok = !json_object_set_new(copy, "ts", json_real(ts + (double)p->shift_ns / 1e3));
    ok = ok && fputs(first ? "" : ",\n", out) >= 0 &&
         !json_dumpf(copy, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(copy);
    return ok;
}

static bool profile_write(FILE *out, const profile *p, bool first)
{
    json_t *name = json_pack("{s:s, s:s, s:I, s:{s:s}}", "name", "process_name", "ph", "M", "pid", p->pid,
                             "args", "name", p->node);
    json_t *place = json_pack("{s:s, s:s, s:I, s:{s:I}}", "name", "process_sort_index", "ph", "M", "pid",
                              p->pid, "args", "sort_index", p->pid);
    const profile as_is = {.pid = p->pid};
    const json_t *event;
    bool ok =
        name && place && event_write(out, name, &as_is, first) && event_write(out, place, &as_is, false);
    size_t i;

    json_array_foreach(p->events, i, event) ok =
        ok && (!json_is_object(event) || event_write(out, event, p, false));
    json_decref(name);
    json_decref(place);
    return ok;
}

static int trace_write(const profile *all, size_t count, const char *path)
{
    FILE *out = !path ? stdout : cli_folders_above(path) ? fopen(path, "we") : NULL;
    bool ok = out != NULL;

    if (ok)
        ok = fprintf(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"job\":\"%s\"},\"traceEvents\":[\n",
                     all[0].job) > 0;
    for (size_t i = 0; i < count && ok; i++)
        ok = profile_write(out, &all[i], i == 0);
    ok = ok && fputs("\n]}\n", out) >= 0 && !fflush(out);
    if (out && path)
        ok = !fclose(out) && ok;
    if (!ok && path)
        cli_error("%s: %s", path, strerror(errno));
    return ok ? 0 : CLI_EXIT_FAILED;
}

int cmd_kv_trace(const cli_args *args)
{
    profile *all = calloc(args->word_count, sizeof *all);
    int code = all ? 0 : CLI_EXIT_MEMORY;

    for (size_t i = 0; i < args->word_count && !code; i++)
        code = profile_read(args->words[i], &all[i]);
    if (!code && !(code = profiles_join(all, args->word_count)))
        code = trace_write(all, args->word_count, args->value[OPT_TRACE_FILE]);
    for (size_t i = 0; all && i < args->word_count; i++)
        json_decref(all[i].root);
    free(all);
    return code;
}
