/* Optimizer steps over one weight, and over many. */
#define TNCUDA_BOUNDS TNCUDA_BLOCK_THREADS, 1
#include "../../common/contrib.h"
#include "block.h"
#include "packs.h"
#include "tenon/plugin/op/optimizer.h"

enum { /* what is no attribute of the operator that a step is named after: plugins/cpu/plain/optimizer.c */
       TN_adamw_update_rescale_grad = TN_adamw_update_clip_gradient + 1,
       TN_lamb_update_phase1_rate = TN_lamb_update_phase1_clip_gradient + 1,
       TN_lamb_update_phase2_r1 = TN_lamb_update_phase2_upper_bound + 1,
       TN_lamb_update_phase2_r2
};

/* What a step's numbers are read from: `one`, or of weight `t` of `many`. */
typedef struct update_from {
    const tncuda_update_args *one;
    const tncuda_updates_args *many;
    int32_t t;
} update_from;

/* Numbers in arrays are of a floating point type. */
TNCUDA_INLINE double update_element(const void *data, int32_t dtype, int64_t at)
{
    return dtype == ELEMENT_F64 ? ELEMENT_AT(double, data, at) : (double)element_f32(data, dtype, at);
}

TNCUDA_INLINE double update_number(update_from from, int32_t k)
{
    const tncuda_update_args *one = from.one;
    const tncuda_updates_args *many = from.many;

    if (one)
        return one->number[k] ? update_element(one->number[k], one->number_dtype[k], one->number_at[k])
                              : one->v[k];
    return many->number[k]
               ? update_element(many->number[k], many->number_dtype[k], many->number_each[k] ? from.t : 0)
           : many->number_own[k] ? many->weight[from.t].own[many->number_own[k] - 1]
                                 : many->v[k];
}

/* Whether the step is taken: the scale, number `skips` - 1, is finite and not 0, or there is none. */
TNCUDA_INLINE int32_t update_goes(update_from from, int32_t skips)
{
    const double scale = skips ? update_number(from, skips - 1) : 1;

    return scale != 0 && scale - scale == 0;
}

/* Whether eight neighbours of each array are read and written at once. */
TNCUDA_INLINE int32_t update_packed(const tncuda_update_place *at, int32_t states)
{
    uintptr_t all = (uintptr_t)at->w | (uintptr_t)at->g | (uintptr_t)at->out | (uintptr_t)at->master;
    int32_t wide = at->w_dtype == ELEMENT_F64 || at->g_dtype == ELEMENT_F64 || at->out_dtype == ELEMENT_F64;

    for (int32_t k = 0; k < states; k++) {
        all |= (uintptr_t)at->state[k];
        wide = wide || at->state_dtype == ELEMENT_F64;
    }
    return !wide && PACK_ALIGNED(all);
}

/* The weight that a piece is of. */
TNCUDA_INLINE int32_t updates_find(const tncuda_updates_args *call, int64_t piece)
{
    int32_t first = 0, last = call->many - 1;

    while (first < last) {
        const int32_t middle = (first + last) / 2;

        if (piece < call->weight[middle].pieces)
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

TNCUDA_INLINE tncuda_update_place updates_place(const tncuda_updates_args *call, int32_t t)
{
    const tncuda_update_weight *w = &call->weight[t];
    tncuda_update_place at;

    at.w = w->w;
    at.g = w->g;
    at.old = w->old;
    at.out = w->out;
    at.master = call->mixed ? (void *)w->w : 0;
    at.state[0] = w->state[0];
    at.state[1] = w->state[1];
    at.state[2] = 0;
    at.w_dtype = call->w_dtype;
    at.g_dtype = call->g_dtype;
    at.out_dtype = call->out_dtype;
    at.state_dtype = call->state_dtype;
    return at;
}

/* Pieces of weight `t` before this one. */
#define UPDATES_BEFORE(t) ((t) ? call->weight[(t)-1].pieces : 0)

/* Of the block's piece: `at`, where its numbers are `from`, elements `begin` … `end`. */
#define UPDATES_PIECE                                                                                        \
    const int64_t piece = TNCUDA_BLOCK;                                                                      \
    const int32_t t = updates_find(call, piece);                                                             \
    tncuda_update_place at = updates_place(call, t);                                                         \
    const int64_t begin = (piece - UPDATES_BEFORE(t)) * TNCUDA_UPDATE_PIECE;                                 \
    const int64_t behind = begin + TNCUDA_UPDATE_PIECE;                                                      \
    const int64_t end = behind < call->weight[t].count ? behind : call->weight[t].count;                     \
    const update_from from = {0, call, t};

/* The rates of LAMB's weights from the sums of their pieces, in an order of the shape alone. v: bounds; the
 * last number of a weight's own: its learning rate. */
TNCUDA_KERNEL(updates_lamb_rates, SYNC, tncuda_updates_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(t, call->many)
    {
        double *room = (double *)call->room;
        double weight = 0, along = 0;

        for (int64_t k = UPDATES_BEFORE(t) + TNCUDA_THREAD; k < call->weight[t].pieces;
             k += TNCUDA_BLOCK_THREADS) {
            weight += room[call->many + 2 * k];
            along += room[call->many + 2 * k + 1];
        }
        members_sums(part, other, TNCUDA_THREAD, TNCUDA_BLOCK_THREADS, 1, &weight, &along);
        if (TNCUDA_THREAD == 0)
            room[t] = tnb_lamb_rate(call->weight[t].own[TNCUDA_UPDATES_OWN - 1], sqrt(weight), sqrt(along),
                                    call->v[TNCUDA_UPDATES_NUMBERS - 2], call->v[TNCUDA_UPDATES_NUMBERS - 1]);
    }
}

/* in: weight, grad (rows, size); out: the new weight, history of each row; f: lr, scale, bound, epsilon. */
TNCUDA_KERNEL(update_group_history, FREE, tncuda_call_args)
{
    for (int64_t r = TNCUDA_FIRST; r < call->count; r += TNCUDA_STEP) {
        double sum = 0;

        for (int64_t i = r * call->size; i < (r + 1) * call->size; i++) {
            const double g = tnb_bounded(NUMBER_IN(1, i), call->f[1], call->f[2]);

            sum += g * g;
        }
        NUMBER_OUT(1, r, element_number(call->out[1].data, call->out[1].dtype, r) + sum / (double)call->size);
    }
}

TNCUDA_KERNEL(update_group, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double history = element_number(call->out[1].data, call->out[1].dtype, i / call->size);

        NUMBER_OUT(0, i,
                   NUMBER_IN(0, i) - call->f[0] * tnb_bounded(NUMBER_IN(1, i), call->f[1], call->f[2]) /
                                         sqrt(history + call->f[3]));
    }
}

#define WORDS_F32
#include "update.inc"
#define WORDS_F64
#include "update.inc"
