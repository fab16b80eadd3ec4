/*
 * tenon train: a training from options to a run folder.
 *
 * All of the training itself is nn's tn_train; here are the folder, signals, what is shown, and the two lives
 * of a run: new, or resumed with what its run.json says. A resumed run's options come first, so the command
 * line may change them; what has to stay (model, data, batch, seed, optimizer) is compared with the
 * checkpoint.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "kv/pace.h"
#include "model.h"
#include "runs/runs.h"
#include "tenon/nn_data.h"
#include "train/train.h"

#define DATA_DEFAULT "digits"
#define BY_WRITER "-by-writer"
#define SAME_SIGNAL_S 0.2
#define GRACE_S 3 /* that a training has for its first step once it is asked to stop */

typedef struct training {
    const cli_args *args;
    tn_app *app;
    tn_kv *store; /* of several workers; NULL: this process trains alone */
    int64_t workers;
    char *checkpoints;
    tn_train *train;
    cli_run run;
    cli_view view;
    bool broken_said[2]; /* of the data to train and to validate on */
    bool json, resume, begun;
    bool finished; /* resumed, but no step is left: nothing is changed */
} training;

/* Takes `o`. Of several workers each says which one it is. */
static void line(const training *t, json_t *o)
{
    if (t->workers > 1)
        (void)json_object_set_new(o, "rank", json_integer((json_int_t)t->run.rank));
    cli_json_line(o);
}

/* ---- signals ---- */

/* Threads of others, as OpenMP's, do not block signals: two may be taken at once, on two threads. */
static _Atomic int stop_asked, under_way;
static _Atomic double asked_at; /* is there before stop_asked says so */

/* Before the first step is computed there is nothing to save, and what a step loads may never return: a BLAS
 * that finds no memory tries for ever. So the signal does then what it does by default. */
static void on_alarm(int number)
{
    const int asked = stop_asked;

    (void)number;
    if (under_way || !asked)
        return;
    (void)signal(asked, SIG_DFL);
    (void)raise(asked);
}

/* The first ^C asks; the second stops at once. SIGTERM and SIGUSR1 (a batch system's warning) ask. A signal
 * that comes again within a moment is the same one: wrappers such as timeout send it to the process and to
 * its group. */
static void on_signal(int number)
{
    const double at = cli_now();
    const int before = stop_asked;

    if (number == SIGINT && before == SIGINT && at - asked_at > SAME_SIGNAL_S)
        _exit(CLI_EXIT_STOPPED);
    if (number != before)
        asked_at = at;
    stop_asked = number;
    if (!under_way && number != SIGUSR1)
        (void)alarm(GRACE_S);
}

bool cli_stop_asked(void)
{
    return stop_asked != 0;
}

static void signals_take(const int *numbers, size_t count)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    (void)sigaddset(&action.sa_mask, SIGINT);
    (void)sigaddset(&action.sa_mask, SIGTERM);
    (void)sigaddset(&action.sa_mask, SIGUSR1);
    for (size_t i = 0; i < count; i++)
        if (!sigaction(numbers[i], NULL, &before) && (before.sa_handler != SIG_IGN || numbers[i] == SIGUSR1))
            (void)sigaction(numbers[i], &action, NULL);
}

/* A warning is no order to end: it is kept from the beginning. */
static void warning_take(void)
{
    signals_take((const int[]){SIGUSR1}, 1);
}

static void stops_take(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, NULL);
    signals_take((const int[]){SIGINT, SIGTERM}, 2);
}

static void steps_go(void)
{
    under_way = 1;
    (void)alarm(0);
}

void cli_stops_take(void)
{
    under_way = 1;
    stops_take();
}

/* ---- events ---- */

/* Whether the run had its end, and what is asked now adds no step to it. */
static bool is_finished(const training *t, const tn_train_info *info)
{
    const json_t *result = json_object_get(t->run.record, "result");
    const char *status = json_string_value(json_object_get(result, "status"));

    return t->resume && status && !strcmp(status, "done") && !t->args->value[OPT_BY_WRITER] &&
           (info->step >= info->steps || info->ended_early);
}

