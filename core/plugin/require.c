/*
 * plugins.require: what is named there is loaded at once, or nothing is opened at all. The error is one text
 * with the first reasons; the whole list, folder by folder and file by file, goes to the log.
 */
#include <string.h>

#include "plugin/internal.h"

#define NAMED_MAX 256 /* files that one message lists */

static tni_plugin *plugin_at(const tni_registry *r, size_t index)
{
    return ((tni_plugin **)r->plugins.data)[index];
}

bool tni_plugin_may_be(const tni_plugin *p, const char *name)
{
    const char *file = strrchr(p->path, '/');
    size_t length = strlen(name);

    file = file ? file + 1 : p->path;
    return strcmp(p->note.body.name, name) == 0 ||
           (strncmp(file, name, length) == 0 && strcmp(file + length, ".so") == 0);
}

/* ---- what was searched ------------------------------------------------------------------------------- */

static void folders_tell(const tni_registry *r)
{
    const char *path;
    bool opened;
    size_t files;

    for (size_t i = 0; tni_registry_folder(r, i, &path, &opened, &files); i++)
        if (opened)
            tni_logf(&r->log, TN_LOG_ERROR, "searched %s: %zu file%s", path, files, files == 1 ? "" : "s");
        else
            tni_logf(&r->log, TN_LOG_ERROR, "searched %s: it cannot be opened", path);
}

static void candidate_tell(const tni_registry *r, const tni_plugin *p)
{
    if (p->code)
        tni_logf(&r->log, TN_LOG_ERROR, "refused %s: L%02u %s", p->path, p->code, p->reason);
    else
        tni_logf(&r->log, TN_LOG_ERROR, "refused %s: %s", p->path, p->reason);
}

static void usable_tell(const tni_registry *r)
{
    char text[400] = "";
    size_t at = 0;

    for (size_t i = 0; i < r->plugins.count && at < sizeof text; i++)
        if (!tni_plugin_unusable(plugin_at(r, i)))
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                                   plugin_at(r, i)->note.body.name);
    tni_logf(&r->log, TN_LOG_ERROR, "plugins that can be used: %s", text[0] ? text : "none");
}

static void search_tell(tni_registry *r)
{
    size_t named = 0, more = 0;

    folders_tell(r);
    for (size_t i = 0; i < r->plugins.count; i++) {
        if (!tni_plugin_unusable(plugin_at(r, i)))
            continue;
        if (named++ < NAMED_MAX)
            candidate_tell(r, plugin_at(r, i));
        else
            more++;
    }
    if (more)
        tni_logf(&r->log, TN_LOG_ERROR, "refused %zu more; `tenon plugins list` shows all", more);
    usable_tell(r);
}

/* ---- the error --------------------------------------------------------------------------------------- */

static tn_status required_absent(tni_registry *r, const char *name)
{
    char text[400], similar[200];
    int at = snprintf(text, sizeof text, "plugin %.40s is required, but ", name);
    size_t found = 0;

    if (!tni_options_collected(r->options)) /* one finding of many: a list would drown the others */
        search_tell(r);
    for (size_t i = 0; i < r->plugins.count && at < (int)sizeof text; i++) {
        const tni_plugin *p = plugin_at(r, i);

        if (!tni_plugin_unusable(p) || !tni_plugin_may_be(p, name))
            continue;
        if (p->code)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s: L%02u %.160s", found++ ? " · " : "",
                           p->path, p->code, p->reason);
        else
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s: %s", found++ ? " · " : "", p->path,
                           p->reason);
    }
    if (!found) {
        tni_registry_suggest(r, name, similar, sizeof similar);
        snprintf(text + at, sizeof text - (size_t)at, "no file in %zu candidates has this name%s",
                 r->plugins.count, similar);
    }
    return tni_refuse(17, TN_E_DEVICE, "%s", text);
}

tn_status tni_registry_require(tni_registry *r)
{
    size_t count = tni_option_list_count(r->options, "plugins.require");
    char name[TN_NOTE_NAME_BYTES];
    tn_status st = TN_OK;

    for (size_t i = 0; i < count && !st; i++) {
        tni_plugin *p;

        st = tni_option_list_item(r->options, "plugins.require", i, name, sizeof name);
        if (st)
            return st;
        p = tni_registry_find(r, name);
        st = p ? tni_plugin_load(r, p) : required_absent(r, name);
        if (st && p && tni_plugin_state(p) == TNI_PLUGIN_FAILED)
            st = required_absent(r, name);
        st = tni_options_problem(r->options, st);
    }
    return st;
}
