/* Reads a choice when it is prepared. */
#define DEFECT UNIT
#define NAME "defect-runtime-unit"
#include "healthy_runtime.h"