static void event_begin(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};

    if (t->begun)
        return;
    t->begun = true;
    tn_train_info_get(t->train, 0, &info);
    if ((t->finished = is_finished(t, &info)))
        return;
    stops_take();
    if (t->resume && !t->args->value[OPT_QUIET])
        cli_resumed_compare(&t->run, t->app);
    if (((t->resume || t->run.anew || t->run.again) && !cli_run_rewind(&t->run, t->app, info.resumed_step)) ||
        !cli_run_begin(&t->run, t->app, t->args, t->train))
        return;
    cli_view_begin(&t->view, &t->run, &info);
    if (*tn_data_note(tn_train_data(t->train)))
        cli_view_note(&t->view, "note: %s", tn_data_note(tn_train_data(t->train)));
    if (t->json)
        line(t, json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "event", "start",
                          "run", cli_json_text(t->run.id), "folder", cli_json_text(t->run.folder), "model",
                          cli_json_text(info.model), "device", cli_json_text(info.device), "seed",
                          (json_int_t)info.seed, "epochs", (json_int_t)info.epochs, "batch",
                          (json_int_t)info.batch_size, "train", (json_int_t)info.train_count, "valid",
                          (json_int_t)info.valid_count, "parameters", (json_int_t)info.param_elements,
                          "resumed_step", (json_int_t)info.resumed_step));
}

/* The training learns numbers: metrics are r2, rmse and mae, of which the first stands for an accuracy. */
static bool is_regression(const training *t)
{
    return tn_data_task(tn_train_data(t->train)) == TN_TASK_NUMBERS;
}

static void epoch_tell(training *t, const cli_epoch *epoch, const tn_train_info *info)
{
    json_t *o;

    if (!tn_app_ok(t->app) || !cli_run_epoch_add(&t->run, t->app, epoch))
        return;
    cli_view_epoch(&t->view, info);
    if (!t->json || !(o = json_pack("{s:s}", "event", "epoch")))
        return;
    (void)json_object_update_new(o, cli_epoch_json(epoch));
    line(t, o);
}

/* Images that could not be read, of which the next ones stand in the place: once. */
static void broken_say(training *t)
{
    const tn_data *const all[] = {tn_train_data(t->train), tn_train_valid(t->train)};

    for (size_t i = 0; i < 2; i++) {
        const int64_t count = !t->broken_said[i] && all[i] ? tn_data_broken_images(all[i]) : 0;

        if (!count)
            continue;
        t->broken_said[i] = true;
        cli_view_note(&t->view, "%s: %lld of %lld images cannot be read: %s%s; the next image stands in",
                      tn_data_name(all[i]), (long long)count, (long long)tn_data_count(all[i]),
                      count > 1 ? "the first is " : "", tn_data_broken_text(all[i], 0));
    }
}

static void event_epoch(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    cli_epoch epoch;

    tn_train_info_get(t->train, 1, &info);
    epoch = (cli_epoch){info.epoch,          info.step, info.loss,          info.accuracy,    info.valid_loss,
                        info.valid_accuracy, info.lr,   info.epoch_seconds, is_regression(t), NULL};
    if (t->workers > 1 && !t->run.rank)
        epoch.store = cli_kv_epoch(t->app);
    epoch_tell(t, &epoch, &info);
    broken_say(t);
    json_decref(epoch.store);
}

static void event_step(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};

    if (!under_way) {
        tn_train_info_get(t->train, 1, &info); /* waits for the step, which is only queued by now */
        steps_go();
    }
    if (!cli_view_due(&t->view))
        return;
    tn_train_info_get(t->train, 1, &info);
    cli_view_step(&t->view, &info);
}

static int32_t on_event(void *arg, int32_t kind, tn_train *train)
{
    training *t = arg;

    t->train = train;
    if (kind == TN_TRAIN_BEGIN)
        event_begin(t);
    else if (kind == TN_TRAIN_STEP)
        event_step(t);
    else if (kind == TN_TRAIN_EPOCH)
        event_epoch(t);
    return stop_asked != 0 || !tn_app_ok(t->app);
}

/* ---- the end ---- */

