/* Writes to its input, the very value that is there. */
#define DEFECT WRITES_INPUT
#define NAME "defect-op-writes-input"
#include "healthy_operator.h"
