/* Loses memory in inference. */
#define DEFECT INFER_LEAKS
#define NAME "defect-blend-infer-leaks"
#include "healthy_blend.h"
