/* Modules at work: executors by bucket and shapes, all over the same parameters. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

void tnn_module_unbind(tn_module *m)
{
    for (size_t i = 0; i < m->executor_count; i++)
        tn_executor_destroy(m->executors[i].executor);
    m->executor_count = 0;
    m->now_count = 0;
}

/* ---- executors -------------------------------------------------------------------------------- */

static bool shapes_equal(const tnn_bound *b, const tn_module *m, size_t device, uint32_t given,
                         const tnn_shape *in)
{
    if (b->bucket != m->bucket || b->given != given || b->device != device)
        return false;
    for (uint32_t i = 0; i < given; i++)
        if (b->shapes[i].ndim != in[i].ndim ||
            memcmp(b->shapes[i].dims, in[i].dims, (size_t)in[i].ndim * sizeof *in[i].dims) != 0)
            return false;
    return true;
}

/* The module's mode is that of the parameter's own gradient, too: the optimizer reads it there. */
static tn_status param_bind(tn_app *app, const tn_module *m, tnn_param *p, size_t device, tn_binding *b)
{
    if (tnn_param_spread(app, p) || !(b->array = tnn_param_on(app, p, device)) || p->fixed || m->predict)
        return app->status;
    b->grad = tn_array_grad(b->array);
    b->mode = m->mode;
    return tnn_check(app, b->grad ? TN_OK : TN_E_INTERNAL, "module %s: parameter %s", m->name, p->full);
}

/* An array of zeros for an input or label, in the shape that inference found. */
static tn_status input_bind(tn_app *app, const tn_module *m, const tn_known *k, tn_binding *b)
{
    bool data = false;
    tn_status st;

    for (uint32_t i = 0; i < m->data_count; i++)
        data |= !strcmp(m->inputs[i], k->name);
    st = tn_array_zeros(app->ctx, k->dtype, k->ndim, k->shape, NULL, &b->array);
    if (!st && data && m->input_grads && (k->dtype == TN_F32 || k->dtype == TN_F64 || k->dtype == TN_F16)) {
        b->mode = TN_MODE_WRITE;
        st = tn_array_zeros(app->ctx, k->dtype, k->ndim, k->shape, NULL, &b->grad);
    }
    return tnn_check(app, st, "module %s: input %s", m->name, k->name);
}

static tn_status bindings_fill(tn_app *app, const tn_module *m, const tn_inferred *found, size_t device,
                               tn_binding *b)
{
    for (size_t i = 0; i < m->bucket->count && !app->status; i++) {
        tnn_param *p = tnn_module_param(m, m->bucket->names[i]);
        tn_known k;

        b[i].name = m->bucket->names[i];
        if (p)
            (void)param_bind(app, m, p, device, &b[i]);
        else if (!tnn_check(app, tn_inferred_at(found, TN_LIST_INPUTS, i, &k), "module %s", m->name))
            (void)input_bind(app, m, &k, &b[i]);
    }
    return app->status;
}

static tn_status executor_make(tn_app *app, tn_module *m, size_t device, uint32_t given, const tnn_shape *in,
                               tn_executor **out)
{
    tn_binding *b = tnn_alloc(app, m->bucket->count + 1, sizeof *b);
    tn_known known[TNN_VALUES_MAX];
    tn_inferred *found = NULL;

    if (!b)
        return app->status;
    for (uint32_t i = 0; i < given; i++)
        known[i] = (tn_known){
            .name = m->inputs[i], .shape = in[i].dims, .ndim = in[i].ndim, .dtype = TN_DTYPE_UNKNOWN};
    if (!tnn_check(app, tn_symbol_infer(m->bucket->symbol, given, known, 0, &found), "module %s", m->name) &&
        !bindings_fill(app, m, found, device, b)) {
        const tn_bind_options o = {
            .struct_size = TN_SIZE(tn_bind_options), .count = (uint32_t)m->bucket->count, .bindings = b};

        (void)tnn_check(app, tn_executor_bind(app->ctx, m->bucket->symbol, &o, out), "module %s", m->name);
    }
    for (size_t i = 0; i < m->bucket->count; i++)
        if (b[i].array && !tnn_module_param(m, b[i].name)) {
            tn_array_release(b[i].array);
            tn_array_release(b[i].grad);
        }
    tn_inferred_destroy(found);
    free(b);
    if (!app->status && m->monitor)
        (void)tnn_check(app, tn_executor_monitor(*out, m->monitor, m->monitor_arg, m->monitor_flags),
                        "module %s", m->name);
    return app->status;
}

