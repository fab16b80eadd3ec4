/* Leaves another rounding mode behind. */
#define DEFECT ROUNDS_UP
#define NAME "defect-op-rounds-up"
#include "healthy_operator.h"
