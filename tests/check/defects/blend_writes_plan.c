/* Counts its runs in the plan, which other runs read. */
#define DEFECT WRITES_PLAN
#define NAME "defect-blend-writes-plan"
#include "healthy_blend.h"
