/*
 * Views: of an operator whose definition says where its outputs lie within its input (tn_op.view), nothing is
 * computed. Each output is a window of the input's root: an offset and strides, and no bytes of its own.
 *
 * That is so for all outputs of an instruction or for none, and only where every reader can read there: any
 * kernel where the window is dense, else one that takes strides, chosen anew for them and found to be the
 * same kernel. Nobody else may write the root, whose life then ends with its last reader. Where that would
 * keep more bytes than the copies, they are made.
 */
#include <string.h>

#include "compile/code.h"

#define REACH 8u /* instructions that a root may live on for windows smaller than itself */

typedef struct chosen { /* what a reader will run on */
    uint32_t code;
    tni_prepared *prepared;
} chosen;

typedef struct moved { /* an output, or what lies in it, as it was */
    uint32_t value;
    tni_value was;
} moved;

typedef struct viewer {
    tni_code *c;
    uint8_t *written;                     /* per root */
    uint32_t *first_reader, *next_reader; /* per value, per operand: an operand that reads it, and 1 */
    uint32_t *reader;                     /* per operand: its instruction */
    uint32_t *first_inside, *next_inside; /* per root, per value: a value that lies in it, and 1 */
    uint32_t *last;                       /* per root: the last instruction that touches it */
    uint8_t *gone;                        /* per instruction */
    tni_vec chosen, shapes, views;        /* of the instruction under way: chosen, tn_shape, tn_view */
    tni_vec moved, strides;               /* moved; int64_t: the strides that they had */
} viewer;

/* ---- who reads what ------------------------------------------------------------------------------------ */

static void inside_add(const viewer *w, uint32_t root, uint32_t value)
{
    w->next_inside[value] = w->first_inside[root];
    w->first_inside[root] = value + 1;
}

static void uses_note(const viewer *w)
{
    const tni_code *c = w->c;

    for (uint32_t v = 0; v < c->values.count; v++)
        if (tni_code_root(c, v) != v)
            inside_add(w, tni_code_root(c, v), v);
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t k = 0; k < in->in_count + in->out_count; k++) {
            const uint32_t at = in->first_operand + k, value = tni_code_operands(c, in)[k];

            w->last[tni_code_root(c, value)] = i;
            w->reader[at] = i;
            if (k >= in->in_count)
                continue;
            w->next_reader[at] = w->first_reader[value];
            w->first_reader[value] = at + 1;
        }
    }
}

/* ---- which instructions -------------------------------------------------------------------------------- */

static bool sized(const tn_tensor *t)
{
    bool known = t->ndim >= 0;

    for (int32_t d = 0; d < t->ndim && known; d++)
        known = t->shape[d] > 0;
    return known;
}

/* Its elements stay where they are, as they are, for as long as somebody reads them. */
static bool input_stays(const viewer *w, const tni_instruction *in)
{
    const uint32_t value = tni_code_operands(w->c, in)[0];
    const tni_value *v = tni_code_value(w->c, value), *root = tni_code_value(w->c, v->root);
    const tni_port *port = root->place == TNI_PLACE_PORT ? tni_vec_at(&w->c->ports, root->port) : NULL;

    if (port && port->kind == TNI_PORT_GRADIENT && root->def == TNI_NONE)
        return false; /* the new gradient will lie there */
    return !w->written[v->root] && !v->tensor.layout && !root->tensor.layout && sized(&v->tensor) &&
           sized(&root->tensor) && !tni_dtype_packed(v->tensor.dtype) && v->device == root->device &&
           v->tensor.storage == TN_STORAGE_DENSE;
}

static bool output_plain(const viewer *w, uint32_t index, uint32_t o)
{
    const tni_instruction *in = tni_code_at(w->c, index);
    const uint32_t value = tni_code_operands(w->c, in)[in->in_count + o];
    const tni_value *v = tni_code_value(w->c, value);
    const tn_tensor *from = &tni_code_value(w->c, tni_code_operands(w->c, in)[0])->tensor;

    return v->root == value && v->def == index && v->place == TNI_PLACE_NONE && !w->written[value] &&
           tni_code_modes(w->c, in)[in->in_count + o] != TN_MODE_ADD && !v->tensor.layout &&
           sized(&v->tensor) && v->tensor.dtype == from->dtype &&
           v->device == tni_code_value(w->c, tni_code_operands(w->c, in)[0])->device;
}

