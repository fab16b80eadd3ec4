/* All plans share one state, so the last one made counts. */
#define DEFECT ONE_PLAN
#define NAME "defect-blend-one-plan"
#include "healthy_blend.h"
