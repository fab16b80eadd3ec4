/*
 * Graphs for operators that run some (TN_EXEC_SUBGRAPH). All variables and outputs of one have the same shape
 * and data type: output j is tanh(sum of the variables, each times a number of its own). How many of each an
 * operator takes is found by asking its inference.
 */
#include <string.h>

#include "lab.h"

#define BODIES_MAX 3u
#define INS_MAX 6u
#define OUTS_MAX 4u

typedef struct counts {
    uint32_t in, out;
} counts;

static tn_status body_counts(const tn_bodies *b, uint32_t body, uint32_t *in, uint32_t *out, tn_err *err)
{
    const counts *c = b->self;

    if (body >= b->count)
        return tn_fail(err, TN_E_ARG, "there is no such graph");
    *in = c->in;
    *out = c->out;
    return TN_OK;
}

static tn_status shapes_unify(const counts *c, tn_shape *const *in, tn_shape *const *out, tn_err *err)
{
    tn_infer i = {.err = err};
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < 2; round++) /* what the last one tells goes back to the first */
        for (uint32_t k = 1; k < c->in + c->out && !st; k++)
            st = tn_shape_unify(&i, in[0], k < c->in ? in[k] : out[k - c->in]);
    return st;
}

static tn_status dtypes_unify(const counts *c, int32_t *in, int32_t *out, tn_err *err)
{
    int32_t *all[CHK_ARGS_MAX];

    if (c->in + c->out > CHK_ARGS_MAX)
        return tn_fail(err, TN_E_ARG, "a graph of so many arguments");
    for (uint32_t k = 0; k < c->in + c->out; k++)
        all[k] = k < c->in ? &in[k] : &out[k - c->in];
    return chk_dtypes_unify(c->in + c->out, all, err);
}

static tn_status body_infer(const tn_bodies *b, uint32_t body, uint32_t flags, tn_shape *const *in,
                            tn_shape *const *out, int32_t *in_dtype, int32_t *out_dtype, tn_err *err)
{
    const counts *c = b->self;
    tn_status st = TN_OK;

    (void)flags;
    if (body >= b->count)
        return tn_fail(err, TN_E_ARG, "there is no such graph");
    if (in && out)
        st = shapes_unify(c, in, out, err);
    return st || !in_dtype || !out_dtype ? st : dtypes_unify(c, in_dtype, out_dtype, err);
}

/* ---- how many ---------------------------------------------------------------------------------------- */

/* Nothing is known but the graphs: an operator that asks for others says so. */
static bool is_accepted(const tn_op *op, const chk_attrs *attrs, const chk_args *args, const tn_bodies *b)
{
    tn_shape shapes[CHK_ARGS_MAX], *at[CHK_ARGS_MAX];
    tn_err err;
    tn_infer i = chk_infer_of(CHK_TOLD(op, shape), attrs, args, 0, &err);

    i.in_shape = at;
    i.out_shape = at + args->in_count;
    i.bodies = b;
    memset(shapes, 0, sizeof shapes);
    for (uint32_t k = 0; k < CHK_ARGS_MAX; k++) {
        shapes[k].ndim = TN_NDIM_UNKNOWN;
        at[k] = &shapes[k];
    }
    return op->shape && !op->shape(&i);
}

const tn_bodies *chk_bodies_for(const tn_op *op, const chk_attrs *attrs, const chk_args *args)
{
    static counts c;
    static tn_bodies b = {.struct_size = (uint32_t)TN_END(tn_bodies, infer),
                          .self = &c,
                          .counts = body_counts,
                          .infer = body_infer};
    static const tn_op *last;

    if (op->exec != TN_EXEC_SUBGRAPH)
        return NULL;
    if (last == op)
        return &b;
    last = op;
    c = (counts){args->in_count, args->out_count};
    b.count = 1;
    if (is_accepted(op, attrs, args, &b))
        return &b;
    for (b.count = 1; b.count <= BODIES_MAX; b.count++)
        for (c.in = 1; c.in <= INS_MAX; c.in++)
            for (c.out = 1; c.out <= OUTS_MAX; c.out++)
                if (is_accepted(op, attrs, args, &b))
                    return &b;
    last = NULL; /* others, with other attributes, perhaps */
    b.count = 0;
    return &b;
}

