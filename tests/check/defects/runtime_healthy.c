/* Reads all of them when it runs; one decides the shape of the output. */
#define DEFECT HEALTHY
#define NAME "defect-runtime-healthy"
#include "healthy_runtime.h"
