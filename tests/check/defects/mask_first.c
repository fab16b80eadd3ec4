/* Keeps to the first draw that a plan was handed. */
#define DEFECT MASK_FIRST
#define NAME "defect-mask-first"
#include "healthy_mask.h"
