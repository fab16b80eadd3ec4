/* The distributions of ../../common/distributions.list, a part of a draw at a time. */
#include "distribution.h"

#include <math.h>

#include "../common/isa.h"

void tncpu_units(const tn_draw *d, uint64_t first, int64_t n, double *to)
{
    /* gcc's loop for AVX2 is slower than without vectors */
    static tncpu_units_by *const by[TNCPU_ISAS] = {tncpu_units_base, tncpu_units_base, tncpu_units_avx512};

    by[tncpu_isa()](d, first, n, to);
}

#define TO d->to[i]
#define NOISE d->noise[i]
#define A d->a[i]
#define B d->b[i]
#define D d->draw
#define K (uint64_t)(d->first + i)
#define DRAW(name, count, first, second, ns, interval, ...)                                                  \
    static void name##_draw(const tncpu_numbers_drawn *d)                                                    \
    {                                                                                                        \
        for (int64_t i = 0; i < d->n; i++) {                                                                 \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }
#define U TO
#define DRAW_UNIT(name, count, first_, second, ns, interval, ...)                                            \
    static void name##_draw(const tncpu_numbers_drawn *d)                                                    \
    {                                                                                                        \
        tncpu_units(D, (uint64_t)d->first, d->n, d->to);                                                     \
        for (int64_t i = 0; i < d->n; i++) {                                                                 \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }
#include "../../common/distributions.list"
#undef DRAW_UNIT
#undef DRAW

void (*const tncpu_draws[])(const tncpu_numbers_drawn *d) = {
#define DRAW(name, ...) name##_draw,
#define DRAW_UNIT DRAW
#include "../../common/distributions.list"
#undef DRAW_UNIT
#undef DRAW
};
