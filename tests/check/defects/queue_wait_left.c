/* A stream does not wait for the event of another one. */
#define DEFECT WAIT_LEFT
#define NAME "defect-queue-wait-left"
#include "healthy_queue.h"
