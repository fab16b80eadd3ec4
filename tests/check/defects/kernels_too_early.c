/* Works at once on memory that its stream has still to fill. */
#define DEFECT TOO_EARLY
#define NAME "defect-kernels-too-early"
#include "healthy_kernels.h"
