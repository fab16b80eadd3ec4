/* Writes one element behind its output. */
#define DEFECT WRITES_BEHIND
#define NAME "defect-op-writes-behind"
#include "healthy_operator.h"
