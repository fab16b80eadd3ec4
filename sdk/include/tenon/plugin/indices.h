/**
 * Where kernels find the attributes of each operator: TN_CONVOLUTION_PAD is the index of Convolution's pad
 * in the arrays of values of nodes and calls, TN_CONVOLUTION_LAYOUT_NHWC the number of a choice.
 *
 * Written by scripts/tools/manual from the definitions; a test compares it. Indices never change: an
 * attribute of a later version of an operator comes behind the others.
 */
#ifndef TENON_PLUGIN_INDICES_H
#define TENON_PLUGIN_INDICES_H

/* FullyConnected, _backward_FullyConnected */
#define TN_FULLYCONNECTED_NUM_HIDDEN 0
#define TN_FULLYCONNECTED_NO_BIAS 1
#define TN_FULLYCONNECTED_FLATTEN 2

/* Convolution, _backward_Convolution */
#define TN_CONVOLUTION_KERNEL 0
#define TN_CONVOLUTION_STRIDE 1
#define TN_CONVOLUTION_DILATE 2
#define TN_CONVOLUTION_PAD 3
#define TN_CONVOLUTION_NUM_FILTER 4
#define TN_CONVOLUTION_NUM_GROUP 5
#define TN_CONVOLUTION_WORKSPACE 6
#define TN_CONVOLUTION_NO_BIAS 7
#define TN_CONVOLUTION_CUDNN_TUNE 8
#define TN_CONVOLUTION_CUDNN_TUNE_NONE 0
#define TN_CONVOLUTION_CUDNN_TUNE_FASTEST 1
#define TN_CONVOLUTION_CUDNN_TUNE_LIMITED_WORKSPACE 2
#define TN_CONVOLUTION_CUDNN_TUNE_OFF 3
#define TN_CONVOLUTION_CUDNN_OFF 9
#define TN_CONVOLUTION_LAYOUT 10
#define TN_CONVOLUTION_LAYOUT_NONE 0
#define TN_CONVOLUTION_LAYOUT_NCDHW 1
#define TN_CONVOLUTION_LAYOUT_NCHW 2
#define TN_CONVOLUTION_LAYOUT_NCW 3
#define TN_CONVOLUTION_LAYOUT_NDHWC 4
#define TN_CONVOLUTION_LAYOUT_NHWC 5

/* Pooling, _backward_Pooling */
#define TN_POOLING_KERNEL 0
#define TN_POOLING_POOL_TYPE 1
#define TN_POOLING_POOL_TYPE_AVG 0
#define TN_POOLING_POOL_TYPE_LP 1
#define TN_POOLING_POOL_TYPE_MAX 2
#define TN_POOLING_POOL_TYPE_SUM 3
#define TN_POOLING_GLOBAL_POOL 2
#define TN_POOLING_CUDNN_OFF 3
#define TN_POOLING_POOLING_CONVENTION 4
#define TN_POOLING_POOLING_CONVENTION_FULL 0
#define TN_POOLING_POOLING_CONVENTION_SAME 1
#define TN_POOLING_POOLING_CONVENTION_VALID 2
#define TN_POOLING_STRIDE 5
#define TN_POOLING_PAD 6
#define TN_POOLING_P_VALUE 7
#define TN_POOLING_COUNT_INCLUDE_PAD 8
#define TN_POOLING_LAYOUT 9
#define TN_POOLING_LAYOUT_NONE 0
#define TN_POOLING_LAYOUT_NCDHW 1
#define TN_POOLING_LAYOUT_NCHW 2
#define TN_POOLING_LAYOUT_NCW 3
#define TN_POOLING_LAYOUT_NDHWC 4
#define TN_POOLING_LAYOUT_NHWC 5
#define TN_POOLING_LAYOUT_NWC 6

/* sgd_update */
#define TN_SGD_UPDATE_LR 0
#define TN_SGD_UPDATE_WD 1
#define TN_SGD_UPDATE_RESCALE_GRAD 2
#define TN_SGD_UPDATE_CLIP_GRADIENT 3
#define TN_SGD_UPDATE_LAZY_UPDATE 4

/* sgd_mom_update */
#define TN_SGD_MOM_UPDATE_LR 0
#define TN_SGD_MOM_UPDATE_MOMENTUM 1
#define TN_SGD_MOM_UPDATE_WD 2
#define TN_SGD_MOM_UPDATE_RESCALE_GRAD 3
#define TN_SGD_MOM_UPDATE_CLIP_GRADIENT 4
#define TN_SGD_MOM_UPDATE_LAZY_UPDATE 5

