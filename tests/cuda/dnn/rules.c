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
    X(cudnnDestroy) X(cudnnSetStream) X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor)       \
        X(cudnnBackendFinalize) X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute)                      \
            X(cudnnBackendExecute)

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
    return status == CUDNN_STATUS_SUCCESS          ? "CUDNN_STATUS_SUCCESS"
           : CUDNN_STATUS_CATEGORY(status) == 1000 ? "CUDNN_STATUS_NOT_INITIALIZED"
           : CUDNN_STATUS_CATEGORY(status) == 2000 ? "CUDNN_STATUS_BAD_PARAM"
           : CUDNN_STATUS_CATEGORY(status) == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED"
           : CUDNN_STATUS_CATEGORY(status) == 4000 ? "CUDNN_STATUS_INTERNAL_ERROR"
                                                   : "CUDNN_STATUS_EXECUTION_FAILED";
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

/* "cudnnHandle_t": made for one device, that of the context; one thread at a time. */
static cudnnStatus_t handle_check(cudnnHandle_t handle)
{
    int device;

    if (!handle || handle->magic != HANDLE)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "this is no handle");
    if (double_cuda.device(&device) || device != handle->device)
        return double_refuse(CUDNN_STATUS_BAD_PARAM, "the handle is another device's than the context");
    if (atomic_exchange(&handle->busy, true)) {
        (void)double_refuse(CUDNN_STATUS_BAD_PARAM, "two threads call with one handle");
        abort();
    }
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    cudnnStatus_t status = due(CLOCK_cudnnDestroy);

    if (status || (status = handle_check(handle)))
        return status;
    handle->magic = 0;
    free(handle);
    (void)atomic_fetch_sub(&handles, 1);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    cudnnStatus_t status = due(CLOCK_cudnnSetStream);

    if (status || (status = handle_check(handle)))
        return status;
    handle->stream = stream;
    atomic_store(&handle->busy, false);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

#define D(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define A(name) CUDNN_ATTR_##name
#define T(name) CUDNN_TYPE_##name
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
 * here but alignment ("Default value"). 'i' int64, 'e' a number of an enumeration, 'd' a descriptor that is
 * final, 'p' pointers, 'f' float, or double as well ("CUDNN_TYPE_FLOAT or CUDNN_TYPE_DOUBLE"). */
