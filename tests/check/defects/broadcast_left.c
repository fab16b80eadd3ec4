/* Leaves out the right side where the left one is broadcast. */
#define DEFECT LEFT_SIDE
#define NAME "defect-broadcast-left"
#include "healthy_broadcast.h"
