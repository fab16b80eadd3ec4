/*
 * Reductions (../../common/reduce.list). Of few elements a thread makes an output. Of more, `members` threads
 * of a block make one: each takes every members-th element, then they join in a tree of fixed form; the
 * outputs of a block are neighbours in memory where `columns` is set. Of a great many, blocks of their own
 * make parts of an output, `chunk` elements each, which a second launch joins. The same shape gives the same
 * bits.
 */
#include "block.h"
#include "over.h"

#define TREE 256

#define REDUCE_FREE(id, init, map, join)                                                                     \
    TNCUDA_KERNEL(GLUE(GLUE(reduce_##id, _), N), FREE, tncuda_reduce_args)                                   \
    {                                                                                                        \
        for (int64_t o = TNCUDA_FIRST; o < call->outer; o += TNCUDA_STEP) {                                  \
            const int64_t first = over_first(call, o);                                                       \
            ACC total = init;                                                                                \
                                                                                                             \
            for (int64_t k = 0; k < call->inner; k++) {                                                      \
                const T x = LOAD(call->x, call->dtype, over_at(call, first, k));                             \
                const ACC a = total, b = map;                                                                \
                                                                                                             \
                total = join;                                                                                \
            }                                                                                                \
            STORE(call, o, total);                                                                           \
        }                                                                                                    \
    }

/* Elements from `k` to `end`, `step` apart: the loads of four are under way together. */
#define REDUCE_LOOP(load, map, join)                                                                         \
    TNCUDA_UNROLL_4                                                                                          \
    for (int64_t k = begin; k < end; k += members) {                                                         \
        const T x = load(call->x, call->dtype, over_at(call, first, k));                                     \
        const ACC a = total, b = map;                                                                        \
                                                                                                             \
        total = join;                                                                                        \
    }
#define REDUCE_SYNC(id, init, map, join)                                                                     \
    TNCUDA_KERNEL(GLUE(GLUE(reduce_tree_##id, _), N), SYNC, tncuda_reduce_args)                              \
    {                                                                                                        \
        TNCUDA_SHARED(ACC, part, TREE);                                                                      \
        const int32_t members = call->members, outs = TREE / members;                                        \
        const int32_t out = call->columns ? TNCUDA_THREAD % outs : TNCUDA_THREAD / members;                  \
        const int32_t member = call->columns ? TNCUDA_THREAD / outs : TNCUDA_THREAD % members;               \
        const int32_t next = call->columns ? outs : 1;                                                       \
        const int64_t sets = (call->outer + outs - 1) / outs;                                                \
                                                                                                             \
        for (int64_t set = TNCUDA_BLOCK; set < sets * call->slices; set += TNCUDA_BLOCKS) {                  \
            const int64_t slice = set / sets, o = set % sets * outs + out;                                   \
            const int64_t begin = slice * call->chunk + member, behind = (slice + 1) * call->chunk;          \
            const int64_t end = o >= call->outer ? 0 : behind < call->inner ? behind : call->inner;          \
            const int64_t first = o < call->outer ? over_first(call, o) : 0;                                 \
            ACC total = init;                                                                                \
                                                                                                             \
            if (call->dtype == NATIVE) {                                                                     \
                REDUCE_LOOP(NATIVE_LOAD, map, join)                                                          \
            } else {                                                                                         \
                REDUCE_LOOP(LOAD, map, join)                                                                 \
            }                                                                                                \
            TNCUDA_PUT(part, TNCUDA_THREAD, total);                                                          \
            TNCUDA_SYNC();                                                                                   \
            for (int32_t half = members / 2; half > 0; half /= 2) {                                          \
                if (member < half) {                                                                         \
                    const ACC a = TNCUDA_GET(part, TNCUDA_THREAD);                                           \
                    const ACC b = TNCUDA_GET(part, TNCUDA_THREAD + half * next);                             \
                                                                                                             \
                    TNCUDA_PUT(part, TNCUDA_THREAD, join);                                                   \
                }                                                                                            \
                TNCUDA_SYNC();                                                                               \
            }                                                                                                \
            if (member == 0 && o < call->outer) {                                                            \
                if (call->slices > 1)                                                                        \
                    ((ACC *)call->room)[o * call->slices + slice] = TNCUDA_GET(part, TNCUDA_THREAD);         \
                else                                                                                         \
                    STORE(call, o, TNCUDA_GET(part, TNCUDA_THREAD));                                         \
            }                                                                                                \
            TNCUDA_SYNC();                                                                                   \
        }                                                                                                    \
    }
#define REDUCE(id, init, map, join) REDUCE_FREE(id, init, map, join) REDUCE_SYNC(id, init, map, join)

/* ---- floating point: sums in double ------------------------------------------------------------------ */

TNCUDA_APART void reduce_store_float(const tncuda_reduce_args *call, int64_t o, double v)
{
    v = call->divide != 1 ? v / call->divide : v;
    v = call->root ? sqrt(v) : v;
    if (call->add && !element_is_float(call->out_dtype)) {
        const uint64_t whole = (uint64_t)element_cut(call->out_dtype, v);

        element_set_whole(call->y, call->out_dtype, o,
                          (int64_t)(whole + (uint64_t)element_whole(call->y, call->out_dtype, o)));
        return;
    }
    if (call->add)
        v = call->out_dtype != ELEMENT_F64 ? (double)((float)v + element_f32(call->y, call->out_dtype, o))
                                           : v + element_number(call->y, call->out_dtype, o);
    element_set_number(call->y, call->out_dtype, o, v);
}

#define T double
#define ACC double
#define N float
#define LOAD element_number_of
#define NATIVE ELEMENT_F32
#define NATIVE_LOAD(data, dtype, i) ((double)ELEMENT_AT(float, data, i))
#define STORE reduce_store_float
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MINUS(a) (-(a))
#define LOW (-INFINITY)
#define HIGH INFINITY
#define IS_NAN(x) ((x) != (x))
#include "../../common/reduce.list"
#undef T
#undef ACC
#undef N
#undef LOAD
#undef NATIVE
#undef NATIVE_LOAD
#undef STORE
#undef PLUS
#undef TIMES
#undef MINUS
#undef LOW
#undef HIGH
#undef IS_NAN

/* ---- integers ---------------------------------------------------------------------------------------- */

TNCUDA_APART void reduce_store_whole(const tncuda_reduce_args *call, int64_t o, int64_t v)
{
    if (element_is_float(call->out_dtype)) {
        reduce_store_float(call, o, (double)v);
        return;
    }
    if (call->root)
        v = tnb_i64_of_double(sqrt((double)v));
    if (call->divide != 1)
        v = call->divide != 0 ? element_cut(call->out_dtype, (double)v / call->divide) : 0;
    if (call->add)
        v = (int64_t)((uint64_t)v + (uint64_t)element_whole(call->y, call->out_dtype, o));
    element_set_whole(call->y, call->out_dtype, o, v);
}

#define T int64_t
#define ACC int64_t
#define N whole
#define LOAD element_whole
#define NATIVE ELEMENT_I32
#define NATIVE_LOAD(data, dtype, i) ((int64_t)ELEMENT_AT(int32_t, data, i))
#define STORE reduce_store_whole
#define PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define TIMES(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define MINUS(a) ((int64_t)(0 - (uint64_t)(a)))
#define LOW INT64_MIN
#define HIGH INT64_MAX
#define IS_NAN(x) 0
#include "../../common/reduce.list"

/* ---- positions --------------------------------------------------------------------------------------- */

/* Where the first largest (n[0]) or smallest of each row stands; the first NaN is either. */
#define POSITION(suffix, T, LOAD)                                                                            \
    TNCUDA_KERNEL(position_##suffix, FREE, tncuda_call_args)                                                 \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            const int64_t first = i / call->inner * call->size * call->inner + i % call->inner;              \
            int64_t where = 0;                                                                               \
            T found = 0;                                                                                     \
                                                                                                             \
            for (int64_t k = 0; k < call->size; k++) {                                                       \
                const T v = LOAD(0, first + k * call->inner);                                                \
                                                                                                             \
                if (found == found && (k == 0 || (call->n[0] ? v > found : v < found) || v != v)) {          \
                    found = v;                                                                               \
                    where = k;                                                                               \
                }                                                                                            \
            }                                                                                                \
            if (element_is_float(call->out[0].dtype))                                                        \
                NUMBER_OUT(0, i, (double)where);                                                             \
            else                                                                                             \
                element_set_whole(call->out[0].data, call->out[0].dtype, i, where);                          \
        }                                                                                                    \
    }
POSITION(float, double, NUMBER_IN)
POSITION(whole, int64_t, WHOLE_IN)

/* ---- over whole arrays, by one block ------------------------------------------------------------------- */

/* out[0] element n[0] = the sum of squares of in[0]. */
TNCUDA_KERNEL(squares_of, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double sum = 0;

    for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_BLOCK_THREADS)
        sum += NUMBER_IN(0, i) * NUMBER_IN(0, i);
    sum = block_sum(part, sum);
    if (TNCUDA_THREAD == 0)
        NUMBER_OUT(0, call->n[0], sum);
}

/* out[0] = 1 where all of in[0] are finite as float32, times what is there unless n[0]. */
TNCUDA_KERNEL(finite_all, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double others = 0;

    for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_BLOCK_THREADS)
        others += !isfinite((float)NUMBER_IN(0, i));
    others = block_sum(part, others);
    if (TNCUDA_THREAD == 0 && (call->n[0] || others > 0))
        NUMBER_OUT(0, 0, others > 0 ? 0.0 : 1.0);
}

/* in: lrs, sums of squares of weights and gradients, wds; f: eta, eps, scale */
TNCUDA_KERNEL(lars_rates, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double lr = NUMBER_IN(0, i), norm = sqrt(NUMBER_IN(1, i)), grad = sqrt(NUMBER_IN(2, i));
        const double wd = NUMBER_IN(3, i);

        NUMBER_OUT(0, i,
                   norm > 0 && grad > 0
                       ? lr * call->f[0] * norm / (grad * call->f[2] + wd * norm + call->f[1])
                       : lr);
    }
}

/* Running sums of rows (outer, size, inner): a thread makes a row. */
#define RUNNING(suffix, T, LOAD, PLUS_, STORE_)                                                              \
    TNCUDA_KERNEL(running_##suffix, FREE, tncuda_call_args)                                                  \
    {                                                                                                        \
        for (int64_t r = TNCUDA_FIRST; r < call->outer * call->inner; r += TNCUDA_STEP) {                    \
            const int64_t first = r / call->inner * call->size * call->inner + r % call->inner;              \
            T sum = 0;                                                                                       \
                                                                                                             \
            for (int64_t k = 0; k < call->size; k++) {                                                       \
                const int64_t i = first + k * call->inner;                                                   \
                                                                                                             \
                sum = PLUS_(sum, LOAD);                                                                      \
                STORE_(call->out[0].data, call->out[0].dtype, i, sum);                                       \
            }                                                                                                \
        }                                                                                                    \
    }
#define RUNNING_FLOAT(a, b) ((a) + (b))
#define RUNNING_WHOLE(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
RUNNING(float, double, NUMBER_IN(0, i), RUNNING_FLOAT, element_set_number)
RUNNING(whole, int64_t,
        element_is_float(call->in[0].dtype) ? tnb_i64_of_double(NUMBER_IN(0, i)) : WHOLE_IN(0, i),
        RUNNING_WHOLE, element_set_whole)

/* in: dy, data (outer, size, inner); the sum of dy data of each channel where data is not above 0. */
TNCUDA_KERNEL(prelu_gamma, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    for (int64_t c = TNCUDA_BLOCK; c < call->size; c += TNCUDA_BLOCKS) {
        double sum = 0;

        for (int64_t k = TNCUDA_THREAD; k < call->outer * call->inner; k += TNCUDA_BLOCK_THREADS) {
            const int64_t i = (k / call->inner * call->size + c) * call->inner + k % call->inner;
            const double x = NUMBER_IN(1, i);

            sum += x > 0 ? 0 : NUMBER_IN(0, i) * x;
        }
        sum = block_sum(part, sum);
        if (TNCUDA_THREAD == 0)
            NUMBER_OUT(0, c, sum);
    }
}
