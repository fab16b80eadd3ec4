/** Where kernels of the family norm find their attributes. */
#ifndef TENON_PLUGIN_ATTR_NORM_H
#define TENON_PLUGIN_ATTR_NORM_H

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

#endif
