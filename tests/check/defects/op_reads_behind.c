/* Reads the element behind its input. */
#define DEFECT READS_BEHIND
#define NAME "defect-op-reads-behind"
#include "healthy_operator.h"
