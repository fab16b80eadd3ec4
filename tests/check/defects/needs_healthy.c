/* A backward that declines without what its forward saved; both have memory in their plans. */
#define DEFECT NEEDS_SAVED
#define NAME "defect-needs-healthy"
#include "healthy_saved.h"