static bool candidate(const viewer *w, uint32_t index)
{
    const tni_instruction *in = tni_code_at(w->c, index);
    bool fits = in->def->op->struct_size >= TN_END(tn_op, view) && in->def->op->view && in->prepared &&
                in->kind == TN_EXEC_KERNEL && in->in_count && !in->link_count && in->random == TNI_NONE &&
                in->saved == TNI_NONE && !(in->flags & (TNI_CODE_AGAIN | TNI_CODE_HELPER)) &&
                !(in->prepared->plan.flags & TN_PLAN_RESIZES) && input_stays(w, in);

    for (uint32_t o = 0; o < in->out_count && fits; o++)
        fits = output_plain(w, index, o);
    return fits;
}

static tn_status shape_push(viewer *w, const tn_tensor *t)
{
    tn_shape shape = {.ndim = t->ndim};

    for (int32_t d = 0; d < t->ndim; d++)
        shape.dim[d] = t->shape[d];
    return tni_vec_push(&w->shapes, &shape);
}

/* What the definition says of each output. */
static tn_status views_ask(viewer *w, const tni_instruction *in)
{
    const uint32_t count = in->in_count + in->out_count;
    const tni_args args = {
        .in_count = in->in_count, .out_count = in->out_count, .visible_count = in->out_count};
    const tn_shape **shapes = tni_calloc(count + 1u, sizeof *shapes);
    const tn_view none = {0};
    tn_status st = shapes ? TN_OK : TN_E_NOMEM;

    w->shapes.count = w->views.count = 0;
    for (uint32_t k = 0; k < count && !st; k++)
        st = shape_push(w, &tni_code_value(w->c, tni_code_operands(w->c, in)[k])->tensor);
    for (uint32_t k = 0; k < count && !st; k++)
        shapes[k] = tni_vec_at(&w->shapes, k);
    for (uint32_t o = 0; o < in->out_count && !st; o++)
        st = tni_vec_push(&w->views, &none);
    if (!st)
        st =
            tni_op_views(in->def, in->attrs, &args, w->c->p->flags & TN_NODE_NP_SHAPE ? TN_INFER_NP_SHAPE : 0,
                         (tn_shape *const *)shapes, (tn_shape *const *)(shapes + in->in_count),
                         tni_code_value(w->c, tni_code_operands(w->c, in)[0])->tensor.stride, w->views.data);
    tni_free((void *)shapes);
    return st;
}

/* ---- moving them there, for a try ---------------------------------------------------------------------- */

static tn_status moved_push(viewer *w, uint32_t value)
{
    const moved m = {value, *tni_code_value(w->c, value)};
    tn_status st = tni_vec_push(&w->moved, &m);

    for (int32_t d = 0; d < m.was.tensor.ndim && !st; d++)
        st = tni_vec_push(&w->strides, &m.was.tensor.stride[d]);
    return st;
}

/* One group of axes of `from` and one of `to` that have as many elements. */
typedef struct axes_pair {
    int32_t from, from_end, to, to_end;
} axes_pair;

static bool pair_find(const tn_tensor *from, const tn_tensor *to, axes_pair *p)
{
    int64_t have = from->shape[p->from], want = to->shape[p->to];

    p->from_end = p->from + 1;
    p->to_end = p->to + 1;
    while (have != want)
        if (want < have && p->to_end < to->ndim)
            want *= to->shape[p->to_end++];
        else if (have < want && p->from_end < from->ndim)
            have *= from->shape[p->from_end++];
        else
            return false;
    return true;
}

