/* Streams with less priority are refused. */
#define DEFECT ONE_LEVEL
#define NAME "defect-queue-one-level"
#include "healthy_queue.h"