/* A free place, or that of the one used least recently. */
static tnn_bound *place_take(tn_module *m)
{
    tnn_bound *oldest = &m->executors[0];

    if (m->executor_count < TNN_EXECUTORS_MAX)
        return &m->executors[m->executor_count++];
    for (size_t i = 1; i < m->executor_count; i++)
        if (m->executors[i].used < oldest->used)
            oldest = &m->executors[i];
    tn_executor_destroy(oldest->executor);
    return oldest;
}

static tnn_bound *executor_find(tn_app *app, tn_module *m, size_t device, uint32_t given, const tnn_shape *in)
{
    const tn_device *before;
    tn_executor *made = NULL;
    tnn_bound *b = NULL;

    for (size_t i = 0; i < m->executor_count && !b; i++)
        if (shapes_equal(&m->executors[i], m, device, given, in))
            b = &m->executors[i];
    before = tn_device_use(app->device_count > 1 ? app->devices[device] : NULL);
    if (!b && executor_make(app, m, device, given, in, &made)) {
        tn_executor_destroy(made);
        made = NULL;
    }
    (void)tn_device_use(before);
    if (!b && !made)
        return NULL;
    if (!b) {
        b = place_take(m);
        b->executor = made;
        b->bucket = m->bucket;
        b->device = device;
        b->given = given;
        memcpy(b->shapes, in, given * sizeof *in);
    }
    b->used = ++m->uses;
    return b;
}

/* ---- a step ----------------------------------------------------------------------------------- */

static tn_status ready_check(tn_app *app, const tn_module *m, size_t count, tn_array *const *arrays)
{
    if (!m->bound || !m->valued)
        return tnn_fail(app, TN_E_STATE, "module %s: %s() comes before tn_module_forward()", m->name,
                        m->bound ? "tn_module_init_params" : "tn_module_bind");
    if (!arrays || count < m->data_count || count > m->data_count + m->label_count)
        return tnn_fail(app, TN_E_ARG, "module %s takes %u inputs and %u labels, %zu arrays are given",
                        m->name, m->data_count, m->label_count, count);
    for (size_t i = 0; i < count; i++)
        if (!arrays[i])
            return tnn_fail(app, TN_E_ARG, "module %s: the array of \"%s\" is NULL", m->name, m->inputs[i]);
    return TN_OK;
}

/* Samples of `array` that device `k` of `parts` computes with; all of them where there is one. */
static tn_array *part_of(tn_app *app, tn_array *array, int32_t axis, size_t parts, size_t k)
{
    return parts > 1 ? tnn_part_along(app, array, k, axis) : array;
}

static tn_status part_forward(tn_app *app, tn_module *m, bool train, size_t count, tn_array *const *arrays,
                              size_t parts)
{
    const size_t k = m->now_count;
    tn_named_array named[TNN_VALUES_MAX];
    tnn_shape in[TNN_VALUES_MAX];

    for (size_t i = 0; i < count; i++) {
        named[i] = (tn_named_array){m->inputs[i], part_of(app, arrays[i], m->now_axes[i], parts, k)};
        if (!named[i].array || tnn_shape_take(app, named[i].array, m->inputs[i], &in[i]))
            return app->status;
    }
    if (!(m->now[k] = executor_find(app, m, k, (uint32_t)count, in)))
        return app->status;
    m->now_count++;
    return tnn_check(app, tn_executor_forward(m->now[k]->executor, train, (uint32_t)count, named),
                     "module %s", m->name);
}

