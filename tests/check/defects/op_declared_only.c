/* Declares int32 and declines it. */
#define DEFECT DECLARED_ONLY
#define NAME "defect-op-declared-only"
#include "healthy_operator.h"
