/* Wrong in one element for five dimensions. */
#define DEFECT WRONG_RANK
#define NAME "defect-op-wrong-rank"
#include "healthy_operator.h"