/* ---- as symbols -------------------------------------------------------------------------------------- */

/* op(a, b); takes both, which may be NULL. */
static tn_symbol *node_take(tn_ctx *ctx, const char *op, const char *scalar, tn_symbol *a, tn_symbol *b)
{
    tn_symbol *const in[] = {a, b};
    const char *const attrs[] = {"scalar", scalar, NULL};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = b ? 2 : 1,
                                 .op = op,
                                 .attrs = scalar ? attrs : NULL,
                                 .in = in};
    tn_symbol *made = NULL;

    if (a)
        (void)tn_symbol_op(ctx, &call, &made);
    tn_symbol_release(a);
    tn_symbol_release(b);
    return made;
}

static tn_symbol *body_make(tn_ctx *ctx, const counts *c)
{
    static const char *const factors[] = {"0.5", "-0.75", "0.25", "1.25"};
    tn_symbol *in[INS_MAX + CHK_ARGS_MAX] = {NULL}, *out[OUTS_MAX + CHK_ARGS_MAX] = {NULL}, *body = NULL;

    for (uint32_t i = 0; i < c->in; i++) {
        const char name[] = {'v', (char)('a' + i), '\0'};

        (void)tn_symbol_variable(ctx, name, &in[i]);
    }
    for (uint32_t o = 0; o < c->out; o++) {
        for (uint32_t i = 0; i < c->in; i++) {
            tn_symbol *part;

            tn_symbol_retain(in[i]);
            part = node_take(ctx, "_mul_scalar", factors[(i + o) % 4], in[i], NULL);
            out[o] = i ? node_take(ctx, "elemwise_add", NULL, out[o], part) : part;
        }
        out[o] = node_take(ctx, "tanh", NULL, out[o], NULL);
    }
    (void)tn_symbol_group(c->out, out, &body);
    for (uint32_t i = 0; i < c->in; i++)
        tn_symbol_release(in[i]);
    for (uint32_t o = 0; o < c->out; o++)
        tn_symbol_release(out[o]);
    return body;
}

static tn_status net_make(tn_ctx *ctx, const chk_problem *p, const char *const *attrs, tn_symbol **net)
{
    const tn_bodies *b = chk_bodies_for(p->op, &p->attrs, &p->f.args);
    tn_symbol *in[CHK_ARGS_MAX] = {NULL}, *bodies[BODIES_MAX] = {NULL};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = p->f.args.in_count,
                                 .op = p->op->name,
                                 .attrs = attrs,
                                 .in = in,
                                 .bodies = bodies,
                                 .body_count = b->count};
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < call.in_count && !st; i++) {
        const char name[] = {'x', (char)('a' + i), '\0'};

        st = tn_symbol_variable(ctx, name, &in[i]);
    }
    for (uint32_t i = 0; i < b->count; i++)
        bodies[i] = body_make(ctx, b->self);
    if (!st)
        st = tn_symbol_op(ctx, &call, net);
    for (uint32_t i = 0; i < call.in_count; i++)
        tn_symbol_release(in[i]);
    for (uint32_t i = 0; i < b->count; i++)
        tn_symbol_release(bodies[i]);
    return st;
}

tn_status chk_bodies_invoke(tn_ctx *ctx, const chk_problem *p, const char *const *attrs, tn_array *const *in,
                            tn_array **out, uint32_t *out_count)
{
    tn_symbol *net = NULL;
    tn_cached_op *op = NULL;
    tn_status st;

    *out_count = 0;
    if (!(st = net_make(ctx, p, attrs, &net)) && !(st = tn_cached_op_create(ctx, net, NULL, &op)) &&
        !(st = tn_cached_op_call(op, p->f.args.in_count, in, tn_symbol_output_count(net), out)))
        *out_count = tn_symbol_output_count(net);
    tn_cached_op_release(op);
    tn_symbol_release(net);
    return st;
}
