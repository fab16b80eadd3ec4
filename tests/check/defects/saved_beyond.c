/* Writes past the block that it saves. */
#define DEFECT SAVED_BEYOND
#define NAME "defect-saved-beyond"
#include "healthy_saved.h"
