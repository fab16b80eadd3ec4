/*
 * Answers of a net: a table, CSV or JSON lines with classes and probabilities, or a .npy with the numbers as
 * they are.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predict.h"

#define RAW_MAX ((size_t)1 << 33) /* numbers of a .npy: 32 GiB */

static bool failed(tn_app *app, const char *path)
{
    char *text = cli_format("%s: %s", path, strerror(errno ? errno : EIO));

    (void)tn_app_fail(app, TN_E_IO, text ? text : path);
    free(text);
    return false;
}

static bool kind_find(cli_answers *a, const char *path)
{
    static const struct {
        const char *end;
        cli_answer_kind kind;
    } rows[] = {{".csv", CLI_ANSWER_CSV},
                {".json", CLI_ANSWER_JSON},
                {".jsonl", CLI_ANSWER_JSON},
                {".npy", CLI_ANSWER_NPY},
                {".txt", CLI_ANSWER_TABLE}};
    char *text;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cli_ends_with(path, rows[i].end)) {
            a->kind = rows[i].kind;
            return true;
        }
    text = cli_format("--out %s: a name that ends in .csv, .json, .jsonl, .npy or .txt says what to write",
                      path);
    (void)tn_app_fail(a->app, TN_E_ARG, text ? text : path);
    free(text);
    return false;
}

static const char *class_name(const cli_answers *a, int64_t k)
{
    const char *name = tn_net_class_name(a->net, k);

    return name ? name : "";
}

/* ---- the head of a table ---- */

static void head_write(const cli_answers *a)
{
    if (a->kind == CLI_ANSWER_TABLE && a->classes)
        (void)fprintf(a->out, "sample        class  probability\n");
    if (a->kind != CLI_ANSWER_CSV)
        return;
    (void)fprintf(a->out, "input,sample%s", a->classes ? ",class,name,probability" : "");
    for (int64_t k = 0; k < a->each; k++)
        (void)fprintf(a->out, ",%c%lld", a->classes ? 'p' : 'y', (long long)k);
    (void)fprintf(a->out, "\n");
}

bool cli_answers_open(cli_answers *a, const char *path)
{
    a->out = stdout;
    if (path && !kind_find(a, path))
        return false;
    a->each = 1;
    for (int32_t i = 1; i < a->ndim; i++)
        a->each *= a->shape[i];
    a->classes = a->ndim == 2 && a->each > 1 && tn_net_gives(a->net) != TN_GIVES_OTHER;
    a->top = a->top > a->each ? a->each : a->top;
    a->chances = malloc((size_t)a->each * sizeof *a->chances);
    a->order = malloc((size_t)a->each * sizeof *a->order);
    if (!a->chances || !a->order || (path && !(a->path = cli_format("%s", path))) ||
        (path && !(a->aside = cli_format("%s.tmp-%ld", path, (long)getpid()))))
        return !tn_app_fail(a->app, TN_E_NOMEM, "out of memory");
    errno = 0;
    if (a->kind == CLI_ANSWER_NPY)
        a->out = NULL;
    else if (path && !(a->out = fopen(a->aside, "wxe")))
        return failed(a->app, path);
    if (a->out)
        head_write(a);
    return true;
}

/* ---- one sample ---- */

static void chances_make(cli_answers *a, const float *x)
{
    const int32_t gives = tn_net_gives(a->net);
    double most = (double)x[0], sum = 0;

    for (int64_t k = 0; k < a->each; k++)
        a->chances[k] = gives == TN_GIVES_LOGARITHMS ? exp((double)x[k]) : (double)x[k];
    if (gives != TN_GIVES_SCORES)
        return;
    for (int64_t k = 1; k < a->each; k++)
        most = fmax(most, (double)x[k]);
    for (int64_t k = 0; k < a->each; k++)
        sum += a->chances[k] = exp((double)x[k] - most);
    for (int64_t k = 0; k < a->each; k++)
        a->chances[k] /= sum;
}

/* The `top` likeliest, the first of equals first. */
static void order_make(cli_answers *a)
{
    for (int64_t n = 0; n < a->top; n++) {
        int64_t best = -1;

        for (int64_t k = 0; k < a->each; k++) {
            bool told = false;

            for (int64_t i = 0; i < n; i++)
                told = told || a->order[i] == k;
            if (!told && (best < 0 || a->chances[k] > a->chances[best]))
                best = k;
        }
        a->order[n] = best;
    }
}

static void table_add(const cli_answers *a, int64_t index, const float *x)
{
    (void)fprintf(a->out, "%-8lld", (long long)index);
    for (int64_t n = 0; a->classes && n < a->top; n++) {
        const char *name = class_name(a, a->order[n]);

        (void)fprintf(a->out, "  %9lld  %.4f%s%s", (long long)a->order[n], a->chances[a->order[n]],
                      *name ? " " : "", name);
    }
    for (int64_t k = 0; !a->classes && k < a->each; k++)
        (void)fprintf(a->out, " %.6g", (double)x[k]);
    (void)fprintf(a->out, "\n");
}

