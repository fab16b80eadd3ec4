/* Leaves out a right side of fewer dimensions. */
#define DEFECT LOWER_RANK
#define NAME "defect-broadcast-rank"
#include "healthy_broadcast.h"
