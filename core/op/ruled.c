/*
 * Definitions made complete from their rules. A shape rule gives names, counts and shapes, a type rule data
 * types; a gradient rule gives the gradient and a whole backward operator: its shapes and types are those of
 * the forward operator's arguments that it reads, and of the inputs whose gradients it gives. Users of a
 * definition meet a tn_op like any other, whose functions find the rules behind it.
 */
#include <string.h>

#include "op/shape_rule.h"

#define BACKWARD "_backward_"

struct tni_ruled_op {
    tn_op op; /* first: its functions get this address */
    const char **inputs, **outputs;
    const char **lists; /* of a backward one: names of the inputs that are there; NULL: all, or first ones */
    uint8_t optional_count, optional[RULE_OPTIONAL_MAX]; /* roles that may be missing */
    char *texts;                                         /* of a backward one: its name, then `doc` */
    const tni_ruled_op *forward;                         /* of a backward one, else NULL */
    tni_shape_rule *_Atomic rule;                        /* of a forward one; parsed at first use */
};

static const tni_ruled_op *ruled_of(const tn_op *op)
{
    return (const tni_ruled_op *)(const void *)op;
}

bool tni_op_is_ruled(const tn_op *op)
{
    return (op->struct_size >= TN_END(tn_op, shapes) && op->shapes) ||
           (op->struct_size >= TN_END(tn_op, gradients) && op->gradients) ||
           (op->struct_size >= TN_END(tn_op, types) && op->types);
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

/* ---- a definition with rules ------------------------------------------------------------------ */

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

static tn_status forward_dtype(tn_infer *i)
{
    const tni_shape_rule *rule;
    tn_status st = rule_for(i->op, i->err, &rule);

    return st ? st : tni_type_rule_infer(rule, i);
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

/* Slots of a node's arguments, inputs before outputs. */
typedef struct slots {
    const tni_shape_rule *rule;
    uint32_t in_count;
    uint32_t first[RULE_ARGS_MAX], copies[RULE_ARGS_MAX];
} slots;

static tn_status slots_of(tn_grad *g, const tni_shape_rule *r, slots *s)
{
    tn_infer i = {
        .op = g->op, .attrs = g->attrs, .in_count = g->in_count, .out_count = g->out_count, .err = g->err};

    s->rule = r;
    s->in_count = g->in_count;
    return tni_rule_slots(r, &i, s->first, s->copies);
}

static uint32_t roles_count(const slots *s, const rule_role *roles, uint8_t count)
{
    uint32_t n = 0;

    for (uint8_t k = 0; k < count; k++)
        n += roles[k].zero ? 0 : s->copies[roles[k].arg];
    return n;
}

static tn_edge role_edge(tn_grad *g, const slots *s, const rule_role *role, uint32_t copy)
{
    const uint32_t slot = s->first[role->arg] + copy;

    if (role->head)
        return tn_grad_of(g, slot - s->in_count);
    return slot < s->in_count ? tn_grad_input(g, slot) : tn_grad_output(g, slot - s->in_count);
}

/* Zeros for an input whose gradient somebody wants. */
static tn_status zeros_set(tn_grad *g, uint32_t input)
{
    tn_status st = TN_OK;

    if (!g->ops->needs(g, input))
        return TN_OK;
    return tni_grad_set(g, &st, input, tni_grad_op1(g, &st, "zeros_like", tn_grad_input(g, input)));
}

/* Hands out the outputs of the backward operator. */
static tn_status row_set(tn_grad *g, const slots *s, const rule_gradient *row, tn_edge made)
{
    tn_status st = TN_OK;

    for (uint8_t k = 0; k < row->out_count; k++)
        for (uint32_t n = 0; !st && n < s->copies[row->out[k].arg]; n++) {
            const uint32_t input = s->first[row->out[k].arg] + n;

            st = row->out[k].zero ? zeros_set(g, input) : g->ops->set(g, input, made);
            made.index += !row->out[k].zero;
        }
    return st;
}

static tn_status row_emit(tn_grad *g, const slots *s, const rule_gradient *row)
{
    char backward[TN_NAME_MAX];
    tn_edge *in, made = {NULL, 0, 0};
    tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                 TN_EMIT_INHERIT | TN_EMIT_BACKWARD,
                 backward,
                 NULL,
                 NULL,
                 0,
                 0};
    bool reads_head = false, arrives = false;
    tn_status st = TN_OK;

    if (!roles_count(s, row->out, row->out_count))
        return TN_OK;
    if (!(e.in = in = tni_calloc((uint64_t)roles_count(s, row->in, row->in_count) + 1, sizeof *in)))
        return TN_E_NOMEM;
    snprintf(backward, sizeof backward, BACKWARD "%s", g->op->name);
    for (uint8_t k = 0; k < row->in_count; k++)
        for (uint32_t n = 0; n < s->copies[row->in[k].arg]; n++) {
            in[e.in_count] = role_edge(g, s, &row->in[k], n);
            reads_head = reads_head || row->in[k].head;
            arrives = arrives || (row->in[k].head && in[e.in_count].node);
            e.in_count++;
        }
    if ((!reads_head || arrives) && !(st = g->ops->emit(g, &e, &made)))
        st = row_set(g, s, row, made);
    tni_free(in);
    return st;
}

static tn_status forward_gradient(tn_grad *g)
{
    const tni_shape_rule *r;
    const rule_gradient *row;
    slots s;
    tn_status st = rule_for(g->op, g->err, &r);

    if (st || !(row = row_choose(r, g->attrs)) || (st = slots_of(g, r, &s)))
        return st;
    if (row->steps)
        return tni_grad_arrives(g) || g->op->flags & TN_OP_IGNORE_HEAD
                   ? tni_gradient_steps(r, NULL, row->steps, g)
                   : TN_OK;
    if (!row->zero)
        return row_emit(g, &s, row);
    for (uint32_t k = 0; !st && k < g->in_count; k++)
        st = zeros_set(g, k);
    return st;
}

/* ---- gradients of backward operators ---------------------------------------------------------- */

/* The steps that hold; NULL: none do. */
static const rule_second *second_choose(const tni_shape_rule *r, const tn_value *attrs)
{
    for (uint8_t k = 0; k < r->second_count; k++)
        if (tni_rule_holds(r, r->seconds[k].cond, attrs))
            return &r->seconds[k];
    return NULL;
}

static tn_status second_steps(tn_grad *g)
{
    const tni_shape_rule *r;
    const rule_second *second;
    tn_status st = rule_for(g->op, g->err, &r);

    if (st || !tni_grad_arrives(g))
        return st;
    if (!(second = second_choose(r, g->attrs)))
        return tn_fail(g->err, TN_E_UNSUPPORTED, "it has no second derivative with these attributes");
    return second->zero ? TN_OK : tni_gradient_steps(r, row_choose(r, g->attrs), second->text, g);
}

/* Of _backward_f(dy, x) = dy f'(x): to dy goes h f'(x), to x goes h dy f''(x). */
static tn_status second_pointwise(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 1)};
    const tni_shape_rule *r;
    const rule_second *second;
    tn_edge to_x;
    tn_status st = rule_for(g->op, g->err, &r);

    if (st || !in[0].node || (st = tn_grad_emit(g, 0, g->op->name, 2, in)) || !g->ops->needs(g, 1))
        return st;
    if (!(second = second_choose(r, g->attrs)))
        return tn_fail(g->err, TN_E_UNSUPPORTED, "it has a first derivative only");
    if (second->zero)
        return TN_OK;
    st = tni_gradient_factor(r, row_choose(r, g->attrs), second->text, g, &to_x);
    return tni_grad_set(g, &st, 1, to_x);
}