/* Of the first input that has some. */
static tn_status samples_count(tn_app *app, tn_module *m, size_t count, tn_array *const *arrays,
                               const int32_t *axes)
{
    bool found = false;

    m->samples = 1;
    for (size_t i = 0; i < count; i++) {
        tnn_shape shape;

        if (tnn_shape_take(app, arrays[i], m->inputs[i], &shape))
            return app->status;
        if (axes[i] > 0 && axes[i] >= shape.ndim)
            return tnn_fail(app, TN_E_SHAPE, "module %s: the samples of \"%s\" lie along axis %d of %d",
                            m->name, m->inputs[i], axes[i], shape.ndim);
        if (!found && i < m->data_count && axes[i] >= 0) {
            m->samples = shape.ndim > axes[i] ? shape.dims[axes[i]] : 1;
            found = true;
        }
    }
    return TN_OK;
}

void tn_module_forward(tn_module *m, int32_t train, size_t count, tn_array *const *arrays)
{
    tnn_module_forward(m, train != 0, count, arrays, m ? m->axes : NULL);
}

/* In training each device takes a part of the batch. */
void tnn_module_forward(tn_module *m, bool train, size_t count, tn_array *const *arrays, const int32_t *axes)
{
    tn_app *app = tnn_module_app(m);
    size_t parts;

    if (!app || ready_check(app, m, count, arrays) || samples_count(app, m, count, arrays, axes))
        return;
    memcpy(m->now_axes, axes, (m->data_count + m->label_count) * sizeof *axes);
    parts = train ? app->device_count : 1;
    m->now_count = 0;
    while (!app->status && m->now_count < parts)
        (void)part_forward(app, m, train, count, arrays, parts);
    if (app->status)
        m->now_count = 0;
}

static tn_status run_check(tn_app *app, const tn_module *m, const char *what)
{
    return m->now_count
               ? TN_OK
               : tnn_fail(app, TN_E_STATE, "module %s: tn_module_forward() comes before %s", m->name, what);
}

void tn_module_backward(tn_module *m, tn_array *const *head_grads)
{
    tn_app *app = tnn_module_app(m);
    tn_array **parts = NULL;
    size_t outputs;

    if (!app || run_check(app, m, "tn_module_backward()"))
        return;
    outputs = m->now[0]->bucket->out_count;
    if (!(parts = tnn_alloc(app, outputs + 1, sizeof(*parts))))
        return;
    for (size_t k = 0; k < m->now_count && !app->status; k++) {
        for (size_t o = 0; head_grads && o < outputs && !app->status; o++)
            parts[o] = head_grads[o]
                           ? part_of(app, head_grads[o], m->now[0]->bucket->out_axes[o], m->now_count, k)
                           : NULL;
        if (!app->status)
            (void)tnn_check(app, tn_executor_backward(m->now[k]->executor, head_grads ? parts : NULL),
                            "module %s", m->name);
    }
    free(parts);
}

void tn_module_update(tn_module *m)
{
    tn_app *app = tnn_module_app(m);

    if (!app || run_check(app, m, "tn_module_update()"))
        return;
    if (!m->trainer)
        (void)tnn_fail(app, TN_E_STATE,
                       "module %s: tn_module_init_optimizer() comes before tn_module_update()", m->name);
    else
        tn_trainer_step(m->trainer, tnn_trainer_options(m->trainer)->rescale_grad != 0
                                        ? 1
                                        : m->samples * tnn_trainer_together(m->trainer));
}

size_t tn_module_output_count(const tn_module *m)
{
    return tnn_module_app(m) ? tn_symbol_output_count(m->bucket->symbol) : 0;
}

/* One array of each executor of the last forward: itself, or all of them joined, a temporary; the first one
 * where none has samples. */
