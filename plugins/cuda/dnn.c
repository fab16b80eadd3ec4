/*
 * cuDNN: opened when an operator first asks for it, with one handle for each device.
 *
 * A machine without it, or a device that it does not serve, loses speed alone: our own kernels stand behind
 * all that is done here.
 */
#include "dnn.h"

#include <stdio.h>
#include <string.h>

tn_status tncuda_dnn_fail(const tncuda_dnn *dnn, tncuda_dnn_status status, const char *call, tn_err *err)
{
    char last[256] = "";
    const char *name = dnn->text(status);

    dnn->last(last, sizeof last);
    last[sizeof last - 1] = '\0';
    last[strcspn(last, "\n")] = '\0';
    return tn_failf(err, TN_E_UNSUPPORTED, "cuDNN: %s gives %s (%d)%s%s", call, name ? name : "a status",
                    (int)status, *last ? ": " : "", last);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static tn_status library_find(const tncuda_plugin *p, tncuda_dnn *dnn, tn_err *err)
{
    static const char *const files[] = {TNCUDA_DNN_FILE, NULL};
    const library_function rows[] = {
#define DNN(result, member, name, params) {name, (void *)&dnn->member},
#include "dnn.list"
#undef DNN
    };
    const tncuda_library l = {files, rows, sizeof rows / sizeof *rows, "", "", "install cuDNN 9"};
    const char *file;

    return tncuda_library_open(p, &l, &dnn->library, &file, err);
}

/* What follows from the library's state, of which `line` tells. */
static tncuda_dnn *dnn_make(const tncuda_plugin *p, char *line, size_t bytes)
{
    tncuda_dnn *made = tncuda_new(p, sizeof *made);
    tn_err why = {0};

    if (!made)
        return NULL;
    for (uint32_t i = 0; i < TNCUDA_DEVICES_MAX; i++)
        pthread_mutex_init(&made->devices[i].lock, NULL);
    if (library_find(p, made, &why))
        (void)snprintf(line, bytes, "cuDNN is not used, convolutions are our own: %s", why.message);
    else
        (void)snprintf(line, bytes, "cuDNN %zu", made->version());
    return made;
}

tn_status tncuda_dnn_need(tncuda_plugin *plugin, const tncuda_dnn **out, tn_err *err)
{
    char line[640] = "";
    tncuda_dnn *dnn;

    pthread_mutex_lock(&plugin->lock);
    if (!plugin->dnn)
        plugin->dnn = dnn_make(plugin, line, sizeof line);
    dnn = plugin->dnn;
    pthread_mutex_unlock(&plugin->lock);
    if (*line)
        tncuda_log(plugin, TN_LEVEL_INFO, "%s", line);
    if (!dnn)
        return tncuda_nomem(err, "cuDNN");
    *out = dnn;
    return dnn->library ? TN_OK : tncuda_absent(err, "there is no cuDNN");
}

/* ---- handles ------------------------------------------------------------------------------------------- */

tn_status tncuda_dnn_handle_locked(tncuda_plugin *plugin, int32_t device, tncuda_dnn_device **out, char *line,
                                   size_t bytes, tn_err *err)
{
    tncuda_dnn *dnn = plugin->dnn;
    tncuda_dnn_device *d = &dnn->devices[device];
    tncuda_dnn_status status;
    tn_err why = {0};

    if (!d->handle && !d->refused && (status = dnn->create(&d->handle))) {
        d->handle = NULL;
        d->refused = true;
        (void)tncuda_dnn_fail(dnn, status, "cudnnCreate", &why);
        (void)snprintf(line, bytes, "cuda:%d: convolutions are our own: %s", (int)device, why.message);
    }
    if (d->refused)
        return tncuda_absent(err, "cuDNN does not serve this device");
    *out = d;
    return TN_OK;
}

void tncuda_dnn_device_drop(tncuda_plugin *plugin, int32_t device)
{
    tncuda_dnn *dnn = plugin->dnn;
    tncuda_dnn_device *d = dnn ? &dnn->devices[device] : NULL;
    tncuda_context gone;

    if (!d || !dnn->library || plugin->driver.context_push(plugin->contexts[device].context))
        return;
    pthread_mutex_lock(&d->lock);
    tncuda_dnn_plans_drop_locked(plugin, d);
    if (d->handle)
        (void)dnn->destroy(d->handle);
    d->handle = NULL;
    d->refused = false;
    pthread_mutex_unlock(&d->lock);
    (void)plugin->driver.context_pop(&gone);
}

void tncuda_dnn_delete(tncuda_plugin *plugin)
{
    for (uint32_t i = 0; plugin->dnn && i < TNCUDA_DEVICES_MAX; i++)
        pthread_mutex_destroy(&plugin->dnn->devices[i].lock);
    tncuda_delete(plugin, plugin->dnn);
    plugin->dnn = NULL;
}
