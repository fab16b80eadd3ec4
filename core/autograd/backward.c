/*
 * Backward: walk the tape, find or build the program of its shape, bind arrays, run.
 *
 * One lock per context covers walk, build and binding (they use scratch in nodes and leaves). The run is
 * queued without it, since a push may wait for kernels, and those for threads that call backward themselves.
 * What the run needs is held until then: the program, the nodes of the tape, the gradients. A pass that will
 * consume the tape says so before it runs, so a second one is refused; one that came earlier keeps what it
 * reads, and the last to leave gives it up. Nothing of the tape changes if backward fails.
 */
#include "autograd/walk.h"

#include <string.h>

#define PROGRAMS_MAX 64 /* shapes of tapes kept: a training loop has one or two, buckets some more */

#define TOLD_MAX 64 /* operators; beyond that the log is full enough */

typedef struct autograd {
    tni_mutex lock;
    tni_backward_program *first; /* most recent first */
    uint32_t count, told_count;
    const tni_opdef *told[TOLD_MAX]; /* that break backward passes: the log has said so */
} autograd;

static void *autograd_make(void)
{
    autograd *a = tni_zalloc(sizeof *a);

    if (a && tni_mutex_init(&a->lock)) {
        tni_free(a);
        a = NULL;
    }
    return a;
}

void tni_autograd_close(tni_context *c)
{
    autograd *a = tni_exec_upper_take(c);

    if (!a)
        return;
    while (a->first) {
        tni_backward_program *next = a->first->next;

        tni_backward_release(a->first);
        a->first = next;
    }
    tni_mutex_fini(&a->lock);
    tni_free(a);
}

/* ---- attached gradients ------------------------------------------------------------------------------ */

tn_status tni_grad_attach(tni_context *c, tni_array *a, uint32_t mode, tni_array *grad)
{
    tn_status st = TN_OK;

    if (mode > TN_MODE_ADD)
        return tni_error(TN_E_ARG, "gradient mode %u is none of null, write, add", mode);
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "a sparse array takes no gradient yet");
    if (a->pending && (st = tni_array_shape_wait(a)))
        return st;
    if (grad && (grad->dtype != a->dtype || !tni_array_has_shape(grad, a->ndim, a->shape)))
        return tni_error(TN_E_SHAPE, "the gradient given has another shape or dtype than the array");
    if (grad) {
        tni_array_retain(grad);
    } else {
        if ((st = tni_array_create(c->space, a->storage->device, a->dtype, a->ndim, a->shape, "gradient",
                                   &grad)))
            return st;
        if ((st = tni_array_fill(grad, 0.0))) {
            tni_array_release(grad);
            return st;
        }
    }
    tni_array_forget(a);
    tni_array_release(a->grad);
    a->grad = grad;
    a->grad_req = mode;
    return TN_OK;
}

void tni_grad_detach(tni_array *a)
{
    tni_array_release(a->grad);
    a->grad = NULL;
    a->grad_req = TN_MODE_NONE;
}

tni_array *tni_grad_get(const tni_array *a)
{
    return a->grad;
}

/* ---- the program of a tape's shape ------------------------------------------------------------------- */

static bool key_equal(const tni_backward_program *p, const tni_tape_walk *w)
{
    return p->hash == w->hash && p->key_count == w->key.count &&
           !memcmp(p->key, w->key.data, p->key_count * sizeof *p->key);
}

/* Once for each operator: a loop over buckets of lengths makes many programs. */
static void by_node_tell_locked(autograd *a, const tni_context *c, const tni_bynode *b)
{
    const tni_opdef *def = tni_bynode_first(b)->def;

    for (uint32_t i = 0; i < a->told_count; i++)
        if (a->told[i] == def)
            return;
    if (a->told_count == TOLD_MAX)
        return;
    a->told[a->told_count++] = def;
    tni_bynode_tell(c, b, "gradients are computed");
}

static tn_status program_find_locked(autograd *a, const tni_tape_walk *w, const uint8_t *modes,
                                     tni_backward_program **out)
{
    tni_backward_program **at, *p;
    tn_status st;

    for (at = &a->first; (p = *at) != NULL && !key_equal(p, w); at = &p->next)
        ;
    if (p) {
        *at = p->next;
    } else {
        if ((st = tni_backward_build(w, modes, &p)))
            return st;
        a->count++;
        if (p->bynode)
            by_node_tell_locked(a, w->ctx, p->bynode);
    }
    p->next = a->first;
    a->first = p;
    for (at = &a->first; a->count > PROGRAMS_MAX && *at; at = &(*at)->next)
        if (!(*at)->next) { /* the least recent goes */
            tni_backward_release(*at);
            *at = NULL;
            a->count--;
            break;
        }
    *out = p;
    return TN_OK;
}

