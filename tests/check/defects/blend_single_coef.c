/* Rounds a list of numbers to float32. */
#define DEFECT SINGLE_COEF
#define NAME "defect-blend-single-coef"
#include "healthy_blend.h"