/* mp_sgd_update */
#define TN_MP_SGD_UPDATE_LR 0
#define TN_MP_SGD_UPDATE_WD 1
#define TN_MP_SGD_UPDATE_RESCALE_GRAD 2
#define TN_MP_SGD_UPDATE_CLIP_GRADIENT 3
#define TN_MP_SGD_UPDATE_LAZY_UPDATE 4

/* mp_sgd_mom_update */
#define TN_MP_SGD_MOM_UPDATE_LR 0
#define TN_MP_SGD_MOM_UPDATE_MOMENTUM 1
#define TN_MP_SGD_MOM_UPDATE_WD 2
#define TN_MP_SGD_MOM_UPDATE_RESCALE_GRAD 3
#define TN_MP_SGD_MOM_UPDATE_CLIP_GRADIENT 4
#define TN_MP_SGD_MOM_UPDATE_LAZY_UPDATE 5

/* nag_mom_update */
#define TN_NAG_MOM_UPDATE_LR 0
#define TN_NAG_MOM_UPDATE_MOMENTUM 1
#define TN_NAG_MOM_UPDATE_WD 2
#define TN_NAG_MOM_UPDATE_RESCALE_GRAD 3
#define TN_NAG_MOM_UPDATE_CLIP_GRADIENT 4

/* signsgd_update */
#define TN_SIGNSGD_UPDATE_LR 0
#define TN_SIGNSGD_UPDATE_WD 1
#define TN_SIGNSGD_UPDATE_RESCALE_GRAD 2
#define TN_SIGNSGD_UPDATE_CLIP_GRADIENT 3

/* signum_update */
#define TN_SIGNUM_UPDATE_LR 0
#define TN_SIGNUM_UPDATE_MOMENTUM 1
#define TN_SIGNUM_UPDATE_WD 2
#define TN_SIGNUM_UPDATE_RESCALE_GRAD 3
#define TN_SIGNUM_UPDATE_CLIP_GRADIENT 4
#define TN_SIGNUM_UPDATE_WD_LH 5

/* adam_update */
#define TN_ADAM_UPDATE_LR 0
#define TN_ADAM_UPDATE_BETA1 1
#define TN_ADAM_UPDATE_BETA2 2
#define TN_ADAM_UPDATE_EPSILON 3
#define TN_ADAM_UPDATE_WD 4
#define TN_ADAM_UPDATE_RESCALE_GRAD 5
#define TN_ADAM_UPDATE_CLIP_GRADIENT 6
#define TN_ADAM_UPDATE_LAZY_UPDATE 7

/* rmsprop_update */
#define TN_RMSPROP_UPDATE_LR 0
#define TN_RMSPROP_UPDATE_GAMMA1 1
#define TN_RMSPROP_UPDATE_EPSILON 2
#define TN_RMSPROP_UPDATE_WD 3
#define TN_RMSPROP_UPDATE_RESCALE_GRAD 4
#define TN_RMSPROP_UPDATE_CLIP_GRADIENT 5
#define TN_RMSPROP_UPDATE_CLIP_WEIGHTS 6

/* rmspropalex_update */
#define TN_RMSPROPALEX_UPDATE_LR 0
#define TN_RMSPROPALEX_UPDATE_GAMMA1 1
#define TN_RMSPROPALEX_UPDATE_GAMMA2 2
#define TN_RMSPROPALEX_UPDATE_EPSILON 3
#define TN_RMSPROPALEX_UPDATE_WD 4
#define TN_RMSPROPALEX_UPDATE_RESCALE_GRAD 5
#define TN_RMSPROPALEX_UPDATE_CLIP_GRADIENT 6
#define TN_RMSPROPALEX_UPDATE_CLIP_WEIGHTS 7

/* _zeros */
#define TN_ZEROS_SHAPE 0
#define TN_ZEROS_CTX 1
#define TN_ZEROS_DTYPE 2

/* _ones */
#define TN_ONES_SHAPE 0
#define TN_ONES_CTX 1
#define TN_ONES_DTYPE 2

/* _full */
#define TN_FULL_SHAPE 0
#define TN_FULL_CTX 1
#define TN_FULL_DTYPE 2
#define TN_FULL_VALUE 3

