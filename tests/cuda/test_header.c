/* plugins/cuda/driver.h and lt.h say what the toolkit's headers say, where there are some. */
#include <stdio.h>

#include "../../plugins/cuda/lt.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#endif
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#elif __has_include("/usr/local/cuda/include/cublasLt.h")
#include "/usr/local/cuda/include/cublasLt.h"
#endif
#endif

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)

#ifdef CUBLAS_VERSION
SAME(sizeof(tncuda_lt_status), sizeof(cublasStatus_t));
SAME(sizeof(tncuda_lt_algo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(tncuda_lt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(tncuda_lt_choice, algo), offsetof(cublasLtMatmulHeuristicResult_t, algo));
SAME(offsetof(tncuda_lt_choice, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(tncuda_lt_choice, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(sizeof(int32_t), sizeof(cublasComputeType_t));
SAME(sizeof(int32_t), sizeof(cudaDataType_t));
SAME(sizeof(int32_t), sizeof(cublasLtMatmulDescAttributes_t));
SAME(TNCUDA_R_F32, CUDA_R_32F);
SAME(TNCUDA_R_F64, CUDA_R_64F);
SAME(TNCUDA_R_F16, CUDA_R_16F);
SAME(TNCUDA_R_BF16, CUDA_R_16BF);
SAME(TNCUDA_LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(TNCUDA_LT_COMPUTE_F64, CUBLAS_COMPUTE_64F);
SAME(TNCUDA_LT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(TNCUDA_LT_OP_N, CUBLAS_OP_N);
SAME(TNCUDA_LT_OP_T, CUBLAS_OP_T);
SAME(TNCUDA_LT_DESC_TRANS_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(TNCUDA_LT_DESC_TRANS_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(TNCUDA_LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(TNCUDA_LT_DESC_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(TNCUDA_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(TNCUDA_LT_EPILOGUE_SUMS, CUBLASLT_EPILOGUE_BGRADB);
SAME(TNCUDA_LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(TNCUDA_LT_EPILOGUE_BIAS | TNCUDA_LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(TNCUDA_LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(TNCUDA_LT_LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(TNCUDA_LT_PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(TNCUDA_LT_PREFERENCE_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(TNCUDA_LT_PREFERENCE_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(TNCUDA_LT_PREFERENCE_ALIGN_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(TNCUDA_LT_PREFERENCE_ALIGN_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(TNCUDA_LT_PREFERENCE_ALIGN_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(TNCUDA_LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(TNCUDA_LT_REDUCTION_COMPUTE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(TNCUDA_LT_REDUCTION_ALL, CUBLASLT_REDUCTION_SCHEME_MASK);
SAME(TNCUDA_LT_ALGO_ID, CUBLASLT_ALGO_CONFIG_ID);
SAME(TNCUDA_LT_ALGO_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME(TNCUDA_LT_ALGO_SPLIT, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(TNCUDA_LT_ALGO_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
#define CUBLAS_SAID CUBLAS_VERSION
#else
#define CUBLAS_SAID 0
#endif

#ifdef CUDA_VERSION
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
    if (CUBLAS_SAID)
        printf("lt.h is as the header of cuBLAS %d\n", CUBLAS_SAID);
    else
        printf("skipped: there is no cublasLt.h to compare with\n");
    return 0;
}
#else
int main(void)
{
    printf("skipped: there is no cuda.h to compare with\n");
    return 77;
}
#endif
