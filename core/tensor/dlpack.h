/*
 * The structs of DLPack 1.1 (dmlc.github.io/dlpack, Apache-2.0), as memory: how tensors cross between
 * libraries in one process. The names are the format's; only their layout is fixed.
 */
#ifndef TN_TENSOR_DLPACK_H
#define TN_TENSOR_DLPACK_H

#include <stdint.h>

#define TNI_DL_MAJOR 1u
#define TNI_DL_MINOR 1u
#define TNI_DL_CPU 1 /* device types */
#define TNI_DL_INT 0 /* codes of data types */
#define TNI_DL_UINT 1
#define TNI_DL_FLOAT 2
#define TNI_DL_BFLOAT 4
#define TNI_DL_BOOL 6
#define TNI_DL_READ_ONLY ((uint64_t)1)

typedef struct DLDataType {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: row-major */
    uint64_t byte_offset; /* from `data` to the first element */
} DLTensor;

typedef struct DLManagedTensor { /* before 1.0: "dltensor" capsules */
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned { /* "dltensor_versioned" capsules; all up to `flags` never changes */
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
