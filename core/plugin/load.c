/*
 * From file to running plugin: the checks of the scan again, dlopen by the resolved path, the entry symbol,
 * which must lie in that very file, the descriptor against the note, the plugin's options, init. A file that
 * was opened is never closed again (rule R10), whatever came of it. No lock is held here.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "plugin/internal.h"

#define INIT_LONG_NS 100000000u /* rule R8; no warning: on a busy machine any init may take so long */

/* The message of the dynamic linker begins with the path, which the reader knows. */
static const char *linker_text(const char *path)
{
    const char *text = dlerror();
    size_t length = strlen(path);

    if (!text)
        return "no reason given";
    if (strncmp(text, path, length) == 0 && text[length] == ':')
        text += length + 1 + strspn(text + length + 1, " ");
    return text;
}

static tn_status entry_find(const tni_plugin *p, void *handle, const tn_plugin **out)
{
    struct link_map *own = NULL, *holder = NULL;
    const void *entry = dlsym(handle, TNI_ENTRY);
    Dl_info info;

    if (!entry)
        return tni_refuse(12, TN_E_FORMAT, "%s holds no symbol " TNI_ENTRY, p->path);
    if (dlinfo(handle, RTLD_DI_LINKMAP, &own) || !dladdr1(entry, &info, (void **)&holder, RTLD_DL_LINKMAP) ||
        own != holder)
        return tni_refuse(12, TN_E_FORMAT, "the symbol " TNI_ENTRY " lies in %.200s",
                          holder && holder->l_name ? holder->l_name : "another file");
    *out = entry;
    return TN_OK;
}

/* What the linker said, and all libraries that are missing: it names the first one only. */
static tn_status linker_refuse(tni_registry *r, tni_plugin *p, const char *said)
{
    char missing[200] = "";
    const tni_library *list;
    size_t count = 0, at = 0;

    if (tni_plugin_libraries(r, p, &list, &count))
        count = 0;
    for (size_t i = 0; i < count; i++)
        if (!list[i].path && at < sizeof missing)
            at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "", list[i].name);
    return tni_refuse(11, TN_E_DEVICE, "%.240s%s%s", said, at ? "; not found: " : "", missing);
}

static tn_status file_open(tni_registry *r, tni_plugin *p, const tn_plugin **out)
{
    char said[256];
    void *handle;
    tn_status st = tni_failpoint("plugin.map");

    if (st)
        return st;
    if (!tni_plugin_unchanged(p))
        return tni_refuse(13, TN_E_STATE, "%s changed while it was loaded; open Tenon again", p->path);
    if ((st = tni_plugin_room(r, p)))
        return st;
    dlerror();
    handle = dlopen(p->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        snprintf(said, sizeof said, "%s", linker_text(p->path));
        return linker_refuse(r, p, said);
    }
    if (!tni_plugin_unchanged(p))
        return tni_refuse(13, TN_E_STATE, "%s was replaced while it was loaded; open Tenon again", p->path);
    return entry_find(p, handle, out);
}

/* ---- options of the plugin ------------------------------------------------------------------- */

static tn_status row_copy(const tn_option_row *from, tni_option_def *to)
{
    static const char *const types[] = {"text",  "int",         "float", "bool",
                                        "bytes", "duration_ms", "list",  "choice"};
    bool known = false;

    if (from->struct_size < TN_END(tn_option_row, max) || !from->key || !from->key[0] || !from->type)
        return tni_refuse(13, TN_E_FORMAT, "a row of the plugin's option table has no key or type");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        known |= strcmp(from->type, types[i]) == 0;
    if (!known || (strcmp(from->type, "choice") == 0 && !from->choices))
        return tni_refuse(13, TN_E_FORMAT, "the plugin's option %.60s has the type %.60s", from->key,
                          from->type);
    if (from->flags)
        return tni_refuse(13, TN_E_FORMAT,
                          "the plugin's option %.60s has the flags %#x, of which none is known", from->key,
                          from->flags);
    *to = (tni_option_def){
        .key = from->key,
        .type = from->type,
        .choices = from->choices ? from->choices : "",
        .default_text = from->default_text ? from->default_text : "",
        .help = from->help ? from->help : "",
        .since = from->since ? from->since : "",
        .env = "",
        .min = from->min,
        .max = from->max,
    };
    return TN_OK;
}

static tn_status rows_read(tni_plugin *p, const tn_option_table *table)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);
    size_t count = 0;
    tn_status st = TN_OK;

    if (table->head.struct_size < TN_END(tn_option_table, rows) || !table->rows)
        return tni_refuse(13, TN_E_FORMAT, "%s has a table of options without rows", p->note.body.name);
    while (table->rows[count])
        if (++count > TNI_OPTION_ROWS_MAX)
            return tni_refuse(13, TN_E_FORMAT, "the plugin's option table has over %d rows",
                              TNI_OPTION_ROWS_MAX);
    tni_free(in->rows);
    in->rows = tni_calloc(count + 1, sizeof *in->rows);
    if (!in->rows)
        return TN_E_NOMEM;
    for (size_t i = 0; i < count && !st; i++)
        st = row_copy(table->rows[i], &in->rows[i]);
    in->services.rows = in->rows;
    in->services.row_count = st ? 0 : count;
    return st;
}

static tn_status options_take(tni_registry *r, tni_plugin *p, const tn_plugin *d)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);

    for (size_t i = 0; d->capabilities[i]; i++) {
        tn_status st = TN_OK;

        if (d->capabilities[i]->kind == TN_KIND_OPTIONS)
            st = rows_read(p, (const tn_option_table *)(const void *)d->capabilities[i]);
        else if (!tni_kind_name(d->capabilities[i]->kind))
            tni_logf(&r->log, TN_LOG_WARNING,
                     "L18 %s: a table of kind %u is newer than this core and was left out", p->note.body.name,
                     d->capabilities[i]->kind);
        if (st)
            return st;
    }
    return tni_options_check_plugin(r->options, p->note.body.name, in->services.rows, in->services.row_count);
}

/* ---- init ------------------------------------------------------------------------------------ */

static tn_status init_call(tni_registry *r, tni_plugin *p, const tn_plugin *d)
{
    tn_err err = {0};
    uint64_t began = tni_clock_ns(), took;
    tn_status st;

    if (!d->init)
        return TN_OK;
    st = d->init(&p->host, &p->self, &err);
    took = tni_clock_ns() - began;
    if (took > INIT_LONG_NS)
        tni_logf(&r->log, TN_LOG_INFO, "%s: init took %llu ms, 100 are allowed", p->note.body.name,
                 (unsigned long long)(took / 1000000u));
    if (!st)
        return TN_OK;
    err.message[sizeof err.message - 1] = '\0';
    p->self = NULL;
    return tni_refuse(14, st > TN_OK && st <= TN_E_INTERNAL ? st : TN_E_INTERNAL,
                      "init of %s failed (%s): %s", p->note.body.name, tni_status_name(st),
                      err.message[0] ? err.message : "it does not say why");
}

tn_status tni_plugin_start(tni_registry *r, tni_plugin *p)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);
    const tn_plugin *d = in->fixed;
    tn_status st;

    if (!d && ((st = tni_plugin_recheck(r, p)) || (st = file_open(r, p, &d))))
        return st;
    tni_services_host(&in->services, &p->host);
    if ((st = tni_refuse_descriptor(d, &p->note, tni_abi_of_core())) || (st = options_take(r, p, d)) ||
        (st = init_call(r, p, d)))
        return st;
    p->descriptor = d;
    return TN_OK;
}
