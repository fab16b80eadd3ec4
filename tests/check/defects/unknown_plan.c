/* A plan with a flag that means nothing. */
#define DEFECT UNKNOWN_PLAN
#define NAME "defect-unknown-plan"
#include "healthy_operator.h"
