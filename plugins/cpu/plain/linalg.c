/*
 * Linear algebra in double, whatever the data type: products and the kernels that move diagonals and
 * triangles here, the decompositions by decompose.c. cpu-openblas has the same bodies on LAPACK.
 */
#include <math.h>

#include "convert.h"
#include "decompose.h"

#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/linalg_product.inc"
#include "../../common/linalg_forms.inc"
#include "../../common/linalg_sizes.inc"
#include "../common/linalg.inc"
#include "../../common/index.h"

#define T double
#define NAME(x) tncpu_la_##x
#define LOAD(k, at, n, to) tncpu_numbers(c->x->in[k], at, 1, n, to)
#define LOAD_ONE(k, at) tncpu_number(c->x->in[k], at)
#define STORE(o, at, n, from) tncpu_numbers_store(c->x->out[o], at, 1, n, from)
#include "../../common/linalg_bodies.inc"

/* ---- diagonals and triangles --------------------------------------------------------------------- */

static int sumlogdiag(const tncpu_la_call *c, int64_t i, void *room)
{
    const int64_t n = c->s.n;
    double *diagonal = room, sum = 0;

    tncpu_numbers(c->x->in[0], i * n * n, n + 1, n, diagonal);
    for (int64_t j = 0; j < n; j++)
        sum += log(diagonal[j]);
    tncpu_numbers_store(c->x->out[0], i, 1, 1, &sum);
    return 0;
}

/* Zeros for a square matrix of output 0. */
static void square_clear(const tncpu_la_call *c, int64_t i, int64_t n, double *room)
{
    memset(room, 0, (size_t)n * sizeof *room);
    for (int64_t row = 0; row < n; row++)
        tncpu_numbers_store(c->x->out[0], (i * n + row) * n, 1, n, room);
}

/* in: dy, a */
static int backward_sumlogdiag(const tncpu_la_call *c, int64_t i, void *room)
{
    const int64_t n = c->s.n;
    double *diagonal = room, dy;

    square_clear(c, i, n, diagonal);
    tncpu_numbers(c->x->in[0], i, 1, 1, &dy);
    tncpu_numbers(c->x->in[1], i * n * n, n + 1, n, diagonal);
    for (int64_t j = 0; j < n; j++)
        diagonal[j] = dy / diagonal[j];
    tncpu_numbers_store(c->x->out[0], i * n * n, n + 1, n, diagonal);
    return 0;
}

/* Where diagonal `offset` of matrix i begins. */
static int64_t diagonal_at(int64_t i, int64_t n, int64_t offset)
{
    return i * n * n + (offset < 0 ? -offset * n : offset);
}

static int extractdiag(const tncpu_la_call *c, int64_t i, void *room)
{
    const int64_t n = c->s.n, offset = tn_value_int(c->x->attrs[TN_linalg_diag_offset]),
                  length = n - (offset < 0 ? -offset : offset);

    tncpu_numbers(c->x->in[0], diagonal_at(i, n, offset), n + 1, length, room);
    tncpu_numbers_store(c->x->out[0], i * length, 1, length, room);
    return 0;
}

static int makediag(const tncpu_la_call *c, int64_t i, void *room)
{
    const int64_t n = c->s.n, offset = tn_value_int(c->x->attrs[TN_linalg_diag_offset]),
                  length = n - (offset < 0 ? -offset : offset);

    square_clear(c, i, n, room);
    tncpu_numbers(c->x->in[0], i * length, 1, length, room);
    tncpu_numbers_store(c->x->out[0], diagonal_at(i, n, offset), n + 1, length, room);
    return 0;
}

/* Rows of the triangle, or for the upper one columns, between a matrix of `square` and the packed tensor. */
static void triangle_move(const tncpu_la_call *c, int64_t i, double *room, bool make)
{
    const int64_t n = c->s.n, offset = tn_value_int(c->x->attrs[TN_linalg_trian_offset]),
                  away = offset < 0 ? -offset : offset, rows = n - away;
    const bool upper = offset > 0 || (offset == 0 && !tn_value_int(c->x->attrs[TN_linalg_trian_lower]));

    for (int64_t row = 0; row < rows; row++) {
        const int64_t packed = i * (rows * (rows + 1) / 2) + row * (row + 1) / 2,
                      square = i * n * n + (row + away) * (upper ? 1 : n), step = upper ? n : 1;

        tncpu_numbers(c->x->in[0], make ? packed : square, make ? 1 : step, row + 1, room);
        tncpu_numbers_store(c->x->out[0], make ? square : packed, make ? step : 1, row + 1, room);
    }
}

