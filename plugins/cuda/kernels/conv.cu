/* Kernels of the family conv, for both compute types of floating point. */
#include "window.h"

#define BODY "conv.inc"
#include "both.h"
