/*
 * CTCLoss: a thread computes a sequence (../../common/ctc.inc), whose labels come first into its room. A
 * label that is no symbol gives NaN.
 */
#include "element.h"

#define CTC_ARG ((const tncuda_call_args *)c->arg)
#define CTC_LOAD(at, count, to)                                                                              \
    for (int64_t e = 0; e < (count); e++)                                                                    \
    (to)[e] = element_number(CTC_ARG->in[0].data, CTC_ARG->in[0].dtype, (at) + e)
#define CTC_STORE(at, count, from)                                                                           \
    for (int64_t e = 0; e < (count); e++)                                                                    \
    element_set_number(CTC_ARG->out[1].data, CTC_ARG->out[1].dtype, (at) + e, (from)[e])
#include "../../common/ctc.inc"

/* Element i as a whole number; of a fraction the whole part. */
TNCUDA_INLINE int64_t ctc_whole(const tncuda_array *a, int64_t i)
{
    return element_is_float(a->dtype) ? element_cut(ELEMENT_I64, element_number(a->data, a->dtype, i))
                                      : element_whole(a->data, a->dtype, i);
}

TNCUDA_INLINE void ctc_refuse(const tnb_ctc *c, int64_t n)
{
    double none = NAN;

    for (int64_t t = 0; c->graded && t < c->steps; t++)
        for (int64_t k = 0; k < c->symbols; k++)
            CTC_STORE((t * c->sequences + n) * c->symbols + k, 1, &none);
}

/* outer: steps, count: sequences, size: symbols; n: labels of a row, the blank, the input that has lengths of
 * the data, that of the labels (0: none), numbers of room of each. in: data, label, … */
TNCUDA_KERNEL(ctc_loss, FREE, tncuda_call_args)
{
    tnb_ctc c;

    c.arg = call;
    c.steps = call->outer;
    c.sequences = call->count;
    c.symbols = call->size;
    c.width = call->n[0];
    c.blank = call->n[1];
    c.graded = call->out[1].mode != 0;
    for (int64_t n = TNCUDA_FIRST; n < call->count; n += TNCUDA_STEP) {
        double *room = (double *)call->room + n * call->n[4], loss;
        int64_t *label = (int64_t *)call->room + call->count * call->n[4] + n * c.width;
        const int64_t steps = call->n[2] ? ctc_steps(&c, ctc_whole(&call->in[call->n[2]], n)) : c.steps;
        int64_t labels;

        for (int64_t k = 0; k < c.width; k++)
            label[k] = ctc_whole(&call->in[1], n * c.width + k);
        labels = ctc_labels(&c, label, call->n[3] != 0, call->n[3] ? ctc_whole(&call->in[call->n[3]], n) : 0);
        if (ctc_wrong(&c, label, labels) < labels) {
            ctc_refuse(&c, n);
            loss = NAN;
        } else {
            loss = ctc_sequence(&c, n, steps, label, labels, room);
        }
        if (call->out[0].mode)
            NUMBER_OUT(0, n, loss);
    }
}

/* in: dy (sequences), the forward's gradient (steps, sequences, symbols); outer: sequences, inner: symbols */
TNCUDA_KERNEL(ctc_back, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, NUMBER_IN(1, i) * NUMBER_IN(0, i / call->inner % call->outer));
}
