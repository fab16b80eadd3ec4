/** Where kernels of the family pool find their attributes: indices into the value arrays of nodes and calls.
 */
#ifndef TENON_PLUGIN_ATTR_POOL_H
#define TENON_PLUGIN_ATTR_POOL_H

/* Pooling, _backward_Pooling */
#define TN_POOLING_KERNEL 0
#define TN_POOLING_POOL_TYPE 1
#define TN_POOLING_GLOBAL_POOL 2
#define TN_POOLING_CUDNN_OFF 3
#define TN_POOLING_CONVENTION 4
#define TN_POOLING_STRIDE 5
#define TN_POOLING_PAD 6
#define TN_POOLING_P_VALUE 7
#define TN_POOLING_COUNT_INCLUDE_PAD 8
#define TN_POOLING_LAYOUT 9

#define TN_POOLING_TYPES "avg|lp|max|sum"
#define TN_POOLING_AVG 0
#define TN_POOLING_LP 1
#define TN_POOLING_MAX 2
#define TN_POOLING_SUM 3

#define TN_POOLING_CONVENTIONS "full|same|valid"
#define TN_POOLING_FULL 0
#define TN_POOLING_SAME 1
#define TN_POOLING_VALID 2

#define TN_POOLING_LAYOUTS "None|NCDHW|NCHW|NCW|NDHWC|NHWC|NWC"
#define TN_POOLING_LAYOUT_NDHWC 4 /* this and above: channels last */

#endif
