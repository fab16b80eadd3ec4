/*
 * The functions of cuDNN's graph interface, and what they refuse. The rules are those of NVIDIA's "cuDNN
 * Backend API" 9 (cudnn_graph Library: Data Type References, API Functions); the section stands at each.
 */
#include "double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define HANDLE 0x636e6e68u
#define DESCRIPTOR 0x636e6e64u
#define FUNCTIONS(X)                                                                                         \
    X(cudnnCreate)                                                                                           \
    X(cudnnDestroy)                                                                                          \
    X(cudnnSetStream)                                                                                        \
    X(cudnnBackendCreateDescriptor)                                                                          \
    X(cudnnBackendDestroyDescriptor)                                                                         \
    X(cudnnBackendFinalize) X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) X(cudnnBackendExecute)

#define X(name) CLOCK_##name,
enum { FUNCTIONS(X) CLOCKS };
#undef X
#define X(name) #name,
static const char *const names[] = {FUNCTIONS(X)};
#undef X

double_driver double_cuda;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_ullong clocks[CLOCKS];
static atomic_llong descriptors, handles;
static _Thread_local char last[200];

cudnnStatus_t double_refuse(cudnnStatus_t status, const char *rule)
{
    (void)snprintf(last, sizeof last, "%s", rule);
    (void)fprintf(stderr, "cudnn double: %s\n", rule);
    return status;
}

static void counts_write(void)
{
    FILE *to = fopen(getenv("TNCUDNN_COUNTS"), "w");

    for (int i = 0; to && i < CLOCKS; i++)
        (void)fprintf(to, "%s %llu\n", names[i], atomic_load(&clocks[i]));
    if (to)
        (void)fprintf(to, "descriptors %lld\nhandles %lld\n", atomic_load(&descriptors),
                      atomic_load(&handles));
    if (to)
        (void)fclose(to);
}

static void begin(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
    int (*find)(const char *name, void **out, int version, unsigned long long flags, int *status);
    const struct {
        const char *name;
        void *member;
    } rows[] = {{"cuLaunchHostFunc", (void *)&double_cuda.function},
                {"cuCtxGetDevice", (void *)&double_cuda.device},
                {"cuStreamGetCaptureInfo", (void *)&double_cuda.capture}};

    if (!library || !(symbol = dlsym(library, "cuGetProcAddress_v2")))
        abort();
    memcpy((void *)&find, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(rows[i].name, &symbol, 12000, 0, NULL))
            abort();
        else
            memcpy(rows[i].member, &symbol, sizeof symbol);
    if (getenv("TNCUDNN_COUNTS"))
        (void)atexit(counts_write);
}

/* Counts a call; a status, if this one is to fail. */
static cudnnStatus_t due(int clock)
{
    const char *at = getenv("TNCUDNN_FAULT");
    const unsigned long long number = atomic_fetch_add(&clocks[clock], 1u) + 1;
    const size_t length = strlen(names[clock]);

    (void)pthread_once(&once, begin);
    *last = '\0';
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char *end;
        unsigned long long asked;
        bool more;

        if (strncmp(at, names[clock], length) != 0 || at[length] != ':')
            continue;
        asked = strtoull(at + length + 1, &end, 10);
        more = *end == '+';
        if (number != asked && !(more && number > asked))
            continue;
        return double_refuse((cudnnStatus_t)strtol(end + more + 1, NULL, 10), "it was told to fail");
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- texts and handles --------------------------------------------------------------------------------- */

EXPORT size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
    static const char *const texts[] = {"SUCCESS",       "NOT_INITIALIZED", "BAD_PARAM",
                                        "NOT_SUPPORTED", "INTERNAL_ERROR",  "EXECUTION_FAILED"};
    static _Thread_local char text[40];

    (void)snprintf(text, sizeof text, "CUDNN_STATUS_%s", texts[status / 1000 % 6]);
    return text;
}

EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
    (void)snprintf(message, max_size, "%s", last);
}

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    const cudnnStatus_t status = due(CLOCK_cudnnCreate);
    int device;

    if (status)
        return status;
    if (!handle)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "cudnnCreate: invalid (NULL) input pointer supplied");
    if (double_cuda.device(&device))
        return double_refuse(CUDNN_STATUS_NOT_INITIALIZED, "cudnnCreate: there is no current context");
    if (!(*handle = calloc(1, sizeof **handle)))
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    (*handle)->magic = HANDLE;
    (*handle)->device = device;
    (void)atomic_fetch_add(&handles, 1);
    return CUDNN_STATUS_SUCCESS;
}

/* "cudnnHandle_t": made for one device, that of the context. */
static bool handle_fits(cudnnHandle_t handle)
{
    int device;

    return handle && handle->magic == HANDLE && !double_cuda.device(&device) && device == handle->device;
}

/* One thread at a time calls with it. */
static cudnnStatus_t handle_enter(cudnnHandle_t handle)
{
    if (!handle_fits(handle))
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "this is no handle of the context's device");
    if (atomic_exchange(&handle->busy, true)) {
        (void)double_refuse(CUDNN_STATUS_BAD_PARAM, "two threads call with one handle");
        abort();
    }
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    cudnnStatus_t status = due(CLOCK_cudnnDestroy);

    if (status || (status = handle_enter(handle)))
        return status;
    handle->magic = 0;
    free(handle);
    (void)atomic_fetch_sub(&handles, 1);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    cudnnStatus_t status = due(CLOCK_cudnnSetStream);

    if (status || (status = handle_enter(handle)))
        return status;
    handle->stream = stream;
    atomic_store(&handle->busy, false);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