/* Of a row that is linear in dy: to dy goes the operator itself,
 * of what arrives in the place of its input. */
static tn_status second_linear(tn_grad *g)
{
    tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                 TN_EMIT_INHERIT,
                 g->op->name + strlen(BACKWARD),
                 NULL,
                 NULL,
                 0,
                 0};
    const tni_shape_rule *r;
    const rule_gradient *row;
    tn_edge *in, made = {NULL, 0, 0};
    tn_status st = rule_for(g->op, g->err, &r);

    if (st || !tni_grad_arrives(g) || !(row = row_choose(r, g->attrs)))
        return st;
    if (!(e.in = in = tni_calloc((uint64_t)g->in_count + g->out_count, sizeof *in)))
        return TN_E_NOMEM;
    for (uint8_t a = 0; a < r->in_count; a++) {
        uint32_t index = 0;

        if (!tni_shape_rule_present(r, a, g->attrs))
            continue;
        if (row->out[0].arg == a) {
            for (uint32_t k = 0; k < g->out_count; k++)
                in[e.in_count++] = tn_grad_of(g, k);
            continue;
        }
        for (uint8_t k = 0; k < row->in_count && (row->in[k].head || row->in[k].arg != a); k++)
            index += tni_shape_rule_present(r, row->in[k].arg, g->attrs);
        in[e.in_count++] = tn_grad_input(g, index);
    }
    st = g->ops->emit(g, &e, &made);
    tni_free(in);
    return tni_grad_set(g, &st, 0, made);
}

