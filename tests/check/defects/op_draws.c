/* Looks at the generator, which its operator does not ask for. */
#define DEFECT DRAWS
#define NAME "defect-op-draws"
#include "healthy_operator.h"
