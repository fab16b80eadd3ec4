/*
 * The runner of operators with graphs of their own.
 *
 * The bodies of an instruction are cached operators that belong to the frame pool of its program, so they are
 * compiled once for each signature. A call wraps the memory of the operands as arrays with variables of their
 * own, and gathers the programs to run in a nest. The operation around it holds the real variables until the
 * end of the last nest: where the definition goes on behind values (`then`), one nest follows another. Draws
 * of a body are counted under the one draw of its node.
 */
#include <string.h>

#include "exec/frame_internal.h"
#include "exec/nest.h"
#include "exec/subgraph.h"

#define RUNS_MAX (1u << 20)   /* of bodies, in one call */
#define ARRAYS_MAX (1u << 22) /* between them */
#define MEMORY_MAX 4096u      /* blocks of the definition's own */

struct frame_bodies { /* of an instruction; most have none */
    tni_cached_op **ops;
    uint32_t count;
};

typedef struct body_run { /* one that may be followed by its backward */
    tni_compiled *compiled;
    tni_frame *frame;
    tni_array **in, **out; /* one block; the arrays are borrowed */
} body_run;

struct tni_subgraph_call {
    frame_segment *segment;
    const tni_instruction *code;
    const frame_bodies *bodies;
    tni_nest nest;
    tni_vec arrays; /* tni_array *: operands first */
    tni_vec runs;   /* body_run */
    tni_vec memory; /* void * */
    uint64_t draw;  /* the next one within */
    uint32_t under;
    tn_body_next next; /* goes on behind the nest; NULL: nothing does */
    void *next_state;
    atomic_uint turn; /* TURN_… */
    tn_status status; /* of the last nest */
    tn_err err;
};

/* Whose turn it is to go on behind a nest: of the thread that queues it if the nest has ended by then, so
 * that nests behind each other do not pile up on a stack; else of the thread that ends it. */
enum { TURN_QUEUEING, TURN_ENDED, TURN_QUEUED };

/* ---- bodies -------------------------------------------------------------------------------------------- */

static tn_status body_make(tni_context *c, tni_symbol *s, tni_cached_op **out)
{
    const tn_status st = tni_cached_op_create(c, s, NULL, out);

    if (st || !(*out)->placed)
        return st;
    return tni_error(TN_E_UNSUPPORTED, "a graph within an operator names devices, which is not served");
}

static tn_status bodies_fill(tni_context *c, const tni_program *p, const tni_instruction *in, frame_bodies *b)
{
    const tni_gnode *node = &p->graph->nodes[in->node];
    const tni_device *d = p->segments[in->segment].device;
    tn_status st = TN_OK;

    if (!d->host)
        return tni_error(TN_E_UNSUPPORTED,
                         "node \"%.80s\" (%s) runs graphs of its own, on hosts only, not %s:%d", node->name,
                         in->def->op->name, d->type, d->index);
    if (!(b->ops = tni_calloc(node->subgraph_count + 1u, sizeof(*b->ops))))
        return TN_E_NOMEM;
    for (; b->count < node->subgraph_count && !st; b->count++)
        st = body_make(c, node->subgraphs[b->count], &b->ops[b->count]);
    return st;
}

tn_status tni_bodies_create(tni_context *c, const tni_program *p, frame_bodies **out)
{
    frame_bodies *all = NULL;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->code_count && !st; i++) {
        if (p->code[i].kind != TN_EXEC_SUBGRAPH)
            continue;
        if (!all && !(all = tni_calloc(p->code_count, sizeof *all)))
            return TN_E_NOMEM;
        st = bodies_fill(c, p, &p->code[i], &all[i]);
    }
    if (st)
        tni_bodies_destroy(p, all);
    else
        *out = all;
    return st;
}

void tni_bodies_destroy(const tni_program *p, frame_bodies *bodies)
{
    for (uint32_t i = 0; bodies && i < p->code_count; i++) {
        for (uint32_t k = 0; k < bodies[i].count; k++)
            tni_cached_op_release(bodies[i].ops[k]);
        tni_free((void *)bodies[i].ops);
    }
    tni_free(bodies);
}

/* ---- one run of a body --------------------------------------------------------------------------------- */

