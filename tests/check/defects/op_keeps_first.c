/* All that comes after depends on the size of the first call in the process. */
#define DEFECT KEEPS_FIRST
#define NAME "defect-op-keeps-first"
#include "healthy_operator.h"
