/*
 * Loops and branches: operators that run graphs of their own. What a graph is asked of shapes and types
 * follows from links: each of its inputs and outputs is one of the node's, or an element of axis 0 of one, or
 * the decision. The gradient is an operator of the same kind. It runs the forward again, then backwards.
 */
#include "op/control.h"

#include <string.h>

static const tn_attr_def foreach_attrs[] = TN_ATTR_TABLE(foreach);
static const tn_attr_def while_loop_attrs[] = TN_ATTR_TABLE(while_loop);
static const tn_attr_def cond_attrs[] = TN_ATTR_TABLE(cond);

#define ARGS_MAX 65536u /* inputs, or outputs, of a loop */
#define COUNT(attrs) ((uint32_t)(sizeof(attrs) / sizeof *(attrs)) - 1u)
#define OPERATORS(name) .forward = name, .backward = "_backward" name
const tni_control_kind tni_control_foreach = {
    OPERATORS("_foreach"), 1, COUNT(foreach_attrs), TN_foreach_num_out_data, {-1}};
const tni_control_kind tni_control_while_loop = {
    OPERATORS("_while_loop"),
    2,
    COUNT(while_loop_attrs),
    TN_while_loop_num_out_data,
    {TN_while_loop_cond_input_locs, TN_while_loop_func_input_locs}};
const tni_control_kind tni_control_cond = {
    OPERATORS("_cond"),
    3,
    COUNT(cond_attrs),
    -1,
    {TN_cond_cond_input_locs, TN_cond_then_input_locs, TN_cond_else_input_locs}};

static const tni_control_kind *kind_of(const tn_op *op)
{
    static const tni_control_kind *const kinds[] = {&tni_control_foreach, &tni_control_while_loop,
                                                    &tni_control_cond};
    uint32_t k = 0;

    while (strcmp(kinds[k]->forward, op->name) != 0 && strcmp(kinds[k]->backward, op->name) != 0)
        k++;
    return kinds[k];
}

/* The order in which _foreach has its inputs. */
static const uint32_t foreach_locs[] = {TN_foreach_in_data_locs, TN_foreach_in_state_locs,
                                        TN_foreach_remain_locs};

/* ---- links --------------------------------------------------------------------------------------------- */

tni_control tni_control_of(const tni_control_kind *kind, const tn_value *attrs)
{
    tni_control c = {.kind = kind, .attrs = attrs};

    c.in_count = (uint32_t)tn_value_int(attrs[0]) - kind->bodies; /* num_args counts the graphs */
    c.out_count = (uint32_t)tn_value_int(attrs[1]);
    if (kind->data >= 0) {
        c.data = (uint32_t)tn_value_int(attrs[kind->data]);
        c.states = c.out_count - c.data;
    }
    return c;
}

const tn_tuple *tni_control_heads(const tni_control *c)
{
    return tni_attr_tuple(c->attrs, c->kind->attr_count);
}

const tn_tuple *tni_control_wanted(const tni_control *c)
{
    return tni_attr_tuple(c->attrs, c->kind->attr_count + 1);
}

static const tn_tuple *locs_of(const tni_control *c, uint32_t body)
{
    return tni_attr_tuple(c->attrs, (uint32_t)c->kind->locs[body]);
}

uint32_t tni_control_inputs(const tni_control *c, uint32_t body)
{
    return c->kind->locs[body] < 0 ? c->in_count : (uint32_t)tni_tuple_count(locs_of(c, body));
}

static bool decides(const tni_control *c, uint32_t body)
{
    return body == 0 && c->kind->bodies > 1;
}

uint32_t tni_control_outputs(const tni_control *c, uint32_t body)
{
    return decides(c, body) ? 1 : c->out_count;
}

