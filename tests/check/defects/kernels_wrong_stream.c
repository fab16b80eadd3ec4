/* Works on a stream of its own that does not wait for the one it is given. */
#define DEFECT WRONG_STREAM
#define NAME "defect-kernels-wrong-stream"
#include "healthy_kernels.h"
