/*
 * The files of a run folder: run.json, metrics.jsonl, checkpoints, the model. All are read as a stranger's.
 * What is wrong and what helps stands in one table, the checks only find it.
 */
#include "doctor/doctor.h"
#include "runs/runs.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_BYTES_MAX 4096 /* of metrics.jsonl */
#define CHECKPOINTS_MAX 10000
#define CHECKPOINT_NAME "checkpoint-"
#define CHECKPOINT_END ".tnck"
#define TEXT_BYTES 1400

typedef enum fault {
    RECORD_MISSING,
    RECORD_DAMAGED,
    METRICS_MISSING,
    METRICS_UNREADABLE,
    METRICS_TORN,
    METRICS_LINE,
    METRICS_LINES,
    METRICS_SHORT,
    CHECKPOINTS_UNREADABLE,
    CHECKPOINTS_FILE,
    CHECKPOINT_NONE,
    CHECKPOINT_OLD,
    CHECKPOINT_DAMAGED,
    CHECKPOINT_LAST,
    CHECKPOINT_NUMBER,
    MODEL_MISSING,
    MODEL_DAMAGED,
    MODEL_FOLDER,
    MODEL_LOST,
    MODEL_OPERATOR,
    BEST_LOST,
    NOT_READ,
} fault;

/* {run}: the folder · {file}: what the fault is in · {other}: depends on the fault */
static const struct {
    doctor_level level;
    const char *advice;
} faults[] = {
    [RECORD_MISSING] = {DOCTOR_BAD,
                        "put a copy of {file} back: without it nothing is resumed; the model's files "
                        "can be used"},
    [RECORD_DAMAGED] = {DOCTOR_BAD,
                        "put a copy of {file} back: without it nothing is resumed; the model's files "
                        "can be used"},
    [METRICS_MISSING] = {DOCTOR_BAD, "put a copy of {file} back: only the curves need it"},
    [METRICS_UNREADABLE] = {DOCTOR_BAD, "put a regular file that may be read there: only the curves need it"},
    [METRICS_TORN] = {DOCTOR_WARNING, "tenon train --resume {run} drops the line and goes on"},
    [METRICS_LINE] = {DOCTOR_BAD,
                      "sed -i {other}d {file}, or put a copy of it back: only the curves need it"},
    [METRICS_LINES] = {DOCTOR_BAD,
                       "take these lines out, or put a copy of {file} back: only the curves need it"},
    [METRICS_SHORT] = {DOCTOR_BAD, "put a copy of {file} back: only the curves need it"},
    [CHECKPOINTS_UNREADABLE] = {DOCTOR_BAD, "chmod u+rx {file}"},
    [CHECKPOINTS_FILE] = {DOCTOR_BAD,
                          "mv {file} {file}.old, then put a copy of the folder back, or train anew"},
    [CHECKPOINT_NONE] = {DOCTOR_WARNING,
                         "put copies into {file}, or train anew: there is nothing to go on from"},
    [CHECKPOINT_OLD] = {DOCTOR_WARNING, "put a copy of the last one into {file}; --resume makes the steps in "
                                        "between again"},
    [CHECKPOINT_DAMAGED] = {DOCTOR_BAD, "rm {file}; --resume goes on from {other}"},
    [CHECKPOINT_LAST] = {DOCTOR_BAD, "put a copy of {file} back, or train anew: no checkpoint here is whole"},
    [CHECKPOINT_NUMBER] = {DOCTOR_BAD, "mv {file} {other}: its name tells the order"},
    [MODEL_MISSING] = {DOCTOR_BAD,
                       "tenon train --resume {run}: it is written again, from the last checkpoint"},
    [MODEL_DAMAGED] = {DOCTOR_BAD,
                       "rm {file} && tenon train --resume {run}: it is written again, from the last "
                       "checkpoint"},
    [MODEL_FOLDER] = {DOCTOR_BAD,
                      "mv {file} {file}.old && tenon train --resume {run}: it is written again, from the "
                      "last checkpoint"},
    [MODEL_LOST] = {DOCTOR_BAD, "put a copy of {file} back, or train anew: no checkpoint here is whole"},
    [MODEL_OPERATOR] = {DOCTOR_BAD, "tenon plugins needs {file} tells what is missing; install the plugin"},
    [BEST_LOST] = {DOCTOR_BAD,
                   "put a copy of {file} back: it cannot be made again; the model of the last epoch "
                   "is model-0000.params"},
    [NOT_READ] = {DOCTOR_WARNING, "correct what is said above, then ask again"},
};