static const struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    char kind;
} rules[] = {
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
    {D(OPERATIONGRAPH), A(OPERATIONGRAPH_OPS), T(BACKEND_DESCRIPTOR), 1, 1, 'd'},
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

static int64_t int_of(const double_descriptor *d, cudnnBackendAttributeName_t name)
{
    return double_value_of(d, name)->is.ints[0];
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
    static const uint8_t sizes[] = {['i'] = 8, ['e'] = 4, ['d'] = 8, ['p'] = 8, ['f'] = 4};
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
    if (r->kind == 'd' && (!checked(*(void *const *)elements) || !checked(*(void *const *)elements)->final))
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

/* ---- what is final ------------------------------------------------------------------------------------- */

#define REFUSE_IF(wrong, rule)                                                                               \
    do {                                                                                                     \
        if (wrong)                                                                                           \
            return double_refuse(CUDNN_STATUS_BAD_PARAM, rule);                                              \
    } while (0)

static int64_t element_bytes(int32_t type)
{
    return type == CUDNN_DATA_DOUBLE                                ? 8
           : type == CUDNN_DATA_FLOAT                               ? 4
           : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
                                                                    : 0;
}

static cudnnStatus_t tensor_check(const double_descriptor *d)
{
    const double_value *dims = double_value_of(d, A(TENSOR_DIMENSIONS)),
                       *strides = double_value_of(d, A(TENSOR_STRIDES));
    const int64_t align = int_of(d, A(TENSOR_BYTE_ALIGNMENT)),
                  bytes = element_bytes(double_value_of(d, A(TENSOR_DATA_TYPE))->is.number);

    REFUSE_IF(dims->count != strides->count, "tensor: as many strides as dimensions");
    REFUSE_IF(!bytes, "tensor: no data type that the plugin has");
    REFUSE_IF(align < bytes || align & (align - 1),
              "tensor: the alignment is a power of two, an element or more");
    for (int64_t i = 0; i < dims->count; i++)
        REFUSE_IF(dims->is.ints[i] < 1 || strides->is.ints[i] < 1,
                  "tensor: dimensions and strides are positive");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t convolution_check(const double_descriptor *d)
{
    static const cudnnBackendAttributeName_t lists[] = {
        A(CONVOLUTION_DILATIONS), A(CONVOLUTION_FILTER_STRIDES), A(CONVOLUTION_PRE_PADDINGS),
        A(CONVOLUTION_POST_PADDINGS)};
    const int64_t space = int_of(d, A(CONVOLUTION_SPATIAL_DIMS));
    const int32_t type = double_value_of(d, A(CONVOLUTION_COMP_TYPE))->is.number;

    REFUSE_IF(space != 2 && space != 3, "convolution: 2 or 3 dimensions of space");
    REFUSE_IF(type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE,
              "convolution: computes in float or double");
    REFUSE_IF(double_value_of(d, A(CONVOLUTION_CONV_MODE))->is.number != CUDNN_CROSS_CORRELATION,
              "convolution: the plugin's is a cross-correlation");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const double_value *v = double_value_of(d, lists[i]);

        REFUSE_IF(v->count != space, "convolution: a list for each dimension of space");
        for (int64_t k = 0; k < space; k++)
            REFUSE_IF(v->is.ints[k] < (i < 2 ? 1 : 0),
                      "convolution: a stride, dilation or padding is too small");
    }
    return CUDNN_STATUS_SUCCESS;
}

/* "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR": the output's dimensions are
 * 1 + (x + pre + post - ((w - 1) * dilation + 1)) / stride; filters are (k, c / groups, …). */
static cudnnStatus_t operation_check(const double_descriptor *d)
{
    const double_roles *r = double_roles_of(d->type);
    const double_descriptor *t[] = {double_of(d, r->x), double_of(d, r->w), double_of(d, r->y)},
                            *conv = double_of(d, r->conv);
    const int64_t space = conv->type == D(CONVOLUTION) ? int_of(conv, A(CONVOLUTION_SPATIAL_DIMS)) : 0;
    const double_value *dims[3];
    int32_t type = 0;

    REFUSE_IF(!space, "operation: its convolution is none");
    for (int i = 0; i < 3; i++) {
        REFUSE_IF(t[i]->type != D(TENSOR), "operation: x, w and y are tensors");
        dims[i] = double_value_of(t[i], A(TENSOR_DIMENSIONS));
        type = double_value_of(t[i], A(TENSOR_DATA_TYPE))->is.number;
        REFUSE_IF(dims[i]->count != space + 2, "operation: tensors have space and two more dimensions");
        REFUSE_IF(type != double_value_of(t[0], A(TENSOR_DATA_TYPE))->is.number,
                  "operation: x, w and y have one data type");
        REFUSE_IF(int_of(t[i], A(TENSOR_UNIQUE_ID)) == int_of(t[(i + 1) % 3], A(TENSOR_UNIQUE_ID)),
                  "operation: ids are unique");
    }
    REFUSE_IF((type == CUDNN_DATA_DOUBLE) !=
                  (double_value_of(conv, A(CONVOLUTION_COMP_TYPE))->is.number == CUDNN_DATA_DOUBLE),
              "operation: double is computed in double, others in float");
    REFUSE_IF(dims[0]->is.ints[1] % dims[1]->is.ints[1] ||
                  dims[1]->is.ints[0] % (dims[0]->is.ints[1] / dims[1]->is.ints[1]),
              "operation: channels and filters are multiples of the groups");
    REFUSE_IF(dims[0]->is.ints[0] != dims[2]->is.ints[0] || dims[1]->is.ints[0] != dims[2]->is.ints[1],
              "operation: batch or filters of y are others");
    for (int64_t k = 0; k < space; k++) {
        const int64_t reach =
            (dims[1]->is.ints[k + 2] - 1) * double_value_of(conv, A(CONVOLUTION_DILATIONS))->is.ints[k] + 1;
        const int64_t whole = dims[0]->is.ints[k + 2] +
                              double_value_of(conv, A(CONVOLUTION_PRE_PADDINGS))->is.ints[k] +
                              double_value_of(conv, A(CONVOLUTION_POST_PADDINGS))->is.ints[k] - reach;

        REFUSE_IF(whole < 0 || 1 + whole / double_value_of(conv, A(CONVOLUTION_FILTER_STRIDES))->is.ints[k] !=
                                   dims[2]->is.ints[k + 2],
                  "operation: y has other dimensions than the convolution gives");
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t graph_check(const double_descriptor *d)
{
    const cudnnHandle_t handle = double_value_of(d, A(OPERATIONGRAPH_HANDLE))->is.pointers[0];
    const cudnnStatus_t status = handle_check(handle);

    if (status)
        return status;
    atomic_store(&handle->busy, false);
    REFUSE_IF(!double_roles_of(double_of(d, A(OPERATIONGRAPH_OPS))->type), "graph: its operation is none");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t heuristic_check(const double_descriptor *d)
{
    const int32_t mode = double_value_of(d, A(ENGINEHEUR_MODE))->is.number;

    REFUSE_IF(double_of(d, A(ENGINEHEUR_OPERATION_GRAPH))->type != D(OPERATIONGRAPH),
              "heuristic: of no graph");
    REFUSE_IF(mode != CUDNN_HEUR_MODE_A && mode != CUDNN_HEUR_MODE_B && mode != CUDNN_HEUR_MODE_FALLBACK,
              "heuristic: no such mode");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t plan_check(const double_descriptor *d)
{
    const cudnnHandle_t handle = double_value_of(d, A(EXECUTION_PLAN_HANDLE))->is.pointers[0];
    const double_descriptor *config = double_of(d, A(EXECUTION_PLAN_ENGINE_CONFIG));
    const cudnnStatus_t status = handle_check(handle);

    if (status)
        return status;
    atomic_store(&handle->busy, false);
    REFUSE_IF(config->type != D(ENGINECFG), "plan: of no engine's configuration");
    return config->engine->refuses ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

/* As many pointers as ids, and no id twice. */
static cudnnStatus_t pack_check(const double_descriptor *d)
{
    const double_value *ids = double_value_of(d, A(VARIANT_PACK_UNIQUE_IDS));

    REFUSE_IF(ids->count != double_value_of(d, A(VARIANT_PACK_DATA_POINTERS))->count,
              "variant pack: as many pointers as ids");
    for (int64_t i = 0; i < ids->count; i++)
        for (int64_t k = 0; k < i; k++)
            REFUSE_IF(ids->is.ints[i] == ids->is.ints[k], "variant pack: an id stands there twice");
    return CUDNN_STATUS_SUCCESS;
}

/* "cudnnBackendFinalize()": all required attributes are set, and agree. */
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnStatus_t (*check)(const double_descriptor *d);
    } checks[] = {{D(TENSOR), tensor_check},
                  {D(CONVOLUTION), convolution_check},
                  {D(OPERATION_CONVOLUTION_FORWARD), operation_check},
                  {D(OPERATION_CONVOLUTION_BACKWARD_DATA), operation_check},
                  {D(OPERATION_CONVOLUTION_BACKWARD_FILTER), operation_check},
                  {D(OPERATIONGRAPH), graph_check},
                  {D(ENGINEHEUR), heuristic_check},
                  {D(EXECUTION_PLAN), plan_check},
                  {D(VARIANT_PACK), pack_check}};
    double_descriptor *d = checked(descriptor);
    cudnnStatus_t status = due(CLOCK_cudnnBackendFinalize);

    if (status)
        return status;
    REFUSE_IF(!d || d->final, "cudnnBackendFinalize: no descriptor, or it is final already");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        REFUSE_IF(rules[i].of == d->type && !double_value_of(d, rules[i].name),
                  "cudnnBackendFinalize: a required attribute is not set");
    status = CUDNN_STATUS_BAD_PARAM; /* engines and their configurations come final from a heuristic */
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].type == d->type)
            status = checks[i].check(d);
    d->final = !status;
    return status;
}

/* ---- what is asked for --------------------------------------------------------------------------------- */

/* The heuristic's list: as many as there are, or as were asked for into descriptors of that type. */
static cudnnStatus_t results_get(const double_descriptor *d, int64_t room, int64_t *count, void **elements)
{
    const double_engine *engines[DOUBLE_ENGINES];
    const int64_t all =
        double_engines((cudnnBackendHeurMode_t)double_value_of(d, A(ENGINEHEUR_MODE))->is.number, engines);

    *count = room && room < all ? room : all;
    for (int64_t i = 0; i < room && i < all; i++) {
        double_descriptor *config = checked(elements[i]);

        REFUSE_IF(!config || config->type != D(ENGINECFG) || config->final,
                  "heuristic's results: descriptors of configurations, as they were created");
        config->engine = engines[i];
        config->operation = double_of(double_of(d, A(ENGINEHEUR_OPERATION_GRAPH)), A(OPERATIONGRAPH_OPS));
        config->final = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t engine_get(const double_descriptor *d, int64_t *count, void **elements)
{
    double_descriptor *engine = checked(elements[0]);

    REFUSE_IF(!engine || engine->type != D(ENGINE) || engine->final,
              "configuration's engine: a descriptor of an engine, as it was created");
    engine->engine = d->engine;
    engine->final = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t notes_get(const double_descriptor *d, int64_t room, int64_t *count,
                               cudnnBackendNumericalNote_t *notes)
{
    *count = 0;
    for (uint32_t i = 0; i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if (d->engine->notes >> i & 1u && *count < room)
            notes[*count] = (cudnnBackendNumericalNote_t)i;
        *count += d->engine->notes >> i & 1u;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* "cudnnBackendGetAttribute()": the descriptor is final, the attribute is one of it and has this type. */
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                              void *elements)
{
    const double_descriptor *d = checked(descriptor);
    const cudnnStatus_t status = due(CLOCK_cudnnBackendGetAttribute);
    int64_t number = 0;

    if (status)
        return status;
    if (!d || !d->final)
        return double_refuse(CUDNN_STATUS_NOT_INITIALIZED, "cudnnBackendGetAttribute: it is not final");
    REFUSE_IF(!count || (room && !elements), "cudnnBackendGetAttribute: nowhere to put it");
    if (d->type == D(ENGINEHEUR) && name == A(ENGINEHEUR_RESULTS) && type == T(BACKEND_DESCRIPTOR))
        return results_get(d, room, count, elements);
    if (d->type == D(ENGINECFG) && name == A(ENGINECFG_ENGINE) && type == T(BACKEND_DESCRIPTOR) && room)
        return engine_get(d, count, elements);
    if (d->type == D(ENGINE) && name == A(ENGINE_NUMERICAL_NOTE) && type == T(NUMERICAL_NOTE))
        return notes_get(d, room, count, elements);
    if (d->type == D(ENGINE) && name == A(ENGINE_GLOBAL_INDEX) && type == T(INT64) && room)
        number = d->engine->index;
    else if (d->type == D(EXECUTION_PLAN) && name == A(EXECUTION_PLAN_WORKSPACE_SIZE) && type == T(INT64) &&
             room)
        number = double_of(d, A(EXECUTION_PLAN_ENGINE_CONFIG))->engine->workspace_bytes;
    else
        REFUSE_IF(true, "cudnnBackendGetAttribute: nothing that the plugin asks for");
    *count = 1;
    memcpy(elements, &number, sizeof number);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* The pointers of x, w and y, which the pack has by their ids, as aligned as the tensors say. */
static cudnnStatus_t pointers_get(const double_descriptor *operation, const double_descriptor *pack,
                                  void *data[3])
{
    const double_roles *r = double_roles_of(operation->type);
    const double_descriptor *t[] = {double_of(operation, r->x), double_of(operation, r->w),
                                    double_of(operation, r->y)};
    const double_value *ids = double_value_of(pack, A(VARIANT_PACK_UNIQUE_IDS)),
                       *all = double_value_of(pack, A(VARIANT_PACK_DATA_POINTERS));

    REFUSE_IF(ids->count != 3, "execute: a pointer for each tensor of the graph");
    for (int i = 0; i < 3; i++) {
        data[i] = NULL;
        for (int64_t k = 0; k < ids->count; k++)
            if (ids->is.ints[k] == int_of(t[i], A(TENSOR_UNIQUE_ID)))
                data[i] = all->is.pointers[k];
        REFUSE_IF(!data[i], "execute: no pointer for a tensor");
        REFUSE_IF((uintptr_t)data[i] % (uintptr_t)int_of(t[i], A(TENSOR_BYTE_ALIGNMENT)),
                  "execute: a pointer that is not aligned as its tensor");
    }
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t execution_plan,
                                         cudnnBackendDescriptor_t variant_pack)
{
    const double_descriptor *plan = checked(execution_plan), *pack = checked(variant_pack), *config;
    cudnnStatus_t status = due(CLOCK_cudnnBackendExecute);
    void *data[3], *workspace;

    if (status)
        return status;
    REFUSE_IF(!plan || !plan->final || plan->type != D(EXECUTION_PLAN), "execute: no plan that is final");
    REFUSE_IF(!pack || !pack->final || pack->type != D(VARIANT_PACK),
              "execute: no variant pack that is final");
    REFUSE_IF(double_value_of(plan, A(EXECUTION_PLAN_HANDLE))->is.pointers[0] != handle,
              "execute: the plan is another handle's");
    config = double_of(plan, A(EXECUTION_PLAN_ENGINE_CONFIG));
    workspace = double_value_of(pack, A(VARIANT_PACK_WORKSPACE))->is.pointers[0];
    REFUSE_IF(config->engine->workspace_bytes && !workspace, "execute: the engine needs a workspace");
    if ((status = pointers_get(config->operation, pack, data)) || (status = handle_check(handle)))
        return status;
    status = double_run(handle->stream, config->operation, data, workspace, config->engine->workspace_bytes);
    atomic_store(&handle->busy, false);
    return status;
}
