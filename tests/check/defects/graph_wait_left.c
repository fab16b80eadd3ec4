/* A recorded wait for an event is left out. */
#define DEFECT WAIT_LEFT
#define NAME "defect-graph-wait-left"
#include "healthy_graph.h"