static tni_link foreach_input(const tni_control *c, uint32_t index)
{
    uint32_t slot = 0;

    for (uint32_t k = 0; k < 3; k++) {
        const tn_tuple *t = tni_attr_tuple(c->attrs, foreach_locs[k]);

        for (int64_t i = 0; i < tni_tuple_count(t); i++, slot++)
            if (t->item[i] == index)
                return (tni_link){slot, k == 0};
    }
    return (tni_link){TNI_SLOT_NONE, false}; /* not after locs_check */
}

tni_link tni_control_input(const tni_control *c, uint32_t body, uint32_t index)
{
    if (c->kind->locs[body] < 0)
        return foreach_input(c, index);
    return (tni_link){(uint32_t)locs_of(c, body)->item[index], false};
}

tni_link tni_control_output(const tni_control *c, uint32_t body, uint32_t index)
{
    if (decides(c, body))
        return (tni_link){TNI_SLOT_NONE, false};
    return (tni_link){c->in_count + index, index < c->data};
}

uint32_t tni_control_state(const tni_control *c, uint32_t index)
{
    const uint32_t at = c->kind->locs[0] < 0 ? TN_foreach_in_state_locs : TN_while_loop_func_var_locs;

    return (uint32_t)tni_attr_tuple(c->attrs, at)->item[index];
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

/* Each below `limit`, none twice: `seen` has room for `limit`. */
static tn_status locs_check(tn_infer *i, uint32_t attr, uint32_t limit, uint8_t *seen)
{
    const tn_tuple *t = tni_attr_tuple(i->attrs, attr);

    for (int64_t k = 0; k < tni_tuple_count(t); k++) {
        if (t->item[k] < 0 || t->item[k] >= limit)
            return tni_infer_fail(i, TN_E_ATTR, "%s names input %lld, but there are %u",
                                  i->op->attrs[attr].name, (long long)t->item[k], limit);
        if (seen[t->item[k]]++)
            return tni_infer_fail(i, TN_E_ATTR, "%s names input %lld, which was named before",
                                  i->op->attrs[attr].name, (long long)t->item[k]);
    }
    return TN_OK;
}

static tn_status locs_alone(tn_infer *i, uint32_t attr, uint32_t limit)
{
    uint8_t *seen = tni_calloc(limit + 1u, 1);
    const tn_status st = seen ? locs_check(i, attr, limit, seen) : tn_fail(i->err, TN_E_NOMEM, "no memory");

    tni_free(seen);
    return st;
}

/* Data, states and the others are together all inputs. */
static tn_status foreach_check(tn_infer *i, const tni_control *c)
{
    uint8_t *seen = tni_calloc(c->in_count + 1u, 1);
    int64_t count[3] = {0};
    tn_status st = seen ? TN_OK : tn_fail(i->err, TN_E_NOMEM, "no memory");

    for (uint32_t k = 0; k < 3 && !st; k++) {
        count[k] = tni_tuple_count(tni_attr_tuple(i->attrs, foreach_locs[k]));
        st = locs_check(i, foreach_locs[k], c->in_count, seen);
    }
    tni_free(seen);
    if (st)
        return st;
    if (count[0] + count[1] + count[2] != c->in_count || !count[0])
        return tni_infer_fail(
            i, TN_E_ATTR, "in_data_locs, in_state_locs and remain_locs name %lld, %lld and %lld of %u inputs",
            (long long)count[0], (long long)count[1], (long long)count[2], c->in_count);
    return count[1] == c->states
               ? TN_OK
               : tni_infer_fail(i, TN_E_ATTR,
                                "in_state_locs names %lld states, but the graph has %u outputs "
                                "of which %u are data",
                                (long long)count[1], c->out_count, c->data);
}

static tn_status while_loop_check(tn_infer *i, const tni_control *c)
{
    const uint32_t variables =
        (uint32_t)tni_tuple_count(tni_attr_tuple(i->attrs, TN_while_loop_func_var_locs));
    const tn_status st = locs_alone(i, TN_while_loop_func_var_locs, tni_control_inputs(c, 1));

    return st || variables == c->states
               ? st
               : tni_infer_fail(i, TN_E_ATTR,
                                "func_var_locs names %u variables, but func has %u outputs of which "
                                "%u are data",
                                variables, c->out_count, c->data);
}

static tn_status attrs_check(tn_infer *i, tni_control *c)
{
    const tni_control_kind *kind = kind_of(i->op);
    tn_status st = TN_OK;

    if (kind->data >= 0 && tn_value_int(i->attrs[kind->data]) > tn_value_int(i->attrs[1]))
        return tni_infer_fail(i, TN_E_ATTR, "num_out_data is %lld, but num_outputs is %lld",
                              (long long)tn_value_int(i->attrs[kind->data]),
                              (long long)tn_value_int(i->attrs[1]));
    *c = tni_control_of(kind, i->attrs);
    if (c->in_count > ARGS_MAX || c->out_count > ARGS_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "%u inputs and %u outputs, at most %u of each are allowed",
                              c->in_count, c->out_count, ARGS_MAX);
    if (kind->locs[0] < 0)
        return foreach_check(i, c);
    for (uint32_t b = 0; b < kind->bodies && !st; b++)
        st = locs_alone(i, (uint32_t)kind->locs[b], c->in_count);
    return st || kind->data < 0 ? st : while_loop_check(i, c);
}

static tn_status forward_args(tn_infer *i)
{
    static const char *const one[] = {"output", NULL};
    tni_control c;
    const tn_status st = attrs_check(i, &c);

    if (st)
        return st;
    i->in_count = c.in_count;
    i->out_count = i->visible_count = c.out_count;
    if (c.out_count == 1)
        i->out_names = one;
    return TN_OK;
}

static tn_status backward_args(tn_infer *i)
{
    tni_control c;
    tn_status st = attrs_check(i, &c);

    if (!st && !(st = locs_alone(i, c.kind->attr_count, c.out_count)))
        st = locs_alone(i, c.kind->attr_count + 1, c.in_count);
    if (st)
        return st;
    i->in_count = c.in_count + (uint32_t)tni_tuple_count(tni_control_heads(&c));
    i->out_count = i->visible_count = (uint32_t)tni_tuple_count(tni_control_wanted(&c));
    return TN_OK;
}

/* ---- inference ----------------------------------------------------------------------------------------- */

static tn_status bodies_check(tn_infer *i, const tni_control *c)
{
    tn_status st = TN_OK;

    if (!i->bodies || i->bodies->count != c->kind->bodies)
        return tni_infer_fail(i, TN_E_ARG, "%u graphs, but it runs %u: is \"subgraphs\" missing?",
                              i->bodies ? i->bodies->count : 0, c->kind->bodies);
    for (uint32_t b = 0; b < c->kind->bodies && !st; b++) {
        const uint32_t ins = tni_control_inputs(c, b), outs = tni_control_outputs(c, b);
        uint32_t in = 0, out = 0;

        st = i->bodies->counts(i->bodies, b, &in, &out, i->err);
        if (!st && (in != ins || out != outs))
            st = tni_infer_fail(i, TN_E_ARG,
                                "graph %u has %u inputs and %u outputs, but the attributes say %u and %u", b,
                                in, out, ins, outs);
    }
    return st;
}

static tni_link link_of(const tni_control *c, uint32_t body, uint32_t k)
{
    const uint32_t ins = tni_control_inputs(c, body);

    return k < ins ? tni_control_input(c, body, k) : tni_control_output(c, body, k - ins);
}

static tn_shape *shape_at(const tn_infer *i, uint32_t slot)
{
    return slot < i->in_count ? i->in_shape[slot] : i->out_shape[slot - i->in_count];
}

static tn_status shape_load(tn_infer *i, tni_link l, tn_shape *out)
{
    out->ndim = TN_NDIM_UNKNOWN;
    if (l.slot == TNI_SLOT_NONE)
        return TN_OK;
    *out = *shape_at(i, l.slot);
    if (!l.step || out->ndim < 0)
        return TN_OK;
    if (!out->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "a number has no elements to step over");
    tni_shape_set(out, out->ndim - 1, shape_at(i, l.slot)->dim + 1);
    return TN_OK;
}

static tn_status shape_store(tn_infer *i, tni_link l, const tn_shape *s)
{
    tn_shape whole = {.ndim = s->ndim + 1, .dim = {TN_DIM_UNKNOWN}};

    if (l.slot == TNI_SLOT_NONE)
        return tn_shape_known(s) && tn_shape_count(s) != 1
                   ? tni_infer_fail(i, TN_E_SHAPE,
                                    "the graph that decides gives %lld elements, one is needed",
                                    (long long)tn_shape_count(s))
                   : TN_OK;
    if (!l.step || s->ndim < 0)
        return tni_shape_assign(i, shape_at(i, l.slot), s);
    if (s->ndim >= TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "results of %d dimensions cannot be put together", s->ndim);
    memcpy(whole.dim + 1, s->dim, (size_t)s->ndim * sizeof *s->dim);
    return tn_shape_unify(i, shape_at(i, l.slot), &whole);
}

static tn_status body_shapes(tn_infer *i, const tni_control *c, uint32_t body)
{
    const uint32_t ins = tni_control_inputs(c, body), all = ins + tni_control_outputs(c, body);
    tn_shape *shapes = tni_calloc(all + 1u, sizeof *shapes);
    tn_shape **at = tni_calloc(all + 1u, sizeof(*at));
    tn_status st = shapes && at ? TN_OK : tn_fail(i->err, TN_E_NOMEM, "no memory");

    for (uint32_t k = 0; k < all && !st; k++) {
        at[k] = &shapes[k];
        st = shape_load(i, link_of(c, body, k), at[k]);
    }
    if (!st)
        st = i->bodies->infer(i->bodies, body, i->flags, at, at + ins, NULL, NULL, i->err);
    for (uint32_t k = 0; k < all && !st; k++)
        st = shape_store(i, link_of(c, body, k), &shapes[k]);
    tni_free(shapes);
    tni_free((void *)at);
    return st;
}

/* A state goes in and comes out: one input and one output. */
static uint32_t state_slot(const tni_control *c, uint32_t index)
{
    return tni_control_input(c, tni_control_stepping(c), tni_control_state(c, index)).slot;
}

/* All that is stepped over, or put together, is as long; of a while loop as long as it may run. */
static tn_status lengths_unify(tn_infer *i, const tni_control *c)
{
    const bool counted = c->kind == &tni_control_while_loop;
    const uint32_t ins =
        counted ? 0 : (uint32_t)tni_tuple_count(tni_attr_tuple(i->attrs, TN_foreach_in_data_locs));
    int64_t length = counted ? tn_value_int(i->attrs[TN_while_loop_max_iterations]) : TN_DIM_UNKNOWN;
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t k = 0; k < ins + c->data && !st; k++) {
            tn_shape *s = shape_at(i, k < ins ? k : c->in_count + k - ins);

            if (s->ndim > 0)
                st = tni_dim_unify(i, &length, &s->dim[0]);
        }
    return st;
}

