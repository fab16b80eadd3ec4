/* Two users get one device. */
#define DEFECT ONE_DEVICE
#define NAME "defect-queue-one-device"
#include "healthy_queue.h"
