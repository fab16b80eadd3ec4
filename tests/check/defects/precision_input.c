/* Rounds what it is given to float32. */
#define DEFECT OF_INPUT
#define NAME "defect-precision-input"
#include "healthy_precision.h"
