/* Inference accepts an output of any shape. */
#define DEFECT INFER_ACCEPTS_ALL
#define NAME "defect-op-infer-accepts"
#include "healthy_operator.h"
