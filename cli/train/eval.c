/*
 * tenon eval: a saved model on a data set, and what it takes for what; the hash of a .params file.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "model.h"
#include "runs/runs.h"

typedef struct evaluation {
    tn_evaluation found;
    tn_data *data;
    cli_saved saved;
    char sha256[65];
} evaluation;

static void params_hash(tn_app *app, const char *path, char sha256[65])
{
    const tn_device *host = NULL;
    tn_params *params = NULL;

    if (!tn_app_check(app, tn_device_get(tn_app_ctx(app), "cpu", &host)) &&
        !tn_app_check(app, tn_params_load(tn_app_ctx(app), path, host, &params)))
        (void)tn_app_check(app, tn_params_sha256(params, sha256));
    tn_params_destroy(params);
}

/* The data of --data, or of a run (`*run`) that which it was trained on. free() */
static char *data_name(tn_app *app, const cli_args *args, const cli_saved *saved, bool *run)
{
    char why[CLI_WHY_BYTES];
    json_t *record = saved->folder && !args->value[OPT_DATA] ? cli_record_json(saved->folder, why) : NULL;
    const char *of_run = json_string_value(json_object_get(record, "data_name"));
    const char *name = of_run ? of_run : tn_ctx_option(tn_app_ctx(app), "train.data"), *colon;
    char *text;

    if (!name || !*name)
        name = "digits";
    if (!of_run && !args->value[OPT_DATA] && !args->value[OPT_QUIET] && !strcmp(name, "digits"))
        cli_error("eval: --data names yours; without it the digits are taken");
    /* NAME, and the part that a run was trained on, stand for the test part. */
    colon = strrchr(name, ':');
    text = of_run && colon && !strcmp(colon, ":train") ? cli_format("%.*s:test", (int)(colon - name), name)
                                                       : cli_format("%s%s", name, colon ? "" : ":test");
    *run = of_run != NULL;
    json_decref(record);
    if (!text)
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    return text;
}

/* Pixels: they are divided by 255, whatever the model was trained on. */
static bool is_bytes(const tn_data *data)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};

    return tn_data_field_at(data, 0, &field) && field.dtype == TN_U8;
}

/* Neither a file nor a folder nor a data set is called so; the part behind the colon does not count. */
static bool is_absent(tn_app *app, const char *name)
{
    const char *colon = strrchr(name, ':');
    char *set = cli_format("%.*s", (int)(colon ? colon - name : (ptrdiff_t)strlen(name)), name),
         *folder = NULL;
    const bool absent = set && access(set, F_OK) && tn_data_find(tn_app_ctx(app), set, &folder);

    tn_free(folder);
    free(set);
    return absent;
}

static void evaluate(tn_app *app, const cli_args *args, evaluation *e)
{
    bool of_run = false;
    char *name = data_name(app, args, &e->saved, &of_run), *about = cli_about_beside(e->saved.symbol);
    int64_t batch = 0;
    tn_net *net;

    (void)tn_app_check(app, tn_ctx_option_int(tn_app_ctx(app), "train.batch", &batch));
    net = tn_net_load_files(app, e->saved.symbol, e->saved.params, NULL);
    e->data = tn_data_open(app, name, .batch = batch, .about = about);
    if (net && e->data && !about && !is_bytes(e->data))
        cli_about_missed(args, e->saved.symbol,
                         "scaling and classes are taken from this data, not from what it was trained on");
    if (net && !e->data && of_run && is_absent(app, name)) {
        tn_app_report(app);
        cli_error("eval: %s was trained on this data; --data says where it is now", e->saved.folder);
    }
    free(name);
    free(about);
    if (net && e->data)
        (void)tn_net_evaluate(net, e->data, &e->found);
}

/* ---- who is taken for whom ---- */

/* Samples of the class, and those that were taken for it. */
static void class_sums(const tn_evaluation *f, int64_t k, int64_t *are, int64_t *said)
{
    *are = *said = 0;
    for (int64_t i = 0; i < f->classes; i++) {
        *are += f->confusion[k * f->classes + i];
        *said += f->confusion[i * f->classes + k];
    }
}

static double part(int64_t some, int64_t all)
{
    return all ? (double)some / (double)all : NAN;
}

static void confusion_json(const evaluation *e, json_t *o)
{
    const tn_evaluation *f = &e->found;
    json_t *rows = json_array(), *classes = json_array();

    for (int64_t k = 0; k < f->classes; k++) {
        const char *name = tn_data_class_name(e->data, k);
        const int64_t right = f->confusion[k * f->classes + k];
        json_t *row = json_array(), *one;
        int64_t are, said;

        class_sums(f, k, &are, &said);
        for (int64_t i = 0; i < f->classes; i++)
            (void)json_array_append_new(row, json_integer((json_int_t)f->confusion[k * f->classes + i]));
        (void)json_array_append_new(rows, row);
        one =
            json_pack("{s:I, s:I, s:o, s:o}", "class", (json_int_t)k, "samples", (json_int_t)are, "precision",
                      cli_json_number(part(right, said)), "recall", cli_json_number(part(right, are)));
        if (name)
            (void)json_object_set_new(one, "name", cli_json_text(name));
        (void)json_array_append_new(classes, one);
    }
    (void)json_object_set_new(o, "classes", classes);
    (void)json_object_set_new(o, "confusion", rows);
}

