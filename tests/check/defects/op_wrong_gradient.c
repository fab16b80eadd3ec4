/* Its gradient leaves out what arrives at the second output. */
#define DEFECT WRONG_GRADIENT
#define NAME "defect-op-wrong-gradient"
#include "healthy_operator.h"