static tn_status forward_shape(tn_infer *i)
{
    const tni_control c = tni_control_of(kind_of(i->op), i->attrs);
    tn_status st = bodies_check(i, &c);

    for (uint32_t s = 0; s < c.states && !st; s++)
        st = tn_shape_unify(i, i->in_shape[state_slot(&c, s)], i->out_shape[c.data + s]);
    for (uint32_t b = 0; b < c.kind->bodies && !st; b++)
        st = body_shapes(i, &c, b);
    for (uint32_t s = 0; s < c.states && !st; s++)
        st = tn_shape_unify(i, i->in_shape[state_slot(&c, s)], i->out_shape[c.data + s]);
    return st || c.kind->data < 0 ? st : lengths_unify(i, &c);
}

static int32_t *dtype_at(const tn_infer *i, uint32_t slot)
{
    return slot < i->in_count ? &i->in_dtype[slot] : &i->out_dtype[slot - i->in_count];
}

static tn_status body_dtypes(tn_infer *i, const tni_control *c, uint32_t body)
{
    const uint32_t ins = tni_control_inputs(c, body), all = ins + tni_control_outputs(c, body);
    int32_t *dtypes = tni_calloc(all + 1u, sizeof *dtypes);
    tn_status st = dtypes ? TN_OK : tn_fail(i->err, TN_E_NOMEM, "no memory");

    for (uint32_t k = 0; k < all && !st; k++) {
        const tni_link l = link_of(c, body, k);

        dtypes[k] = l.slot == TNI_SLOT_NONE ? TN_DTYPE_UNKNOWN : *dtype_at(i, l.slot);
    }
    if (!st)
        st = i->bodies->infer(i->bodies, body, i->flags, NULL, NULL, dtypes, dtypes + ins, i->err);
    for (uint32_t k = 0; k < all && !st; k++) {
        const tni_link l = link_of(c, body, k);

        if (l.slot != TNI_SLOT_NONE)
            st = tni_dtype_assign(i, dtype_at(i, l.slot), dtypes[k]);
    }
    tni_free(dtypes);
    return st;
}

