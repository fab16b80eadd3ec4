/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-queue-healthy"
#include "healthy_queue.h"
