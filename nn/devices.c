/*
 * Several devices: device.default is a list, and a net has its parameters once on each, made when a call
 * first needs them. A call runs where its first input lies: for its time the parameters' arrays are those of
 * that device, so layers and programs know nothing of it.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static tn_status device_add(tn_app *app, const char *name)
{
    const tn_device *device = NULL;

    if (tnn_check(app, tn_device_get(app->ctx, name, &device), "device.default"))
        return app->status;
    for (size_t i = 0; i < app->device_count; i++)
        if (app->devices[i] == device)
            return tnn_fail(app, TN_E_ARG, "device.default: %s is listed twice", name);
    if (app->device_count == TNN_DEVICES_MAX)
        return tnn_fail(app, TN_E_ARG, "device.default: more than %d devices", TNN_DEVICES_MAX);
    app->devices[app->device_count++] = device;
    return TN_OK;
}

tn_status tnn_devices_open(tn_app *app)
{
    const char *at = tn_ctx_option(app->ctx, "device.default");
    char name[64];

    while (at && !app->status) {
        size_t length = strcspn(at += strspn(at, " "), ",");
        const char *next = at[length] ? at + length + 1 : NULL;

        while (length && at[length - 1] == ' ')
            length--;
        (void)snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), at);
        (void)device_add(app, name);
        at = next;
    }
    return app->status;
}

size_t tn_app_devices(const tn_app *app)
{
    return app ? app->device_count : 0;
}

size_t tnn_device_index(const tn_app *app, tn_array *array)
{
    const tn_device *device = app->device_count > 1 ? tn_array_device(array) : NULL;
    size_t i = device ? app->device_count : 0;

    while (i && app->devices[--i] != device)
        ;
    return i;
}

static tn_array *array_on(tn_app *app, tn_array *array, const tn_device *device)
{
    tn_array *copy = NULL;

    if (!array || tn_array_device(array) == device)
        return array;
    return tnn_check(app, tn_array_to(app->ctx, array, device, &copy), "copy to another device")
               ? NULL
               : tn_app_own(app, copy);
}

/* Reads a dense array into memory that the caller frees; waits. */
static tn_status read_all(tn_app *app, tn_array *array, void **out)
{
    const uint64_t bytes = tn_array_bytes(array);

    *out = tnn_alloc(app, 1, bytes + 1);
    return *out ? tn_array_read(array, *out, bytes) : TN_E_NOMEM;
}

/* Its rows by way of the host: a sparse array cannot be copied as a whole. */
tn_array *tnn_rows_on(tn_app *app, tn_array *array, size_t index)
{
    tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                            .storage = TN_STORAGE_ROW_SPARSE,
                            .dtype = tn_array_dtype(array)};
    tn_array *values = NULL, *ids = NULL, *rows = NULL;
    void *numbers = NULL, *indices = NULL;
    const tn_device *before;
    tn_status st;

    if (tn_array_device(array) == app->devices[index])
        return array;
    if (!(st = tn_array_shape(array, &from.ndim, &from.shape)) && !(st = tn_array_values(array, &values)) &&
        !(st = tn_array_aux(array, 0, &ids)) && !(st = read_all(app, values, &numbers)) &&
        !(st = read_all(app, ids, &indices))) {
        from.stored = (int64_t)tn_array_count(ids);
        from.values = numbers;
        from.indices = indices;
        before = tn_device_use(app->devices[index]);
        st = tn_array_sparse_from(app->ctx, &from, &rows);
        (void)tn_device_use(before);
    }
    tn_array_release(values);
    tn_array_release(ids);
    free(numbers);
    free(indices);
    return tnn_check(app, st, "rows to another device") ? NULL : tn_app_own(app, rows);
}

tn_array *tnn_on(tn_app *app, tn_array *array, size_t index)
{
    return app->device_count > 1 && tnn_ok(app) ? array_on(app, array, app->devices[index]) : array;
}

/* Rows of part `index` are those from N * index / count on. */
tn_array *tn_app_part(tn_app *app, tn_array *array, size_t index)
{
    return tnn_part_along(app, array, index, 0);
}

