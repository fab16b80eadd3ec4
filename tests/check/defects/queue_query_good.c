/* event_query does not tell that the stream failed. */
#define DEFECT QUERY_GOOD
#define NAME "defect-queue-query-good"
#include "healthy_queue.h"
