/* Inference fails every seventh time. */
#define DEFECT INFER_IMPURE
#define NAME "defect-op-infer-impure"
#include "healthy_operator.h"
