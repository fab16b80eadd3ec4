/* Plans less workspace on the device than it uses. */
#define DEFECT SHORT_WORKSPACE
#define NAME "defect-kernels-short-workspace"
#include "healthy_kernels.h"
