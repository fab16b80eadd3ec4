/* A backward that needs its forward's block, and without memory declines as if it had none. */
#define DEFECT NEEDS_SWALLOWS
#define NAME "defect-needs-swallows"
#include "healthy_saved.h"
