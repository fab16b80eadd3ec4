/* Says TN_KERNEL_ADD_TO, and overwrites. */
#define DEFECT IGNORES_ADD
#define NAME "defect-op-ignores-add"
#include "healthy_operator.h"