static json_t *result_json(const training *t, const char *event, const tn_train_info *info)
{
    const bool numbers = is_regression(t);
    json_t *o = json_pack("{s:s}", "event", event);

    if (numbers)
        cli_numbers_json(o, info->valid_metrics[0], info->valid_metrics[1], info->valid_metrics[2]);
    else
        (void)json_object_set_new(o, "accuracy", cli_json_number(info->valid_accuracy));
    (void)json_object_set_new(o, "loss", cli_json_number(info->valid_loss));
    (void)json_object_set_new(o, "step", json_integer((json_int_t)info->step));
    (void)json_object_set_new(o, numbers ? "best_r2" : "best_accuracy", cli_json_number(info->best_accuracy));
    (void)json_object_set_new(o, "best_epoch", json_integer((json_int_t)info->best_epoch));
    (void)json_object_set_new(o, "diverged_epoch", json_integer((json_int_t)info->diverged_epoch));
    return o;
}

static int stopped(training *t, const tn_train_info *info)
{
    json_t *o = result_json(t, "stopped", info), *copy;

    (void)json_object_set_new(o, "folder", cli_json_text(t->run.folder));
    copy = json_copy(o);
    (void)json_object_del(copy, "event");
    (void)json_object_set_new(copy, "status", json_string("stopped"));
    if (!cli_run_end(&t->run, t->app, copy)) {
        json_decref(o);
        return CLI_EXIT_FAILED;
    }
    cli_view_clear(&t->view);
    if (!t->args->value[OPT_QUIET])
        (void)fprintf(stderr, "stopped after step %lld of %lld; checkpoint %s\n", (long long)info->step,
                      (long long)info->steps, info->checkpoint ? info->checkpoint : "none");
    if (!t->args->value[OPT_QUIET] && !info->rank) /* a job goes on from worker 0's folder */
        (void)fprintf(stderr, "resume: tenon train --resume %s\n", t->run.folder);
    if (t->json)
        line(t, o);
    else
        json_decref(o);
    return CLI_EXIT_STOPPED;
}

static int32_t on_other_event(void *arg, int32_t kind, tn_train *train)
{
    (void)arg;
    (void)kind;
    (void)train;
    return stop_asked != 0;
}

/* The same training on DATA-by-writer, whose test part is by other writers; without a folder. NaN: failed. */
static double writer_disjoint(training *t)
{
    size_t length = strcspn(t->run.data, ":");
    char *data = cli_format("%.*s" BY_WRITER, (int)length, t->run.data);
    tn_train *train;
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info), .valid_accuracy = NAN};

    if (!data)
        return NAN;
    cli_view_note(&t->view, "once more on %s, whose test images are by other writers", data);
    train =
        tn_train_open(t->app, .model = t->run.model, .data = data, .valid = data, .event = on_other_event);
    if (train && tn_train_run(train))
        tn_train_info_get(train, 1, &info);
    free(data);
    return info.valid_accuracy;
}

static bool model_save(training *t, char sha256[65])
{
    char *prefix = t->run.rank ? NULL : cli_path(t->run.folder, "model");

    if (t->run.rank)
        return tn_net_sha256(tn_train_net(t->train), sha256);
    if (!prefix)
        return false;
    tn_net_export(tn_train_net(t->train), prefix);
    free(prefix);
    return tn_app_ok(t->app) && tn_net_sha256(tn_train_net(t->train), sha256);
}

/* The two files of the model, if one is not there: as a doctor advises who found it damaged. */
static bool model_again(training *t, const char *wanted, char sha256[65])
{
    static const char *const names[] = {"model-symbol.json", "model-0000.params"};
    bool missing = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = cli_path(t->run.folder, names[i]);
        struct stat s;

        if (!path)
            return false;
        missing |= stat(path, &s) || !S_ISREG(s.st_mode); /* a folder is told of by who writes there */
        free(path);
    }
    if (!tn_net_sha256(tn_train_net(t->train), sha256))
        return false;
    if (strcmp(wanted, sha256)) {
        (void)tn_app_fail(
            t->app, TN_E_FORMAT,
            "the last checkpoint does not hold what run.json says that the training ended with");
        return false;
    }
    if (!missing)
        return true;
    cli_view_note(&t->view, "the model's files were not whole: written again from the last checkpoint");
    return model_save(t, sha256);
}

