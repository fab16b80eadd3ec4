/* Only the first launch of a graph does something. */
#define DEFECT ONCE
#define NAME "defect-graph-once"
#include "healthy_graph.h"
