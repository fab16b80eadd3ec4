/* Keeps the first result for each number of elements. */
#define DEFECT BY_SIZE
#define NAME "defect-vector-by-size"
#include "healthy_vector.h"
