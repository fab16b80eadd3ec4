/*
 * The run folder: what a training leaves behind, and what is needed to go on with it.
 *
 * run.json is written before the first step, so a run that is killed at any later moment can be resumed;
 * metrics.jsonl grows by a line per epoch; all other files are whole or absent.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/data.h"
#include "machine.h"
#include "runs/runs.h"
#include "tenon/plugin/plugin.h"
#include "train/train.h"
#include "view/viz.h"

#define NAME_TRIES 100
#define EPOCHS_MAX 1000000
#define LINE_MAX_BYTES 4096 /* of metrics.jsonl */

static bool no_memory(tn_app *app)
{
    return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
}

static void id_set(cli_run *run)
{
    const char *slash = strrchr(run->folder, '/'), *dash = strrchr(run->folder, '-');

    run->id = slash ? slash + 1 : run->folder;
    if (dash && dash > run->id && dash[1])
        run->id = dash + 1;
}

/* ---- finding a run again ---- */

bool cli_run_find(cli_run *run, const char *value)
{
    char why[CLI_WHY_BYTES], *around = *value ? cli_record_around(value) : NULL;

    if (around) {
        cli_error("%s is a file: --resume goes on from the newest checkpoint of a run: --resume %s", value,
                  around);
        free(around);
        return false;
    }
    run->folder = *value ? cli_record_folder(CLI_RUNS, value, why) : cli_record_newest(CLI_RUNS, why);
    if (!run->folder) {
        cli_error("no checkpoint to go on from: %s", why);
        return false;
    }
    id_set(run);
    if ((run->record = cli_record_json(run->folder, why)) ||
        cli_folder_look(run->folder) == CLI_FOLDER_BROKEN_OFF || cli_run_in_use(NULL, run->folder))
        return true; /* the lock decides, and the command line may name the model */
    cli_error("%s has no checkpoint to go on from: %s; `tenon runs list` shows the runs", run->folder, why);
    return false;
}

const char *cli_run_text(const cli_run *run, const char *key)
{
    const char *text = json_string_value(json_object_get(run->record, key));

    return text ? text : "";
}

/* Whether a resumed run takes an option over: what changes its numbers, not where things lie or what is
 * logged. Trusted ones never come from a run folder: it may be somebody else's. */
static bool is_kept(const char *key)
{
    static const char *const left_out[] = {"plugins.", "log.", "profiler.", "run.dir"};
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (!strncmp(key, left_out[i], strlen(left_out[i])))
            return false;
    for (size_t i = 0; i < tn_option_count(); i++)
        if (!tn_option_at(i, &o) && !strcmp(o.key, key) && (o.flags & TN_OPTION_TRUSTED))
            return false;
    return true;
}

size_t cli_run_settings(const cli_run *run, char **settings, size_t max)
{
    size_t count = 0, index;
    json_t *o;

    json_array_foreach(json_object_get(run->record, "options"), index, o)
    {
        const char *key = json_string_value(json_object_get(o, "key"));
        const char *value = json_string_value(json_object_get(o, "value"));
        const char *origin = json_string_value(json_object_get(o, "origin"));

        if (key && value && origin && strcmp(origin, "default") && is_kept(key) && count + 1 < max &&
            (settings[count] = cli_format("%s=%s", key, value)))
            count++;
    }
    settings[count] = NULL;
    return count;
}

/* ---- a new folder ---- */

static bool folders_make(tn_app *app, const char *path)
{
    return cli_folders_make(path) || cli_failed_at(app, path);
}

/* The folder of all runs; who made it takes it away if it stays empty. */
static bool runs_make(cli_run *run, tn_app *app)
{
    if (!mkdir(CLI_RUNS, 0777))
        run->runs_made = true;
    else if (errno != EEXIST)
        return cli_failed_at(app, CLI_RUNS);
    return true;
}

