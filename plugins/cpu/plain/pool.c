/*
 * Pooling. A plane is what windows never leave: one channel of one image (NC*), or one image whose pixels are
 * runs of channels (N*C). Forward tasks are output rows, backward tasks are planes: nothing is summed across
 * tasks.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rows.h"
#include "short.h"
#include "tenon/plugin/op/pool.h"

#define SPACE 3

typedef struct geometry {
    int64_t planes, inner, type, p;
    int64_t in[SPACE], out[SPACE], kernel[SPACE], stride[SPACE], pad[SPACE];
    int64_t in_plane, out_plane; /* elements */
    int32_t count_pad, two_by_two;
} geometry;

typedef struct pool_call {
    const geometry *g;
    const tn_exec *x;
} pool_call;

/* Of output index `o`: input indices lo … hi-1, and how many an average counts. */
typedef struct window {
    int64_t lo, hi, size;
} window;

static window window_of(const geometry *g, int32_t axis, int64_t o)
{
    const int64_t start = o * g->stride[axis] - g->pad[axis];
    const int64_t end = tncpu_min(start + g->kernel[axis], g->in[axis] + g->pad[axis]);
    window w = {tncpu_max(start, 0), tncpu_min(end, g->in[axis]), 0};

    w.size = tncpu_max(0, g->count_pad ? end - start : w.hi - w.lo);
    return w;
}

#define LOWEST(dtype) ((dtype) == TN_F64 ? -DBL_MAX : -(double)FLT_MAX)
#define BODY "../plain/pool.inc"
#include "../common/floats.inc"

static geometry geometry_of(const tn_value *attrs, const tn_tensor *x, const tn_tensor *y)
{
    const int last = tn_value_int(attrs[TN_Pooling_layout]) >= TN_Pooling_layout_NDHWC;
    const int global = tn_value_int(attrs[TN_Pooling_global_pool]) != 0;
    const int64_t *count = (const int64_t *)tn_value_pointer(attrs[TN_Pooling_count_include_pad]);
    const int64_t *p = (const int64_t *)tn_value_pointer(attrs[TN_Pooling_p_value]);
    const int32_t space = x->ndim - 2;
    geometry g = {
        .planes = x->shape[0] * (last ? 1 : x->shape[1]),
        .inner = last ? x->shape[x->ndim - 1] : 1,
        .type = tn_value_int(attrs[TN_Pooling_pool_type]),
        .p = p ? *p : 1,
        .count_pad = !count || *count,
    };

    for (int32_t i = 0; i < SPACE; i++) {
        const int32_t from = i - (SPACE - space);
        const int given = from >= 0;

        g.in[i] = given ? x->shape[(last ? 1 : 2) + from] : 1;
        g.out[i] = given ? y->shape[(last ? 1 : 2) + from] : 1;
        g.kernel[i] = !given ? 1 : global ? g.in[i] : tncpu_tuple_item(attrs[TN_Pooling_kernel], from, 1);
        g.stride[i] = given && !global ? tncpu_tuple_item(attrs[TN_Pooling_stride], from, 1) : 1;
        g.pad[i] = given && !global ? tncpu_tuple_item(attrs[TN_Pooling_pad], from, 0) : 0;
    }
    if (tn_tensor_count(x) == 0) /* one side of the planes is 0: no others need a walk */
        memset(g.in, 0, sizeof g.in);
    if (tn_tensor_count(y) == 0)
        memset(g.out, 0, sizeof g.out);
    g.in_plane = g.in[0] * g.in[1] * g.in[2] * g.inner;
    g.out_plane = g.out[0] * g.out[1] * g.out[2] * g.inner;
    g.two_by_two = g.type == TN_Pooling_pool_type_max && !last && space == 2;
    for (int32_t i = 1; i < SPACE; i++)
        g.two_by_two &= g.kernel[i] == 2 && g.stride[i] == 2 && g.pad[i] == 0 && 2 * g.out[i] <= g.in[i];
    return g;
}

enum { FORWARD, BACKWARD, TAKEN };

typedef struct pool_state {
    geometry g;
    int64_t what, tasks; /* FORWARD … */
} pool_state;

static const char *const names[] = {"Pooling", "_backward_Pooling", "_backward_pooling_taken"};
static tncpu_row_body *const bodies[][2] = {
    {forward_f32, forward_f64}, {backward_f32, backward_f64}, {taken_f32, taken_f64}};

static tn_status pool_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(pool_state), err);
    const tn_tensor *x;
    pool_state *s;

    if (st)
        return st;
    s = plan->state;
    while (strcmp(names[s->what], node->op) != 0)
        s->what++;
    x = node->in[s->what != FORWARD];
    s->g = geometry_of(node->attrs, x, s->what == BACKWARD ? node->in[0] : node->out[0]);
    s->tasks = s->g.planes * (s->what == FORWARD ? s->g.out[0] * s->g.out[1] : 1);
    tncpu_plan_tasks(node, plan, (s->what == FORWARD ? 1 : 2) * (50 + 1.5 * (double)tn_tensor_count(x)),
                     s->tasks);
    if (s->what == FORWARD && !s->g.two_by_two)
        tncpu_plan_workspace(plan, (uint64_t)(s->g.in[2] * s->g.inner) * tn_dtype_bytes(x->dtype));
    return TN_OK;
}

static tn_status pool_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pool_state *s = plan->state;
    const pool_call call = {&s->g, x};

    (void)err;
    tncpu_rows_run(plan, x, s->tasks, 0, bodies[s->what][x->in[0]->dtype == TN_F64], &call);
    return TN_OK;
}

static const char *const types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};

/* clang-format off */
TNCPU_SHORT_KERNEL(pooling, "Pooling", types, 0, pool_prepare, pool_run)
TNCPU_SHORT_KERNEL(backward_pooling, "_backward_Pooling", types, 0, pool_prepare, pool_run)
TNCPU_SHORT_KERNEL(pooling_taken, "_backward_pooling_taken", types, 0, pool_prepare, pool_run)
/* clang-format on */

const tn_kernel *const tncpu_family_pool[] = {&pooling, &backward_pooling, &pooling_taken, NULL};
