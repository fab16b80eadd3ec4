/*
 * Execution plans of cuDNN's graph interface: a convolution of x, w and y, one of which it writes, and what
 * follows a forward one: an addend, a bias, a function. What lies between them is never stored, and of the
 * type that is computed in.
 *
 * The library's heuristic lists engines, best first; the first one that the form allows, that can be made
 * ready and that needs no more workspace than allowed is taken, or the fastest of the first few if the form
 * is to be measured. Forms that no engine serves are kept, too, so that nobody looks for one again.
 */
#include "dnn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONFIGS_MAX 64
#define PLANS_MAX 1024 /* of a device: beyond it those that no node uses are given up */
#define NOTES_MAX 32

enum { ID_X = 1, ID_W, ID_Y, ID_ADDEND, ID_BIAS, ID_BETWEEN };

static const struct {
    const char *name;
    int32_t operation, x, w, y, conv, alpha, beta;
} kinds[TNCUDA_DNN_KINDS] = {
    [TNCUDA_DNN_FORWARD] = {"y", DNN_OPERATION_FORWARD, DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y,
                            DNN_FORWARD_CONV_DESC, DNN_FORWARD_ALPHA, DNN_FORWARD_BETA},
    [TNCUDA_DNN_DATA] = {"dx", DNN_OPERATION_DATA, DNN_BWD_DATA_DX, DNN_BWD_DATA_W, DNN_BWD_DATA_DY,
                         DNN_BWD_DATA_CONV_DESC, DNN_BWD_DATA_ALPHA, DNN_BWD_DATA_BETA},
    [TNCUDA_DNN_FILTER] = {"dw", DNN_OPERATION_FILTER, DNN_BWD_FILTER_X, DNN_BWD_FILTER_DW, DNN_BWD_FILTER_DY,
                           DNN_BWD_FILTER_CONV_DESC, DNN_BWD_FILTER_ALPHA, DNN_BWD_FILTER_BETA},
};

static const struct {
    const char *name;
    int32_t data, compute;
} types[] = {
    [TN_F32] = {"f32", DNN_DATA_FLOAT, DNN_DATA_FLOAT},
    [TN_F64] = {"f64", DNN_DATA_DOUBLE, DNN_DATA_DOUBLE},
    [TN_F16] = {"f16", DNN_DATA_HALF, DNN_DATA_FLOAT},
    [TN_BF16] = {"bf16", DNN_DATA_BFLOAT16, DNN_DATA_FLOAT},
};

/* A way to serve a form. */
typedef struct way {
    tncuda_dnn_descriptor plan, config;
    uint64_t workspace_bytes;
    int64_t engine;
    uint32_t notes, number; /* bit i: note i; in the heuristic's list, from 1 on */
} way;

/* A plan under construction; what the library refused last is in `why`. */
typedef struct maker {
    tncuda_dnn_plan *p;
    const tncuda_dnn *dnn;
    tncuda_dnn_handle handle;
    tn_err why;
    uint32_t configs, looked, allowed; /* engines that were listed, looked at, and that the form allows */
    uint32_t notes;                    /* of the last one that was looked at */
    int64_t engine;
    way ways[TNCUDA_DNN_WAYS];
    uint32_t count, wanted; /* of ways */
} maker;

/* ---- descriptors --------------------------------------------------------------------------------------- */

static bool ok(maker *m, tncuda_dnn_status status, const char *call)
{
    if (status)
        (void)tncuda_dnn_fail(m->dnn, status, call, &m->why);
    return !status;
}

/* One that stays as long as the plan. */
static bool make(maker *m, int32_t type, const char *what, tncuda_dnn_descriptor *out)
{
    tncuda_dnn_plan *p = m->p;

    if (!ok(m, m->dnn->make(type, out), what))
        return false;
    p->made[p->made_count++] = *out;
    return true;
}

static bool set(maker *m, tncuda_dnn_descriptor d, const char *what, int32_t name, int32_t type,
                int64_t count, const void *elements)
{
    return ok(m, m->dnn->set(d, name, type, count, elements), what);
}