/* ---- binding ----------------------------------------------------------------------------------------- */

typedef struct binding {
    const tni_tape_walk *w;
    tni_backward_program *p;
    tni_array **in, **out; /* in: retained */
    const tni_attrs **attrs;
} binding;

static void binding_fini(binding *b)
{
    for (uint32_t i = 0; b->in && i < b->p->input_count; i++)
        tni_array_release(b->in[i]);
    tni_free(b->in);
    tni_free(b->out);
    tni_free((void *)b->attrs);
}

static tn_status ones_like(tni_context *c, const tni_array *a, tni_array **out)
{
    tn_status st =
        tni_array_create(c->space, a->storage->device, a->dtype, a->ndim, a->shape, "gradient", out);

    return st ? st : tni_array_fill(*out, 1.0);
}

/* Gradients of heads: without the lock, since ones are queued like any operation. */
static tn_status binding_heads(binding *b, tni_array *const *head_grads)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < b->p->input_count && !st; i++) {
        const tni_source *s = &b->p->sources[i];

        if (s->kind != TNI_FROM_HEAD)
            continue;
        if (head_grads && head_grads[s->index])
            tni_array_retain(b->in[i] = head_grads[s->index]);
        else
            st = ones_like(b->w->ctx, b->w->heads[s->index], &b->in[i]);
    }
    return st;
}

/* A view of `a` in the shape of port `port`: an inner view of something that a caller's array holds. */
static tn_status as_port(tni_array *a, const tni_port *port, tni_array **out)
{
    if (tni_array_has_shape(a, port->shape.ndim, port->shape.dim)) {
        tni_array_retain(*out = a);
        return TN_OK;
    }
    return tni_array_reshape(a, port->shape.ndim, port->shape.dim, out);
}

/* An entry inside a cached operator: kept in its frame, or in one of its outputs or inputs. */
static tn_status inner_array(const tni_tape_node *n, uint32_t entry, const tni_port *port, tni_array **out)
{
    const tni_place *place = &n->frame->program->places[entry];

    switch (place->kind) {
    case TNI_PLACE_ARENA:
        return tni_frame_entry(n->frame, entry, out);
    case TNI_PLACE_OUTPUT:
        return as_port(n->out[place->index], port, out);
    case TNI_PLACE_INPUT:
        return as_port(n->in[place->index], port, out);
    default:
        return tni_error(TN_E_INTERNAL, "entry %u of a net was not kept for its backward", entry);
    }
}

static tn_status source_array(const binding *b, uint32_t i, tni_array **out)
{
    const tni_source *s = &b->p->sources[i];
    const tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&b->w->nodes, s->node);

    switch (s->kind) {
    case TNI_FROM_HEAD: /* binding_heads */
        return TN_OK;
    case TNI_FROM_LEAF:
        tni_array_retain(*out = *(tni_array **)tni_vec_at(&b->w->leaves, s->index));
        return TN_OK;
    case TNI_FROM_IN:
        tni_array_retain(*out = n->in[s->index]);
        return TN_OK;
    case TNI_FROM_OUT:
        tni_array_retain(*out = n->out[s->index]);
        return TN_OK;
    case TNI_FROM_SAVED:
        if (n->frame)
            return tni_frame_saved(n->frame, s->index, out);
        tni_array_retain(*out = n->saved);
        return TN_OK;
    case TNI_FROM_FRAME:
        return inner_array(n, s->index, &b->p->inputs[i], out);
    default:
        return tni_error(TN_E_INTERNAL, "a backward pass reads from a source of kind %u", s->kind);
    }
}

/* All but the gradients of heads. Attributes are those of the nodes, which the caller holds. */
static tn_status binding_init(binding *b, const tni_tape_walk *w, tni_backward_program *p,
                              tni_array *const *grads)
{
    const bool links = p->bynode || p->program->link_count;
    tn_status st = TN_OK;

    *b = (binding){.w = w, .p = p};
    b->in = tni_calloc(p->input_count + 1u, sizeof *b->in);
    b->out = tni_calloc(p->graph->head_count + 1u, sizeof *b->out);
    b->attrs = links ? tni_calloc(p->graph->node_count + 1u, sizeof *b->attrs) : NULL;
    if (!b->in || !b->out || (links && !b->attrs))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->input_count && !st; i++)
        st = source_array(b, i, &b->in[i]);
    for (uint32_t i = 0; i < p->graph->head_count; i++)
        b->out[i] = grads[p->leaf_of_output[i]];
    for (uint32_t i = 0; b->attrs && i < p->graph->node_count; i++)
        if (p->tape_of_node[i] != TNI_NONE)
            b->attrs[i] = (*(tni_tape_node **)tni_vec_at(&w->nodes, p->tape_of_node[i]))->attrs;
    return st;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