/* _arange */
#define TN_ARANGE_START 0
#define TN_ARANGE_STOP 1
#define TN_ARANGE_STEP 2
#define TN_ARANGE_REPEAT 3
#define TN_ARANGE_INFER_RANGE 4
#define TN_ARANGE_CTX 5
#define TN_ARANGE_DTYPE 6

/* _eye */
#define TN_EYE_N 0
#define TN_EYE_M 1
#define TN_EYE_K 2
#define TN_EYE_CTX 3
#define TN_EYE_DTYPE 4

/* _random_uniform */
#define TN_RANDOM_UNIFORM_LOW 0
#define TN_RANDOM_UNIFORM_HIGH 1
#define TN_RANDOM_UNIFORM_SHAPE 2
#define TN_RANDOM_UNIFORM_CTX 3
#define TN_RANDOM_UNIFORM_DTYPE 4

/* _random_normal */
#define TN_RANDOM_NORMAL_LOC 0
#define TN_RANDOM_NORMAL_SCALE 1
#define TN_RANDOM_NORMAL_SHAPE 2
#define TN_RANDOM_NORMAL_CTX 3
#define TN_RANDOM_NORMAL_DTYPE 4

/* Dropout, _backward_Dropout */
#define TN_DROPOUT_P 0
#define TN_DROPOUT_MODE 1
#define TN_DROPOUT_MODE_ALWAYS 0
#define TN_DROPOUT_MODE_TRAINING 1
#define TN_DROPOUT_AXES 2
#define TN_DROPOUT_CUDNN_OFF 3

/* Reshape */
#define TN_RESHAPE_SHAPE 0
#define TN_RESHAPE_REVERSE 1
#define TN_RESHAPE_TARGET_SHAPE 2
#define TN_RESHAPE_KEEP_HIGHEST 3

/* expand_dims */
#define TN_EXPAND_DIMS_AXIS 0

/* squeeze */
#define TN_SQUEEZE_AXIS 0

/* transpose */
#define TN_TRANSPOSE_AXES 0

/* SwapAxis */
#define TN_SWAPAXIS_DIM1 0
#define TN_SWAPAXIS_DIM2 1

/* depth_to_space */
#define TN_DEPTH_TO_SPACE_BLOCK_SIZE 0

/* space_to_depth */
#define TN_SPACE_TO_DEPTH_BLOCK_SIZE 0

/* diag, _backward_diag */
#define TN_DIAG_K 0
#define TN_DIAG_AXIS1 1
#define TN_DIAG_AXIS2 2

/* _copyto */
#define TN_COPYTO_CTX 0

/* MakeLoss, _backward_MakeLoss */
#define TN_MAKELOSS_GRAD_SCALE 0
#define TN_MAKELOSS_VALID_THRESH 1
#define TN_MAKELOSS_NORMALIZATION 2
#define TN_MAKELOSS_NORMALIZATION_BATCH 0
#define TN_MAKELOSS_NORMALIZATION_NULL 1
#define TN_MAKELOSS_NORMALIZATION_VALID 2

/* add_n */
#define TN_ADD_N_NUM_ARGS 0

/* Cast */
#define TN_CAST_DTYPE 0

/* amp_cast */
#define TN_AMP_CAST_DTYPE 0

/* clip, _backward_clip */
#define TN_CLIP_A_MIN 0
#define TN_CLIP_A_MAX 1

/* hard_sigmoid, _backward_hard_sigmoid */
#define TN_HARD_SIGMOID_ALPHA 0
#define TN_HARD_SIGMOID_BETA 1

/* smooth_l1, _backward_smooth_l1 */
#define TN_SMOOTH_L1_SCALAR 0

/* _plus_scalar */
#define TN_PLUS_SCALAR_SCALAR 0
#define TN_PLUS_SCALAR_IS_INT 1

/* _minus_scalar */
#define TN_MINUS_SCALAR_SCALAR 0
#define TN_MINUS_SCALAR_IS_INT 1

/* _rminus_scalar */
#define TN_RMINUS_SCALAR_SCALAR 0
#define TN_RMINUS_SCALAR_IS_INT 1

/* _mul_scalar */
#define TN_MUL_SCALAR_SCALAR 0
#define TN_MUL_SCALAR_IS_INT 1

/* _div_scalar */
#define TN_DIV_SCALAR_SCALAR 0
#define TN_DIV_SCALAR_IS_INT 1