/* Dimensions as the library has them, (outer, channels, space), and the strides of a dense tensor. */
static uint32_t dims_of(const tncuda_dnn_form *f, int64_t outer, int64_t channels, const int64_t *extent,
                        int64_t *dims, int64_t *strides)
{
    const uint32_t n = (uint32_t)f->space + 2;
    int64_t step = f->last ? channels : 1;

    dims[0] = outer;
    dims[1] = channels;
    for (uint32_t i = n; i-- > 2;) {
        dims[i] = extent[TNCUDA_SPACE - f->space + (int32_t)i - 2];
        strides[i] = step;
        step *= dims[i];
    }
    strides[1] = f->last ? 1 : step;
    strides[0] = f->last ? step : step * channels;
    return n;
}

/* Those of ID_BETWEEN and above are in no memory. */
static bool tensor_make(maker *m, int64_t id, int64_t outer, int64_t channels, const int64_t *extent,
                        tncuda_dnn_descriptor *out)
{
    static const char what[] = "a tensor's descriptor";
    const int64_t align = TNCUDA_DNN_ALIGN;
    const bool between = id >= ID_BETWEEN;
    const int32_t dtype = m->p->form.dtype, type = between ? types[dtype].compute : types[dtype].data;
    int64_t dims[TNCUDA_SPACE + 2], strides[TNCUDA_SPACE + 2];
    const int64_t n = dims_of(&m->p->form, outer, channels, extent, dims, strides);

    return make(m, DNN_TENSOR, what, out) &&
           set(m, *out, what, DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type) &&
           set(m, *out, what, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, n, dims) &&
           set(m, *out, what, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, n, strides) &&
           set(m, *out, what, DNN_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &id) &&
           set(m, *out, what, DNN_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &align) &&
           (!between || set(m, *out, what, DNN_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &between)) &&
           ok(m, m->dnn->finalize(*out), what);
}

static bool convolution_make(maker *m, tncuda_dnn_descriptor *out)
{
    static const char what[] = "a convolution's descriptor";
    const tncuda_dnn_form *f = &m->p->form;
    const int64_t space = f->space;
    const int32_t mode = DNN_CROSS_CORRELATION, skip = TNCUDA_SPACE - f->space;

    return make(m, DNN_CONVOLUTION, what, out) &&
           set(m, *out, what, DNN_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &types[f->dtype].compute) &&
           set(m, *out, what, DNN_CONVOLUTION_CONV_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode) &&
           set(m, *out, what, DNN_CONVOLUTION_SPATIAL_DIMS, DNN_TYPE_INT64, 1, &space) &&
           set(m, *out, what, DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, space, f->pad + skip) &&
           set(m, *out, what, DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, space, f->pad + skip) &&
           set(m, *out, what, DNN_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, space, f->stride + skip) &&
           set(m, *out, what, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, space, f->dilate + skip) &&
           ok(m, m->dnn->finalize(*out), what);
}

static bool y_make(maker *m, int64_t id, tncuda_dnn_descriptor *out)
{
    const tncuda_dnn_form *f = &m->p->form;

    return tensor_make(m, id, f->batch, f->filters, f->out, out);
}

/* The convolution, and its y; alpha and beta have the type that is computed in. */
static bool operation_make(maker *m, tncuda_dnn_descriptor *out, tncuda_dnn_descriptor *y)
{
    static const char what[] = "an operation's descriptor";
    const tncuda_dnn_form *f = &m->p->form;
    const bool wide = f->dtype == TN_F64;
    const int32_t type = wide ? DNN_TYPE_DOUBLE : DNN_TYPE_FLOAT;
    const float one = 1, beta = f->add ? 1 : 0;
    const double one_wide = 1, beta_wide = f->add ? 1 : 0;
    tncuda_dnn_descriptor x, w, conv;

    return tensor_make(m, ID_X, f->batch, f->channels, f->in, &x) &&
           tensor_make(m, ID_W, f->filters, f->channels / f->groups, f->kernel, &w) &&
           y_make(m, f->after ? ID_BETWEEN : ID_Y, y) && convolution_make(m, &conv) &&
           make(m, kinds[f->kind].operation, what, out) &&
           set(m, *out, what, kinds[f->kind].x, DNN_TYPE_DESCRIPTOR, 1, &x) &&
           set(m, *out, what, kinds[f->kind].w, DNN_TYPE_DESCRIPTOR, 1, &w) &&
           set(m, *out, what, kinds[f->kind].y, DNN_TYPE_DESCRIPTOR, 1, y) &&
           set(m, *out, what, kinds[f->kind].conv, DNN_TYPE_DESCRIPTOR, 1, &conv) &&
           set(m, *out, what, kinds[f->kind].alpha, type, 1, wide ? (const void *)&one_wide : &one) &&
           set(m, *out, what, kinds[f->kind].beta, type, 1, wide ? (const void *)&beta_wide : &beta) &&
           ok(m, m->dnn->finalize(*out), what);
}

