/* Saves a block for its backward, as it should. */
#define DEFECT HEALTHY
#define NAME "defect-saved-healthy"
#include "healthy_saved.h"
