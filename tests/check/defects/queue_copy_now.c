/* A copy does not wait for what was queued before. */
#define DEFECT COPY_NOW
#define NAME "defect-queue-copy-now"
#include "healthy_queue.h"
