/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-options-healthy"
#include "healthy_options.h"
