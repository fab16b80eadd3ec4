/* Says TN_KERNEL_DETERMINISTIC, and every third run differs. */
#define DEFECT NOT_DETERMINISTIC
#define NAME "defect-op-not-deterministic"
#include "healthy_operator.h"
