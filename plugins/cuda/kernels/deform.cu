/* Kernels of the family deform, for both compute types of floating point. */
#include "order.h"

#define BODY "deform.inc"
#include "both.h"
