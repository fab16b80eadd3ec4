/*
 * tenon predict: a saved model on samples of files. All inputs are read, and their shapes compared with the
 * model's, before the first one is run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "model.h"
#include "train/predict.h"

#define BATCH_MAX 1048576

#define CLI_INPUTS_MAX 8 /* of a model, as nn has it */

typedef struct prediction {
    const cli_args *args;
    tn_app *app;
    tn_net *net;
    char *symbol; /* file of the model */
    char *about;  /* how its data was read; NULL: nobody says so */
    char takes[CLI_TAKES_TEXT];
    const char *image; /* size of images that it takes, "1,8,8"; NULL: not known */
    char image_text[CLI_TAKES_TEXT];
    bool pixels; /* it takes byte / 255 */
    int64_t batch, top;
    double scale; /* NAN: by the kind of file */
    cli_samples inputs[CLI_WORDS_MAX];
    size_t first, input_count; /* first: word that names an input */
    cli_answers answers;
    tn_array **arrays; /* of a batch, for all outputs of the model */
    size_t output_count;
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
            return failed(p, cli_format("--top %s: a whole number of at least 1 is needed", top));
    }
    if (scale) {
        p->scale = strtod(scale, &end); /* the tool's numbers are C's in every locale */
        if (*end || !*scale || !isfinite(p->scale))
            return failed(p, cli_format("--scale %s: a number is needed", scale));
    }
    return !tn_app_check(p->app, tn_ctx_option_int(tn_app_ctx(p->app), "train.batch", &p->batch));
}

/* "1×8×8" as --shape has it; NULL: these are no images. */
static const char *image_size(prediction *p)
{
    int dims = 1;
    char *to = p->image_text;

    for (const char *at = p->takes; *at; at++) {
        const bool digit = *at >= '0' && *at <= '9';

        if (digit)
            *to++ = *at;
        else if (to > p->image_text && to[-1] != ',') /* one of the sign's bytes */
            dims += (*to++ = ',') == ',';
    }
    *to = '\0';
    return dims == 3 ? p->image_text : NULL;
}

static bool model_load(prediction *p)
{
    const char *classes = p->args->value[OPT_CLASSES];
    cli_saved saved;
    bool ok = cli_saved_find(&saved, p->args, p->app);

    p->first = saved.words;
    if (ok && p->first == 2 && p->args->word_count == 2 && !cli_ends_with(saved.params, ".params"))
        ok = failed(p, cli_format("predict: the parameters are missing: FILE.params goes between %s and %s",
                                  saved.symbol, saved.params));
    if (ok && p->args->word_count <= p->first)
        ok =
            failed(p, cli_format("predict: which INPUT? An image, IDX, .npy, .npz or CSV file goes behind %s",
                                 p->args->words[p->first - 1]));
    if (ok && (p->net = tn_net_load_files(p->app, saved.symbol, saved.params, NULL)) &&
        (p->about = cli_about_beside(saved.symbol))) {
        p->pixels = cli_about_look(p->about, p->takes);
        p->image = p->pixels ? image_size(p) : NULL;
        (void)tn_net_about(p->net, p->about);
    }
    p->symbol = saved.symbol;
    saved.symbol = NULL;
    cli_saved_fini(&saved);
    return p->net && tn_app_ok(p->app) && (!classes || tn_net_name_classes(p->net, classes));
}

/* Read as the model's data was. Numbers for a net of images may have many shapes, which samples.c tries. */
static bool is_own(const prediction *p, const char *name)
{
    static const char *const ends[] = {".rec", ".npz", ".libsvm", ".svm"};
    bool own = !p->pixels;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        own = own || cli_ends_with(name, ends[i]);
    return own && p->about && isnan(p->scale) && !p->args->value[OPT_SAMPLE_SHAPE];
}

static bool folder_refuse(prediction *p, const char *name)
{
    char *text = cli_format("%s is a folder: name its files, as in %s/*", name, name);

    (void)tn_app_fail(p->app, TN_E_ARG, text ? text : name);
    free(text);
    return false;
}

