/*
 * Linear algebra in double: a block computes one matrix at a time, in global memory. Where hosts refuse a
 * matrix the result is NaN. The order of all sums is that of hosts.
 */
#include "over.h"

#define T double
#define NAME(x) la_##x
#define LA(x) la_##x
#define LA_CALL tncuda_la_args
#define LA_OWN TNCUDA_INLINE
#define LA_PUBLIC TNCUDA_APART
#define FIRST (TNCUDA_THREAD == 0)
#define SYNC() TNCUDA_SYNC()
#define EACH(i, first, end)                                                                                  \
    for (int64_t i = (first) + TNCUDA_THREAD; i < (end); i += TNCUDA_BLOCK_THREADS)
#define WANTED(o) (c->out[o].mode != 0)
#define LOAD(k, at, n, to)                                                                                   \
    do {                                                                                                     \
        EACH(e_, 0, n)                                                                                       \
        (to)[e_] = element_number(c->in[k].data, c->in[k].dtype, (at) + e_);                                 \
        SYNC();                                                                                              \
    } while (0)
#define LOAD_ONE(k, at) element_number(c->in[k].data, c->in[k].dtype, at)
#define STORE(o, at, n, from)                                                                                \
    do {                                                                                                     \
        EACH(e_, 0, n)                                                                                       \
        element_set_number(c->out[o].data, c->out[o].dtype, (at) + e_, (from)[e_]);                          \
    } while (0)

#include "../../common/decompose.inc"
#include "../../common/eigen.inc"
#include "../../common/linalg_bodies.inc"

LA_OWN void la_refuse(const LA_CALL *c, int64_t i)
{
    for (int32_t o = 0; o < 3; o++)
        if (WANTED(o))
            EACH(e, 0, c->out_each[o])
            element_set_number(c->out[o].data, c->out[o].dtype, e + i * c->out_each[o], NAN);
}