/* ---- a backward definition -------------------------------------------------------------------- */

/* The forward operator's arguments as inference of the backward one sees them. */
typedef struct mirror {
    tn_infer i;        /* of the forward */
    slots slots;       /* of the forward */
    uint32_t count;    /* of the backward one */
    tn_shape **shapes; /* by slot: inputs, then outputs; what is freed, all else stands behind it */
    tn_shape *shape;
    int32_t *dtype;
    uint32_t *role; /* slot of each input, then output, of the backward */
} mirror;

/* How many of each argument there are, from the backward operator's inputs: what is variadic has the rest. */
static tn_status forward_counts(mirror *m, const tn_infer *i, const rule_gradient *row)
{
    const tni_shape_rule *r = m->slots.rule;
    uint32_t fixed = 0, copies = 0;
    tn_status st;

    for (uint8_t k = 0; k < row->in_count; k++)
        fixed +=
            !r->cases[0].arg[row->in[k].arg].variadic && tni_shape_rule_present(r, row->in[k].arg, i->attrs);
    copies = i->in_count > fixed ? i->in_count - fixed : 0;
    m->i.in_count = 0;
    for (uint8_t a = 0; a < r->in_count; a++)
        m->i.in_count += r->cases[0].arg[a].variadic ? copies : tni_shape_rule_present(r, a, i->attrs);
    m->i.out_count = r->out_count;
    if (m->i.op->args && (st = m->i.op->args(&m->i)))
        return st;
    m->slots.in_count = m->i.in_count;
    return tni_rule_slots(r, &m->i, m->slots.first, m->slots.copies);
}

static tn_status mirror_begin(mirror *m, tn_infer *i, const rule_gradient **row)
{
    tn_status st;

    m->shapes = NULL;
    if ((st = rule_for(i->op, i->err, &m->slots.rule)))
        return st;
    m->i = *i;
    m->i.op = &ruled_of(i->op)->forward->op;
    if (!(*row = row_choose(m->slots.rule, i->attrs)) || !(*row)->out_count)
        return tni_infer_fail(i, TN_E_ATTR, "there is no gradient with these attributes");
    return forward_counts(m, i, *row);
}

/* The list of those names that are there; NULL: the definition's own will do. */
static const char *const *names_present(const tni_ruled_op *b, const tni_shape_rule *r,
                                        const rule_gradient *row, const tn_value *attrs)
{
    uint32_t there = 0;

    if (!b->lists || row != &r->gradients[0]) /* that of the definition's names */
        return NULL;
    for (uint8_t k = 0; k < b->optional_count; k++)
        there |= (uint32_t)tni_shape_rule_present(r, row->in[b->optional[k]].arg, attrs) << k;
    return b->lists + (size_t)there * (row->in_count + 1u);
}