/* What may follow, in this order; the input besides y, 0: there is none. */
static const struct {
    int64_t bit, id;
    int32_t mode;
} followers[] = {{TNCUDA_DNN_ADDEND, ID_ADDEND, DNN_POINTWISE_ADD},
                 {TNCUDA_DNN_BIAS, ID_BIAS, DNN_POINTWISE_ADD},
                 {TNCUDA_DNN_RELU, 0, DNN_POINTWISE_RELU}};
#define FOLLOWERS (sizeof followers / sizeof *followers)

/* relu(NaN) is NaN, as that of our own kernels. */
static bool function_make(maker *m, int32_t mode, tncuda_dnn_descriptor *out)
{
    static const char what[] = "a function's descriptor";
    const int32_t nan = DNN_PROPAGATE_NAN;

    return make(m, DNN_POINTWISE, what, out) &&
           set(m, *out, what, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode) &&
           set(m, *out, what, DNN_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE, 1,
               &types[m->p->form.dtype].compute) &&
           (mode == DNN_POINTWISE_ADD ||
            set(m, *out, what, DNN_POINTWISE_NAN_PROPAGATION, DNN_TYPE_NAN_PROPAGATION, 1, &nan)) &&
           ok(m, m->dnn->finalize(*out), what);
}

static bool input_make(maker *m, int64_t id, tncuda_dnn_descriptor *out)
{
    static const int64_t one[TNCUDA_SPACE] = {1, 1, 1};

    return id == ID_BIAS ? tensor_make(m, id, 1, m->p->form.filters, one, out) : y_make(m, id, out);
}

/* The follower `i` of `*y`, which becomes what it gives. */
static bool follower_make(maker *m, size_t i, tncuda_dnn_descriptor *out, tncuda_dnn_descriptor *y)
{
    static const char what[] = "an operation's descriptor";
    const bool last = m->p->form.after < 2 * followers[i].bit;
    const int64_t id = followers[i].id;
    tncuda_dnn_descriptor to, with = NULL, function;

    if (!y_make(m, last ? ID_Y : ID_BETWEEN + 1 + (int64_t)i, &to) || (id && !input_make(m, id, &with)) ||
        !function_make(m, followers[i].mode, &function) || !make(m, DNN_OPERATION_POINTWISE, what, out) ||
        !set(m, *out, what, DNN_OPERATION_POINTWISE_PW_DESCRIPTOR, DNN_TYPE_DESCRIPTOR, 1, &function) ||
        !set(m, *out, what, DNN_OPERATION_POINTWISE_XDESC, DNN_TYPE_DESCRIPTOR, 1, y) ||
        (id && !set(m, *out, what, DNN_OPERATION_POINTWISE_BDESC, DNN_TYPE_DESCRIPTOR, 1, &with)) ||
        !set(m, *out, what, DNN_OPERATION_POINTWISE_YDESC, DNN_TYPE_DESCRIPTOR, 1, &to))
        return false;
    *y = to;
    return ok(m, m->dnn->finalize(*out), what);
}