/* Says what run.json says of the end, which stays as it is. */
static int finished(training *t)
{
    const json_t *result = json_object_get(t->run.record, "result");
    const char *wanted = json_string_value(json_object_get(result, "params_sha256"));
    const json_t *accuracy = json_object_get(result, "accuracy"), *loss = json_object_get(result, "loss");
    char sha256[65] = "";
    json_t *o;

    if (!model_again(t, wanted ? wanted : "", sha256))
        return CLI_EXIT_FAILED;
    cli_view_clear(&t->view);
    cli_view_note(
        &t->view,
        "%s is finished: there is nothing to go on with, nothing was changed%s; --epochs with a larger "
        "number trains on",
        t->run.folder, t->args->setting_count ? ", the options given have no effect" : "");
    if (t->json && (o = json_pack("{s:s}", "event", "done"))) {
        (void)json_object_update_missing(o, (json_t *)(uintptr_t)result);
        (void)json_object_del(o, "status");
        (void)json_object_set_new(o, "folder", cli_json_text(t->run.folder));
        line(t, o);
        return 0;
    }
    if (json_is_number(accuracy) && json_is_number(loss))
        (void)printf("accuracy %.4f\nloss %.4f\n", json_number_value(accuracy), json_number_value(loss));
    (void)printf("params_sha256 %s\nfolder %s\n", sha256, t->run.folder);
    return 0;
}

static int done(training *t, tn_train_info *info)
{
    double by_writer = NAN;
    json_t *o, *result;
    char sha256[65] = "";

    if (!model_save(t, sha256))
        return CLI_EXIT_FAILED;
    if (!is_regression(t) && !isfinite(info->valid_accuracy) && tn_train_valid(t->train)) {
        info->valid_accuracy = tn_net_eval(tn_train_net(t->train), tn_train_valid(t->train), "accuracy");
        info->valid_loss = tn_net_eval(tn_train_net(t->train), tn_train_valid(t->train), "loss");
    }
    if (t->args->value[OPT_BY_WRITER])
        by_writer = writer_disjoint(t);
    o = result_json(t, "done", info);
    (void)json_object_set_new(o, "params_sha256", json_string(sha256));
    (void)json_object_set_new(o, "early_stop", json_boolean(info->ended_early));
    if (t->args->value[OPT_BY_WRITER])
        (void)json_object_set_new(o, "writer_disjoint_accuracy", cli_json_number(by_writer));
    (void)json_object_set_new(o, "seconds", cli_json_number(info->seconds));
    (void)json_object_set_new(o, "folder", cli_json_text(t->run.folder));
    result = json_copy(o);
    (void)json_object_del(result, "event");
    (void)json_object_set_new(result, "status", json_string("done"));
    if (!tn_app_ok(t->app) || !cli_run_end(&t->run, t->app, result)) {
        json_decref(o);
        return CLI_EXIT_FAILED;
    }
    cli_view_end(&t->view, info);
    broken_say(t); /* of an epoch that was stopped */
    if (info->ended_early)
        cli_view_note(&t->view,
                      "ended after epoch %lld of %lld: no better one in %lld epochs; the best was %lld",
                      (long long)info->epoch, (long long)info->epochs, (long long)info->waited,
                      (long long)info->best_epoch);
    if (t->json) {
        line(t, o);
        return 0;
    }
    json_decref(o);
    if (tn_train_valid(t->train) && is_regression(t))
        cli_numbers_print(info->valid_metrics[0], info->valid_metrics[1], info->valid_metrics[2]);
    if (tn_train_valid(t->train) && !is_regression(t))
        (void)printf("accuracy %.4f\n", info->valid_accuracy);
    if (tn_train_valid(t->train))
        (void)printf("loss %.4f\n", info->valid_loss);
    if (t->args->value[OPT_BY_WRITER])
        (void)printf("writer_disjoint_accuracy %.4f\n", by_writer);
    (void)printf("params_sha256 %s\nfolder %s\n", sha256, t->run.folder);
    return 0;
}

/* ---- the beginning ---- */

/* Whether the word names a net that can be built; says so if not. */
static bool model_check(const char *model)
{
    char *fault = cli_model_fault(model);

    if (fault)
        cli_error("%s", fault);
    free(fault);
    return !fault;
}

