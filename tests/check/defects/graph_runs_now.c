/* A call is made while it is recorded, too. */
#define DEFECT RUNS_NOW
#define NAME "defect-graph-runs-now"
#include "healthy_graph.h"