static bool graph_make(maker *m, tncuda_dnn_descriptor *out)
{
    static const char what[] = "an operation graph";
    tncuda_dnn_descriptor operations[1 + FOLLOWERS], y = NULL;
    int64_t count = 1;
    bool made = operation_make(m, &operations[0], &y);

    for (size_t i = 0; i < FOLLOWERS && made; i++)
        if (m->p->form.after & followers[i].bit)
            made = follower_make(m, i, &operations[count++], &y);
    return made && make(m, DNN_OPERATIONGRAPH, what, out) &&
           set(m, *out, what, DNN_OPERATIONGRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &m->handle) &&
           set(m, *out, what, DNN_OPERATIONGRAPH_OPS, DNN_TYPE_DESCRIPTOR, count, operations) &&
           ok(m, m->dnn->finalize(*out), what);
}

/* ---- engines ------------------------------------------------------------------------------------------- */

/* Whether results by an engine with this note are as exact as ours, and the same from run to run. */
static bool note_allowed(const tncuda_dnn_form *f, int32_t note)
{
    const bool single = f->dtype == TN_F32;

    switch (note) {
    case DNN_NOTE_NONDETERMINISTIC:
    case DNN_NOTE_REDUCED_PRECISION_REDUCTION: /* sums are of float32 at least */
    case DNN_NOTE_FFT:
    case DNN_NOTE_WINOGRAD_TILE_6x6: /* their intermediate values lose several bits */
    case DNN_NOTE_WINOGRAD_TILE_13x13:
        return false;
    case DNN_NOTE_TENSOR_CORE:
        return !single || f->tf32;
    case DNN_NOTE_DOWN_CONVERT_INPUTS:
        return !single;
    default:
        return true;
    }
}

static bool engine_allowed(maker *m, tncuda_dnn_descriptor config)
{
    static const char what[] = "an engine's notes";
    tncuda_dnn_descriptor engine = NULL;
    int32_t notes[NOTES_MAX];
    int64_t count = 0;
    bool allowed = false;

    if (ok(m, m->dnn->make(DNN_ENGINE, &engine), what) &&
        ok(m, m->dnn->get(config, DNN_ENGINECFG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine), what) &&
        ok(m,
           m->dnn->get(engine, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &count, notes),
           what)) {
        allowed = true;
        m->notes = 0;
        for (int64_t i = 0; i < count && i < NOTES_MAX; i++) {
            allowed = allowed && note_allowed(&m->p->form, notes[i]);
            m->notes |= 1u << (notes[i] & 31);
        }
        (void)m->dnn->get(engine, DNN_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &count, &m->engine);
    }
    if (engine)
        (void)m->dnn->drop(engine);
    return allowed;
}

/* The plan of a configuration becomes a way, which has both then. */
static bool plan_try(maker *m, tncuda_dnn_descriptor config)
{
    static const char what[] = "an execution plan";
    tncuda_dnn_descriptor plan = NULL;
    int64_t bytes = 0, count = 0;

    if (!ok(m, m->dnn->make(DNN_EXECUTION_PLAN, &plan), what))
        return false;
    if (set(m, plan, what, DNN_EXECUTION_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &m->handle) &&
        set(m, plan, what, DNN_EXECUTION_PLAN_ENGINE_CONFIG, DNN_TYPE_DESCRIPTOR, 1, &config) &&
        ok(m, m->dnn->finalize(plan), what) &&
        ok(m, m->dnn->get(plan, DNN_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &count, &bytes),
           what)) {
        if (bytes >= 0 && bytes <= m->p->form.limit_bytes) {
            m->ways[m->count++] = (way){plan, config, (uint64_t)bytes, m->engine, m->notes, m->looked};
            return true;
        }
        (void)tn_failf(&m->why, TN_E_UNSUPPORTED, "a workspace of %" PRId64 " bytes, %" PRId64 " are allowed",
                       bytes, m->p->form.limit_bytes);
    }
    (void)m->dnn->drop(plan);
    return false;
}

