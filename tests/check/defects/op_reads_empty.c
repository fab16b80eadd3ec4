/* Reads the first element of a tensor that has none. */
#define DEFECT READS_EMPTY
#define NAME "defect-op-reads-empty"
#include "healthy_operator.h"
