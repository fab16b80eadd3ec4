/* Pooling and its gradient: planes by kernels/pool_plane.inc, those of packs of
 * channels by kernels/pool_last.inc, the rest by kernels/pool.inc. */
#include "tenon/plugin/op/pool.h"
#include "last.h"

#include <stdio.h>

#define PACK_BYTES 16
#define PLANE_MOST (1 << 29) /* of extents, steps and pads: their sums are below 2^31 */

typedef struct pool_state {
    char kernel[TNCUDA_NAME_BYTES], taps[TNCUDA_NAME_BYTES];
    char last_kernel[TNCUDA_NAME_BYTES], last_taps[TNCUDA_NAME_BYTES]; /* by packs */
    bool back, reads_y, is_plane;
    bool quads;   /* a thread makes the packs of 2 x 2 places of dx */
    int32_t pack; /* elements of a pack of channels; 1: there are none */
    tncuda_window_args args;
    tncuda_pool_args plane;
} pool_state;

static void geometry(tncuda_window_args *a, const tn_value *attrs, const tn_tensor *x, const tn_tensor *y)
{
    const bool global = tn_value_int(attrs[TN_Pooling_global_pool]) != 0;
    const int32_t space = x->ndim - 2;
    int32_t first;

    a->last = tn_value_int(attrs[TN_Pooling_layout]) >= TN_Pooling_layout_NDHWC;
    a->channels = x->shape[a->last ? x->ndim - 1 : 1];
    first = a->last ? 1 : 2;
    for (int32_t i = 0; i < TNCUDA_SPACE; i++) {
        const int32_t from = i - (TNCUDA_SPACE - space);
        const bool given = from >= 0;

        a->in[i] = given ? x->shape[first + from] : 1;
        a->out[i] = given ? y->shape[first + from] : 1;
        a->kernel[i] = !given ? 1 : global ? a->in[i] : tnb_tuple_item(attrs[TN_Pooling_kernel], from, 1);
        a->stride[i] = given && !global ? tnb_tuple_item(attrs[TN_Pooling_stride], from, 1) : 1;
        a->pad[i] = given && !global ? tnb_tuple_item(attrs[TN_Pooling_pad], from, 0) : 0;
    }
}

/* Two dimensions of space, whose elements and windows are counted in 32 bits. */
static bool is_plane(const tncuda_window_args *a, const tn_tensor *x, const tn_tensor *y)
{
    bool fits = a->type != TNCUDA_POOL_LP && a->in[0] == 1 && a->out[0] == 1 && a->kernel[0] == 1 &&
                a->stride[0] == 1 && a->pad[0] == 0 && tn_tensor_count(x) <= INT32_MAX &&
                tn_tensor_count(y) <= INT32_MAX;

    for (int32_t i = 1; i < TNCUDA_SPACE; i++)
        fits = fits && a->in[i] > 0 && a->out[i] > 0 && a->in[i] < PLANE_MOST && a->out[i] < PLANE_MOST &&
               a->kernel[i] < PLANE_MOST && a->stride[i] < PLANE_MOST && a->pad[i] < PLANE_MOST &&
               a->out[i] * a->stride[i] < PLANE_MOST;
    return fits && (a->type != TNCUDA_POOL_MAX ||
                    (a->kernel[1] < TNCUDA_POOL_TAPS && a->kernel[2] < TNCUDA_POOL_TAPS &&
                     a->kernel[1] * a->kernel[2] < TNCUDA_POOL_TAPS));
}