#define MATRICES(name)                                                                                       \
    TNCUDA_KERNEL(la_##name##_all, SYNC, tncuda_la_args)                                                     \
    {                                                                                                        \
        double *room = call->room + TNCUDA_BLOCK * call->room_each;                                          \
                                                                                                             \
        for (int64_t i = TNCUDA_BLOCK; i < call->s.count; i += TNCUDA_BLOCKS) {                              \
            const int failed = la_##name(call, i, room);                                                     \
                                                                                                             \
            SYNC();                                                                                          \
            if (failed)                                                                                      \
                la_refuse(call, i);                                                                          \
            SYNC();                                                                                          \
        }                                                                                                    \
    }
MATRICES(potrf)
MATRICES(potri)
MATRICES(trmm_body)
MATRICES(trsm_body)
MATRICES(gelqf)
MATRICES(syevd)
MATRICES(backward_syevd)
MATRICES(inverse_body)
MATRICES(det)
MATRICES(backward_det)
MATRICES(slogdet)
MATRICES(backward_slogdet)
MATRICES(solve_body)
MATRICES(backward_solve)
MATRICES(backward_inverse)
MATRICES(tensorsolve)
MATRICES(backward_tensorsolve)
MATRICES(eigh_body)
MATRICES(eigvalsh)
MATRICES(eig_body)
MATRICES(eigvals)
MATRICES(svd_body)
MATRICES(backward_svd)
MATRICES(pinv)
MATRICES(pinv_scalar_rcond)

/* ---- norms ---------------------------------------------------------------------------------------- */

#include "../../common/norms.inc"

#define NORM_AT(i, j) (base + (i)*call->what.row + (j)*call->what.col)
#define NORM_DATA(at) element_number(call->data.data, call->data.dtype, at)
#define NORM_GIVE(at, v) element_set_number(call->to.data, call->to.dtype, at, v)

TNCUDA_INLINE void norm_walk(const tncuda_norm_args *call, int64_t base, la_vector_sum *v)
{
    for (int64_t i = 0; i < call->what.m; i++)
        for (int64_t j = 0; j < call->what.n; j++) {
            const double x = NORM_DATA(NORM_AT(i, j));

            la_vector_add(v, &x, 1);
        }
}

TNCUDA_INLINE double norm_of(const tncuda_norm_args *call, int64_t base)
{
    la_vector_sum v;
    double norm = 0;

    v.most = v.unit = v.sum = 0;
    v.least = INFINITY;
    v.ord = call->what.ord;
    norm_walk(call, base, &v);
    if (!la_vector_again(&v, call->what.n, &norm))
        return norm;
    norm_walk(call, base, &v);
    return la_vector_norm(&v);
}

TNCUDA_KERNEL(norm_vectors, FREE, tncuda_norm_args)
{
    for (int64_t o = TNCUDA_FIRST; o < call->over.outer; o += TNCUDA_STEP)
        NORM_GIVE(o, call->what.m && call->what.n ? norm_of(call, over_first(&call->over, o)) : 0.0);
}

TNCUDA_KERNEL(norm_vectors_back, FREE, tncuda_norm_args)
{
    for (int64_t o = TNCUDA_FIRST; o < call->over.outer; o += TNCUDA_STEP) {
        const int64_t base = over_first(&call->over, o);
        const double y = norm_of(call, base), dy = element_number(call->dy.data, call->dy.dtype, o);

        for (int64_t i = 0; i < call->what.m; i++)
            for (int64_t j = 0; j < call->what.n; j++)
                NORM_GIVE(NORM_AT(i, j), dy * la_vector_slope(call->what.ord, NORM_DATA(NORM_AT(i, j)), y));
    }
}

/* Where element k of the matrix, or of its transpose, lies. */
TNCUDA_INLINE int64_t norm_place(const tncuda_norm_args *call, int64_t base, int64_t k, bool turned)
{
    const int64_t i = turned ? k % call->what.m : k / call->what.n,
                  j = turned ? k / call->what.m : k % call->what.n;

    return NORM_AT(i, j);
}

TNCUDA_KERNEL(norm_matrices, SYNC, tncuda_norm_args)
{
    double *room = call->room + TNCUDA_BLOCK * call->room_each;
    const bool turned = la_norm_turned(&call->what), any = call->what.m && call->what.n;

    for (int64_t o = TNCUDA_BLOCK; o < call->over.outer; o += TNCUDA_BLOCKS) {
        const int64_t base = over_first(&call->over, o);
        double y = 0;

        EACH(k, 0, call->what.m * call->what.n)
        room[k] = NORM_DATA(norm_place(call, base, k, turned));
        SYNC();
        if (any)
            y = la_matrix_norm(&call->what, room);
        if (FIRST)
            NORM_GIVE(o, y);
        SYNC();
    }
}

TNCUDA_KERNEL(norm_matrices_back, SYNC, tncuda_norm_args)
{
    double *room = call->room + TNCUDA_BLOCK * call->room_each;
    const bool turned = la_norm_turned(&call->what);

    for (int64_t o = TNCUDA_BLOCK; o < call->over.outer; o += TNCUDA_BLOCKS) {
        const int64_t base = over_first(&call->over, o);
        const double *dx;

        EACH(k, 0, call->what.m * call->what.n)
        room[k] = NORM_DATA(norm_place(call, base, k, turned));
        SYNC();
        dx = la_matrix_norm_back(&call->what, element_number(call->dy.data, call->dy.dtype, o), room);
        EACH(k, 0, call->what.m * call->what.n)
        NORM_GIVE(norm_place(call, base, k, turned), dx[k]);
        SYNC();
    }
}

/* ---- diagonals and triangles: count; size n of the matrices (n, n) -------------------------------- */

TNCUDA_KERNEL(la_sumlogdiag, FREE, tncuda_call_args)
{
    const int64_t n = call->size;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        double sum = 0;

        for (int64_t j = 0; j < n; j++)
            sum += log(NUMBER_IN(0, (i * n + j) * n + j));
        NUMBER_OUT(0, i, sum);
    }
}

/* in: dy, a */
TNCUDA_KERNEL(la_sumlogdiag_back, FREE, tncuda_call_args)
{
    const int64_t n = call->size;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, i / n % n == i % n ? NUMBER_IN(0, i / n / n) / NUMBER_IN(1, i) : 0.0);
}

/* Element i of the matrices is one of the packed triangle, or 0. n: how far the diagonal is away, whether the
 * triangle is the upper one, whether matrices are made, bytes of an element. */
TNCUDA_KERNEL(la_triangle, FREE, tncuda_call_args)
{
    const int64_t n = call->size, away = call->n[0], rows = n - away, bytes = call->n[3];

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t r = i / n % n, c = i % n, row = (call->n[1] ? c : r) - away, at = call->n[1] ? r : c;
        const int64_t packed = i / n / n * (rows * (rows + 1) / 2) + row * (row + 1) / 2 + at;
        const int32_t inside = row >= 0 && at <= row;

        if (inside && call->n[2])
            element_move(call->out[0].data, i, call->in[0].data, packed, bytes);
        else if (inside)
            element_move(call->out[0].data, packed, call->in[0].data, i, bytes);
        else if (call->n[2])
            element_zero(call->out[0].data, i, bytes);
    }
}
