/* Random numbers by ../../common/distributions.list: element i is a function of the draw and i alone. */
#include "../../common/distribution.h"
#include "element.h"

TNCUDA_INLINE tn_draw random_draw(const tncuda_draw *d)
{
    tn_draw draw;

    draw.key = d->key;
    draw.number = *d->step + d->step_add; /* as it is when this runs */
    return draw;
}

/* Parameter p of element i; `*fits` becomes 0 where it is not allowed. */
TNCUDA_INLINE double random_parameter(const tncuda_random_args *call, int32_t p, int64_t i, int32_t *fits)
{
    const tncuda_source *s = &call->source[p];
    double v;

    if (!s->data)
        return s->number;
    v = element_number(s->data, s->dtype, tnb_offset(s->ndim, s->shape, s->stride, i));
    *fits &= v >= s->min && v <= s->max && !(s->above && v == s->min);
    return v;
}

/* The next smaller number of a floating point type of 4 or 2 bytes, not of the smallest one. */
TNCUDA_INLINE void random_step_down(void *data, int32_t dtype, int64_t i)
{
    if (dtype == ELEMENT_F32) {
        const uint32_t bits = ELEMENT_AT(uint32_t, data, i);

        ELEMENT_SET(uint32_t, data, i, !bits ? 0x80000001u : bits & 0x80000000u ? bits + 1 : bits - 1);
    } else {
        const uint32_t bits = ELEMENT_AT(uint16_t, data, i);

        ELEMENT_SET(uint16_t, data, i, !bits ? 0x8001u : bits & 0x8000u ? bits + 1 : bits - 1);
    }
}

TNCUDA_APART void random_store(const tncuda_random_args *call, int64_t i, double to, double noise, double a,
                               double b)
{
    const tncuda_array *y = &call->out[0];

    if (y->mode)
        element_set_number(y->data, y->dtype, i, to);
    /* in a narrow type the largest values may round up to `b` */
    if (y->mode && call->interval && y->dtype != ELEMENT_F64 && element_number(y->data, y->dtype, i) >= b &&
        b > a)
        random_step_down(y->data, y->dtype, i);
    if (call->out[1].mode)
        element_set_number(call->out[1].data, call->out[1].dtype, i, noise);
}

#define TO to
#define NOISE noise
#define A a
#define B b
#define D (&draw)
#define K ((uint64_t)i)
#define DRAW(name, count_, first_, second_, ns_, interval_, ...)                                             \
    TNCUDA_KERNEL(random_##name, FREE, tncuda_random_args)                                                   \
    {                                                                                                        \
        const tn_draw draw = random_draw(&call->draw);                                                       \
                                                                                                             \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            int32_t fits = 1;                                                                                \
            const double a = random_parameter(call, 0, i, &fits);                                            \
            const double b = call->parameters > 1 ? random_parameter(call, 1, i, &fits) : 0;                 \
            double to = 0, noise = 0;                                                                        \
                                                                                                             \
            __VA_ARGS__;                                                                                     \
            random_store(call, i, fits ? to : NAN, fits ? noise : NAN, a, b);                                \
        }                                                                                                    \
    }
#define DRAW_UNIT DRAW
#define U tn_draw_unit(D, K)
#include "../../common/distributions.list"

/* low + 0 … count-1 */
TNCUDA_KERNEL(random_integers, FREE, tncuda_random_args)
{
    const tn_draw draw = random_draw(&call->draw);

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        element_set_whole(
            call->out[0].data, call->out[0].dtype, i,
            (int64_t)((uint64_t)call->low +
                      tnb_draw_below(&draw, (uint64_t)i, (uint64_t)call->high - (uint64_t)call->low)));
}

/* The mask of a dropout: 0, or 1 / (1 - p). */
TNCUDA_KERNEL(random_mask, FREE, tncuda_random_args)
{
    const tn_draw draw = random_draw(&call->draw);
    const double p = call->source[0].number, kept = 1 / (1 - p);

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        element_set_number(call->out[0].data, call->out[0].dtype, i,
                           tn_draw_unit(&draw, (uint64_t)i) >= p ? kept : 0.0);
}