/* The strides of what `from` holds in the shape of `to`; false: it would have to be copied. */
static bool restride(const tn_tensor *from, const tn_tensor *to, int64_t *stride)
{
    axes_pair p = {0, 0, 0, 0};

    for (; p.from < from->ndim && p.to < to->ndim; p.from = p.from_end, p.to = p.to_end) {
        if (!pair_find(from, to, &p))
            return false;
        for (int32_t k = p.from; k + 1 < p.from_end; k++)
            if (from->stride[k] != from->shape[k + 1] * from->stride[k + 1])
                return false;
        stride[p.to_end - 1] = from->stride[p.from_end - 1];
        for (int32_t k = p.to_end - 1; k > p.to; k--)
            stride[k - 1] = stride[k] * to->shape[k];
    }
    for (; p.to < to->ndim; p.to++) /* axes of size 1 */
        stride[p.to] = 1;
    return true;
}

/* What lies in an output lies there, too. */
static bool inside_move(const tni_code *c, uint32_t output, uint32_t value)
{
    const tni_value *of = tni_code_value(c, output);
    tni_value *v = tni_code_value(c, value);

    v->delta += of->delta;
    v->flags |= TNI_VALUE_WINDOW;
    return tni_code_dense(c, output) || restride(&of->tensor, &v->tensor, (int64_t *)v->tensor.stride);
}

/* Output `o` becomes a window, but for its root. */
static tn_status output_move(viewer *w, const tni_instruction *in, uint32_t o, bool *fits)
{
    const uint32_t *operand = tni_code_operands(w->c, in), value = operand[in->in_count + o];
    const tn_view *view = tni_vec_at(&w->views, o);
    tni_value *v = tni_code_value(w->c, value);
    tn_status st = moved_push(w, value);

    if (st)
        return st;
    v->delta =
        tni_code_value(w->c, operand[0])->delta + tn_dtype_size(v->tensor.dtype, (uint64_t)view->offset);
    v->flags |= TNI_VALUE_WINDOW;
    memcpy((int64_t *)v->tensor.stride, view->stride, (size_t)v->tensor.ndim * sizeof *view->stride);
    for (uint32_t at = w->first_inside[value]; at && !st && *fits; at = w->next_inside[at - 1])
        if (!(st = moved_push(w, at - 1)))
            *fits = inside_move(w->c, value, at - 1);
    return st;
}

static void outputs_back(const viewer *w)
{
    const int64_t *stride = w->strides.data;

    for (uint32_t i = 0; i < w->moved.count; i++) {
        const moved *m = tni_vec_at(&w->moved, i);

        if (m->was.tensor.ndim)
            memcpy((int64_t *)m->was.tensor.stride, stride, (size_t)m->was.tensor.ndim * sizeof *stride);
        *tni_code_value(w->c, m->value) = m->was;
        stride += m->was.tensor.ndim;
    }
}

/* ---- their readers ------------------------------------------------------------------------------------- */

/* Instruction `code` can read the window as its operand `k`. Backward reads dense windows alone: variants of
 * it lend them. */
static bool readable(const viewer *w, uint32_t index, uint32_t code, uint32_t k, uint32_t value)
{
    const tni_instruction *in = tni_code_at(w->c, code);
    const uint32_t phase = tni_instruction_phase(tni_code_at(w->c, index));
    const uint32_t root = tni_code_root(w->c, tni_code_operands(w->c, tni_code_at(w->c, index))[0]);
    const bool dense = tni_code_dense(w->c, value);

    if (in->kind != TN_EXEC_KERNEL || !in->prepared ||
        (in->prepared->on_host &&
         tni_kernel_on_host(in->prepared->kernel, in->def->op, in->in_count, in->out_count, k)))
        return false;
    if (tni_instruction_phase(in) != phase &&
        !(phase == TNI_FORWARD && dense && tni_code_value(w->c, root)->place == TNI_PLACE_NONE))
        return false;
    return dense || (in->prepared->kernel->flags & TN_KERNEL_STRIDED && !in->prepared->layouts &&
                     in->saved == TNI_NONE);
}

