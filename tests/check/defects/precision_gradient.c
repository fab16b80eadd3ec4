/* Its backward computes in float32. */
#define DEFECT OF_GRADIENT
#define NAME "defect-precision-gradient"
#include "healthy_precision.h"
