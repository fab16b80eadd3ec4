/*
 * Reading run folders.
 *
 * Whether one still runs says its lock; how it ended says run.json; how far it came says metrics.jsonl.
 */
#include "runs/runs.h"
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_BYTES_MAX (16 << 20) /* run.json: a few hundred options */
#define LINE_BYTES_MAX 4096         /* of metrics.jsonl */
#define RECORDS_MAX 100000
#define RUN_NAMES_MAX 512 /* that are compared with a wrong one */

const char *cli_record_state_name(cli_record_state state)
{
    static const char *const names[] = {"finished", "stopped", "failed", "running", "broken"};

    return names[state];
}

FILE *cli_record_file(const char *folder, const char *name, off_t bytes_max)
{
    char *path = cli_path(folder, name);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    FILE *file = NULL;
    struct stat s;

    free(path);
    if (fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_size <= bytes_max)
        file = fdopen(fd, "r");
    if (fd >= 0 && !file)
        (void)close(fd);
    return file;
}

const char *cli_record_text(const cli_record *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record->json, key));

    return text ? text : "";
}

const char *cli_record_option(const cli_record *record, const char *key)
{
    const json_t *o;
    size_t index;

    json_array_foreach(json_object_get(record->json, "options"), index, o)
    {
        const char *name = json_string_value(json_object_get(o, "key"));
        const char *value = json_string_value(json_object_get(o, "value"));

        if (name && value && !strcmp(name, key))
            return value;
    }
    return "";
}

