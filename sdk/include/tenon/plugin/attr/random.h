/** Where kernels of the families random and init find their attributes. */
#ifndef TENON_PLUGIN_ATTR_RANDOM_H
#define TENON_PLUGIN_ATTR_RANDOM_H

/* _random_uniform: low, high; _random_normal: loc, scale */
#define TN_RANDOM_A 0
#define TN_RANDOM_B 1
#define TN_RANDOM_SHAPE 2
#define TN_RANDOM_CTX 3
#define TN_RANDOM_DTYPE 4

/* Dropout, _backward_Dropout */
#define TN_DROPOUT_P 0
#define TN_DROPOUT_MODE 1
#define TN_DROPOUT_AXES 2
#define TN_DROPOUT_CUDNN_OFF 3
#define TN_DROPOUT_MODES "always|training"
#define TN_DROPOUT_ALWAYS 0

/* _zeros, _ones, _full (with VALUE) */
#define TN_INIT_SHAPE 0
#define TN_INIT_CTX 1
#define TN_INIT_DTYPE 2
#define TN_INIT_VALUE 3

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

#endif
