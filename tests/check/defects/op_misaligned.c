/* Crashes for tensors that are not aligned to 16 bytes. */
#define DEFECT CRASHES_MISALIGNED
#define NAME "defect-op-misaligned"
#include "healthy_operator.h"
