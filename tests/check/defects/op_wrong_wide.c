/* Computes float64 wrong, float32 as it should. */
#define DEFECT WRONG_WIDE
#define NAME "defect-op-wrong-wide"
#include "healthy_operator.h"
