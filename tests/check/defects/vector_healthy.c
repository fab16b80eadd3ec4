/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-vector-healthy"
#include "healthy_vector.h"
