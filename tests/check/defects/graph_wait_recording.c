/* A wait for a stream that is recording says that all is done. */
#define DEFECT WAIT_RECORDING
#define NAME "defect-graph-wait-recording"
#include "healthy_graph.h"
