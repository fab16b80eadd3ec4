/*
 * tenon predict: a saved model on samples of files. All inputs are read, and their shapes compared with the
 * model's, before the first one is run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "predict.h"

#define BATCH_MAX 1048576

typedef struct prediction {
    const cli_args *args;
    tn_app *app;
    tn_net *net;
    int64_t batch, top;
    double scale; /* NAN: by the kind of file */
    cli_samples inputs[CLI_WORDS_MAX];
    size_t input_count;
    cli_answers answers;
} prediction;

static bool failed(prediction *p, char *text)
{
    (void)tn_app_fail(p->app, text ? TN_E_ARG : TN_E_NOMEM, text ? text : "out of memory");
    free(text);
    return false;
}

/* Numbers of the command line. */
static bool options_read(prediction *p)
{
    const char *top = p->args->value[OPT_TOP], *scale = p->args->value[OPT_SCALE];
    char *end = NULL;

    p->top = 1;
    p->scale = NAN;
    if (top) {
        p->top = strtoll(top, &end, 10);
        if (*end || !*top || p->top < 1 || p->top > BATCH_MAX)
            return failed(p, cli_format("--top %s: a whole number of at least 1 is asked", top));
    }
    if (scale) {
        p->scale = strtod(scale, &end); /* the tool's numbers are C's in every locale */
        if (*end || !*scale || !isfinite(p->scale))
            return failed(p, cli_format("--scale %s: a number is asked", scale));
    }
    return !tn_app_check(p->app, tn_ctx_option_int(tn_app_ctx(p->app), "train.batch", &p->batch));
}

static bool model_load(prediction *p)
{
    const char *classes = p->args->value[OPT_CLASSES];

    p->net = tn_net_load_files(p->app, p->args->words[0], p->args->words[1], NULL);
    return p->net && (!classes || tn_net_name_classes(p->net, classes));
}

static bool inputs_load(prediction *p)
{
    bool from_stdin = false;

    for (size_t i = 2; i < p->args->word_count; i++) {
        const char *name = p->args->words[i];
        cli_samples *s = &p->inputs[p->input_count++];

        if (!strcmp(name, "-") && from_stdin)
            return failed(p, cli_format("standard input (-) is read once"));
        from_stdin = from_stdin || !strcmp(name, "-");
        if (!cli_samples_load(s, p->app, name, p->scale) ||
            !cli_samples_fit(s, p->app, p->net, p->args->value[OPT_SAMPLE_SHAPE]))
            return false;
    }
    return true;
}

/* What comes out of `n` samples. */
static bool output_shape(prediction *p, const cli_samples *s, int64_t n, int32_t *ndim, int64_t *out)
{
    int64_t shape[CLI_DIMS_MAX];

    memcpy(shape, s->shape, sizeof shape);
    shape[0] = n;
    if (!tn_net_takes(p->net, s->ndim, shape, ndim, out) || *ndim < 1 || out[0] != n)
        return failed(p, cli_format("%s: the model's output is not one for each sample", p->args->words[0]));
    for (int32_t i = 1; i < *ndim; i++)
        if (out[i] < 1)
            return failed(p,
                          cli_format("%s: the shape of the model's output is not known", p->args->words[0]));
    return true;
}

/* All inputs must give outputs of one shape: they go into one answer. */
static bool outputs_check(prediction *p)
{
    cli_answers *a = &p->answers;

    for (size_t i = 0; i < p->input_count; i++) {
        int64_t out[CLI_DIMS_MAX];
        int32_t ndim = -1;

        if (!output_shape(p, &p->inputs[i], p->inputs[i].count, &ndim, out))
            return false;
        if (i && (ndim != a->ndim || memcmp(out + 1, a->shape + 1, (size_t)(ndim - 1) * sizeof *out)))
            return failed(p, cli_format("%s gives outputs of another shape than %s", p->inputs[i].name,
                                        p->inputs[0].name));
        a->ndim = ndim;
        memcpy(a->shape, out, (size_t)ndim * sizeof *out);
    }
    return true;
}

