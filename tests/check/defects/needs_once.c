/* The backward destroys what the forward saved. */
#define DEFECT NEEDS_ONCE
#define NAME "defect-needs-once"
#include "healthy_saved.h"