/* The kernel that reader `code` has also takes what it reads now. */
static tn_status reader_choose(viewer *w, uint32_t code, bool *fits)
{
    const tni_prepared *have = tni_code_at(w->c, code)->prepared;
    chosen made = {code, NULL};
    tn_status st;

    for (uint32_t i = 0; i < w->chosen.count; i++)
        if (((const chosen *)tni_vec_at(&w->chosen, i))->code == code)
            return TN_OK;
    if ((st = tni_code_choose(w->c, code, &made.prepared))) {
        *fits = false;
        if (st == TN_E_UNSUPPORTED)
            tni_error_clear();
        return st == TN_E_UNSUPPORTED ? TN_OK : st;
    }
    *fits = made.prepared->kernel == have->kernel && !made.prepared->dense && !made.prepared->layouts &&
            !made.prepared->plan.saved_bytes &&
            !((made.prepared->plan.flags ^ have->plan.flags) & TN_PLAN_RESIZES);
    if ((st = tni_vec_push(&w->chosen, &made)))
        tni_prepared_release(made.prepared);
    return st;
}

/* All readers of what was moved; `*late`: the last of them. */
static tn_status readers_ask(viewer *w, uint32_t index, uint32_t *late, bool *fits)
{
    tn_status st = TN_OK;

    *late = index;
    for (uint32_t i = 0; i < w->moved.count && *fits && !st; i++) {
        const uint32_t value = ((const moved *)tni_vec_at(&w->moved, i))->value;

        for (uint32_t at = w->first_reader[value]; at && *fits && !st; at = w->next_reader[at - 1]) {
            const uint32_t code = w->reader[at - 1];

            *late = code > *late ? code : *late;
            *fits = readable(w, index, code, at - 1 - tni_code_at(w->c, code)->first_operand, value);
            if (*fits && !tni_code_dense(w->c, value))
                st = reader_choose(w, code, fits);
        }
    }
    return st;
}

/* Copies would take as many bytes as the root takes for living on. */
static bool worth(const viewer *w, uint32_t index, uint32_t late)
{
    const tni_code *c = w->c;
    const uint32_t root = tni_code_root(c, tni_code_operands(c, tni_code_at(c, index))[0]);
    const uint32_t phase = tni_instruction_phase(tni_code_at(c, late));
    uint64_t bytes = 0;

    if (tni_code_value(c, root)->place != TNI_PLACE_NONE || w->last[root] >= late)
        return true;
    for (uint32_t i = 0; i < w->moved.count; i++) {
        const tni_value *v = &((const moved *)tni_vec_at(&w->moved, i))->was;
        const uint32_t value = ((const moved *)tni_vec_at(&w->moved, i))->value;
        bool there = false;

        for (uint32_t at = v->root == value ? w->first_reader[value] : 0; at && !there;
             at = w->next_reader[at - 1])
            there = tni_instruction_phase(tni_code_at(c, w->reader[at - 1])) == phase;
        bytes += there ? v->tensor.bytes : 0;
    }
    return bytes >= tni_code_value(c, root)->tensor.bytes ||
           (late - index <= REACH && phase == tni_instruction_phase(tni_code_at(c, index)));
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static tn_status reader_take(const viewer *w, chosen *made)
{
    tni_instruction *in = tni_code_at(w->c, made->code);
    const uint64_t had = tni_workspace_bytes(&in->prepared->plan),
                   needs = tni_workspace_bytes(&made->prepared->plan);

    tni_prepared_release(in->prepared);
    in->prepared = made->prepared; /* moved */
    made->prepared = NULL;
    if (had == needs)
        return TN_OK;
    in->workspace = TNI_NONE;
    return needs ? tni_code_block_add(w->c, tni_code_device(w->c, in), needs, &in->workspace) : TN_OK;
}

/* The try holds: the instruction is gone. */
static tn_status views_settle(viewer *w, uint32_t index, uint32_t late)
{
    const uint32_t root = tni_code_root(w->c, tni_code_operands(w->c, tni_code_at(w->c, index))[0]);
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->moved.count; i++) {
        const uint32_t value = ((const moved *)tni_vec_at(&w->moved, i))->value;

        tni_code_value(w->c, value)->root = root;
        tni_code_value(w->c, value)->def = TNI_NONE;
        inside_add(w, root, value);
    }
    w->last[root] = late > w->last[root] ? late : w->last[root];
    w->gone[index] = 1;
    w->c->rewrites++;
    for (uint32_t i = 0; i < w->chosen.count && !st; i++)
        st = reader_take(w, tni_vec_at(&w->chosen, i));
    return st;
}

