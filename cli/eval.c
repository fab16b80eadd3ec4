/*
 * tenon eval: a saved model on a data set; the hash of a .params file.
 */
#include <math.h>
#include <string.h>

#include "cli.h"

typedef struct evaluation {
    double accuracy, loss;
    int64_t samples;
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

/* NAME is its test part, as after a training; NAME:train is meant as it stands. */
static void evaluate(tn_app *app, const cli_args *args, evaluation *e)
{
    const char *given = args->value[OPT_DATA] ? args->value[OPT_DATA] : "digits";
    int64_t batch = 0;
    char name[1024];
    tn_data *data;
    tn_net *net;

    (void)snprintf(name, sizeof name, "%s%s", given, strrchr(given, ':') ? "" : ":test");
    (void)tn_app_check(app, tn_ctx_option_int(tn_app_ctx(app), "train.batch", &batch));
    net = tn_net_load_files(app, args->words[0], args->words[1], NULL);
    data = tn_data_open(app, name, .batch = batch);
    if (!net || !data)
        return;
    e->samples = tn_data_count(data);
    e->accuracy = tn_net_eval(net, data, "accuracy");
    e->loss = tn_net_eval(net, data, "loss");
}

static void print(const cli_args *args, const evaluation *e)
{
    json_t *o;

    if (args->value[OPT_JSON]) {
        o = json_object();
        if (args->word_count == 2) {
            (void)json_object_set_new(o, "accuracy", cli_json_number(e->accuracy));
            (void)json_object_set_new(o, "loss", cli_json_number(e->loss));
            (void)json_object_set_new(o, "samples", json_integer((json_int_t)e->samples));
        }
        (void)json_object_set_new(o, "params_sha256", json_string(e->sha256));
        cli_json_line(o);
        return;
    }
    if (args->word_count == 2)
        (void)printf("accuracy %.4f\nloss %.4f\nsamples %lld\n", e->accuracy, e->loss, (long long)e->samples);
    (void)printf("params_sha256 %s\n", e->sha256);
}

int cmd_eval(const cli_args *args)
{
    tn_app *app = cli_app_open(args, NULL);
    evaluation e = {NAN, NAN, 0, ""};

    if (tn_app_ok(app)) {
        params_hash(app, args->words[args->word_count - 1], e.sha256);
        if (args->word_count == 2 && tn_app_ok(app))
            evaluate(app, args, &e);
        if (tn_app_ok(app))
            print(args, &e);
    }
    return tn_app_close(app);
}
