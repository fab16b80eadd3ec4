/* Numbers of samples in batches; and slices of a batch, for several devices. */
#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define SAMPLES_MAX ((int64_t)UINT32_MAX)

struct tn_sampler {
    tnn_object object;
    bool failed;
    tnn_order order;
    int64_t *numbers; /* of an epoch, in order */
    int64_t *batch;
    int64_t epoch, index; /* of the next batch */
};

static void sampler_destroy(tnn_object *object)
{
    tn_sampler *s = (tn_sampler *)object;

    tnn_order_free(&s->order);
    free(s->numbers);
    free(s->batch);
    free(s);
}

tn_app *tnn_sampler_app(const tn_sampler *s)
{
    return s && !s->failed && tnn_ok(s->object.app) ? s->object.app : NULL;
}

int64_t tnn_sampler_batch(const tn_sampler *s)
{
    return s->order.batch;
}

/* Those that are asked for, in order; how many. */
static int64_t numbers_fill(const tn_sampler_options *o, int64_t *out)
{
    const int64_t interval = o->interval < o->count ? o->interval : o->count; /* of larger ones the same */
    const int64_t step = interval ? interval : 1, rounds = o->once ? 1 : step;
    int64_t count = 0;

    for (int64_t first = 0; first < rounds; first++)
        for (int64_t i = first; i < o->count; i += step)
            if (!o->keep || o->keep(o->arg, o->start + i))
                out[count++] = o->start + i;
    return count;
}

static tn_status sampler_fill(tn_app *app, tn_sampler *s, const tn_sampler_options *o)
{
    const int64_t parts = o->parts ? o->parts : 1;
    int64_t begin, end;

    if (!(s->numbers = tnn_alloc(app, (size_t)o->count, sizeof *s->numbers)))
        return app->status;
    tnn_share(numbers_fill(o, s->numbers), parts, o->part, &begin, &end);
    s->order.count = end - begin;
    if (begin == end)
        return tnn_fail(app, TN_E_ARG, "a sampler: no sample is left of %lld", (long long)o->count);
    memmove(s->numbers, s->numbers + begin, (size_t)s->order.count * sizeof *s->numbers);
    if (!tnn_order_room(app, &s->order, "a sampler"))
        s->batch = tnn_alloc(app, (size_t)s->order.batch, sizeof *s->batch);
    return app->status;
}

tn_sampler *tn_sampler_new_(tn_app *app, const tn_sampler_options *options)
{
    tn_sampler_options o = {0};
    char what[96];
    tnn_order order;
    tn_sampler *s;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_sampler_new at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app))
        return NULL;
    o.batch += !o.batch;
    if (o.count < 1 || o.count > SAMPLES_MAX || o.interval < 0 || o.start < 0 ||
        o.start > INT64_MAX - o.count)
        (void)tnn_fail(app, TN_E_ARG, "%s: .count is to be 1 to 2^32 - 1, .start and .interval at least 0",
                       what);
    if (app->status || tnn_order_take(app, what, TNN_CUT_OF(o), &order) ||
        !(s = tnn_alloc(app, 1, sizeof *s)))
        return NULL;
    tnn_object_add(app, &s->object, sampler_destroy);
    s->order = order;
    s->failed = sampler_fill(app, s, &o) != TN_OK;
    return s->failed ? NULL : s;
}

int64_t tn_sampler_count(const tn_sampler *s)
{
    return tnn_sampler_app(s) ? s->order.count : 0;
}

int64_t tn_sampler_batches(const tn_sampler *s)
{
    return tnn_sampler_app(s) ? tnn_order_batches(&s->order, s->epoch) : 0;
}

