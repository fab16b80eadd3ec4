/* Reads a float when it is prepared; bounds leave it little room. */
#define DEFECT LEVEL
#define NAME "defect-runtime-level"
#include "healthy_runtime.h"
