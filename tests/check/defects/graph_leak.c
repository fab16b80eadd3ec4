/* A graph that is freed leaves a block behind. */
#define DEFECT LEAK
#define NAME "defect-graph-leak"
#include "healthy_graph.h"
