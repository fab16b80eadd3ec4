/* Reads a member that the host's tn_exec does not have. */
#define DEFECT BEYOND_EXEC
#define NAME "defect-op-beyond-exec"
#include "healthy_operator.h"
