/* Looks for its arguments when its stream gets to it: they are gone. */
#define DEFECT HOLDS_ARGUMENTS
#define NAME "defect-kernels-holds-arguments"
#include "healthy_kernels.h"
