/* Loses a plan where prepare refuses. */
#define DEFECT REFUSAL_LEAKS
#define NAME "defect-blend-refusal-leaks"
#include "healthy_blend.h"
