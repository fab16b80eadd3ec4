/* Calls what the host need not give with each call. */
#define DEFECT NEEDS_OPS
#define NAME "defect-op-needs-ops"
#include "healthy_operator.h"
