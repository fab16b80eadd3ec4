/* A device and its kernels as they should be: the kit finds nothing. */
#define DEFECT HEALTHY
#define NAME "defect-kernels-healthy"
#include "healthy_kernels.h"
