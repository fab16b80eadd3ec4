/* Where memory fails alloc says TN_OK. */
#define DEFECT NO_MEMORY
#define NAME "defect-queue-no-memory"
#include "healthy_queue.h"
