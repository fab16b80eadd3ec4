/* Has one half of the sum in float32. */
#define DEFECT INSIDE
#define NAME "defect-precision-inside"
#include "healthy_precision.h"
