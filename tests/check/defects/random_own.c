/* Numbers from a counter of its own. */
#define DEFECT OWN_GENERATOR
#define NAME "defect-random-own"
#include "healthy_random.h"
