/*
 * Elements by position. in[0]: what elements are copied from; in[1]: indices of any type. Data is (outer,
 * size, inner), and n[TNCUDA_INDEX_MANY] indices choose along size.
 */
#include "element.h"

/* Index i as an integer: a fraction is cut off, NaN is 0, what is too large saturates. */
TNCUDA_INLINE int64_t index_read(const tncuda_call_args *call, int64_t i)
{
    const tncuda_array *t = &call->in[1];
    int64_t at;

    if (element_is_float(t->dtype))
        return tnb_i64_of_double(element_number(t->data, t->dtype, i));
    at = element_whole(t->data, t->dtype, i);
    return t->dtype == ELEMENT_U64 && at < 0 ? INT64_MAX : at;
}

TNCUDA_INLINE int64_t index_clip(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* A place among the first axes of data; a coordinate outside is clipped. */
TNCUDA_INLINE int64_t index_place(const tncuda_call_args *call, int64_t i)
{
    int64_t place = 0;

    for (int64_t k = 0; k < call->n[TNCUDA_INDEX_AXES]; k++) {
        const int64_t size = call->n[TNCUDA_INDEX_SHAPE + k];
        const int64_t given = index_read(call, k * call->n[TNCUDA_INDEX_MANY] + i);

        place = place * size + index_clip(given < 0 && given >= -size ? given + size : given, size);
    }
    return place;
}

/* Where along size index i leads. */
TNCUDA_INLINE int64_t index_of(const tncuda_call_args *call, int64_t i)
{
    int64_t at;

    if (call->n[TNCUDA_INDEX_MODE] == TNCUDA_INDEX_COORDINATES)
        return index_place(call, i);
    at = index_read(call, i);
    if (call->n[TNCUDA_INDEX_MODE] == TNCUDA_INDEX_WRAP) {
        at %= call->size;
        return at < 0 ? at + call->size : at;
    }
    return index_clip(at, call->size);
}

/* rows (outer, many, inner) of data */
TNCUDA_KERNEL(index_gather, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, k = i / call->inner % call->n[TNCUDA_INDEX_MANY],
                      outer = i / call->inner / call->n[TNCUDA_INDEX_MANY];
        const int64_t from = (outer * call->size + index_of(call, k)) * call->inner + inner;

        element_move(call->out[0].data, i, call->in[0].data, from, call->n[TNCUDA_INDEX_BYTES]);
    }
}

/* (outer, size, inner), indices (outer, inner) -> (outer, inner) */
TNCUDA_KERNEL(index_pick, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t at = (i / call->inner * call->size + index_of(call, i)) * call->inner + i % call->inner;

        element_move(call->out[0].data, i, call->in[0].data, at, call->n[TNCUDA_INDEX_BYTES]);
    }
}

/* dy (outer, inner) -> dx (outer, size, inner): 0 but at the indices. */
TNCUDA_KERNEL(index_unpick, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t outer = i / call->inner / call->size;
        const int64_t from = outer * call->inner + i % call->inner;

        if (i / call->inner % call->size == index_of(call, from))
            element_move(call->out[0].data, i, call->in[0].data, from, call->n[TNCUDA_INDEX_BYTES]);
        else
            element_zero(call->out[0].data, i, call->n[TNCUDA_INDEX_BYTES]);
    }
}

/* rows (many, inner) into data: of several for one place the last one stays. */
TNCUDA_KERNEL(index_put, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t k = i / call->inner, place = index_of(call, k);
        int64_t later = k + 1;

        while (later < call->n[TNCUDA_INDEX_MANY] && index_of(call, later) != place)
            later++;
        if (later == call->n[TNCUDA_INDEX_MANY])
            element_move(call->out[0].data, place * call->inner + i % call->inner, call->in[0].data, i,
                         call->n[TNCUDA_INDEX_BYTES]);
    }
}

/*
 * rows (outer, many, inner) added to data, which is 0. The first index of each place adds all rows of that
 * place, in order: no atomics, the same bits each time.
 */
TNCUDA_KERNEL(index_add, FREE, tncuda_call_args)
{
    const int64_t many = call->n[TNCUDA_INDEX_MANY];
    const int32_t wide = call->in[0].dtype == ELEMENT_F64;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, k = i / call->inner % many, outer = i / call->inner / many;
        const int64_t place = index_of(call, k), first = outer * many * call->inner + inner;
        int64_t before = 0;
        double sum = 0;

        while (before < k && index_of(call, before) != place)
            before++;
        if (before < k)
            continue;
        for (int64_t j = k; j < many; j++)
            if (index_of(call, j) == place) {
                sum += NUMBER_IN(0, first + j * call->inner);
                sum = wide ? sum : (double)(float)sum;
            }
        NUMBER_OUT(0, (outer * call->size + place) * call->inner + inner, sum);
    }
}

/* (many, size): f[0] where the index is the column, f[1] elsewhere. */
TNCUDA_KERNEL(index_one_hot, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, index_read(call, i / call->size) == i % call->size ? call->f[0] : call->f[1]);
}

TNCUDA_INLINE void index_store(const tncuda_call_args *call, int64_t i, int64_t v)
{
    if (element_is_float(call->out[0].dtype))
        NUMBER_OUT(0, i, (double)v);
    else
        element_set_whole(call->out[0].data, call->out[0].dtype, i, v);
}

/* Coordinates (size, count) of an array of shape n. */
TNCUDA_KERNEL(index_ravel, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        uint64_t at = 0;

        for (int64_t k = 0; k < call->size; k++)
            at = (k ? at * (uint64_t)call->n[k] : 0) + (uint64_t)index_read(call, k * call->count + i);
        index_store(call, i, (int64_t)at);
    }
}

TNCUDA_KERNEL(index_unravel, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        int64_t at = index_read(call, i);

        for (int64_t k = call->size; k-- > 0;) {
            const int64_t size = call->n[k] > 1 ? call->n[k] : 1;

            index_store(call, k * call->count + i, k ? at % size : at);
            at = k ? at / size : at;
        }
    }
}
