/* Kernels of the family region, for both compute types of floating point. */
#include <float.h>

#include "../../common/region.h"

enum { KERNEL, STRIDE, FROM, STEPS, STEP, RADIUS, MULTIPLY }; /* from TNCUDA_MORE on: Correlation's */

#define BODY "region.inc"
#include "both.h"
