/* Takes all inputs for as long as the first one. */
#define DEFECT JOINS_EQUAL
#define NAME "defect-vector-joins-equal"
#include "healthy_vector.h"
