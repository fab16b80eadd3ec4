/* Says TN_PLAN_THREAD_INVARIANT, and sums by threads. */
#define DEFECT THREAD_SUM
#define NAME "defect-op-thread-sum"
#include "healthy_operator.h"
