/* Leaves out a right side that is broadcast along an axis between others. */
#define DEFECT MIDDLE_AXIS
#define NAME "defect-broadcast-middle"
#include "healthy_broadcast.h"
