/* In float32 the last element is wrong. */
#define DEFECT LAST_WRONG
#define NAME "defect-keep-last-wrong"
#include "healthy_keep.h"
