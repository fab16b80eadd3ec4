/* Runs give the thread a locale of its own. */
#define DEFECT OWN_LOCALE
#define NAME "defect-vector-own-locale"
#include "healthy_vector.h"
