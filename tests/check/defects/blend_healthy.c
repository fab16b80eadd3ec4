/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-blend-healthy"
#include "healthy_blend.h"
