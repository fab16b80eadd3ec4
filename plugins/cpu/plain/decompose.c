/* See decompose.h. */
#include "decompose.h"

#include <math.h>

#define LA(x) tncpu_la_##x
#include "../../common/decompose.inc"
#include "../../common/eigen.inc"
