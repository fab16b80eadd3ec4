/* What is not a number becomes 0. */
#define DEFECT LOSES_NAN
#define NAME "defect-vector-loses-nan"
#include "healthy_vector.h"
