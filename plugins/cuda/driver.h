/*
 * The driver API of CUDA, as far as the plugin calls it: its types and numbers as the driver's binary
 * interface has them (NVIDIA, CUDA Driver API), so that no toolkit is needed to compile this.
 * tests/cuda/test_header.c compares them with the toolkit's header.
 */
#ifndef TNCUDA_DRIVER_H
#define TNCUDA_DRIVER_H

#include "tenon/plugin/base.h"

typedef int32_t tncuda_result;
typedef unsigned long long tncuda_address; /* of device memory */
typedef struct CUctx_st *tncuda_context;
typedef struct CUstream_st *tncuda_stream;
typedef struct CUevent_st *tncuda_event;
typedef struct CUgraph_st *tncuda_graph;
typedef struct CUgraphNode_st *tncuda_graph_node;
typedef struct CUgraphExec_st *tncuda_graph_exec;
typedef struct CUmod_st *tncuda_module;
typedef struct CUfunc_st *tncuda_function;

#define TNCUDA_VERSION 12000 /* of the driver's interface: the least that is served */

#define TNCUDA_SUCCESS 0
#define TNCUDA_INVALID_VALUE 1
#define TNCUDA_OUT_OF_MEMORY 2
#define TNCUDA_STUB_LIBRARY 34
#define TNCUDA_NO_DEVICE 100
#define TNCUDA_NOT_FOUND 500
#define TNCUDA_NOT_READY 600
#define TNCUDA_PEER_ACCESS_ALREADY_ENABLED 704
#define TNCUDA_NOT_SUPPORTED 801

#define TNCUDA_ATTRIBUTE_UNITS 16         /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
#define TNCUDA_ATTRIBUTE_COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define TNCUDA_ATTRIBUTE_COMPUTE_MINOR 76
#define TNCUDA_ATTRIBUTE_MANAGED 83 /* CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY */

#define TNCUDA_HOST_PORTABLE 1u       /* CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE */
#define TNCUDA_MANAGED_GLOBAL 1u      /* CU_MEM_ATTACH_GLOBAL */
#define TNCUDA_STREAM_NON_BLOCKING 1u /* CU_STREAM_NON_BLOCKING */
#define TNCUDA_EVENT_NO_TIMING 2u     /* CU_EVENT_DISABLE_TIMING */
#define TNCUDA_EVENT_EXTERNAL 1u      /* CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL */
#define TNCUDA_CAPTURE_RELAXED 2      /* CU_STREAM_CAPTURE_MODE_RELAXED */

#define TNCUDA_NODE_KERNEL 0
#define TNCUDA_NODE_COPY 1
#define TNCUDA_NODE_FILL 2
#define TNCUDA_NODE_HOST 3
#define TNCUDA_NODE_EMPTY 5
#define TNCUDA_NODE_WAIT 6
#define TNCUDA_NODE_RECORD 7
#define TNCUDA_NODE_TYPES 16 /* more than there are */

#define TNCUDA_MEMORY_HOST 1u /* CU_MEMORYTYPE_HOST; others lie behind the address */

typedef struct tncuda_host_node { /* CUDA_HOST_NODE_PARAMS_v1 */
    void (*fn)(void *arg);
    void *arg;
} tncuda_host_node;

typedef struct tncuda_copy_end { /* one half of CUDA_MEMCPY3D_v2 */
    size_t x_bytes, y, z, lod;
    uint32_t type; /* TNCUDA_MEMORY_… */
    void *host;
    tncuda_address device;
    void *array, *reserved;
    size_t pitch, height;
} tncuda_copy_end;

typedef struct tncuda_copy_node { /* CUDA_MEMCPY3D_v2 */
    tncuda_copy_end src, dst;
    size_t bytes, height, depth;
} tncuda_copy_node;

typedef struct tncuda_kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 */
    tncuda_function function;
    uint32_t grid[3], block[3], shared_bytes;
    void **params, **extra;
    void *kernel;           /* NULL: the function says what */
    tncuda_context context; /* not looked at then */
} tncuda_kernel_node;

typedef struct tncuda_driver {
    void *library;
    int32_t version;
#define DRIVER(member, name, params) tncuda_result(*member) params;
#include "driver.list"
#undef DRIVER
} tncuda_driver;

/** Opens the driver and fills in the table. TN_E_DEVICE: there is no driver, or not one that serves.
 * [any] */
tn_status tncuda_driver_open(tncuda_driver *out, tn_err *err);

/** The status for a result, and `err` filled in: `what` names the call and its numbers. `driver` may be NULL.
 */
tn_status tncuda_driver_fail(const tncuda_driver *driver, tncuda_result result, const char *what,
                             tn_err *err);

/** 1: after this result the context answers nothing else. */
int32_t tncuda_driver_sticky(tncuda_result result);

#endif