/* Its operands have variables of the call's own, so a write to an input would be seen by nobody. */
static tn_status inputs_kept(const tni_graph *g, bool train)
{
    for (uint32_t n = 0; n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];
        const tn_op *op = node->def ? node->def->op : NULL;

        for (uint32_t i = 0; op && (train || !(op->flags & TN_OP_MUTATES_TRAINING)) && i < node->input_count;
             i++)
            if (tn_op_mutates(op, node->input_count, i))
                return tni_error(
                    TN_E_UNSUPPORTED,
                    "node \"%.80s\" (%s) changes an input, which a graph within an operator may not",
                    node->name, op->name);
    }
    return TN_OK;
}

static tn_status entry_find(const tni_subgraph_call *call, uint32_t body, tni_array *const *in,
                            const uint8_t *modes, tni_specialization **out)
{
    const tni_frame *f = call->segment->frame;
    tni_cached_key k = {.in = in,
                        .modes = modes,
                        .recorded = modes != NULL,
                        .flags = (f->program->flags & (TN_NODE_TRAIN | TN_NODE_NP_SHAPE)) |
                                 tni_exec_node_flags(f->ctx),
                        .device = f->program->segments[call->segment->index].device};
    tni_cached_op *op = call->bodies->ops[body];
    tn_status st;

    k.in_count = op->graph->variable_count;
    k.generation = tni_exec_generation(f->ctx);
    if ((st = inputs_kept(op->graph, k.flags & TN_NODE_TRAIN)) ||
        (st = tni_specialization_find(op, &k, out)) || (*out)->compiled)
        return st;
    tni_specialization_release(*out);
    *out = NULL;
    return tni_error(TN_E_UNSUPPORTED,
                     "a graph within an operator has sizes that only a run tells, or sparse arrays");
}

static tn_status forward_add(tni_subgraph_call *call, tni_compiled *e, tni_frame *f, tni_array *const *in,
                             tni_array *const *out)
{
    const tni_program *p = e->program;
    tni_array **arrays = tni_calloc(p->port_count + 1u, sizeof(*arrays));
    const tni_launch l = {.frame = f,
                          .phase = TNI_FORWARD,
                          .arrays = arrays,
                          .draw = call->draw,
                          .under = call->under,
                          .name = call->code->def->op->name};

    if (!arrays)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->input_count; i++)
        arrays[i] = in[p->ports[i].index];
    for (uint32_t i = 0; i < p->output_count; i++)
        arrays[p->input_count + i] = out[i];
    call->draw += p->random_count;
    tni_frame_retain(f);
    return tni_nest_add(&call->nest, &l);
}

/* What its backward will need. */
static tn_status run_keep(tni_subgraph_call *call, tni_compiled *e, tni_frame *f, tni_array *const *in,
                          tni_array *const *out)
{
    const uint32_t ins = e->graph->variable_count, outs = e->graph->head_count;
    body_run r = {.compiled = e, .frame = f, .in = tni_calloc(ins + outs + 1u, sizeof(*r.in))};
    tn_status st;

    if (!r.in)
        return TN_E_NOMEM;
    r.out = r.in + ins;
    memcpy((void *)r.in, (const void *)in, ins * sizeof(*in));
    memcpy((void *)r.out, (const void *)out, outs * sizeof(*out));
    if ((st = tni_vec_push(&call->runs, &r))) {
        tni_free((void *)r.in);
        return st;
    }
    tni_compiled_retain(e);
    tni_frame_retain(f);
    return TN_OK;
}

/* Shapes and types are checked when it is queued. */
static tn_status run_check(const tni_subgraph_call *call, uint32_t body, tni_array *const *in,
                           tni_array *const *out)
{
    const tni_graph *g;

    if (body >= call->bodies->count)
        return tni_error(TN_E_ARG, "graph %u of a node with %u", body, call->bodies->count);
    g = call->bodies->ops[body]->graph;
    for (uint32_t i = 0; i < g->variable_count; i++)
        if (!in[i])
            return tni_error(TN_E_ARG, "graph %u: input %u is NULL", body, i);
    for (uint32_t o = 0; o < g->head_count; o++) {
        if (!out[o])
            return tni_error(TN_E_ARG, "graph %u: output %u is NULL", body, o);
        for (uint32_t i = 0; i < g->variable_count; i++)
            if (in[i]->storage == out[o]->storage)
                return tni_error(TN_E_ARG, "graph %u: output %u lies in the memory of input %u", body, o, i);
    }
    return TN_OK;
}

