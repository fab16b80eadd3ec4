/* A run-time attribute decides the shape, and does not say so. */
#define DEFECT HEALTHY
#define SKIP_FLAGS TN_ATTR_F_RUNTIME
#define NAME "defect-runtime-shape"
#include "healthy_runtime.h"
