/*
 * Definitions made complete from their rules. A shape rule gives names, counts and shapes; a gradient rule
 * gives the gradient and a whole backward operator: its shapes and types are those of the forward operator's
 * arguments that it reads, and of the inputs whose gradients it gives. Users of a definition meet a tn_op
 * like any other, whose functions find the rules behind it.
 */
#include <string.h>

#include "op/shape_rule.h"

#define BACKWARD "_backward_"
#define SLOTS_MAX (2 * RULE_ARGS_MAX)

struct tni_ruled_op {
    tn_op op; /* first: its functions get this address */
    const char **inputs, **outputs;
    char *texts;                  /* of a backward one: its name, then `doc` */
    const tni_ruled_op *forward;  /* of a backward one, else NULL */
    tni_shape_rule *_Atomic rule; /* of a forward one; parsed at first use */
};

static const tni_ruled_op *ruled_of(const tn_op *op)
{
    return (const tni_ruled_op *)(const void *)op;
}

bool tni_op_is_ruled(const tn_op *op)
{
    return op->struct_size >= TN_END(tn_op, shapes) && op->shapes;
}

const tn_op *tni_ruled_op_definition(const tni_ruled_op *r)
{
    return &r->op;
}

static tn_status rule_of(const tni_ruled_op *r, const tni_shape_rule **out)
{
    tni_ruled_op *kept = (tni_ruled_op *)(uintptr_t)(r->forward ? r->forward : r); /* what first use makes */
    tni_shape_rule *rule = atomic_load_explicit(&kept->rule, memory_order_acquire), *none = NULL;
    tn_status st;

    if (!rule) {
        if ((st = tni_shape_rule_parse(&kept->op, false, &rule)))
            return st;
        if (!atomic_compare_exchange_strong(&kept->rule, &none, rule)) { /* another thread was first */
            tni_shape_rule_destroy(rule);
            rule = none;
        }
    }
    *out = rule;
    return TN_OK;
}

/* The same for the functions of a definition, whose errors stand in `err`. */
static tn_status rule_for(const tn_op *op, tn_err *err, const tni_shape_rule **out)
{
    tn_status st = rule_of(ruled_of(op), out);
    tn_err last;

    if (!st)
        return TN_OK;
    tni_error_get(&last);
    return tn_fail(err, st, last.message);
}

/* ---- a definition with a shape rule ----------------------------------------------------------- */

static tn_status forward_args(tn_infer *i)
{
    const tni_shape_rule *rule;
    tn_status st = rule_for(i->op, i->err, &rule);

    return st ? st : tni_shape_rule_args(rule, i);
}

static tn_status forward_shape(tn_infer *i)
{
    const tni_shape_rule *rule;
    tn_status st = rule_for(i->op, i->err, &rule);

    return st ? st : tni_shape_rule_infer(rule, i, i->in_shape, i->out_shape);
}

/* ---- rows of a gradient rule ------------------------------------------------------------------ */

/* The row that holds with some attributes; NULL: none, so there is no gradient. */
static const rule_gradient *row_choose(const tni_shape_rule *r, const tn_value *attrs)
{
    for (uint8_t k = 0; k < r->gradient_count; k++)
        if (tni_rule_holds(r, r->gradients[k].cond, attrs))
            return &r->gradients[k];
    return NULL;
}

/* Where an argument stands among the inputs, or among the outputs, that are there. */
static uint32_t arg_index(const tni_shape_rule *r, uint8_t arg, const tn_value *attrs)
{
    uint32_t index = 0;

    for (uint8_t a = arg >= r->in_count ? r->in_count : 0; a < arg; a++)
        index += tni_shape_rule_present(r, a, attrs);
    return index;
}

static tn_edge role_edge(tn_grad *g, const tni_shape_rule *r, const rule_role *role)
{
    const uint32_t index = arg_index(r, role->arg, g->attrs);

    if (role->head)
        return tn_grad_of(g, index);
    return role->arg < r->in_count ? tn_grad_input(g, index) : tn_grad_output(g, index);
}