/* The configurations that a heuristic lists; how many. */
static int64_t configs_list(maker *m, tncuda_dnn_descriptor graph, int32_t mode,
                            tncuda_dnn_descriptor *configs)
{
    static const char what[] = "a heuristic";
    tncuda_dnn_descriptor heuristic = NULL;
    int64_t count = 0, made = 0;

    if (!ok(m, m->dnn->make(DNN_ENGINEHEUR, &heuristic), what))
        return 0;
    if (set(m, heuristic, what, DNN_ENGINEHEUR_OPERATION_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph) &&
        set(m, heuristic, what, DNN_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, &mode) &&
        ok(m, m->dnn->finalize(heuristic), what) &&
        ok(m, m->dnn->get(heuristic, DNN_ENGINEHEUR_RESULTS, DNN_TYPE_DESCRIPTOR, 0, &count, NULL), what)) {
        count = count < CONFIGS_MAX ? count : CONFIGS_MAX;
        while (made < count && ok(m, m->dnn->make(DNN_ENGINECFG, &configs[made]), what))
            made++;
        count = 0;
        if (made &&
            !ok(m, m->dnn->get(heuristic, DNN_ENGINEHEUR_RESULTS, DNN_TYPE_DESCRIPTOR, made, &count, configs),
                what))
            count = 0;
    }
    (void)m->dnn->drop(heuristic);
    for (int64_t i = count; i < made; i++)
        (void)m->dnn->drop(configs[i]);
    return count < made ? count : made;
}

/* Until there are as many ways as wanted. */
static void ways_find(maker *m, tncuda_dnn_descriptor graph, int32_t mode)
{
    tncuda_dnn_descriptor configs[CONFIGS_MAX];
    const int64_t count = configs_list(m, graph, mode, configs);

    m->configs += (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        const bool wanted = m->count < m->wanted;
        bool allowed;

        m->looked += wanted;
        allowed = wanted && engine_allowed(m, configs[i]);
        m->allowed += allowed;
        if (!allowed || !plan_try(m, configs[i]))
            (void)m->dnn->drop(configs[i]);
    }
}

/* The best way becomes the plan's own; NULL: there is none. */
static const way *way_take(maker *m)
{
    tncuda_dnn_descriptor plans[TNCUDA_DNN_WAYS];
    tncuda_dnn_plan *p = m->p;
    uint64_t most = 0;
    uint32_t best = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        plans[i] = m->ways[i].plan;
        most = m->ways[i].workspace_bytes > most ? m->ways[i].workspace_bytes : most;
    }
    if (m->count > 1)
        best = tncuda_dnn_fastest_locked(p, m->count, plans, most);
    for (uint32_t i = 0; i < m->count; i++)
        if (i != best) {
            (void)m->dnn->drop(m->ways[i].plan);
            (void)m->dnn->drop(m->ways[i].config);
        }
    if (!m->count)
        return NULL;
    p->plan = m->ways[best].plan;
    p->workspace_bytes = m->ways[best].workspace_bytes;
    p->made[p->made_count++] = m->ways[best].config;
    return &m->ways[best];
}

/* ---- plans of a device --------------------------------------------------------------------------------- */

static void descriptors_drop(tncuda_dnn_plan *p)
{
    if (p->plan)
        (void)p->dnn->drop(p->plan);
    while (p->made_count)
        (void)p->dnn->drop(p->made[--p->made_count]);
    p->plan = NULL;
}

void tncuda_dnn_plans_drop_locked(tncuda_plugin *plugin, tncuda_dnn_device *device)
{
    for (tncuda_dnn_plan *p = device->plans, *next; p; p = next) {
        next = p->next;
        descriptors_drop(p);
        p->gone = true;
        if (!p->refs)
            tncuda_delete(plugin, p);
    }
    device->plans = NULL;
    device->plan_count = 0;
}

static void unused_drop_locked(tncuda_plugin *plugin, tncuda_dnn_device *device)
{
    tncuda_dnn_plan **at = &device->plans;

    while (*at) {
        tncuda_dnn_plan *p = *at;

        if (p->refs) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        descriptors_drop(p);
        tncuda_delete(plugin, p);
        device->plan_count--;
    }
}

