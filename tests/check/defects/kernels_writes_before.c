/* Writes one element before its output on the device. */
#define DEFECT WRITES_BEFORE
#define NAME "defect-kernels-writes-before"
#include "healthy_kernels.h"
