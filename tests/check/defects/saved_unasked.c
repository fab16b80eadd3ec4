/* Reads a block although no forward of its own saved one. */
#define DEFECT SAVED_UNASKED
#define NAME "defect-saved-unasked"
#include "healthy_saved.h"
