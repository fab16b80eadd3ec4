/* What the others of this family are without their defect. */
#define DEFECT HEALTHY
#define NAME "defect-graph-healthy"
#include "healthy_graph.h"
