/* Gives another result from the second run on. */
#define DEFECT KEEPS_STATE
#define NAME "defect-op-keeps-state"
#include "healthy_operator.h"