static tn_status forward_dtype(tn_infer *i)
{
    const tni_control c = tni_control_of(kind_of(i->op), i->attrs);
    tn_status st = bodies_check(i, &c);

    for (uint32_t s = 0; s < c.states && !st; s++)
        st = tni_dtype_unify(i, &i->in_dtype[state_slot(&c, s)], &i->out_dtype[c.data + s]);
    for (uint32_t b = 0; b < c.kind->bodies && !st; b++)
        st = body_dtypes(i, &c, b);
    for (uint32_t s = 0; s < c.states && !st; s++)
        st = tni_dtype_unify(i, &i->in_dtype[state_slot(&c, s)], &i->out_dtype[c.data + s]);
    return st;
}

/* A gradient looks as what it is the gradient of. */
static tn_status backward_shape(tn_infer *i)
{
    const tni_control c = tni_control_of(kind_of(i->op), i->attrs);
    const tn_tuple *wanted = tni_control_wanted(&c);
    tn_status st = bodies_check(i, &c);

    for (uint32_t k = 0; k < i->out_count && !st; k++)
        st = tn_shape_unify(i, i->in_shape[i->in_count - c.in_count + wanted->item[k]], i->out_shape[k]);
    return st;
}

static tn_status backward_dtype(tn_infer *i)
{
    const tni_control c = tni_control_of(kind_of(i->op), i->attrs);
    const tn_tuple *wanted = tni_control_wanted(&c);
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->out_count && !st; k++)
        st = tni_dtype_unify(i, &i->in_dtype[i->in_count - c.in_count + wanted->item[k]], &i->out_dtype[k]);
    return st;
}