tn_array *tnn_part_along(tn_app *app, tn_array *array, size_t index, int32_t axis)
{
    const int64_t *shape = NULL;
    tn_array *rows = NULL, *whole = NULL;
    int64_t count, begin, end;
    int32_t ndim = 0;
    tn_status st;

    if (!tnn_ok(app) || !array)
        return NULL;
    count = (int64_t)app->device_count;
    if (index >= app->device_count || tnn_check(app, tn_array_shape(array, &ndim, &shape), "tn_app_part"))
        return tnn_fail(app, TN_E_ARG, "tn_app_part: part %zu of %zu", index, app->device_count), NULL;
    if (count == 1)
        return array;
    if (axis < 0)
        return tnn_on(app, array, index);
    if (ndim <= axis || shape[axis] < count)
        return tnn_fail(app, TN_E_SHAPE, "tn_app_part: a batch of %lld rows for %lld devices",
                        ndim <= axis ? 0LL : (long long)shape[axis], (long long)count),
               NULL;
    begin = shape[axis] * (int64_t)index / count;
    end = shape[axis] * (int64_t)(index + 1) / count;
    st = axis ? tnn_slice(array, axis, begin, end, &rows) : tn_array_slice(array, begin, end, &rows);
    if (!st)
        st = tn_array_to(app->ctx, rows, app->devices[index], &whole);
    tn_array_release(rows);
    return tnn_check(app, st, "tn_app_part") ? NULL : tn_app_own(app, whole);
}

/* ---- parameters --------------------------------------------------------------------------------------- */

void tnn_param_copies_drop(tnn_param *p)
{
    for (size_t i = 0; p->copies && i + 1 < TNN_DEVICES_MAX; i++)
        tn_array_release(p->copies[i]);
    free(p->copies);
    p->copies = NULL;
}

tn_array *tnn_param_on(tn_app *app, tnn_param *p, size_t index)
{
    tn_array *copy = NULL, *rows = NULL;
    tn_status st;

    if (!index || !p->array)
        return p->array;
    if (!p->copies && !(p->copies = tnn_alloc(app, TNN_DEVICES_MAX - 1, sizeof(*p->copies))))
        return NULL;
    if (p->copies[index - 1])
        return p->copies[index - 1];
    st = tn_array_to(app->ctx, p->array, app->devices[index], &copy);
    if (!st && p->rows) {
        const tn_device *before = tn_device_use(app->devices[index]);

        st = tnn_rows_none(app, p, &rows);
        (void)tn_device_use(before);
    }
    if (!st && !p->fixed)
        st = tn_attach_grad(app->ctx, copy, p->mode, rows);
    tn_array_release(rows);
    if (tnn_check(app, st, "parameter %s", p->full)) {
        tn_array_release(copy);
        return NULL;
    }
    return p->copies[index - 1] = copy;
}

/* What a call changes lies on all devices before the first one does: a call that waits for those on other
 * devices would hold the copies up that these begin with. */
tn_status tnn_param_spread(tn_app *app, tnn_param *p)
{
    for (size_t k = 1; p->aux && k < app->device_count && !app->status; k++)
        (void)tnn_param_on(app, p, k);
    return app->status;
}

/* Twice: as before. */
static void params_turn(tnn_param *const *params, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        tn_array *first = params[i]->array;

        params[i]->array = params[i]->copies[index - 1];
        params[i]->copies[index - 1] = first;
    }
}

tn_status tnn_net_run_on(size_t index, tnn_run_fn run, tn_net *net, tn_array *const *in, tn_array **out)
{
    tn_app *app = net->object.app;
    const tn_device *before;
    tnn_param **params;
    size_t count;
    tn_status st;

    if (tnn_net_collect(net) || tnn_net_valued(net))
        return app->status;
    count = net->param_count;
    if (!(params = tnn_alloc(app, count + 1, sizeof(*params))))
        return app->status;
    for (size_t i = 0; i < count && !app->status; i++)
        if (tnn_param_on(app, params[i] = net->params[i], index) == NULL)
            (void)tnn_fail(app, TN_E_STATE, "net %s: parameter %s has no values", net->path, params[i]->full);
    if (!app->status) {
        params_turn(params, count, index);
        before = tn_device_use(app->devices[index]);
        st = run(app, net, in, out);
        (void)tn_device_use(before);
        params_turn(params, count, index);
        if (st && !app->status)
            (void)tnn_fail(app, st, "net %s", net->path);
    }
    free(params);
    return app->status;
}
