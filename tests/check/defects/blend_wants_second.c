/* Has no gradient where that of the second input is not wanted. */
#define DEFECT WANTS_SECOND
#define NAME "defect-blend-wants-second"
#include "healthy_blend.h"