tn_status tni_subgraph_forward(tni_subgraph_call *call, uint32_t body, tni_array *const *in,
                               tni_array *const *out, const uint8_t *modes, uint32_t *run)
{
    tni_specialization *entry = NULL;
    tni_frame *f = NULL;
    tn_status st = run_check(call, body, in, out);

    if (!st)
        st = entry_find(call, body, in, modes, &entry);
    if (!st && !(st = tni_frame_take(entry->compiled->pool, modes != NULL, &f)) &&
        (!modes || !(st = run_keep(call, entry->compiled, f, in, out))))
        st = forward_add(call, entry->compiled, f, in, out);
    tni_frame_release(f);
    if (entry)
        tni_specialization_release(entry);
    if (!st && run)
        *run = (uint32_t)call->runs.count - (modes != NULL);
    return st;
}

/* ---- its backward -------------------------------------------------------------------------------------- */

static tni_array *backward_array(const body_run *r, const tni_port *port, tni_array *const *heads,
                                 tni_array *const *grads)
{
    switch (port->kind) {
    case TNI_PORT_INPUT:
        return r->in[port->index];
    case TNI_PORT_OUTPUT:
        return r->out[port->index];
    case TNI_PORT_HEAD_GRADIENT:
        return heads[port->index];
    default:
        return grads[port->index];
    }
}

static tn_status backward_add(tni_subgraph_call *call, const body_run *r, const tni_backward_key *key,
                              tni_array *const *heads, tni_array *const *grads)
{
    tni_launch l = {.name = call->code->def->op->name};
    tni_backward_run how;
    const tni_program *p;
    tni_array **arrays;
    tn_status st;

    if ((st = tni_compiled_backward(r->compiled, key, r->frame, &how)))
        return st;
    p = tni_frame_program(how.frame);
    if (!(arrays = tni_calloc(p->port_count + 1u, sizeof(*arrays)))) {
        tni_frame_release(how.frame);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < p->port_count; i++)
        if ((p->ports[i].read | p->ports[i].written) >> TNI_BACKWARD & 1u)
            arrays[i] = backward_array(r, &p->ports[i], heads, grads);
    l.frame = how.frame;
    l.lender = how.lender;
    l.phase = how.phase;
    l.arrays = arrays;
    return tni_nest_add(&call->nest, &l);
}

/* Gradients that nothing reaches are zeros, and their modes are those of the default backward. */
static tn_status modes_settle(tni_subgraph_call *call, const tni_compiled *e, tni_backward_key *key,
                              uint8_t *modes, tni_array *const *grads)
{
    const uint32_t count = e->graph->variable_count;
    uint8_t *reached = modes + count;
    tn_status st = tni_compiled_reach(e, key, reached);

    for (uint32_t i = 0; i < count && !st; i++) {
        if (modes[i] == TN_MODE_NONE || reached[i])
            continue;
        if (modes[i] == TN_MODE_WRITE)
            st = tni_nest_move(&call->nest, NULL, grads[i]);
        modes[i] = e->modes[i];
    }
    return st;
}

tn_status tni_subgraph_backward(tni_subgraph_call *call, uint32_t run, tni_array *const *heads,
                                const uint8_t *modes, tni_array *const *grads)
{
    const body_run *r = run < call->runs.count ? tni_vec_at(&call->runs, run) : NULL;
    const uint32_t ins = r ? r->compiled->graph->variable_count : 0;
    const uint32_t outs = r ? r->compiled->graph->head_count : 0;
    uint8_t *own = tni_calloc(2ull * ins + outs + 1u, 1);
    tni_backward_key key = {.modes = own, .heads = own + 2ull * ins};
    tn_status st = own ? TN_OK : TN_E_NOMEM;

    if (!r)
        st = tni_error(TN_E_ARG, "backward of run %u, but there are fewer", run);
    for (uint32_t h = 0; h < outs && !st; h++)
        own[2ull * ins + h] = heads[h] != NULL;
    if (!st) {
        memcpy(own, modes, ins);
        st = modes_settle(call, r->compiled, &key, own, grads);
    }
    if (!st)
        st = backward_add(call, r, &key, heads, grads);
    tni_free(own);
    return st;
}

/* ---- the call ------------------------------------------------------------------------------------------ */

const tni_attrs *tni_subgraph_attrs(const tni_subgraph_call *call)
{
    return call->code->attrs;
}

