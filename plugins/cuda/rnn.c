/*
 * RNN and its gradient: ../common/rnn.inc and rnn_flow.inc launch products and kernels/rnn.cu. Short
 * floats: their arrays are brought to float32 in the workspace, results are rounded once.
 */
#include "../common/rnn.inc"
#include "../common/move.h"
#include "lt.h"

#include <stddef.h>
#include <string.h>

#define ARRAYS_MAX 10   /* inputs, and outputs, of a call */
#define PRODUCTS_MAX 24 /* shapes of them; more are made by plain kernels */
#define RNN_PRODUCT tncuda_product_args

typedef struct rnn_product { /* without addresses */
    tncuda_product_args of;
    tncuda_lt *lt; /* NULL: plain kernels */
} rnn_product;

typedef struct rnn_products {
    uint32_t count;
    rnn_product item[PRODUCTS_MAX];
} rnn_products;

typedef struct rnn_walk {
    const rnn *r;
    const rnn_products *products;
    rnn_products *noted; /* not NULL: nothing is done, products are noted */
    void *work, *kept;
    int32_t shared, reserved; /* shared: all directions keep in one place, all inputs of layers in two */
    const void *data, *parameters, *state, *state_cell, *mask;
    const int64_t *lengths;
    const tn_plan *plan;
    const tn_exec *x;
    tn_status *st; /* of the first launch that failed: nothing is done behind it */
    tn_err *err;
} rnn_walk;

typedef struct rnn_state {
    rnn r;
    bool is_short;
    uint32_t in_count, out_count, lengths_in; /* lengths_in: 0: none */
    rnn_products products;
} rnn_state;

/* The one of the same sizes and steps; `count`: none. */
static uint32_t product_find(const rnn_products *all, const tncuda_product_args *p)
{
    uint32_t i = 0;

    while (i < all->count && memcmp(&all->item[i].of, p, offsetof(tncuda_product_args, a)) != 0)
        i++;
    return i;
}

static void multiply(const rnn_walk *w, tncuda_product_args p)
{
    uint32_t at;

    p.batch = 1;
    p.dtype = w->r->dtype;
    if (!w->noted) {
        at = product_find(w->products, &p);
        if (!*w->st)
            *w->st = tncuda_product(w->x, at < w->products->count ? w->products->item[at].lt : NULL, &p, NULL,
                                    w->err);
        return;
    }
    p.a = p.b = p.c = NULL;
    at = product_find(w->noted, &p);
    if (at == w->noted->count && at < PRODUCTS_MAX && p.m && p.n && p.k)
        w->noted->item[w->noted->count++].of = p;
}

static void bytes_copy(const rnn_walk *w, void *to, const void *from, int64_t n, int32_t bytes)
{
    const tnb_move m = {.ndim = 1, .size = bytes, .extent = {n}, .src_step = {1}, .dst_step = {1}};

    if (!*w->st)
        *w->st = tnb_move_run(w->plan, w->x, &m, from, to, w->err);
}

static void number_fill(const rnn_walk *w, void *to, int64_t n, double number)
{
    const tnb_move m = {.ndim = 1, .extent = {n}, .dst_step = {1}};

    if (!*w->st)
        *w->st = tnb_move_number(w->plan, w->x, &m, w->r->dtype, number, to, w->err);
}

static void vectors_run(const rnn_walk *w, const char *kernel, const tncuda_call_args *a)
{
    if (!*w->st)
        *w->st = tncuda_launch(w->x, "rnn", kernel, a->count, a, w->err);
}

#define T float
#define FN(name) name##_f32
#define SUFFIX "f32"
#include "rnn.inc"
#undef T
#undef FN
#undef SUFFIX
#define T double
#define FN(name) name##_f64
#define SUFFIX "f64"
#include "rnn.inc"

/* ---- plans --------------------------------------------------------------------------------------------- */

static uint64_t wide_bytes(const tn_tensor *t)
{
    return ((uint64_t)tn_tensor_count(t) * sizeof(float) + RNN_ALIGN - 1) & ~(uint64_t)(RNN_ALIGN - 1);
}

