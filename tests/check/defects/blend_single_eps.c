/* Rounds an attribute to float32. */
#define DEFECT SINGLE_EPS
#define NAME "defect-blend-single-eps"
#include "healthy_blend.h"
