/* Exports a second symbol: its linker script lets it out. */
#include "healthy.h"

__attribute__((visibility("default"))) int acme_pool_debug;

HEALTHY_POOL("defect-two-exports", NULL, NULL);
