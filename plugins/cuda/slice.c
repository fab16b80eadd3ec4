/* ../common/slice.inc */
#include "../common/move.h"
#include "launch.h"

#define ALL_TYPES TNCUDA_ALL
#include "../common/slice.inc"

const tn_kernel *const tncuda_family_slice[] = {SLICE_ROWS(TNCUDA_ROW), NULL};
