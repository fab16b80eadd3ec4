/* Gives what is no status. */
#define DEFECT NO_STATUS
#define NAME "defect-blend-no-status"
#include "healthy_blend.h"