const tn_op *tni_subgraph_op(const tni_subgraph_call *call)
{
    return call->code->def->op;
}

tni_array *tni_subgraph_in(const tni_subgraph_call *call, uint32_t i)
{
    if (i >= call->code->in_count)
        return NULL;
    return *(tni_array **)tni_vec_at(&call->arrays, i);
}

tni_array *tni_subgraph_out(const tni_subgraph_call *call, uint32_t i)
{
    if (i >= call->code->out_count)
        return NULL;
    return *(tni_array **)tni_vec_at(&call->arrays, call->code->in_count + i);
}

static tn_status array_hold(tni_subgraph_call *call, tni_array *a)
{
    const tn_status st = tni_vec_push(&call->arrays, &a);

    if (st)
        tni_array_release(a);
    return st;
}

tn_status tni_subgraph_array(tni_subgraph_call *call, const tni_array *like, tni_array **out)
{
    const tn_status st = tni_array_like(like, "array", out);

    return st ? st : array_hold(call, *out);
}

tn_status tni_subgraph_step(tni_subgraph_call *call, tni_array *a, int64_t index, tni_array **out)
{
    const tn_status st = tni_array_at(a, index, out);

    return st ? st : array_hold(call, *out);
}

/* What the program that it would run says of its outputs. */
tn_status tni_subgraph_given(tni_subgraph_call *call, uint32_t body, tni_array *const *in, uint32_t index,
                             tni_array **out)
{
    tni_device *d = call->segment->frame->program->segments[call->segment->index].device;
    tni_specialization *entry = NULL;
    const tni_program *p;
    tn_status st;

    if (body >= call->bodies->count || index >= call->bodies->ops[body]->graph->head_count)
        return tni_error(TN_E_ARG, "output %u of graph %u, but there are fewer", index, body);
    if ((st = entry_find(call, body, in, NULL, &entry)))
        return st;
    p = entry->compiled->program;
    st = tni_array_create(call->nest.ctx->space, d, p->ports[p->input_count + index].dtype,
                          p->ports[p->input_count + index].shape.ndim,
                          p->ports[p->input_count + index].shape.dim, "array", out);
    tni_specialization_release(entry);
    return st ? st : array_hold(call, *out);
}

tn_status tni_subgraph_copy(tni_subgraph_call *call, tni_array *src, tni_array *dst)
{
    if (src && (src->dtype != dst->dtype || !tni_array_has_shape(src, dst->ndim, dst->shape)))
        return tni_error(TN_E_SHAPE, "a copy between arrays of different shapes or data types");
    return tni_nest_move(&call->nest, src, dst);
}

void *tni_subgraph_memory(tni_subgraph_call *call, uint64_t bytes)
{
    void *p = tni_zalloc(bytes ? bytes : 1);

    if (p && tni_vec_push(&call->memory, &p)) {
        tni_free(p);
        return NULL;
    }
    return p;
}

tn_status tni_subgraph_then(tni_subgraph_call *call, tn_body_next next, void *state)
{
    if (!next || call->next)
        return tni_error(TN_E_STATE, "what goes on behind the runs of a call is said once for them");
    call->next = next;
    call->next_state = state;
    return TN_OK;
}

static tn_status operands_wrap(tni_subgraph_call *call)
{
    const tni_frame *f = call->segment->frame;
    const tni_program *p = f->program;
    const tni_instruction *in = call->code;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < in->in_count + in->out_count && !st; k++) {
        const tn_tensor *t = f->operands[in->first_operand + k];
        tni_array *a = NULL;

        if (!(st = tni_array_wrap(call->nest.ctx->space, p->segments[call->segment->index].device, t->data,
                                  t->bytes, t->dtype, t->ndim, t->shape, NULL, NULL, NULL, &a)))
            st = array_hold(call, a);
    }
    return st;
}

static void call_destroy(tni_subgraph_call *call)
{
    tni_nest_fini(&call->nest);
    for (size_t i = 0; i < call->runs.count; i++) {
        body_run *r = tni_vec_at(&call->runs, i);

        tni_frame_release(r->frame);
        tni_compiled_release(r->compiled);
        tni_free((void *)r->in);
    }
    for (size_t i = 0; i < call->arrays.count; i++)
        tni_array_release(*(tni_array **)tni_vec_at(&call->arrays, i));
    for (size_t i = 0; i < call->memory.count; i++)
        tni_free(*(void **)tni_vec_at(&call->memory, i));
    tni_vec_fini(&call->memory);
    tni_vec_fini(&call->runs);
    tni_vec_fini(&call->arrays);
    tni_free(call);
}