bool cli_run_in_use(tn_app *app, const char *folder)
{
    char *path = cli_path(folder, CLI_CHECKPOINTS "/" CLI_LOCK_NAME);
    cli_lock_owner owner = {0};
    const cli_lock_state state = path ? cli_lock_look(path, &owner) : CLI_LOCK_FREE;
    const bool used = state == CLI_LOCK_LIVE || state == CLI_LOCK_FOREIGN;

    if (used)
        cli_lock_refuse(app, path, &owner, state);
    free(path);
    return used;
}

/* A new run may begin in the folder; *anew: in place of one that broke off. */
static bool may_begin(tn_app *app, const char *folder, bool *anew)
{
    const cli_folder_state state = cli_folder_look(folder);
    char *text;

    *anew = state == CLI_FOLDER_BROKEN_OFF;
    if (state == CLI_FOLDER_FREE || *anew)
        return true;
    text = state == CLI_FOLDER_RUN
               ? cli_format("%s holds a run already: --resume %s goes on with it, or name "
                            "another folder",
                            folder, folder)
               : cli_format("%s holds a run already, which has no checkpoint to go on "
                            "from: remove it, or name another folder",
                            folder);
    (void)tn_app_fail(app, TN_E_ARG, text ? text : folder);
    free(text);
    return false;
}

/* The number of the launch that this process is of; "": `tenon launch` has not started it. */
static const char *launch_number(void)
{
    const char *number = getenv(CLI_LAUNCH_VARIABLE);

    return number ? number : "";
}

/* Whether the folder holds the run that an earlier start of this process began in this very launch. A name
 * of the job that the user gives is that of all its launches. */
static bool is_own(cli_run *run, tn_app *app, const char *folder)
{
    const char *attempt = getenv("DMLC_NUM_ATTEMPT"), *job = tn_ctx_option(tn_app_ctx(app), "kvstore.job");
    char why[CLI_WHY_BYTES];
    bool same = false;
    size_t index;
    json_t *o;

    if (!attempt || !strcmp(attempt, "0") || !job || !*job || cli_folder_look(folder) != CLI_FOLDER_RUN ||
        !(run->record = cli_record_json(folder, why)))
        return false;
    json_array_foreach(json_object_get(run->record, "options"), index, o)
    {
        const char *key = json_string_value(json_object_get(o, "key"));
        const char *value = json_string_value(json_object_get(o, "value"));

        same = same || (key && value && !strcmp(key, "kvstore.job") && !strcmp(value, job));
    }
    if (same && !json_object_get(run->record, "result") &&
        !strcmp(cli_run_text(run, "launch"), launch_number()))
        return true;
    json_decref(run->record);
    run->record = NULL;
    return false;
}

static bool named_make(cli_run *run, tn_app *app, const char *folder)
{
    if (cli_run_in_use(app, folder))
        return false;
    run->again = is_own(run, app, folder);
    if (!run->again && !may_begin(app, folder, &run->anew))
        return false;
    run->made = access(folder, F_OK) != 0;
    return ((run->folder = cli_format("%s", folder)) || no_memory(app)) && folders_make(app, folder);
}

bool cli_run_beside(cli_run *run, tn_app *app, const char *folder)
{
    char *beside = cli_format("%s.rank%u", folder, run->rank);

    if (!beside)
        return no_memory(app);
    if (cli_run_in_use(app, beside)) {
        free(beside);
        return false;
    }
    free(run->folder);
    run->folder = beside;
    id_set(run);
    return folders_make(app, beside);
}

