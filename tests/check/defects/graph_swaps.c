/* Calls are recorded in pairs, the later one first. */
#define DEFECT SWAPS
#define NAME "defect-graph-swaps"
#include "healthy_graph.h"