/* Model and data as the options have them: the command line, else the resumed run, else a file. */
static bool names_find(training *t)
{
    const char *model = tn_ctx_option(tn_app_ctx(t->app), "train.model");
    const char *data = tn_ctx_option(tn_app_ctx(t->app), "train.data");

    if ((!model || !*model) && t->resume && !t->run.record) {
        if (!cli_run_in_use(t->app, t->run.folder))
            cli_error(
                "%s: the run ended before run.json was written, so nothing tells its model: begin it again "
                "with the command that began it",
                t->run.folder);
        return false;
    }
    if (!model || !*model) {
        cli_error("train: which MODEL? zoo:NAME, a -symbol.json or an .ini with [train] model; `tenon train "
                  "--help` shows more");
        return false;
    }
    t->run.model = cli_format("%s", model);
    t->run.data = cli_format("%s", data && *data ? data : DATA_DEFAULT);
    return t->run.model && t->run.data && model_check(model);
}

/* What a resumed training must have in common with its checkpoint. */
static char *config_text(training *t)
{
    static const char *const keys[] = {"run.seed", "train.batch", "train.optimizer", "train.shuffle",
                                       "model.pad"};
    char *text = cli_format("model=%s data=%s", t->run.model, t->run.data);

    for (size_t i = 0; text && i < sizeof keys / sizeof *keys; i++) {
        const char *value = tn_ctx_option(tn_app_ctx(t->app), keys[i]);
        char *more = cli_format("%s %s=%s", text, keys[i], value ? value : "");

        free(text);
        text = more;
    }
    return text;
}

/* The folder is ours from here on; a lock that a killed process left is taken over, with a word. */
static bool folder_take(training *t)
{
    cli_lock_owner found = {0};

    if (!cli_run_lock(&t->run, t->app, t->resume, &found))
        return false;
    if (found.pid)
        cli_view_note(&t->view, "note: %s was in use by process %ld, which is gone; its lock is taken over",
                      t->run.folder, found.pid);
    if (t->run.anew) {
        cli_view_note(&t->view, "note: the run in %s ended before its first checkpoint: it begins anew",
                      t->run.folder);
        t->resume = false;
    }
    return tn_app_ok(t->app);
}

static int train_run(training *t)
{
    char *config = config_text(t);
    char *best = cli_path(t->run.folder, "model");
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    int64_t keep_best = 0;
    int code = CLI_EXIT_FAILED;

    (void)tn_app_check(t->app, tn_ctx_option_int(tn_app_ctx(t->app), "train.checkpoint_best", &keep_best));
    if (!t->checkpoints || !config || !best || !folder_take(t))
        goto cleanup;
    t->train = tn_train_open(t->app, .model = t->run.model, .data = t->run.data, .checkpoint = t->checkpoints,
                             .resume = t->resume, .config_hash = config, .event = on_event, .arg = t,
                             .best = keep_best ? best : NULL, .store = t->store);
    if (!t->train || !tn_app_ok(t->app))
        goto cleanup;
    if (tn_train_run(t->train)) {
        tn_train_info_get(t->train, 1, &info);
        code = t->finished ? finished(t) : done(t, &info);
    } else if (tn_app_ok(t->app)) {
        tn_train_info_get(t->train, 1, &info);
        code = stopped(t, &info);
    }
    if (!tn_app_ok(t->app))
        cli_run_failed(&t->run, t->app);

cleanup:
    free(best);
    free(config);
    return code;
}

/* What a resumed run was, as settings that the command line may change. */
static size_t kept_settings(training *t, char **kept, size_t max)
{
    static const struct {
        const char *key, *field;
    } names[] = {{"train.model", "model"}, {"train.data", "data_name"}};
    size_t count = t->resume ? cli_run_settings(&t->run, kept, max - 2) : 0;

    for (size_t i = 0; t->resume && i < 2; i++) {
        const char *value = cli_run_text(&t->run, names[i].field);

        if (*value && (kept[count] = cli_format("%s=%s", names[i].key, value)))
            count++;
    }
    kept[count] = NULL;
    return count;
}

