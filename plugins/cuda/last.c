/* Channels last: what plans ask for, and `_reorder` (kernels/last.cu). */
#include "last.h"
#include "product.h"

#include <stdio.h>
#include <string.h>

static const char owner[] = "cuda", bytes[] = "channels last";

/* ---- which tensors ------------------------------------------------------------------------------------- */

bool tncuda_is_last(const tn_tensor *t)
{
    const tn_layout *l = t->layout;

    return l && l->byte_count == sizeof bytes && !strcmp(l->owner, owner) &&
           !memcmp(l->bytes, bytes, sizeof bytes);
}

bool tncuda_may_be_last(const tn_tensor *t)
{
    int64_t step = 1;

    if (t->ndim < 3 || t->ndim > TNCUDA_LAST_DIMS || (t->dtype != TN_F32 && !tncuda_is_short(t->dtype)))
        return false;
    for (int32_t d = t->ndim; d-- > 0; step *= t->shape[d])
        if (t->shape[d] < 1 || (t->shape[d] > 1 && t->stride[d] != step))
            return false;
    return true;
}

/* One channel, or one element of space. */
static bool is_either(const tn_tensor *t)
{
    return t->shape[1] == 1 || tnb_dims(t, 2, t->ndim) == 1;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void turned(const tn_tensor *t, int64_t *dims, tn_tensor *out)
{
    int64_t *stride = dims + TNCUDA_LAST_DIMS, step = 1;

    *out = *t;
    dims[0] = t->shape[0];
    dims[t->ndim - 1] = t->shape[1];
    for (int32_t d = 2; d < t->ndim; d++)
        dims[d - 1] = t->shape[d];
    for (int32_t d = t->ndim; d-- > 0; step *= dims[d])
        stride[d] = step;
    out->shape = dims;
    out->stride = stride;
    out->layout = NULL;
}

static bool tensors_see(tncuda_last *l, const tn_tensor *const *from, uint32_t count, uint32_t mask,
                        uint32_t first, const tn_tensor **to)
{
    for (uint32_t i = 0; i < count; i++) {
        tn_tensor *t = &l->tensors[first + i];

        to[i] = t;
        *t = *from[i];
        t->layout = NULL;
        if (!(mask >> i & 1u))
            continue;
        if (!tncuda_may_be_last(from[i]))
            return false;
        turned(from[i], l->dims[first + i], t);
    }
    return true;
}

bool tncuda_last_see(tncuda_last *l, const tn_node *node, uint32_t ins, uint32_t outs, uint32_t attr,
                     tn_value value)
{
    if (node->in_count > TNCUDA_LAST_ARGS || node->out_count > TNCUDA_LAST_ARGS ||
        node->attr_count > TNCUDA_LAST_ATTRS || attr >= node->attr_count)
        return false;
    l->node = *node;
    memcpy(l->attrs, node->attrs, node->attr_count * sizeof *l->attrs);
    l->attrs[attr] = value;
    l->node.attrs = l->attrs;
    l->node.in = l->in;
    l->node.out = l->out;
    l->node.flags = (uint16_t)(node->flags & ~TN_NODE_LAYOUTS);
    return tensors_see(l, node->in, node->in_count, ins, 0, l->in) &&
           tensors_see(l, node->out, node->out_count, outs, TNCUDA_LAST_ARGS, l->out);
}

static bool has_bit(uint32_t mask, uint32_t index)
{
    return index < 32 ? mask >> index & 1u : mask == TNCUDA_LAST_ALL;
}

bool tncuda_last_given(const tn_node *node, uint32_t outs)
{
    bool added = false;

    for (uint32_t o = 0; o < node->out_count; o++)
        added = added || (has_bit(outs, o) && node->modes[o] == TN_MODE_ADD &&
                          !(tncuda_may_be_last(node->out[o]) && is_either(node->out[o])));
    return node->flags & TN_NODE_LAYOUTS && !added;
}

bool tncuda_last_pointwise(const tn_node *node)
{
    const tn_tensor *out = node->out_count ? node->out[0] : NULL;
    bool any = false;

    if (!out || !tncuda_last_given(node, TNCUDA_LAST_ALL) || !tncuda_may_be_last(out) || is_either(out))
        return false;
    for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
        const tn_tensor *t = i < node->in_count ? node->in[i] : node->out[i - node->in_count];

        any = any || (i < node->in_count && tncuda_is_last(t));
        if (!tncuda_may_be_last(t) || t->ndim != out->ndim ||
            memcmp(t->shape, out->shape, (size_t)out->ndim * sizeof *out->shape) != 0)
            return false;
    }
    return any;
}

