/* Has no gradient where none arrives at the first output. */
#define DEFECT FIRST_HEAD
#define NAME "defect-blend-first-head"
#include "healthy_blend.h"