/* _rdiv_scalar */
#define TN_RDIV_SCALAR_SCALAR 0
#define TN_RDIV_SCALAR_IS_INT 1

/* _mod_scalar */
#define TN_MOD_SCALAR_SCALAR 0
#define TN_MOD_SCALAR_IS_INT 1

/* _rmod_scalar */
#define TN_RMOD_SCALAR_SCALAR 0
#define TN_RMOD_SCALAR_IS_INT 1

/* _power_scalar */
#define TN_POWER_SCALAR_SCALAR 0
#define TN_POWER_SCALAR_IS_INT 1

/* _rpower_scalar */
#define TN_RPOWER_SCALAR_SCALAR 0
#define TN_RPOWER_SCALAR_IS_INT 1

/* _maximum_scalar */
#define TN_MAXIMUM_SCALAR_SCALAR 0
#define TN_MAXIMUM_SCALAR_IS_INT 1

/* _minimum_scalar */
#define TN_MINIMUM_SCALAR_SCALAR 0
#define TN_MINIMUM_SCALAR_IS_INT 1

/* _hypot_scalar */
#define TN_HYPOT_SCALAR_SCALAR 0
#define TN_HYPOT_SCALAR_IS_INT 1

/* _equal_scalar */
#define TN_EQUAL_SCALAR_SCALAR 0
#define TN_EQUAL_SCALAR_IS_INT 1

/* _not_equal_scalar */
#define TN_NOT_EQUAL_SCALAR_SCALAR 0
#define TN_NOT_EQUAL_SCALAR_IS_INT 1

/* _greater_scalar */
#define TN_GREATER_SCALAR_SCALAR 0
#define TN_GREATER_SCALAR_IS_INT 1

/* _greater_equal_scalar */
#define TN_GREATER_EQUAL_SCALAR_SCALAR 0
#define TN_GREATER_EQUAL_SCALAR_IS_INT 1

/* _lesser_scalar */
#define TN_LESSER_SCALAR_SCALAR 0
#define TN_LESSER_SCALAR_IS_INT 1

/* _lesser_equal_scalar */
#define TN_LESSER_EQUAL_SCALAR_SCALAR 0
#define TN_LESSER_EQUAL_SCALAR_IS_INT 1

/* _logical_and_scalar */
#define TN_LOGICAL_AND_SCALAR_SCALAR 0
#define TN_LOGICAL_AND_SCALAR_IS_INT 1

/* _logical_or_scalar */
#define TN_LOGICAL_OR_SCALAR_SCALAR 0
#define TN_LOGICAL_OR_SCALAR_IS_INT 1

/* _logical_xor_scalar */
#define TN_LOGICAL_XOR_SCALAR_SCALAR 0
#define TN_LOGICAL_XOR_SCALAR_IS_INT 1

/* _scatter_plus_scalar */
#define TN_SCATTER_PLUS_SCALAR_SCALAR 0
#define TN_SCATTER_PLUS_SCALAR_IS_INT 1

/* _scatter_minus_scalar */
#define TN_SCATTER_MINUS_SCALAR_SCALAR 0
#define TN_SCATTER_MINUS_SCALAR_IS_INT 1

/* broadcast_to */
#define TN_BROADCAST_TO_SHAPE 0

/* broadcast_axis */
#define TN_BROADCAST_AXIS_AXIS 0
#define TN_BROADCAST_AXIS_SIZE 1

/* broadcast_like */
#define TN_BROADCAST_LIKE_LHS_AXES 0
#define TN_BROADCAST_LIKE_RHS_AXES 1

/* BatchNorm, _backward_BatchNorm */
#define TN_BATCHNORM_EPS 0
#define TN_BATCHNORM_MOMENTUM 1
#define TN_BATCHNORM_FIX_GAMMA 2
#define TN_BATCHNORM_USE_GLOBAL_STATS 3
#define TN_BATCHNORM_OUTPUT_MEAN_VAR 4
#define TN_BATCHNORM_AXIS 5
#define TN_BATCHNORM_CUDNN_OFF 6
#define TN_BATCHNORM_MIN_CALIB_RANGE 7
#define TN_BATCHNORM_MAX_CALIB_RANGE 8

/* LayerNorm, _backward_LayerNorm */
#define TN_LAYERNORM_AXIS 0
#define TN_LAYERNORM_EPS 1
#define TN_LAYERNORM_OUTPUT_MEAN_VAR 2

/* InstanceNorm, _backward_InstanceNorm */
#define TN_INSTANCENORM_EPS 0

