/* Every draw of a seed is the same. */
#define DEFECT SEED_ONLY
#define NAME "defect-random-seed-only"
#include "healthy_random.h"
