/* tenon/context.h: opening and closing, options. Its plugins are plugin.c. */
#include <string.h>

#include "api/api.h"
#include "tenon/context.h"

/* ---- opening and closing ------------------------------------------------------------------------- */

static tn_status open_options(const char *function, const tn_open_options *options, tni_context_options *out)
{
    const uint32_t known = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM | TN_OPEN_LOCAL;
    tn_open_options o = {0};
    tn_status st;

    if (options && (st = api_options(function, options, &o, (uint32_t)sizeof o)))
        return st;
    if (o.flags & ~known)
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", function, o.flags & ~known);
    *out = (tni_context_options){.files = o.files,
                                 .settings = o.settings,
                                 .environment = !(o.flags & TN_OPEN_NO_ENVIRONMENT),
                                 .system_files = !(o.flags & TN_OPEN_NO_SYSTEM),
                                 .local_file = (o.flags & TN_OPEN_LOCAL) != 0,
                                 .log = o.log,
                                 .log_arg = o.log_arg};
    return TN_OK;
}

tn_status tn_open(const tn_open_options *options, tn_ctx **out)
{
    tni_context_options o;
    tn_status st;

    if (!out)
        return api_null(__func__, "out");
    st = open_options(__func__, options, &o);
    return st ? st : tni_context_open(&o, out);
}

tn_status tn_close(tn_ctx *ctx)
{
    return tn_close_within(ctx, 0);
}

tn_status tn_close_within(tn_ctx *ctx, uint32_t timeout_ms)
{
    if (ctx && tni_engine_inside())
        return tni_error(TN_E_STATE, "tn_close: called in a callback of an engine, which it would wait for; "
                                     "close the context on a thread of the program");
    if (ctx && tni_scope_get()->called)
        return tni_error(TN_E_STATE,
                         "tn_close: called in a callback of a function, whose caller goes on with the "
                         "context; close it when the call has returned");
    return tni_context_close(ctx, timeout_ms);
}

void tn_free(void *memory)
{
    tni_free(memory);
}

tn_status tn_ctx_log(tn_ctx *ctx, int32_t level, const char *message)
{
    if (!ctx || !message)
        return api_null(__func__, "ctx or message");
    if (level < TN_LOG_ERROR || level > TN_LOG_DEBUG)
        return tni_error(TN_E_ARG, "log level %d is none of 0 to 3", level);
    tni_logf(&ctx->log, level, "%s", message);
    return TN_OK;
}

/* ---- options ------------------------------------------------------------------------------------- */

const char *tn_ctx_option(const tn_ctx *ctx, const char *key)
{
    const tni_option_def *def;

    if (!ctx || !key) {
        (void)api_null(__func__, "ctx or key");
        return NULL;
    }
    return tni_option_def_find(key, &def) ? NULL : tni_option_text(ctx->options, key);
}

static bool one_of(const char *type, const char *const *types)
{
    for (; *types; types++)
        if (!strcmp(type, *types))
            return true;
    return false;
}

tn_status tn_ctx_option_int(const tn_ctx *ctx, const char *key, int64_t *value)
{
    static const char *const types[] = {"int", "bool", "bytes", "duration_ms", NULL};
    const tni_option_def *def;
    tn_status st;

    if (!ctx || !key || !value)
        return api_null(__func__, "ctx, key or value");
    if ((st = tni_option_def_find(key, &def)))
        return st;
    if (!one_of(def->type, types))
        return tni_error(TN_E_ARG, "option %s is a %s, no whole number", key, def->type);
    *value = tni_option_int(ctx->options, key);
    return TN_OK;
}

tn_status tn_ctx_option_float(const tn_ctx *ctx, const char *key, double *value)
{
    const tni_option_def *def;
    tn_status st;

    if (!ctx || !key || !value)
        return api_null(__func__, "ctx, key or value");
    if ((st = tni_option_def_find(key, &def)))
        return st;
    if (!strcmp(def->type, "float"))
        *value = tni_option_float(ctx->options, key);
    else if (!strcmp(def->type, "int"))
        *value = (double)tni_option_int(ctx->options, key);
    else
        return tni_error(TN_E_ARG, "option %s is a %s, no number", key, def->type);
    return TN_OK;
}

static tn_status wait_warn_take(tn_ctx *ctx)
{
    tni_engine_wait_warn(ctx->engine, 1000u * (uint64_t)tni_option_int(ctx->options, "engine.wait_warn_s"));
    return TN_OK;
}

static tn_status seed_take(tn_ctx *ctx)
{
    return tni_random_seed(ctx, (uint64_t)tni_option_int(ctx->options, "run.seed"), NULL);
}