int64_t tn_sampler_next(tn_sampler *s, const int64_t **numbers)
{
    int64_t n;

    if (!tnn_sampler_app(s) || !numbers)
        return 0;
    *numbers = s->batch;
    if (s->index >= tnn_order_batches(&s->order, s->epoch)) {
        s->epoch += s->epoch < TNN_EPOCH_MAX;
        s->index = 0;
        return 0;
    }
    n = tnn_order_rows(&s->order, s->epoch, s->index++);
    for (int64_t i = 0; i < n; i++)
        s->batch[i] = s->numbers[s->order.rows[i]];
    return n;
}

void tn_sampler_seek(tn_sampler *s, int64_t epoch, int64_t index)
{
    tn_app *app = tnn_sampler_app(s);

    if (!app)
        return;
    if (epoch < 0 || epoch > TNN_EPOCH_MAX || index < 0 || index > tnn_order_batches(&s->order, epoch)) {
        (void)tnn_fail(app, TN_E_ARG, "a sampler: there is no batch %lld of epoch %lld", (long long)index,
                       (long long)epoch);
        return;
    }
    s->epoch = epoch;
    s->index = index;
}

/* ---- slices -------------------------------------------------------------------------------------------- */

tn_status tnn_slice(tn_array *x, int32_t axis, int64_t begin, int64_t end, tn_array **out)
{
    const int64_t *shape = NULL, *stride = NULL;
    int64_t size[TN_NDIM_MAX];
    int32_t ndim = 0;
    tn_status st;

    if ((st = tn_array_shape(x, &ndim, &shape)) || (st = tn_array_stride(x, &stride)))
        return st;
    memcpy(size, shape, (size_t)ndim * sizeof *size);
    size[axis] = end - begin;
    return tn_array_view(x, (uint64_t)(begin * stride[axis]), ndim, size, stride, out);
}

int tn_split_data(tn_app *app, tn_array *x, size_t count, int32_t axis, int32_t uneven, tn_array **out)
{
    const int64_t *shape = NULL, n = (int64_t)count;
    int64_t begin = 0, end;
    int32_t ndim = 0;

    if (!tnn_ok(app))
        return 0;
    if (!x || !out || count < 1 || count > INT32_MAX)
        return !tnn_fail(app, TN_E_ARG, "tn_split_data: x or out is NULL, or count is not 1 or more");
    if (tnn_check(app, tn_array_shape(x, &ndim, &shape), "tn_split_data"))
        return 0;
    axis += axis < 0 ? ndim : 0;
    if (axis < 0 || axis >= ndim)
        return !tnn_fail(app, TN_E_ARG, "tn_split_data: x has %d dimensions", ndim);
    if (!uneven && shape[axis] % n)
        return !tnn_fail(
            app, TN_E_SHAPE,
            "tn_split_data: %lld along axis %d are not cut evenly into %lld; take a batch that is a "
            "multiple of it, or say uneven",
            (long long)shape[axis], axis, (long long)n);
    for (int64_t k = 0; k < n; k++, begin = end) {
        end = begin + shape[axis] / n + (k < shape[axis] % n);
        out[k] = NULL;
        if (tnn_check(app, tnn_slice(x, axis, begin, end, &out[k]), "tn_split_data"))
            return 0;
        if (!(out[k] = tn_app_own(app, out[k])))
            return 0;
    }
    return 1;
}

int tn_split_and_load(tn_app *app, tn_array *x, const char *const *devices, int32_t axis, int32_t uneven,
                      tn_array **out)
{
    const tn_device *device = NULL;
    size_t count = 0;
    tn_status st;

    if (!tnn_ok(app))
        return 0;
    while (devices && devices[count])
        count++;
    if (!tn_split_data(app, x, count, axis, uneven, out))
        return 0;
    for (size_t k = 0; k < count; k++) {
        tn_array *there = NULL;

        if (!(st = tn_device_get(app->ctx, devices[k], &device)))
            st = tn_array_to(app->ctx, out[k], device, &there);
        if (tnn_check(app, st, "tn_split_and_load") || !(out[k] = tn_app_own(app, there)))
            return 0;
    }
    return 1;
}
