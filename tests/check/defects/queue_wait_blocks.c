/* event_wait waits itself, and with it the host. */
#define DEFECT WAIT_BLOCKS
#define NAME "defect-queue-wait-blocks"
#include "healthy_queue.h"
