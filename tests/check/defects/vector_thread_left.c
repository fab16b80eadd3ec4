/* The first run begins a thread that never ends. */
#define DEFECT THREAD_LEFT
#define NAME "defect-vector-thread-left"
#include "healthy_vector.h"
