/*
 * Names that a configuration uses. Open-ended options name device types: [memory.D], Convolution@D. Once the
 * notes are known it is known which types there are; a type that nobody names is a spelling mistake, one that
 * is merely absent here is said in the log. Lists and pins name plugins, which may be absent for several
 * reasons.
 */
#include <string.h>

#include "plugin/internal.h"

#define TYPE_BYTES 64
#define TYPES_MAX (TN_PLUGINS_MAX + 16)

/* The device type in "memory.cpu.pool" or "kernel.Convolution@cpu"; false: the key names none. */
static bool type_of(const char *key, char out[TYPE_BYTES])
{
    const char *type = NULL;
    size_t length;

    if (strncmp(key, "memory.", 7) == 0)
        type = key + 7;
    else if (strncmp(key, "kernel.", 7) == 0 && strchr(key, '@'))
        type = strchr(key, '@') + 1;
    if (!type)
        return false;
    length = strcspn(type, ".");
    if (length == 0 || length >= TYPE_BYTES)
        return false;
    memcpy(out, type, length);
    out[length] = '\0';
    return true;
}

static bool listed(const char *type)
{
    for (const char *const *d = tni_option_devices(); *d; d++)
        if (strcmp(*d, type) == 0)
            return true;
    return false;
}

static bool noted(const tni_registry *r, const char *type)
{
    for (size_t i = 0; i < r->plugins.count; i++) {
        const tni_note *note = &((tni_plugin **)r->plugins.data)[i]->note;

        if (tni_note_provides(note, "device", type) || tni_note_provides(note, "kernels", type))
            return true;
    }
    return false;
}

static tn_status unknown(const char *key, const char *where, const char *type)
{
    const char *best[3];
    size_t found = tni_suggest(type, tni_option_devices(), best);

    return tni_error_number(1204, TN_E_KEY, "%s%sno device type %s (%.100s)%s%s%s", where,
                            where[0] ? ": " : "", type, key, found ? "; did you mean " : "",
                            found ? best[0] : "", found ? "?" : "");
}

static const tni_plugin *refused_find(const tni_registry *r, const char *name)
{
    for (size_t i = 0; i < r->plugins.count; i++) {
        const tni_plugin *p = ((tni_plugin **)r->plugins.data)[i];

        if (p->state == TNI_PLUGIN_REFUSED && tni_plugin_may_be(p, name))
            return p;
    }
    return NULL;
}

/* A name that no plugin has says nothing about kernels, but was meant to. */
static void prefer_warn(const tni_registry *r, const char *key, const char *where)
{
    char name[TYPE_BYTES], similar[300];

    for (size_t i = 0; i < tni_option_list_count(r->options, key); i++) {
        if (tni_option_list_item(r->options, key, i, name, sizeof name)) {
            tni_error_clear();
            continue;
        }
        if (tni_registry_find(r, name) || refused_find(r, name))
            continue;
        tni_registry_suggest(r, name, similar, sizeof similar);
        tni_logf(&r->log, TN_LOG_WARNING, "%s%s%s names the plugin %s: no plugin here has this name%s", where,
                 where[0] ? ": " : "", key, name, similar);
    }
}

tn_status tni_registry_check_devices(const tni_registry *r)
{
    const char *key, *value, *where;
    char type[TYPE_BYTES];
    int32_t origin;

    for (size_t i = 0; tni_options_at(r->options, i, &key, &value, &origin, &where); i++) {
        if (origin != TN_ORIGIN_DEFAULT && !strcmp(key, "kernel.prefer") &&
            !tni_options_collected(r->options))
            prefer_warn(r, key, where);
        if (origin == TN_ORIGIN_DEFAULT || origin == TN_ORIGIN_MXNET || !type_of(key, type) || noted(r, type))
            continue;
        if (!listed(type)) {
            tn_status st = tni_options_problem(r->options, unknown(key, where, type));

            if (st)
                return st;
        } else if (strcmp(type, "cpu") != 0)
            tni_logf(&r->log, TN_LOG_INFO, "%s%s%s is set, but no plugin here provides devices of type %s",
                     where, where[0] ? ": " : "", key, type);
    }
    return TN_OK;
}

bool tni_registry_has_device(const tni_registry *r, const char *type)
{
    return strcmp(type, "cpu") == 0 || noted(r, type);
}

/* ---- plugins ----------------------------------------------------------------------------------------- */

void tni_registry_suggest(const tni_registry *r, const char *name, char *out, size_t size)
{
    const char **names = tni_calloc(r->plugins.count + 1, sizeof *names);
    size_t count = 0;

    out[0] = '\0';
    if (!names)
        return; /* the name alone will do */
    for (size_t i = 0; i < r->plugins.count; i++) {
        const tni_plugin *p = ((tni_plugin **)r->plugins.data)[i];

        if (!p->code && p->note.body.name[0])
            names[count++] = p->note.body.name;
    }
    names[count] = NULL;
    tni_suggest_text(name, names, out, size);
    tni_free(names);
}

bool tni_registry_lacks(const tni_registry *r, const char *name, char why[TNI_PLUGIN_WHY_BYTES])
{
    const tni_plugin *found = tni_registry_find(r, name);
    char similar[300];

    if (found && found->state != TNI_PLUGIN_FAILED)
        return false;
    if (!found)
        found = refused_find(r, name);
    if (!found) {
        tni_registry_suggest(r, name, similar, sizeof similar);
        (void)snprintf(why, TNI_PLUGIN_WHY_BYTES, "no plugin here has this name%s", similar);
    } else if (found->code) {
        (void)snprintf(why, TNI_PLUGIN_WHY_BYTES, "it is refused, L%02u: %.300s", found->code, found->reason);
    } else {
        (void)snprintf(why, TNI_PLUGIN_WHY_BYTES, "it is %.300s", found->reason);
    }
    return true;
}