/* ---- gradient ------------------------------------------------------------------------------------------ */

typedef struct numbers { /* a tuple as text */
    tni_str text;
    uint32_t count;
} numbers;

static void numbers_add(numbers *n, uint32_t number)
{
    (void)tni_str_addf(&n->text, "%s%u", n->count++ ? "," : "(", number);
}

static tn_status backward_emit(tn_grad *g, numbers *heads, numbers *wanted)
{
    const tn_attr_text attrs[] = {{"heads", heads->text.text}, {"wanted", wanted->text.text}};
    tn_edge *in = tni_calloc(g->in_count + g->out_count + 1u, sizeof *in), out;
    tn_emit e = {.struct_size = (uint32_t)TN_END(tn_emit, attr_count),
                 .flags = TN_EMIT_INHERIT | TN_EMIT_BACKWARD,
                 .op = kind_of(g->op)->backward,
                 .in = in,
                 .attrs = attrs,
                 .attr_count = 2};
    tn_status st = in ? TN_OK : tn_fail(g->err, TN_E_NOMEM, "no memory");

    for (uint32_t o = 0; o < g->out_count && !st; o++)
        if (tn_grad_of(g, o).node)
            in[e.in_count++] = tn_grad_of(g, o);
    for (uint32_t i = 0; i < g->in_count && !st; i++)
        in[e.in_count++] = tn_grad_input(g, i);
    if (!st)
        st = g->ops->emit(g, &e, &out);
    for (uint32_t i = 0, k = 0; i < g->in_count && !st; i++)
        if (g->ops->needs(g, i)) {
            out.index = k++;
            st = g->ops->set(g, i, out);
        }
    tni_free(in);
    return st;
}