static tn_status forward_gradient(tn_grad *g)
{
    char backward[TN_NAME_MAX];
    tn_edge in[RULE_ARGS_MAX], made = {NULL, 0, 0};
    tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT | TN_EMIT_BACKWARD, backward, in, NULL, 0, 0};
    const tni_shape_rule *r;
    const rule_gradient *row;
    bool reads_head = false, arrives = false, wanted = false;
    tn_status st = rule_for(g->op, g->err, &r);

    if (st || !(row = row_choose(r, g->attrs)))
        return st;
    snprintf(backward, sizeof backward, BACKWARD "%s", g->op->name);
    for (uint8_t k = 0; k < row->in_count; k++) {
        if (!tni_shape_rule_present(r, row->in[k].arg, g->attrs))
            continue;
        in[e.in_count] = role_edge(g, r, &row->in[k]);
        reads_head = reads_head || row->in[k].head;
        arrives = arrives || (row->in[k].head && in[e.in_count].node);
        e.in_count++;
    }
    for (uint8_t k = 0; k < row->out_count; k++)
        wanted = wanted || tni_shape_rule_present(r, row->out[k].arg, g->attrs);
    if ((reads_head && !arrives) || !wanted)
        return TN_OK;
    st = g->ops->emit(g, &e, &made);
    for (uint8_t k = 0; !st && k < row->out_count; k++) {
        if (!tni_shape_rule_present(r, row->out[k].arg, g->attrs))
            continue;
        st = g->ops->set(g, arg_index(r, row->out[k].arg, g->attrs), made);
        made.index++;
    }
    return st;
}

/* ---- a backward definition -------------------------------------------------------------------- */

static tn_status backward_args(tn_infer *i)
{
    const tni_shape_rule *r;
    const rule_gradient *row;
    tn_status st = rule_for(i->op, i->err, &r);

    if (st)
        return st;
    if (!(row = row_choose(r, i->attrs)))
        return tni_infer_fail(i, TN_E_ATTR, "there is no gradient with these attributes");
    i->in_count = i->out_count = 0;
    for (uint8_t k = 0; k < row->in_count; k++)
        i->in_count += tni_shape_rule_present(r, row->in[k].arg, i->attrs);
    for (uint8_t k = 0; k < row->out_count; k++)
        i->out_count += tni_shape_rule_present(r, row->out[k].arg, i->attrs);
    i->visible_count = i->out_count;
    return TN_OK;
}

/* The forward operator's arguments as inference of the backward one sees them. */
typedef struct mirror {
    const tni_shape_rule *rule;
    tn_infer i;                      /* of the forward */
    uint32_t role[SLOTS_MAX], count; /* slot of each input, then output, of the backward */
    tn_shape shape[SLOTS_MAX];       /* by slot: inputs, then outputs that are there */
    int32_t dtype[SLOTS_MAX];
} mirror;

static tn_status mirror_init(mirror *m, tn_infer *i)
{
    const tni_ruled_op *f = ruled_of(i->op)->forward;
    const rule_gradient *row;
    tn_status st = rule_for(i->op, i->err, &m->rule);

    if (st)
        return st;
    m->i = *i;
    memset(m->shape, 0, sizeof m->shape);
    m->i.op = &f->op;
    m->i.in_count = m->rule->in_count;
    m->count = 0;
    row = row_choose(m->rule, i->attrs);
    if (!row || (st = tni_shape_rule_args(m->rule, &m->i)))
        return row ? st : TN_E_ATTR;
    for (uint32_t k = 0; k < row->in_count + (uint32_t)row->out_count; k++) {
        const uint8_t arg = k < row->in_count ? row->in[k].arg : row->out[k - row->in_count].arg;

        if (tni_shape_rule_present(m->rule, arg, i->attrs))
            m->role[m->count++] =
                arg_index(m->rule, arg, i->attrs) + (arg < m->rule->in_count ? 0 : m->i.in_count);
    }
    if (m->count != i->in_count + i->out_count || m->i.in_count + m->i.out_count > SLOTS_MAX)
        return tni_infer_fail(i, TN_E_ARG, "%u inputs and outputs, but %u are needed",
                              i->in_count + i->out_count, m->count);
    return TN_OK;
}

static tn_status backward_shape(tn_infer *i)
{
    tn_shape *slots[SLOTS_MAX];
    mirror m;
    tn_status st = mirror_init(&m, i);

    for (uint32_t k = 0; k < SLOTS_MAX; k++) {
        m.shape[k].ndim = TN_NDIM_UNKNOWN;
        slots[k] = &m.shape[k];
    }
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tn_shape_unify(i, &m.shape[m.role[k]],
                            k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count]);
    if (st || (st = tni_shape_rule_infer(m.rule, &m.i, slots, slots + m.i.in_count)))
        return st;
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tn_shape_unify(i, k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count],
                            &m.shape[m.role[k]]);
    return st;
}