bool cli_run_make(cli_run *run, tn_app *app, const char *model)
{
    const char *folder = tn_ctx_option(tn_app_ctx(app), "run.dir"), *name = strrchr(model, ':');
    struct timespec now;
    char date[16];

    if (folder && *folder && run->rank)
        return cli_run_beside(run, app, folder);
    if (folder && *folder) {
        if (!named_make(run, app, folder))
            return false;
        id_set(run);
        return true;
    }
    name = name ? name + 1 : strrchr(model, '/') ? strrchr(model, '/') + 1 : model;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (!strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now.tv_sec)) || !runs_make(run, app))
        return false;
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        uint64_t mixed =
            ((uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 20 ^ (uint64_t)now.tv_sec) + i * 40503u;

        mixed *= UINT64_C(0x9e3779b97f4a7c15);
        free(run->folder);
        run->folder = cli_format(CLI_RUNS "/%s-%.*s-%04x", date, (int)strcspn(name, "."), name,
                                 (unsigned)(mixed >> 48));
        if (!run->folder)
            return no_memory(app);
        if (!mkdir(run->folder, 0777)) {
            run->made = true;
            id_set(run);
            return true;
        }
        if (errno == ENOENT && !runs_make(run, app)) /* another one took it away */
            return false;
        if (errno != EEXIST && errno != ENOENT)
            break;
    }
    return cli_failed_at(app, run->folder);
}

/* ---- run.json ---- */

static json_t *options_json(tn_app *app)
{
    static const char *const origins[] = {"default", "file", "mxnet", "environment", "set"};
    json_t *list = json_array();
    size_t count = 0;

    (void)tn_app_check(app, tn_ctx_option_count(tn_app_ctx(app), &count));
    for (size_t i = 0; i < count; i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (tn_app_check(app, tn_ctx_option_at(tn_app_ctx(app), i, &o)))
            break;
        (void)json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:s, s:o}", "key", cli_json_text(o.key), "value", cli_json_text(o.value),
                      "origin", o.origin >= 0 && o.origin <= TN_ORIGIN_SET ? origins[o.origin] : "?", "where",
                      cli_json_text(o.where)));
    }
    return list;
}

static json_t *plugins_json(tn_app *app)
{
    json_t *list = json_array();
    size_t count = 0;

    (void)tn_app_check(app, tn_plugin_count(tn_app_ctx(app), &count));
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (tn_app_check(app, tn_plugin_at(tn_app_ctx(app), i, &p)))
            break;
        if (p.state == TN_PLUGIN_LOADED || p.state == TN_PLUGIN_READY)
            (void)json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:b}", "name", cli_json_text(p.name),
                                                        "version", cli_json_text(p.version), "build_id",
                                                        cli_json_text(p.build_id), "loaded",
                                                        p.state == TN_PLUGIN_LOADED));
    }
    return list;
}

static const char *file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "";
}

static json_t *data_json(tn_data *data)
{
    char sha[65] = "";

    if (!data || !tn_data_sha256(data, sha))
        return json_null();
    return json_pack("{s:o, s:I, s:o, s:o, s:s}", "name", cli_json_text(tn_data_name(data)), "samples",
                     (json_int_t)tn_data_count(data), "images",
                     cli_json_text(file_name(tn_data_file(data, 0))), "labels",
                     cli_json_text(file_name(tn_data_file(data, 1))), "sha256", sha);
}

/* Which worker of a job this is, and which parts of the data it trains on: one for each of its devices. */
static json_t *job_json(tn_app *app, const tn_train_info *info)
{
    const json_int_t devices = (json_int_t)tn_app_devices(app);
    const char *type = tn_ctx_option(tn_app_ctx(app), "kvstore.type");

    return json_pack("{s:s, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "type", type ? type : "", "rank",
                     (json_int_t)info->rank, "workers", (json_int_t)info->workers, "shard", "num_parts",
                     devices * info->workers, "part_index", devices * info->rank, "parts", devices, "samples",
                     (json_int_t)info->train_count);
}

static json_t *command_json(const cli_args *args)
{
    json_t *list = json_array();

    (void)json_array_append_new(list, json_string("tenon"));
    for (int i = 1; i < args->argc; i++)
        (void)json_array_append_new(list, cli_json_text(args->argv[i]));
    return list;
}

static json_t *versions_json(void)
{
    struct utsname host;

    cli_machine_system(&host);
    return json_pack("{s:s, s:s, s:s, s:{s:o, s:o, s:o, s:I}}", "tenon", tn_version(), "build_id",
                     tn_build_id(), "jansson", jansson_version_str(), "host", "system",
                     cli_json_text(host.sysname), "release", cli_json_text(host.release), "machine",
                     cli_json_text(host.machine), "processors", (json_int_t)cli_machine_processors());
}

