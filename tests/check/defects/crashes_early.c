/* Crashes by being opened. */
#include "healthy.h"

__attribute__((constructor)) static void early(void)
{
    __builtin_trap();
}

HEALTHY_POOL("defect-crashes-early", NULL, NULL);