static tn_array *joined(tn_module *m, tn_array *(*of)(const tn_module *m, size_t part, size_t index),
                        size_t index, int32_t axis)
{
    tn_app *app = m->object.app;
    tn_array *parts[TNN_DEVICES_MAX], *out = NULL;

    for (size_t k = 0; k < m->now_count; k++)
        if (!(parts[k] = of(m, k, index)))
            return NULL;
    if (m->now_count == 1 || axis < 0)
        return parts[0];
    for (size_t k = 0; k < m->now_count; k++)
        parts[k] = tnn_on(app, parts[k], 0);
    if (app->status || tnn_module_join(app, (uint32_t)m->now_count, parts, axis, &out))
        return NULL;
    return tn_app_own(app, out);
}

static tn_array *output_of(const tn_module *m, size_t part, size_t index)
{
    return tn_executor_output(m->now[part]->executor, (uint32_t)index);
}

static tn_array *input_grad_of(const tn_module *m, size_t part, size_t index)
{
    return tn_executor_array(m->now[part]->executor, TN_EXECUTOR_GRAD, m->inputs[index]);
}

tn_array *tn_module_output(tn_module *m, size_t index)
{
    if (!tnn_module_app(m) || !m->now_count || index >= m->now[0]->bucket->out_count)
        return NULL;
    return joined(m, output_of, index, m->now[0]->bucket->out_axes[index]);
}

tn_array *tn_module_input_grad(tn_module *m, size_t index)
{
    if (!tnn_module_app(m) || !m->now_count || index >= m->data_count)
        return NULL;
    return joined(m, input_grad_of, index, m->now_axes[index]);
}

void tn_module_measure(tn_module *m, tn_meter *meter, tn_array *labels)
{
    tnn_module_measure(m, 0, meter, labels, NULL);
}

/* A copy: meters read later, when the next forward has overwritten the output. */
static void copy_measure(tn_app *app, const tn_module *m, tn_meter *meter, tn_array *y, tn_array *labels)
{
    tn_array *copy = NULL;

    if (!app->status && !tnn_check(app, tn_array_to(app->ctx, y, NULL, &copy), "module %s", m->name))
        tn_meter_add(meter, copy, labels);
    tn_array_release(copy);
}

/* Each device's by itself, as one batch: joined, outputs and labels would be in different orders. */
static void parts_measure(tn_app *app, const tn_module *m, size_t index, tn_meter *meter, tn_array *labels,
                          int32_t axis)
{
    for (size_t k = 0; k < m->now_count && !app->status; k++) {
        tnn_meter_join(meter, k > 0 || index > 0);
        copy_measure(app, m, meter, tnn_on(app, output_of(m, k, index), 0),
                     tnn_part_along(app, labels, k, axis));
    }
    tnn_meter_join(meter, index > 0);
}

void tnn_module_measure(tn_module *m, size_t index, tn_meter *meter, tn_array *labels, const tn_data *data)
{
    tn_app *app = tnn_module_app(m);
    tn_array *y;
    int32_t axis;

    if (!app || run_check(app, m, "tn_module_measure()") || !meter || index >= m->now[0]->bucket->out_count)
        return;
    axis = m->now_axes[index < m->label_count ? m->data_count + index : 0];
    if (!labels && tnn_meter_labelled(meter))
        (void)tnn_fail(app, TN_E_KEY, "module %s: the metric compares with labels, and there are none",
                       m->name);
    else if (m->now_count > 1 && labels && axis != m->now[0]->bucket->out_axes[index])
        parts_measure(app, m, index, meter, labels, axis);
    else if ((y = tn_module_output(m, index)) != NULL)
        copy_measure(app, m, meter, tnn_data_real(data, y), tnn_data_real(data, labels));
}

void tn_module_monitor(tn_module *m, tn_monitor_fn fn, void *arg, uint32_t flags)
{
    tn_app *app = tnn_module_app(m);

    if (!app)
        return;
    m->monitor = fn;
    m->monitor_arg = arg;
    m->monitor_flags = flags;
    for (size_t i = 0; i < m->executor_count && !app->status; i++)
        (void)tnn_check(app, tn_executor_monitor(m->executors[i].executor, fn, arg, flags), "module %s",
                        m->name);
}
