/*
 * Linear algebra, matrix by matrix: kernels/linalg.cu. A matrix that hosts refuse gives NaN here: nobody
 * looks at values before the results are read.
 */
#include "../common/decompose.h"
#include "../common/linalg_sizes.inc"
#include "../common/move.h"
#include "launch.h"

#define BLOCKS_MAX 128 /* matrices that have room at a time */

typedef struct la_form {
    const char *op;
    void (*size)(const tn_node *node, tnb_la_sizes *s);
    int64_t (*room)(const tnb_la_sizes *s);
    const char *kernel;
    int32_t out, in;
    const char *wrong; /* what hosts say */
} la_form;

typedef struct la_state {
    const la_form *form;
    uint32_t in_count, out_count;
    int64_t blocks;
    tncuda_la_args args;
} la_state;

#define BODY(x) "la_" #x "_all"
#include "../common/linalg_forms.inc"
static const la_form forms[] = {LA_FORMS};

static tn_status matrices_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const la_form *f = forms;
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(la_state), err);
    la_state *s = plan->state;
    bool written = false;

    if (st)
        return st;
    while (strcmp(f->op, node->op) != 0)
        f++;
    s->form = f;
    s->in_count = node->in_count;
    s->out_count = node->out_count;
    for (uint32_t o = 0; o < node->out_count; o++)
        written |= tn_tensor_count(node->out[o]) > 0;
    if (!written) /* sizes may be any */
        return TN_OK;
    f->size(node, &s->args.s);
    s->blocks = tnb_least(s->args.s.count, BLOCKS_MAX);
    for (uint32_t o = 0; o < node->out_count; o++)
        s->args.out_each[o] = tn_tensor_count(node->out[o]) / (s->args.s.count ? s->args.s.count : 1);
    s->args.room_each = f->room(&s->args.s);
    plan->workspace_bytes = (uint64_t)(s->blocks * s->args.room_each) * sizeof(double);
    plan->workspace_align = sizeof(double);
    return TN_OK;
}

static tn_status matrices_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const la_state *s = plan->state;
    tncuda_la_args a = s->args;

    la_read(s->form->op, x->attrs, x->in, x->out[0], &a.how);
    for (uint32_t k = 0; k < s->in_count; k++)
        a.in[k] = (tncuda_array){x->in[k]->data, x->in[k]->dtype, TN_MODE_NONE};
    for (uint32_t o = 0; o < s->out_count; o++)
        a.out[o] = (tncuda_array){x->out[o]->data, x->out[o]->dtype, x->modes[o]};
    a.room = x->workspace;
    return tncuda_launch_blocks(x, "linalg", s->form->kernel, s->blocks, &a, err);
}

/* ---- diagonals and triangles --------------------------------------------------------------------------- */

static int64_t side(const tn_tensor *square)
{
    return square->shape[square->ndim - 1];
}

static tn_status sumlogdiag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]), .size = side(x->in[0])};

    (void)plan;
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "linalg", "la_sumlogdiag", a.count, &a, err);
}

/* in: dy, a */
static tn_status backward_sumlogdiag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]), .size = side(x->in[1])};

    (void)plan;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch(x, "linalg", "la_sumlogdiag_back", a.count, &a, err);
}

/* Diagonal `offset` of the matrices of `square`, and as many elements for each behind each other. */
static tn_status diagonal_move(const tn_plan *plan, const tn_exec *x, const tn_tensor *square, bool make,
                               tn_err *err)
{
    const int64_t n = side(square), offset = tn_value_int(x->attrs[TN_linalg_diag_offset]),
                  length = n - (offset < 0 ? -offset : offset);
    const int64_t first = (offset < 0 ? -offset * n : offset) * (int64_t)tn_dtype_bytes(square->dtype);
    const char *from = (const char *)x->in[0]->data + (make ? 0 : first);
    tnb_move m;
    tn_status st = TN_OK;

    if (!tn_tensor_count(square))
        return TN_OK;
    tnb_move_begin(&m, square->dtype);
    tnb_move_add(&m, tn_tensor_count(square) / n / n, make ? length : n * n, make ? n * n : length);
    tnb_move_add(&m, length, make ? 1 : n + 1, make ? n + 1 : 1);
    if (make)
        st = tnb_move_zero(plan, x, x->out[0], err);
    return st ? st : tnb_move_run(plan, x, &m, from, (char *)x->out[0]->data + (make ? first : 0), err);
}

