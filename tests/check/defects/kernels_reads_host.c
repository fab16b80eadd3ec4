/* Reads the device's memory on the host. */
#define DEFECT READS_HOST
#define NAME "defect-kernels-reads-host"
#include "healthy_kernels.h"