static tn_status instruction_view(viewer *w, uint32_t index)
{
    const tni_instruction *in = tni_code_at(w->c, index);
    uint32_t late = index;
    bool fits = true;
    tn_status st = views_ask(w, in);

    if (st)
        return st == TN_E_UNSUPPORTED ? TN_OK : st;
    w->moved.count = w->strides.count = w->chosen.count = 0;
    for (uint32_t o = 0; o < in->out_count && fits && !st; o++)
        st = output_move(w, in, o, &fits);
    if (!st && fits)
        st = readers_ask(w, index, &late, &fits);
    if (!st && fits && worth(w, index, late))
        st = views_settle(w, index, late);
    else
        outputs_back(w);
    for (uint32_t i = 0; i < w->chosen.count; i++)
        tni_prepared_release(((chosen *)tni_vec_at(&w->chosen, i))->prepared);
    return st;
}

static tn_status code_edit(const viewer *w)
{
    tni_edit e;
    tn_status st = TN_OK;

    tni_edit_begin(&e, w->c);
    for (uint32_t i = 0; i < w->c->code.count && !st; i++)
        st = w->gone[i] ? tni_edit_drop(&e, i) : tni_edit_keep(&e, i);
    return tni_edit_end(&e, st);
}

static tn_status viewer_init(viewer *w, tni_code *c)
{
    const uint64_t values = c->values.count + 1, operands = c->operands.count + 1;

    *w = (viewer){.c = c};
    tni_vec_init(&w->chosen, sizeof(chosen), c->operands.max);
    tni_vec_init(&w->shapes, sizeof(tn_shape), c->operands.max);
    tni_vec_init(&w->views, sizeof(tn_view), c->operands.max);
    tni_vec_init(&w->moved, sizeof(moved), c->values.max);
    tni_vec_init(&w->strides, sizeof(int64_t), UINT32_MAX);
    w->first_reader = tni_calloc(values, sizeof *w->first_reader);
    w->next_reader = tni_calloc(operands, sizeof *w->next_reader);
    w->reader = tni_calloc(operands, sizeof *w->reader);
    w->first_inside = tni_calloc(values, sizeof *w->first_inside);
    w->next_inside = tni_calloc(values, sizeof *w->next_inside);
    w->last = tni_calloc(values, sizeof *w->last);
    w->gone = tni_calloc(c->code.count + 1, 1);
    if (!w->first_reader || !w->next_reader || !w->reader || !w->first_inside || !w->next_inside ||
        !w->last || !w->gone)
        return TN_E_NOMEM;
    return tni_code_written(c, &w->written);
}

static void viewer_fini(viewer *w)
{
    tni_vec_fini(&w->chosen);
    tni_vec_fini(&w->shapes);
    tni_vec_fini(&w->views);
    tni_vec_fini(&w->moved);
    tni_vec_fini(&w->strides);
    tni_free(w->written);
    tni_free(w->first_reader);
    tni_free(w->next_reader);
    tni_free(w->reader);
    tni_free(w->first_inside);
    tni_free(w->next_inside);
    tni_free(w->last);
    tni_free(w->gone);
}

static bool any_views(const tni_code *c)
{
    bool any = false;

    for (uint32_t i = 0; i < c->code.count && !any; i++) {
        const tn_op *op = tni_code_at(c, i)->def->op;

        any = op->struct_size >= TN_END(tn_op, view) && op->view;
    }
    return any;
}

tn_status tni_pass_views(tni_code *c)
{
    viewer w;
    tn_status st;

    if (!c->p->graph || !any_views(c))
        return TN_OK;
    if (!(st = viewer_init(&w, c)))
        uses_note(&w);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        if (candidate(&w, i))
            st = instruction_view(&w, i);
    if (!st && c->rewrites)
        st = code_edit(&w);
    viewer_fini(&w);
    return st;
}
