/* What is infinite becomes the largest number. */
#define DEFECT ENDS_AT_MAX
#define NAME "defect-vector-ends-at-max"
#include "healthy_vector.h"