/* Squares of 2 and 3 have kernels of their own, and places that are in two windows of an axis at most. */
static void names_set(pool_state *s, bool two)
{
    const int32_t *k = s->plane.kernel, dtype = s->args.dtype;
    const char *square = k[0] == k[1] && k[0] == 2 ? "2" : k[0] == k[1] && k[0] == 3 ? "3" : "";
    const char *few = two ? "2" : "", *suffix = tncuda_suffix(dtype);
    const char *packs = tncuda_pack_suffix(dtype);

    (void)snprintf(s->back ? s->taps : s->kernel, TNCUDA_NAME_BYTES, "pool_plane_y%s_%s", square, suffix);
    if (!s->back) {
        (void)snprintf(s->last_kernel, TNCUDA_NAME_BYTES, "pool_last_y%s_%s", square, packs);
        return;
    }
    (void)snprintf(s->kernel, TNCUDA_NAME_BYTES, "pool_plane_dx%s_%s", few, suffix);
    (void)snprintf(s->last_kernel, TNCUDA_NAME_BYTES, s->quads ? "pool_last_%s_%s" : "pool_last_dx%s_%s",
                   s->quads ? "quad" : few, packs);
    (void)snprintf(s->last_taps, TNCUDA_NAME_BYTES, "pool_last_taps%s_%s", square, packs);
}

/* Channels that stand last and are whole packs; the places in a window are bytes. */
static int32_t pack_of(const tncuda_window_args *a)
{
    const int32_t pack = PACK_BYTES / (int32_t)tn_dtype_bytes(a->dtype);
    const bool fits = a->last && a->dtype != TN_F64 && a->channels % pack == 0;

    return fits && (a->type != TNCUDA_POOL_MAX || a->kernel[1] * a->kernel[2] <= TNCUDA_POOL_LAST_TAPS) ? pack
                                                                                                        : 1;
}

static void split_set(tncuda_pool_args *p, const int32_t *extent, int32_t pack)
{
    p->split[0] = tncuda_divisor_of(p->channels / (uint32_t)pack);
    p->split[1] = tncuda_divisor_of(extent[1]);
    p->split[2] = tncuda_divisor_of(extent[0]);
}

static void plane_plan(pool_state *s)
{
    const tncuda_window_args *a = &s->args;
    tncuda_pool_args *p = &s->plane;
    bool two = true, few_taps = true;

    for (int32_t i = 0; i < 2; i++) {
        p->in[i] = (int32_t)a->in[i + 1];
        p->out[i] = (int32_t)a->out[i + 1];
        p->kernel[i] = (int32_t)a->kernel[i + 1];
        p->stride[i] = (int32_t)a->stride[i + 1];
        p->pad[i] = (int32_t)a->pad[i + 1];
        p->by_stride[i] = tncuda_divisor_of(p->stride[i]);
        two = two && p->kernel[i] <= 2 * p->stride[i];
        few_taps = few_taps && p->kernel[i] <= 3 && p->stride[i] == 2;
    }
    p->channels = a->last ? (uint32_t)a->channels : 1;
    p->dtype = a->dtype;
    p->type = a->type;
    p->count_pad = a->count_pad;
    p->last = a->last;
    s->pack = pack_of(a);
    s->quads = s->back && a->type == TNCUDA_POOL_MAX && few_taps;
    names_set(s, two);
}

static tn_status pool_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = node->in_count > 1;
    const tn_tensor *data = node->in[back ? 1 : 0], *y = back ? node->in[0] : node->out[0];
    const int64_t *count = tn_value_pointer(node->attrs[TN_Pooling_count_include_pad]);
    const int64_t *p = tn_value_pointer(node->attrs[TN_Pooling_p_value]);
    pool_state *s;
    tn_status st;

    if (data->ndim < 3 || data->ndim > 5)
        return tn_fail(err, TN_E_UNSUPPORTED, "space has 1 to 3 dimensions here");
    if ((st = tncuda_state(plugin, node, plan, sizeof(pool_state), err)))
        return st;
    s = plan->state;
    s->back = back;
    s->reads_y = node->in_count > 2;
    geometry(&s->args, node->attrs, data, y);
    s->args.type = (int32_t)tn_value_int(node->attrs[TN_Pooling_pool_type]);
    s->args.count_pad = !count || *count;
    s->args.power = p ? (int32_t)*p : 1;
    s->args.dtype = data->dtype;
    (void)snprintf(s->kernel, sizeof s->kernel, "pool_%s_%s", back ? "dx" : "y", tncuda_suffix(data->dtype));
    s->is_plane = tn_tensor_count(data) && is_plane(&s->args, data, y);
    if (!s->is_plane)
        return TN_OK;
    plane_plan(s);
    if (back && s->args.type == TNCUDA_POOL_MAX)
        plan->workspace_bytes = (uint64_t)tn_tensor_count(y) * sizeof(uint16_t);
    return TN_OK;
}

