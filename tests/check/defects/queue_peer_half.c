/* Between two devices half of the bytes are copied. */
#define DEFECT PEER_HALF
#define NAME "defect-queue-peer-half"
#include "healthy_queue.h"
