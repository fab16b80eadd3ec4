/* Where a saved model's data is described; the figures of a regression. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"

char *cli_about_beside(const char *symbol)
{
    static const char end[] = "-symbol.json";
    const size_t n = strlen(symbol);
    char *path = n >= sizeof end - 1 && cli_ends_with(symbol, end)
                     ? cli_format("%.*s-data.json", (int)(n - (sizeof end - 1)), symbol)
                     : NULL;

    if (path && !access(path, F_OK))
        return path;
    free(path);
    return NULL;
}

void cli_about_missed(const cli_args *args, const char *symbol, const char *instead)
{
    static const char end[] = "-symbol.json";
    const char *slash = strrchr(symbol, '/'), *name = slash ? slash + 1 : symbol;
    const int stem = (int)strlen(name) - (int)(cli_ends_with(name, end) ? sizeof end - 1 : 0);

    if (!args->value[OPT_QUIET])
        cli_error("no %.*s-data.json beside the model: %s", stem, name, instead);
}

bool cli_about_copy(tn_app *app, const char *symbol, const char *prefix, cli_aside *out)
{
    char *from = cli_about_beside(symbol), *to = cli_format("%s-data.json", prefix), *why = NULL;
    json_error_t error = {.text = ""};
    json_t *o = from ? json_load_file(from, JSON_REJECT_DUPLICATES, &error) : NULL;
    char *text = o ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    bool ok = to && (!from || (text && cli_aside_write(out, app, to, text, strlen(text))));

    if (ok && !from && cli_is_folder(to)) { /* could not be removed */
        errno = EISDIR;
        ok = cli_failed_at(app, to);
    }
    if (from && !o)
        why = cli_format("%s: %s", from, error.text);
    if (!ok) /* what stands there already stays */
        (void)tn_app_fail(app, why ? TN_E_IO : TN_E_NOMEM, why ? why : "out of memory");
    json_decref(o);
    free(text);
    free(why);
    free(from);
    free(to);
    return ok;
}

bool cli_about_name(tn_app *app, const char *prefix, cli_aside *out)
{
    char *stale = out->path ? NULL : cli_format("%s-data.json", prefix);
    const bool ok = stale ? !unlink(stale) || errno == ENOENT || cli_failed_at(app, stale)
                          : out->path && cli_aside_name(out, app);

    free(stale);
    return ok || (tn_app_ok(app) && !tn_app_fail(app, TN_E_NOMEM, "out of memory"));
}

bool cli_about_look(const char *path, char takes[CLI_TAKES_TEXT])
{
    json_t *o = json_load_file(path, 0, NULL);
    const json_t *input = json_array_get(json_object_get(o, "inputs"), 0),
                 *shape = json_object_get(input, "shape");
    const bool pixels = json_number_value(json_object_get(input, "divisor")) > 0;
    size_t used = 0;

    takes[0] = '\0';
    for (size_t i = 0; i < json_array_size(shape) && used < CLI_TAKES_TEXT - 32; i++)
        used += (size_t)snprintf(takes + used, CLI_TAKES_TEXT - used, "%s%lld", i ? "×" : "",
                                 (long long)json_integer_value(json_array_get(shape, i)));
    json_decref(o);
    return pixels;
}

bool cli_about_images(const char *path)
{
    json_t *o = json_load_file(path, 0, NULL);
    const json_t *inputs = json_object_get(o, "inputs"), *input = json_array_get(inputs, 0);
    const bool yes = json_array_size(inputs) == 1 && json_array_size(json_object_get(input, "shape")) == 3 &&
                     json_number_value(json_object_get(input, "divisor")) > 0;

    json_decref(o);
    return yes;
}

void cli_numbers_json(json_t *o, double r2, double rmse, double mae)
{
    (void)json_object_set_new(o, "r2", cli_json_number(r2));
    (void)json_object_set_new(o, "rmse", cli_json_number(rmse));
    (void)json_object_set_new(o, "mae", cli_json_number(mae));
}

void cli_numbers_print(double r2, double rmse, double mae)
{
    (void)printf("r2 %.4f\nrmse %.6g\nmae %.6g\n", r2, rmse, mae);
}
