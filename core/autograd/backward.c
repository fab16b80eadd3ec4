/*
 * Backward: walk the tape, find or build the pass of its shape, bind arrays, queue all stages as one group.
 *
 * One lock per context covers walk, build and binding (they use scratch in nodes and leaves). The stages are
 * queued without it, since a push may wait for kernels, and those for threads that call backward themselves.
 * What the run needs is held until then: the pass, the nodes of the tape, the gradients. A backward that will
 * consume the tape says so before it runs, so a second one is refused; one that came earlier keeps what it
 * reads, and the last to leave gives it up. Nothing of the tape changes if backward fails.
 */
#include "autograd/function.h"
#include "autograd/higher.h"
#include "autograd/pass.h"
#include "autograd/rows.h"

#include <string.h>

#define PASSES_MAX 64 /* shapes of tapes kept: a training loop has one or two, buckets some more */

typedef struct autograd {
    tni_mutex lock;
    tni_pass *first; /* most recent first */
    uint32_t count;
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
        tni_pass *next = a->first->next;

        tni_pass_release(a->first);
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
    if (a->storage_type == TN_STORAGE_CSR || (grad && grad->storage_type == TN_STORAGE_CSR))
        return tni_error(TN_E_UNSUPPORTED, "a csr array takes no gradient, nor is it one");
    if (a->pending && (st = tni_array_shape_wait(a)))
        return st;
    if (grad && (grad->dtype != a->dtype || !tni_array_has_shape(grad, a->ndim, a->shape)))
        return tni_error(TN_E_SHAPE, "the gradient given has another shape or dtype than the array");
    if (grad) {
        tni_array_retain(grad);
    } else {
        if (a->storage_type != TN_STORAGE_DENSE && (st = tni_rows_none(a, &grad)))
            return st;
        if (!grad && (st = tni_array_create(c->space, a->storage->device, a->dtype, a->ndim, a->shape,
                                            "gradient", &grad)))
            return st;
        if (grad->storage_type == TN_STORAGE_DENSE && (st = tni_array_fill(grad, 0.0))) {
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

/* Of the process: arrays of several contexts may be compared. */
uint32_t tni_grad_turn(void)
{
    static atomic_uint turns;
    uint32_t turn;

    while (!(turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) + 1))
        ;
    return turn;
}

tni_array *tni_grad_get(const tni_array *a)
{
    return a->grad;
}

/* ---- the pass of a tape's shape ---------------------------------------------------------------------- */

static bool key_equal(const tni_pass *p, const tni_tape_walk *w)
{
    return p->hash == w->hash && p->key_count == w->key.count &&
           !memcmp(p->key, w->key.data, p->key_count * sizeof *p->key);
}

static tn_status pass_find_locked(autograd *a, const tni_tape_walk *w, const uint8_t *modes, tni_pass **out)
{
    tni_pass **at, *p;
    tn_status st;

    for (at = &a->first; (p = *at) != NULL && !key_equal(p, w); at = &p->next)
        ;
    if (p) {
        *at = p->next;
    } else {
        if ((st = tni_pass_build(w, modes, &p)))
            return st;
        a->count++;
    }
    p->next = a->first;
    a->first = p;
    for (at = &a->first; a->count > PASSES_MAX && *at; at = &(*at)->next)
        if (!(*at)->next) { /* the least recent goes */
            tni_pass_release(*at);
            *at = NULL;
            a->count--;
            break;
        }
    *out = p;
    return TN_OK;
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
    tni_array **made;         /* gradients of the wanted ones: of leaves at once, of others when queued */
    bool retain, predict;
} request;

/* One backward: what it holds while it runs. */
typedef struct run {
    tni_tape_walk w;
    const request *r;
    tni_pass *p;
    tni_array **grads; /* per gradient: of leaves (retained, by the request or attached; made where that is
                          row_sparse), of slots (made) */
    tni_array **rows;  /* per leaf: its new row_sparse gradient; NULL */
    uint8_t *modes;    /* per leaf */
    tni_launch *launches;
    tni_backward_run *frames;          /* per stage */
    tni_function_backward **functions; /* per stage; NULL: it is none */
    uint32_t ready;                    /* stages that have their frame and arrays */
    tni_moves **starts; /* per device that they are on: what is written into gradients of leaves first */
    tni_device **start_on;
    tni_task *start_tasks;
    uint32_t start_count;
    tni_vec brought; /* tni_array *: copies of what a stage reads on another device */
    tni_keep *keep;  /* where the tables come from */
    bool queued;
} run;

static tni_array *leaf_at(const run *s, size_t i)
{
    return *(tni_array **)tni_vec_at(&s->w.leaves, i);
}

static bool is_rows(const run *s, uint32_t leaf)
{
    return !s->r->wanted && tni_grad_is_rows(leaf_at(s, leaf));
}

/* ---- before the lock is given back ------------------------------------------------------------------- */

static tn_status modes_gather(run *s)
{
    const size_t leaves = s->w.leaves.count;

    if (!leaves && !s->r->wanted)
        return tni_error(TN_E_STATE, "no array with an attached gradient leads to the heads");
    if (!(s->modes = tni_keep_zeroed(s->keep, leaves + 1, 1)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < leaves; i++)
        s->modes[i] = s->r->wanted || is_rows(s, i) ? TN_MODE_WRITE : (uint8_t)leaf_at(s, i)->grad_req;
    return TN_OK;
}

static tn_status tables_make(run *s)
{
    const tni_pass *p = s->p;
    tn_status st = TN_OK;

    s->grads = tni_keep_zeroed(s->keep, 2ull * p->leaf_count + p->slot_count + 1, sizeof *s->grads);
    s->rows = s->grads ? s->grads + p->leaf_count + p->slot_count : NULL;
    s->starts = tni_keep_zeroed(s->keep, p->leaf_count + p->head_count + 1u, sizeof(*s->starts));
    s->start_on = tni_keep_zeroed(s->keep, p->leaf_count + p->head_count + 1u, sizeof(*s->start_on));
    s->launches = tni_keep_zeroed(s->keep, p->stage_count + 1u, sizeof *s->launches);
    s->frames = tni_keep_zeroed(s->keep, p->stage_count + 1u, sizeof *s->frames);
    s->functions = tni_keep_zeroed(s->keep, p->stage_count + 1u, sizeof(*s->functions));
    if (!s->grads || !s->launches || !s->frames || !s->functions || !s->starts || !s->start_on)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->leaf_count && !s->r->wanted && !st; i++)
        if (!is_rows(s, i))
            tni_array_retain(s->grads[i] = leaf_at(s, i)->grad);
        else if (p->made[i])
            st = tni_array_like(leaf_at(s, i), "gradient", &s->grads[i]);
    for (uint32_t i = 0; i < s->r->wanted_count; i++)
        if (s->r->made[i])
            tni_array_retain(s->grads[p->wanted[i]] = s->r->made[i]);
    return st;
}

static tn_status run_begin_locked(run *s, tni_context *c, autograd *a)
{
    const request *r = s->r;
    tn_status st;

    s->keep = c->space->keep;
    tni_vec_init_kept(&s->brought, s->keep, sizeof(tni_array *), UINT32_MAX / 2);
    s->w.heads = r->heads;
    s->w.head_count = r->count;
    s->w.wanted = r->wanted;
    s->w.wanted_count = r->wanted_count;
    s->w.predict = r->predict;
    if ((st = tni_tape_walk_init(&s->w, c)) || (st = modes_gather(s)) ||
        (st = pass_find_locked(a, &s->w, s->modes, &s->p)))
        return st;
    tni_ref_retain(&s->p->refs);
    if ((st = tables_make(s)))
        return st;
    tni_tape_enter(&s->w, r->retain);
    return TN_OK;
}

/* ---- arrays ------------------------------------------------------------------------------------------ */

/* The gradient of a head: what the caller gave, or ones. One reference, the caller's. */
static tn_status head_gradient(const run *s, uint32_t head, tni_array **out)
{
    if (!s->r->head_grads || !s->r->head_grads[head])
        return tni_array_filled(s->w.heads[head], 1.0, "gradient", out);
    tni_array_retain(*out = s->r->head_grads[head]);
    return TN_OK;
}

static tn_status sum_queue(tni_array *from, tni_array *to)
{
    tni_moves *m = NULL;
    tn_status st = tni_moves_add(&m, 1, from, to, true);

    return st || !m ? st : tni_moves_push(m, to->storage->device, "sum of head gradients");
}

/* What arrives at a slot from heads alone is what the caller gave. More than that is summed: what the heads
 * give comes first, before any stage. */
static tn_status slot_start(const run *s, uint32_t head, tni_array **slot)
{
    tni_array *given = NULL;
    tn_status st = head_gradient(s, head, &given);

    if (!st && *slot) {
        st = sum_queue(given, *slot);
    } else if (!st && s->p->starts[s->p->head_slot[head]]) {
        if (!(st = tni_array_like(given, "gradient", slot)))
            st = tni_array_copy(given, *slot);
    } else if (!st) {
        tni_array_retain(*slot = given);
    }
    tni_array_release(given);
    return st;
}

/* Written into the gradient of a leaf before any stage runs; `from` NULL: zeros. In order: further ones for
 * the same gradient come behind. */
static tn_status start_add(run *s, uint32_t leaf, tni_array *from, bool add)
{
    tni_device *d = s->grads[leaf]->storage->device;
    uint32_t i = 0;

    while (i < s->start_count && s->start_on[i] != d)
        i++;
    s->start_on[i] = d;
    s->start_count += i == s->start_count;
    return tni_moves_add(&s->starts[i], s->p->leaf_count + s->p->head_count, from, s->grads[leaf], add);
}

/* A leaf that is a head: its gradient begins with what arrives there. */
static tn_status leaf_start(run *s, uint32_t head)
{
    const uint32_t leaf = tni_tape_leaf(&s->w, s->w.heads[head]);
    tni_array *given = NULL;
    tn_status st;

    if (leaf == TNI_NONE)
        return TN_OK;
    if (!(st = head_gradient(s, head, &given)))
        st = start_add(s, leaf, given, s->modes[leaf] == TN_MODE_ADD);
    s->modes[leaf] = TN_MODE_ADD; /* of a further head there */
    tni_array_release(given);
    return st;
}

/* The gradient of output `o` of a node, which stages alone give to. */
static tn_status slot_make(const run *s, const tni_tape_call *n, uint32_t o, tni_array **slot)
{
    const tni_tape_spec k = tni_tape_output(n, o);

    return tni_array_create(s->w.ctx->space, k.device, k.dtype, k.ndim, k.shape, "gradient", slot);
}

static tn_status slots_make(run *s)
{
    const tni_pass *p = s->p;
    tn_status st = TN_OK;

    for (uint32_t h = 0; h < p->head_count && !st; h++)
        st = p->head_slot[h] == TNI_NONE ? leaf_start(s, h)
                                         : slot_start(s, h, &s->grads[p->leaf_count + p->head_slot[h]]);
    for (size_t k = 0; k < s->w.nodes.count && !st; k++)
        for (uint32_t o = 0, i = p->leaf_count + p->first_slot[k];
             o < tni_tape_at(&s->w, k)->out_count && !st; o++, i++)
            if (p->made[i] && !s->grads[i])
                st = slot_make(s, tni_tape_at(&s->w, k), o, &s->grads[i]);
    return st;
}

/* ---- stages ------------------------------------------------------------------------------------------ */

static tni_array *source_array(const run *s, const tni_source *from)
{
    const tni_tape_call *n = tni_tape_at(&s->w, from->node);

    switch (from->kind) {
    case TNI_FROM_LEAF:
        return leaf_at(s, from->index);
    case TNI_FROM_IN:
        return n->in[from->index];
    case TNI_FROM_OUT:
        return n->out[from->index];
    default:
        return n->saved;
    }
}

static tni_array *stretch_array(const run *s, const tni_stage *stage, uint32_t at)
{
    const tni_port *port = &stage->program->ports[at];

    if (port->kind == TNI_PORT_HEAD_GRADIENT)
        return s->grads[s->p->leaf_count + port->index];
    return port->kind == TNI_PORT_GRADIENT ? s->grads[port->index] : source_array(s, &stage->sources[at]);
}

static tni_array *cached_array(const run *s, const tni_stage *stage, const tni_port *port)
{
    const tni_tape_call *n = tni_tape_at(&s->w, stage->first);

    switch (port->kind) {
    case TNI_PORT_INPUT:
        return n->in[port->index];
    case TNI_PORT_OUTPUT:
        return n->out[port->index];
    case TNI_PORT_HEAD_GRADIENT:
        return s->grads[s->p->leaf_count + s->p->first_slot[stage->first] + port->index];
    default:
        return s->grads[stage->targets[port->index]];
    }
}

static tn_status stage_frame(run *s, const tni_stage *stage, tni_backward_run *out)
{
    const tni_tape_call *n = tni_tape_at(&s->w, stage->first);
    const tni_backward_key key = {stage->heads, stage->modes, s->r->retain, s->r->predict};

    if (stage->cached)
        return tni_compiled_backward(n->cached, &key, n->frame, out);
    *out = (tni_backward_run){.phase = TNI_BACKWARD};
    return tni_frame_take(stage->pool, false, &out->frame);
}

/* Run-time attributes are those of the recorded calls. */
static tn_status stage_attrs(const run *s, const tni_stage *stage, const tni_attrs *const **out)
{
    const tni_attrs **attrs;

    if (stage->cached || !stage->program->link_count)
        return TN_OK;
    if (!(attrs = tni_keep_zeroed(s->keep, stage->program->graph->node_count + 1u, sizeof *attrs)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < stage->program->graph->node_count; i++)
        if (stage->tape_of_node[i] != TNI_NONE)
            attrs[i] = tni_tape_at(&s->w, stage->tape_of_node[i])->attrs;
    *out = attrs;
    return TN_OK;
}

/* What was kept on another device than that of its entry comes there, and what is sparse is copied. */
static tn_status array_bring(run *s, const tni_port *port, tni_array **a)
{
    tni_array *local = NULL;
    tn_status st;

    if (port->kind != TNI_PORT_ENTRY)
        return TN_OK;
    if ((*a)->storage_type != TN_STORAGE_DENSE)
        st = tni_rows_dense(s->w.ctx, *a, &local);
    else if ((*a)->storage->device == port->device)
        return TN_OK;
    else if (!(st = tni_array_create(s->w.ctx->space, port->device, (*a)->dtype, (*a)->ndim, (*a)->shape,
                                     "array", &local)))
        st = tni_array_copy(*a, local);
    if (!st && !(st = tni_vec_push(&s->brought, &local)))
        *a = local;
    else
        tni_array_release(local);
    return st;
}

/* Nobody may want any of its gradients: then it does not run. */
static tn_status function_make(run *s, const tni_stage *stage, uint32_t i)
{
    const tni_tape_call *n = tni_tape_at(&s->w, stage->first);
    tni_function_backward *b = NULL;
    bool any = false;
    tn_status st;

    for (uint32_t k = 0; k < n->in_count; k++)
        any |= stage->modes[k] != TN_MODE_NONE;
    if (!any || (st = tni_function_backward_create(s->w.ctx, n, s->r->predict, &b)))
        return any ? st : TN_OK;
    for (uint32_t h = 0; h < n->out_count; h++)
        if (stage->heads[h])
            tni_array_retain(b->grads[h] = s->grads[s->p->leaf_count + s->p->first_slot[stage->first] + h]);
    for (uint32_t k = 0; k < n->in_count; k++)
        if ((b->modes[k] = stage->modes[k]) != TN_MODE_NONE)
            tni_array_retain(b->targets[k] = s->grads[stage->targets[k]]);
    tni_function_backward_task(b);
    s->functions[i] = b;
    s->launches[i].task = &b->task;
    return TN_OK;
}

static tn_status stage_make(run *s, uint32_t i)
{
    const tni_stage *stage = &s->p->stages[i];
    tni_launch *l = &s->launches[i];
    const tni_program *p;
    tni_array **arrays;
    tn_status st;

    s->ready = i + 1;
    if (stage->rows)
        return TN_OK;
    if (stage->function)
        return function_make(s, stage, i);
    if ((st = stage_frame(s, stage, &s->frames[i])))
        return st;
    p = tni_frame_program(s->frames[i].frame);
    arrays = tni_frame_arrays(s->frames[i].frame, s->frames[i].phase);
    l->frame = s->frames[i].frame;
    l->lender = s->frames[i].lender;
    l->phase = s->frames[i].phase;
    l->arrays = arrays;
    l->name = "backward";
    for (uint32_t k = 0; k < p->port_count; k++) {
        if (!((p->ports[k].read | p->ports[k].written) >> TNI_BACKWARD & 1u))
            continue;
        arrays[k] = stage->cached ? cached_array(s, stage, &p->ports[k]) : stretch_array(s, stage, k);
        if (!stage->cached && (st = array_bring(s, &p->ports[k], &arrays[k])))
            return st;
    }
    return stage_attrs(s, stage, &l->sources);
}

/* Leaves that nothing reaches get zeros. */
static tn_status zeros_add(run *s)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->p->leaf_count && !st; i++)
        if (!s->p->made[i] && s->modes[i] == TN_MODE_WRITE && !is_rows(s, i))
            st = start_add(s, i, NULL, false);
    return st;
}

/* Gradients of arrays that are no leaves: what arrived at their slots, zeros if nothing did. What the caller
 * gave for a head is not handed out again. */
static tn_status wanted_give(run *s)
{
    const request *r = s->r;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < r->wanted_count && !st; i++) {
        tni_array *a = s->p->wanted[i] == TNI_NONE ? NULL : s->grads[s->p->wanted[i]];
        bool given = !a;

        if (r->made[i])
            continue;
        for (uint32_t h = 0; h < r->count && r->head_grads; h++)
            given |= a == r->head_grads[h];
        if (!given)
            tni_array_retain(r->made[i] = a);
        else if (!a)
            st = tni_array_filled(r->wanted[i], 0.0, "gradient", &r->made[i]);
        else if (!(st = tni_array_like(r->wanted[i], "gradient", &r->made[i])))
            st = tni_array_copy(a, r->made[i]);
    }
    return st;
}

