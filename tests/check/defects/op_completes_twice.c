/* Completes each call twice. */
#define DEFECT COMPLETES_TWICE
#define NAME "defect-op-completes-twice"
#include "healthy_operator.h"