/* Begins a plan: what the node is, computed in float32 where it is short. `first`: of the forward's
 * inputs. */
static tn_status plan_begin(void *plugin, const tn_node *node, tn_plan *plan, bool back, uint64_t *saved,
                            tn_err *err)
{
    tn_status st = tncuda_state(plugin, node, plan, sizeof(rnn_state), err);
    rnn_state *s = plan->state;
    uint32_t first = 0;

    if (st)
        return st;
    rnn_read(node->attrs, node->in[0], &s->r);
    if (back) {
        first = mask_output(&s->r);
        rnn_read(node->attrs, node->in[first], &s->r);
    }
    s->is_short = s->r.dtype != TN_F32 && s->r.dtype != TN_F64;
    s->r.dtype = s->is_short ? TN_F32 : s->r.dtype;
    s->r.drops = drops(node, &s->r);
    s->in_count = node->in_count;
    s->out_count = node->out_count;
    s->lengths_in = s->r.lengths ? first + 3 + (s->r.mode == TN_RNN_mode_lstm) : 0;
    return saved_bytes(&s->r, saved, err);
}

static tn_status plan_end(const tn_node *node, tn_plan *plan, tn_err *err)
{
    const rnn_state *s = plan->state;
    uint64_t bytes = s->r.bytes;

    if (bytes == UINT64_MAX)
        return tn_fail(err, TN_E_NOMEM, "the gates of all steps are more than any memory holds");
    for (uint32_t k = 0; s->is_short && k < node->in_count; k++)
        bytes += wide_bytes(node->in[k]);
    for (uint32_t o = 0; s->is_short && o < node->out_count; o++)
        bytes += wide_bytes(node->out[o]);
    plan->workspace_bytes = bytes;
    plan->workspace_align = RNN_ALIGN;
    return TN_OK;
}

static tn_status rnn_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    uint64_t saved = 0;
    tn_status st = plan_begin(plugin, node, plan, false, &saved, err);
    rnn *r = plan->state;

    if (!st) {
        r->keeps = node->flags & TN_NODE_RECORDED && saved > 0;
        rooms_forward(r, node, 0);
        st = plan_end(node, plan, err);
        plan->saved_bytes = r->keeps ? saved : 0;
    }
    if (st)
        tncuda_release(plan);
    return st;
}

/* in: dy, [dstate_out, [dstatecell_out]], those of the forward, mask; out: gradients of the first of these */
static tn_status backward_rnn_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    uint64_t saved = 0;
    tn_status st = plan_begin(plugin, node, plan, true, &saved, err);
    rnn *r = plan->state;

    if (!st) {
        r->keeps = node->forward && node->forward->saved_bytes == saved && saved > 0;
        rooms_forward(r, node, 1);
        rooms_backward(r);
        st = plan_end(node, plan, err);
    }
    if (st)
        tncuda_release(plan);
    return st;
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* The arrays of a call as the walk sees them: float32 for short ones. An output that nobody wants is NULL. */
typedef struct rnn_arrays {
    void *in[ARRAYS_MAX], *out[ARRAYS_MAX];
} rnn_arrays;

static tn_status arrays_begin(const rnn_state *s, const tn_exec *x, rnn_arrays *a, tn_err *err)
{
    char *room = (char *)x->workspace + s->r.bytes;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < s->in_count && !st; k++) {
        tn_tensor wide = *x->in[k];

        a->in[k] = wide.data;
        if (!s->is_short || (s->lengths_in && k == s->lengths_in))
            continue;
        wide.data = a->in[k] = room;
        wide.dtype = TN_F32;
        room += wide_bytes(x->in[k]);
        st = tncuda_cast(x, x->in[k], &wide, false, err);
    }
    for (uint32_t o = 0; o < s->out_count; o++) {
        a->out[o] = !x->modes[o] ? NULL : s->is_short ? room : x->out[o]->data;
        room += s->is_short ? wide_bytes(x->out[o]) : 0;
    }
    return st;
}

