/* Engines that there might be, and convolutions as they are defined, in double precision. */
#include "double.h"

#include <stdlib.h>
#include <string.h>

#include "../../../plugins/common/functions.h"

/* ---- engines ------------------------------------------------------------------------------------------- */

#define BIT(note) (1u << CUDNN_NUMERICAL_NOTE_##note)

static const double_engine engines[] = {
    {'n', 1, 0, BIT(NONDETERMINISTIC), false}, /* another sum from run to run */
    {'t', 2, 0, BIT(TENSOR_CORE), false},
    {'d', 3, 0, BIT(DOWN_CONVERT_INPUTS) | BIT(TENSOR_CORE), false},
    {'r', 4, 0, BIT(REDUCED_PRECISION_REDUCTION), false},
    {'f', 5, 4096, BIT(FFT), false},
    {'w', 6, 512, BIT(WINOGRAD) | BIT(WINOGRAD_TILE_4x4) | BIT(STRICT_NAN_PROP), false},
    {'l', 7, (int64_t)1 << 40, 0, false}, /* no memory is that large */
    {'a', 8, 0, 0, true},                 /* it is listed, but does not serve */
    {'#', 9, 256, 0, false},
    {'s', 10, 0, 0, false, .single = true}, /* serves no graph of several operations */
};

/* What follows a convolution without a bias has no engine, as the library has none. */
int64_t double_engines(cudnnBackendHeurMode_t mode, const double_graph *graph,
                       const double_engine *out[DOUBLE_ENGINES])
{
    const char *asked = getenv("TNCUDNN_ENGINES"), *list = asked ? asked : "ntdrla#";
    const char *fallback = strchr(list, '/'); /* what stands behind it is listed in that mode alone */
    int64_t count = 0;

    if ((graph->relu || graph->tensors[3]) && !graph->tensors[4])
        return 0;
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        list = fallback ? fallback + 1 : "";
    for (; *list && *list != '/' && count < DOUBLE_ENGINES; list++)
        for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
            if (engines[i].letter == *list)
                out[count++] = &engines[i];
    return count;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

#define ROLES(type, op, x_, w_, y_)                                                                          \
    {                                                                                                        \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR,                                             \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_##x_, CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_##w_,      \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_##y_, CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_CONV_DESC, \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_##op##_BETA      \
    }

const double_roles *double_roles_of(cudnnBackendDescriptorType_t type)
{
    static const double_roles roles[] = {ROLES(FORWARD, FORWARD, X, W, Y),
                                         ROLES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                                         ROLES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY)};

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (roles[i].type == type)
            return &roles[i];
    return NULL;
}

typedef struct tensor {
    char *data;
    int32_t type;
    int64_t dims[DOUBLE_DIMS], strides[DOUBLE_DIMS];
} tensor;

typedef struct work {
    cudnnBackendDescriptorType_t type;
    tensor x, w, y, addend, bias; /* the last two: their data may be NULL */
    bool relu;
    int64_t n, pad[DOUBLE_DIMS], stride[DOUBLE_DIMS], dilation[DOUBLE_DIMS]; /* dimensions of space */
    double alpha, beta;
    void *workspace;
    size_t workspace_bytes;
    bool kept;         /* a graph launches it any number of times: it stays for good */
    struct work *next; /* of those */
} work;

static _Atomic(work *) all_kept;

static double get(const tensor *t, int64_t at)
{
    uint16_t half;
    float single;
    double wide;

    switch (t->type) {
    case CUDNN_DATA_DOUBLE:
        memcpy(&wide, t->data + at * 8, sizeof wide);
        return wide;
    case CUDNN_DATA_FLOAT:
        memcpy(&single, t->data + at * 4, sizeof single);
        return (double)single;
    default:
        memcpy(&half, t->data + at * 2, sizeof half);
        return (double)(t->type == CUDNN_DATA_HALF ? tnb_half_float(half) : tnb_bf16_float(half));
    }
}

