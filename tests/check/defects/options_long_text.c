/* init copies a long text into a short one. */
#define DEFECT LONG_TEXT
#define NAME "defect-options-long-text"
#include "healthy_options.h"
