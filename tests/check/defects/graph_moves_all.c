/* Each launch uses the places of its update, and so does the one before it that is still queued. */
#define DEFECT MOVES_ALL
#define NAME "defect-graph-moves-all"
#include "healthy_graph.h"