static tn_status head_grads_check(uint32_t count, tni_array *const *heads, tni_array *const *head_grads)
{
    for (uint32_t i = 0; i < count && head_grads; i++)
        if (head_grads[i] && (head_grads[i]->dtype != heads[i]->dtype ||
                              !tni_array_has_shape(head_grads[i], heads[i]->ndim, heads[i]->shape)))
            return tni_error(TN_E_SHAPE, "the gradient of head %u has another shape or dtype than the head",
                             i);
    return TN_OK;
}

typedef struct request {
    uint32_t count;
    tni_array *const *heads, *const *head_grads;
    uint32_t wanted_count;
    tni_array *const *wanted; /* NULL: attached gradients */
    tni_array **made;         /* new gradients of the wanted ones */
    bool retain;
} request;

/* One backward pass: what it holds while it runs. */
typedef struct pass {
    tni_tape_walk w;
    tni_backward_program *p;
    binding b;
    tni_array **grads; /* per leaf; retained */
    uint8_t *modes;
    uint32_t grad_count;
    bool entered;
} pass;

/* Leaves and their gradients by mode. */
static tn_status grads_gather(pass *s, const request *r)
{
    const tni_vec *leaves = &s->w.leaves;

    if (!leaves->count)
        return tni_error(TN_E_STATE, "no array with an attached gradient leads to the heads");
    s->grads = tni_calloc(leaves->count, sizeof *s->grads);
    s->modes = tni_calloc(leaves->count, 1);
    if (!s->grads || !s->modes)
        return TN_E_NOMEM;
    s->grad_count = (uint32_t)leaves->count;
    for (uint32_t i = 0; i < s->grad_count; i++) {
        const tni_array *leaf = *(tni_array **)tni_vec_at(leaves, i);

        s->modes[i] = r->wanted ? TN_MODE_WRITE : (uint8_t)leaf->grad_req;
        tni_array_retain(s->grads[i] = r->wanted ? r->made[i] : leaf->grad);
    }
    return TN_OK;
}

static void tape_enter_locked(pass *s, bool retain)
{
    for (size_t i = 0; i < s->w.nodes.count; i++) {
        tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&s->w.nodes, i);

        tni_tape_node_retain(n);
        n->walkers++;
        n->consumed = !retain;
    }
    s->entered = true;
}

/* Nodes that are consumed and that nobody walks any more come to the front: their number. `undo`: this pass
 * was to consume them, and failed. */
static size_t tape_leave_locked(pass *s, bool undo)
{
    tni_tape_node **nodes = s->w.nodes.data;
    size_t spent = 0;

    for (size_t i = 0; i < s->w.nodes.count; i++) {
        tni_tape_node *n = nodes[i];

        if (undo)
            n->consumed = false;
        if (--n->walkers || !n->consumed)
            continue;
        nodes[i] = nodes[spent];
        nodes[spent++] = n;
    }
    return spent;
}

static tn_status pass_begin_locked(pass *s, tni_context *c, autograd *a, const request *r)
{
    tn_status st = tni_tape_walk_init(&s->w, c, r->count, r->heads, r->wanted_count, r->wanted, !r->wanted);

    if (st || (st = grads_gather(s, r)) || (st = program_find_locked(a, &s->w, s->modes, &s->p)))
        return st;
    tni_ref_retain(&s->p->refs);
    if ((st = binding_init(&s->b, &s->w, s->p, s->grads)))
        return st;
    tape_enter_locked(s, r->retain);
    return TN_OK;
}

/* Zeros for leaves that nothing reaches, on devices other than the pass's: operations of their own. */
static tn_status zeros_elsewhere(const pass *s)
{
    const tni_backward_program *p = s->p;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->zero_count && !st; i++) {
        const uint32_t leaf = p->zero_leaves[i];

        if (s->modes[leaf] == TN_MODE_WRITE &&
            !tni_gradient_near(s->w.heads[0]->storage->device, s->grads[leaf]))
            st = tni_array_fill(s->grads[leaf], 0.0);
    }
    return st;
}

/* The gradients change only when all nodes are queued. */
static tn_status run_by_node(const pass *s)
{
    const tni_backward_program *p = s->p;
    const uint32_t heads = p->graph->head_count;
    tni_context *c = s->w.ctx;
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tni_array **made = tni_calloc((uint64_t)heads + s->grad_count + 1u, sizeof *made);
    tni_array **of_leaf = made + heads;
    tn_status st;

    if (!made)
        return TN_E_NOMEM;
    scope->recording = false;
    scope->training = p->graph->train;
    st = tni_bynode_call(c, p->bynode, s->b.in, s->b.attrs, made);
    for (uint32_t i = 0; !st && i < heads; i++)
        of_leaf[p->leaf_of_output[i]] = made[i];
    if (!st)
        st = tni_gradients_put(&s->w, s->grad_count, of_leaf, s->grads, s->modes);
    *scope = before;
    for (uint32_t i = 0; i < heads; i++)
        tni_array_release(made[i]);
    tni_free(made);
    return st;
}

