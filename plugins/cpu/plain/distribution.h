/* Parts of a draw: ../../common/distribution.h. */
#ifndef TNCPU_DISTRIBUTION_H
#define TNCPU_DISTRIBUTION_H

#include "../../common/distribution.h"

/* Elements first … first+n-1 of a draw. */
typedef struct tncpu_numbers_drawn {
    const tn_draw *draw;
    int64_t first, n;
    const double *a, *b; /* parameters of each element; `b` if there are two */
    double *to;
    double *noise; /* room for as many */
} tncpu_numbers_drawn;

/* In the order of ../../common/distributions.list. They give what they can for parameters that are not
 * allowed, and end for all. */
extern void (*const tncpu_draws[])(const tncpu_numbers_drawn *d);

/* tn_draw_unit of the elements first … first+n-1, by this processor's vectors. */
void tncpu_units(const tn_draw *d, uint64_t first, int64_t n, double *to);
typedef void tncpu_units_by(const tn_draw *d, uint64_t first, int64_t n, double *to);
tncpu_units_by tncpu_units_base, tncpu_units_avx512;

#endif