static tn_status backward_dtype(tn_infer *i)
{
    mirror m;
    tn_status st = mirror_init(&m, i);

    for (uint32_t k = 0; k < SLOTS_MAX; k++)
        m.dtype[k] = -1;
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tni_dtype_assign(i, &m.dtype[m.role[k]],
                              k < i->in_count ? i->in_dtype[k] : i->out_dtype[k - i->in_count]);
    if (st)
        return st;
    m.i.in_dtype = m.dtype;
    m.i.out_dtype = m.dtype + m.i.in_count;
    if ((st = m.i.op->dtype(&m.i)))
        return st;
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tni_dtype_assign(i, k < i->in_count ? &i->in_dtype[k] : &i->out_dtype[k - i->in_count],
                              m.dtype[m.role[k]]);
    return st;
}

/* Of a bilinear row: each gradient of an operand takes as much as the forward. What stands beside the
 * operands, such as a bias, is left out of account. */
static void backward_cost(const tn_infer *i, tn_cost *c)
{
    tn_infer given = *i;
    tn_shape *slots[SLOTS_MAX];
    tn_cost forward = {.struct_size = sizeof forward};
    mirror m;

    if (mirror_init(&m, &given))
        return;
    for (uint32_t k = 0; k < SLOTS_MAX; k++)
        slots[k] = &m.shape[k];
    for (uint32_t k = 0; k < m.count; k++)
        m.shape[m.role[k]] = *(k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count]);
    m.i.in_shape = slots;
    m.i.out_shape = slots + m.i.in_count;
    m.i.op->cost(&m.i, &forward);
    c->macs = tn_cost_times(2, forward.macs);
    c->flops = tn_cost_times(2, forward.flops);
}

