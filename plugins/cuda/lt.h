/*
 * Products of matrices by cuBLASLt, which is opened when an operator first needs it. Its types and numbers
 * are those of its binary interface (NVIDIA, cublasLt.h of CUDA 12 and 13), so that no toolkit is needed to
 * compile this. tests/cuda/test_header.c compares them with the toolkit's header.
 */
#ifndef TNCUDA_LT_H
#define TNCUDA_LT_H

#include "launch.h"

typedef int32_t tncuda_lt_status; /* cublasStatus_t */
typedef struct cublasLtContext *tncuda_lt_handle;
typedef struct tncuda_lt_desc_ *tncuda_lt_desc;             /* cublasLtMatmulDesc_t */
typedef struct tncuda_lt_layout_ *tncuda_lt_layout;         /* cublasLtMatrixLayout_t */
typedef struct tncuda_lt_preference_ *tncuda_lt_preference; /* cublasLtMatmulPreference_t */

typedef struct tncuda_lt_algo { /* cublasLtMatmulAlgo_t: any place will do */
    uint64_t data[8];
} tncuda_lt_algo;

typedef struct tncuda_lt_choice { /* cublasLtMatmulHeuristicResult_t */
    tncuda_lt_algo algo;
    size_t workspace_bytes;
    tncuda_lt_status state;
    float waves;
    int32_t reserved[4];
} tncuda_lt_choice;

#define TNCUDA_R_F32 0 /* cudaDataType: CUDA_R_32F */
#define TNCUDA_R_F64 1
#define TNCUDA_R_F16 2
#define TNCUDA_R_BF16 14

#define TNCUDA_LT_COMPUTE_F32 68 /* cublasComputeType_t: CUBLAS_COMPUTE_32F */
#define TNCUDA_LT_COMPUTE_F64 70
#define TNCUDA_LT_COMPUTE_TF32 77 /* CUBLAS_COMPUTE_32F_FAST_TF32 */

#define TNCUDA_LT_OP_N 0 /* cublasOperation_t */
#define TNCUDA_LT_OP_T 1

#define TNCUDA_LT_DESC_TRANS_A 3     /* CUBLASLT_MATMUL_DESC_TRANSA: int32 */
#define TNCUDA_LT_DESC_TRANS_B 4     /* int32 */
#define TNCUDA_LT_DESC_EPILOGUE 7    /* uint32 */
#define TNCUDA_LT_DESC_BIAS 8        /* CUBLASLT_MATMUL_DESC_BIAS_POINTER: a pointer */
#define TNCUDA_LT_EPILOGUE_SUMS 512u /* CUBLASLT_EPILOGUE_BGRADB: of the library's b over k, into the bias */
#define TNCUDA_LT_EPILOGUE_RELU 2u   /* CUBLASLT_EPILOGUE_RELU */
#define TNCUDA_LT_EPILOGUE_BIAS                                                                              \
    4u /* CUBLASLT_EPILOGUE_BIAS: along the rows of the result; with RELU: before it */

#define TNCUDA_LT_LAYOUT_BATCH_COUNT 5  /* CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: int32 */
#define TNCUDA_LT_LAYOUT_BATCH_STRIDE 6 /* CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: int64, in elements */

#define TNCUDA_LT_PREFERENCE_WORKSPACE 1 /* CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: uint64 */
#define TNCUDA_LT_PREFERENCE_REDUCTION 3 /* CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: uint32 */
#define TNCUDA_LT_PREFERENCE_ALIGN_A                                                                         \
    5 /* CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: uint32; B, C, D behind */
#define TNCUDA_LT_REDUCTION_NONE 0u
#define TNCUDA_LT_REDUCTION_COMPUTE 2u /* CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE */
#define TNCUDA_LT_REDUCTION_ALL 7u     /* CUBLASLT_REDUCTION_SCHEME_MASK */

#define TNCUDA_LT_ALGO_ID 0        /* CUBLASLT_ALGO_CONFIG_ID: int32 */
#define TNCUDA_LT_ALGO_TILE 1      /* uint32 */
#define TNCUDA_LT_ALGO_SPLIT 2     /* int32 */
#define TNCUDA_LT_ALGO_REDUCTION 3 /* uint32 */

typedef struct tncuda_lt_functions {
#define LT(result, member, name, params) result(*member) params;
#include "lt.list"
#undef LT
} tncuda_lt_functions;

/* d = alpha a b + beta c, or d += alpha a b; steps, types and batches as tncuda_product_args has them. */
typedef struct tncuda_lt tncuda_lt;

typedef struct tncuda_lt_shape {
    tncuda_product_args of; /* without addresses, but for `bias`: not NULL if there is one */
    double alpha, beta;
    bool relu; /* d = max(d, 0) at last */
    bool sums; /* `bias` is written: (m), the sums of a over k */
} tncuda_lt_shape;

/*
 * Plans a product of the node: the library chooses its algorithm, once, among those that give the same bits
 * each time. The plan frees it. TN_E_UNSUPPORTED: plain kernels serve, because there is no library (err->code
 * is TN_E_DEVICE then), steps are none that it takes, or it has no algorithm.
 */
tn_status tncuda_lt_make(tncuda_plugin *plugin, const tn_node *node, tn_plan *plan,
                         const tncuda_lt_shape *shape, tncuda_lt **out, tn_err *err);
/* Behind the last of them, and all other room: room of the plan's products in its workspace. */
void tncuda_lt_room(tn_plan *plan);

typedef struct tncuda_lt_call {
    const void *a, *b, *bias, *c; /* bias, c: NULL if there is none */
    void *d;
    bool add; /* to what is in d; without c */
} tncuda_lt_call;

/* TN_E_UNSUPPORTED: nothing was done, a plain kernel has to. */
tn_status tncuda_lt_run(tncuda_lt *lt, const tn_exec *x, const tncuda_lt_call *call, tn_err *err);
/* By `lt`, if that is not NULL and serves, else by the plain kernel, which may have `room`. */
tn_status tncuda_product(const tn_exec *x, tncuda_lt *lt, const tncuda_product_args *args, void *room,
                         tn_err *err);

#define TNCUDA_LT_ROW(op_, types_, flags_, prepare_, run_)                                                   \
    TNCUDA_ROW_RANKED(op_, "cublaslt", 128, types_, flags_, prepare_, run_, tncuda_release)

#endif