static tn_status backward_args(tn_infer *i)
{
    const rule_gradient *row;
    mirror m;
    tn_status st = mirror_begin(&m, i, &row);

    if (st)
        return st;
    i->in_count = roles_count(&m.slots, row->in, row->in_count);
    i->visible_count = i->out_count = roles_count(&m.slots, row->out, row->out_count);
    i->in_names = names_present(ruled_of(i->op), m.slots.rule, row, i->attrs);
    return TN_OK;
}

static tn_status mirror_alloc(mirror *m)
{
    const size_t n = (size_t)m->i.in_count + m->i.out_count;
    const size_t each = sizeof *m->shapes + sizeof *m->shape + sizeof *m->dtype;

    if (!(m->shapes = tni_zalloc(n * each + m->count * sizeof *m->role)))
        return TN_E_NOMEM;
    m->shape = (tn_shape *)(void *)(m->shapes + n);
    m->dtype = (int32_t *)(void *)(m->shape + n);
    m->role = (uint32_t *)(void *)(m->dtype + n);
    for (size_t k = 0; k < n; k++) {
        m->shape[k].ndim = TN_NDIM_UNKNOWN;
        m->shapes[k] = &m->shape[k];
        m->dtype[k] = -1;
    }
    return TN_OK;
}

static tn_status mirror_init(mirror *m, tn_infer *i)
{
    const rule_gradient *row;
    uint32_t n = 0;
    tn_status st = mirror_begin(m, i, &row);

    if (st)
        return st;
    m->count =
        roles_count(&m->slots, row->in, row->in_count) + roles_count(&m->slots, row->out, row->out_count);
    if (m->count != i->in_count + i->out_count)
        return tni_infer_fail(i, TN_E_ARG, "%u inputs and outputs, but %u are needed",
                              i->in_count + i->out_count, m->count);
    if ((st = mirror_alloc(m)))
        return st;
    for (uint32_t k = 0; k < row->in_count + (uint32_t)row->out_count; k++) {
        const rule_role *role = k < row->in_count ? &row->in[k] : &row->out[k - row->in_count];

        for (uint32_t c = 0; !role->zero && c < m->slots.copies[role->arg]; c++)
            m->role[n++] = m->slots.first[role->arg] + c;
    }
    m->i.in_shape = m->shapes;
    m->i.out_shape = m->shapes + m->i.in_count;
    m->i.in_dtype = m->dtype;
    m->i.out_dtype = m->dtype + m->i.in_count;
    return TN_OK;
}

static tn_status backward_shape(tn_infer *i)
{
    mirror m;
    tn_status st = mirror_init(&m, i);

    for (uint32_t k = 0; !st && k < m.count; k++) {
        tn_shape *given = k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count];

        if (given->ndim == 0) /* where the forward ran, there were such */
            m.i.flags |= TN_INFER_NP_SHAPE;
        st = tn_shape_unify(i, &m.shape[m.role[k]], given);
    }
    if (!st)
        st = m.i.op->shape(&m.i);
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tn_shape_unify(i, k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count],
                            &m.shape[m.role[k]]);
    tni_free(m.shapes);
    return st;
}

static tn_status backward_dtype(tn_infer *i)
{
    mirror m;
    tn_status st = mirror_init(&m, i);

    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tni_dtype_assign(i, &m.dtype[m.role[k]],
                              k < i->in_count ? i->in_dtype[k] : i->out_dtype[k - i->in_count]);
    if (!st)
        st = m.i.op->dtype(&m.i);
    for (uint32_t k = 0; !st && k < m.count; k++)
        st = tni_dtype_assign(i, k < i->in_count ? &i->in_dtype[k] : &i->out_dtype[k - i->in_count],
                              m.dtype[m.role[k]]);
    tni_free(m.shapes);
    return st;
}

/* Of a bilinear row: each gradient of an operand takes as much as the forward. What stands beside the
 * operands, such as a bias, is left out of account. */
