/* ../../common/slice.inc */
#include "move.h"

#define ALL_TYPES TNCPU_ALL
#include "../../common/slice.inc"

const tn_kernel *const tncpu_family_slice[] = {SLICE_ROWS(TNCPU_ROW), NULL};
