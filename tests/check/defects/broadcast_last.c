/* Leaves out a right side that is broadcast along the last axis. */
#define DEFECT LAST_AXIS
#define NAME "defect-broadcast-last"
#include "healthy_broadcast.h"
