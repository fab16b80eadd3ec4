/* tenon/context.h: its plugins. */
#include <string.h>

#include "api/api.h"
#include "tenon/context.h"

/* ---- which there are ----------------------------------------------------------------------------- */

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

static tn_status plugin_at(const tn_ctx *ctx, size_t index, tni_plugin **out)
{
    if ((*out = tni_registry_at(ctx->plugins, index)))
        return TN_OK;
    return tni_error(TN_E_ARG, "plugin %zu of %zu", index, tni_registry_count(ctx->plugins));
}

/* Of a plugin in the state that the caller saw. */
static size_t capability_count(const tni_plugin *p, int32_t state)
{
    size_t count = 0;

    while (state == TNI_PLUGIN_LOADED && p->descriptor->capabilities[count])
        count++;
    return count;
}

/* What follows from the state, which is looked at once: the plugin may be loaded at this moment. */
static void state_take(const tni_plugin *p, tn_plugin_info *info)
{
    size_t options = 0;

    info->state = tni_plugin_state(p);
    info->reason = "";
    if (info->state == TNI_PLUGIN_REFUSED || info->state == TNI_PLUGIN_FAILED) {
        info->reason = p->reason;
        info->refusal = p->code;
    }
    if (info->state == TNI_PLUGIN_LOADED)
        (void)tni_plugin_options(p, &options);
    info->option_count = (uint32_t)options;
    info->capability_count = (uint32_t)capability_count(p, info->state);
}

tn_status tn_plugin_at(const tn_ctx *ctx, size_t index, tn_plugin_info *out)
{
    tn_plugin_info info = {0};
    tni_plugin *p;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = plugin_at(ctx, index, &p)))
        return st;
    state_take(p, &info);
    info.name = p->note.body.name;
    info.version = p->note.body.version;
    info.vendor = p->note.body.vendor;
    info.license = p->note.body.license;
    info.summary = p->note.body.summary;
    info.provides = p->note.provides ? p->note.provides : "";
    info.isa = p->note.body.isa;
    info.abi = p->note.body.tag;
    info.build_id = p->note.build_id;
    info.path = p->path[0] == '/' ? p->path : "";
    info.abi_major = p->note.body.abi_major;
    info.abi_minor = p->note.body.abi_minor;
    info.abi_minor_min = p->note.body.abi_minor_min;
    tni_plugin_memory(p, &info.memory_bytes, &info.memory_blocks);
    info.file_bytes = (uint64_t)tni_plugin_size(p);
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

/* ---- what one brings and needs ------------------------------------------------------------------- */

static uint32_t items_of(const tn_capability *c)
{
    const void *const *list = NULL;
    uint32_t count = 0;

    if (c->kind == TN_KIND_OPS)
        list = (const void *const *)((const tn_op_table *)(const void *)c)->ops;
    else if (c->kind == TN_KIND_KERNELS)
        list = (const void *const *)((const tn_kernel_table *)(const void *)c)->kernels;
    else if (c->kind == TN_KIND_OPTIONS)
        list = (const void *const *)((const tn_option_table *)(const void *)c)->rows;
    else
        return 1;
    while (list && list[count])
        count++;
    return count;
}

tn_status tn_plugin_capability(const tn_ctx *ctx, size_t plugin, size_t index, tn_capability_info *out)
{
    tn_capability_info info = {0};
    const tn_capability *c;
    tni_plugin *p;
    size_t count;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = plugin_at(ctx, plugin, &p)))
        return st;
    count = capability_count(p, tni_plugin_state(p));
    if (index >= count)
        return tni_error(TN_E_ARG, "table %zu of %zu", index, count);
    c = p->descriptor->capabilities[index];
    info.kind = tni_kind_name(c->kind) ? tni_kind_name(c->kind) : "";
    info.id = c->id ? c->id : "";
    info.count = info.kind[0] ? items_of(c) : 1;
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_plugin_option(const tn_ctx *ctx, size_t plugin, size_t index, tn_option_info *out)
{
    const tni_option_def *rows;
    char full[256];
    tni_plugin *p;
    size_t count;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = plugin_at(ctx, plugin, &p)))
        return st;
    rows = tni_plugin_options(p, &count);
    if (index >= count)
        return tni_error(TN_E_ARG, "option %zu of %zu", index, count);
    tn_option_info info = {.where = ""}, set = {0};

    api_option_fill(&rows[index], &info);
    info.key = rows[index].key;
    info.value = info.default_text;
    (void)snprintf(full, sizeof full, "plugin.%s.%.180s", p->note.body.name, info.key);
    for (size_t i = 0; tni_options_at(ctx->options, i, &set.key, &set.value, &set.origin, &set.where); i++)
        if (!strcmp(set.key, full)) {
            info.value = set.value;
            info.origin = set.origin;
            info.where = set.where;
        }
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_plugin_library_count(const tn_ctx *ctx, size_t plugin, size_t *count)
{
    const tni_library *list;
    tni_plugin *p;
    size_t found = 0;
    tn_status st;

    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    if ((st = plugin_at(ctx, plugin, &p)) || (st = tni_plugin_libraries(ctx->plugins, p, &list, &found)))
        return st;
    *count = found;
    return TN_OK;
}

