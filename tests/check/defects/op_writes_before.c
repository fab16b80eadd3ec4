/* Writes one element before its output. */
#define DEFECT WRITES_BEFORE
#define NAME "defect-op-writes-before"
#include "healthy_operator.h"