/* The advice with its names put in. */
static void advice_fill(const char *advice, const doctor_run *r, const char *file, const char *other,
                        char out[TEXT_BYTES])
{
    const struct {
        const char *word, *text;
    } words[] = {{"{run}", r->folder}, {"{file}", file}, {"{other}", other}};
    size_t used = 0;

    while (*advice && used + 1 < TEXT_BYTES) {
        size_t i = 0;

        while (i < sizeof words / sizeof *words && strncmp(advice, words[i].word, strlen(words[i].word)))
            i++;
        if (i == sizeof words / sizeof *words) {
            out[used++] = *advice++;
            continue;
        }
        used += (size_t)snprintf(out + used, TEXT_BYTES - used, "%.500s", words[i].text);
        used = used < TEXT_BYTES ? used : TEXT_BYTES - 1;
        advice += strlen(words[i].word);
    }
    out[used] = '\0';
}

typedef struct place {
    const doctor_run *run;
    const char *file, *other; /* for the advice */
} place;

static void CLI_PRINTF(4, 5) fault_say(doctor *d, fault which, const place *at, const char *format, ...)
{
    char text[TEXT_BYTES], advice[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    advice_fill(faults[which].advice, at->run, at->file, at->other ? at->other : "", advice);
    doctor_say(d, faults[which].level, advice, "%s", text);
}

static bool is_there(const char *path)
{
    struct stat s;

    return !lstat(path, &s);
}

/* Of run.json's "result"; -1: not there. */
static int64_t result_number(const doctor_run *r, const char *key)
{
    const json_t *value = json_object_get(json_object_get(r->record.json, "result"), key);

    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* ---- run.json ---- */

void doctor_record_check(doctor *d, doctor_run *r)
{
    char why[CLI_WHY_BYTES] = "", *path = cli_path(r->folder, "run.json");
    const place at = {r, path, NULL};
    json_t *json = path ? cli_record_json(r->folder, why) : NULL;

    if (path && !json && !is_there(path))
        fault_say(d, RECORD_MISSING, &at, "%s: run.json is missing", r->folder);
    else if (path && !json)
        fault_say(d, RECORD_DAMAGED, &at, "%s: %s", r->folder, why);
    else if (json && !cli_record_ours(json))
        fault_say(d, RECORD_DAMAGED, &at, "%s: run.json is not what `tenon train` writes", r->folder);
    json_decref(json);
    free(path);
}

/* ---- metrics.jsonl ---- */

typedef struct metrics {
    int64_t lines, epoch, step; /* so far */
    int64_t bad, first_bad;     /* lines; the first one's number */
    const char *wrong;          /* with the first */
    bool torn;                  /* the last line has no end */
} metrics;

static void line_check(metrics *m, const char *line, bool whole)
{
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const json_t *epoch = json_object_get(o, "epoch"), *step = json_object_get(o, "step");
    const char *wrong = NULL;

    m->lines++;
    if (!whole)
        wrong = "has no end";
    else if (!json_is_integer(epoch) || !json_is_integer(step))
        wrong = "is no epoch";
    else if (json_integer_value(epoch) <= m->epoch || json_integer_value(step) <= m->step)
        wrong = "does not follow the one before";
    if (!wrong) {
        m->epoch = (int64_t)json_integer_value(epoch);
        m->step = (int64_t)json_integer_value(step);
    } else if (!m->bad++) {
        m->first_bad = m->lines;
        m->wrong = wrong;
    }
    json_decref(o);
}

static void metrics_scan(FILE *file, metrics *m)
{
    char line[LINE_BYTES_MAX];

    while (fgets(line, sizeof line, file)) {
        bool whole = strchr(line, '\n') != NULL;
        int c = '\n';

        if (!whole) /* too long, or it holds a NUL, or it is the end */
            while ((c = getc_unlocked(file)) != EOF && c != '\n')
                ;
        m->torn = c == EOF;
        line_check(m, line, whole);
    }
}

static void metrics_say(doctor *d, const doctor_run *r, const metrics *m, const char *path)
{
    const bool done = r->record.state == CLI_RECORD_FINISHED;
    char number[24];
    const place at = {r, path, number};

    (void)snprintf(number, sizeof number, "%lld", (long long)m->first_bad);
    if (m->bad == 1 && m->torn && m->first_bad == m->lines && !done) {
        if (!r->live) /* it may just be written */
            fault_say(d, METRICS_TORN, &at, "%s: the last line has no end", path);
    } else if (m->bad) {
        fault_say(d, m->bad > 1 ? METRICS_LINES : METRICS_LINE, &at, "%s:%s: the line %s%s", path, number,
                  m->wrong, m->bad > 1 ? ", and others like it" : "");
    } else if (done && m->step < result_number(r, "step")) {
        fault_say(d, METRICS_SHORT, &at, "%s ends with step %lld, the training with step %lld", path,
                  (long long)m->step, (long long)result_number(r, "step"));
    }
}

void doctor_metrics_check(doctor *d, doctor_run *r)
{
    char *path = cli_path(r->folder, "metrics.jsonl");
    FILE *file = cli_record_file(r->folder, "metrics.jsonl", CLI_METRICS_BYTES_MAX);
    const place at = {r, path, NULL};
    metrics m = {0};

    if (file) {
        metrics_scan(file, &m);
        (void)fclose(file);
        metrics_say(d, r, &m, path);
    } else if (path && is_there(path)) {
        fault_say(d, METRICS_UNREADABLE, &at, "%s cannot be read, or is no regular file of at most 1 GiB",
                  path);
    } else if (path && r->record.state == CLI_RECORD_FINISHED) {
        fault_say(d, METRICS_MISSING, &at, "%s is missing", path);
    }
    free(path);
}

/* ---- checkpoints ---- */

typedef struct checkpoint {
    unsigned long number; /* as its name says */
    char *path;
    char *wrong;    /* NULL: it is whole */
    int64_t step;   /* -1: not known */
    uint32_t holds; /* its number as it says itself; 0: not known */
    bool unread;
} checkpoint;

typedef struct checkpoints {
    checkpoint *at;
    size_t count, room;
} checkpoints;

static int by_number(const void *a, const void *b)
{
    const checkpoint *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* The number in "checkpoint-000012.tnck"; 0: another file. */
static unsigned long number_of(const char *name)
{
    const size_t begin = strlen(CHECKPOINT_NAME);
    char *end;
    unsigned long number;

    if (strncmp(name, CHECKPOINT_NAME, begin) || name[begin] < '0' || name[begin] > '9')
        return 0;
    number = strtoul(name + begin, &end, 10);
    return strcmp(end, CHECKPOINT_END) ? 0 : number;
}

static bool checkpoint_add(checkpoints *list, const char *folder, const char *name)
{
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 16;
        checkpoint *grown = room <= 2 * CHECKPOINTS_MAX ? realloc(list->at, room * sizeof *grown) : NULL;

        if (!grown)
            return false;
        list->at = grown;
        list->room = room;
    }
    list->at[list->count] =
        (checkpoint){.number = number_of(name), .path = cli_path(folder, name), .step = -1};
    return list->at[list->count++].path != NULL;
}

/* False: the folder cannot be read; one that is not there has none. */
static bool checkpoints_list(checkpoints *list, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    if (!dir)
        return errno == ENOENT;
    while (list->count < CHECKPOINTS_MAX && (entry = readdir(dir)))
        if (number_of(entry->d_name) && !checkpoint_add(list, folder, entry->d_name))
            break;
    (void)closedir(dir);
    if (list->count)
        qsort(list->at, list->count, sizeof *list->at, by_number);
    return true;
}

static void checkpoint_read(doctor *d, checkpoint *c)
{
    const tn_device *cpu = NULL;
    tn_checkpoint *read = NULL;
    tn_status st = tn_device_get(d->reader, "cpu:0", &cpu);
    const char *kind;
    json_t *o;

    if (st || (st = tn_checkpoint_load_file(d->reader, c->path, cpu, &read))) {
        c->unread = st == TN_E_NOMEM;
        c->wrong = cli_format("%s", tn_error_text());
        return;
    }
    o = json_loads(tn_checkpoint_json(read), JSON_REJECT_DUPLICATES, NULL);
    kind = json_string_value(json_object_get(o, "kind"));
    if (!kind || strcmp(kind, "tenon training"))
        c->wrong = cli_format("%s is no checkpoint of a training", c->path);
    else
        c->step = (int64_t)json_integer_value(json_object_get(o, "step"));
    c->holds = tn_checkpoint_number(read);
    json_decref(o);
    tn_checkpoint_destroy(read);
}

static void damage_say(doctor *d, const doctor_run *r, const checkpoint *c, const checkpoint *whole)
{
    char right[TEXT_BYTES];
    const place at = {r, c->path, c->wrong ? whole ? whole->path : NULL : right};

    (void)snprintf(right, sizeof right, "%.600s/checkpoints/" CHECKPOINT_NAME "%06u" CHECKPOINT_END,
                   r->folder, (unsigned)c->holds);
    if (r->live && c->wrong && !is_there(c->path))
        return; /* the training has just removed it */
    if (c->unread)
        fault_say(d, NOT_READ, &at, "%s", c->wrong);
    else if (c->wrong)
        fault_say(d, whole ? CHECKPOINT_DAMAGED : CHECKPOINT_LAST, &at, "%s", c->wrong);
    else if (c->holds != c->number)
        fault_say(d, CHECKPOINT_NUMBER, &at, "%s is checkpoint %u by what it says itself", c->path,
                  (unsigned)c->holds);
}

static void checkpoints_say(doctor *d, doctor_run *r, const checkpoints *list, const char *folder)
{
    const place at = {r, folder, NULL};
    const int64_t step = result_number(r, "step");
    const checkpoint *whole = NULL;

    for (size_t i = 0; i < list->count; i++)
        if (!list->at[i].wrong)
            whole = &list->at[i];
    r->whole = whole != NULL;
    for (size_t i = 0; i < list->count; i++)
        damage_say(d, r, &list->at[i], whole);
    if (!list->count && !r->live && r->record.json)
        fault_say(d, CHECKPOINT_NONE, &at, "%s: there is no checkpoint", r->folder);
    else if (whole && whole == &list->at[list->count - 1] && whole->step >= 0 && whole->step < step)
        fault_say(d, CHECKPOINT_OLD, &at, "%s: the newest checkpoint is of step %lld, the run came to %lld",
                  r->folder, (long long)whole->step, (long long)step);
}

void doctor_checkpoints_check(doctor *d, doctor_run *r)
{
    char *folder = cli_path(r->folder, "checkpoints");
    const place at = {r, folder, NULL};
    checkpoints list = {0};

    if (folder && !checkpoints_list(&list, folder))
        fault_say(d, errno == ENOTDIR ? CHECKPOINTS_FILE : CHECKPOINTS_UNREADABLE, &at, "%s: %s", folder,
                  strerror(errno));
    else if (folder) {
        for (size_t i = 0; i < list.count; i++)
            checkpoint_read(d, &list.at[i]);
        checkpoints_say(d, r, &list, folder);
    }
    for (size_t i = 0; i < list.count; i++) {
        free(list.at[i].path);
        free(list.at[i].wrong);
    }
    free(list.at);
    free(folder);
}

/* ---- the model ---- */

static char *symbol_wrong(doctor *d, const doctor_run *r, const char *path)
{
    tn_symbol *symbol = NULL;

    (void)r;
    if (tn_symbol_load(d->reader, path, &symbol))
        return cli_format("%s", tn_error_text());
    tn_symbol_release(symbol);
    return NULL;
}

static char *params_wrong(doctor *d, const doctor_run *r, const char *path)
{
    const char *wanted =
        json_string_value(json_object_get(json_object_get(r->record.json, "result"), "params_sha256"));
    const tn_device *cpu = NULL;
    tn_params *params = NULL;
    char hash[65] = "", *wrong = NULL;

    if (tn_device_get(d->reader, "cpu:0", &cpu) || tn_params_load(d->reader, path, cpu, &params) ||
        tn_params_sha256(params, hash))
        wrong = cli_format("%s", tn_error_text());
    else if (cli_ends_with(path, "-0000.params") && wanted && strcmp(wanted, hash))
        wrong = cli_format("%s: its values are not those that the training wrote", path);
    tn_params_destroy(params);
    return wrong;
}

static const struct {
    const char *name;
    char *(*wrong)(doctor *d, const doctor_run *r, const char *path); /* NULL: it is good. free() */
    bool best;
} models[] = {
    {"model-symbol.json", symbol_wrong, false},
    {"model-0000.params", params_wrong, false},
    {"model-best.params", params_wrong, true},
};

static bool is_wanted(const doctor_run *r, bool best)
{
    if (r->record.state != CLI_RECORD_FINISHED || r->live)
        return false;
    return !best || (!strcmp(cli_record_option(&r->record, "train.checkpoint_best"), "true") &&
                     result_number(r, "best_epoch") > 0);
}

static void model_check(doctor *d, const doctor_run *r, size_t index, const char *path)
{
    const place at = {r, path, NULL};
    char *wrong;

    if (!is_there(path)) {
        if (is_wanted(r, models[index].best))
            fault_say(d,
                      models[index].best ? BEST_LOST
                      : r->whole         ? MODEL_MISSING
                                         : MODEL_LOST,
                      &at, "%s is missing", path);
        return;
    }
    if (!(wrong = models[index].wrong(d, r, path)))
        return;
    if (tn_error_code() == TN_E_NOMEM)
        fault_say(d, NOT_READ, &at, "%s: %s", path, wrong);
    else if (tn_error_number() == CLI_NO_OPERATOR)
        fault_say(d, MODEL_OPERATOR, &at, "%s", wrong);
    else
        fault_say(d,
                  models[index].best    ? BEST_LOST
                  : !r->whole           ? MODEL_LOST
                  : cli_is_folder(path) ? MODEL_FOLDER
                                        : MODEL_DAMAGED,
                  &at, "%s", wrong);
    free(wrong);
}

void doctor_models_check(doctor *d, doctor_run *r)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char *path = cli_path(r->folder, models[i].name);

        if (path)
            model_check(d, r, i, path);
        free(path);
    }
}
