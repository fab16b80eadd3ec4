/* Nothing is wrong with this one: the kit must say so. */
#define DEFECT HEALTHY
#define NAME "defect-op-healthy"
#include "healthy_operator.h"
