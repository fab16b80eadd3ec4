/* Loses a block with each prepare. */
#define DEFECT LEAKS_PLAN
#define NAME "defect-op-leaks-plan"
#include "healthy_operator.h"
