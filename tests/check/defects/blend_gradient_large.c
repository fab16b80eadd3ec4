/* The gradient is wrong in tensors of many elements. */
#define DEFECT GRADIENT_LARGE
#define NAME "defect-blend-gradient-large"
#include "healthy_blend.h"