/* What comes with channels last stays so; of a gradient all inputs come so. */
static tn_status last_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint32_t ins = node->in_count > 1 ? 7 : 1;
    const tn_tensor *data = node->in[node->in_count > 1];
    tncuda_last last;
    tn_status st;

    if (!tncuda_is_last(data) || !tncuda_last_given(node, 1) ||
        tn_value_int(node->attrs[TN_Pooling_layout]) >= TN_Pooling_layout_NDHWC ||
        !tncuda_last_see(&last, node, ins, 1, TN_Pooling_layout, TN_Pooling_layout_NHWC))
        return pool_prepare(plugin, node, plan, err);
    if (!(st = pool_prepare(plugin, &last.node, plan, err)) &&
        (st = tncuda_last_ask(plugin, node, plan, ins, 1, err)))
        tncuda_release(plan);
    return st;
}

/* Elements that a thread makes. */
static int32_t pack_fitting(const pool_state *s, const tn_exec *x)
{
    uintptr_t all = (uintptr_t)x->out[0]->data | (uintptr_t)x->in[0]->data;

    if (s->back)
        all |= (uintptr_t)x->in[1]->data | (uintptr_t)x->workspace;
    return all % PACK_BYTES ? 1 : s->pack;
}

static tn_status plane_run(const pool_state *s, const tn_exec *x, tn_err *err)
{
    const int32_t pack = pack_fitting(s, x);
    tncuda_pool_args a = s->plane;
    tn_status st = TN_OK;

    a.x = x->in[s->back]->data;
    a.dy = s->back ? x->in[0]->data : NULL;
    if (s->back && a.type == TNCUDA_POOL_MAX) {
        a.taps = x->workspace;
        a.count = (uint32_t)(tn_tensor_count(x->in[0]) / pack);
        split_set(&a, a.out, pack);
        st = tncuda_launch(x, "pool", pack > 1 ? s->last_taps : s->taps, a.count, &a, err);
    }
    a.to = x->out[0]->data;
    a.add = x->modes[0] == TN_MODE_ADD;
    a.count = (uint32_t)(tn_tensor_count(x->out[0]) / pack);
    split_set(&a, s->back ? a.in : a.out, pack);
    if (pack > 1 && s->quads) {
        const int32_t half[] = {a.in[0] / 2 + a.in[0] % 2, a.in[1] / 2 + a.in[1] % 2};

        a.count = a.count / (uint32_t)(a.in[0] * a.in[1]) * (uint32_t)(half[0] * half[1]);
        split_set(&a, half, pack);
    }
    return st ? st : tncuda_launch(x, "pool", pack > 1 ? s->last_kernel : s->kernel, a.count, &a, err);
}

static tn_status pool_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pool_state *s = plan->state;
    tncuda_window_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (s->is_plane)
        return plane_run(s, x, err);
    a.x = x->in[s->back ? 1 : 0]->data;
    a.dy = s->back ? x->in[0]->data : NULL;
    a.y = s->reads_y ? x->in[2]->data : NULL;
    a.to = x->out[0]->data;
    a.count = tn_tensor_count(x->out[0]);
    a.add = x->modes[0] == TN_MODE_ADD;
    return tncuda_launch(x, "pool", s->kernel, a.count, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};

const tn_kernel *const tncuda_family_pool[] = {
    TNCUDA_ROW("Pooling", types, TN_KERNEL_ADD_TO | TN_KERNEL_LAYOUTS, last_prepare, pool_run),
    TNCUDA_ROW("_backward_Pooling", types, TN_KERNEL_ADD_TO | TN_KERNEL_LAYOUTS, last_prepare, pool_run),
    NULL,
};
