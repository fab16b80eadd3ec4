/* Computes integers wrong from 5,000 elements on. */
#define DEFECT WRONG_LARGE
#define NAME "defect-op-wrong-large"
#include "healthy_operator.h"