static int extracttrian(const tncpu_la_call *c, int64_t i, void *room)
{
    triangle_move(c, i, room, false);
    return 0;
}

static int maketrian(const tncpu_la_call *c, int64_t i, void *room)
{
    square_clear(c, i, c->s.n, room);
    triangle_move(c, i, room, true);
    return 0;
}

static void size_made(const tn_node *node, tnb_la_sizes *s)
{
    sizes_of(node->out[0], s);
}

static int64_t room_row(const tnb_la_sizes *s)
{
    return s->n;
}

/* ---- the table ----------------------------------------------------------------------------------- */

#define BODY(x) NULL, tncpu_la_##x
static const tncpu_la_form forms[] = {
    LA_FORMS{"_linalg_sumlogdiag", size_first, room_row, NULL, sumlogdiag, APART, ""},
    {"_backward__linalg_sumlogdiag", size_second, room_row, NULL, backward_sumlogdiag, APART, ""},
    {"_linalg_extractdiag", size_first, room_row, NULL, extractdiag, APART, ""},
    {"_linalg_makediag", size_made, room_row, NULL, makediag, APART, ""},
    {"_linalg_extracttrian", size_first, room_row, NULL, extracttrian, APART, ""},
    {"_linalg_maketrian", size_made, room_row, NULL, maketrian, APART, ""},
};

static tn_status matrices_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncpu_la_prepare(forms, plugin, node, plan, 1.0, err);
}

#define WIDE "*:f32,f64"
#define ANY "f32,f64,u8,i32,i8,i64,i16,u16,u32,u64,bf16"
#define BACK "*:f32,f64,bf16" /* gradients are of what is differentiated */
#define MATRICES(op, ...)                                                                                    \
    TNCPU_ROW(op, TNCPU_TYPES(__VA_ARGS__), TN_KERNEL_EMPTY_OK, matrices_prepare, tncpu_la_run)
/* clang-format off */
const tn_kernel *const tncpu_family_linalg[] = {
    &gemm, &gemm2, &syrk,
    MATRICES("_linalg_potrf", WIDE), MATRICES("_linalg_potri", WIDE), MATRICES("_linalg_trmm", WIDE),
    MATRICES("_linalg_trsm", WIDE), MATRICES("_linalg_gelqf", WIDE), MATRICES("_linalg_syevd", WIDE),
    MATRICES("_backward__linalg_syevd", WIDE), MATRICES("_linalg_inverse", WIDE),
    MATRICES("_linalg_det", WIDE), MATRICES("_backward__linalg_det", WIDE),
    MATRICES("_linalg_slogdet", WIDE), MATRICES("_backward__linalg_slogdet", WIDE),
    MATRICES("_linalg_sumlogdiag", WIDE), MATRICES("_backward__linalg_sumlogdiag", WIDE),
    MATRICES("_linalg_extractdiag", WIDE), MATRICES("_linalg_makediag", WIDE),
    MATRICES("_linalg_extracttrian", WIDE), MATRICES("_linalg_maketrian", WIDE),
    MATRICES("_npi_solve", "A:" ANY, "B:" ANY, WIDE), MATRICES("_backward__npi_solve", BACK),
    MATRICES("_npi_tensorinv", "a:" ANY, WIDE), MATRICES("_backward__npi_tensorinv", BACK),
    MATRICES("_npi_tensorsolve", "a:" ANY, "b:" ANY, WIDE), MATRICES("_backward__npi_tensorsolve", BACK),
    MATRICES("_npi_eigh", "A:" ANY, WIDE), MATRICES("_npi_eigvalsh", "A:" ANY, WIDE),
    MATRICES("_npi_eig", "A:" ANY, WIDE), MATRICES("_npi_eigvals", "A:" ANY, WIDE),
    MATRICES("_npi_svd", WIDE), MATRICES("_backward__npi_svd", WIDE), MATRICES("_npi_pinv", "A:" ANY, WIDE),
    MATRICES("_npi_pinv_scalar_rcond", "A:" ANY, WIDE),
    NULL,
};
/* clang-format on */
