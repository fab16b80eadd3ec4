/*
 * First values that differ by parameter: rows of patterns with an initialiser each, as MXNet's Mixed, and a
 * file with the values of some, as its Load. They stay with the net, as parameters get values when their
 * shapes are known. And the texts of initialisers that variables of MXNet's graphs have as __init__.
 */
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

#define ROWS_MAX 256

typedef struct mixed_row {
    regex_t pattern;
    tn_init_options init;
} mixed_row;

struct tnn_mixed {
    mixed_row *rows;
    size_t count;
    tn_params *values; /* NULL: no file */
};

void tnn_mixed_destroy(struct tnn_mixed *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        regfree(&m->rows[i].pattern);
    tn_params_destroy(m->values);
    free(m->rows);
    free(m);
}

/* From the beginning of a name, as Python's re.match. A pattern must be complete without our brackets. */
static tn_status pattern_compile(tn_app *app, const char *pattern, regex_t *out)
{
    char *whole = tnn_alloc(app, strlen(pattern) + 4, 1), why[128];
    int code;

    if (!whole)
        return app->status;
    (void)sprintf(whole, "^(%s)", pattern);
    if (!(code = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB))) {
        regfree(out);
        code = regcomp(out, whole, REG_EXTENDED | REG_NOSUB);
    }
    free(whole);
    if (!code)
        return TN_OK;
    (void)regerror(code, out, why, sizeof why);
    return tnn_fail(app, TN_E_ARG, "tn_net_init: pattern \"%.100s\": %s", pattern, why);
}

/* `bytes`: of the caller's options. */
static tn_status row_take(tn_app *app, const tn_init_row *row, size_t bytes, struct tnn_mixed *m)
{
    mixed_row *to = &m->rows[m->count];
    tn_init_options init = {0};

    memcpy(&init, &row->init, bytes < sizeof init ? bytes : sizeof init);
    if (init.mixed || init.load)
        return tnn_fail(app, TN_E_ARG, "tn_net_init: the row of \"%.100s\" has rows or a file of its own",
                        row->pattern);
    if (tnn_init_take(app, &init, &to->init) || pattern_compile(app, row->pattern, &to->pattern))
        return app->status;
    m->count++;
    return TN_OK;
}

/* Row `i`. Rows hold options, so they are as far apart as the caller's struct of options says. */
static const tn_init_row *row_at(const tn_init_options *o, size_t i)
{
    const size_t bytes = offsetof(tn_init_row, init) + o->struct_size;

    return (const tn_init_row *)(const void *)((const char *)o->mixed + i * bytes);
}

static tn_status all_take(tn_app *app, const tn_init_options *o, struct tnn_mixed *m)
{
    size_t count = 0;

    while (o->mixed && count <= ROWS_MAX && row_at(o, count)->pattern)
        count++;
    if (count > ROWS_MAX)
        return tnn_fail(app, TN_E_ARG, "tn_net_init: more than %d rows of .mixed", ROWS_MAX);
    if (!(m->rows = tnn_alloc(app, count + 1, sizeof *m->rows)))
        return app->status;
    for (size_t i = 0; i < count; i++)
        if (row_take(app, row_at(o, i), o->struct_size, m))
            return app->status;
    return o->load ? tnn_check(app, tn_params_load(app->ctx, o->load, NULL, &m->values),
                               "tn_net_init: %.200s", o->load)
                   : TN_OK;
}

tn_status tnn_mixed_create(tn_app *app, const tn_init_options *o, struct tnn_mixed **out)
{
    struct tnn_mixed *m;

    *out = NULL;
    if (!o->mixed && !o->load)
        return TN_OK;
    if (!(m = tnn_alloc(app, 1, sizeof *m)))
        return app->status;
    if (all_take(app, o, m))
        tnn_mixed_destroy(m);
    else
        *out = m;
    return app->status;
}

const char *tnn_mixed_name(const tn_net *net, const tnn_param *p)
{
    for (size_t i = 0; i < net->param_count; i++)
        if (net->params[i] == p)
            return tnn_param_name(net, i);
    return p->name;
}

tn_status tnn_mixed_value(tn_app *app, const tn_net *net, const tnn_param *p, tn_array **out)
{
    const char *name = tnn_mixed_name(net, p);

    *out = NULL;
    if (!net->mixed || !net->mixed->values || tn_params_get(net->mixed->values, name, out))
        return TN_OK;
    if (!tnn_param_fits(app, p, *out))
        return TN_OK;
    tn_array_release(*out);
    *out = NULL;
    return app->status;
}

