/* Begins its sums with what the workspace held before. */
#define DEFECT READS_WORKSPACE
#define NAME "defect-op-reads-workspace"
#include "healthy_operator.h"
