/*
 * tenon doctor: a table of checks. Each says what it found and, where something is wrong, what to do about
 * it. Nothing is changed, and what is broken is looked at from other processes: a plugin that crashes while
 * it is loaded is a finding, not the end.
 */
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *what;
    void (*run)(doctor *d);
} checks[] = {
#define DOCTOR_CHECK(name, run, what) {name, what, run},
#include "doctor/doctor.list"
#undef DOCTOR_CHECK
};
static const char *const levels[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "!", [DOCTOR_BAD] = "bad"};
static const char *const level_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_BAD] = "bad"};

/* ---- findings ---- */

void doctor_say(doctor *d, doctor_level level, const char *advice, const char *format, ...)
{
    char text[1024];
    va_list args;
    doctor_finding *f;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_clean(text, '?'); /* names of files may hold anything */
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 32;
        doctor_finding *more = realloc(d->findings, capacity * sizeof *more);

        if (!more) {
            d->no_memory = true;
            return;
        }
        d->findings = more;
        d->capacity = capacity;
    }
    f = &d->findings[d->count];
    *f = (doctor_finding){level, d->check, cli_format("%s", text), cli_format("%s", advice)};
    if (f->text && f->advice) {
        cli_clean(f->advice, '?');
        d->count++;
        return;
    }
    free(f->text);
    free(f->advice);
    d->no_memory = true;
}

const char *doctor_option(const doctor *d, const char *key)
{
    const char *value = d->ctx ? tn_ctx_option(d->ctx, key) : NULL;

    return value ? value : "";
}

static size_t count_of(const doctor *d, doctor_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < d->count; i++)
        n += d->findings[i].level == level;
    return n;
}

/* ---- output ---- */

static const char *paint(const cli_terminal *t, doctor_level level)
{
    static const char *const paints[] = {
        [DOCTOR_OK] = "\033[32m", [DOCTOR_WARNING] = "\033[33m", [DOCTOR_BAD] = "\033[31m"};

    return t->color ? paints[level] : "";
}

static void text_print(const doctor *d, bool quiet)
{
    cli_terminal t = cli_terminal_of(stdout);
    size_t bad = count_of(d, DOCTOR_BAD), warnings = count_of(d, DOCTOR_WARNING);

    for (size_t i = 0; i < d->count; i++) {
        const doctor_finding *f = &d->findings[i];

        if (quiet && f->level == DOCTOR_OK)
            continue;
        (void)printf("%s%-3s%s  %s: %s\n", paint(&t, f->level), levels[f->level], t.color ? "\033[0m" : "",
                     f->check, f->text);
        if (*f->advice)
            (void)printf("     %s %s\n", t.utf8 ? "→" : "->", f->advice);
    }
    (void)printf("%zu problem%s, %zu warning%s", bad, bad == 1 ? "" : "s", warnings,
                 warnings == 1 ? "" : "s");
    (void)printf(d->args->value[OPT_REPORT] ? "\n" : "; to paste into a report: tenon doctor --report\n");
}

static json_t *findings_json(const doctor *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->count; i++) {
        const doctor_finding *f = &d->findings[i];

        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "check", f->check, "level",
                                                    level_names[f->level], "text", cli_json_text(f->text),
                                                    "advice", cli_json_text(f->advice)));
    }
    return list;
}

static void json_print(const doctor *d)
{
    json_t *o = json_pack("{s:I, s:I, s:o}", "problems", (json_int_t)count_of(d, DOCTOR_BAD), "warnings",
                          (json_int_t)count_of(d, DOCTOR_WARNING), "checks", findings_json(d));

    if (d->args->value[OPT_REPORT])
        (void)json_object_set_new(o, "report", doctor_report(d));
    cli_json_line(o);
}

static void print(const doctor *d)
{
    json_t *report;

    if (d->args->value[OPT_JSON]) {
        json_print(d);
        return;
    }
    if (d->args->value[OPT_REPORT]) {
        report = doctor_report(d);
        doctor_report_print(report);
        json_decref(report);
    }
    text_print(d, d->args->value[OPT_QUIET] != NULL);
}

int cmd_doctor(const cli_args *args)
{
    doctor d = {.args = args, .warnings = json_array()};
    int code;

    doctor_open(&d);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        d.check = checks[i].name;
        checks[i].run(&d);
    }
    if (d.no_memory) {
        cli_error("out of memory");
        code = CLI_EXIT_MEMORY;
    } else {
        print(&d);
        code = count_of(&d, DOCTOR_BAD) ? CLI_EXIT_FAILED : 0;
    }
    for (size_t i = 0; i < d.count; i++) {
        free(d.findings[i].text);
        free(d.findings[i].advice);
    }
    free(d.findings);
    doctor_close(&d);
    return code;
}