static void backward_cost(const tn_infer *i, tn_cost *c)
{
    tn_infer given = *i;
    tn_cost forward = {.struct_size = sizeof forward};
    mirror m;

    if (mirror_init(&m, &given) == TN_OK) {
        for (uint32_t k = 0; k < m.count; k++)
            m.shape[m.role[k]] = *(k < i->in_count ? i->in_shape[k] : i->out_shape[k - i->in_count]);
        m.i.op->cost(&m.i, &forward);
        c->macs = tn_cost_times(2, forward.macs);
        c->flops = tn_cost_times(2, forward.flops);
    }
    tni_free(m.shapes);
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
        bytes += r->cases[0].arg[roles[k].arg].bytes + (size_t)5; /* "d_", "*", an end */
    if (!(names = tni_zalloc(bytes)))
        return TN_E_NOMEM;
    p = (char *)names + head;
    for (uint32_t k = 0; k < count; k++) {
        const rule_arg *a = &r->cases[0].arg[roles[k].arg];

        names[k] = p;
        if (roles[k].head)
            p += sprintf(p, roles[k].arg > r->in_count ? "dy%u" : "dy", roles[k].arg - r->in_count) + 1;
        else
            p += sprintf(p, "%s%.*s%s", gradients ? "d_" : "", a->bytes, a->name, a->variadic ? "*" : "") + 1;
    }
    *out = names;
    return TN_OK;
}

/* Lists of the names of a backward definition's inputs, where some may be missing. */
static tn_status lists_make(tni_ruled_op *b, const tni_shape_rule *r, const rule_gradient *row)
{
    for (uint8_t k = 0; k < row->in_count; k++) {
        if (r->cases[0].arg[row->in[k].arg].cond == RULE_NONE)
            continue;
        if (b->optional_count == RULE_OPTIONAL_MAX)
            return TN_OK;
        b->optional[b->optional_count++] = k;
    }
    if (!b->optional_count)
        return TN_OK;
    b->lists = tni_rule_name_lists(b->inputs, row->in_count, b->optional, b->optional_count);
    return b->lists ? TN_OK : TN_E_NOMEM;
}

