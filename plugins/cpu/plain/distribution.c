/* The distributions of ../../common/distributions.list, a part of a draw at a time. */
#include "distribution.h"

#include <math.h>

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
#include "../../common/distributions.list"
#undef DRAW

void (*const tncpu_draws[])(const tncpu_numbers_drawn *d) = {
#define DRAW(name, ...) name##_draw,
#include "../../common/distributions.list"
#undef DRAW
};