static bool batch_run(prediction *p, const cli_samples *s, int64_t begin, int64_t n, float *out)
{
    const size_t mark = tn_app_mark(p->app);
    int64_t shape[CLI_DIMS_MAX];
    tn_array *y;
    bool ok;

    memcpy(shape, s->shape, sizeof shape);
    shape[0] = n;
    y = tn_net_forward(p->net, tn_app_array(p->app, s->ndim, shape, s->values + begin * s->each));
    ok = tn_app_read(p->app, y, (size_t)(n * p->answers.each), out) != 0;
    tn_app_release(p->app, mark);
    for (int64_t i = 0; ok && i < n; i++)
        ok = cli_answers_add(&p->answers, s->name, begin + i, out + i * p->answers.each);
    return ok;
}

/* No batch is larger than the largest input. */
static void batch_bound(prediction *p)
{
    int64_t most = 1;

    for (size_t i = 0; i < p->input_count; i++)
        most = p->inputs[i].count > most ? p->inputs[i].count : most;
    p->batch = p->batch > most ? most : p->batch;
}

static bool inputs_run(prediction *p)
{
    float *out = malloc((size_t)(p->batch * p->answers.each) * sizeof *out);
    bool ok = out || !tn_app_fail(p->app, TN_E_NOMEM, "out of memory");

    for (size_t i = 0; ok && i < p->input_count; i++) {
        const cli_samples *s = &p->inputs[i];

        for (int64_t at = 0; ok && at < s->count; at += p->batch)
            ok = batch_run(p, s, at, s->count - at < p->batch ? s->count - at : p->batch, out);
    }
    free(out);
    return ok;
}

static void done(const prediction *p)
{
    const char *path = p->args->value[OPT_OUT_FILE];

    if (!path)
        return;
    if (p->args->value[OPT_JSON])
        cli_json_line(
            json_pack("{s:I, s:o}", "samples", (json_int_t)p->answers.done, "out", cli_json_text(path)));
    else
        (void)printf("samples %lld\nout %s\n", (long long)p->answers.done, path);
}

/* What is read is not written over. */
static bool out_apart(const prediction *p)
{
    const char *out = p->args->value[OPT_OUT_FILE], *classes = p->args->value[OPT_CLASSES];
    struct stat there, s;

    if (!out || stat(out, &there) || !S_ISREG(there.st_mode))
        return true;
    for (size_t i = 0; i <= p->args->word_count; i++) {
        const char *in = i < p->args->word_count ? p->args->words[i] : classes;

        if (!in || stat(in, &s) || s.st_dev != there.st_dev || s.st_ino != there.st_ino)
            continue;
        cli_error("--out %s would replace %s, which is read", out, in);
        return false;
    }
    return true;
}

int cmd_predict(const cli_args *args)
{
    prediction p = {.args = args};

    if (!out_apart(&p))
        return CLI_EXIT_USAGE;
    p.app = cli_app_open(args, NULL);
    if (tn_app_ok(p.app) && options_read(&p) && model_load(&p) && inputs_load(&p) && outputs_check(&p)) {
        p.answers.app = p.app;
        p.answers.net = p.net;
        p.answers.top = p.top;
        p.answers.kind =
            args->value[OPT_JSON] && !args->value[OPT_OUT_FILE] ? CLI_ANSWER_JSON : CLI_ANSWER_TABLE;
        batch_bound(&p);
        if (cli_answers_open(&p.answers, args->value[OPT_OUT_FILE]) && inputs_run(&p) &&
            cli_answers_close(&p.answers))
            done(&p);
        cli_answers_fini(&p.answers);
    }
    for (size_t i = 0; i < p.input_count; i++)
        cli_samples_fini(&p.inputs[i]);
    return tn_app_close(p.app);
}
