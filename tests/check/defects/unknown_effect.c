/* An operator with an effect that nobody knows of yet. */
#define DEFECT UNKNOWN_EFFECT
#define NAME "defect-unknown-effect"
#include "healthy_operator.h"
