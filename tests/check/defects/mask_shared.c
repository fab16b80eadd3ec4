/* Draws into one place for all runs. */
#define DEFECT MASK_SHARED
#define NAME "defect-mask-shared"
#include "healthy_mask.h"