/* What takes over a change of each live option. */
static const struct {
    const char *key;
    tn_status (*take)(tn_ctx *ctx);
} live[] = {
    {"log.level", tni_context_log_level}, {"run.seed", seed_take}, {"engine.wait_warn_s", wait_warn_take}};

tn_status tn_ctx_option_set(tn_ctx *ctx, const char *key, const char *value)
{
    const tni_option_def *def;
    tn_status st;

    if (!ctx || !key || !value)
        return api_null(__func__, "ctx, key or value");
    if ((st = tni_option_def_find(key, &def)))
        return st;
    if (!(def->flags & TN_OPTION_LIVE))
        return tni_error(TN_E_STATE, "option %s is read when a context is opened: give it to tn_open", key);
    if ((st = tni_options_set_value(ctx->options, key, value, TN_ORIGIN_SET, "")))
        return st;
    for (size_t i = 0; i < sizeof live / sizeof *live; i++)
        if (!strcmp(key, live[i].key))
            return live[i].take(ctx);
    return tni_error(TN_E_INTERNAL, "option %s is live, but nothing takes its changes over", key);
}

void api_option_fill(const tni_option_def *def, tn_option_info *info)
{
    info->flags = def->flags;
    info->type = def->type;
    info->choices = def->choices;
    info->default_text = def->default_text;
    info->help = def->help;
    info->since = def->since;
    info->env = def->env;
    info->min = def->min;
    info->max = def->max;
}

/* Counts by asking: the list has no lock that would keep a count true. */
tn_status tn_ctx_option_count(const tn_ctx *ctx, size_t *count)
{
    const char *key, *value, *where;
    int32_t origin;
    size_t n = 0;

    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    while (tni_options_at(ctx->options, n, &key, &value, &origin, &where))
        n++;
    *count = n;
    return TN_OK;
}

tn_status tn_ctx_option_at(const tn_ctx *ctx, size_t index, tn_option_info *out)
{
    tn_option_info info = {0};
    const tni_option_def *def;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (!tni_options_at(ctx->options, index, &info.key, &info.value, &info.origin, &info.where))
        return tni_error(TN_E_ARG, "there is no option number %zu", index);
    if (tni_option_def_find(info.key, &def)) { /* one that the environment spells in its own way */
        tni_error_clear();
        info.type = "text";
        info.choices = info.default_text = info.help = info.since = info.env = "";
        info.min = 1;
    } else {
        api_option_fill(def, &info);
    }
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

size_t tn_option_count(void)
{
    size_t count;

    tni_option_defs(&count);
    return count;
}

tn_status tn_option_at(size_t index, tn_option_info *out)
{
    tn_option_info info = {.value = "", .where = ""};
    size_t count;
    const tni_option_def *defs = tni_option_defs(&count);

    if (!out)
        return api_null(__func__, "out");
    if (index >= count)
        return tni_error(TN_E_ARG, "option %zu of %zu", index, count);
    info.key = defs[index].key;
    api_option_fill(&defs[index], &info);
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

/* ---- variables, checking ------------------------------------------------------------------------- */

size_t tn_variable_count(void)
{
    size_t count;

    (void)tni_variables(&count);
    return count;
}

tn_status tn_variable_at(size_t index, tn_variable_info *out)
{
    tn_variable_info info = {0};
    size_t count;
    const tni_variable *all = tni_variables(&count);

    if (!out)
        return api_null(__func__, "out");
    if (index >= count)
        return tni_error(TN_E_ARG, "variable %zu of %zu", index, count);
    info.name = all[index].name;
    info.key = all[index].key;
    info.values = all[index].values;
    info.reason = all[index].reason;
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_variable_translate(size_t index, const char *value, char *text, size_t bytes)
{
    size_t count;
    const tni_variable *all = tni_variables(&count);

    if (!value || !text)
        return api_null(__func__, "value or text");
    if (index >= count || !bytes)
        return tni_error(TN_E_ARG, "variable %zu of %zu, %zu bytes for the text", index, count, bytes);
    return tni_variable_translate(&all[index], value, text, bytes);
}

typedef struct findings {
    tn_problem_fn fn;
    void *arg;
} findings;

static void finding_pass(void *arg, int32_t level, const tn_err *err)
{
    const findings *f = arg;
    const tn_problem p = {.struct_size = TN_SIZE(tn_problem),
                          .level = level,
                          .status = err->code,
                          .number = err->number ? err->number : (uint32_t)err->code,
                          .text = err->message};

    f->fn(f->arg, &p);
}

tn_status tn_config_check(const tn_open_options *options, tn_problem_fn fn, void *arg)
{
    findings f = {.fn = fn, .arg = arg};
    tni_context_options o;
    tn_status st;

    if (!fn)
        return api_null(__func__, "fn");
    st = open_options(__func__, options, &o);
    return st ? st : tni_context_check(&o, finding_pass, &f);
}
