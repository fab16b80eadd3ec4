/* The gradient is wrong for the last value of an attribute. */
#define DEFECT GRADIENT_TIMES
#define NAME "defect-blend-gradient-times"
#include "healthy_blend.h"
