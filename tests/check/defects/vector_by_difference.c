/* The larger of two integers is found by their difference. */
#define DEFECT BY_DIFFERENCE
#define NAME "defect-vector-by-difference"
#include "healthy_vector.h"