/* "y f32 x 32x3x224x224 w 64x3x7x7 …" */
static void form_text(const tncuda_dnn_form *f, char *out, size_t bytes)
{
    (void)snprintf(out, bytes,
                   "%s %s%s of n %" PRId64 " c %" PRId64 " k %" PRId64 " groups %" PRId64 " in %" PRId64
                   "x%" PRId64 "x%" PRId64 " out %" PRId64 "x%" PRId64 "x%" PRId64 " kernel %" PRId64
                   "x%" PRId64 "x%" PRId64 " stride %" PRId64 "x%" PRId64 "x%" PRId64 " dilate %" PRId64
                   "x%" PRId64 "x%" PRId64 " pad %" PRId64 "x%" PRId64 "x%" PRId64 "%s%s%s%s%s",
                   kinds[f->kind].name, types[f->dtype].name, f->tf32 ? " by tf32" : "", f->batch,
                   f->channels, f->filters, f->groups, f->in[0], f->in[1], f->in[2], f->out[0], f->out[1],
                   f->out[2], f->kernel[0], f->kernel[1], f->kernel[2], f->stride[0], f->stride[1],
                   f->stride[2], f->dilate[0], f->dilate[1], f->dilate[2], f->pad[0], f->pad[1], f->pad[2],
                   f->last ? ", channels last" : "", f->add ? ", added" : "",
                   f->after & TNCUDA_DNN_ADDEND ? ", addend" : "", f->after & TNCUDA_DNN_BIAS ? ", bias" : "",
                   f->after & TNCUDA_DNN_RELU ? ", relu" : "");
}

/* Makes what it can of `p`, and says in `line` what came of it. */
static void plan_make_locked(tncuda_dnn_plan *p, char *line, size_t bytes)
{
    maker m = {.p = p,
               .dnn = p->dnn,
               .handle = p->device->handle,
               .engine = -1,
               .wanted = p->form.measured ? TNCUDA_DNN_WAYS : 1};
    tncuda_dnn_descriptor graph;
    const way *taken;
    char form[400];

    if (graph_make(&m, &graph)) {
        ways_find(&m, graph, DNN_HEUR_MODE_A);
        if (!m.count)
            ways_find(&m, graph, DNN_HEUR_MODE_FALLBACK);
    }
    taken = way_take(&m);
    form_text(&p->form, form, sizeof form);
    if (!taken)
        descriptors_drop(p);
    if (taken)
        (void)snprintf(line, bytes,
                       "cuDNN: %s: engine %" PRId64 ", number %u of %u, notes %x, workspace %" PRIu64 "%s",
                       form, taken->engine, (unsigned)taken->number, (unsigned)m.configs,
                       (unsigned)taken->notes, p->workspace_bytes, m.count > 1 ? ", measured" : "");
    else
        (void)snprintf(line, bytes, "cuDNN: %s: no engine, of %u listed and %u allowed; %s", form,
                       (unsigned)m.configs, (unsigned)m.allowed,
                       m.why.message[0] ? m.why.message : "nothing was refused");
}

/* The plan of the form, which there is or which is made. */
static tn_status plan_need_locked(tncuda_plugin *plugin, int32_t index, const tncuda_dnn_form *form,
                                  tncuda_dnn_plan **out, char *line, size_t bytes, tn_err *err)
{
    tncuda_dnn_device *d;
    tncuda_dnn_plan *p;
    tn_status st = tncuda_dnn_handle_locked(plugin, index, &d, line, bytes, err);

    if (st)
        return st;
    for (p = d->plans; p && memcmp(&p->form, form, sizeof *form) != 0;)
        p = p->next;
    if (!p) {
        if (d->plan_count >= PLANS_MAX)
            unused_drop_locked(plugin, d);
        if (!(p = tncuda_new(plugin, sizeof *p)))
            return tncuda_nomem(err, "a plan of cuDNN");
        p->plugin = plugin;
        p->dnn = plugin->dnn;
        p->device = d;
        p->form = *form;
        plan_make_locked(p, line, bytes);
        p->next = d->plans;
        d->plans = p;
        d->plan_count++;
    }
    if (!p->plan)
        return tn_fail(err, TN_E_UNSUPPORTED, "no engine of cuDNN serves this");
    p->refs++;
    *out = p;
    return TN_OK;
}