const tn_init_options *tnn_mixed_init(tn_app *app, const tn_net *net, const char *name)
{
    const struct tnn_mixed *m = net->mixed;

    for (size_t i = 0; m && i < m->count; i++)
        if (!regexec(&m->rows[i].pattern, name, 0, NULL, 0))
            return &m->rows[i].init;
    if (m && m->count)
        (void)tnn_fail(app, TN_E_KEY,
                       "parameter %s fits no pattern of .mixed: put \".*\" last for the others", name);
    return m && m->count ? NULL : &net->init;
}

/* ---- __init__ of variables -------------------------------------------------------------------------- */

typedef struct init_name {
    const char *name, *alias, *with;
    const char *number; /* the key of its one number; NULL: it has none */
    double otherwise;   /* where that is not given */
} init_name;

static const init_name init_names[] = {
    {"zero", "zeros", "zero", NULL, 0},         {"one", "ones", "one", NULL, 0},
    {"constant", NULL, "constant", "value", 0}, {"uniform", NULL, "uniform", "scale", 0.07},
    {"normal", NULL, "normal", "sigma", 0.01},  {"orthogonal", NULL, "orthogonal", "scale", 1.414},
    {"xavier", NULL, "xavier", "magnitude", 3}, {"msraprelu", NULL, "xavier", "slope", 0.25},
    {"bilinear", NULL, "bilinear", NULL, 0},    {"lstmbias", NULL, "lstmbias", "forget_bias", 1},
};

static const char *word_of(const json_t *words, const char *key, const char *const *known)
{
    const char *text = json_string_value(json_object_get(words, key));

    for (size_t i = 0; text && known[i]; i++)
        if (!strcmp(text, known[i]))
            return known[i];
    return text ? NULL : known[0];
}

/* A number of 0 means "not given" in the options, so nothing is drawn then. */
static bool init_fill(const init_name *row, const json_t *words, tn_init_options *o)
{
    const json_t *given = row->number ? json_object_get(words, row->number) : NULL;
    const bool slope = !strcmp(row->name, "msraprelu"), xavier = !strcmp(row->with, "xavier");
    double number = given ? json_number_value(given) : row->otherwise;

    if ((given && !json_is_number(given)) || !isfinite(number))
        return false;
    number = slope ? 2 / (1 + number * number) : number;
    o->with = row->number && number == 0 ? "zero" : row->with;
    if (xavier)
        o->magnitude = number;
    else
        o->scale = number;
    o->factor = word_of(words, "factor_type", tnn_init_factors);
    o->distribution = slope ? tnn_init_distributions[1]
                            : word_of(words, xavier ? "rnd_type" : "rand_type", tnn_init_distributions);
    return o->factor && o->distribution && (number >= 0 || !strcmp(row->with, "constant"));
}

/* Its own initialiser is a text within the text. */
static bool rnn_fill(const json_t *words, tn_init_options *o)
{
    const json_t *init = json_object_get(words, "init"), *units = json_object_get(words, "num_hidden"),
                 *layers = json_object_get(words, "num_layers"),
                 *forget = json_object_get(words, "forget_bias");
    const double bias = forget ? json_number_value(forget) : 1;

    o->factor = tnn_init_factors[0];
    o->distribution = tnn_init_distributions[0];
    if (init && !json_is_null(init)) {
        if (!json_is_string(init) || !tnn_init_parse(json_string_value(init), o))
            return false;
        o->weights = o->with;
    }
    o->with = TNN_INIT_RNN;
    o->mode = word_of(words, "mode", tnn_init_rnn_modes);
    o->units = json_integer_value(units);
    o->layers = (int32_t)json_integer_value(layers);
    o->bidirectional = json_is_true(json_object_get(words, "bidirectional"));
    o->forget_bias = bias;
    o->no_forget_bias = bias == 0;
    return o->mode && json_is_integer(units) && json_is_integer(layers) &&
           o->layers == json_integer_value(layers) && (!forget || json_is_number(forget)) &&
           !tnn_init_rnn_wrong(o);
}

bool tnn_init_parse(const char *text, tn_init_options *out)
{
    json_t *root = *text == '[' ? json_loads(text, 0, NULL) : NULL;
    const char *name = root ? json_string_value(json_array_get(root, 0)) : text;
    bool found = false;

    memset(out, 0, sizeof *out);
    out->struct_size = (uint32_t)sizeof *out;
    for (size_t i = 0; name && !found && i < sizeof init_names / sizeof *init_names; i++)
        if (!strcasecmp(name, init_names[i].name) ||
            (init_names[i].alias && !strcasecmp(name, init_names[i].alias)))
            found = init_fill(&init_names[i], json_array_get(root, 1), out);
    if (name && !strcasecmp(name, TNN_INIT_RNN))
        found = rnn_fill(json_array_get(root, 1), out);
    json_decref(root);
    return found;
}
