/* Changes what describes its output. */
#define DEFECT WRITES_TENSOR
#define NAME "defect-blend-writes-tensor"
#include "healthy_blend.h"