/* GroupNorm, _backward_GroupNorm */
#define TN_GROUPNORM_NUM_GROUPS 0
#define TN_GROUPNORM_EPS 1
#define TN_GROUPNORM_OUTPUT_MEAN_VAR 2

/* L2Normalization, _backward_L2Normalization */
#define TN_L2NORMALIZATION_EPS 0
#define TN_L2NORMALIZATION_MODE 1
#define TN_L2NORMALIZATION_MODE_CHANNEL 0
#define TN_L2NORMALIZATION_MODE_INSTANCE 1
#define TN_L2NORMALIZATION_MODE_SPATIAL 2

/* LRN, _backward_LRN */
#define TN_LRN_ALPHA 0
#define TN_LRN_BETA 1
#define TN_LRN_KNORM 2
#define TN_LRN_NSIZE 3

/* dot, _backward_dot */
#define TN_DOT_TRANSPOSE_A 0
#define TN_DOT_TRANSPOSE_B 1
#define TN_DOT_FORWARD_STYPE 2
#define TN_DOT_FORWARD_STYPE_NONE 0
#define TN_DOT_FORWARD_STYPE_CSR 1
#define TN_DOT_FORWARD_STYPE_DEFAULT 2
#define TN_DOT_FORWARD_STYPE_ROW_SPARSE 3

/* batch_dot, _backward_batch_dot */
#define TN_BATCH_DOT_TRANSPOSE_A 0
#define TN_BATCH_DOT_TRANSPOSE_B 1
#define TN_BATCH_DOT_FORWARD_STYPE 2
#define TN_BATCH_DOT_FORWARD_STYPE_NONE 0
#define TN_BATCH_DOT_FORWARD_STYPE_CSR 1
#define TN_BATCH_DOT_FORWARD_STYPE_DEFAULT 2
#define TN_BATCH_DOT_FORWARD_STYPE_ROW_SPARSE 3

/* slice, _backward_slice */
#define TN_SLICE_BEGIN 0
#define TN_SLICE_END 1
#define TN_SLICE_STEP 2

/* slice_axis, _backward_slice_axis */
#define TN_SLICE_AXIS_AXIS 0
#define TN_SLICE_AXIS_BEGIN 1
#define TN_SLICE_AXIS_END 2

/* slice_like, _backward_slice_like */
#define TN_SLICE_LIKE_AXES 0

/* Concat, _backward_Concat */
#define TN_CONCAT_NUM_ARGS 0
#define TN_CONCAT_DIM 1

/* stack */
#define TN_STACK_AXIS 0
#define TN_STACK_NUM_ARGS 1

/* SliceChannel */
#define TN_SLICECHANNEL_NUM_OUTPUTS 0
#define TN_SLICECHANNEL_AXIS 1
#define TN_SLICECHANNEL_SQUEEZE_AXIS 2

/* tile, _backward_tile */
#define TN_TILE_REPS 0

/* repeat, _backward_repeat */
#define TN_REPEAT_REPEATS 0
#define TN_REPEAT_AXIS 1

/* reverse */
#define TN_REVERSE_AXIS 0

/* take, _backward_take */
#define TN_TAKE_AXIS 0
#define TN_TAKE_MODE 1
#define TN_TAKE_MODE_CLIP 0
#define TN_TAKE_MODE_RAISE 1
#define TN_TAKE_MODE_WRAP 2

/* Embedding, _backward_Embedding */
#define TN_EMBEDDING_INPUT_DIM 0
#define TN_EMBEDDING_OUTPUT_DIM 1
#define TN_EMBEDDING_DTYPE 2
#define TN_EMBEDDING_SPARSE_GRAD 3

/* one_hot */
#define TN_ONE_HOT_DEPTH 0
#define TN_ONE_HOT_ON_VALUE 1
#define TN_ONE_HOT_OFF_VALUE 2
#define TN_ONE_HOT_DTYPE 3

/* pick, _backward_pick */
#define TN_PICK_AXIS 0
#define TN_PICK_KEEPDIMS 1
#define TN_PICK_MODE 2
#define TN_PICK_MODE_CLIP 0
#define TN_PICK_MODE_WRAP 1

/* scatter_nd */
#define TN_SCATTER_ND_SHAPE 0

/* SequenceMask */
#define TN_SEQUENCEMASK_USE_SEQUENCE_LENGTH 0
#define TN_SEQUENCEMASK_VALUE 1
#define TN_SEQUENCEMASK_AXIS 2

