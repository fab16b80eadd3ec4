/* Reads a run-time attribute when it is prepared. */
#define DEFECT RUNTIME_AT_PREPARE
#define NAME "defect-op-runtime-early"
#include "healthy_operator.h"
