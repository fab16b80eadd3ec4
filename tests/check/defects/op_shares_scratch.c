/* Sums in one place for all runs. */
#define DEFECT SHARES_SCRATCH
#define NAME "defect-op-shares-scratch"
#include "healthy_operator.h"
