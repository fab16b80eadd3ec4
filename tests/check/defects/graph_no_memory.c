/* Where memory fails a launch says TN_OK and does nothing. */
#define DEFECT NO_MEMORY
#define NAME "defect-graph-no-memory"
#include "healthy_graph.h"
