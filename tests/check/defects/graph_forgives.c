/* A launch on a stream that has failed is said to be good. */
#define DEFECT FORGIVES
#define NAME "defect-graph-forgives"
#include "healthy_graph.h"