static tn_status starts_make(run *s)
{
    tn_status st = TN_OK;

    if (s->start_count &&
        !(s->start_tasks = tni_keep_zeroed(s->keep, s->start_count, sizeof *s->start_tasks)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->start_count && !st; i++)
        if (s->starts[i])
            st = tni_moves_task(s->starts[i], s->start_on[i], "gradients", &s->start_tasks[i]);
    return st;
}

/* Queues everything, without the lock. */
static tn_status run_queue(run *s)
{
    tni_launch_group group = {.launches = s->launches, .count = s->p->stage_count};
    tn_status st = slots_make(s);

    for (uint32_t i = 0; i < s->p->stage_count && !st; i++)
        st = stage_make(s, i);
    if (st || (st = zeros_add(s)) || (st = wanted_give(s)) || (st = starts_make(s)))
        return st;
    group.first = s->start_tasks;
    group.first_count = s->start_count;
    if ((st = tni_launch_all(s->w.ctx, &group)))
        return st;
    s->queued = true; /* the moves are the operations' */
    return TN_OK;
}

/* One use of a leaf; a dense gradient has what other stages give, or zeros. */
static tn_status rows_give(run *s, const tni_stage *stage)
{
    const tni_pass *p = s->p;
    const uint32_t leaf = stage->rows - 1;
    tni_array *made = NULL;
    tn_status st = tni_rows_give(s->w.ctx, tni_tape_at(&s->w, stage->first), leaf_at(s, leaf),
                                 s->grads[p->leaf_count + p->first_slot[stage->first]], &made);

    if (!st)
        st =
            is_rows(s, leaf) ? tni_rows_add(s->w.ctx, made, &s->rows[leaf]) : sum_queue(made, s->grads[leaf]);
    tni_array_release(made);
    return st;
}

/* Behind the group: row_sparse gradients, of what arrives at rows and of what was made dense. */
static tn_status rows_make(run *s)
{
    const tni_pass *p = s->p;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->stage_count && !st; i++)
        if (p->stages[i].rows)
            st = rows_give(s, &p->stages[i]);
    for (uint32_t i = 0; i < p->leaf_count && !st; i++) {
        tni_array *a = leaf_at(s, i);

        if (!is_rows(s, i))
            continue;
        if (p->made[i])
            st = tni_rows_add(s->w.ctx, s->grads[i], &s->rows[i]);
        if (!st && !s->rows[i])
            st = tni_rows_none(a, &s->rows[i]);
        if (!st && a->grad_req == TN_MODE_ADD)
            st = tni_rows_add(s->w.ctx, a->grad, &s->rows[i]);
    }
    return st;
}