static bool record_save(cli_run *run, tn_app *app)
{
    char *path = cli_path(run->folder, "run.json");
    bool ok = path ? cli_json_save(app, path, run->record) : no_memory(app);

    free(path);
    return ok;
}

/* A resumed run keeps its first command and notes each further one. */
static void command_set(cli_run *run, const cli_args *args, const tn_train_info *info, const char *now)
{
    json_t *resumed;

    if (!json_object_get(run->record, "command")) {
        (void)json_object_set_new(run->record, "command", command_json(args));
        (void)json_object_set_new(run->record, "started", json_string(now));
        return;
    }
    if (!json_is_array(resumed = json_object_get(run->record, "resumed"))) {
        (void)json_object_set_new(run->record, "resumed", json_array());
        resumed = json_object_get(run->record, "resumed");
    }
    (void)json_array_append_new(resumed,
                                json_pack("{s:s, s:I, s:o}", "time", now, "step",
                                          (json_int_t)info->resumed_step, "command", command_json(args)));
}

/* Names of the data's classes beside the model, where `predict` finds them. */
static bool names_save(cli_run *run, tn_app *app, const tn_data *data)
{
    char *path = tn_data_class_name(data, 0) ? cli_path(run->folder, "classes.txt") : NULL;
    FILE *file = path ? fopen(path, "we") : NULL;
    const char *name;
    bool ok = !path || file;

    errno = 0;
    for (int64_t k = 0; file && (name = tn_data_class_name(data, k)); k++)
        ok = fprintf(file, "%s\n", name) > 0 && ok;
    if (file)
        ok = !fclose(file) && ok;
    if (!ok)
        (void)cli_failed_at(app, path);
    free(path);
    return ok;
}

/* What the model takes, which `predict` and `eval` read. A worker beside worker 0 leaves it to that one. */
static bool about_save(const cli_run *run, tn_app *app, const tn_data *data)
{
    char *path = run->rank ? NULL : cli_path(run->folder, CLI_ABOUT);
    const bool ok = run->rank || (path && tn_data_about_save(data, path));

    if (!ok && tn_app_ok(app))
        (void)no_memory(app);
    free(path);
    return ok;
}

bool cli_run_begin(cli_run *run, tn_app *app, const cli_args *args, tn_train *train)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    char now[32];

    tn_train_info_get(train, 0, &info);
    if (!run->record && !(run->record = json_object()))
        return no_memory(app);
    cli_time_text(now);
    command_set(run, args, &info, now);
    (void)json_object_set_new(run->record, "model", cli_json_text(run->model));
    (void)json_object_set_new(run->record, "data_name", cli_json_text(run->data));
    (void)json_object_set_new(run->record, "device", cli_json_text(info.device ? info.device : ""));
    (void)json_object_set_new(run->record, "parameters", json_integer((json_int_t)info.param_elements));
    (void)json_object_set_new(run->record, "seed", json_integer((json_int_t)info.seed));
    (void)json_object_set_new(run->record, "data",
                              json_pack("{s:o, s:o}", "train", data_json(tn_train_data(train)), "valid",
                                        data_json(tn_train_valid(train))));
    if (info.workers > 1)
        (void)json_object_set_new(run->record, "job", job_json(app, &info));
    (void)json_object_del(run->record, "launch"); /* of a run that is resumed */
    if (*launch_number())
        (void)json_object_set_new(run->record, "launch", cli_json_text(launch_number()));
    (void)json_object_set_new(run->record, "versions", versions_json());
    (void)json_object_set_new(run->record, "plugins", plugins_json(app));
    (void)json_object_set_new(run->record, "options", options_json(app));
    (void)json_object_del(run->record, "result");
    (void)json_object_del(run->record, "ended");
    run->begun = tn_app_ok(app) && names_save(run, app, tn_train_data(train)) &&
                 about_save(run, app, tn_train_data(train)) && record_save(run, app);
    return run->begun;
}