static double number_at(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- one run ---- */

static void metrics_read(cli_record *record)
{
    FILE *file = cli_record_file(record->folder, "metrics.jsonl", CLI_METRICS_BYTES_MAX);
    char line[LINE_BYTES_MAX];

    while (file && fgets(line, sizeof line, file)) {
        json_t *o = json_loads(line, 0, NULL); /* a torn last line is none */
        const bool numbers = json_object_get(o, "r2") != NULL;
        const double accuracy = number_at(o, numbers ? "valid_r2" : "valid_accuracy");
        const double loss = number_at(o, "valid_loss");

        record->numbers |= numbers;
        if (o)
            record->epochs = (int64_t)json_integer_value(json_object_get(o, "epoch"));
        if (isfinite(accuracy)) {
            record->best = isfinite(record->best) ? fmax(record->best, accuracy) : accuracy;
            record->accuracy = accuracy;
        }
        record->loss = isfinite(loss) ? loss : record->loss;
        json_decref(o);
    }
    if (file)
        (void)fclose(file);
}

/* The end of a regression. */
static void numbers_read(cli_record *record)
{
    const json_t *result = json_object_get(record->json, "result");

    if (!isfinite(number_at(result, "r2")))
        return;
    record->numbers = true;
    record->best = number_at(result, "best_r2");
    record->accuracy = number_at(result, "r2");
    record->loss = number_at(result, "loss");
}

json_t *cli_record_json(const char *folder, char why[CLI_WHY_BYTES])
{
    FILE *file = cli_record_file(folder, "run.json", RECORD_BYTES_MAX);
    json_error_t error = {.text = ""};
    json_t *json;

    if (!file) {
        (void)snprintf(why, CLI_WHY_BYTES, "run.json cannot be read");
        return NULL;
    }
    json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    (void)fclose(file);
    if (json_is_object(json))
        return json;
    (void)snprintf(why, CLI_WHY_BYTES, "run.json is damaged: line %d: %.100s", error.line,
                   json ? "this is no object" : error.text);
    json_decref(json);
    return NULL;
}

bool cli_record_ours(const json_t *json)
{
    return json_is_array(json_object_get(json, "command")) &&
           json_is_string(json_object_get(json_object_get(json, "versions"), "tenon")) &&
           json_is_array(json_object_get(json, "options"));
}

bool cli_record_has_checkpoint(const char *folder)
{
    char *path = cli_path(folder, "checkpoints");
    DIR *dir = path ? opendir(path) : NULL;
    const struct dirent *entry;
    bool found = false;

    while (dir && !found && (entry = readdir(dir)))
        found = strlen(entry->d_name) > 5 && !strcmp(entry->d_name + strlen(entry->d_name) - 5, ".tnck");
    if (dir)
        (void)closedir(dir);
    free(path);
    return found;
}

static void lock_read(cli_record *record, cli_lock_state *lock)
{
    char *path = cli_path(record->folder, "checkpoints/" CLI_LOCK_NAME);
    cli_lock_owner owner = {0};

    *lock = path ? cli_lock_look(path, &owner) : CLI_LOCK_FREE;
    free(path);
    if (*lock == CLI_LOCK_LIVE)
        (void)snprintf(record->why, sizeof record->why, "process %ld", owner.pid);
    else if (*lock == CLI_LOCK_FOREIGN)
        (void)snprintf(record->why, sizeof record->why, "process %ld on host %s", owner.pid, owner.host);
}

static void state_find(cli_record *record)
{
    static const struct {
        const char *status;
        cli_record_state state;
    } rows[] = {
        {"done", CLI_RECORD_FINISHED}, {"stopped", CLI_RECORD_STOPPED}, {"failed", CLI_RECORD_FAILED}};
    const json_t *result = json_object_get(record->json, "result");
    const char *status = json_string_value(json_object_get(result, "status"));
    const char *error = json_string_value(json_object_get(result, "error"));
    cli_lock_state lock;

    record->state = CLI_RECORD_BROKEN;
    lock_read(record, &lock);
    if (lock == CLI_LOCK_LIVE || lock == CLI_LOCK_FOREIGN) {
        record->state = CLI_RECORD_RUNNING;
        return;
    }
    for (size_t i = 0; status && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(status, rows[i].status))
            record->state = rows[i].state;
    record->resumable = record->ours && cli_record_has_checkpoint(record->folder);
    if (record->state == CLI_RECORD_FAILED && error)
        (void)snprintf(record->why, sizeof record->why, "%.*s", (int)strcspn(error, "\n"), error);
    else if (record->state == CLI_RECORD_BROKEN && record->json && !record->ours)
        (void)snprintf(record->why, sizeof record->why, "its run.json is not of tenon train");
    else if (record->state == CLI_RECORD_BROKEN && record->json)
        (void)snprintf(record->why, sizeof record->why, "ended without a word (killed?)%s",
                       record->resumable                                          ? "; --resume goes on"
                       : cli_folder_look(record->folder) == CLI_FOLDER_BROKEN_OFF ? "; --resume begins anew"
                                                                                  : "");
}

static void written_find(cli_record *record)
{
    char *path = cli_path(record->folder, "run.json");
    struct stat s;

    if (path && !lstat(path, &s))
        record->written = s.st_mtim;
    free(path);
}

bool cli_record_read(cli_record *record, char *folder)
{
    const char *slash, *dash;

    memset(record, 0, sizeof *record);
    record->folder = folder;
    record->best = record->accuracy = record->loss = NAN;
    if (!folder)
        return false;
    slash = strrchr(folder, '/');
    if (!(record->name = cli_format("%s", slash ? slash + 1 : folder)))
        return false;
    dash = strrchr(record->name, '-');
    record->id = dash && dash[1] ? dash + 1 : record->name;
    record->json = cli_record_json(folder, record->why);
    record->ours = record->json && cli_record_ours(record->json);
    written_find(record);
    metrics_read(record);
    numbers_read(record);
    state_find(record);
    record->epochs_wanted = strtoll(cli_record_option(record, "train.epochs"), NULL, 10);
    return true;
}

void cli_record_fini(cli_record *record)
{
    json_decref(record->json);
    free(record->folder);
    free(record->name);
    memset(record, 0, sizeof *record);
}

/* ---- all of a folder ---- */

/* A folder, not a link to one, with a run.json in it. */
static bool is_run(const char *folder)
{
    char *path = cli_path(folder, "run.json");
    struct stat s, file;
    bool yes = path && !lstat(folder, &s) && S_ISDIR(s.st_mode) && !lstat(path, &file);

    free(path);
    return yes;
}

static int by_start(const void *a, const void *b)
{
    const cli_record *x = a, *y = b;
    int order = strcmp(cli_record_text(x, "started"), cli_record_text(y, "started"));

    if (!order)
        order = (x->written.tv_sec > y->written.tv_sec) - (x->written.tv_sec < y->written.tv_sec);
    if (!order)
        order = (x->written.tv_nsec > y->written.tv_nsec) - (x->written.tv_nsec < y->written.tv_nsec);
    return order ? order : strcmp(x->name, y->name);
}

static bool record_add(cli_records *r, char *folder)
{
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 16;
        cli_record *grown = room <= RECORDS_MAX ? realloc(r->at, room * sizeof *grown) : NULL;

        if (!grown) {
            cli_error("out of memory, or more than %d runs", RECORDS_MAX);
            free(folder);
            return false;
        }
        r->at = grown;
        r->room = room;
    }
    return cli_record_read(&r->at[r->count++], folder);
}

