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
#include <unistd.h>

#include "train.h"

#define DATA_DEFAULT "digits"
#define BY_WRITER "-by-writer"
#define SAME_SIGNAL_S 0.2

typedef struct training {
    const cli_args *args;
    tn_app *app;
    tn_train *train;
    cli_run run;
    cli_view view;
    bool json, resume, begun;
} training;

/* ---- signals ---- */

static volatile sig_atomic_t stop_asked;

/* The first ^C asks; the second stops at once. SIGTERM and SIGUSR1 (a batch system's warning) ask. A signal
 * that comes again within a moment is the same one: wrappers such as timeout send it to the process and to
 * its group. */
static void on_signal(int number)
{
    static double asked_at; /* read and written in the handler only, which its signals do not interrupt */
    double at = cli_now();

    if (number == SIGINT && stop_asked == SIGINT && at - asked_at > SAME_SIGNAL_S)
        _exit(CLI_EXIT_STOPPED);
    if (number != stop_asked)
        asked_at = at;
    stop_asked = number;
}

static void signals_take(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sigaddset(&action.sa_mask, numbers[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!sigaction(numbers[i], NULL, &before) && (before.sa_handler != SIG_IGN || numbers[i] == SIGUSR1))
            (void)sigaction(numbers[i], &action, NULL);
}

/* ---- events ---- */

static void event_begin(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};

    if (t->begun)
        return;
    t->begun = true;
    tn_train_info_get(t->train, 0, &info);
    if ((t->resume && !cli_run_rewind(&t->run, t->app, info.resumed_step)) ||
        !cli_run_begin(&t->run, t->app, t->args, t->train))
        return;
    cli_view_begin(&t->view, &t->run, &info);
    if (t->json)
        cli_json_line(json_pack(
            "{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "event", "start", "run",
            cli_json_text(t->run.id), "folder", cli_json_text(t->run.folder), "model",
            cli_json_text(info.model), "device", cli_json_text(info.device), "seed", (json_int_t)info.seed,
            "epochs", (json_int_t)info.epochs, "batch", (json_int_t)info.batch_size, "train",
            (json_int_t)info.train_count, "valid", (json_int_t)info.valid_count, "parameters",
            (json_int_t)info.param_elements, "resumed_step", (json_int_t)info.resumed_step));
}

static void event_epoch(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    cli_epoch epoch;
    json_t *o;

    tn_train_info_get(t->train, 1, &info);
    epoch = (cli_epoch){info.epoch,      info.step,           info.loss, info.accuracy,
                        info.valid_loss, info.valid_accuracy, info.lr,   info.epoch_seconds};
    if (!tn_app_ok(t->app) || !cli_run_epoch_add(&t->run, t->app, &epoch))
        return;
    cli_view_epoch(&t->view, &info);
    if (!t->json || !(o = json_pack("{s:s}", "event", "epoch")))
        return;
    (void)json_object_update_new(o, cli_epoch_json(&epoch));
    cli_json_line(o);
}

static void event_step(training *t)
{
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};

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

static json_t *result_json(const char *event, const tn_train_info *info)
{
    json_t *o = json_pack("{s:s, s:o, s:o}", "event", event, "accuracy",
                          cli_json_number(info->valid_accuracy), "loss", cli_json_number(info->valid_loss));

    (void)json_object_set_new(o, "step", json_integer((json_int_t)info->step));
    return o;
}

static int stopped(training *t, const tn_train_info *info)
{
    json_t *o = result_json("stopped", info), *copy;

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
        (void)fprintf(stderr,
                      "stopped after step %lld of %lld; checkpoint %s\nresume: tenon train --resume %s\n",
                      (long long)info->step, (long long)info->steps,
                      info->checkpoint ? info->checkpoint : "none", t->run.folder);
    if (t->json)
        cli_json_line(o);
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
    train = tn_train_open(t->app, .model = t->run.model, .data = data, .event = on_other_event);
    if (train && tn_train_run(train))
        tn_train_info_get(train, 1, &info);
    free(data);
    return info.valid_accuracy;
}

static bool model_save(training *t, char sha256[65])
{
    char *prefix = cli_path(t->run.folder, "model");

    if (!prefix)
        return false;
    tn_net_export(tn_train_net(t->train), prefix);
    free(prefix);
    return tn_app_ok(t->app) && tn_net_sha256(tn_train_net(t->train), sha256);
}

