/* Reads an integer when it is prepared. */
#define DEFECT TIMES
#define NAME "defect-runtime-times"
#include "healthy_runtime.h"
