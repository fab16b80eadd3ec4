/* Elements depend on others, though the operator says that it goes element by element. */
#define DEFECT OTHER_ELEMENT
#define NAME "defect-blend-other-element"
#include "healthy_blend.h"