/* Names of the operator's own arguments, and how many outputs stand before the first hidden one, if any. */
static tn_status names_own(tni_ruled_op *r, const tni_shape_rule *heads)
{
    const rule_arg *outputs = heads->cases[0].arg + heads->in_count;
    rule_role roles[RULE_ARGS_MAX];
    tn_status st;

    for (uint8_t k = 0; k < RULE_ARGS_MAX; k++)
        roles[k] = (rule_role){.arg = k};
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

static tn_status said_twice(const tn_op *op)
{
    if (op->shapes && (op->inputs || op->outputs || op->args || op->shape || op->visible))
        return tni_error(
            TN_E_ARG,
            "operator %s: beside a shape rule, inputs, outputs, visible, args and shape are left out",
            op->name);
    if (op->gradients && op->gradient)
        return tni_error(TN_E_ARG, "operator %s: a gradient rule and a function `gradient`", op->name);
    if (op->types && op->dtype)
        return tni_error(TN_E_ARG, "operator %s: a type rule and a function `dtype`", op->name);
    if (op->second && !op->gradients)
        return tni_error(TN_E_ARG, "operator %s: a function `second`, but no gradient rule", op->name);
    return TN_OK;
}

tn_status tni_ruled_op_create(const tn_op *given, bool at_once, tni_ruled_op **out)
{
    tni_ruled_op *r;
    tni_shape_rule *heads = NULL;
    const tni_shape_rule *rule;
    tn_status st;

    if (!(r = tni_zalloc(sizeof *r)))
        return TN_E_NOMEM;
    memcpy(&r->op, given, given->struct_size < sizeof r->op ? given->struct_size : sizeof r->op);
    r->op.struct_size = sizeof r->op;
    if ((st = said_twice(&r->op)))
        goto cleanup;
    if (r->op.shapes) {
        if ((st = tni_shape_rule_parse(&r->op, true, &heads)) || (st = names_own(r, heads)))
            goto cleanup;
        r->op.args = forward_args;
        r->op.shape = forward_shape;
    }
    if (r->op.types)
        r->op.dtype = forward_dtype;
    if (r->op.gradients)
        r->op.gradient = forward_gradient;
    if (at_once && (st = rule_of(r, &rule)))
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

/* Classes whose rows are all steps, told apart without the parser: there are many when the set is made. */
static bool all_steps(const char *gradients)
{
    static const char *const classes[] = {"composed:", "broadcast:", "numpy:"};

    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (strncmp(gradients, classes[k], strlen(classes[k])) == 0)
            return true;
    return false;
}

tn_status tni_ruled_op_backward(const tni_ruled_op *forward, tni_ruled_op **out)
{
    static tn_status (*const second[])(tn_grad *) = {[CLASS_LINEAR] = second_linear,
                                                     [CLASS_BILINEAR] = tni_grad_of_product,
                                                     [CLASS_POINTWISE] = second_pointwise,
                                                     [CLASS_OWN] = second_steps,
                                                     [CLASS_ONCE] = NULL};
    const tn_op *f = &forward->op;
    tni_shape_rule *heads = NULL;
    const rule_gradient *row;
    tni_ruled_op *b = NULL;
    bool pointwise;
    tn_status st;

    *out = NULL;
    if (!f->gradients || all_steps(f->gradients))
        return TN_OK;
    if ((st = tni_shape_rule_parse(f, true, &heads)))
        return st;
    if (!(row = tni_gradient_row(heads)))
        goto cleanup;
    pointwise = heads->gradient_class == CLASS_POINTWISE;
    if (!(b = tni_zalloc(sizeof *b))) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    b->forward = forward;
    b->op = (tn_op){.struct_size = sizeof b->op,
                    .version = f->version,
                    .exec = f->exec,
                    .attrs = f->attrs,
                    .flags = TN_OP_BACKWARD | (pointwise ? TN_OP_POINTWISE : 0),
                    .args = backward_args,
                    .shape = pointwise ? tni_shape_same : backward_shape,
                    .dtype = f->dtype ? backward_dtype : NULL,
                    .cost = f->cost && heads->gradient_class == CLASS_BILINEAR ? backward_cost : NULL,
                    .gradient = f->second ? f->second : second[heads->gradient_class]};
    for (uint8_t k = 0; k < row->in_count; k++)
        b->op.shapes_only |= (uint64_t)row->in[k].unread << k;
    if ((st = texts_make(b, f->name)) ||
        (st = names_make(heads, row->in, row->in_count, false, &b->inputs)) ||
        (st = names_make(heads, row->out, row->out_count, true, &b->outputs)) ||
        (st = lists_make(b, heads, row)))
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

tn_status tni_ruled_op_derived(const tn_op *given, bool at_once, tni_ruled_op **out)
{
    tni_ruled_op *backward = NULL, *made = NULL;
    tn_status st = tni_ruled_op_create(given, at_once, &made);

    if (!st)
        st = tni_ruled_op_backward(made, &backward);
    if (!st && backward)
        st = tni_error(TN_E_ARG, "operator %s computes %s: a gradient of its own is made of steps",
                       given->name, given->computes);
    tni_ruled_op_destroy(backward);
    if (st)
        tni_ruled_op_destroy(made);
    else
        *out = made;
    return st;
}

void tni_ruled_op_destroy(tni_ruled_op *r)
{
    if (!r)
        return;
    tni_shape_rule_destroy(atomic_load_explicit(&r->rule, memory_order_acquire));
    tni_free(r->inputs);
    tni_free(r->outputs);
    tni_free(r->lists);
    tni_free(r->texts);
    tni_free(r);
}

tn_status tni_ruled_op_parse(const tn_op *op)
{
    const tni_shape_rule *rule;
    const bool ruled = (op->shapes && op->shape == forward_shape) ||
                       (op->gradients && op->gradient == forward_gradient) ||
                       (op->struct_size >= TN_END(tn_op, types) && op->types && op->dtype == forward_dtype);

    return ruled ? rule_of(ruled_of(op), &rule) : TN_OK;
}
