/* The same numbers at every call, for any seed. */
#define DEFECT FIXED_NUMBERS
#define NAME "defect-random-fixed"
#include "healthy_random.h"
