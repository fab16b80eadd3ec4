/* A kernel with a flag that means nothing. */
#define DEFECT UNKNOWN_KERNEL
#define NAME "defect-unknown-kernel"
#include "healthy_operator.h"
