/* Four of the five functions are there. */
#define DEFECT HALF
#define NAME "defect-graph-half"
#include "healthy_graph.h"
