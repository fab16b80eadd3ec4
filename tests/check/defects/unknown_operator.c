/* An operator with a flag that means nothing. */
#define DEFECT UNKNOWN_OPERATOR
#define NAME "defect-unknown-operator"
#include "healthy_operator.h"