static void put(const tensor *t, int64_t at, double value)
{
    const float single = (float)value;
    uint16_t half;

    switch (t->type) {
    case CUDNN_DATA_DOUBLE:
        memcpy(t->data + at * 8, &value, sizeof value);
        break;
    case CUDNN_DATA_FLOAT:
        memcpy(t->data + at * 4, &single, sizeof single);
        break;
    default:
        half = t->type == CUDNN_DATA_HALF ? tnb_float_half(single) : tnb_float_bf16(single);
        memcpy(t->data + at * 2, &half, sizeof half);
    }
}

/* Element `i` in row-major order of `n` dimensions from `first` on: its indices; returns its offset. */
static int64_t spot(const int64_t *dims, const int64_t *strides, int64_t first, int64_t n, int64_t i,
                    int64_t *index)
{
    int64_t offset = 0;

    for (int64_t k = first + n; k-- > first;) {
        index[k] = i % dims[k];
        offset += index[k] * strides[k];
        i /= dims[k];
    }
    return offset;
}

static int64_t size(const int64_t *dims, int64_t first, int64_t n)
{
    int64_t count = 1;

    for (int64_t k = first; k < first + n; k++)
        count *= dims[k];
    return count;
}

/* For each window and tap the place in x's space that is read; -1: it lies in the padding. */
static int64_t *places_make(const work *w, int64_t windows, int64_t taps)
{
    int64_t *places = calloc((size_t)(windows * taps), sizeof *places), o[DOUBLE_DIMS], k[DOUBLE_DIMS];

    for (int64_t i = 0; places && i < windows * taps; i++) {
        (void)spot(w->y.dims, w->y.strides, 2, w->n, i / taps, o);
        (void)spot(w->w.dims, w->w.strides, 2, w->n, i % taps, k);
        for (int64_t d = 0; d < w->n; d++) {
            const int64_t at = o[d + 2] * w->stride[d] - w->pad[d] + k[d + 2] * w->dilation[d];

            places[i] =
                places[i] < 0 || at < 0 || at >= w->x.dims[d + 2] ? -1 : places[i] * w->x.dims[d + 2] + at;
        }
    }
    return places;
}

/* All elements in row-major order. */
static double *dense_make(const tensor *t, int64_t n)
{
    const int64_t count = size(t->dims, 0, n);
    double *made = calloc((size_t)count, sizeof *made);
    int64_t index[DOUBLE_DIMS];

    for (int64_t i = 0; made && i < count; i++)
        made[i] = get(t, spot(t->dims, t->strides, 0, n, i, index));
    return made;
}

/* Each product goes where it belongs: to the one of the three that is the result, and zero at first. */
static void products(const work *w, double *x, double *weight, double *y)
{
    const int64_t windows = size(w->y.dims, 2, w->n), taps = size(w->w.dims, 2, w->n);
    const int64_t space = size(w->x.dims, 2, w->n), filters = w->w.dims[0];
    const int64_t each = w->w.dims[1], per = filters / (w->x.dims[1] / each);
    const bool forward = w->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               data = w->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    int64_t *places = places_make(w, windows, taps);

    for (int64_t j = 0; places && j < w->y.dims[0] * filters * each; j++) {
        const int64_t c = j % each, f = j / each % filters, b = j / each / filters;
        double *xs = x + (b * w->x.dims[1] + f / per * each + c) * space;
        double *ws = weight + (f * each + c) * taps, *ys = y + (b * filters + f) * windows;

        for (int64_t i = 0; i < windows * taps; i++)
            if (places[i] < 0)
                continue;
            else if (forward)
                ys[i / taps] += xs[places[i]] * ws[i % taps];
            else if (data)
                xs[places[i]] += ys[i / taps] * ws[i % taps];
            else
                ws[i % taps] += ys[i / taps] * xs[places[i]];
    }
    free(places);
}

static const tensor *result_of(const work *w)
{
    return w->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? &w->y
           : w->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? &w->x
                                                                                     : &w->w;
}

