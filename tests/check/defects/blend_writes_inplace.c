/* Sets an item of inplace more than there are outputs. */
#define DEFECT WRITES_INPLACE
#define NAME "defect-blend-writes-inplace"
#include "healthy_blend.h"
