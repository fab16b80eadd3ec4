/* All devices draw the same. */
#define DEFECT ONE_DEVICE
#define NAME "defect-random-one-device"
#include "healthy_random.h"
