/* _npi_norm: norms of vectors, of matrices, or of all elements: ../../common/norms.inc. One output is one
 * thread's. */
#include "../../common/norms.h"
#include "decompose.h"
#include "rows.h"

#define LA(x) tncpu_la_##x
#include "../../common/norms.inc"

typedef struct norm_call {
    const tnb_norm_plan *p;
    const tn_exec *x;
} norm_call;

static tn_status norm_plan_make(void *plugin, const tn_node *node, tn_plan *plan, const tn_tensor *data,
                                tn_err *err)
{
    const tn_status st = tncpu_state(plugin, plan, sizeof(tnb_norm_plan), err);
    tnb_norm_plan *p = plan->state;

    if (st)
        return st;
    *p = tnb_norm_of(node, data);
    tncpu_plan_tasks(node, plan,
                     50 + (double)p->kept.count * (50 + (double)p->what.m * (double)p->what.n * 10),
                     p->kept.count);
    if (tn_tensor_count(data) && tnb_norm_room(&p->what))
        tncpu_plan_workspace(plan, (uint64_t)tnb_norm_room(&p->what) * sizeof(double));
    return TN_OK;
}

static tn_status norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return norm_plan_make(plugin, node, plan, node->in[0], err);
}

/* in: dy, data */
static tn_status backward_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return norm_plan_make(plugin, node, plan, node->in[1], err);
}

/* ---- vectors ------------------------------------------------------------------------------------- */

static void vector_walk(const tnb_norm *p, const tn_tensor *data, int64_t base, la_vector_sum *v)
{
    double tile[TNCPU_TILE];

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t at = 0; at < p->n; at += TNCPU_TILE) {
            const int64_t n = tncpu_min(TNCPU_TILE, p->n - at);

            tncpu_numbers(data, base + i * p->row + at * p->col, p->col, n, tile);
            la_vector_add(v, tile, n);
        }
}

static double vector_norm(const tnb_norm *p, const tn_tensor *data, int64_t base)
{
    la_vector_sum v = {.least = INFINITY, .ord = p->ord};
    double norm;

    vector_walk(p, data, base, &v);
    if (!la_vector_again(&v, p->n, &norm))
        return norm;
    vector_walk(p, data, base, &v);
    return la_vector_norm(&v);
}

static void vector_backward(const tnb_norm *p, const tn_exec *x, int64_t base, double dy, double y)
{
    double tile[TNCPU_TILE];

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t at = 0; at < p->n; at += TNCPU_TILE) {
            const int64_t n = tncpu_min(TNCPU_TILE, p->n - at), first = base + i * p->row + at * p->col;

            tncpu_numbers(x->in[1], first, p->col, n, tile);
            for (int64_t k = 0; k < n; k++)
                tile[k] = dy * la_vector_slope(p->ord, tile[k], y);
            tncpu_numbers_store(x->out[0], first, p->col, n, tile);
        }
}

/* ---- matrices ------------------------------------------------------------------------------------ */

/* Row-major (m, n), or its transpose. */
static void matrix_load(const tnb_norm *p, const tn_tensor *data, int64_t base, bool turned, double *a)
{
    for (int64_t i = 0; i < (turned ? p->n : p->m); i++)
        tncpu_numbers(data, base + i * (turned ? p->col : p->row), turned ? p->row : p->col,
                      turned ? p->m : p->n, a + i * (turned ? p->m : p->n));
}

static void matrix_store(const tnb_norm *p, const tn_tensor *data, int64_t base, bool turned, const double *a)
{
    for (int64_t i = 0; i < (turned ? p->n : p->m); i++)
        tncpu_numbers_store(data, base + i * (turned ? p->col : p->row), turned ? p->row : p->col,
                            turned ? p->m : p->n, a + i * (turned ? p->m : p->n));
}

/* ---- runs ---------------------------------------------------------------------------------------- */

static void norm_part(const void *arg, int64_t k, double *room)
{
    const norm_call *c = arg;
    const tnb_norm *p = &c->p->what;
    const int64_t base = tnb_axes_offset(&c->p->kept, k);
    double y = 0;

    if (p->kind == TNB_NORM_VECTOR && p->m && p->n) {
        y = vector_norm(p, c->x->in[0], base);
    } else if (p->m && p->n) {
        matrix_load(p, c->x->in[0], base, la_norm_turned(p), room);
        y = la_matrix_norm(p, room);
    }
    tncpu_numbers_store(c->x->out[0], k, 1, 1, &y);
}

static void backward_norm_part(const void *arg, int64_t k, double *room)
{
    const norm_call *c = arg;
    const tnb_norm *p = &c->p->what;
    const int64_t base = tnb_axes_offset(&c->p->kept, k);
    const double dy = tncpu_number(c->x->in[0], k);
    const bool turned = la_norm_turned(p);

    if (!p->m || !p->n)
        return;
    if (p->kind == TNB_NORM_VECTOR) {
        vector_backward(p, c->x, base, dy, vector_norm(p, c->x->in[1], base));
        return;
    }
    matrix_load(p, c->x->in[1], base, turned, room);
    matrix_store(p, c->x->out[0], base, turned, la_matrix_norm_back(p, dy, room));
}

static tn_status norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_call c = {plan->state, x};

    (void)err;
    tncpu_rows_run(plan, x, c.p->kept.count, 0, norm_part, &c);
    return TN_OK;
}

static tn_status backward_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_call c = {plan->state, x};

    (void)err;
    if (tn_tensor_count(x->out[0]))
        tncpu_rows_run(plan, x, c.p->kept.count, 0, backward_norm_part, &c);
    return TN_OK;
}

/* clang-format off */
const tn_kernel *const tncpu_family_matrix_norm[] = {
    TNCPU_ROW("_npi_norm", TNCPU_TYPES("data:" TNCPU_ALL, "*:=data"), TN_KERNEL_EMPTY_OK, norm_prepare,
              norm_run),
    TNCPU_ROW("_backward__npi_norm", TNCPU_TYPES("*:" TNCPU_FLOATS), TN_KERNEL_EMPTY_OK,
              backward_norm_prepare, backward_norm_run),
    NULL,
};
/* clang-format on */
