/* 64-bit integers go through float64. */
#define DEFECT BY_DOUBLE
#define NAME "defect-vector-by-double"
#include "healthy_vector.h"
