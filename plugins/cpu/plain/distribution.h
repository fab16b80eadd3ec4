/*
 * What is drawn: distributions by name. A draw's element k is a function of the draw, k and its parameters
 * alone, so parts may be made in any order and by any number of threads. Numbers are made in double and
 * rounded once by who stores them: f32 and f64 draws are the same numbers.
 */
#ifndef TNCPU_DISTRIBUTION_H
#define TNCPU_DISTRIBUTION_H

#include <stdbool.h>

#include "tenon/plugin/random.h"

/* Elements first … first+n-1 of a draw. */
typedef struct tncpu_numbers_drawn {
    const tn_draw *draw;
    int64_t first, n;
    const double *a, *b; /* parameters of each element; `b` if there are two */
    double *to;
    double *noise; /* room for as many; see below */
} tncpu_numbers_drawn;

/* Allowed are finite or infinite numbers from `min` to `max`, `min` itself unless `above`. NaN never is. */
typedef struct tncpu_parameter {
    double min, max;
    bool above;
} tncpu_parameter;

typedef struct tncpu_distribution {
    const char *name;
    uint32_t count; /* of parameters */
    tncpu_parameter parameter[2];
    double ns;     /* of one element */
    bool interval; /* from a to b, which is left out */
    /* Gives what it can for parameters that are not allowed; ends for all. */
    void (*draw)(const tncpu_numbers_drawn *d);
} tncpu_distribution;

/* Ended by a NULL name. `noise`: of those with a place and a scale, or a scale alone, what these are applied
 * to; of pareto and weibull the derivative by the parameter. Others leave it alone. */
extern const tncpu_distribution tncpu_distributions[];

static inline bool tncpu_parameter_fits(const tncpu_parameter *p, double v)
{
    return v >= p->min && v <= p->max && !(p->above && v == p->min);
}

/* The integer of 0 … count-1 that element k draws, all of them alike; count is not 0. */
uint64_t tncpu_draw_below(const tn_draw *d, uint64_t k, uint64_t count);

/* How many of `n` experiments (below 2^52) succeed, each with the probability `p`, 0 to 1: element k's. */
int64_t tncpu_draw_binomial(const tn_draw *d, uint64_t k, int64_t n, double p);

#endif