static bool inputs_load(prediction *p)
{
    const char *shape = p->args->value[OPT_SAMPLE_SHAPE];
    const bool several = tn_net_input_count(p->net) > 1;
    bool from_stdin = false;

    if (several && (shape || !isnan(p->scale)))
        return failed(p, cli_format("%s is for models with one input; this one has %zu",
                                    shape ? "--shape" : "--scale", tn_net_input_count(p->net)));
    for (size_t i = p->first; i < p->args->word_count; i++) {
        const char *name = p->args->words[i];
        cli_samples *s = &p->inputs[p->input_count++];

        if (!strcmp(name, "-") && from_stdin)
            return failed(p, cli_format("standard input (-) is read once"));
        from_stdin = from_stdin || !strcmp(name, "-");
        if (cli_is_folder(name))
            return folder_refuse(p, name);
        s->takes = p->takes;
        if (is_own(p, name) || (several && p->about)) {
            if (!cli_samples_own(s, p->app, p->net, p->about, name))
                return false;
            continue;
        }
        if (several) {
            if (!cli_samples_named(s, p->app, p->net, name))
                return false;
            continue;
        }
        if (!cli_samples_load(s, p->app, p->net, shape ? shape : p->image, name, p->scale) ||
            !cli_samples_fit(s, p->app, p->net, shape))
            return false;
    }
    return true;
}

/* Nobody says how numbers were scaled for the training: they are not, and that is told once. */
static bool scaling_tell(const prediction *p)
{
    bool numbers = false;

    for (size_t i = 0; i < p->input_count; i++)
        numbers = numbers || !p->inputs[i].bytes;
    if (numbers && !p->about && isnan(p->scale))
        cli_about_missed(p->args, p->symbol,
                         "values are taken as they are, and if the model was trained on scaled ones its "
                         "answers are wrong");
    return true;
}

/* Samples from `begin` on, of every input; their outputs go into p->arrays. */
static bool rows_run(prediction *p, const cli_samples *s, int64_t begin, int64_t n)
{
    tn_array *in[CLI_INPUTS_MAX] = {NULL};
    size_t count = 0;

    for (; s && count < CLI_INPUTS_MAX; s = s->next) {
        int64_t shape[CLI_DIMS_MAX];

        memcpy(shape, s->shape, sizeof shape);
        shape[0] = n;
        in[count++] = tn_app_array(p->app, s->ndim, shape, s->values + begin * s->each);
    }
    return tn_net_run(p->net, count, in, p->output_count, p->arrays) != 0;
}

/* Of several inputs the shapes are those of the last run: one of so many samples goes before. */
static int64_t asked_rows(const cli_samples *s)
{
    return s->count < 2 ? s->count : 2;
}

/* What output `o` is for the samples of `s`. False: it is not one for each of them, as *why says. */
static bool output_ask(prediction *p, const cli_samples *s, size_t index, tn_net_output *o, const char **why)
{
    int64_t shape[CLI_DIMS_MAX];

    memcpy(shape, s->shape, sizeof shape);
    shape[0] = s->next ? asked_rows(s) : s->count;
    *why = "is not one for each sample";
    if (!tn_net_output_at(p->net, index, s->ndim, shape, o) || o->ndim < 1 || o->shape[0] != shape[0])
        return false;
    *why = "has a shape that is not known";
    for (int32_t i = 1; i < o->ndim; i++)
        if (o->shape[i] < 1)
            return false;
    return true;
}

/* One output for all inputs: their shapes must agree, since they go into one answer. *taken: it is one for
 * each sample. */
static bool output_take(prediction *p, size_t index, size_t count, bool *taken)
{
    cli_answer *a = &p->answers.outputs[p->answers.output_count];
    tn_net_output o = {.struct_size = sizeof o};
    const char *why;

    *taken = true;
    for (size_t i = 0; i < p->input_count; i++) {
        if (!output_ask(p, &p->inputs[i], index, &o, &why)) {
            if (count == 1)
                return failed(p, cli_format("%s: the model's output %s", p->args->words[0], why));
            if (*taken)
                cli_error("%s: output %zu \"%.80s\" %s: it is left out", p->args->words[0], index,
                          o.name ? o.name : "", why);
            *taken = false;
            return true;
        }
        if (i &&
            (o.ndim != a->ndim || memcmp(o.shape + 1, a->shape + 1, (size_t)(o.ndim - 1) * sizeof *o.shape)))
            return failed(p, cli_format("%s gives outputs of another shape than %s", p->inputs[i].name,
                                        p->inputs[0].name));
        *a = (cli_answer){.name = o.name, .index = index, .gives = o.gives, .ndim = o.ndim};
        memcpy(a->shape, o.shape, sizeof o.shape);
    }
    return true;
}

