/* Says that its gradient is zero; it is not. */
#define DEFECT ZERO_GRADIENT
#define NAME "defect-op-zero-gradient"
#include "healthy_operator.h"
