/*
 * Rows of sequences. in: data, lengths (or none); n: kind, bytes of an element, steps first, steps of what is
 * read, steps of what is written; size: sequences; inner: elements of a row; f: the constant.
 */
#include "element.h"

/* The step that is read for step t of a sequence of so many; -1: none. */
TNCUDA_INLINE int64_t sequence_source(int64_t kind, int64_t t, int64_t length)
{
    const int64_t last = length > 0 ? length - 1 : 0;

    if (kind == TNCUDA_SEQUENCE_MASK)
        return t < length ? t : -1;
    if (kind == TNCUDA_SEQUENCE_REVERSE)
        return t < length ? length - 1 - t : t;
    if (kind == TNCUDA_SEQUENCE_LAST)
        return last;
    return t == last ? 0 : -1;
}

TNCUDA_INLINE int64_t sequence_row(const tncuda_call_args *call, int64_t steps, int64_t t, int64_t n)
{
    return (call->n[2] ? t * call->size + n : n * steps + t) * call->inner;
}

TNCUDA_INLINE int64_t sequence_length(const tncuda_call_args *call, int64_t n)
{
    const int64_t most = call->n[5];
    int64_t length = most;

    if (call->in[1].data && element_is_float(call->in[1].dtype))
        length = tnb_i64_of_double(NUMBER_IN(1, n));
    else if (call->in[1].data)
        length = WHOLE_IN(1, n);
    if (call->in[1].dtype == ELEMENT_U64 && length < 0)
        return most;
    return length > most ? most : length < 0 ? 0 : length;
}

TNCUDA_KERNEL(sequence_move, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / call->inner, to_steps = call->n[4];
        const int64_t t = call->n[2] ? row / call->size : row % to_steps,
                      n = call->n[2] ? row % call->size : row / to_steps;
        const int64_t s = sequence_source(call->n[0], t, sequence_length(call, n));

        if (s >= 0)
            element_move(call->out[0].data, i, call->in[0].data,
                         sequence_row(call, call->n[3], s, n) + i % call->inner, call->n[1]);
        else
            NUMBER_OUT(0, i, call->f[0]);
    }
}
