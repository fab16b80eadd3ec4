/* Wrong for negative integers. */
#define DEFECT WRONG_DTYPE
#define NAME "defect-op-wrong-dtype"
#include "healthy_operator.h"
