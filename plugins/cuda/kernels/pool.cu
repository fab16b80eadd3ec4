/* Kernels of the family pool, for both compute types of floating point. */
#include "window.h"

#define BODY "pool.inc"
#include "both.h"
#undef BODY

#define BODY "pool_plane.inc"
#include "both.h"
