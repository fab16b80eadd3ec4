/* Reads a truth value when it is prepared. */
#define DEFECT NEGATE
#define NAME "defect-runtime-negate"
#include "healthy_runtime.h"
