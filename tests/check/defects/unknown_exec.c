/* An operator that no host runs. */
#define DEFECT UNKNOWN_EXEC
#define NAME "defect-unknown-exec"
#include "healthy_operator.h"
