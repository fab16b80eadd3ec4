/* Kernels of the family softmax, for both compute types of floating point. */
#define BODY "softmax.inc"
#include "both.h"
