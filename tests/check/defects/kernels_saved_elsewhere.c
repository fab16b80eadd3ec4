/* Saves for its backward in one place for all calls, not in the block on the device. */
#define DEFECT SAVED_ELSEWHERE
#define NAME "defect-kernels-saved-elsewhere"
#include "healthy_kernels.h"