/* SequenceLast, _backward_SequenceLast */
#define TN_SEQUENCELAST_USE_SEQUENCE_LENGTH 0
#define TN_SEQUENCELAST_AXIS 1

/* SequenceReverse */
#define TN_SEQUENCEREVERSE_USE_SEQUENCE_LENGTH 0
#define TN_SEQUENCEREVERSE_AXIS 1

/* sort, _backward_sort */
#define TN_SORT_AXIS 0
#define TN_SORT_IS_ASCEND 1

/* argsort */
#define TN_ARGSORT_AXIS 0
#define TN_ARGSORT_IS_ASCEND 1
#define TN_ARGSORT_DTYPE 2

/* topk, _backward_topk */
#define TN_TOPK_AXIS 0
#define TN_TOPK_K 1
#define TN_TOPK_RET_TYP 2
#define TN_TOPK_RET_TYP_BOTH 0
#define TN_TOPK_RET_TYP_INDICES 1
#define TN_TOPK_RET_TYP_MASK 2
#define TN_TOPK_RET_TYP_VALUE 3
#define TN_TOPK_IS_ASCEND 3
#define TN_TOPK_DTYPE 4

/* sum, _backward_sum */
#define TN_SUM_AXIS 0
#define TN_SUM_KEEPDIMS 1
#define TN_SUM_EXCLUDE 2

/* mean, _backward_mean */
#define TN_MEAN_AXIS 0
#define TN_MEAN_KEEPDIMS 1
#define TN_MEAN_EXCLUDE 2

/* prod */
#define TN_PROD_AXIS 0
#define TN_PROD_KEEPDIMS 1
#define TN_PROD_EXCLUDE 2

/* nansum, _backward_nansum */
#define TN_NANSUM_AXIS 0
#define TN_NANSUM_KEEPDIMS 1
#define TN_NANSUM_EXCLUDE 2

/* nanprod, _backward_nanprod */
#define TN_NANPROD_AXIS 0
#define TN_NANPROD_KEEPDIMS 1
#define TN_NANPROD_EXCLUDE 2

/* max, _backward_max */
#define TN_MAX_AXIS 0
#define TN_MAX_KEEPDIMS 1
#define TN_MAX_EXCLUDE 2

/* min, _backward_min */
#define TN_MIN_AXIS 0
#define TN_MIN_KEEPDIMS 1
#define TN_MIN_EXCLUDE 2

/* _square_sum */
#define TN_SQUARE_SUM_AXIS 0
#define TN_SQUARE_SUM_KEEPDIMS 1
#define TN_SQUARE_SUM_EXCLUDE 2

/* norm */
#define TN_NORM_ORD 0
#define TN_NORM_AXIS 1
#define TN_NORM_OUT_DTYPE 2
#define TN_NORM_KEEPDIMS 3

/* argmax */
#define TN_ARGMAX_AXIS 0
#define TN_ARGMAX_KEEPDIMS 1

/* argmin */
#define TN_ARGMIN_AXIS 0
#define TN_ARGMIN_KEEPDIMS 1

/* Activation, _backward_Activation */
#define TN_ACTIVATION_ACT_TYPE 0
#define TN_ACTIVATION_ACT_TYPE_RELU 0
#define TN_ACTIVATION_ACT_TYPE_SIGMOID 1
#define TN_ACTIVATION_ACT_TYPE_TANH 2
#define TN_ACTIVATION_ACT_TYPE_SOFTRELU 3
#define TN_ACTIVATION_ACT_TYPE_SOFTSIGN 4

/* LeakyReLU, _backward_LeakyReLU */
#define TN_LEAKYRELU_ACT_TYPE 0
#define TN_LEAKYRELU_ACT_TYPE_RRELU 0
#define TN_LEAKYRELU_ACT_TYPE_LEAKY 1
#define TN_LEAKYRELU_ACT_TYPE_PRELU 2
#define TN_LEAKYRELU_ACT_TYPE_ELU 3
#define TN_LEAKYRELU_ACT_TYPE_SELU 4
#define TN_LEAKYRELU_ACT_TYPE_GELU 5
#define TN_LEAKYRELU_SLOPE 1
#define TN_LEAKYRELU_LOWER_BOUND 2
#define TN_LEAKYRELU_UPPER_BOUND 3