static tn_status run_as_program(const pass *s)
{
    const binding *b = &s->b;
    const tni_backward_program *p = s->p;
    tni_array **zeros = p->zero_count ? tni_calloc(p->zero_count, sizeof *zeros) : NULL;
    uint32_t count = 0;
    tn_status st;

    if (p->zero_count && !zeros)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->zero_count; i++) {
        tni_array *grad = s->grads[p->zero_leaves[i]];

        if (s->modes[p->zero_leaves[i]] == TN_MODE_WRITE && tni_gradient_near(p->program->device, grad))
            zeros[count++] = grad;
    }
    st = tni_frame_run(p->frame, b->in, b->out, b->attrs, 0, &(tni_frame_zeros){count, zeros});
    tni_free(zeros);
    return st;
}

/* Queues everything, without the lock. */
static tn_status pass_run(pass *s, const request *r)
{
    tn_status st = binding_heads(&s->b, r->head_grads);

    if (!st)
        st =
            zeros_elsewhere(s); /* first: an error behind the pass would have it undone though it is queued */
    return st ? st : s->p->bynode ? run_by_node(s) : run_as_program(s);
}

/* What the tape's nodes gave up goes without the lock too. */
static void pass_fini(pass *s, size_t spent)
{
    for (size_t i = 0; s->entered && i < s->w.nodes.count; i++) {
        tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&s->w.nodes, i);

        if (i < spent)
            tni_tape_consume(n);
    }
    if (s->p)
        binding_fini(&s->b);
    for (size_t i = 0; s->entered && i < s->w.nodes.count; i++)
        tni_tape_node_release(*(tni_tape_node **)tni_vec_at(&s->w.nodes, i));
    for (uint32_t i = 0; i < s->grad_count; i++)
        tni_array_release(s->grads[i]);
    tni_free(s->grads);
    tni_free(s->modes);
    tni_backward_release(s->p);
    tni_tape_walk_fini(&s->w);
}

static tn_status backward(tni_context *c, const request *r)
{
    pass s = {.p = NULL};
    size_t spent = 0;
    autograd *a;
    tn_status st;

    if (!r->count)
        return tni_error(TN_E_ARG, "backward needs a head");
    if ((st = head_grads_check(r->count, r->heads, r->head_grads)))
        return st;
    if (!(a = tni_exec_upper(c, autograd_make)))
        return TN_E_NOMEM;
    tni_mutex_lock(&a->lock);
    st = pass_begin_locked(&s, c, a, r);
    tni_mutex_unlock(&a->lock);
    if (!st)
        st = pass_run(&s, r);
    if (s.entered) {
        tni_mutex_lock(&a->lock);
        spent = tape_leave_locked(&s, st && !r->retain);
        tni_mutex_unlock(&a->lock);
    }
    pass_fini(&s, spent);
    return st;
}

tn_status tni_backward(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                       const tni_backward_options *options)
{
    const request r = {
        .count = count, .heads = heads, .head_grads = head_grads, .retain = options && options->retain};

    return backward(c, &r);
}

tn_status tni_grad(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                   uint32_t variable_count, tni_array *const *variables, const tni_backward_options *options,
                   tni_array **out)
{
    request r = {
        .count = count, .heads = heads, .head_grads = head_grads, .retain = options && options->retain};
    tn_status st = TN_OK;

    if (!variable_count)
        return tni_error(TN_E_ARG, "grad needs a variable");
    for (uint32_t i = 0; i < variable_count; i++)
        if (!variables[i]->grad || variables[i]->grad_entry)
            return tni_error(TN_E_STATE, "variable %u has no attached gradient", i);
    for (uint32_t i = 0; i < variable_count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (variables[k] == variables[i])
                st = tni_error(TN_E_ARG, "variables %u and %u are the same array", k, i);
        out[i] = NULL;
    }
    for (uint32_t i = 0; i < variable_count && !st; i++)
        st = tni_array_create(c->space, variables[i]->storage->device, variables[i]->dtype,
                              variables[i]->ndim, variables[i]->shape, "gradient", &out[i]);
    r.wanted = variables;
    r.wanted_count = variable_count;
    r.made = out;
    if (!st)
        st = backward(c, &r);
    for (uint32_t i = 0; st && i < variable_count; i++) {
        tni_array_release(out[i]);
        out[i] = NULL;
    }
    return st;
}
