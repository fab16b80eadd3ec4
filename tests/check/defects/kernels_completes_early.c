/* Calls complete when the work is queued, not when it is done. */
#define DEFECT COMPLETES_EARLY
#define NAME "defect-kernels-completes-early"
#include "healthy_kernels.h"
