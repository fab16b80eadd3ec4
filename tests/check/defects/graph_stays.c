/* Slots do not move. */
#define DEFECT STAYS
#define NAME "defect-graph-stays"
#include "healthy_graph.h"
