/* init loses memory where it refuses a value. */
#define DEFECT REFUSAL_LEAKS
#define NAME "defect-options-refusal-leaks"
#include "healthy_options.h"