tn_status tncuda_dnn_plan_get(tncuda_plugin *plugin, int32_t device, const tncuda_dnn_form *form,
                              tncuda_dnn_plan **out, tn_err *err)
{
    const tncuda_dnn *dnn;
    char line[1024] = "";
    tncuda_context context, gone;
    tn_err own = {0};
    tn_status st;

    *out = NULL;
    if (device < 0 || device >= TNCUDA_DEVICES_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "no such device");
    if ((st = tncuda_driver_need(plugin, err)) || (st = tncuda_dnn_need(plugin, &dnn, err)))
        return st;
    pthread_mutex_lock(&plugin->lock);
    context = plugin->contexts[device].users ? plugin->contexts[device].context : NULL;
    pthread_mutex_unlock(&plugin->lock);
    if (!context || plugin->driver.context_push(context))
        return tn_fail(err, TN_E_UNSUPPORTED, "the device is not open");
    pthread_mutex_lock(&plugin->dnn->devices[device].lock);
    st = plan_need_locked(plugin, device, form, out, line, sizeof line, &own);
    pthread_mutex_unlock(&plugin->dnn->devices[device].lock);
    (void)plugin->driver.context_pop(&gone);
    if (*line)
        tncuda_log(plugin, TN_LEVEL_DEBUG, "%s", line);
    if (st && err)
        *err = own;
    return st;
}

void tncuda_dnn_plan_give(tncuda_dnn_plan *plan)
{
    bool last;

    if (!plan)
        return;
    pthread_mutex_lock(&plan->device->lock);
    last = --plan->refs == 0 && plan->gone;
    pthread_mutex_unlock(&plan->device->lock);
    if (last)
        tncuda_delete(plan->plugin, plan);
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

tncuda_dnn_status tncuda_dnn_execute(const tncuda_dnn_plan *p, tncuda_dnn_descriptor plan,
                                     const tncuda_dnn_args *args, const char **call)
{
    int64_t ids[5] = {ID_X, ID_W, ID_Y}, count = 3;
    const tncuda_dnn *dnn = p->dnn;
    void *data[5] = {args->x, args->w, args->y};
    tncuda_dnn_descriptor pack = NULL;
    tncuda_dnn_status status;

    if (p->form.after & TNCUDA_DNN_ADDEND) {
        ids[count] = ID_ADDEND;
        data[count++] = args->addend;
    }
    if (p->form.after & TNCUDA_DNN_BIAS) {
        ids[count] = ID_BIAS;
        data[count++] = args->bias;
    }
    *call = "a variant pack";
    if ((status = dnn->make(DNN_VARIANT_PACK, &pack)))
        return status;
    if (!(status = dnn->set(pack, DNN_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, count, ids)) &&
        !(status = dnn->set(pack, DNN_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, count, data)) &&
        !(status = dnn->set(pack, DNN_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &args->workspace)) &&
        !(status = dnn->finalize(pack))) {
        *call = "cudnnBackendExecute";
        status = dnn->execute(p->device->handle, plan, pack);
    }
    (void)dnn->drop(pack);
    return status;
}

static tn_status plan_call(const void *state, const void *args, tncuda_stream stream, tn_err *err)
{
    tncuda_dnn_plan *p = (tncuda_dnn_plan *)(uintptr_t)state;
    const char *call = "cudnnSetStream";
    tncuda_dnn_status status;
    tn_status st = TN_OK;

    pthread_mutex_lock(&p->device->lock);
    if (!p->plan)
        st = tn_fail(err, TN_E_STATE, "a run of a device that was closed");
    else if ((status = p->dnn->stream(p->device->handle, stream)) ||
             (status = tncuda_dnn_execute(p, p->plan, args, &call))) {
        atomic_store(&p->broken, true);
        st = tncuda_dnn_fail(p->dnn, status, call, err);
    }
    pthread_mutex_unlock(&p->device->lock);
    return st;
}

tn_status tncuda_dnn_run(const tn_exec *x, tncuda_dnn_plan *plan, const tncuda_dnn_args *args, tn_err *err)
{
    char form[400];
    tn_err why = {0};
    const tn_status st = tncuda_library_call(x, plan_call, plan, args, sizeof *args, &why);

    if (st && err)
        *err = why;
    if (st == TN_E_UNSUPPORTED && atomic_load(&plan->broken)) {
        form_text(&plan->form, form, sizeof form);
        tncuda_log(plan->plugin, TN_LEVEL_WARNING, "cuDNN: %s is our own from now on: %s", form, why.message);
    }
    return st;
}
