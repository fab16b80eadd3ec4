/* Every draw of a program is the same. */
#define DEFECT DRAW_ONLY
#define NAME "defect-random-draw-only"
#include "healthy_random.h"
