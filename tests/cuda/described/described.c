/*
 * NVIDIA's own cuDNN without a GPU, for tests: libcudnn.so.9 that hands all calls to the library on this
 * machine, and a description of a device (an H100) in the place of a handle. The library then checks
 * descriptors, lists engines and makes plans ready; nothing can be run. Needs cuDNN 9.8, which took
 * descriptions first.
 */
#include <cudnn_graph.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char device[] =
    "{\"deviceName\":\"NVIDIA H100 80GB HBM3\",\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,"
    "\"multiProcessorCount\":132,\"warpSize\":32,\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"maxCtasPerSM\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"pciDeviceId\":0,"
    "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":84942979072,\"l2CacheSize\":52428800,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000}";

static void *library;
static cudnnBackendDescriptor_t described;

/* A function of the library into `member`, a pointer to a function. */
static int found(const char *name, void *member)
{
    void *symbol;

    if (!library)
        library = dlopen(DESCRIBED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, name) : NULL;
    memcpy(member, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* A function that hands its call on. */
#define HAND_ON(result, name, otherwise, params, args)                                                       \
    EXPORT result name params                                                                                \
    {                                                                                                        \
        static result(*to) params;                                                                           \
                                                                                                             \
        return to || found(#name, (void *)&to) ? to args : (otherwise);                                      \
    }

HAND_ON(size_t, cudnnGetVersion, 0, (void), ())
HAND_ON(const char *, cudnnGetErrorString, "no library", (cudnnStatus_t status), (status))
HAND_ON(cudnnStatus_t, cudnnBackendCreateDescriptor, CUDNN_STATUS_NOT_INITIALIZED,
        (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out), (type, out))
HAND_ON(cudnnStatus_t, cudnnBackendDestroyDescriptor, CUDNN_STATUS_NOT_INITIALIZED,
        (cudnnBackendDescriptor_t descriptor), (descriptor))
HAND_ON(cudnnStatus_t, cudnnBackendFinalize, CUDNN_STATUS_NOT_INITIALIZED,
        (cudnnBackendDescriptor_t descriptor), (descriptor))
HAND_ON(cudnnStatus_t, cudnnBackendGetAttribute, CUDNN_STATUS_NOT_INITIALIZED,
        (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *elements),
        (descriptor, name, type, room, count, elements))

EXPORT void cudnnGetLastErrorString(char *message, size_t bytes)
{
    void (*to)(char *message, size_t bytes);

    if (found("cudnnGetLastErrorString", (void *)&to))
        to(message, bytes);
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
    static cudnnStatus_t (*to)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type, int64_t count, const void *elements);

    return to || found("cudnnBackendSetAttribute", (void *)&to) ? to(descriptor, name, type, count, elements)
                                                                : CUDNN_STATUS_NOT_INITIALIZED;
}

/* Graphs need no device then, heuristics and plans the description. */
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *elements)
{
    cudnnStatus_t status;

    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return set(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &described);
    if (name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH &&
        (status =
             set(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &described)))
        return status;
    return set(descriptor, name, type, count, elements);
}

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    cudnnStatus_t status =
        described ? CUDNN_STATUS_SUCCESS
                  : cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);

    *handle = (cudnnHandle_t)&described;
    return status ? status
           : (status = set(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                           (int64_t)sizeof device - 1, device))
               ? status
               : cudnnBackendFinalize(described);
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    (void)handle;
    (void)cudnnBackendDestroyDescriptor(described);
    described = NULL;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    (void)handle;
    (void)stream;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack)
{
    (void)handle;
    (void)plan;
    (void)pack;
    return CUDNN_STATUS_NOT_SUPPORTED;
}