static tn_status arrays_end(const rnn_state *s, const tn_exec *x, const rnn_arrays *a, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < s->out_count && s->is_short && !st; o++) {
        tn_tensor wide = *x->out[o];

        wide.data = a->out[o];
        wide.dtype = TN_F32;
        st = a->out[o] ? tncuda_cast(x, &wide, x->out[o], false, err) : TN_OK;
    }
    return st;
}

/* in: data, parameters, state, [state_cell], [sequence_length], from `first` on. */
static rnn_walk walk_begin(const tn_plan *plan, const tn_exec *x, const rnn_arrays *a, uint32_t first,
                           tn_status *st, tn_err *err)
{
    const rnn_state *s = plan->state;
    const rnn *r = &s->r;
    rnn_walk w = {.r = r,
                  .products = &s->products,
                  .work = x->workspace,
                  .kept = r->keeps ? x->saved : (char *)x->workspace + r->at[ROOM_KEPT],
                  .data = a->in[first],
                  .parameters = a->in[first + 1],
                  .state = a->in[first + 2],
                  .state_cell = r->mode == TN_RNN_mode_lstm ? a->in[first + 3] : NULL,
                  .plan = plan,
                  .x = x,
                  .st = st,
                  .err = err};

    if (r->lengths) {
        const tn_tensor *lengths = x->in[s->lengths_in];
        void *to = (char *)x->workspace + r->at[ROOM_LENGTHS];

        vectors_run(&w, "rnn_lengths",
                    &(tncuda_call_args){.count = r->batch,
                                        .size = r->steps,
                                        .in = {{lengths->data, lengths->dtype, TN_MODE_NONE}},
                                        .out = {{to, TN_I64, TN_MODE_WRITE}}});
        w.lengths = to;
    }
    return w;
}

/* What is multiplied with the inputs of layers behind the first: 0, or 1 / (1 - p); 1 where nothing is
 * dropped. */
static void mask_fill(const rnn_walk *w, void *mask)
{
    const rnn *r = w->r;
    const int64_t count = r->p > 0 ? (r->layers - 1) * r->rows * r->directions * r->width : 0;
    tncuda_random_args a = {
        .count = count, .source = {{.number = r->p}}, .out = {{mask, r->dtype, TN_MODE_WRITE}}};

    if (!r->drops) {
        number_fill(w, mask, count, 1);
    } else if (!*w->st) {
        a.draw = tncuda_draw_of(w->x->rng);
        *w->st = tncuda_launch(w->x, "random", "random_mask", count, &a, w->err);
    }
}

static void forward(const rnn_walk *w, void *output, void *state, void *cell)
{
    if (w->r->dtype == TN_F64)
        forward_f64(w, output, state, cell);
    else
        forward_f32(w, output, state, cell);
}

static tn_status rnn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rnn_state *s = plan->state;
    const rnn *r = &s->r;
    const bool cells = r->states && r->mode == TN_RNN_mode_lstm;
    void *room = (char *)x->workspace + r->at[ROOM_OUTPUT], *mask;
    rnn_arrays a = {0};
    tn_status st = arrays_begin(s, x, &a, err);
    rnn_walk w = walk_begin(plan, x, &a, 0, &st, err);

    w.shared = !r->keeps;
    mask = a.out[mask_output(r)];
    if (r->drops && !mask)
        mask = (char *)x->workspace + r->at[ROOM_MASK];
    if (mask)
        mask_fill(&w, mask);
    w.mask = mask;
    forward(&w, a.out[0] ? a.out[0] : room, r->states ? a.out[1] : NULL, cells ? a.out[2] : NULL);
    return st ? st : arrays_end(s, x, &a, err);
}

