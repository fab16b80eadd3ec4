/* plugins/cuda/driver.h says what the toolkit's header says, where there is one. */
#include <stdio.h>

#include "../../plugins/cuda/driver.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#endif
#endif

#ifdef CUDA_VERSION
#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define MEMBER(ours, theirs)                                                                                 \
    _Static_assert(offsetof(tncuda_copy_node, ours) == offsetof(CUDA_MEMCPY3D_v2, theirs), #theirs)
SAME(TNCUDA_SUCCESS, CUDA_SUCCESS);
SAME(TNCUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(TNCUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(TNCUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(TNCUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(TNCUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(TNCUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(TNCUDA_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(TNCUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(TNCUDA_ATTRIBUTE_UNITS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(TNCUDA_ATTRIBUTE_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(TNCUDA_ATTRIBUTE_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(TNCUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(TNCUDA_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(TNCUDA_MANAGED_GLOBAL, CU_MEM_ATTACH_GLOBAL);
SAME(TNCUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(TNCUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(TNCUDA_EVENT_EXTERNAL, CU_EVENT_RECORD_EXTERNAL);
SAME(TNCUDA_EVENT_EXTERNAL, CU_EVENT_WAIT_EXTERNAL);
SAME(TNCUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(TNCUDA_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME(TNCUDA_NODE_COPY, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME(TNCUDA_NODE_FILL, CU_GRAPH_NODE_TYPE_MEMSET);
SAME(TNCUDA_NODE_HOST, CU_GRAPH_NODE_TYPE_HOST);
SAME(TNCUDA_NODE_WAIT, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
SAME(TNCUDA_NODE_RECORD, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SAME(TNCUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(sizeof(tncuda_copy_node), sizeof(CUDA_MEMCPY3D_v2));
SAME(sizeof(tncuda_host_node), sizeof(CUDA_HOST_NODE_PARAMS_v1));
SAME(sizeof(tncuda_address), sizeof(CUdeviceptr));
SAME(sizeof(tncuda_result), sizeof(CUresult));
MEMBER(src.x_bytes, srcXInBytes);
MEMBER(src.type, srcMemoryType);
MEMBER(src.host, srcHost);
MEMBER(src.device, srcDevice);
MEMBER(src.pitch, srcPitch);
MEMBER(dst.x_bytes, dstXInBytes);
MEMBER(dst.type, dstMemoryType);
MEMBER(dst.host, dstHost);
MEMBER(dst.device, dstDevice);
MEMBER(bytes, WidthInBytes);
MEMBER(height, Height);
MEMBER(depth, Depth);
#undef MEMBER
#define MEMBER(ours, theirs)                                                                                 \
    _Static_assert(offsetof(tncuda_kernel_node, ours) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, theirs),       \
                   #theirs)
SAME(sizeof(tncuda_kernel_node), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
MEMBER(function, func);
MEMBER(grid, gridDimX);
MEMBER(block, blockDimX);
MEMBER(shared_bytes, sharedMemBytes);
MEMBER(params, kernelParams);
MEMBER(extra, extra);
MEMBER(kernel, kern);
MEMBER(context, ctx);
SAME(sizeof(tncuda_graph_difference), sizeof(CUgraphExecUpdateResultInfo));

int main(void)
{
    printf("driver.h is as the header of CUDA %d\n", CUDA_VERSION);
    return 0;
}
#else
int main(void)
{
    printf("skipped: there is no cuda.h to compare with\n");
    return 77;
}
#endif
