/* Recurrent layers: ../../common/rnn_cells.inc. */
#include "element.h"
#include "../../common/rnn.h"

#define RNN_INLINE TNCUDA_INLINE
#define EACH(j, first, end)                                                                                  \
    for (int64_t j = (first) + TNCUDA_THREAD; j < (end); j += TNCUDA_BLOCK_THREADS)

#define T float
#define N f32
#define FN(name) name##_f32
#define RNN_SIGMOID(x) ((float)tnb_sigmoid((double)(x)))
#define RNN_TANH(x) ((float)tnb_tanh((double)(x)))
#include "rnn.inc"
#undef T
#undef N
#undef FN
#undef RNN_SIGMOID
#undef RNN_TANH

#define T double
#define N f64
#define FN(name) name##_f64
#define RNN_SIGMOID(x) (1 / (1 + exp(-(x))))
#define RNN_TANH(x) tanh(x)
#include "rnn.inc"

/* Lengths of sequences within `size` steps. */
TNCUDA_KERNEL(rnn_lengths, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double length = NUMBER_IN(0, i);

        ((int64_t *)call->out[0].data)[i] = length >= (double)call->size ? call->size
                                            : length > 0                 ? (int64_t)length
                                                                         : 0;
    }
}
