/* An attribute whose `reserved` is not 0. */
#define DEFECT UNKNOWN_ATTRIBUTE
#define NAME "defect-unknown-attribute"
#include "healthy_operator.h"