static bool curves_save(cli_run *run, tn_app *app)
{
    char *path = cli_path(run->folder, "curves.svg");
    cli_picture p;
    bool ok = path ? cli_picture_begin(&p, app) : no_memory(app);

    if (ok) {
        cli_curves_write(p.out, run->epochs, run->epoch_count);
        ok = cli_picture_end(&p, app, path);
    }
    free(path);
    return ok;
}

/* The lock is held: what lies in the folder stays as it is from here on. */
static bool folder_settle(cli_run *run, tn_app *app, bool resume)
{
    char *record = cli_path(run->folder, "run.json"), *text;
    const bool left = run->anew || !record || !access(record, F_OK);
    const cli_folder_state state = cli_folder_look(run->folder);

    free(record);
    if (run->rank) /* notes of a worker, which a later one goes on with */
        return true;
    if (!resume && !run->again && !may_begin(app, run->folder, &run->anew))
        return false;
    if (resume && state != CLI_FOLDER_RUN && state != CLI_FOLDER_BROKEN_OFF) {
        text =
            cli_format("%s has no checkpoint to go on from: train anew, into another folder or once this one "
                       "is removed",
                       run->folder);
        (void)tn_app_fail(app, TN_E_KEY, text ? text : run->folder);
        free(text);
        return false;
    }
    cli_folder_clean(run->folder); /* what is refused stays as it is */
    run->anew = state == CLI_FOLDER_BROKEN_OFF && (resume || left);
    errno = 0;
    return !run->anew || cli_folder_best_keep(run->folder) || cli_failed_at(app, run->folder);
}

bool cli_run_lock(cli_run *run, tn_app *app, bool resume, cli_lock_owner *found)
{
    char *folder = cli_path(run->folder, CLI_CHECKPOINTS);
    bool ok = folder ? folders_make(app, folder) && cli_lock_take(&run->lock, app, folder, found) &&
                           folder_settle(run, app, resume)
                     : no_memory(app);

    free(folder);
    return ok;
}

void cli_run_failed(cli_run *run, tn_app *app)
{
    char now[32];

    if (!run->begun)
        return;
    cli_time_text(now);
    (void)json_object_set_new(run->record, "ended", json_string(now));
    (void)json_object_set_new(
        run->record, "result",
        json_pack("{s:s, s:o}", "status", "failed", "error", cli_json_text(tn_app_error(app))));
    (void)record_save(run, app); /* the app keeps the training's own error */
}

bool cli_run_end(cli_run *run, tn_app *app, json_t *result)
{
    char now[32];

    cli_time_text(now);
    (void)json_object_set_new(run->record, "ended", json_string(now));
    (void)json_object_set_new(run->record, "result", result);
    (void)json_object_set_new(run->record, "plugins", plugins_json(app));
    return curves_save(run, app) && record_save(run, app);
}

/* ---- metrics.jsonl ---- */

json_t *cli_epoch_json(const cli_epoch *e)
{
    json_t *o =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)e->epoch, "step",
                  (json_int_t)e->step, "loss", cli_json_number(e->loss), e->numbers ? "r2" : "accuracy",
                  cli_json_number(e->accuracy), "valid_loss", cli_json_number(e->valid_loss),
                  e->numbers ? "valid_r2" : "valid_accuracy", cli_json_number(e->valid_accuracy), "lr",
                  cli_json_number(e->lr), "seconds", cli_json_number(e->seconds));

    if (o && e->store)
        (void)json_object_set(o, "kvstore", e->store);
    return o;
}

static void epochs_forget(cli_run *run)
{
    while (run->epoch_count)
        json_decref(run->epochs[--run->epoch_count].store);
}

