/* A recorded event is left out. */
#define DEFECT RECORD_LEFT
#define NAME "defect-graph-record-left"
#include "healthy_graph.h"
