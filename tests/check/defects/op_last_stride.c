/* Takes a tensor that is constant along its last axis for one that is constant. */
#define DEFECT LAST_STRIDE
#define NAME "defect-op-last-stride"
#include "healthy_operator.h"