/* The call's memory goes first: the program, and its frame, may be gone behind the completion. */
static void call_end(tni_subgraph_call *call)
{
    frame_segment *s = call->segment;
    const tn_status status = call->status;
    tn_err named = {0};

    if (status)
        tni_err_format(&named, status, "node \"%.80s\": %.400s",
                       s->frame->program->graph->nodes[call->code->node].name,
                       call->err.message[0] ? call->err.message : tni_status_name(status));
    call_destroy(call);
    tni_frame_call_ops.complete((tn_call *)s, status, &named);
}

/* What the definition asks for behind the last nest becomes the next one. */
static tn_status nest_next(tni_subgraph_call *call)
{
    const tn_body_next next = call->next;
    const tni_nest last = call->nest;

    call->next = NULL;
    tni_nest_fini(&call->nest);
    tni_nest_init(&call->nest, last.ctx);
    call->nest.done = last.done;
    call->nest.arg = last.arg;
    return tni_bodies_next(call, next, call->next_state);
}

/* Behind a nest. False: the call has ended, and is gone. */
static bool call_more(tni_subgraph_call *call)
{
    if (!call->status && call->next) {
        if (!(call->status = nest_next(call)))
            return true;
        tni_error_get(&call->err);
    }
    call_end(call);
    return false;
}

/* Queues the nest, and those behind it as long as they have ended by then. */
static void call_go(tni_subgraph_call *call)
{
    tni_device *d = call->segment->frame->program->segments[call->segment->index].device;
    const char *name = call->code->def->op->name;

    do {
        tn_status st;

        atomic_store(&call->turn, TURN_QUEUEING);
        if ((st = tni_nest_push(&call->nest, d, name))) {
            call->status = st;
            tni_error_get(&call->err);
            call_end(call);
            return;
        }
        if (atomic_exchange(&call->turn, TURN_QUEUED) != TURN_ENDED)
            return;
    } while (call_more(call));
}

static void nest_done(void *arg, tn_status status, const tn_err *err)
{
    tni_subgraph_call *call = arg;

    call->status = status;
    call->err = *err;
    if (atomic_exchange(&call->turn, TURN_ENDED) == TURN_QUEUED && call_more(call))
        call_go(call);
}

/* A backward counts its draws as its forward did. */
static void draws_begin(tni_subgraph_call *call)
{
    const tni_frame *f = call->segment->frame;
    const uint32_t phase = f->program->segments[call->segment->index].phase;
    const tni_frame *lender = f->phases[phase].lender;
    const tni_graph *g = f->program->graph;
    const tni_gnode *node = &g->nodes[call->code->node];

    if (node->random == TNI_NONE && node->forward != TNI_NONE)
        node = &g->nodes[node->forward];
    if (node->random == TNI_NONE)
        return;
    f = lender ? lender : f;
    call->under = (uint32_t)(f->under * 0x9e3779b1u + f->draw + node->random + 1);
}

tn_status tni_subgraph_run(frame_segment *s, tn_err *err)
{
    const tni_program *p = s->frame->program;
    const uint32_t code = p->segments[s->index].first_code;
    tni_subgraph_call *call = tni_zalloc(sizeof *call);
    tn_status st;

    if (!call)
        return tn_fail(err, TN_E_NOMEM, "no memory for a call");
    call->segment = s;
    call->code = &p->code[code];
    call->bodies = &s->frame->pool->bodies[code];
    tni_nest_init(&call->nest, s->frame->ctx);
    tni_vec_init(&call->arrays, sizeof(tni_array *), ARRAYS_MAX);
    tni_vec_init(&call->runs, sizeof(body_run), RUNS_MAX);
    tni_vec_init(&call->memory, sizeof(void *), MEMORY_MAX);
    call->nest.done = nest_done;
    call->nest.arg = call;
    draws_begin(call);
    if ((st = operands_wrap(call)) || (st = tni_bodies_run(call))) {
        tni_error_get(err);
        call_destroy(call);
        return st;
    }
    call_go(call);
    return TN_PENDING;
}
