/* The functions of common/ring.h for the links of this plugin. */
#include "kv_shm.h"

#include "../common/ring.inc"
