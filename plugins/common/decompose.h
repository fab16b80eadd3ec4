/* The room that decompositions (decompose.inc, eigen.inc) take. On the host. */
#ifndef TNB_DECOMPOSE_H
#define TNB_DECOMPOSE_H

#include <stdint.h>

/* Numbers of `work`. */
static inline int64_t lu_room(int64_t n, int64_t k)
{
    (void)k;
    return n;
}

static inline int64_t lq_room(int64_t m)
{
    return m;
}

static inline int64_t eigh_room(int64_t n)
{
    return n * n;
}

static inline int64_t svd_room(int64_t m, int64_t n)
{
    (void)m, (void)n;
    return 0;
}

static inline int64_t eig_room(int64_t n)
{
    return n * (n + 2);
}

#endif
