/* Uses more workspace than it planned. */
#define DEFECT SHORT_WORKSPACE
#define NAME "defect-op-short-workspace"
#include "healthy_operator.h"
