/* A recording that is dropped goes on. */
#define DEFECT KEEPS_RECORDING
#define NAME "defect-graph-keeps-recording"
#include "healthy_graph.h"
