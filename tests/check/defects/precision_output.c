/* Rounds its output to float32. */
#define DEFECT OF_OUTPUT
#define NAME "defect-precision-output"
#include "healthy_precision.h"