bool cli_records_read(cli_records *r, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool ok = true;

    memset(r, 0, sizeof *r);
    r->folder = folder;
    if (!dir && errno != ENOENT)
        cli_error("%s: %s", folder, strerror(errno));
    if (!dir)
        return errno == ENOENT;
    while (ok && (entry = readdir(dir))) {
        char *path = entry->d_name[0] == '.' ? NULL : cli_path(folder, entry->d_name);

        if (path && is_run(path))
            ok = record_add(r, path);
        else
            free(path);
    }
    (void)closedir(dir);
    if (ok && r->count)
        qsort(r->at, r->count, sizeof *r->at, by_start);
    return ok;
}

void cli_records_fini(cli_records *r)
{
    for (size_t i = 0; i < r->count; i++)
        cli_record_fini(&r->at[i]);
    free(r->at);
    memset(r, 0, sizeof *r);
}

/* 0: no · 1: a part of the name behind a dash · 2: the name or the id */
static int match(const char *run, const char *name)
{
    const char *dash = strrchr(run, '-'), *at;

    if (!strcmp(run, name) || (dash && !strcmp(dash + 1, name)))
        return 2;
    for (at = strstr(run, name); at; at = strstr(at + 1, name))
        if (at == run || at[-1] == '-')
            return 1;
    return 0;
}

/* The one run below `folder` that `name` fits best; NULL: none (`*count` 0) or several. */
static char *best_find(const char *folder, const char *name, size_t *count)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char *found = NULL;
    int best = 0;

    while (dir && (entry = readdir(dir))) {
        const int fits = entry->d_name[0] == '.' ? 0 : match(entry->d_name, name);
        char *path = fits && fits >= best ? cli_path(folder, entry->d_name) : NULL;

        if (!path || !is_run(path)) {
            free(path);
            continue;
        }
        *count = fits == best ? *count + 1 : 1;
        best = fits;
        free(found);
        found = path;
    }
    if (dir)
        (void)closedir(dir);
    if (*count <= 1)
        return found;
    free(found);
    return NULL;
}

/* Without slashes at its end. */
static char *path_plain(const char *name)
{
    size_t length = strlen(name);

    while (length > 1 && name[length - 1] == '/')
        length--;
    return cli_format("%.*s", (int)length, name);
}

/* The last part is cut off: "." if there is none above. */
static void last_cut(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        slash[slash == path] = '\0';
    else
        memcpy(path, ".", 2);
}

char *cli_record_around(const char *name)
{
    char *path = cli_format("%s/..", name); /* room for ".." */
    struct stat s;

    if (!path || stat(name, &s) || S_ISDIR(s.st_mode)) {
        free(path);
        return NULL;
    }
    path[strlen(name)] = '\0';
    last_cut(path);
    if (cli_ends_with(path, "checkpoints") && !is_run(path))
        last_cut(path);
    else if (!strcmp(path, ".") && cli_ends_with(name, ".tnck"))
        memcpy(path, "..", 3);
    if (is_run(path))
        return path;
    free(path);
    return NULL;
}

char *cli_record_meant(const char *what)
{
    static const char *const ends[] = {".tnck", ".params", ".jsonl", "run.json", "run.lock", "curves.svg"};
    char why[CLI_WHY_BYTES];
    struct stat s;

    if (stat(what, &s))
        return strchr(what, '/') ? NULL : cli_record_folder(CLI_RUNS, what, why);
    if (S_ISDIR(s.st_mode))
        return path_plain(what);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (cli_ends_with(what, ends[i]))
            return cli_record_around(what);
    return NULL;
}