/* Each new one takes the place of the old one; all leaves' gradients are those of this backward. */
static void rows_put(run *s)
{
    const uint32_t turn = s->r->wanted ? 0 : tni_grad_turn();

    for (uint32_t i = 0; i < s->p->leaf_count; i++) {
        if (turn)
            leaf_at(s, i)->grad_turn = turn;
        if (s->rows[i]) {
            tni_array_release(leaf_at(s, i)->grad);
            leaf_at(s, i)->grad = s->rows[i];
            s->rows[i] = NULL;
        }
    }
}

/* What the tape's nodes gave up goes without the lock too. */
static void run_fini(run *s)
{
    for (uint32_t i = 0; i < s->ready; i++) {
        tni_frame_release(s->frames[i].frame);
        tni_keep_give(s->keep, (void *)s->launches[i].sources);
        if (!s->queued)
            tni_function_backward_destroy(s->functions[i]);
    }
    for (uint32_t i = 0; s->p && s->grads && i < 2 * s->p->leaf_count + s->p->slot_count; i++)
        tni_array_release(s->grads[i]);
    for (uint32_t i = 0; !s->queued && i < s->start_count; i++)
        tni_moves_destroy(s->starts[i]);
    for (size_t i = 0; i < s->brought.count; i++)
        tni_array_release(*(tni_array **)tni_vec_at(&s->brought, i));
    tni_vec_fini(&s->brought);
    tni_keep_give(s->keep, s->starts);
    tni_keep_give(s->keep, s->start_on);
    tni_keep_give(s->keep, s->start_tasks);
    tni_keep_give(s->keep, s->grads);
    tni_keep_give(s->keep, s->modes);
    tni_keep_give(s->keep, s->launches);
    tni_keep_give(s->keep, s->frames);
    tni_keep_give(s->keep, s->functions);
    tni_pass_release(s->p);
    tni_tape_walk_fini(&s->w);
}

