/* Its backward reads what the last forward saved, not the block that it is handed. */
#define DEFECT MASK_ELSEWHERE
#define NAME "defect-mask-elsewhere"
#include "healthy_mask.h"