static tn_status second_refused(tn_grad *g)
{
    return tn_fail(g->err, TN_E_UNSUPPORTED, "it has no second derivative here");
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Names of arguments in these roles; gradients of inputs are called "d_" and the name. */
static tn_status names_make(const tni_shape_rule *r, const rule_role *roles, uint32_t count, bool gradients,
                            const char ***out)
{
    const size_t head = (count + 1) * sizeof(char *);
    const char **names;
    size_t bytes = head;
    char *p;

    for (uint32_t k = 0; k < count; k++)
        bytes += r->cases[0].arg[roles[k].arg].bytes + (size_t)5;
    if (!(names = tni_zalloc(bytes)))
        return TN_E_NOMEM;
    p = (char *)names + head;
    for (uint32_t k = 0; k < count; k++) {
        const rule_arg *a = &r->cases[0].arg[roles[k].arg];

        names[k] = p;
        if (roles[k].head)
            p += sprintf(p, roles[k].arg > r->in_count ? "dy%u" : "dy", roles[k].arg - r->in_count) + 1;
        else
            p += sprintf(p, "%s%.*s%s", gradients ? "d_" : "", a->bytes, r->text + a->text,
                         a->variadic ? "*" : "") +
                 1;
    }
    *out = names;
    return TN_OK;
}

/* Names of the operator's own arguments, and how many outputs stand before the first hidden one, if any. */
static tn_status names_own(tni_ruled_op *r, const tni_shape_rule *heads)
{
    const rule_arg *outputs = heads->cases[0].arg + heads->in_count;
    rule_role roles[RULE_ARGS_MAX] = {{false, 0}};
    tn_status st;

    for (uint8_t k = 0; k < RULE_ARGS_MAX; k++)
        roles[k].arg = k;
    if ((st = names_make(heads, roles, heads->in_count, false, &r->inputs)) ||
        (st = names_make(heads, roles + heads->in_count, heads->out_count, false, &r->outputs)))
        return st;
    while (r->op.visible < heads->out_count && !outputs[r->op.visible].hidden)
        r->op.visible++;
    if (r->op.visible == heads->out_count)
        r->op.visible = 0; /* all */
    r->op.inputs = r->inputs;
    r->op.outputs = r->outputs;
    return TN_OK;
}

/* ---- making them ------------------------------------------------------------------------------ */

tn_status tni_op_texts_check(const tn_op *op)
{
    if (op->struct_size < TN_END(tn_op, second))
        return TN_OK;
    if (!op->shapes && (op->gradients || op->second))
        return tni_error(TN_E_ARG, "operator %s: a gradient rule, but no shape rule", op->name);
    if (op->second && !op->gradients)
        return tni_error(TN_E_ARG, "operator %s: a function `second`, but no gradient rule", op->name);
    if (op->shapes && op->struct_size >= TN_END(tn_op, computes) && op->computes)
        return tni_error(TN_E_ARG, "operator %s: it computes %.80s, so its shapes are that one's", op->name,
                         op->computes);
    return TN_OK;
}

tn_status tni_ruled_op_create(const tn_op *given, bool at_once, tni_ruled_op **out)
{
    tni_ruled_op *r;
    tni_shape_rule *heads = NULL;
    const tni_shape_rule *rule;
    tn_status st;

    if (given->inputs || given->outputs || given->args || given->shape || given->visible)
        return tni_error(
            TN_E_ARG,
            "operator %s: beside a shape rule, inputs, outputs, visible, args and shape are left out",
            given->name);
    if (!(r = tni_zalloc(sizeof *r)))
        return TN_E_NOMEM;
    memcpy(&r->op, given, given->struct_size < sizeof r->op ? given->struct_size : sizeof r->op);
    r->op.struct_size = sizeof r->op;
    if ((st = tni_shape_rule_parse(&r->op, true, &heads)) || (st = names_own(r, heads)))
        goto cleanup;
    r->op.args = forward_args;
    r->op.shape = forward_shape;
    if (r->op.gradients && r->op.gradient)
        st = tni_error(TN_E_ARG, "operator %s: a gradient rule and a function `gradient`", given->name);
    else if (r->op.gradients)
        r->op.gradient = forward_gradient;
    if (st || (at_once && (st = rule_of(r, &rule))))
        goto cleanup;
    *out = r;
    r = NULL;

cleanup:
    tni_shape_rule_destroy(heads);
    tni_ruled_op_destroy(r);
    return st;
}

static tn_status texts_make(tni_ruled_op *b, const char *forward)
{
    const size_t bytes = strlen(forward) + sizeof "Gradients of .";

    if (!(b->texts = tni_alloc(2 * bytes)))
        return TN_E_NOMEM;
    b->op.name = b->texts;
    b->op.doc = b->texts + snprintf(b->texts, bytes, BACKWARD "%s", forward) + 1;
    snprintf(b->texts + strlen(b->texts) + 1, bytes, "Gradients of %s.", forward);
    return TN_OK;
}

tn_status tni_ruled_op_backward(const tni_ruled_op *forward, tni_ruled_op **out)
{
    static tn_status (*const second[])(tn_grad *) = {[CLASS_LINEAR] = tni_grad_of_linear,
                                                     [CLASS_BILINEAR] = tni_grad_of_product,
                                                     [CLASS_ONCE] = second_refused};
    const tn_op *f = &forward->op;
    tni_shape_rule *heads = NULL;
    const rule_gradient *row;
    tni_ruled_op *b = NULL;
    tn_status st;

    *out = NULL;
    if (!f->gradients)
        return TN_OK;
    if ((st = tni_shape_rule_parse(f, true, &heads)))
        return st;
    if (!(b = tni_zalloc(sizeof *b))) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    b->forward = forward;
    b->op =
        (tn_op){.struct_size = sizeof b->op,
                .version = f->version,
                .exec = f->exec,
                .attrs = f->attrs,
                .flags = TN_OP_BACKWARD,
                .args = backward_args,
                .shape = backward_shape,
                .dtype = f->dtype ? backward_dtype : NULL,
                .cost = f->cost && heads->gradient_class == CLASS_BILINEAR ? backward_cost : NULL,
                .gradient = heads->gradient_class == CLASS_OWN ? f->second : second[heads->gradient_class]};
    row = &heads->gradients[0];
    if ((st = texts_make(b, f->name)) ||
        (st = names_make(heads, row->in, row->in_count, false, &b->inputs)) ||
        (st = names_make(heads, row->out, row->out_count, true, &b->outputs)))
        goto cleanup;
    b->op.inputs = b->inputs;
    b->op.outputs = b->outputs;
    *out = b;
    b = NULL;

cleanup:
    tni_shape_rule_destroy(heads);
    tni_ruled_op_destroy(b);
    return st;
}

void tni_ruled_op_destroy(tni_ruled_op *r)
{
    if (!r)
        return;
    tni_shape_rule_destroy(atomic_load_explicit(&r->rule, memory_order_acquire));
    tni_free(r->inputs);
    tni_free(r->outputs);
    tni_free(r->texts);
    tni_free(r);
}

tn_status tni_ruled_op_parse(const tn_op *op)
{
    const tni_shape_rule *rule;

    return op->shape == forward_shape ? rule_of(ruled_of(op), &rule) : TN_OK;
}
