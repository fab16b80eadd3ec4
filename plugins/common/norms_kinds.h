/* A norm of vectors or matrices. In C and CUDA. */
#ifndef TNB_NORMS_KINDS_H
#define TNB_NORMS_KINDS_H

#include <stdint.h>

enum { TNB_NORM_VECTOR, TNB_NORM_COLUMNS, TNB_NORM_ROWS, TNB_NORM_SINGULAR, TNB_NORM_NUCLEAR };

/* Matrices (m, n) with these steps of rows and columns: a vector is one row. */
typedef struct tnb_norm {
    int32_t kind, reserved;
    double ord;
    int64_t m, n, row, col;
} tnb_norm;

#endif
