/* Sizes of teams, each thread with a buffer of OpenBLAS: see ../common/team.inc. */
#include "openblas.h"
#define TEAM_THREAD_BYTES TNBLAS_BUFFER_BYTES
#include "../common/team.inc"
