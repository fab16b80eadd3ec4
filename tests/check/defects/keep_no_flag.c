/* The plan does not say that it resizes its output. */
#define DEFECT NO_FLAG
#define NAME "defect-keep-no-flag"
#include "healthy_keep.h"