/* Joins the job, if the options name one. Worker 0 has the folder; the others keep notes of their own beside
 * it, and go on from its checkpoints. */
static bool job_join(training *t)
{
    const char *type = tn_ctx_option(tn_app_ctx(t->app), "kvstore.type");
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};

    if (!type || (strncmp(type, "dist_", 5) != 0 && strcmp(type, "mpi") != 0 && strcmp(type, "nccl") != 0))
        return true;
    if (t->args->value[OPT_BY_WRITER]) {
        cli_error("--by-writer trains twice, and a job trains once: not with kvstore.type=%s", type);
        return false;
    }
    if (tn_app_check(t->app, tn_kv_create(tn_app_ctx(t->app), type, &t->store)) ||
        tn_app_check(t->app, tn_kv_info_get(t->store, &info)))
        return false;
    t->workers = info.workers;
    t->run.rank = info.rank;
    if (info.rank)
        t->view.mode = CLI_VIEW_NONE;
    return true;
}

static int job_train(training *t)
{
    int code = CLI_EXIT_FAILED;

    if (!job_join(t))
        return code;
    if (t->resume)
        t->checkpoints = cli_path(t->run.folder, CLI_CHECKPOINTS);
    if (t->resume ? !t->run.rank || cli_run_beside(&t->run, t->app, t->run.folder)
                  : cli_run_make(&t->run, t->app, t->run.model)) {
        if (!t->checkpoints)
            t->checkpoints = cli_path(t->run.folder, CLI_CHECKPOINTS);
        code = train_run(t);
    }
    free(t->checkpoints);
    tn_kv_destroy(t->store);
    return code;
}

static int train_open(training *t)
{
    char *kept[CLI_SETTINGS_MAX];
    size_t kept_count = kept_settings(t, kept, CLI_SETTINGS_MAX);
    int code = CLI_EXIT_USAGE, closed;

    t->app = cli_app_open(t->args, (const char *const *)kept);
    if (tn_app_ok(t->app) && names_find(t)) {
        const cli_proof proof = {t->app, t->run.model, t->run.data, t->json};

        code = CLI_EXIT_FAILED;
        if (t->args->value[OPT_DRY_RUN])
            code = cli_prove_dry_run(&proof);
        else if (t->args->value[OPT_OVERFIT_ONE])
            code = cli_prove_overfit(&proof);
        else
            code = job_train(t);
    }
    cli_view_clear(&t->view);
    closed = cli_app_close(t->app, t->args);
    cli_error_set_before(NULL); /* the view goes with its caller */
    for (size_t i = 0; i < kept_count; i++)
        free(kept[i]);
    return closed ? closed : code;
}

/* The one word: a file of options, or a model. False: said why. */
static bool word_take(cli_args *args)
{
    const char *word = args->word_count ? args->words[0] : "";

    if (!cli_ends_with(word, ".ini"))
        return !*word || cli_args_setting(args, "train.model", word);
    if (args->value[OPT_CONFIG]) {
        cli_error("train: %s and --config %s: one file of options is read", word, args->value[OPT_CONFIG]);
        return false;
    }
    args->value[OPT_CONFIG] = word;
    return true;
}

int cmd_train(const cli_args *args)
{
    cli_args own = *args; /* with what the word means */
    training t = {
        .args = &own, .json = args->value[OPT_JSON] != NULL, .resume = args->value[OPT_RESUME] != NULL};
    int code = CLI_EXIT_USAGE;

    t.run.lock.fd = -1;
    if (args->value[OPT_DRY_RUN] && args->value[OPT_OVERFIT_ONE])
        cli_error("--dry-run makes one step, --overfit-one many: one of them at a time");
    else if (t.resume && args->value[OPT_OUT])
        cli_error("--out names a new run; --resume goes on in the folder of the old one");
    else if (word_take(&own) &&
             cli_view_init(&t.view, args->value[OPT_PROGRESS], args->value[OPT_QUIET] != NULL) &&
             (!t.resume || cli_run_find(&t.run, args->value[OPT_RESUME]))) {
        warning_take();
        code = train_open(&t);
    }
    cli_run_fini(&t.run);
    for (size_t i = args->setting_count; i < own.setting_count; i++)
        free(own.settings[i]);
    return code;
}
