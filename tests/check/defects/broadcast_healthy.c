/* Broadcasts as it should. */
#define DEFECT HEALTHY
#define NAME "defect-broadcast-healthy"
#include "healthy_broadcast.h"
