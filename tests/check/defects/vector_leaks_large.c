/* Loses a block in each run for many elements. */
#define DEFECT LEAKS_LARGE
#define NAME "defect-vector-leaks-large"
#include "healthy_vector.h"