/* What follows, each step in the type that is computed in. */
static double followed(const work *w, const int64_t *index, double value)
{
    const tensor *const more[] = {&w->addend, &w->bias};

    for (int i = 0; i < 2; i++) {
        int64_t at = 0;

        for (int64_t k = 0; k < w->n + 2; k++)
            at += more[i]->dims[k] > 1 ? index[k] * more[i]->strides[k] : 0;
        if (more[i]->data)
            value += get(more[i], at);
        if (w->y.type != CUDNN_DATA_DOUBLE)
            value = (double)(float)value;
    }
    return w->relu && value <= 0 ? 0 : value;
}

static void run(void *arg)
{
    work *w = arg;
    const tensor *to = result_of(w), *const all[] = {&w->x, &w->w, &w->y};
    const int64_t n = w->n + 2, count = size(to->dims, 0, n);
    double *dense[3], *sums = NULL;
    int64_t index[DOUBLE_DIMS];

    for (int i = 0; i < 3; i++) {
        if (!(dense[i] = dense_make(all[i], n)))
            abort();
        if (all[i] == to)
            memset(sums = dense[i], 0, (size_t)count * sizeof *sums);
    }
    products(w, dense[0], dense[1], dense[2]);
    if (w->workspace_bytes)
        memset(w->workspace, 0xff, w->workspace_bytes);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = spot(to->dims, to->strides, 0, n, i, index);

        put(to, at, followed(w, index, w->alpha * sums[i] + (w->beta != 0 ? w->beta * get(to, at) : 0)));
    }
    for (int i = 0; i < 3; i++)
        free(dense[i]);
    if (!w->kept)
        free(w);
}

/* All zero where there is none. */
static tensor tensor_of(const double_descriptor *d, void *data)
{
    tensor t = {.data = data};

    if (!d)
        return t;
    t.type = double_value_of(d, CUDNN_ATTR_TENSOR_DATA_TYPE)->is.number;
    memcpy(t.dims, double_value_of(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->is.ints, sizeof t.dims);
    memcpy(t.strides, double_value_of(d, CUDNN_ATTR_TENSOR_STRIDES)->is.ints, sizeof t.strides);
    return t;
}

cudnnStatus_t double_run(cudaStream_t stream, const double_graph *graph, void *const data[5], void *workspace,
                         int64_t bytes)
{
    const double_descriptor *operation = graph->convolution;
    const double_roles *r = double_roles_of(operation->type);
    const double_descriptor *conv = double_of(operation, r->conv);
    work *w = calloc(1, sizeof *w);
    int captured = 0;

    if (!w)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    w->type = operation->type;
    w->workspace = workspace;
    w->workspace_bytes = (size_t)bytes;
    w->x = tensor_of(graph->tensors[0], data[0]);
    w->w = tensor_of(graph->tensors[1], data[1]);
    w->y = tensor_of(graph->tensors[2], data[2]);
    w->addend = tensor_of(graph->tensors[3], data[3]);
    w->bias = tensor_of(graph->tensors[4], data[4]);
    w->relu = graph->relu;
    w->n = double_value_of(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)->is.ints[0];
    memcpy(w->pad, double_value_of(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->is.ints, sizeof w->pad);
    memcpy(w->stride, double_value_of(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->is.ints,
           sizeof w->stride);
    memcpy(w->dilation, double_value_of(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS)->is.ints, sizeof w->dilation);
    w->alpha = double_value_of(operation, r->alpha)->is.wide;
    w->beta = double_value_of(operation, r->beta)->is.wide;
    if (double_cuda.capture(stream, &captured, NULL, NULL, NULL, NULL))
        captured = 1;
    if ((w->kept = captured != 0)) {
        w->next = atomic_load(&all_kept);
        while (!atomic_compare_exchange_weak(&all_kept, &w->next, w))
            ;
    }
    if (!double_cuda.function(stream, run, w))
        return CUDNN_STATUS_SUCCESS;
    if (!w->kept)
        free(w);
    return CUDNN_STATUS_EXECUTION_FAILED;
}