tn_status tn_plugin_library(const tn_ctx *ctx, size_t plugin, size_t index, tn_library_info *out)
{
    tn_library_info info = {0};
    const tni_library *list;
    tni_plugin *p;
    size_t count = 0;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = plugin_at(ctx, plugin, &p)) || (st = tni_plugin_libraries(ctx->plugins, p, &list, &count)))
        return st;
    if (index >= count)
        return tni_error(TN_E_ARG, "library %zu of %zu", index, count);
    info.name = list[index].name;
    info.found = list[index].path != NULL;
    info.path = list[index].path ? list[index].path : "";
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_plugin_folder(const tn_ctx *ctx, size_t index, tn_folder_info *out)
{
    tn_folder_info info = {0};
    bool opened;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (!tni_registry_folder(ctx->plugins, index, &info.path, &opened, &info.files))
        return tni_error(TN_E_ARG, "there is no folder number %zu", index);
    info.opened = opened;
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

/* ---- loading ------------------------------------------------------------------------------------- */

/* A refused file that calls itself `name`, or is called NAME.so; NULL: none. */
static const tni_plugin *plugin_refused(const tn_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < tni_registry_count(ctx->plugins); i++) {
        const tni_plugin *p = tni_registry_at(ctx->plugins, i);
        const char *file = p->path ? strrchr(p->path, '/') : NULL;
        const size_t length = strlen(name);

        if (length && tni_plugin_state(p) == TNI_PLUGIN_REFUSED &&
            (!strcmp(p->note.body.name, name) ||
             (file && !strncmp(file + 1, name, length) && !strcmp(file + 1 + length, ".so"))))
            return p;
    }
    return NULL;
}

tn_status tn_plugin_load(tn_ctx *ctx, const char *name)
{
    const tni_plugin *refused;
    tni_plugin *p;

    if (!ctx || !name)
        return api_null(__func__, "ctx or name");
    if ((p = tni_registry_find(ctx->plugins, name)) != NULL)
        return tni_plugin_load(ctx->plugins, p);
    if ((refused = plugin_refused(ctx, name)) != NULL)
        return refused->code
                   ? tni_error_number(3000 + refused->code, TN_E_DEVICE,
                                      "plugin %.40s was refused: L%02u: %s: %s", name,
                                      (unsigned)refused->code, refused->path, refused->reason)
                   : tni_error(TN_E_DEVICE, "plugin %.40s: %s: %s", name, refused->path, refused->reason);
    return tni_error(TN_E_KEY, "there is no plugin %.60s", name);
}

tn_status tn_plugin_open(tn_ctx *ctx, const char *path, size_t *index)
{
    tni_plugin *p = NULL;
    tn_status st;
    tn_err why;

    if (!ctx || !path)
        return api_null(__func__, "ctx or path");
    if ((st = tni_registry_open(ctx->plugins, path, &p))) {
        tni_error_get(&why);
        return strstr(why.message, path) ? st : tni_error_take(st, &why, path);
    }
    for (size_t i = 0; index && i < tni_registry_count(ctx->plugins); i++)
        if (tni_registry_at(ctx->plugins, i) == p)
            *index = i;
    return TN_OK;
}

tn_status tn_plugin_add(tn_ctx *ctx, const struct tn_plugin *descriptor)
{
    if (!ctx || !descriptor)
        return api_null(__func__, "ctx or descriptor");
    return tni_registry_add_static(ctx->plugins, descriptor, NULL);
}
