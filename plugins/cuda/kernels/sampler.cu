/* Kernels of the family sampler, for both compute types of floating point. */
#include "../../common/storage.h"

#define BODY "sampler.inc"
#include "both.h"
