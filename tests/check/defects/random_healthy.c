/* Draws as it should. */
#define DEFECT HEALTHY
#define NAME "defect-random-healthy"
#include "healthy_random.h"
