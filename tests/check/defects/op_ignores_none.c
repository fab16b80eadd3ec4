/* Writes an output of mode none. */
#define DEFECT IGNORES_NONE
#define NAME "defect-op-ignores-none"
#include "healthy_operator.h"
