/* Keeps what its backward needs in one place for all calls, not in the block. */
#define DEFECT SAVED_ELSEWHERE
#define NAME "defect-saved-elsewhere"
#include "healthy_saved.h"
