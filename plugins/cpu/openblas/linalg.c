/*
 * Linear algebra on OpenBLAS and the LAPACK within it: decision 37. One call of the library is one thread's;
 * the matrices of a batch are shared out among the team. Contracts:
 * ../../common/linalg_bodies.inc.
 */
#include <limits.h>
#include <math.h>

#include "lapack.h"
#include "openblas.h"

#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/linalg_product.inc"

_Static_assert(sizeof(blasint) <= sizeof(float), "an integer takes one element of room");
#define LAPACK_BLOCK 64 /* columns at a time: what LAPACK takes where it gets as much room */

/* ---- room: of `work`, in elements; an integer takes one --------------------------------------------- */

static int64_t lu_room(int64_t n, int64_t k)
{
    return n + n * tncpu_max(k, LAPACK_BLOCK);
}

static int64_t lq_room(int64_t m)
{
    return m + m * LAPACK_BLOCK;
}

static int64_t eigh_room(int64_t n)
{
    return 1 + 6 * n + 2 * n * n + 3 + 5 * n;
}

static int64_t svd_work(int64_t m, int64_t n)
{
    return 7 * m + 5 * m * m + n + LAPACK_BLOCK * (m + n);
}

static int64_t svd_room(int64_t m, int64_t n)
{
    return svd_work(m, n) + 8 * m;
}

static int64_t eig_room(int64_t n)
{
    return LAPACK_BLOCK * n + n;
}

#include "../../common/index.h"
#include "../../common/linalg_forms.inc"
#include "../../common/linalg_sizes.inc"
#include "../common/linalg.inc"

/* Where there is nothing, the pointers may be NULL. */
static void bytes_copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes)
        memcpy(to, from, (size_t)bytes);
}

#define LOAD(k, at, n, to) bytes_copy(to, (const T *)c->x->in[k]->data + (at), (uint64_t)(n) * sizeof(T))
#define LOAD_ONE(k, at) ((const T *)c->x->in[k]->data)[at]
#define STORE(o, at, n, from) bytes_copy((T *)c->x->out[o]->data + (at), from, (uint64_t)(n) * sizeof(T))

#define T float
#define X s
#define NAME(x) x##_f32
#include "lapack.inc"

#include "../../common/linalg_bodies.inc"
#undef T
#undef X
#undef NAME

#define T double
#define X d
#define NAME(x) x##_f64
#include "lapack.inc"

#include "../../common/linalg_bodies.inc"

#define BODY(x) x##_f32, x##_f64
static const tncpu_la_form forms[] = {LA_FORMS};

static void matrices_release(tn_plan *plan)
{
    tncpu_block_free(plan->state);
    plan->state = NULL;
}

static tn_status matrices_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int64_t largest = 0;
    tn_status st;

    for (uint32_t i = 0; i < node->in_count; i++)
        for (int32_t d = 0; d < node->in[i]->ndim; d++)
            largest = tncpu_max(largest, node->in[i]->shape[d]);
    if ((st = tncpu_gemm_serves(largest, err)) ||
        (st = tncpu_la_prepare(forms, plugin, node, plan, 0.2, err)))
        return st;
    if (plan->workspace_bytes / plan->threads <= INT_MAX)
        return TN_OK;
    matrices_release(plan);
    return tn_fail(err, TN_E_UNSUPPORTED, "a matrix is too large for the library's integers");
}

/* All arguments have the type of the one that is named. */
#define MATRICES(op_, argument)                                                                              \
    &(const tn_kernel)                                                                                       \
    {                                                                                                        \
        .struct_size = (uint32_t)sizeof(tn_kernel), .rank = KERNEL_RANK, .op = op_, .name = KERNEL_NAME,     \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_EMPTY_OK,                                               \
        .types = (const char *const[]){argument ":f32,f64", "*:=" argument, NULL},                           \
        .prepare = matrices_prepare, .run = tncpu_la_run, .release = matrices_release                        \
    }
/* clang-format off */
const tn_kernel *const tnblas_family_linalg[] = {
    &gemm, &gemm2, &syrk,
    MATRICES("_linalg_potrf", "A"), MATRICES("_linalg_potri", "A"), MATRICES("_linalg_trmm", "A"),
    MATRICES("_linalg_trsm", "A"), MATRICES("_linalg_gelqf", "A"), MATRICES("_linalg_syevd", "A"),
    MATRICES("_backward__linalg_syevd", "U"), MATRICES("_linalg_inverse", "A"), MATRICES("_linalg_det", "A"),
    MATRICES("_backward__linalg_det", "A"), MATRICES("_linalg_slogdet", "A"),
    MATRICES("_backward__linalg_slogdet", "A"), MATRICES("_npi_solve", "A"),
    MATRICES("_backward__npi_solve", "A"), MATRICES("_npi_tensorinv", "a"),
    MATRICES("_backward__npi_tensorinv", "a"), MATRICES("_npi_tensorsolve", "a"),
    MATRICES("_backward__npi_tensorsolve", "a"), MATRICES("_npi_eigh", "A"), MATRICES("_npi_eigvalsh", "A"),
    MATRICES("_npi_eig", "A"), MATRICES("_npi_eigvals", "A"), MATRICES("_npi_svd", "A"),
    MATRICES("_backward__npi_svd", "V"), MATRICES("_npi_pinv", "A"), MATRICES("_npi_pinv_scalar_rcond", "A"),
    NULL,
};
/* clang-format on */
