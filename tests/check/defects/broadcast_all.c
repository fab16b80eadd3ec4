/* Leaves out a right side of one element. */
#define DEFECT ALL_AXES
#define NAME "defect-broadcast-all"
#include "healthy_broadcast.h"
