/* Writes an element behind the output that it asked for. */
#define DEFECT PAST_END
#define NAME "defect-keep-past-end"
#include "healthy_keep.h"