/* softmax */
#define TN_SOFTMAX_AXIS 0
#define TN_SOFTMAX_TEMPERATURE 1
#define TN_SOFTMAX_DTYPE 2
#define TN_SOFTMAX_USE_LENGTH 3

/* log_softmax */
#define TN_LOG_SOFTMAX_AXIS 0
#define TN_LOG_SOFTMAX_TEMPERATURE 1
#define TN_LOG_SOFTMAX_DTYPE 2
#define TN_LOG_SOFTMAX_USE_LENGTH 3

/* softmin */
#define TN_SOFTMIN_AXIS 0
#define TN_SOFTMIN_TEMPERATURE 1
#define TN_SOFTMIN_DTYPE 2
#define TN_SOFTMIN_USE_LENGTH 3

/* _backward_softmax */
#define TN_BACKWARD_SOFTMAX_AXIS 0
#define TN_BACKWARD_SOFTMAX_TEMPERATURE 1

/* _backward_log_softmax */
#define TN_BACKWARD_LOG_SOFTMAX_AXIS 0
#define TN_BACKWARD_LOG_SOFTMAX_TEMPERATURE 1

/* _backward_softmin */
#define TN_BACKWARD_SOFTMIN_AXIS 0
#define TN_BACKWARD_SOFTMIN_TEMPERATURE 1

/* SoftmaxActivation, _backward_SoftmaxActivation */
#define TN_SOFTMAXACTIVATION_MODE 0
#define TN_SOFTMAXACTIVATION_MODE_INSTANCE 0
#define TN_SOFTMAXACTIVATION_MODE_CHANNEL 1

/* SoftmaxOutput, _backward_SoftmaxOutput */
#define TN_SOFTMAXOUTPUT_GRAD_SCALE 0
#define TN_SOFTMAXOUTPUT_IGNORE_LABEL 1
#define TN_SOFTMAXOUTPUT_MULTI_OUTPUT 2
#define TN_SOFTMAXOUTPUT_USE_IGNORE 3
#define TN_SOFTMAXOUTPUT_PRESERVE_SHAPE 4
#define TN_SOFTMAXOUTPUT_NORMALIZATION 5
#define TN_SOFTMAXOUTPUT_NORMALIZATION_BATCH 0
#define TN_SOFTMAXOUTPUT_NORMALIZATION_NULL 1
#define TN_SOFTMAXOUTPUT_NORMALIZATION_VALID 2
#define TN_SOFTMAXOUTPUT_OUT_GRAD 6
#define TN_SOFTMAXOUTPUT_SMOOTH_ALPHA 7

/* LinearRegressionOutput, _backward_LinearRegressionOutput */
#define TN_LINEARREGRESSIONOUTPUT_GRAD_SCALE 0

/* LogisticRegressionOutput, _backward_LogisticRegressionOutput */
#define TN_LOGISTICREGRESSIONOUTPUT_GRAD_SCALE 0

/* MAERegressionOutput, _backward_MAERegressionOutput */
#define TN_MAEREGRESSIONOUTPUT_GRAD_SCALE 0

/* _npi_arctan2_scalar */
#define TN_NPI_ARCTAN2_SCALAR_SCALAR 0
#define TN_NPI_ARCTAN2_SCALAR_IS_INT 1

/* _npi_rarctan2_scalar */
#define TN_NPI_RARCTAN2_SCALAR_SCALAR 0
#define TN_NPI_RARCTAN2_SCALAR_IS_INT 1

/* _npi_copysign_scalar */
#define TN_NPI_COPYSIGN_SCALAR_SCALAR 0
#define TN_NPI_COPYSIGN_SCALAR_IS_INT 1

/* _npi_rcopysign_scalar */
#define TN_NPI_RCOPYSIGN_SCALAR_SCALAR 0
#define TN_NPI_RCOPYSIGN_SCALAR_IS_INT 1

/* _npi_ldexp_scalar */
#define TN_NPI_LDEXP_SCALAR_SCALAR 0
#define TN_NPI_LDEXP_SCALAR_IS_INT 1

/* _npi_rldexp_scalar */
#define TN_NPI_RLDEXP_SCALAR_SCALAR 0
#define TN_NPI_RLDEXP_SCALAR_IS_INT 1

/* _npi_lcm_scalar */
#define TN_NPI_LCM_SCALAR_SCALAR 0
#define TN_NPI_LCM_SCALAR_IS_INT 1

