/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-keep-healthy"
#include "healthy_keep.h"