static void share_print(double share)
{
    if (isfinite(share))
        (void)printf("  %9.4f", share);
    else
        (void)printf("  %9s", "-"); /* no such sample */
}

/* Rows are what the samples are, columns what the net takes them for. */
static void confusion_print(const evaluation *e)
{
    const tn_evaluation *f = &e->found;
    int64_t most = 0;
    int width;

    for (int64_t i = 0; i < f->classes * f->classes; i++)
        most = f->confusion[i] > most ? f->confusion[i] : most;
    width = snprintf(NULL, 0, "%lld", (long long)(most > f->classes ? most : f->classes)) + 1;
    (void)printf("confusion: a row for each class, a column for what it is taken for\n%-16s", "class");
    for (int64_t i = 0; i < f->classes; i++)
        (void)printf("%*lld", width, (long long)i);
    (void)printf("  precision     recall\n");
    for (int64_t k = 0; k < f->classes; k++) {
        const int64_t right = f->confusion[k * f->classes + k];
        const char *name = tn_data_class_name(e->data, k);
        int64_t are, said;

        class_sums(f, k, &are, &said);
        cli_say(stdout, "%-4lld %-11s", (long long)k, name ? name : "");
        for (int64_t i = 0; i < f->classes; i++)
            (void)printf("%*lld", width, (long long)f->confusion[k * f->classes + i]);
        share_print(part(right, said));
        share_print(part(right, are));
        (void)printf("\n");
    }
}

/* ---- the answer ---- */

static bool is_regression(const evaluation *e)
{
    return tn_data_task(e->data) == TN_TASK_NUMBERS;
}

static void print_json(const evaluation *e)
{
    json_t *o = json_object();

    if (e->data) {
        if (is_regression(e))
            cli_numbers_json(o, e->found.r2, e->found.rmse, e->found.mae);
        else
            (void)json_object_set_new(o, "accuracy", cli_json_number(e->found.accuracy));
        (void)json_object_set_new(o, "loss", cli_json_number(e->found.loss));
        (void)json_object_set_new(o, "samples", json_integer((json_int_t)e->found.samples));
        if (e->found.confusion)
            confusion_json(e, o);
    }
    (void)json_object_set_new(o, "params_sha256", json_string(e->sha256));
    if (e->saved.folder)
        (void)json_object_set_new(o, "params", cli_json_text(e->saved.params));
    if (e->data)
        (void)json_object_set_new(o, "data", cli_json_text(tn_data_name(e->data)));
    cli_json_line(o);
}

static void print(const cli_args *args, const evaluation *e)
{
    if (args->value[OPT_JSON]) {
        print_json(e);
        return;
    }
    if (e->data && is_regression(e))
        cli_numbers_print(e->found.r2, e->found.rmse, e->found.mae);
    else if (e->data)
        (void)printf("accuracy %.4f\n", e->found.accuracy);
    if (e->data)
        (void)printf("loss %.4f\nsamples %lld\n", e->found.loss, (long long)e->found.samples);
    (void)printf("params_sha256 %s\n", e->sha256);
    if (e->saved.folder)
        cli_say(stdout, "params %s\n", e->saved.params);
    if (e->data)
        cli_say(stdout, "data %s\n", tn_data_name(e->data));
    if (args->value[OPT_CONFUSION] && e->found.confusion)
        confusion_print(e);
}

/* One file, whose parameters alone count. */
static bool is_hash_alone(const cli_args *args)
{
    return args->word_count == 1 && cli_ends_with(args->words[0], ".params");
}

int cmd_eval(const cli_args *args)
{
    static const cli_option_id of_model[] = {OPT_DATA, OPT_BATCH, OPT_CONFUSION, OPT_DEVICE};
    evaluation e = {.found = {.struct_size = TN_SIZE(tn_evaluation)}};
    const bool alone = is_hash_alone(args);
    tn_app *app;

    for (size_t i = 0; alone && i < sizeof of_model / sizeof *of_model; i++)
        if (args->value[of_model[i]]) {
            cli_error("eval: --%s goes with a model: MODEL-symbol.json %s", cli_options[of_model[i]].name,
                      args->words[0]);
            return CLI_EXIT_USAGE;
        }
    app = cli_app_open(args, NULL);
    if (tn_app_ok(app) && (alone || cli_saved_find(&e.saved, args, app))) {
        params_hash(app, alone ? args->words[0] : e.saved.params, e.sha256);
        if (!alone && tn_app_ok(app))
            evaluate(app, args, &e);
        if (tn_app_ok(app))
            print(args, &e);
    }
    cli_saved_fini(&e.saved);
    return cli_app_close(app, args);
}
