/* Nothing is wrong with it. */
#define DEFECT HEALTHY
#define NAME "defect-mask-healthy"
#include "healthy_mask.h"