static tn_status backward(tni_context *c, const request *r)
{
    run s = {.r = r};
    autograd *a;
    tn_status st;

    if (!r->count)
        return tni_error(TN_E_ARG, "backward needs a head");
    if ((st = head_grads_check(r->count, r->heads, r->head_grads)))
        return st;
    if (!(a = tni_exec_upper(c, autograd_make)))
        return TN_E_NOMEM;
    if ((st = tni_tape_wait(c, &a->lock, r->count, r->heads)))
        return st;
    tni_mutex_lock(&a->lock);
    st = run_begin_locked(&s, c, a);
    tni_mutex_unlock(&a->lock);
    if (!st && !(st = run_queue(&s)))
        st = rows_make(&s);
    tni_mutex_lock(&a->lock);
    if (!st)
        rows_put(&s);
    tni_tape_leave(&s.w, st && !s.queued && !r->retain);
    tni_mutex_unlock(&a->lock);
    run_fini(&s);
    return st;
}

tn_status tni_backward(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                       const tni_backward_options *options)
{
    const request r = {.count = count,
                       .heads = heads,
                       .head_grads = head_grads,
                       .retain = options && options->retain,
                       .predict = options && options->predict};

    return backward(c, &r);
}

/* Each gradient on the tape. */
static tn_status grad_recorded(tni_context *c, const request *r)
{
    autograd *a = tni_exec_upper(c, autograd_make);
    tni_higher_spec spec = {.head_count = r->count,
                            .variable_count = r->wanted_count,
                            .heads = r->heads,
                            .head_grads = r->head_grads,
                            .variables = r->wanted,
                            .predict = r->predict};
    tn_status st;

    if (!a)
        return TN_E_NOMEM;
    if (!r->count)
        return tni_error(TN_E_ARG, "grad needs a head");
    if ((st = head_grads_check(r->count, r->heads, r->head_grads)) ||
        (st = tni_tape_wait(c, &a->lock, r->count, r->heads)))
        return st;
    spec.lock = &a->lock;
    return tni_higher(c, &spec, r->made);
}