/* ---- what a plan asks for ------------------------------------------------------------------------------ */

typedef struct asked { /* the host copies them when the plan is made */
    tncuda_owned own;
    const tncuda_plugin *plugin;
    tn_layout layouts[];
} asked;

static void asked_free(tncuda_owned *what)
{
    asked *a = (asked *)what;

    tncuda_delete(a->plugin, a);
}

static const tn_layout *layout_of(tn_layout *at, const tn_tensor *t)
{
    if (is_either(t))
        return NULL;
    *at = (tn_layout){.struct_size = (uint32_t)TN_END(tn_layout, memory_bytes),
                      .flags = TN_LAYOUT_POINTWISE,
                      .owner = owner,
                      .bytes = bytes,
                      .byte_count = sizeof bytes,
                      .memory_bytes = tn_dtype_size(t->dtype, (uint64_t)tn_tensor_count(t))};
    return at;
}

tn_status tncuda_last_ask(void *plugin, const tn_node *node, tn_plan *plan, uint32_t ins, uint32_t outs,
                          tn_err *err)
{
    asked *a = tncuda_new(plugin, sizeof *a + (node->in_count + node->out_count) * sizeof a->layouts[0]);

    if (!a)
        return tncuda_nomem(err, "a plan");
    a->plugin = plugin;
    a->own.free = asked_free;
    tncuda_own(plan, &a->own);
    for (uint32_t i = 0; i < node->in_count; i++)
        if (has_bit(ins, i))
            plan->in_layout[i] = layout_of(&a->layouts[i], node->in[i]);
    for (uint32_t o = 0; o < node->out_count; o++)
        if (has_bit(outs, o) && node->modes[o] != TN_MODE_NONE)
            plan->out_layout[o] = layout_of(&a->layouts[node->in_count + o], node->out[o]);
    return TN_OK;
}

/* ---- _reorder ------------------------------------------------------------------------------------------ */

typedef struct reorder_state {
    char kernel[TNCUDA_NAME_BYTES], odd[TNCUDA_NAME_BYTES]; /* odd: where the arrays are not aligned */
    tncuda_last_args args, odd_args;
} reorder_state;

/* The long side of a strip, in whole tiles' sides, so that its lines begin where memory is read at once. */
static int32_t strip_of(int32_t all, int32_t room)
{
    return all < room ? all : room - room % TNCUDA_LAST_TILE;
}

/* The sides of its tiles: few rows or columns are taken whole. */
static void tiles_set(tncuda_last_args *a, int64_t batch)
{
    const int32_t side = TNCUDA_LAST_TILE;
    int64_t down, across;

    a->tile_rows = a->rows < side ? a->rows : side;
    a->tile_cols = a->cols < side ? a->cols : side;
    if (a->tile_rows < side)
        a->tile_cols = strip_of(a->cols, TNCUDA_LAST_ROOM / a->tile_rows - 1);
    else if (a->tile_cols < side)
        a->tile_rows = strip_of(a->rows, TNCUDA_LAST_ROOM / (a->tile_cols | 1));
    a->pitch = a->tile_cols | 1;
    down = tncuda_ceil(a->rows, a->tile_rows);
    across = tncuda_ceil(a->cols, a->tile_cols);
    a->tiles = batch * down * across;
    a->each = tncuda_divisor_of(down * across);
    a->across = tncuda_divisor_of(across);
    a->by_rows = tncuda_divisor_of(a->tile_rows);
    a->by_cols = tncuda_divisor_of(a->tile_cols);
}

