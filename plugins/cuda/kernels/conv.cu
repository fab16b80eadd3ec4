/* Kernels of the family conv, for both compute types of floating point. */
#define BODY "conv.inc"
#include "both.h"
