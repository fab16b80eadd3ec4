/* Begins its sum with what the output held before. */
#define DEFECT READS_OUTPUT
#define NAME "defect-op-reads-output"
#include "healthy_operator.h"
