/* init takes long with one of the choices of an option. */
#define DEFECT CHOICE_WAITS
#define NAME "defect-options-choice-waits"
#include "healthy_options.h"
