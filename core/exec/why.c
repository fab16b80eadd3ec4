/*
 * A question about a kernel becomes the request that a call would make: attributes are parsed, what is not
 * given of the inputs is inferred, and tensors without data describe the rest.
 */
#include "exec/exec.h"

#include <string.h>

#define ROUNDS 3 /* of inference over one node: forth, back, forth */

typedef struct question {
    const tni_why_query *q;
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_attrs defaults; /* stands for `attrs` where required ones are missing and nothing depends on them */
    tni_args args;
    tni_why *out;
} question;

static const tni_attrs *attrs_of(const question *w)
{
    return w->attrs ? w->attrs : &w->defaults;
}

static tn_status attrs_read(question *w)
{
    const tni_why_query *q = w->q;
    tn_status st = tni_attrs_parse(w->def, q->attr_count, q->names, q->texts, &w->attrs);

    w->defaults = (tni_attrs){.def = w->def, .values = w->def->defaults};
    if (st != TN_E_ATTR || q->attr_count || q->input_count)
        return st;
    tni_error_clear();
    return TN_OK;
}

static tn_status args_read(question *w)
{
    tn_status st = tni_op_args(w->def, w->attrs, -1, &w->args);

    if (!st || !w->def->variadic)
        return st;
    return tni_op_args(w->def, w->attrs, w->q->input_count ? w->q->input_count : 1, &w->args);
}

/* ---- shapes and types -------------------------------------------------------------------------------- */

static tn_status room_make(question *w)
{
    tni_why *y = w->out;
    const uint32_t count = w->args.in_count + w->args.out_count;

    y->in_count = w->args.in_count;
    y->out_count = w->args.out_count;
    y->shapes = tni_calloc(count + 1u, sizeof *y->shapes);
    y->dtypes = tni_calloc(count + 1u, sizeof *y->dtypes);
    y->names = tni_calloc(count + 1u, sizeof *y->names);
    if (!y->shapes || !y->dtypes || !y->names)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const bool output = i >= y->in_count;
        tn_status st =
            output ? tni_op_output_name(w->def, &w->args, i - y->in_count, y->names[i], TNI_WHY_NAME_BYTES)
                   : tni_op_input_name(w->def, &w->args, i, y->names[i], TNI_WHY_NAME_BYTES);

        if (st)
            return st;
        y->shapes[i].ndim = TN_NDIM_UNKNOWN;
        y->dtypes[i] = TN_DTYPE_UNKNOWN;
    }
    return TN_OK;
}

static tn_status input_find(const question *w, const char *name, uint32_t position, uint32_t *out)
{
    const tni_why *y = w->out;
    tni_str names;
    tn_status st;

    for (uint32_t i = 0; i < y->in_count; i++)
        if (name ? !strcmp(y->names[i], name) : i == position) {
            *out = i;
            return TN_OK;
        }
    if (!name)
        return tni_error(TN_E_ARG, "%s takes %u inputs, %u shapes were given", w->def->op->name, y->in_count,
                         w->q->input_count);
    tni_str_init(&names, 1u << 12);
    for (uint32_t i = 0; i < y->in_count; i++)
        (void)tni_str_addf(&names, "%s%s", i ? ", " : "", y->names[i]);
    st = tni_error(TN_E_KEY, "%s has no input %.60s; it has %.300s", w->def->op->name, name,
                   names.text ? names.text : "none");
    tni_str_fini(&names);
    return st;
}

static tn_status inputs_place(question *w)
{
    const tni_why_query *q = w->q;
    tni_why *y = w->out;

    for (uint32_t i = 0; i < q->input_count; i++) {
        uint32_t at = 0;
        tn_status st = input_find(w, q->inputs[i].name, i, &at);

        if (st)
            return st;
        if (q->inputs[i].ndim > TN_NDIM_MAX)
            return tni_error(TN_E_SHAPE, "%s: a shape of %d dimensions, at most %d are allowed",
                             w->def->op->name, q->inputs[i].ndim, TN_NDIM_MAX);
        if (q->inputs[i].ndim >= 0) {
            y->shapes[at].ndim = q->inputs[i].ndim;
            if (q->inputs[i].ndim)
                memcpy(y->shapes[at].dim, q->inputs[i].shape, (size_t)q->inputs[i].ndim * sizeof(int64_t));
        }
        if (q->inputs[i].dtype >= 0)
            y->dtypes[at] = q->inputs[i].dtype;
    }
    return TN_OK;
}

/* The first input has the type that was asked for; what does not follow from it has it, too. */
static tn_status types_infer(question *w)
{
    tni_why *y = w->out;
    tn_status st;

    if (y->in_count && y->dtypes[0] < 0)
        y->dtypes[0] = w->q->dtype;
    for (int round = 0; round < 2; round++) {
        if ((st = tni_op_infer_dtype(w->def, attrs_of(w), &w->args, y->dtypes, y->dtypes + y->in_count)))
            return st;
        for (uint32_t i = 0; i < y->in_count; i++)
            if (y->dtypes[i] < 0)
                y->dtypes[i] = w->q->dtype;
    }
    for (uint32_t i = y->in_count; i < y->in_count + y->out_count; i++)
        if (y->dtypes[i] < 0)
            y->dtypes[i] = w->q->dtype;
    return TN_OK;
}