tn_status tni_grad(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                   uint32_t variable_count, tni_array *const *variables, const tni_backward_options *options,
                   tni_array **out)
{
    const request r = {.count = count,
                       .heads = heads,
                       .head_grads = head_grads,
                       .wanted_count = variable_count,
                       .wanted = variables,
                       .made = out,
                       .retain = options && options->retain,
                       .predict = options && options->predict};
    const bool create = options && options->create;
    tn_status st = TN_OK;

    if (!variable_count)
        return tni_error(TN_E_ARG, "grad needs a variable");
    for (uint32_t i = 0; i < variable_count; i++)
        if (!variables[i]->grad && !variables[i]->grad_entry)
            return tni_error(TN_E_STATE, "variable %u has no attached gradient and was not recorded", i);
    for (uint32_t i = 0; i < variable_count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (variables[k] == variables[i])
                st = tni_error(TN_E_ARG, "variables %u and %u are the same array", k, i);
        out[i] = NULL;
    }
    for (uint32_t i = 0; i < variable_count && !st && !create; i++)
        if (!variables[i]->grad_entry)
            st = tni_array_like(variables[i], "gradient", &out[i]);
    if (!st)
        st = create ? grad_recorded(c, &r) : backward(c, &r);
    for (uint32_t i = 0; st && i < variable_count; i++) {
        tni_array_release(out[i]);
        out[i] = NULL;
    }
    return st;
}
