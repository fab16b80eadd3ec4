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

#endif
