/* Reads a text that is None. */
#define DEFECT LABEL_NONE
#define NAME "defect-blend-label-none"
#include "healthy_blend.h"
