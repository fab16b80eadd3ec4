/* Pinned memory does not come back. */
#define DEFECT PINNED_KEPT
#define NAME "defect-queue-pinned-kept"
#include "healthy_queue.h"