typedef struct run_names {
    char *at[RUN_NAMES_MAX];
    size_t count;
} run_names;

static const char *run_name(const void *from, size_t index)
{
    const run_names *n = from;

    return index < n->count ? n->at[index] : NULL;
}

/* Runs in the folder, and the ids behind the last dash of their names. */
static void run_names_add(run_names *n, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && n->count + 2 < RUN_NAMES_MAX && (entry = readdir(dir))) {
        char *path = entry->d_name[0] == '.' ? NULL : cli_path(folder, entry->d_name);
        const char *dash = strrchr(entry->d_name, '-');

        if (path && is_run(path)) {
            n->count += (n->at[n->count] = cli_format("%s", entry->d_name)) != NULL;
            n->count += dash && (n->at[n->count] = cli_format("%s", dash + 1)) != NULL;
        }
        free(path);
    }
    if (dir)
        (void)closedir(dir);
}

void cli_record_similar(const char *folder, const char *name, char text[CLI_SIMILAR_BYTES])
{
    run_names n = {.count = 0};

    run_names_add(&n, folder);
    run_names_add(&n, ".");
    (void)cli_similar_text(cli_nearest(name, run_name, &n), text);
    for (size_t i = 0; i < n.count; i++)
        free(n.at[i]);
}

char *cli_record_folder(const char *folder, const char *name, char why[CLI_WHY_BYTES])
{
    char *found = NULL, similar[CLI_SIMILAR_BYTES];
    size_t count = 0;

    *why = '\0';
    if (!*name) {
        (void)snprintf(why, CLI_WHY_BYTES, "the name of a run is missing");
        return NULL;
    }
    if ((found = cli_record_around(name)))
        return found;
    if (!strchr(name, '/') && !is_run(name) &&
        ((found = best_find(folder, name, &count)) || count || !cli_is_folder(name))) {
        if (count > 1) {
            (void)snprintf(why, CLI_WHY_BYTES,
                           "\"%.200s\" fits %zu runs below %.200s; `tenon runs list` shows their names", name,
                           count, folder);
        } else if (!found) {
            cli_record_similar(folder, name, similar);
            (void)snprintf(why, CLI_WHY_BYTES,
                           "%.160s is no folder, and no run below %.160s is called so%.220s; `tenon runs "
                           "list` shows what there is",
                           name, folder, similar);
        }
        return found;
    }
    if (cli_is_folder(name))
        return path_plain(name);
    (void)snprintf(why, CLI_WHY_BYTES, "%.500s is no folder", name);
    return NULL;
}

char *cli_record_newest(const char *folder, char why[CLI_WHY_BYTES])
{
    DIR *dir = opendir(folder);
    struct timespec best = {0, 0};
    const struct dirent *entry;
    char *found = NULL;

    while (dir && (entry = readdir(dir))) {
        char *path = entry->d_name[0] == '.' ? NULL : cli_path(folder, entry->d_name);
        struct stat s;

        if (path && is_run(path) && !stat(path, &s) &&
            (!found || s.st_mtim.tv_sec > best.tv_sec ||
             (s.st_mtim.tv_sec == best.tv_sec && s.st_mtim.tv_nsec > best.tv_nsec))) {
            best = s.st_mtim;
            free(found);
            found = path;
            path = NULL;
        }
        free(path);
    }
    if (dir)
        (void)closedir(dir);
    if (!found)
        (void)snprintf(why, CLI_WHY_BYTES, "there is no run below %.200s", folder);
    return found;
}

bool cli_record_find(cli_record *record, const char *folder, const char *name)
{
    char why[CLI_WHY_BYTES], *path = cli_record_folder(folder, name, why), *file = NULL;
    struct stat s;
    bool ok;

    memset(record, 0, sizeof *record);
    if (!path) {
        cli_error("%s", why);
        return false;
    }
    ok = (file = cli_path(path, "run.json")) != NULL;
    if (ok && lstat(file, &s)) {
        cli_error("%s is no run folder: there is no run.json in it", path);
        ok = false;
    }
    free(file);
    if (ok)
        return cli_record_read(record, path);
    free(path);
    return false;
}