static int done(training *t, tn_train_info *info)
{
    double by_writer = NAN;
    json_t *o, *result;
    char sha256[65] = "";

    if (!model_save(t, sha256))
        return CLI_EXIT_FAILED;
    if (!isfinite(info->valid_accuracy) && tn_train_valid(t->train)) {
        info->valid_accuracy = tn_net_eval(tn_train_net(t->train), tn_train_valid(t->train), "accuracy");
        info->valid_loss = tn_net_eval(tn_train_net(t->train), tn_train_valid(t->train), "loss");
    }
    if (t->args->value[OPT_BY_WRITER])
        by_writer = writer_disjoint(t);
    o = result_json("done", info);
    (void)json_object_set_new(o, "params_sha256", json_string(sha256));
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
    cli_view_clear(&t->view);
    if (t->json) {
        cli_json_line(o);
        return 0;
    }
    json_decref(o);
    (void)printf("accuracy %.4f\nloss %.4f\n", info->valid_accuracy, info->valid_loss);
    if (t->args->value[OPT_BY_WRITER])
        (void)printf("writer_disjoint_accuracy %.4f\n", by_writer);
    (void)printf("params_sha256 %s\nfolder %s\n", sha256, t->run.folder);
    return 0;
}

/* ---- the beginning ---- */

static const char *zoo_name(const void *from, size_t index)
{
    (void)from;
    return tn_net_zoo_names()[index];
}

/* Whether the word names a net that can be built; says so if not. */
static bool model_check(const char *model)
{
    const char *name = strncmp(model, "zoo:", 4) ? model : model + 4, *near;

    for (const char *const *known = tn_net_zoo_names(); *known; known++)
        if (!strcmp(name, *known))
            return true;
    near = cli_nearest(name, zoo_name, NULL);
    cli_error("unknown model \"%s\"%s%s%s; nets are: zoo:lenet", model, near ? "; did you mean \"zoo:" : "",
              near ? near : "", near ? "\"?" : "");
    return false;
}

/* Model and data: of the command line, else of the resumed run. False: said why. */
static bool names_find(training *t)
{
    const cli_args *args = t->args;
    const char *model = args->word_count ? args->words[0] : cli_run_text(&t->run, "model");
    const char *data = args->value[OPT_DATA] ? args->value[OPT_DATA] : cli_run_text(&t->run, "data_name");

    if (!*model) {
        cli_error("train: which MODEL? nets are: zoo:lenet; `tenon train --help` tells more");
        return false;
    }
    t->run.model = cli_format("%s", model);
    t->run.data = cli_format("%s", *data ? data : DATA_DEFAULT);
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

static int train_run(training *t)
{
    char *checkpoints = cli_path(t->run.folder, CLI_CHECKPOINTS), *config = config_text(t);
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    int code = CLI_EXIT_FAILED;

    if (!checkpoints || !config)
        goto cleanup;
    t->train = tn_train_open(t->app, .model = t->run.model, .data = t->run.data, .checkpoint = checkpoints,
                             .resume = t->resume, .config_hash = config, .event = on_event, .arg = t);
    if (!t->train || !tn_app_ok(t->app))
        goto cleanup;
    if (tn_train_run(t->train)) {
        tn_train_info_get(t->train, 1, &info);
        code = done(t, &info);
    } else if (tn_app_ok(t->app)) {
        tn_train_info_get(t->train, 1, &info);
        code = stopped(t, &info);
    }

cleanup:
    free(config);
    free(checkpoints);
    return code;
}

static int train_open(training *t)
{
    char *kept[CLI_SETTINGS_MAX];
    size_t kept_count = t->resume ? cli_run_settings(&t->run, kept, CLI_SETTINGS_MAX) : 0;
    int code = CLI_EXIT_FAILED, closed;

    kept[kept_count] = NULL;
    t->app = cli_app_open(t->args, (const char *const *)kept);
    if (tn_app_ok(t->app) && (t->resume || cli_run_make(&t->run, t->app, t->run.model)))
        code = train_run(t);
    cli_view_clear(&t->view);
    closed = tn_app_close(t->app);
    for (size_t i = 0; i < kept_count; i++)
        free(kept[i]);
    return closed ? closed : code;
}

int cmd_train(const cli_args *args)
{
    training t = {
        .args = args, .json = args->value[OPT_JSON] != NULL, .resume = args->value[OPT_RESUME] != NULL};
    int code = CLI_EXIT_USAGE;

    if (cli_view_init(&t.view, args->value[OPT_PROGRESS], args->value[OPT_QUIET] != NULL) &&
        (!t.resume || cli_run_find(&t.run, args->value[OPT_RESUME])) && names_find(&t)) {
        signals_take();
        code = train_open(&t);
    }
    cli_run_fini(&t.run);
    return code;
}
