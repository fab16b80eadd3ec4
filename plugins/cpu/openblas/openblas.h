/* Inside the plugin cpu-openblas. */
#ifndef TNBLAS_OPENBLAS_H
#define TNBLAS_OPENBLAS_H

#include "tenon/plugin/base.h"

/** Address space that OpenBLAS takes for each thread that calls it. */
#define TNBLAS_BUFFER_BYTES ((uint64_t)129 << 20)

/** TN_OK, or TN_E_UNSUPPORTED with the reason: what the library takes for itself did not fit into the address
 * space when the plugin was first started. The answer never changes, so neither does the choice of kernels.
 */
tn_status tnblas_room(tn_err *err);

/** Called once, before the first product: gives OpenBLAS kernels that fit a processor that it does not know.
 * NULL: its kernels fit, or OPENBLAS_CORETYPE chose them. Else the value that OPENBLAS_CORETYPE should have:
 * another part of the process may be computing with the library, so it was left as it is.
 */
const char *tnblas_cores(void);

#endif
