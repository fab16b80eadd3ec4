/* Small operators: kernels/contrib.cu. */
#include "tenon/plugin/op/contrib.h"
#include "../common/move.h"
#include "launch.h"

/* A thread for each element of output 0. */
static tn_status elements(const tn_exec *x, const char *kernel, uint32_t inputs, tncuda_call_args *a,
                          tn_err *err)
{
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a->count = tn_tensor_count(x->out[0]);
    tncuda_call_arrays(x, inputs, 1, a);
    return tncuda_launch(x, "contrib", kernel, a->count, a, err);
}

/* ---- elements ------------------------------------------------------------------------------------------ */

static tn_status div_sqrt_dim_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    tncuda_call_args a = {.size = t->shape[t->ndim - 1], .n = {!tncuda_is_float(t->dtype)}};

    (void)plan;
    return elements(x, "contrib_divide", 1, &a, err);
}

static tn_status quadratic_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.f = {tn_value_float(x->attrs[TN_contrib_quadratic_a]),
                                tn_value_float(x->attrs[TN_contrib_quadratic_b]),
                                tn_value_float(x->attrs[TN_contrib_quadratic_c])}};

    (void)plan;
    return elements(x, "contrib_quadratic", 1, &a, err);
}

static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return x->modes[0] == TN_MODE_NONE ? TN_OK : tnb_move_copy(plan, x, x->in[0], x->out[0], err);
}

static tn_status allclose_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->in[0]),
                          .n = {tn_value_int(x->attrs[TN_contrib_allclose_equal_nan])},
                          .f = {tn_value_float(x->attrs[TN_contrib_allclose_rtol]),
                                tn_value_float(x->attrs[TN_contrib_allclose_atol])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch_blocks(x, "contrib", "contrib_allclose", 1, &a, err);
}

/* ---- losses -------------------------------------------------------------------------------------------- */

/* in: y, label */
static tn_status svm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.size = x->in[0]->shape[x->in[0]->ndim - 1],
                          .n = {tn_value_int(x->attrs[TN_SVMOutput_use_linear])},
                          .f = {tn_value_float(x->attrs[TN_SVMOutput_margin]),
                                tn_value_float(x->attrs[TN_SVMOutput_regularization_coefficient])}};

    (void)plan;
    return elements(x, "contrib_svm", 2, &a, err);
}

static tn_status sparse_reg_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(bool), err);

    if (!st)
        *(bool *)plan->state = (node->flags & TN_NODE_TRAIN) != 0;
    return st;
}

/* in: data, moving_avg; out: output, average, moving_avg */
static tn_status sparse_reg_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.outer = x->in[0]->shape[0],
                          .size = x->in[0]->shape[1],
                          .n = {*(const bool *)plan->state},
                          .f = {tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_momentum])}};

    tncuda_call_arrays(x, 1, 3, &a);
    return tncuda_launch(x, "contrib", "contrib_sparse_reg", a.size, &a, err);
}

/* in: dy, average */
static tn_status sparse_reg_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.size = x->out[0]->shape[1],
                          .f = {tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_sparseness_target]),
                                tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_penalty])}};

    (void)plan;
    return elements(x, "contrib_sparse_reg_back", 2, &a, err);
}

/* ---- Fourier transforms -------------------------------------------------------------------------------- */

/* Complex numbers of a row; whether they are what comes in. */
static int64_t fft_length(const tn_tensor *in, const tn_tensor *out, bool *back)
{
    *back = in->shape[in->ndim - 1] > out->shape[out->ndim - 1];
    return *back ? out->shape[out->ndim - 1] : in->shape[in->ndim - 1];
}

/* The roots of 1 and two places for all rows. */
static tn_status fft_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);
    const int64_t a = tn_tensor_count(node->in[0]), b = tn_tensor_count(node->out[0]);

    plan->workspace_bytes = (uint64_t)(6 * tnb_least(a, b) + 1) * sizeof(double);
    return st;
}

/* The smallest factor of n above 1. */
static int64_t factor_of(int64_t n)
{
    int64_t p = 2;

    while (p * p <= n && n % p)
        p++;
    return p * p <= n ? p : n;
}

/* The factors of the length, the largest first: what is split last is joined first. */
static tn_status fft_join(const tn_exec *x, tncuda_call_args *a, tn_err *err)
{
    int64_t factor[64];
    int32_t count = 0;
    tn_status st = TN_OK;

    for (int64_t rest = a->size; rest > 1; rest /= factor[count - 1])
        factor[count++] = factor_of(rest);
    a->n[1] = 1;
    while (count-- > 0 && !st) {
        void *next = a->in[1].data;

        a->n[0] = factor[count];
        st = tncuda_launch(x, "contrib", "contrib_fft", a->count, a, err);
        a->n[1] *= factor[count];
        a->in[1].data = a->out[1].data;
        a->out[1].data = next;
    }
    return st;
}

