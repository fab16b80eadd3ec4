/* Takes a dimension that is not known for 1. */
#define DEFECT INFER_GUESSES
#define NAME "defect-blend-infer-guesses"
#include "healthy_blend.h"
