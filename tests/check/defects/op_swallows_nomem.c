/* Says TN_OK where it got no memory, and computes nothing. */
#define DEFECT SWALLOWS_NOMEM
#define NAME "defect-op-swallows-nomem"
#include "healthy_operator.h"
