/*
 * cuDNN 9, as far as the plugin calls it: types and numbers as the library's binary interface has them
 * (NVIDIA, cuDNN Backend API), so that no toolkit is needed to compile this. tests/cuda/test_header.c
 * compares them with the library's header.
 *
 * dnn.c: the library, its handles · dnn_plan.c: execution plans and their runs · dnn_measure.c: the fastest
 * of them · dnn_conv.c, dnn_fused.c: the kernels
 */
#ifndef TNCUDA_DNN_H
#define TNCUDA_DNN_H

#include "last.h"

#define TNCUDA_DNN_FILE "libcudnn.so.9"
#define TNCUDA_DNN_ALIGN 16u /* bytes: of all tensors that a plan is given */

typedef int32_t tncuda_dnn_status;
typedef struct cudnnContext *tncuda_dnn_handle;
typedef void *tncuda_dnn_descriptor;

/* ---- numbers ------------------------------------------------------------------------------------------- */

enum { /* cudnnDataType_t */
       DNN_DATA_FLOAT = 0,
       DNN_DATA_DOUBLE = 1,
       DNN_DATA_HALF = 2,
       DNN_DATA_BFLOAT16 = 9,
};

enum { DNN_CROSS_CORRELATION = 1 };                       /* cudnnConvolutionMode_t */
enum { DNN_POINTWISE_ADD = 0, DNN_POINTWISE_RELU = 100 }; /* cudnnPointwiseMode_t */
enum { DNN_PROPAGATE_NAN = 1 };                           /* cudnnNanPropagation_t */

enum { /* cudnnBackendDescriptorType_t */
       DNN_POINTWISE = 0,
       DNN_CONVOLUTION = 1,
       DNN_ENGINE = 2,
       DNN_ENGINECFG = 3,
       DNN_ENGINEHEUR = 4,
       DNN_EXECUTION_PLAN = 5,
       DNN_OPERATION_FORWARD = 10,
       DNN_OPERATION_FILTER = 11,
       DNN_OPERATION_DATA = 12,
       DNN_OPERATION_POINTWISE = 13,
       DNN_OPERATIONGRAPH = 15,
       DNN_VARIANT_PACK = 16,
       DNN_TENSOR = 17,
};

enum { /* cudnnBackendAttributeType_t */
       DNN_TYPE_HANDLE = 0,
       DNN_TYPE_DATA_TYPE = 1,
       DNN_TYPE_BOOLEAN = 2,
       DNN_TYPE_INT64 = 3,
       DNN_TYPE_FLOAT = 4,
       DNN_TYPE_DOUBLE = 5,
       DNN_TYPE_VOID_PTR = 6,
       DNN_TYPE_CONVOLUTION_MODE = 7,
       DNN_TYPE_HEUR_MODE = 8,
       DNN_TYPE_NAN_PROPAGATION = 10,
       DNN_TYPE_NUMERICAL_NOTE = 11,
       DNN_TYPE_POINTWISE_MODE = 14,
       DNN_TYPE_DESCRIPTOR = 15,
};

enum { /* cudnnBackendAttributeName_t */
       DNN_POINTWISE_MODE = 0,
       DNN_POINTWISE_MATH_PREC = 1,
       DNN_POINTWISE_NAN_PROPAGATION = 2,
       DNN_CONVOLUTION_COMP_TYPE = 100,
       DNN_CONVOLUTION_CONV_MODE = 101,
       DNN_CONVOLUTION_DILATIONS = 102,
       DNN_CONVOLUTION_FILTER_STRIDES = 103,
       DNN_CONVOLUTION_POST_PADDINGS = 104,
       DNN_CONVOLUTION_PRE_PADDINGS = 105,
       DNN_CONVOLUTION_SPATIAL_DIMS = 106,
       DNN_ENGINEHEUR_MODE = 200,
       DNN_ENGINEHEUR_OPERATION_GRAPH = 201,
       DNN_ENGINEHEUR_RESULTS = 202,
       DNN_ENGINECFG_ENGINE = 300,
       DNN_EXECUTION_PLAN_HANDLE = 400,
       DNN_EXECUTION_PLAN_ENGINE_CONFIG = 401,
       DNN_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
       DNN_FORWARD_ALPHA = 700,
       DNN_FORWARD_BETA = 701,
       DNN_FORWARD_CONV_DESC = 702,
       DNN_FORWARD_W = 703,
       DNN_FORWARD_X = 704,
       DNN_FORWARD_Y = 705,
       DNN_BWD_DATA_ALPHA = 706,
       DNN_BWD_DATA_BETA = 707,
       DNN_BWD_DATA_CONV_DESC = 708,
       DNN_BWD_DATA_W = 709,
       DNN_BWD_DATA_DX = 710,
       DNN_BWD_DATA_DY = 711,
       DNN_BWD_FILTER_ALPHA = 712,
       DNN_BWD_FILTER_BETA = 713,
       DNN_BWD_FILTER_CONV_DESC = 714,
       DNN_BWD_FILTER_DW = 715,
       DNN_BWD_FILTER_X = 716,
       DNN_BWD_FILTER_DY = 717,
       DNN_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
       DNN_OPERATION_POINTWISE_XDESC = 751,
       DNN_OPERATION_POINTWISE_BDESC = 752,
       DNN_OPERATION_POINTWISE_YDESC = 753,
       DNN_OPERATIONGRAPH_HANDLE = 800,
       DNN_OPERATIONGRAPH_OPS = 801,
       DNN_TENSOR_BYTE_ALIGNMENT = 900,
       DNN_TENSOR_DATA_TYPE = 901,
       DNN_TENSOR_DIMENSIONS = 902,
       DNN_TENSOR_STRIDES = 903,
       DNN_TENSOR_UNIQUE_ID = 906,
       DNN_TENSOR_IS_VIRTUAL = 907,
       DNN_VARIANT_PACK_UNIQUE_IDS = 1000,
       DNN_VARIANT_PACK_DATA_POINTERS = 1001,
       DNN_VARIANT_PACK_WORKSPACE = 1003,
       DNN_ENGINE_GLOBAL_INDEX = 1301,
       DNN_ENGINE_NUMERICAL_NOTE = 1303,
};

