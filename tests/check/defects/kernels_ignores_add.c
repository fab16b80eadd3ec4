/* Says TN_KERNEL_ADD_TO, and overwrites on the device. */
#define DEFECT IGNORES_ADD
#define NAME "defect-kernels-ignores-add"
#include "healthy_kernels.h"