static tn_status shapes_infer(question *w)
{
    const uint32_t flags = w->q->train ? TN_INFER_TRAIN : 0u;
    tni_why *y = w->out;
    tn_shape **list = tni_calloc(y->in_count + y->out_count + 1u, sizeof *list);
    tn_status st = list ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; list && i < y->in_count + y->out_count; i++)
        list[i] = &y->shapes[i];
    for (int round = 0; !st && round < ROUNDS; round++)
        st = tni_op_infer_shape(w->def, attrs_of(w), &w->args, flags, list, list + y->in_count);
    tni_free(list);
    for (uint32_t i = 0; !st && i < y->in_count; i++)
        if (!tn_shape_known(&y->shapes[i]))
            st = tni_error(TN_E_SHAPE, "%s: the shape of %s does not follow from what is given; give it, too",
                           w->def->op->name, y->names[i]);
    return st;
}

/* ---- the request ------------------------------------------------------------------------------------- */

typedef struct tensors {
    tn_tensor *items;
    const tn_tensor **list;
    int64_t *strides;
    uint8_t *modes;
    uint32_t count; /* inputs, outputs, then the mutated inputs again */
} tensors;

static void tensors_fini(tensors *t)
{
    tni_free(t->items);
    tni_free((void *)t->list);
    tni_free(t->strides);
    tni_free(t->modes);
}

static tn_status tensors_make(const question *w, tensors *t)
{
    const tni_why *y = w->out;
    const uint32_t own = y->in_count + y->out_count;

    t->items = tni_calloc(own + y->in_count + 1u, sizeof *t->items);
    t->list = tni_calloc(own + y->in_count + 1u, sizeof *t->list);
    t->strides = tni_calloc(own + 1u, TN_NDIM_MAX * sizeof *t->strides);
    t->modes = tni_calloc(own + y->in_count + 1u, 1);
    if (!t->items || !t->list || !t->strides || !t->modes)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < own; i++) {
        tn_tensor *x = &t->items[i];

        x->shape = y->shapes[i].dim;
        x->stride = t->strides + (size_t)i * TN_NDIM_MAX;
        x->ndim = y->shapes[i].ndim;
        x->dtype = y->dtypes[i];
        if (tn_shape_known(&y->shapes[i]))
            x->bytes = tn_dtype_size(
                x->dtype, (uint64_t)tni_row_major(x->ndim, x->shape, t->strides + (size_t)i * TN_NDIM_MAX));
    }
    t->count = own;
    for (uint32_t i = 0; i < y->in_count; i++)
        if (tn_op_mutates(w->def->op, y->in_count, i))
            t->items[t->count++] = t->items[i];
    for (uint32_t i = 0; i < t->count; i++)
        t->list[i] = &t->items[i];
    memset(t->modes, TN_MODE_WRITE, t->count - y->in_count);
    return TN_OK;
}

static tn_status choice_ask(tni_context *c, question *w)
{
    tni_why *y = w->out;
    tensors t = {0};
    tni_request r = {.def = tni_op_meaning(w->def), .attrs = attrs_of(w), .device = w->q->device};
    tn_status st = tensors_make(w, &t);

    if (!st) {
        r.in = t.list;
        r.out = t.list + y->in_count;
        r.modes = t.modes;
        r.in_count = y->in_count;
        r.out_count = t.count - y->in_count;
        r.threads = tni_exec_threads(c);
        r.flags = (uint16_t)(tni_exec_node_flags(c) | (w->q->train ? TN_NODE_TRAIN | TN_NODE_RECORDED : 0u));
        st = tni_select_why(c->selector, &r, w->q->input_count > 0, &y->choice);
    }
    tensors_fini(&t);
    return st;
}

/* ---- public functions ------------------------------------------------------------------------------- */

void tni_why_destroy(tni_why *y)
{
    if (!y)
        return;
    tni_choice_fini(&y->choice);
    tni_free(y->shapes);
    tni_free(y->dtypes);
    tni_free(y->names);
    tni_free(y);
}

tn_status tni_why_create(tni_context *c, const tni_why_query *q, tni_why **out)
{
    question w = {.q = q, .out = tni_zalloc(sizeof *w.out)};
    tn_status st;

    if (!w.out)
        return TN_E_NOMEM;
    w.out->choice.chosen = TNI_NONE;
    if ((st = tni_opset_find(c->ops, q->op, &w.def)) || (st = attrs_read(&w)) || (st = args_read(&w)) ||
        (st = room_make(&w)) || (st = inputs_place(&w)) || (st = types_infer(&w)) ||
        (q->input_count && (st = shapes_infer(&w))))
        goto cleanup;
    w.out->def = w.def;
    w.out->device = q->device;
    w.out->asked = q->input_count > 0;
    if (!(w.def->op->flags & TN_OP_VIEW) && (st = choice_ask(c, &w)))
        goto cleanup;
    *out = w.out;
    w.out = NULL;

cleanup:
    tni_attrs_release(w.attrs);
    tni_why_destroy(w.out);
    return st;
}