enum { /* cudnnBackendNumericalNote_t */
       DNN_NOTE_TENSOR_CORE = 0,
       DNN_NOTE_DOWN_CONVERT_INPUTS = 1,
       DNN_NOTE_REDUCED_PRECISION_REDUCTION = 2,
       DNN_NOTE_FFT = 3,
       DNN_NOTE_NONDETERMINISTIC = 4,
       DNN_NOTE_WINOGRAD = 5,
       DNN_NOTE_WINOGRAD_TILE_4x4 = 6,
       DNN_NOTE_WINOGRAD_TILE_6x6 = 7,
       DNN_NOTE_WINOGRAD_TILE_13x13 = 8,
};

enum { DNN_HEUR_MODE_B = 1, DNN_HEUR_MODE_FALLBACK = 2, DNN_HEUR_MODE_A = 3 }; /* cudnnBackendHeurMode_t */

/* ---- the library (dnn.c) ------------------------------------------------------------------------------- */

typedef struct tncuda_dnn_device {
    pthread_mutex_t lock;          /* of what follows, and of calls with the handle */
    tncuda_dnn_handle handle;      /* NULL: none so far */
    struct tncuda_dnn_plan *plans; /* newest first */
    uint32_t plan_count;
    bool refused; /* the library cannot use this device */
} tncuda_dnn_device;

typedef struct tncuda_dnn {
    void *library; /* NULL: it cannot be used; it stays open, as the driver does */
#define DNN(result, member, name, params) result(*member) params;
#include "dnn.list"
#undef DNN
    tncuda_dnn_device devices[TNCUDA_DEVICES_MAX];
} tncuda_dnn;

/* The library, opened by the first call; one line in the log says if there is none. TN_E_UNSUPPORTED then. */
tn_status tncuda_dnn_need(tncuda_plugin *plugin, const tncuda_dnn **out, tn_err *err);
/* In the context, under the device's lock: its handle. `line` says for the log why there is none, once. */
tn_status tncuda_dnn_handle_locked(tncuda_plugin *plugin, int32_t device, tncuda_dnn_device **out, char *line,
                                   size_t bytes, tn_err *err);
/* "CALL gives NAME (number): the library's words"; TN_E_UNSUPPORTED. */
tn_status tncuda_dnn_fail(const tncuda_dnn *dnn, tncuda_dnn_status status, const char *call, tn_err *err);
/* Under the plugin's lock: nobody uses the device any more. */
void tncuda_dnn_device_drop(tncuda_plugin *plugin, int32_t device);
void tncuda_dnn_delete(tncuda_plugin *plugin);

/* ---- plans (dnn_plan.c) -------------------------------------------------------------------------------- */

enum { TNCUDA_DNN_FORWARD, TNCUDA_DNN_DATA, TNCUDA_DNN_FILTER, TNCUDA_DNN_KINDS };

/* What follows a forward convolution in the same plan, in this order. The library has engines where the bias
 * is one of it. */
enum { TNCUDA_DNN_ADDEND = 1, TNCUDA_DNN_BIAS = 2, TNCUDA_DNN_RELU = 4 };

