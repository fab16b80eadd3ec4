/*
 * Densities of ../../common/pdf.list and Dirichlet's, in double. A group is what one element of the
 * parameters serves: `inner` samples. n: the logarithm is meant; first: input of the samples, behind dy.
 */
#include "../../common/pdf.h"
#include "block.h"

TNCUDA_INLINE tnb_pdf pdf_parameters(const tncuda_call_args *call, int32_t first, int64_t group)
{
    tnb_pdf k;

    k.a = NUMBER_IN(first + 1, group);
    k.b = call->in[first + 2].data ? NUMBER_IN(first + 2, group) : 0;
    k.c = k.d = k.da = k.db = 0;
    return k;
}

/* Gradients of one group by the parameters, from every `step`-th sample on; those of its samples are
 * written. */
#define PDF(name, parameters, moves, group_, log_, slope_)                                                   \
    TNCUDA_KERNEL(pdf_##name, FREE, tncuda_call_args)                                                        \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            tnb_pdf k = pdf_parameters(call, 0, i / call->inner);                                            \
            double v;                                                                                        \
                                                                                                             \
            tnb_##group_##_group(&k);                                                                        \
            v = tnb_##log_##_log(&k, NUMBER_IN(0, i));                                                       \
            NUMBER_OUT(0, i, call->n[0] ? v : exp(v));                                                       \
        }                                                                                                    \
    }                                                                                                        \
    TNCUDA_INLINE void pdf_##name##_group(const tncuda_call_args *call, int64_t group, int64_t at,           \
                                          int64_t step, double *sum)                                         \
    {                                                                                                        \
        tnb_pdf k = pdf_parameters(call, 1, group);                                                          \
                                                                                                             \
        tnb_##group_##_group(&k);                                                                            \
        for (int64_t i = group * call->inner + at; i < (group + 1) * call->inner; i += step) {               \
            const double x = NUMBER_IN(1, i), dy = NUMBER_IN(0, i);                                          \
            const double h = call->n[0] ? dy : dy * exp(tnb_##log_##_log(&k, x));                            \
            double by[2] = {0, 0};                                                                           \
            const double dx = h * tnb_##slope_##_slope(&k, x, by);                                           \
                                                                                                             \
            if (moves && call->out[0].mode)                                                                  \
                NUMBER_OUT(0, i, dx);                                                                        \
            sum[0] += h * by[0];                                                                             \
            sum[1] += h * by[1];                                                                             \
        }                                                                                                    \
    }                                                                                                        \
    TNCUDA_KERNEL(pdf_##name##_back_short, FREE, tncuda_call_args)                                           \
    {                                                                                                        \
        for (int64_t g = TNCUDA_FIRST; g < call->count; g += TNCUDA_STEP) {                                  \
            double sum[2] = {0, 0};                                                                          \
                                                                                                             \
            pdf_##name##_group(call, g, 0, 1, sum);                                                          \
            for (int32_t p = 0; p < parameters; p++)                                                         \
                if (call->out[moves + p].mode)                                                               \
                    NUMBER_OUT(moves + p, g, sum[p]);                                                        \
        }                                                                                                    \
    }                                                                                                        \
    TNCUDA_KERNEL(pdf_##name##_back, SYNC, tncuda_call_args)                                                 \
    {                                                                                                        \
        TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);                                                   \
                                                                                                             \
        for (int64_t g = TNCUDA_BLOCK; g < call->count; g += TNCUDA_BLOCKS) {                                \
            double sum[2] = {0, 0};                                                                          \
                                                                                                             \
            pdf_##name##_group(call, g, TNCUDA_THREAD, TNCUDA_THREADS, sum);                                 \
            for (int32_t p = 0; p < parameters; p++) {                                                       \
                const double all = block_sum(part, sum[p]);                                                  \
                                                                                                             \
                if (TNCUDA_THREAD == 0 && call->out[moves + p].mode)                                         \
                    NUMBER_OUT(moves + p, g, all);                                                           \
            }                                                                                                \
        }                                                                                                    \
    }
#include "../../common/pdf.list"
#undef PDF

/* ---- Dirichlet: samples of `size` elements ------------------------------------------------------------- */

/* The logarithm of sample i, whose parameters are in input `p`, samples in the one before. */
TNCUDA_INLINE double dirichlet_log(const tncuda_call_args *call, int32_t p, int64_t i)
{
    const int64_t alpha = i / call->inner * call->size, x = i * call->size;
    double sum = 0, gammas = 0, all = 0;

    for (int64_t j = 0; j < call->size; j++) {
        const double a = NUMBER_IN(p, alpha + j);

        all += a;
        gammas += tnb_lgamma(a);
        sum += (a - 1) * log(NUMBER_IN(p - 1, x + j));
    }
    return sum + (tnb_lgamma(all) - gammas);
}

TNCUDA_KERNEL(pdf_dirichlet, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double v = dirichlet_log(call, 1, i);

        NUMBER_OUT(0, i, call->n[0] ? v : exp(v));
    }
}

/* in: dy, samples, parameters; room: what each sample's logarithm is multiplied by. */
TNCUDA_KERNEL(pdf_dirichlet_samples, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double dy = NUMBER_IN(0, i), h = call->n[0] ? dy : dy * exp(dirichlet_log(call, 2, i));

        ((double *)call->room)[i] = h;
        for (int64_t j = 0; j < call->size && call->out[0].mode; j++)
            NUMBER_OUT(0, i * call->size + j,
                       h * (NUMBER_IN(2, i / call->inner * call->size + j) - 1) /
                           NUMBER_IN(1, i * call->size + j));
    }
}

/* A thread makes the gradient of one parameter. */
TNCUDA_KERNEL(pdf_dirichlet_back, FREE, tncuda_call_args)
{
    for (int64_t k = TNCUDA_FIRST; k < call->count; k += TNCUDA_STEP) {
        const int64_t group = k / call->size, j = k % call->size;
        double all = 0, psi, sum = 0;

        for (int64_t a = 0; a < call->size; a++)
            all += NUMBER_IN(2, group * call->size + a);
        psi = tnb_digamma(all) - tnb_digamma(NUMBER_IN(2, k));
        for (int64_t i = group * call->inner; i < (group + 1) * call->inner; i++)
            sum += ((const double *)call->room)[i] * (log(NUMBER_IN(1, i * call->size + j)) + psi);
        NUMBER_OUT(1, k, sum);
    }
}
