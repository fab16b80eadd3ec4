/* Kernels of the family pool, for both compute types of floating point. */
#define BODY "pool.inc"
#include "both.h"
