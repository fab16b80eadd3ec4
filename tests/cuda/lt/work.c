/* What a kernel of cuBLASLt does. */
#include "double.h"

#include <stdlib.h>
#include <string.h>

#include "../../../plugins/common/functions.h"
#include "../../../plugins/cuda/product.h"

static double load(int32_t type, const void *data, int64_t i)
{
    switch (type) {
    case CUDA_R_32F:
        return ((const float *)data)[i];
    case CUDA_R_64F:
        return ((const double *)data)[i];
    case CUDA_R_16F:
        return tnb_half_float(((const uint16_t *)data)[i]);
    default:
        return tnb_bf16_float(((const uint16_t *)data)[i]);
    }
}

static void store(int32_t type, void *data, int64_t i, double v)
{
    switch (type) {
    case CUDA_R_32F:
        ((float *)data)[i] = (float)v;
        break;
    case CUDA_R_64F:
        ((double *)data)[i] = v;
        break;
    case CUDA_R_16F:
        ((uint16_t *)data)[i] = tnb_float_half((float)v);
        break;
    default:
        ((uint16_t *)data)[i] = tnb_float_bf16((float)v);
    }
}

/* Element (row, col) of op(matrix) of a batch. */
static int64_t place(const double_layout *l, int32_t transposed, int64_t row, int64_t col, int64_t batch)
{
    return batch * l->stride + (transposed ? row * l->ld + col : row + col * l->ld);
}

/* In float32: of a TF32 product 10 bits of fraction are looked at. */
static float narrow(const double_job *j, double v)
{
    const float f = (float)v;

    return j->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? tnb_bits_float(tnb_float_bits(f) & 0xffffe000u)
                                                           : f;
}

/* Of one slice of k; as the plain kernels, products are not rounded by themselves. */
static double slice_of(const double_job *j, int64_t row, int64_t col, int64_t batch, int64_t first,
                       int64_t end)
{
    const bool wide = j->desc.compute == CUBLAS_COMPUTE_64F;
    double sum = 0;
    float single = 0;

    for (int64_t i = first; i < end; i++) {
        const double x = load(j->a.type, j->from[0], place(&j->a, j->desc.trans[0], row, i, batch)),
                     y = load(j->b.type, j->from[1], place(&j->b, j->desc.trans[1], i, col, batch));

        if (wide)
            sum = fma(x, y, sum);
        else
            single = fmaf(narrow(j, x), narrow(j, y), single);
    }
    return wide ? sum : (double)single;
}

static double sum_of(const double_job *j, int64_t row, int64_t col, int64_t batch)
{
    const int64_t k = (int64_t)(j->desc.trans[0] ? j->a.rows : j->a.cols);
    const bool wide = j->desc.compute == CUBLAS_COMPUTE_64F;
    const tncuda_product_form f =
        tncuda_product_form_of((int64_t)j->d.rows, (int64_t)j->d.cols, k, j->d.batch, wide);
    double sum = slice_of(j, row, col, batch, 0, f.slices > 1 ? f.depth : k);

    for (int64_t s = 1; s < f.slices; s++) {
        sum += slice_of(j, row, col, batch, s * f.depth, (s + 1) * f.depth < k ? (s + 1) * f.depth : k);
        sum = wide ? sum : (double)(float)sum;
    }
    return sum;
}

static double scaled(const double_job *j, double sum, double other, double bias)
{
    if (j->desc.compute == CUBLAS_COMPUTE_64F)
        return j->beta * other + (j->alpha * sum + bias);
    return (float)((float)j->beta * (float)other) +
           (float)((float)((float)j->alpha * (float)sum) + (float)bias);
}

/* BGRADB: for each column of D the sum of B over k. */
static void sums_store(const double_job *j)
{
    const int64_t k = (int64_t)(j->desc.trans[1] ? j->b.cols : j->b.rows);

    for (int64_t col = 0; col < (int64_t)j->d.cols; col++) {
        float sum = 0;

        for (int64_t i = 0; i < k; i++)
            sum += (float)load(j->b.type, j->from[1], place(&j->b, j->desc.trans[1], i, col, 0));
        store(j->d.type, (void *)(uintptr_t)j->desc.bias, col, sum);
    }
}

void double_job_run(void *job)
{
    double_job *j = job;
    const bool sums = j->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB, biased = j->desc.bias && !sums;

    if (sums)
        sums_store(j);

    for (int64_t batch = 0; batch < j->d.batch; batch++)
        for (int64_t col = 0; col < (int64_t)j->d.cols; col++)
            for (int64_t row = 0; row < (int64_t)j->d.rows; row++) {
                const double other = j->beta != 0
                                         ? load(j->c.type, j->other, place(&j->c, 0, row, col, batch))
                                         : 0,
                             bias = biased ? load(j->d.type, j->desc.bias, row) : 0;

                const double v = scaled(j, sum_of(j, row, col, batch), other, bias);

                store(j->d.type, j->to, place(&j->d, 0, row, col, batch),
                      j->desc.epilogue & CUBLASLT_EPILOGUE_RELU && !(v > 0) ? 0 : v);
            }
    if (j->once)
        free(j);
}