static tn_status forward_gradient(tn_grad *g)
{
    numbers heads = {.count = 0}, wanted = {.count = 0};
    tn_status st = TN_OK;

    tni_str_init(&heads.text, 1u << 16);
    tni_str_init(&wanted.text, 1u << 16);
    for (uint32_t o = 0; o < g->out_count; o++)
        if (tn_grad_of(g, o).node)
            numbers_add(&heads, o);
    for (uint32_t i = 0; i < g->in_count; i++)
        if (g->ops->needs(g, i))
            numbers_add(&wanted, i);
    (void)tni_str_add(&heads.text, ")");
    (void)tni_str_add(&wanted.text, ")");
    if (heads.text.status || wanted.text.status)
        st = tn_fail(g->err, heads.text.status ? heads.text.status : wanted.text.status, "no memory");
    else if (heads.count && wanted.count)
        st = backward_emit(g, &heads, &wanted);
    tni_str_fini(&heads.text);
    tni_str_fini(&wanted.text);
    return st;
}

/* ---- the family ---------------------------------------------------------------------------------------- */

#define BACKWARD_ATTRS                                                                                       \
    TN_ATTR_TUPLE_IN("heads", TN_REQUIRED, 0, 4095, "outputs that a gradient arrives for"),                  \
        TN_ATTR_TUPLE_IN("wanted", TN_REQUIRED, 0, 4095, "inputs whose gradient is asked for"), TN_ATTR_END
#define CONTROL(...)                                                                                         \
    (&(const tn_op){.struct_size = TN_END(tn_op, shapes_only),                                               \
                    .version = 1,                                                                            \
                    .exec = TN_EXEC_SUBGRAPH,                                                                \
                    .inputs = TNI_NAMES("data*"),                                                            \
                    .outputs = TNI_NAMES("output*"),                                                         \
                    __VA_ARGS__})
/* The operator and its gradient. */
#define PAIR(id, name_, flags_, doc_)                                                                        \
    CONTROL(.name = name_, .doc = doc_, .flags = flags_, .attrs = id##_attrs, .args = forward_args,          \
            .shape = forward_shape, .dtype = forward_dtype, .gradient = forward_gradient,                    \
            .run_bodies = tni_##id##_run),                                                                   \
        CONTROL(.name = "_backward" name_, .doc = "Gradients of " name_ ".",                                 \
                .flags = TN_OP_BACKWARD | (flags_),                                                          \
                .attrs = ((const tn_attr_def[]){TN_##id##_ATTRS(TN_ATTR_ROW_) BACKWARD_ATTRS}),              \
                .args = backward_args, .shape = backward_shape, .dtype = backward_dtype,                     \
                .run_bodies = tni_##id##_run_back)

/* clang-format off */
const tn_op *const tni_family_control[] = {
    PAIR(foreach, "_foreach", 0u,
         "Runs a graph for each element of axis 0 of data; its first num_out_data outputs are put together, "
         "its states go on to the next element."),
    PAIR(while_loop, "_while_loop", TN_OP_BY_VALUES,
         "Runs func as long as cond is not 0, max_iterations times at most; its first num_out_data outputs "
         "are put together, with zeros behind them."),
    PAIR(cond, "_cond", TN_OP_BY_VALUES, "Runs then_branch where cond is not 0, else else_branch."),
    NULL,
};
