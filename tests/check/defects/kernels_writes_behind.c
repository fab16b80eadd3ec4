/* Writes one element behind its output on the device. */
#define DEFECT WRITES_BEHIND
#define NAME "defect-kernels-writes-behind"
#include "healthy_kernels.h"
