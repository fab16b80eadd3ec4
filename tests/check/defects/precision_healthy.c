/* Computes in float64, and has steps that look as if it did not. */
#define DEFECT HEALTHY
#define NAME "defect-precision-healthy"
#include "healthy_precision.h"