static tn_status extractdiag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return diagonal_move(plan, x, x->in[0], false, err);
}

static tn_status makediag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return diagonal_move(plan, x, x->out[0], true, err);
}

static tn_status triangle_run(const tn_exec *x, const tn_tensor *square, bool make, tn_err *err)
{
    const int64_t offset = tn_value_int(x->attrs[TN_linalg_trian_offset]);
    const bool upper = offset > 0 || (offset == 0 && !tn_value_int(x->attrs[TN_linalg_trian_lower]));
    tncuda_call_args a = {
        .count = tn_tensor_count(square),
        .size = side(square),
        .n = {offset < 0 ? -offset : offset, upper, make, (int64_t)tn_dtype_bytes(square->dtype)}};

    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "linalg", "la_triangle", a.count, &a, err);
}

static tn_status extracttrian_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return triangle_run(x, x->in[0], false, err);
}

static tn_status maketrian_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return triangle_run(x, x->out[0], true, err);
}

#define WIDE "*:f32,f64"
#define ANY "f32,f64,u8,i32,i8,i64,i16,u16,u32,u64,bf16"
static const char *const wide[] = {WIDE, NULL};
static const char *const back[] = {"*:f32,f64,bf16", NULL};
static const char *const matrix[] = {"A:" ANY, WIDE, NULL};
static const char *const tensor[] = {"a:" ANY, WIDE, NULL};
static const char *const systems[] = {"A:" ANY, "B:" ANY, WIDE, NULL};
static const char *const tensor_systems[] = {"a:" ANY, "b:" ANY, WIDE, NULL};

#define MATRICES(op, types) TNCUDA_ROW(op, types, TN_KERNEL_EMPTY_OK, matrices_prepare, matrices_run)
#define SIMPLE(op, run) TNCUDA_ROW(op, wide, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, run)
const tn_kernel *const tncuda_family_linalg[] = {
    MATRICES("_linalg_potrf", wide),
    MATRICES("_linalg_potri", wide),
    MATRICES("_linalg_trmm", wide),
    MATRICES("_linalg_trsm", wide),
    MATRICES("_linalg_gelqf", wide),
    MATRICES("_linalg_syevd", wide),
    MATRICES("_backward__linalg_syevd", wide),
    MATRICES("_linalg_inverse", wide),
    MATRICES("_linalg_det", wide),
    MATRICES("_backward__linalg_det", wide),
    MATRICES("_linalg_slogdet", wide),
    MATRICES("_backward__linalg_slogdet", wide),
    MATRICES("_npi_solve", systems),
    MATRICES("_backward__npi_solve", back),
    MATRICES("_npi_tensorinv", tensor),
    MATRICES("_backward__npi_tensorinv", back),
    MATRICES("_npi_tensorsolve", tensor_systems),
    MATRICES("_backward__npi_tensorsolve", back),
    MATRICES("_npi_eigh", matrix),
    MATRICES("_npi_eigvalsh", matrix),
    MATRICES("_npi_eig", matrix),
    MATRICES("_npi_eigvals", matrix),
    MATRICES("_npi_svd", wide),
    MATRICES("_backward__npi_svd", wide),
    MATRICES("_npi_pinv", matrix),
    MATRICES("_npi_pinv_scalar_rcond", matrix),
    SIMPLE("_linalg_sumlogdiag", sumlogdiag_run),
    SIMPLE("_backward__linalg_sumlogdiag", backward_sumlogdiag_run),
    SIMPLE("_linalg_extractdiag", extractdiag_run),
    SIMPLE("_linalg_makediag", makediag_run),
    SIMPLE("_linalg_extracttrian", extracttrian_run),
    SIMPLE("_linalg_maketrian", maketrian_run),
    NULL,
};
