/* tenon/context.h: opening and closing, options, plugins. */
#include <string.h>

#include "api/api.h"
#include "tenon/context.h"

/* ---- opening and closing ------------------------------------------------------------------------- */

tn_status tn_open(const tn_open_options *options, tn_ctx **out)
{
    const uint32_t known = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM | TN_OPEN_LOCAL;
    tn_open_options o = {0};
    tn_status st;

    if (!out)
        return api_null(__func__, "out");
    if (options && (st = api_options(__func__, options, &o, (uint32_t)sizeof o)))
        return st;
    if (o.flags & ~known)
        return tni_error(TN_E_ARG, "tn_open: flags 0x%x are not known", o.flags & ~known);
    const tni_context_options c = {.files = o.files,
                                   .settings = o.settings,
                                   .environment = !(o.flags & TN_OPEN_NO_ENVIRONMENT),
                                   .system_files = !(o.flags & TN_OPEN_NO_SYSTEM),
                                   .local_file = (o.flags & TN_OPEN_LOCAL) != 0,
                                   .log = o.log,
                                   .log_arg = o.log_arg};

    return tni_context_open(&c, out);
}

tn_status tn_close(tn_ctx *ctx)
{
    return tni_context_close(ctx, tni_autograd_close);
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
    if (!strcmp(key, "log.level"))
        st = tni_context_log_level(ctx);
    else if (!strcmp(key, "run.seed"))
        st = tni_random_seed(ctx, (uint64_t)tni_option_int(ctx->options, key), NULL);
    return st;
}

static void option_fill(const tni_option_def *def, tn_option_info *info)
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
        option_fill(def, &info);
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
    option_fill(&defs[index], &info);
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

/* ---- plugins ------------------------------------------------------------------------------------- */

const char *tn_abi(uint32_t *major, uint32_t *minor, uint32_t *draft)
{
    if (major)
        *major = TN_ABI_MAJOR;
    if (minor)
        *minor = TN_ABI_MINOR;
    if (draft)
        *draft = TN_ABI_DRAFT;
    return TN_ABI_TAG;
}

tn_status tn_plugin_count(const tn_ctx *ctx, size_t *count)
{
    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    *count = tni_registry_count(ctx->plugins);
    return TN_OK;
}

tn_status tn_plugin_at(const tn_ctx *ctx, size_t index, tn_plugin_info *out)
{
    tn_plugin_info info = {0};
    const tni_plugin *p;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (index >= tni_registry_count(ctx->plugins))
        return tni_error(TN_E_ARG, "plugin %zu of %zu", index, tni_registry_count(ctx->plugins));
    p = tni_registry_at(ctx->plugins, index);
    info.state = p->state;
    info.name = p->note.body.name;
    info.version = p->note.body.version;
    info.vendor = p->note.body.vendor;
    info.license = p->note.body.license;
    info.summary = p->note.body.summary;
    info.provides = p->note.body.provides;
    info.isa = p->note.body.isa;
    info.abi = p->note.body.tag;
    info.build_id = p->note.build_id;
    info.path = p->path;
    info.reason = p->reason;
    info.refusal = p->code;
    info.abi_major = p->note.body.abi_major;
    info.abi_minor = p->note.body.abi_minor;
    info.abi_minor_min = p->note.body.abi_minor_min;
    tni_plugin_memory(p, &info.memory_bytes, &info.memory_blocks);
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_plugin_load(tn_ctx *ctx, const char *name)
{
    tni_plugin *p;

    if (!ctx || !name)
        return api_null(__func__, "ctx or name");
    p = tni_registry_find(ctx->plugins, name);
    return p ? tni_plugin_load(ctx->plugins, p) : tni_error(TN_E_KEY, "there is no plugin %.60s", name);
}

tn_status tn_plugin_add(tn_ctx *ctx, const struct tn_plugin *descriptor)
{
    if (!ctx || !descriptor)
        return api_null(__func__, "ctx or descriptor");
    return tni_registry_add_static(ctx->plugins, descriptor, NULL);
}
