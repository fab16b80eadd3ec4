/*
 * A plugin that is named by its file. It is asked everything that a file of the folders is asked; then it is
 * one of the candidates. What has its name and was not loaded yields and stays in the list as L15; what is
 * loaded stays, and the file is L15.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

/* The file's folder, resolved, and `path` through it. The file itself may be no symbolic link. */
static tn_status path_resolve(const char *path, char folder[PATH_MAX], char **out)
{
    const char *slash = strrchr(path, '/');
    char above[TN_PATH_BYTES_MAX];

    if (path[0] != '/')
        return tni_refuse(1, TN_E_ARG, "%.200s is no absolute path", path);
    if (!slash[1] || strlen(path) >= sizeof above)
        return tni_refuse(1, TN_E_ARG, "%.200s is no regular file", path);
    snprintf(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (!realpath(above, folder))
        return tni_refuse(1, TN_E_IO, "%.200s cannot be opened", path);
    return tni_path_join(folder, slash + 1, out);
}

/* The candidate that is this very file and was not refused. */
static tni_plugin *file_known(const tni_registry *r, const tni_plugin *p)
{
    const tni_plugin_internal *own = tni_plugin_internal_of(p);

    for (size_t i = 0; i < r->plugins.count; i++) {
        tni_plugin *have = ((tni_plugin **)r->plugins.data)[i];
        const tni_plugin_internal *in = tni_plugin_internal_of(have);

        if (tni_plugin_state(have) != TNI_PLUGIN_REFUSED && in->inode == own->inode &&
            in->device == own->device)
            return have;
    }
    return NULL;
}

/* The one with the name of `p`, if it may yield; TN_E_KEY (L15) if it is loaded. */
static tn_status namesake(const tni_registry *r, const tni_plugin *p, tni_plugin **out)
{
    for (size_t i = 0; i < r->plugins.count; i++) {
        tni_plugin *have = ((tni_plugin **)r->plugins.data)[i];

        if (tni_plugin_state(have) == TNI_PLUGIN_REFUSED ||
            strcmp(have->note.body.name, p->note.body.name) != 0)
            continue;
        if (tni_plugin_state(have) == TNI_PLUGIN_LOADED)
            return tni_refuse(15, TN_E_KEY, "%.60s is loaded already, from %.200s", p->note.body.name,
                              have->path);
        *out = have;
    }
    return TN_OK;
}

/* A failed one keeps its own reason. */
static void yield(tni_plugin *p, const char *to)
{
    if (tni_plugin_state(p) == TNI_PLUGIN_READY) {
        p->code = 15;
        snprintf(p->reason, sizeof p->reason, "%.300s was opened in its place", to);
    }
    tni_plugin_turn(p, TNI_PLUGIN_REFUSED);
}

/* Makes `p` a candidate; `*out` is what is one now: it may be the same file, found before. */
static tn_status enter_locked(tni_registry *r, tni_plugin *p, tni_plugin **out) TN_REQUIRES(&r->lock);
static tn_status enter_locked(tni_registry *r, tni_plugin *p, tni_plugin **out)
{
    tni_plugin *have, *other = NULL;
    tn_status st;

    while (r->loading && r->loading != tni_thread_id())
        tni_cond_wait(&r->changed, &r->lock);
    if (r->loading)
        return tni_error(TN_E_STATE, "a plugin may not open another one while it is loaded");
    have = file_known(r, p);
    if (have && tni_plugin_state(have) == TNI_PLUGIN_FAILED)
        return tni_error_number(TNI_REFUSAL_BASE + have->code, TN_E_DEVICE,
                                "%.100s is unusable: L%02u %.300s", have->path, have->code, have->reason);
    *out = have ? have : p;
    if (have)
        return TN_OK;
    if ((st = namesake(r, p, &other)) || (st = tni_vec_push(&r->plugins, &p)))
        return st;
    if (other)
        yield(other, p->path);
    tni_plugin_turn(p, TNI_PLUGIN_READY);
    tni_registry_sort(r);
    atomic_fetch_add(&r->opened, 1);
    return TN_OK;
}

tn_status tni_registry_open(tni_registry *r, const char *path, tni_plugin **out)
{
    char folder[PATH_MAX];
    char *resolved = NULL;
    tni_plugin *p = NULL, *entered = NULL;
    tn_status st;

    if ((st = path_resolve(path, folder, &resolved)) || (st = tni_plugin_create(r, resolved, &p)) ||
        (st = tni_trust_folder(&r->trust, folder)) || (st = tni_plugin_check(r, p)))
        goto cleanup;
    if (!tni_plugin_internal_of(p)->permitted) {
        st = tni_error(TN_E_STATE, "plugin %s is not in plugins.load", p->note.body.name);
        goto cleanup;
    }
    tni_mutex_lock(&r->lock);
    st = enter_locked(r, p, &entered);
    tni_mutex_unlock(&r->lock);
    if (st)
        goto cleanup;
    *out = entered;
    if (entered == p)
        p = NULL;

cleanup:
    tni_plugin_destroy(p);
    tni_free(resolved);
    return st;
}