static bool epoch_keep(cli_run *run, tn_app *app, const cli_epoch *epoch)
{
    if (run->epoch_count == run->epoch_capacity) {
        size_t more = run->epoch_capacity ? 2 * run->epoch_capacity : 32;
        cli_epoch *grown = run->epoch_count < EPOCHS_MAX ? realloc(run->epochs, more * sizeof *grown) : NULL;

        if (!grown)
            return no_memory(app);
        run->epochs = grown;
        run->epoch_capacity = more;
    }
    run->epochs[run->epoch_count++] = *epoch;
    (void)json_incref(epoch->store);
    return true;
}

static bool lines_write(const cli_run *run, size_t first, FILE *file)
{
    bool ok = true;

    for (size_t i = first; ok && i < run->epoch_count; i++) {
        json_t *o = cli_epoch_json(&run->epochs[i]);

        ok = o && !json_dumpf(o, file, CLI_JSON_FLAGS | JSON_COMPACT) && fputc('\n', file) != EOF;
        json_decref(o);
    }
    return ok;
}

/* `all`: written anew; else the last epoch is added. */
static bool metrics_write(const cli_run *run, tn_app *app, bool all)
{
    char *path = cli_path(run->folder, "metrics.jsonl"), *text = NULL;
    size_t bytes = 0;
    FILE *file;
    bool ok;

    if (!path)
        return no_memory(app);
    errno = 0;
    file = all ? open_memstream(&text, &bytes) : fopen(path, "ae");
    ok = file && lines_write(run, all ? 0 : run->epoch_count - 1, file);
    if (file)
        ok = !fclose(file) && ok;
    if (!ok)
        (void)cli_failed_at(app, path);
    else if (all)
        ok = cli_text_save(app, path, text, bytes);
    free(text);
    free(path);
    return ok;
}

bool cli_run_epoch_add(cli_run *run, tn_app *app, const cli_epoch *epoch)
{
    return epoch_keep(run, app, epoch) && metrics_write(run, app, false);
}

static double number_at(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool cli_run_epochs(cli_run *run, tn_app *app, int64_t step)
{
    char *path = cli_path(run->folder, "metrics.jsonl"), line[LINE_MAX_BYTES];
    FILE *file;
    bool ok = true;

    if (!path)
        return no_memory(app);
    epochs_forget(run);
    file = fopen(path, "re");
    while (file && ok && fgets(line, sizeof line, file)) {
        json_t *o = json_loads(line, 0, NULL); /* a torn last line is no JSON and goes */
        const bool numbers = json_object_get(o, "r2") != NULL;
        cli_epoch e = {0,
                       0,
                       number_at(o, "loss"),
                       number_at(o, numbers ? "r2" : "accuracy"),
                       number_at(o, "valid_loss"),
                       number_at(o, numbers ? "valid_r2" : "valid_accuracy"),
                       number_at(o, "lr"),
                       number_at(o, "seconds"),
                       numbers,
                       json_object_get(o, "kvstore")};

        e.epoch = (int64_t)json_integer_value(json_object_get(o, "epoch"));
        e.step = (int64_t)json_integer_value(json_object_get(o, "step"));
        if (o && e.step <= step && e.epoch > (run->epoch_count ? run->epochs[run->epoch_count - 1].epoch : 0))
            ok = epoch_keep(run, app, &e);
        json_decref(o);
    }
    if (file)
        (void)fclose(file);
    free(path);
    return ok;
}

bool cli_run_rewind(cli_run *run, tn_app *app, int64_t step)
{
    return cli_run_epochs(run, app, step) && metrics_write(run, app, true);
}

void cli_run_fini(cli_run *run)
{
    char *checkpoints = run->folder ? cli_path(run->folder, CLI_CHECKPOINTS) : NULL;

    cli_lock_drop(&run->lock);
    if (checkpoints)
        (void)rmdir(checkpoints); /* if nothing came to lie there: the training never began */
    if (run->made)
        (void)rmdir(run->folder);
    if (run->runs_made)
        (void)rmdir(CLI_RUNS);
    free(checkpoints);
    free(run->folder);
    free(run->model);
    free(run->data);
    epochs_forget(run);
    free(run->epochs);
    json_decref(run->record);
    memset(run, 0, sizeof *run);
}