static void quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

static void csv_add(const cli_answers *a, const char *input, int64_t index, const float *x)
{
    quoted(a->out, input);
    (void)fprintf(a->out, ",%lld", (long long)index);
    if (a->classes) {
        (void)fprintf(a->out, ",%lld,", (long long)a->order[0]);
        quoted(a->out, class_name(a, a->order[0]));
        (void)fprintf(a->out, ",%.7g", a->chances[a->order[0]]);
    }
    for (int64_t k = 0; k < a->each; k++)
        (void)fprintf(a->out, ",%.9g", a->classes ? a->chances[k] : (double)x[k]);
    (void)fprintf(a->out, "\n");
}

static json_t *class_json(const cli_answers *a, int64_t k)
{
    json_t *o =
        json_pack("{s:I, s:o}", "class", (json_int_t)k, "probability", cli_json_number(a->chances[k]));

    if (*class_name(a, k))
        (void)json_object_set_new(o, "name", cli_json_text(class_name(a, k)));
    return o;
}

static bool json_add(const cli_answers *a, const char *input, int64_t index, const float *x)
{
    json_t *o = a->classes ? class_json(a, a->order[0]) : json_object(), *list = json_array();
    char *text = NULL;

    (void)json_object_set_new(o, "input", cli_json_text(input));
    (void)json_object_set_new(o, "sample", json_integer((json_int_t)index));
    for (int64_t n = 0; n < (a->classes ? a->top : a->each); n++)
        (void)json_array_append_new(list,
                                    a->classes ? class_json(a, a->order[n]) : cli_json_number((double)x[n]));
    (void)json_object_set_new(o, a->classes ? "top" : "outputs", list);
    if (a->out == stdout) {
        cli_json_line(o);
        return true;
    }
    if ((text = json_dumps(o, CLI_JSON_FLAGS | JSON_COMPACT)))
        (void)fprintf(a->out, "%s\n", text);
    free(text);
    json_decref(o);
    return text != NULL;
}

static bool raw_add(cli_answers *a, const float *x)
{
    const size_t need = a->raw_count + (size_t)a->each;

    if (need > a->raw_room) {
        size_t room = 2 * need;
        float *grown = need < RAW_MAX ? realloc(a->raw, room * sizeof *grown) : NULL;

        if (!grown)
            return !tn_app_fail(a->app, TN_E_NOMEM, "out of memory for the outputs of a .npy");
        a->raw = grown;
        a->raw_room = room;
    }
    memcpy(a->raw + a->raw_count, x, (size_t)a->each * sizeof *x);
    a->raw_count = need;
    return true;
}

bool cli_answers_add(cli_answers *a, const char *input, int64_t index, const float *x)
{
    bool ok = true;

    a->done++;
    if (a->kind == CLI_ANSWER_NPY)
        return raw_add(a, x);
    if (a->classes) {
        chances_make(a, x);
        order_make(a);
    }
    if (a->kind == CLI_ANSWER_JSON)
        ok = json_add(a, input, index, x);
    else if (a->kind == CLI_ANSWER_CSV)
        csv_add(a, input, index, x);
    else
        table_add(a, index, x);
    return ok || !tn_app_fail(a->app, TN_E_NOMEM, "out of memory");
}

/* ---- the end ---- */

static bool npy_save(cli_answers *a)
{
    const tn_device *host = NULL, *before;
    tn_array *array = NULL;
    tn_ctx *ctx = tn_app_ctx(a->app);
    tn_status st;

    a->shape[0] = a->done;
    if (tn_app_check(a->app, tn_device_get(ctx, "cpu", &host)))
        return false;
    before = tn_device_use(host);
    st = tn_array_from(ctx, TN_F32, a->ndim, a->shape, a->raw, &array);
    (void)tn_device_use(before);
    if (!tn_app_check(a->app, st))
        (void)tn_app_check(a->app, tn_npy_save(array, a->path));
    tn_array_release(array);
    return tn_app_ok(a->app) != 0;
}

bool cli_answers_close(cli_answers *a)
{
    bool ok;

    if (a->kind == CLI_ANSWER_NPY)
        return npy_save(a);
    if (!a->path)
        return true;
    errno = 0;
    ok = !fflush(a->out) && !ferror(a->out);
    ok = !fclose(a->out) && ok && !rename(a->aside, a->path);
    a->out = NULL;
    return ok || failed(a->app, a->path);
}

void cli_answers_fini(cli_answers *a)
{
    if (a->path && a->out)
        (void)fclose(a->out);
    if (a->aside)
        (void)unlink(a->aside); /* what did not become the file */
    free(a->path);
    free(a->aside);
    free(a->chances);
    free(a->order);
    free(a->raw);
}