static tn_status fft_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t few = tnb_least(tn_tensor_count(x->in[0]), tn_tensor_count(x->out[0]));
    tncuda_call_args a = {.count = few};
    bool back;
    tn_status st;

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.size = fft_length(x->in[0], x->out[0], &back);
    a.f[0] = back ? 1 : -1;
    a.n[0] = back;
    tncuda_call_arrays(x, 1, 1, &a);
    a.out[1].data = (double *)x->workspace + 2 * a.size;
    if ((st = tncuda_launch(x, "contrib", "contrib_roots", a.size, &a, err)) ||
        (st = tncuda_launch(x, "contrib", "contrib_complex", a.count, &a, err)))
        return st;
    a.in[1].data = a.out[1].data;
    a.out[1].data = (double *)a.in[1].data + 2 * few;
    if ((st = fft_join(x, &a, err)))
        return st;
    a.n[0] = back;
    a.count = tn_tensor_count(x->out[0]);
    return tncuda_launch(x, "contrib", "contrib_plain", a.count, &a, err);
}

/* ---- index_copy ---------------------------------------------------------------------------------------- */

static tn_status index_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = (uint64_t)node->in[0]->shape[0] * sizeof(int64_t);
    return st;
}

/* Rows of `old`; a row that an index names outside of it is left out. */
static tn_status index_begin(const tn_exec *x, tncuda_call_args *a, tn_err *err)
{
    const tn_tensor *old = x->in[0];

    a->room = x->workspace;
    a->outer = a->count = old->shape[0];
    a->size = tnb_dims(old, 1, old->ndim);
    a->n[0] = x->in[1]->shape[0];
    a->n[1] = (int64_t)tn_dtype_bytes(old->dtype);
    for (uint32_t k = 0; k < 2; k++)
        a->in[k] = (tncuda_array){x->in[k]->data, x->in[k]->dtype, TN_MODE_NONE};
    return tncuda_launch(x, "contrib", "contrib_index_last", a->count, a, err);
}

/* in: old_tensor, index_vector, new_tensor */
static tn_status index_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {0};
    const tn_status st = index_begin(x, &a, err);

    (void)plan;
    return st ? st : elements(x, "contrib_index_copy", 3, &a, err);
}

/* in: dy, index_vector, shape of new_tensor; out: gradients of old_tensor and new_tensor */
static tn_status index_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.n = {[2] = 1}};
    tn_status st = index_begin(x, &a, err);

    (void)plan;
    if (st || (st = elements(x, "contrib_index_copy", 2, &a, err)) || x->modes[1] == TN_MODE_NONE)
        return st;
    a.out[1] = (tncuda_array){x->out[1]->data, x->out[1]->dtype, x->modes[1]};
    a.count = tn_tensor_count(x->out[1]);
    return tncuda_launch(x, "contrib", "contrib_index_rows", a.count, &a, err);
}

static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};

const tn_kernel *const tncuda_family_contrib[] = {
    TNCUDA_ROW("_contrib_div_sqrt_dim", numbers, 0, tncuda_plain_prepare, div_sqrt_dim_run),
    TNCUDA_ROW("_contrib_quadratic", numbers, 0, tncuda_plain_prepare, quadratic_run),
    TNCUDA_ROW("_contrib_gradientmultiplier", all, 0, tncuda_plain_prepare, copy_run),
    TNCUDA_ROW("_contrib_allclose", all, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, allclose_run),
    TNCUDA_ROW("SVMOutput", floats, 0, tncuda_plain_prepare, copy_run),
    TNCUDA_ROW("_backward_SVMOutput", floats, 0, tncuda_plain_prepare, svm_run),
    TNCUDA_ROW("IdentityAttachKLSparseReg", floats, TN_KERNEL_EMPTY_OK, sparse_reg_prepare, sparse_reg_run),
    TNCUDA_ROW("_backward_IdentityAttachKLSparseReg", floats, 0, tncuda_plain_prepare, sparse_reg_back_run),
    TNCUDA_ROW("_contrib_fft", floats, 0, fft_prepare, fft_run),
    TNCUDA_ROW("_contrib_ifft", floats, 0, fft_prepare, fft_run),
    TNCUDA_ROW("_contrib_index_copy", all, 0, index_prepare, index_run),
    TNCUDA_ROW("_backward__contrib_index_copy", all, TN_KERNEL_EMPTY_OK, index_prepare, index_back_run),
    NULL,
};