static bool outputs_find(prediction *p)
{
    const size_t count = tn_net_output_count(p->net);
    bool ok = (p->answers.outputs = calloc(count + 1, sizeof *p->answers.outputs)) &&
              (p->arrays = calloc(count + 1, sizeof(tn_array *)));

    if (!ok)
        return failed(p, NULL);
    p->output_count = count;
    if (p->inputs[0].next) {
        const size_t mark = tn_app_mark(p->app);

        ok = rows_run(p, &p->inputs[0], 0, asked_rows(&p->inputs[0]));
        tn_app_release(p->app, mark);
    }
    for (size_t i = 0; ok && i < count; i++) {
        bool taken = false;

        ok = output_take(p, i, count, &taken);
        p->answers.output_count += ok && taken;
    }
    if (ok && !p->answers.output_count)
        return failed(p, cli_format("%s: none of the model's %zu outputs is one for each sample",
                                    p->args->words[0], count));
    return ok;
}

static bool batch_run(prediction *p, const cli_samples *s, int64_t begin, int64_t n)
{
    const size_t mark = tn_app_mark(p->app);
    bool ok;

    ok = rows_run(p, s, begin, n);
    for (size_t i = 0; ok && i < p->answers.output_count; i++) {
        const cli_answer *o = &p->answers.outputs[i];

        ok = tn_app_read(p->app, p->arrays[o->index], (size_t)(n * o->each), o->batch) != 0;
    }
    tn_app_release(p->app, mark);
    for (int64_t i = 0; ok && i < n; i++)
        ok = cli_answers_add(&p->answers, s->name, begin + i, i);
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
    bool ok = true;

    for (size_t i = 0; ok && i < p->input_count; i++) {
        const cli_samples *s = &p->inputs[i];

        for (int64_t at = 0; ok && at < s->count; at += p->batch)
            ok = batch_run(p, s, at, s->count - at < p->batch ? s->count - at : p->batch);
    }
    return ok;
}

static void done(const prediction *p)
{
    const char *path = cli_answers_file(&p->answers, 0);
    json_t *list = json_array();

    if (path && p->args->value[OPT_JSON]) {
        for (size_t i = 0; (path = cli_answers_file(&p->answers, i)); i++)
            (void)json_array_append_new(list, cli_json_text(path));
        cli_json_line(json_pack("{s:I, s:O}", "samples", (json_int_t)p->answers.done, "out",
                                json_array_size(list) == 1 ? json_array_get(list, 0) : list));
    } else if (path) {
        (void)printf("samples %lld\n", (long long)p->answers.done);
        for (size_t i = 0; (path = cli_answers_file(&p->answers, i)); i++)
            (void)printf("out %s\n", path);
    }
    json_decref(list);
}

/* What is read is not written over. */
static bool out_apart(const prediction *p, const char *out)
{
    const char *classes = p->args->value[OPT_CLASSES];
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

static void predict(prediction *p)
{
    const char *path;
    bool ok = true;

    p->answers.app = p->app;
    p->answers.net = p->net;
    p->answers.top = p->top;
    p->answers.several = p->input_count > 1;
    p->answers.one_each = p->answers.several;
    for (size_t i = 0; i < p->input_count; i++)
        p->answers.one_each = p->answers.one_each && p->inputs[i].count == 1;
    p->answers.kind =
        p->args->value[OPT_JSON] && !p->args->value[OPT_OUT_FILE] ? CLI_ANSWER_JSON : CLI_ANSWER_TABLE;
    batch_bound(p);
    p->answers.batch = p->batch;
    if (!cli_answers_open(&p->answers, p->args->value[OPT_OUT_FILE]))
        return;
    for (size_t i = 0; ok && (path = cli_answers_file(&p->answers, i)); i++)
        ok = out_apart(p, path) || failed(p, cli_format("--out names a file that is read"));
    if (ok && inputs_run(p) && cli_answers_close(&p->answers))
        done(p);
}

int cmd_predict(const cli_args *args)
{
    prediction p = {.args = args};

    if (!out_apart(&p, args->value[OPT_OUT_FILE]))
        return CLI_EXIT_USAGE;
    p.app = cli_app_open(args, NULL);
    if (tn_app_ok(p.app) && options_read(&p) && model_load(&p) && inputs_load(&p) && scaling_tell(&p) &&
        outputs_find(&p))
        predict(&p);
    cli_answers_fini(&p.answers);
    free(p.arrays);
    free(p.about);
    free(p.symbol);
    for (size_t i = 0; i < p.input_count; i++)
        cli_samples_fini(&p.inputs[i]);
    return cli_app_close(p.app, args);
}
