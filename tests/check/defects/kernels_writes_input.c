/* Writes to an input on the device. */
#define DEFECT WRITES_INPUT
#define NAME "defect-kernels-writes-input"
#include "healthy_kernels.h"
