/* Every plan has the attributes of the process's first one. */
#define DEFECT FIRST_ATTRIBUTES
#define NAME "defect-blend-first-attributes"
#include "healthy_blend.h"