/* What a plan is for: forms of equal bytes have one plan. x is (batch, channels, in), y (batch, filters, out)
 * and w (filters, channels / groups, kernel), or with channels behind the space. */
typedef struct tncuda_dnn_form {
    int32_t kind;     /* what is computed: y, x's gradient or w's */
    int32_t dtype;    /* TN_…, of all tensors */
    int32_t space;    /* dimensions: 2 or 3, the last ones of the extents below */
    int32_t last;     /* channels stand behind space */
    int32_t add;      /* to what is there */
    int32_t tf32;     /* tensor cores for float32 */
    int64_t after;    /* TNCUDA_DNN_ADDEND … */
    int64_t measured; /* the fastest of several engines is taken; 0: the first */
    int64_t batch, channels, filters, groups;
    int64_t limit_bytes; /* of workspace */
    int64_t in[TNCUDA_SPACE], out[TNCUDA_SPACE], kernel[TNCUDA_SPACE], stride[TNCUDA_SPACE],
        dilate[TNCUDA_SPACE], pad[TNCUDA_SPACE];
} tncuda_dnn_form;

typedef struct tncuda_dnn_plan {
    struct tncuda_dnn_plan *next;
    tncuda_plugin *plugin;
    const tncuda_dnn *dnn;
    tncuda_dnn_device *device;
    tncuda_dnn_form form;
    uint64_t workspace_bytes;
    tncuda_dnn_descriptor plan;     /* NULL: no engine serves */
    tncuda_dnn_descriptor made[18]; /* what it was made of */
    uint32_t made_count, refs;      /* of nodes; 0: kept for the next one */
    bool gone;                      /* the device was closed */
    atomic_bool broken;             /* a run was refused: it is used no more */
} tncuda_dnn_plan;

/* What a run of a plan is given; no padding. */
typedef struct tncuda_dnn_args {
    void *x, *w, *y;     /* one of them is written */
    void *addend, *bias; /* of plans that have them: like y, and one number for each filter */
    void *workspace;
} tncuda_dnn_args;

/* The plan of a form, made once for a device. TN_E_UNSUPPORTED: no library, or none of its engines serves. */
tn_status tncuda_dnn_plan_get(tncuda_plugin *plugin, int32_t device, const tncuda_dnn_form *form,
                              tncuda_dnn_plan **out, tn_err *err);
void tncuda_dnn_plan_give(tncuda_dnn_plan *plan); /* NULL is fine */
void tncuda_dnn_plans_drop_locked(tncuda_plugin *plugin, tncuda_dnn_device *device);
/* In the run's stream. TN_E_UNSUPPORTED with plan->broken: the library has refused, nothing was done. */
tn_status tncuda_dnn_run(const tn_exec *x, tncuda_dnn_plan *plan, const tncuda_dnn_args *args, tn_err *err);

/* Under the device's lock, in the handle's stream. `*call`: what gives the status. */
tncuda_dnn_status tncuda_dnn_execute(const tncuda_dnn_plan *p, tncuda_dnn_descriptor plan,
                                     const tncuda_dnn_args *args, const char **call);

/* ---- dnn_measure.c ------------------------------------------------------------------------------------- */

#define TNCUDA_DNN_WAYS 4u /* engines of a form that are measured, at most */

/* In the context, under the device's lock: which of `count` execution plans of the form runs fastest on this
 * device (measure.h). `workspace_bytes`: the most that one of them needs. */
uint32_t tncuda_dnn_fastest_locked(const tncuda_dnn_plan *p, uint32_t count,
                                   const tncuda_dnn_descriptor *plans, uint64_t workspace_bytes);

/* ---- dnn_conv.c ---------------------------------------------------------------------------------------- */

/* The form of a node of Convolution's attributes, but for kind, add and after; false: the library is not to
 * serve it. `args` as tncuda_conv_args gives them. */
bool tncuda_dnn_form_of(const tncuda_plugin *plugin, const tn_node *node, const tncuda_window_args *args,
                        tncuda_dnn_form *form);
/* The node with channels last, if it is to be planned so. `more`: bits of inputs that lie as the output does;
 * `ins`, `outs`: its tensors that the plan is to ask for. */
bool tncuda_dnn_last(const tncuda_plugin *plugin, const tn_node *node, uint32_t more, tncuda_last *l,
                     uint32_t *ins, uint32_t *outs);
/* Our own kernel of the operator; and its plan for the node, which `plan` makes room for. */
const tn_kernel *tncuda_dnn_plain(const char *op);
tn_status tncuda_dnn_plain_plan(void *plugin, const tn_node *node, const tn_kernel *plain, tn_plan *inner,
                                tn_plan *plan, tn_err *err);

#endif