static bool has_pairs(const tncuda_last_args *a, int32_t dtype)
{
    return dtype != TN_F32 && a->rows % 2 == 0 && a->cols % 2 == 0 && a->rows >= TNCUDA_LAST_TILE / 2 &&
           a->cols >= TNCUDA_LAST_TILE / 2;
}

static void reorder_plan(reorder_state *s, const tn_tensor *t, bool to_last)
{
    const int64_t channels = t->shape[1], space = tnb_dims(t, 2, t->ndim);

    s->args.rows = (int32_t)(to_last ? channels : space);
    s->args.cols = (int32_t)(to_last ? space : channels);
    tiles_set(&s->args, t->shape[0]);
    (void)snprintf(s->kernel, sizeof s->kernel, "last_strip_%d", t->dtype == TN_F32 ? 4 : 2);
    memcpy(s->odd, s->kernel, sizeof s->odd);
    s->odd_args = s->args;
    if (!has_pairs(&s->args, t->dtype))
        return;
    (void)snprintf(s->kernel, sizeof s->kernel, "last_pairs");
    s->args.tile_rows = s->args.tile_cols = TNCUDA_LAST_TILE;
    s->args.across = tncuda_divisor_of(tncuda_ceil(s->args.cols, TNCUDA_LAST_TILE));
    s->args.each = tncuda_divisor_of(s->args.across.by * tncuda_ceil(s->args.rows, TNCUDA_LAST_TILE));
    s->args.tiles = t->shape[0] * s->args.each.by;
}

/* One row of all elements. */
static void copy_plan(reorder_state *s, const tn_tensor *t)
{
    const int64_t count = tn_tensor_count(t);

    s->args.rows = 1;
    s->args.cols = count > 0 ? (int32_t)count : 1;
    tiles_set(&s->args, count > 0);
    (void)snprintf(s->kernel, sizeof s->kernel, "last_strip_%d", t->dtype == TN_F32 ? 4 : 2);
    memcpy(s->odd, s->kernel, sizeof s->odd);
    s->odd_args = s->args;
}

/* Between a layout of this plugin and none: the host says which way. Between rows it is a copy. */
static tn_status reorder_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *from = node->in[0], *to = node->out[0];
    const bool to_last = tncuda_is_last(to), is_copy = !from->layout && !to->layout;
    reorder_state *s;
    tn_status st;

    if (is_copy ? tn_tensor_count(from) > INT32_MAX
                : (from->layout != NULL) == (to->layout != NULL) || !(to_last || tncuda_is_last(from)))
        return tn_fail(err, TN_E_UNSUPPORTED, "not between rows and channels last");
    if (!is_copy &&
        (!tncuda_may_be_last(from) || is_either(from) || tn_tensor_count(from) / from->shape[0] > INT32_MAX ||
         tn_tensor_count(from) / 4 > INT32_MAX))
        return tn_fail(err, TN_E_UNSUPPORTED, "no tensor that channels last were made of");
    if ((st = tncuda_state(plugin, node, plan, sizeof *s, err)))
        return st;
    s = plan->state;
    if (is_copy)
        copy_plan(s, from);
    else
        reorder_plan(s, from, to_last);
    plan->in_layout[0] = from->layout;
    plan->out_layout[0] = to->layout;
    return TN_OK;
}

static tn_status reorder_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const reorder_state *s = plan->state;
    const bool odd = ((uintptr_t)x->in[0]->data | (uintptr_t)x->out[0]->data) % 4 != 0;
    tncuda_last_args a = odd ? s->odd_args : s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.from = x->in[0]->data;
    a.to = x->out[0]->data;
    return tncuda_launch_blocks(x, "last", odd ? s->odd : s->kernel, a.tiles, &a, err);
}

static const char *const types[] = {"*:f32,f16,bf16", NULL};

const tn_kernel *const tncuda_family_last[] = {
    TNCUDA_ROW("_reorder", types, TN_KERNEL_LAYOUTS, reorder_prepare, reorder_run),
    NULL,
};
