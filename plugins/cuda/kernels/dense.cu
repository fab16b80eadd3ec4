/* Kernels of the family dense, for both compute types of floating point. */
#define BODY "dense.inc"
#include "both.h"
