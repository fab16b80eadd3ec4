/* Says TN_KERNEL_STRIDED, and takes every tensor for a dense one. */
#define DEFECT IGNORES_STRIDES
#define NAME "defect-op-ignores-strides"
#include "healthy_operator.h"