static tn_status backward_rnn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rnn_state *s = plan->state;
    const rnn *r = &s->r;
    const uint32_t lstm = r->mode == TN_RNN_mode_lstm, first = mask_output(r);
    rnn_arrays a = {0};
    tn_status st = arrays_begin(s, x, &a, err);
    rnn_walk w = walk_begin(plan, x, &a, first, &st, err);
    const rnn_gradients to = {.dy = a.in[0],
                              .dstate_out = r->states ? a.in[1] : NULL,
                              .dcell_out = r->states && lstm ? a.in[2] : NULL,
                              .dx = a.out[0],
                              .dparameters = a.out[1],
                              .dstate = a.out[2],
                              .dcell = lstm ? a.out[3] : NULL,
                              .parameters = x->in[first + 1]->shape[0]};

    w.mask = a.in[first + 3 + lstm + (uint32_t)r->lengths];
    if (!r->keeps)
        forward(&w, (char *)x->workspace + r->at[ROOM_OUTPUT], NULL, NULL);
    if (r->dtype == TN_F64)
        backward_f64(&w, &to);
    else
        backward_f32(&w, &to);
    return st ? st : arrays_end(s, x, &a, err);
}

/* ---- by cuBLASLt --------------------------------------------------------------------------------------- */

/* Walks as a run does, but nothing is launched: addresses are never looked at. */
static void products_note(rnn_state *s, bool back)
{
    void *any = s;
    tn_status st = TN_E_CANCELLED;
    const uint32_t cell = s->r.mode == TN_RNN_mode_lstm;
    const rnn_walk w = {.r = &s->r,
                        .noted = &s->products,
                        .work = any,
                        .kept = any,
                        .shared = !s->r.keeps,
                        .data = any,
                        .parameters = any,
                        .state = any,
                        .state_cell = cell ? any : NULL,
                        .mask = any,
                        .st = &st};
    const rnn_gradients to = {
        .dy = any, .dx = any, .dparameters = any, .dstate = any, .dcell = cell ? any : NULL, .parameters = 0};

    if (!back || !s->r.keeps)
        forward(&w, any, NULL, NULL);
    if (back && s->r.dtype == TN_F64)
        backward_f64(&w, &to);
    else if (back)
        backward_f32(&w, &to);
}

static tn_status lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, bool back, tn_err *err)
{
    tn_status st = (back ? backward_rnn_prepare : rnn_prepare)(plugin, node, plan, err);
    rnn_state *s = plan->state;
    bool any = false;

    if (st)
        return st;
    products_note(s, back);
    st = tn_fail(err, TN_E_UNSUPPORTED, "it has no products");
    for (uint32_t i = 0; i < s->products.count; i++) {
        const tncuda_lt_shape shape = {.of = s->products.item[i].of, .alpha = 1};

        st = tncuda_lt_make(plugin, node, plan, &shape, &s->products.item[i].lt, err);
        any |= !st;
        if (st && st != TN_E_UNSUPPORTED)
            break;
    }
    if (any && (!st || st == TN_E_UNSUPPORTED)) {
        tncuda_lt_room(plan);
        return TN_OK;
    }
    tncuda_release(plan);
    return st;
}

static tn_status rnn_lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return lt_prepare(plugin, node, plan, false, err);
}

static tn_status backward_rnn_lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return lt_prepare(plugin, node, plan, true, err);
}

#define LENGTHS "sequence_length:f32,f64,i32,i64,f16,bf16"
static const char *const types[] = {"data:" TNCUDA_FLOATS, LENGTHS, "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, LENGTHS, "*:=dy", NULL};

const tn_kernel *const tncuda_family_rnn[] = {
    TNCUDA_ROW("RNN", types, TN_KERNEL_EMPTY_OK, rnn_prepare, rnn_run),
    TNCUDA_ROW("_backward_RNN", back_types, TN_KERNEL_EMPTY_OK, backward_rnn_prepare, backward_rnn_run),
    TNCUDA_LT_ROW("RNN", types, TN_KERNEL_EMPTY_OK, rnn_lt_prepare, rnn_run),
    TNCUDA_LT_ROW("_backward_RNN", back_types, TN_KERNEL_EMPTY_OK, backward_rnn_lt_prepare, backward_rnn_run),
    NULL,
};
