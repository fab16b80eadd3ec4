/* Adds up in float32. */
#define DEFECT OF_SUM
#define NAME "defect-precision-sum"
#include "healthy_precision.h"