/* _npi_bitwise_and_scalar */
#define TN_NPI_BITWISE_AND_SCALAR_SCALAR 0
#define TN_NPI_BITWISE_AND_SCALAR_IS_INT 1

/* _npi_bitwise_or_scalar */
#define TN_NPI_BITWISE_OR_SCALAR_SCALAR 0
#define TN_NPI_BITWISE_OR_SCALAR_IS_INT 1

/* _npi_bitwise_xor_scalar */
#define TN_NPI_BITWISE_XOR_SCALAR_SCALAR 0
#define TN_NPI_BITWISE_XOR_SCALAR_IS_INT 1

/* _fused_conv */
#define TN_FUSED_CONV_KERNEL 0
#define TN_FUSED_CONV_STRIDE 1
#define TN_FUSED_CONV_DILATE 2
#define TN_FUSED_CONV_PAD 3
#define TN_FUSED_CONV_NUM_FILTER 4
#define TN_FUSED_CONV_NUM_GROUP 5
#define TN_FUSED_CONV_WORKSPACE 6
#define TN_FUSED_CONV_NO_BIAS 7
#define TN_FUSED_CONV_CUDNN_TUNE 8
#define TN_FUSED_CONV_CUDNN_TUNE_NONE 0
#define TN_FUSED_CONV_CUDNN_TUNE_FASTEST 1
#define TN_FUSED_CONV_CUDNN_TUNE_LIMITED_WORKSPACE 2
#define TN_FUSED_CONV_CUDNN_TUNE_OFF 3
#define TN_FUSED_CONV_CUDNN_OFF 9
#define TN_FUSED_CONV_LAYOUT 10
#define TN_FUSED_CONV_LAYOUT_NONE 0
#define TN_FUSED_CONV_LAYOUT_NCDHW 1
#define TN_FUSED_CONV_LAYOUT_NCHW 2
#define TN_FUSED_CONV_LAYOUT_NCW 3
#define TN_FUSED_CONV_LAYOUT_NDHWC 4
#define TN_FUSED_CONV_LAYOUT_NHWC 5
#define TN_FUSED_CONV_WITH_SUM 11
#define TN_FUSED_CONV_ACT_TYPE 12
#define TN_FUSED_CONV_ACT_TYPE_NONE 0
#define TN_FUSED_CONV_ACT_TYPE_RELU 1
#define TN_FUSED_CONV_ACT_TYPE_SIGMOID 2
#define TN_FUSED_CONV_ACT_TYPE_TANH 3
#define TN_FUSED_CONV_ACT_TYPE_SOFTRELU 4
#define TN_FUSED_CONV_ACT_TYPE_CLIP 5
#define TN_FUSED_CONV_ACT_TYPE_LEAKY 6
#define TN_FUSED_CONV_A_MIN 13
#define TN_FUSED_CONV_A_MAX 14
#define TN_FUSED_CONV_SLOPE 15

/* _fused_dense */
#define TN_FUSED_DENSE_NUM_HIDDEN 0
#define TN_FUSED_DENSE_NO_BIAS 1
#define TN_FUSED_DENSE_FLATTEN 2
#define TN_FUSED_DENSE_WITH_SUM 3
#define TN_FUSED_DENSE_ACT_TYPE 4
#define TN_FUSED_DENSE_ACT_TYPE_NONE 0
#define TN_FUSED_DENSE_ACT_TYPE_RELU 1
#define TN_FUSED_DENSE_ACT_TYPE_SIGMOID 2
#define TN_FUSED_DENSE_ACT_TYPE_TANH 3
#define TN_FUSED_DENSE_ACT_TYPE_SOFTRELU 4
#define TN_FUSED_DENSE_ACT_TYPE_CLIP 5
#define TN_FUSED_DENSE_ACT_TYPE_LEAKY 6
#define TN_FUSED_DENSE_A_MIN 5
#define TN_FUSED_DENSE_A_MAX 6
#define TN_FUSED_DENSE_SLOPE 7

/* _fold_weight */
#define TN_FOLD_WEIGHT_EPS 0
#define TN_FOLD_WEIGHT_FIX_GAMMA 1

/* _fold_bias */
#define TN_FOLD_BIAS_EPS 0
#define TN_FOLD_BIAS_FIX_GAMMA 1
#define TN_FOLD_BIAS_NO_BIAS 2
#define TN_FOLD_BIAS_DTYPE 3

/* _fill */
#define TN_FILL_VALUE 0

#endif
