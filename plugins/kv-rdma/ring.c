/* The functions of common/ring.h for the links of this plugin. */
#include "kv_rdma.h"

#include "../common/ring.inc"