#define OPERATION(type, op, x, w, y)                                                                         \
    {                                                                                                        \
        D(OPERATION_CONVOLUTION_##type),                                                                     \
        A(OPERATION_CONVOLUTION_##op##_##x),                                                                 \
        T(BACKEND_DESCRIPTOR),                                                                               \
        1,                                                                                                   \
        1,                                                                                                   \
        'd'},                                                                                                \
        {D(OPERATION_CONVOLUTION_##type),                                                                    \
         A(OPERATION_CONVOLUTION_##op##_##w),                                                                \
         T(BACKEND_DESCRIPTOR),                                                                              \
         1,                                                                                                  \
         1,                                                                                                  \
         'd'},                                                                                               \
        {D(OPERATION_CONVOLUTION_##type),                                                                    \
         A(OPERATION_CONVOLUTION_##op##_##y),                                                                \
         T(BACKEND_DESCRIPTOR),                                                                              \
         1,                                                                                                  \
         1,                                                                                                  \
         'd'},                                                                                               \
        {D(OPERATION_CONVOLUTION_##type),                                                                    \
         A(OPERATION_CONVOLUTION_##op##_CONV_DESC),                                                          \
         T(BACKEND_DESCRIPTOR),                                                                              \
         1,                                                                                                  \
         1,                                                                                                  \
         'd'},                                                                                               \
        {D(OPERATION_CONVOLUTION_##type), A(OPERATION_CONVOLUTION_##op##_ALPHA), T(FLOAT), 1, 1, 'f'},       \
        {D(OPERATION_CONVOLUTION_##type), A(OPERATION_CONVOLUTION_##op##_BETA), T(FLOAT), 1, 1, 'f'},

/* What is set, "CUDNN_BACKEND_…_DESCRIPTOR", its attributes: type, least and most elements; all are required
 * here but those that have a "Default value" and are marked. 'i' int64, 'e' a number of an enumeration, 'b' a
 * bool, 'd' descriptors that are final, 'p' pointers, 'f' float, or double as well ("CUDNN_TYPE_FLOAT or
 * CUDNN_TYPE_DOUBLE"). */
static const struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    char kind;
    bool optional;
} rules[] = {
    {D(TENSOR), A(TENSOR_IS_VIRTUAL), T(BOOLEAN), 1, 1, 'b', true},
    {D(POINTWISE), A(POINTWISE_MODE), T(POINTWISE_MODE), 1, 1, 'e'},
    {D(POINTWISE), A(POINTWISE_MATH_PREC), T(DATA_TYPE), 1, 1, 'e'},
    {D(POINTWISE), NAN_PROPAGATION, (cudnnBackendAttributeType_t)10, 1, 1, 'e', true},
    {D(OPERATION_POINTWISE), A(OPERATION_POINTWISE_PW_DESCRIPTOR), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
    {D(OPERATION_POINTWISE), A(OPERATION_POINTWISE_XDESC), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
    {D(OPERATION_POINTWISE), A(OPERATION_POINTWISE_BDESC), T(BACKEND_DESCRIPTOR), 1, 1, 'd', true},
    {D(OPERATION_POINTWISE), A(OPERATION_POINTWISE_YDESC), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
    {D(TENSOR), A(TENSOR_UNIQUE_ID), T(INT64), 1, 1, 'i'},
    {D(TENSOR), A(TENSOR_DATA_TYPE), T(DATA_TYPE), 1, 1, 'e'},
    {D(TENSOR), A(TENSOR_BYTE_ALIGNMENT), T(INT64), 1, 1, 'i'},
    {D(TENSOR), A(TENSOR_DIMENSIONS), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    {D(TENSOR), A(TENSOR_STRIDES), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    {D(CONVOLUTION), A(CONVOLUTION_COMP_TYPE), T(DATA_TYPE), 1, 1, 'e'},
    {D(CONVOLUTION), A(CONVOLUTION_CONV_MODE), T(CONVOLUTION_MODE), 1, 1, 'e'},
    {D(CONVOLUTION), A(CONVOLUTION_SPATIAL_DIMS), T(INT64), 1, 1, 'i'},
    {D(CONVOLUTION), A(CONVOLUTION_DILATIONS), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    {D(CONVOLUTION), A(CONVOLUTION_FILTER_STRIDES), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    {D(CONVOLUTION), A(CONVOLUTION_PRE_PADDINGS), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    {D(CONVOLUTION), A(CONVOLUTION_POST_PADDINGS), T(INT64), 1, CUDNN_DIM_MAX, 'i'},
    OPERATION(FORWARD, FORWARD, X, W, Y) OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY)
        OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY){D(OPERATIONGRAPH), A(OPERATIONGRAPH_HANDLE),
                                                          T(HANDLE), 1, 1, 'p'},
    {D(OPERATIONGRAPH), A(OPERATIONGRAPH_OPS), T(BACKEND_DESCRIPTOR), 1, 4, 'd'},
    {D(ENGINEHEUR), A(ENGINEHEUR_OPERATION_GRAPH), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
    {D(ENGINEHEUR), A(ENGINEHEUR_MODE), T(HEUR_MODE), 1, 1, 'e'},
    {D(EXECUTION_PLAN), A(EXECUTION_PLAN_HANDLE), T(HANDLE), 1, 1, 'p'},
    {D(EXECUTION_PLAN), A(EXECUTION_PLAN_ENGINE_CONFIG), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
    {D(VARIANT_PACK), A(VARIANT_PACK_UNIQUE_IDS), T(INT64), 1, DOUBLE_DIMS, 'i'},
    {D(VARIANT_PACK), A(VARIANT_PACK_DATA_POINTERS), T(VOID_PTR), 1, DOUBLE_DIMS, 'p'},
    {D(VARIANT_PACK), A(VARIANT_PACK_WORKSPACE), T(VOID_PTR), 1, 1, 'p'},
};
#undef OPERATION

static const struct rule *rule_of(cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].of == of && rules[i].name == name)
            return &rules[i];
    return NULL;
}

static double_descriptor *checked(cudnnBackendDescriptor_t descriptor)
{
    double_descriptor *d = descriptor;

    return d && d->magic == DESCRIPTOR ? d : NULL;
}

const double_value *double_value_of(const double_descriptor *d, cudnnBackendAttributeName_t name)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->values[i].name == name)
            return &d->values[i];
    return NULL;
}

double_descriptor *double_of(const double_descriptor *d, cudnnBackendAttributeName_t name)
{
    return double_value_of(d, name)->is.pointers[0];
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t *descriptor)
{
    const cudnnStatus_t status = due(CLOCK_cudnnBackendCreateDescriptor);
    bool known = type == D(ENGINE) || type == D(ENGINECFG);
    double_descriptor *d;

    if (status)
        return status;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        known = known || rules[i].of == type;
    if (!known || !descriptor)
        return double_refuse(
            CUDNN_STATUS_NOT_SUPPORTED,
            "cudnnBackendCreateDescriptor: this type is none of those that the plugin makes");
    if (!(d = calloc(1, sizeof *d)))
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    d->magic = DESCRIPTOR;
    d->type = type;
    *descriptor = d;
    (void)atomic_fetch_add(&descriptors, 1);
    return CUDNN_STATUS_SUCCESS;
}

/* The plan of a device that is gone may be destroyed too: no handle is looked at. */
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    double_descriptor *d = checked(descriptor);
    const cudnnStatus_t status = due(CLOCK_cudnnBackendDestroyDescriptor);

    if (!d) {
        (void)double_refuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendDestroyDescriptor: this is no descriptor");
        abort();
    }
    d->magic = 0;
    free(d);
    (void)atomic_fetch_sub(&descriptors, 1);
    return status;
}

static bool all_final(void *const *given, int64_t count)
{
    bool all = true;

    for (int64_t i = 0; i < count; i++)
        all = all && checked(given[i]) && checked(given[i])->final;
    return all;
}

/* "cudnnBackendSetAttribute()": the descriptor is not final yet, the attribute is one of it, has this type
 * and as many elements. Descriptors that are set are final (CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED). */
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *elements)
{
    double_descriptor *d = checked(descriptor);
    const struct rule *r = d ? rule_of(d->type, name) : NULL;
    const cudnnStatus_t status = due(CLOCK_cudnnBackendSetAttribute);
    static const uint8_t sizes[] = {['i'] = 8, ['e'] = 4, ['b'] = 1, ['d'] = 8, ['p'] = 8, ['f'] = 4};
    double_value *v;
    float single;

    if (status)
        return status;
    if (!d || d->final)
        return double_refuse(CUDNN_STATUS_NOT_INITIALIZED,
                             "cudnnBackendSetAttribute: no descriptor, or it is final already");
    if (!r || !elements)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "cudnnBackendSetAttribute: no attribute of this one");
    if (type != r->type && !(r->kind == 'f' && type == CUDNN_TYPE_DOUBLE))
        return double_refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                             "cudnnBackendSetAttribute: the attribute has another type");
    if (count < r->least || count > r->most || double_value_of(d, name))
        return double_refuse(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                             "cudnnBackendSetAttribute: too few or too many elements, or set twice");
    if (r->kind == 'd' && !all_final(elements, count))
        return double_refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                             "cudnnBackendSetAttribute: a descriptor that is not final");
    v = &d->values[d->count++];
    v->name = name;
    v->count = count;
    if (r->kind == 'f' && type == CUDNN_TYPE_FLOAT) {
        memcpy(&single, elements, sizeof single);
        v->is.wide = (double)single;
    } else {
        memcpy(&v->is, elements, (size_t)count * (r->kind == 'f' ? 8 : sizes[(unsigned char)r->kind]));
    }
    return CUDNN_STATUS_SUCCESS;
}

static bool lacks(const double_descriptor *d)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].of == d->type && !rules[i].optional && !double_value_of(d, rules[i].name))
            return true;
    return false;
}

/* ---- what is final ------------------------------------------------------------------------------------- */

/* Each check gives the rule that is broken; NULL: none. */
static int64_t element_bytes(int32_t type)
{
    static const int8_t bytes[] = {
        [CUDNN_DATA_FLOAT] = 4, [CUDNN_DATA_DOUBLE] = 8, [CUDNN_DATA_HALF] = 2, [CUDNN_DATA_BFLOAT16] = 2};

    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static int64_t least_of(const double_value *v)
{
    int64_t least = v->is.ints[0];

    for (int64_t i = 1; i < v->count; i++)
        least = v->is.ints[i] < least ? v->is.ints[i] : least;
    return least;
}

static const char *tensor_check(const double_descriptor *d)
{
    const double_value *dims = double_value_of(d, A(TENSOR_DIMENSIONS)),
                       *strides = double_value_of(d, A(TENSOR_STRIDES));
    const int64_t align = V(d, TENSOR_BYTE_ALIGNMENT).ints[0],
                  bytes = element_bytes(V(d, TENSOR_DATA_TYPE).number);

    return dims->count != strides->count          ? "tensor: as many strides as dimensions"
           : !bytes                               ? "tensor: a data type that the plugin has"
           : align < bytes || align & (align - 1) ? "tensor: alignment is a power of two, an element or more"
           : least_of(dims) < 1 || least_of(strides) < 1 ? "tensor: dimensions and strides are positive"
                                                         : NULL;
}

static const char *convolution_check(const double_descriptor *d)
{
    static const struct {
        cudnnBackendAttributeName_t name;
        int64_t least;
    } lists[] = {{A(CONVOLUTION_DILATIONS), 1},
                 {A(CONVOLUTION_FILTER_STRIDES), 1},
                 {A(CONVOLUTION_PRE_PADDINGS), 0},
                 {A(CONVOLUTION_POST_PADDINGS), 0}};
    const int64_t space = V(d, CONVOLUTION_SPATIAL_DIMS).ints[0];
    const int32_t type = V(d, CONVOLUTION_COMP_TYPE).number;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (double_value_of(d, lists[i].name)->count != space ||
            least_of(double_value_of(d, lists[i].name)) < lists[i].least)
            return "convolution: a list for each dimension of space, none of it too small";
    return space != 2 && space != 3 ? "convolution: 2 or 3 dimensions of space"
           : type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE
               ? "convolution: computes in float or double"
           : V(d, CONVOLUTION_CONV_MODE).number != CUDNN_CROSS_CORRELATION
               ? "convolution: the plugin's is a cross-correlation"
               : NULL;
}

/* "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR": the output's dimensions are
 * 1 + (x + pre + post - ((w - 1) * dilation + 1)) / stride; filters are (k, c / groups, …). */
static bool extents_agree(const double_descriptor *conv, const int64_t *x, const int64_t *w, const int64_t *y)
{
    bool agree = x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0 && x[0] == y[0] && w[0] == y[1];

    for (int64_t k = 0; k < V(conv, CONVOLUTION_SPATIAL_DIMS).ints[0]; k++) {
        const int64_t reach = (w[k + 2] - 1) * V(conv, CONVOLUTION_DILATIONS).ints[k] + 1;
        const int64_t whole = x[k + 2] + V(conv, CONVOLUTION_PRE_PADDINGS).ints[k] +
                              V(conv, CONVOLUTION_POST_PADDINGS).ints[k] - reach;

        agree = agree && whole >= 0 && 1 + whole / V(conv, CONVOLUTION_FILTER_STRIDES).ints[k] == y[k + 2];
    }
    return agree;
}

/* "Tensor Layouts" (cuDNN, Graph API, Tensors and Layouts): packed, with the space behind the channels (bit
 * 0), or channels last, where the stride of these is 1 (bit 1). Extents of 1 are of either order. */
static int orders_of(const double_descriptor *d)
{
    const int64_t *dims = V(d, TENSOR_DIMENSIONS).ints, *strides = V(d, TENSOR_STRIDES).ints;
    const int64_t n = double_value_of(d, A(TENSOR_DIMENSIONS))->count;
    int fits = 3;

    for (int last = 0; last < 2; last++) {
        int64_t step = last ? dims[1] : 1;

        for (int64_t i = n; i-- > 0;) {
            const int64_t wanted = last && i == 1 ? 1 : step;

            if (dims[i] > 1 && strides[i] != wanted)
                fits &= last ? 1 : 2;
            step *= last && i == 1 ? 1 : dims[i];
        }
    }
    return fits;
}

static const char *operation_check(const double_descriptor *d)
{
    const double_roles *r = double_roles_of(d->type);
    const double_descriptor *t[] = {double_of(d, r->x), double_of(d, r->w), double_of(d, r->y)},
                            *conv = double_of(d, r->conv);

    for (int i = 0; i < 3; i++)
        if (conv->type != D(CONVOLUTION) || t[i]->type != D(TENSOR) ||
            double_value_of(t[i], A(TENSOR_DIMENSIONS))->count !=
                V(conv, CONVOLUTION_SPATIAL_DIMS).ints[0] + 2)
            return "operation: tensors of space and two more dimensions, and a convolution";
    for (int i = 0; i < 3; i++)
        if ((V(t[i], TENSOR_DATA_TYPE).number != V(t[0], TENSOR_DATA_TYPE).number &&
             !double_is_virtual(t[i])) ||
            V(t[i], TENSOR_UNIQUE_ID).ints[0] == V(t[(i + 1) % 3], TENSOR_UNIQUE_ID).ints[0])
            return "operation: x, w and y have one data type, and ids of their own";
    if ((V(t[0], TENSOR_DATA_TYPE).number == CUDNN_DATA_DOUBLE) !=
        (V(conv, CONVOLUTION_COMP_TYPE).number == CUDNN_DATA_DOUBLE))
        return "operation: double is computed in double, others in float";
    if (!(orders_of(t[0]) & orders_of(t[1]) & orders_of(t[2])))
        return "operation: x, w and y are packed, all of them with channels last or none";
    return extents_agree(conv, V(t[0], TENSOR_DIMENSIONS).ints, V(t[1], TENSOR_DIMENSIONS).ints,
                         V(t[2], TENSOR_DIMENSIONS).ints)
               ? NULL
               : "operation: dimensions of x, w and y as the convolution has them";
}

static const char *graph_check(const double_descriptor *d)
{
    double_graph graph;

    return handle_fits(V(d, OPERATIONGRAPH_HANDLE).pointers[0]) ? double_graph_read(d, &graph)
                                                                : "graph: a handle of this device";
}

static const char *heuristic_check(const double_descriptor *d)
{
    const int32_t mode = V(d, ENGINEHEUR_MODE).number;

    return double_of(d, A(ENGINEHEUR_OPERATION_GRAPH))->type != D(OPERATIONGRAPH) ? "heuristic: of a graph"
           : mode < CUDNN_HEUR_MODE_B || mode > CUDNN_HEUR_MODE_A                 ? "heuristic: a mode"
                                                                                  : NULL;
}

static const char *plan_check(const double_descriptor *d)
{
    const double_descriptor *config = double_of(d, A(EXECUTION_PLAN_ENGINE_CONFIG));

    return !handle_fits(V(d, EXECUTION_PLAN_HANDLE).pointers[0]) ? "plan: a handle of this device"
           : config->type != D(ENGINECFG)                        ? "plan: of an engine's configuration"
           : config->engine->refuses || (config->engine->single &&
                                         double_value_of(config->graph, A(OPERATIONGRAPH_OPS))->count > 1)
               ? "plan: the engine does not serve"
               : NULL;
}

/* As many pointers as ids, and no id twice. */
static const char *pack_check(const double_descriptor *d)
{
    const double_value *ids = double_value_of(d, A(VARIANT_PACK_UNIQUE_IDS));

    for (int64_t i = 0; i < ids->count; i++)
        for (int64_t k = 0; k < i; k++)
            if (ids->is.ints[i] == ids->is.ints[k])
                return "variant pack: an id stands there twice";
    return ids->count == double_value_of(d, A(VARIANT_PACK_DATA_POINTERS))->count
               ? NULL
               : "variant pack: as many pointers as ids";
}

/* "cudnnBackendFinalize()": all required attributes are set, and agree. Engines and their configurations come
 * final from a heuristic. */
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        const char *(*check)(const double_descriptor *d);
    } checks[] = {{D(TENSOR), tensor_check},
                  {D(CONVOLUTION), convolution_check},
                  {D(POINTWISE), double_pointwise_check},
                  {D(OPERATION_POINTWISE), double_pointwise_operation_check},
                  {D(OPERATION_CONVOLUTION_FORWARD), operation_check},
                  {D(OPERATION_CONVOLUTION_BACKWARD_DATA), operation_check},
                  {D(OPERATION_CONVOLUTION_BACKWARD_FILTER), operation_check},
                  {D(OPERATIONGRAPH), graph_check},
                  {D(ENGINEHEUR), heuristic_check},
                  {D(EXECUTION_PLAN), plan_check},
                  {D(VARIANT_PACK), pack_check}};
    double_descriptor *d = checked(descriptor);
    const cudnnStatus_t status = due(CLOCK_cudnnBackendFinalize);
    const char *broken = "cudnnBackendFinalize: no descriptor that can be made final";

    if (status)
        return status;
    for (size_t i = 0; d && !d->final && i < sizeof checks / sizeof *checks; i++)
        if (checks[i].type == d->type)
            broken = lacks(d) ? "cudnnBackendFinalize: a required attribute is not set" : checks[i].check(d);
    if (broken && d && d->type == D(EXECUTION_PLAN) && strstr(broken, "does not serve"))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (broken)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, broken);
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- what is asked for --------------------------------------------------------------------------------- */

/* One that was created for this, and is filled in. */
static double_descriptor *fresh(void *descriptor, cudnnBackendDescriptorType_t type)
{
    double_descriptor *d = checked(descriptor);

    return d && d->type == type && !d->final ? d : NULL;
}

/* The heuristic's list: as many as there are, or as were asked for into descriptors of that type. */
static bool results_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    const double_descriptor *of = double_of(d, A(ENGINEHEUR_OPERATION_GRAPH));
    const double_engine *engines[DOUBLE_ENGINES];
    double_graph graph;
    int64_t all;

    if (double_graph_read(of, &graph))
        return false;
    all = double_engines((cudnnBackendHeurMode_t)V(d, ENGINEHEUR_MODE).number, &graph, engines);
    *count = room && room < all ? room : all;
    for (int64_t i = 0; i < room && i < all; i++) {
        double_descriptor *config = fresh(elements[i], D(ENGINECFG));

        if (!config)
            return false;
        config->engine = engines[i];
        config->graph = of;
        config->final = true;
    }
    return true;
}

static bool engine_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    double_descriptor *engine = room == 1 ? fresh(elements[0], D(ENGINE)) : NULL;

    if (!engine)
        return false;
    engine->engine = d->engine;
    engine->final = true;
    *count = 1;
    return true;
}

static bool notes_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    int32_t *notes = (void *)elements;

    for (int32_t i = *count = 0; i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if (d->engine->notes >> i & 1u && *count < room)
            notes[*count] = i;
        *count += d->engine->notes >> i & 1u;
    }
    return true;
}

static bool index_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    if (room == 1)
        memcpy(elements, &d->engine->index, sizeof d->engine->index);
    *count = 1;
    return true;
}

static bool workspace_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    const double_engine *e = double_of(d, A(EXECUTION_PLAN_ENGINE_CONFIG))->engine;

    if (room == 1)
        memcpy(elements, &e->workspace_bytes, sizeof e->workspace_bytes);
    *count = 1;
    return true;
}

/* "cudnnBackendGetAttribute()": the descriptor is final, the attribute is one of it and has this type. */
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                              void *elements)
{
    static const struct {
        cudnnBackendDescriptorType_t of;
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        bool (*get)(const double_descriptor *d, int64_t room, int64_t *count, void **elements);
    } rows[] = {{D(ENGINEHEUR), A(ENGINEHEUR_RESULTS), T(BACKEND_DESCRIPTOR), results_get},
                {D(ENGINECFG), A(ENGINECFG_ENGINE), T(BACKEND_DESCRIPTOR), engine_get},
                {D(ENGINE), A(ENGINE_NUMERICAL_NOTE), T(NUMERICAL_NOTE), notes_get},
                {D(ENGINE), A(ENGINE_GLOBAL_INDEX), T(INT64), index_get},
                {D(EXECUTION_PLAN), A(EXECUTION_PLAN_WORKSPACE_SIZE), T(INT64), workspace_get}};
    const double_descriptor *d = checked(descriptor);
    const cudnnStatus_t status = due(CLOCK_cudnnBackendGetAttribute);

    if (status)
        return status;
    if (!d || !d->final)
        return double_refuse(CUDNN_STATUS_NOT_INITIALIZED, "cudnnBackendGetAttribute: it is not final");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].of == d->type && rows[i].name == name && rows[i].type == type && count &&
            (elements || !room) && rows[i].get(d, room, count, elements))
            return CUDNN_STATUS_SUCCESS;
    return double_refuse(CUDNN_STATUS_BAD_PARAM,
                         "cudnnBackendGetAttribute: nothing that the plugin asks for");
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* The pointers of the graph's tensors, which the pack has by their ids, as aligned as the tensors say. */
static bool pointers_get(const double_graph *graph, const double_descriptor *pack, void *data[5])
{
    const double_value *ids = double_value_of(pack, A(VARIANT_PACK_UNIQUE_IDS));
    int64_t count = 0;

    for (int i = 0; i < 5; i++) {
        const double_descriptor *t = graph->tensors[i];

        data[i] = NULL;
        for (int64_t k = 0; t && k < ids->count; k++)
            if (ids->is.ints[k] == V(t, TENSOR_UNIQUE_ID).ints[0])
                data[i] = V(pack, VARIANT_PACK_DATA_POINTERS).pointers[k];
        if (t && (!data[i] || (uintptr_t)data[i] % (uintptr_t)V(t, TENSOR_BYTE_ALIGNMENT).ints[0]))
            return false;
        count += t != NULL;
    }
    return ids->count == count;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t execution_plan,
                                         cudnnBackendDescriptor_t variant_pack)
{
    const double_descriptor *plan = checked(execution_plan), *pack = checked(variant_pack), *config;
    cudnnStatus_t status = due(CLOCK_cudnnBackendExecute);
    void *data[5], *workspace;
    double_graph graph;

    if (status)
        return status;
    if (!plan || !plan->final || plan->type != D(EXECUTION_PLAN) || !pack || !pack->final ||
        pack->type != D(VARIANT_PACK) || V(plan, EXECUTION_PLAN_HANDLE).pointers[0] != handle)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "execute: a plan of this handle and a pack, both final");
    config = double_of(plan, A(EXECUTION_PLAN_ENGINE_CONFIG));
    workspace = V(pack, VARIANT_PACK_WORKSPACE).pointers[0];
    if ((config->engine->workspace_bytes && !workspace) || double_graph_read(config->graph, &graph) ||
        !pointers_get(&graph, pack, data))
        return double_refuse(CUDNN_STATUS_BAD_PARAM,
                             "execute: a workspace, and each tensor's pointer, aligned");
    if ((status = handle_enter(handle)))
        return status;
    status = double_run(handle->stream, &graph, data, workspace, config->engine->workspace_bytes);
    atomic_store(&handle->busy, false);
    return status;
}
