/* The draws of any seed are the same. */
#define DEFECT STEP_ONLY
#define NAME "defect-random-step-only"
#include "healthy_random.h"
