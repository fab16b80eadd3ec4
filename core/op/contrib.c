/*
 * Small operators of _contrib and two layers for training: products of interleaved queries, keys and values,
 * Fourier transforms, lookups.
 *
 * The gradient of SVMOutput is that of its loss, whatever arrives. IdentityAttachKLSparseReg is the identity;
 * to the gradient comes that of a divergence of the units' means, which its running mean follows in the
 * forward pass of training.
 */
#include <string.h>

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/op/contrib.h"
#include "tenon/plugin/op/scalar.h"

static const tn_attr_def fft_attrs[] = TN_ATTR_TABLE(contrib_fft);
static const tn_attr_def interleaved_attrs[] = TN_ATTR_TABLE(interleaved);

static tn_status getnnz_storage(tn_infer *i)
{
    if (i->in_storage[0] == TN_STORAGE_UNKNOWN)
        i->in_storage[0] = TN_STORAGE_CSR;
    if (i->in_storage[0] != TN_STORAGE_CSR)
        return tni_infer_fail(i, TN_E_UNSUPPORTED, "only csr arrays store elements that can be counted");
    i->out_storage[0] = TN_STORAGE_DENSE;
    return TN_OK;
}

/* All products of one call. */
static void product_cost(const tn_infer *i, tn_cost *c)
{
    const tn_shape *y = i->out_shape[0], *last = i->in_shape[i->in_count - 1];
    const bool scores = y->dim[1] >= 0 && strstr(i->op->name, "_qk") != NULL;
    const uint64_t width = (uint64_t)i->in_shape[0]->dim[2], heads = (uint64_t)tni_attr_int(i->attrs, 0);

    tni_cost_products(
        c, tn_cost_times(tni_cost_elements(y, 0),
                         scores ? width / heads / (i->in_count == 1 ? 3 : 1) : (uint64_t)last->dim[2]));
}

#define CONTRIB(name_, ...) TNI_ROW(name_, __VA_ARGS__)
#define INTERLEAVED(name_, doc_, shapes_, gradients_)                                                        \
    CONTRIB("_contrib_interleaved_matmul_" name_, .doc = doc_, .attrs = interleaved_attrs,                   \
            .shapes = shapes_, .types = "T:float", .gradients = gradients_, .cost = product_cost)

/* clang-format off */
const tn_op *const tni_family_contrib[] = {
    CONTRIB("_contrib_div_sqrt_dim", .doc = "Divides by the root of the last dimension.",
            .shapes = "data:(A..,D) -> output:data", .types = "T:number",
            .gradients = "composed: data = _contrib_div_sqrt_dim(dy)", .cost = tni_cost_each_output),
    CONTRIB("_contrib_quadratic", .doc = "a x * x + b x + c", .attrs = TNI_ATTRS(contrib_quadratic),
            .flags = TN_OP_POINTWISE, .shapes = "data:(S..) -> output:data", .types = "T:number",
            .gradients = "composed: slope = data*a*2+b ; data = dy*slope"),
    CONTRIB("_contrib_gradientmultiplier", .doc = "The input; its gradient is multiplied by scalar.",
            .attrs = TNI_ATTRS(scalar), .flags = TN_OP_POINTWISE, .shapes = "data:(S..) -> output:data",
            .gradients = "composed: data = dy*scalar"),
    CONTRIB("_contrib_index_copy",
            .doc = "old_tensor with rows of new_tensor in place of those of index_vector.",
            .flags = TN_OP_CHECKS_VALUES, .types = "index_vector:I",
            .shapes = "old_tensor:(M:rows,R..) index_vector:(K) new_tensor:(K,R..) "
                      "-> output:old_tensor ; L=M-K",
            .gradients = "once: dy index_vector ~new_tensor -> old_tensor index_vector=0 new_tensor"),
    CONTRIB("_contrib_allclose", .doc = "1 if |a - b| <= atol + rtol |b| everywhere, else 0.",
            .attrs = TNI_ATTRS(contrib_allclose), .flags = TN_OP_ZERO_GRADIENT,
            .shapes = "a:(S..) b:a -> output:()", .types = "output:u8", .cost = tni_cost_each_input),
    CONTRIB("_contrib_getnnz", .doc = "How many elements a csr array stores, in all or in each row.",
            .attrs = TNI_ATTRS(contrib_getnnz), .flags = TN_OP_ZERO_GRADIENT, .storage = getnnz_storage,
            .shapes = "[axis=None] data:(M,N) -> output:(1) | [axis] data:(M,N) -> output:(M)"
                      " | data:(M,N) -> output:(N)",
            .types = "data:D; output:i64"),
    CONTRIB("_contrib_fft", .doc = "Fourier transforms of rows: real and imaginary parts in turn.",
            .attrs = fft_attrs, .shapes = "data:(A..,D) -> output:(A..,D*2)", .types = "T:float",
            .gradients = "composed: data = _contrib_ifft!(dy)"),
    CONTRIB("_contrib_ifft", .doc = "The real parts of inverse transforms of rows, times their length.",
            .attrs = fft_attrs, .shapes = "data:(A..,D*2) -> output:(A..,D)", .types = "T:float",
            .gradients = "composed: data = _contrib_fft!(dy)"),
    INTERLEAVED("selfatt_qk",
                "Products of queries and keys of each head, divided by the root of their length.",
                "queries_keys_values:(L,B,E) -> output:(B*heads,L,L) ; D=E/3/heads",
                "once: dy queries_keys_values -> queries_keys_values"),
    INTERLEAVED("selfatt_valatt", "Sums of each head's values weighted by attention.",
                "queries_keys_values:(L,B,E*3) attention:(B*heads,L,L) -> output:(L,B,E) ; D=E/heads",
                "bilinear: dy queries_keys_values attention -> queries_keys_values attention"),
    INTERLEAVED("encdec_qk",
                "Products of queries and keys of each head, divided by the root of their length.",
                "queries:(L,B,E) keys_values:(M,B,E*2) -> output:(B*heads,L,M) ; D=E/heads",
                "bilinear: dy queries keys_values -> queries keys_values"),
    INTERLEAVED("encdec_valatt", "Sums of each head's values weighted by attention.",
                "keys_values:(M,B,E*2) attention:(B*heads,L,M) -> output:(L,B,E) ; D=E/heads",
                "bilinear: dy keys_values attention -> keys_values attention"),
    CONTRIB("IdentityAttachKLSparseReg",
            .doc = "The input; its gradient draws the units' means to a target.",
            .attrs = TNI_ATTRS(IdentityAttachKLSparseReg), .flags = TN_OP_MUTATES_TRAINING,
            .mutates = 1u << 1,
            .shapes = "data:(N,C:units) moving_avg:(C) -> output:data average~:(C)", .types = "T:float",
            .gradients = "once: dy average -> data"),
    CONTRIB("SVMOutput", .doc = "The input; hinge loss of each example's class against all others.",
            .attrs = TNI_ATTRS(SVMOutput), .flags = TN_OP_IGNORE_HEAD,
            .shapes = "data:(A..,C) label:(A..) -> output:data",
            .types = "T:float", .gradients = "once: output label -> data label=0"),
    NULL,
};
/* clang-format on */
