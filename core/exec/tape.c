/*
 * The tape: what was recorded, as nodes that arrays point into.
 *
 * A node keeps the arrays that its gradient reads and nothing else: inputs as they are, outputs as detached
 * views (an output points to its node, so the node must not point back). A leaf is an array with an attached
 * gradient and no producer. An entry is part of its node and counts as a reference on it. Chains are freed
 * without recursion.
 */
#include "exec/internal.h"

#include <string.h>

struct tni_tape_later {
    tni_context *ctx;
    tni_var var;
    atomic_bool settled;
};

static inline void drop(tni_array **a)
{
    if (*a)
        tni_array_release(*a);
    *a = NULL;
}

static void node_drop_arrays(tni_tape_node *n)
{
    for (uint32_t i = 0; i < n->call.in_count; i++)
        drop(&n->call.in[i]);
    for (uint32_t i = 0; i < n->call.out_count; i++)
        drop(&n->call.out[i]);
    drop(&n->call.saved);
}

/* The node stays as a mark that a backward pass went through. */
void tni_tape_consume(tni_tape_node *n)
{
    if (n->dropped)
        return;
    n->dropped = true;
    node_drop_arrays(n);
    if (n->call.frame)
        tni_frame_release(n->call.frame);
    n->call.frame = NULL;
    if (n->call.function)
        tni_function_record_drop(n->call.function);
}

static void later_free(tni_tape_node *n)
{
    if (!n->later)
        return;
    if (!tni_tape_settled(n))
        atomic_fetch_sub(&n->later->ctx->exec->unsettled, 1);
    tni_var_fini(&n->later->var);
    tni_free(n->later);
}

static void node_free(tni_tape_node *n)
{
    tni_tape_consume(n);
    later_free(n);
    for (uint32_t i = 0; i < n->call.in_count; i++) {
        drop(&n->call.leaves[i]);
        tni_tape_entry_release(n->in_entries[i]);
    }
    if (!n->signature || n->call.attrs != n->signature->attrs)
        tni_attrs_release(n->call.attrs);
    tni_signature_release(n->signature);
    tni_compiled_release(n->call.cached);
    tni_function_record_free(n->call.function);
    tni_tape_unrolled_free(n->unrolled, n->call.out_count);
    tni_keep_give(n->keep, n);
}

/* Freeing a node drops arrays and entries, which may free further nodes: those are listed and freed in turn,
 * so that the stack does not grow with the length of the tape. */
void tni_tape_node_release(tni_tape_node *n)
{
    static TN_THREAD_LOCAL_FAST tni_tape_node *list;
    static TN_THREAD_LOCAL_FAST bool freeing;

    if (!n || !tni_ref_release(&n->refs))
        return;
    n->free_next = list;
    list = n;
    if (freeing)
        return;
    freeing = true;
    while ((n = list) != NULL) {
        list = n->free_next;
        node_free(n);
    }
    freeing = false;
}

void tni_tape_unrolled_free(tni_tape_entry **unrolled, uint32_t count)
{
    for (uint32_t i = 0; unrolled && i < count; i++)
        tni_tape_entry_release(unrolled[i]);
    tni_free(unrolled);
}

tni_tape_entry *tni_tape_resolve_on(tni_tape_entry *e)
{
    while (e && (e->node->later ? tni_tape_settled(e->node) : e->node->unrolled != NULL))
        e = e->node->unrolled[e->index];
    return e;
}

void tni_tape_node_retain(tni_tape_node *n)
{
    tni_ref_retain(&n->refs);
}

void tni_tape_entry_release(tni_tape_entry *e)
{
    if (e)
        tni_tape_node_release(e->node);
}

void tni_array_forget(tni_array *a)
{
    tni_tape_entry *e = a->grad_entry;

    a->grad_entry = NULL;
    tni_tape_entry_release(e);
}

static bool is_leaf(const tni_array *a)
{
    return a->grad && !a->grad_entry && a->grad_req != TN_MODE_NONE;
}

/* ---- what others ask of a call ------------------------------------------------------------------------ */

const char *tni_tape_name(const tni_tape_call *n)
{
    if (n->attrs)
        return n->attrs->def->op->name;
    return n->function ? n->function->function->name : "this net";
}

static const tni_signature *signature_of(const tni_tape_call *n)
{
    return tni_tape_node_of(n)->signature;
}

tni_tape_spec tni_tape_input(const tni_tape_call *n, uint32_t i)
{
    const tni_operand_key *k = &signature_of(n)->in[i];

    return (tni_tape_spec){k->device, k->ndim, k->dtype, k->shape};
}

tni_tape_spec tni_tape_output(const tni_tape_call *n, uint32_t i)
{
    const tni_signature *s = signature_of(n);

    if (n->function) {
        const tni_function_spec *k = &n->function->out[i];

        return (tni_tape_spec){k->device, k->shape.ndim, k->dtype, k->shape.dim};
    }
    if (n->cached) {
        const tni_port *p = &n->cached->program->ports[n->cached->program->input_count + i];

        return (tni_tape_spec){p->device, p->shape.ndim, p->dtype, p->shape.dim};
    }
    return (tni_tape_spec){s->device, s->out_shape[i].ndim, s->out_dtype[i], s->out_shape[i].dim};
}

uint32_t tni_tape_flags(const tni_tape_call *n)
{
    return signature_of(n)->flags;
}

bool tni_tape_alike(const tni_tape_call *a, const tni_tape_call *b)
{
    const tni_signature *x = signature_of(a), *y = signature_of(b);

    return x && y && x->device == y->device && !((x->flags ^ y->flags) & (TN_NODE_TRAIN | TN_NODE_NP_SHAPE));
}

/* A backward may be told of its forward, unless the block that this saved is not there. */
tni_prepared *tni_tape_prepared(const tni_tape_call *n)
{
    tni_prepared *p = signature_of(n)->prepared;

    return signature_of(n)->sparse || (p && p->plan.saved_bytes && !n->saved) ? NULL : p;
}

tn_status tni_tape_refusal(const tni_tape_call *n)
{
    return tni_compiled_refusal(n->cached, tni_tape_node_of(n)->asked);
}

/* ---- recording ---------------------------------------------------------------------------------------- */

bool tni_tape_tracks(uint32_t in_count, tni_array *const *in)
{
    for (uint32_t i = 0; i < in_count; i++)
        if (in[i]->grad_entry || is_leaf(in[i]))
            return true;
    return false;
}

uint64_t tni_tape_places(tni_context *c, uint32_t count)
{
    return atomic_fetch_add_explicit(&c->exec->tape_order, count, memory_order_relaxed) + 1;
}

/* One block: the node, its input tables, its entries. */
static tni_tape_node *node_alloc(tni_context *c, uint64_t order, uint32_t in_count, uint32_t out_count)
{
    const uint64_t bytes = sizeof(tni_tape_node) + in_count * 3ull * sizeof(void *) +
                           out_count * (sizeof(void *) + sizeof(tni_tape_entry));
    tni_tape_node *n = tni_keep_zeroed(c->space->keep, 1, bytes);

    if (!n)
        return NULL;
    n->keep = c->space->keep;
    tni_ref_init(&n->refs);
    n->order = order;
    n->call.in_count = in_count;
    n->call.out_count = out_count;
    n->in_entries = (tni_tape_entry **)(n + 1);
    n->call.in = (tni_array **)(n->in_entries + in_count);
    n->call.leaves = n->call.in + in_count;
    n->call.out = n->call.leaves + in_count;
    n->entries = (tni_tape_entry *)(n->call.out + out_count);
    for (uint32_t i = 0; i < out_count; i++)
        n->entries[i] = (tni_tape_entry){.node = n, .index = i};
    return n;
}

/* [takes] `sig`, which holds its own attributes. */
static void operator_take(tni_tape_node *n, tni_signature *sig, tni_attrs *attrs)
{
    n->signature = sig;
    n->call.attrs = attrs == sig->attrs ? attrs : tni_attrs_retain(attrs);
}

tn_status tni_tape_node_at(tni_context *c, const tni_tape_node *of, uint32_t place, tni_signature *sig,
                           tni_attrs *attrs, tni_tape_node **out)
{
    tni_tape_node *n = node_alloc(c, of->order, sig->in_count, sig->out_count);

    if (!n)
        return TN_E_NOMEM;
    n->place = place;
    tni_signature_retain(sig);
    operator_take(n, sig, attrs);
    *out = n;
    return TN_OK;
}

tni_tape_origin tni_tape_origin_of(const tni_array *a)
{
    return (tni_tape_origin){a->grad_entry, is_leaf(a) ? (tni_array *)a : NULL};
}

static void source_take(tni_tape_node *n, uint32_t i, const tni_tape_origin *from)
{
    if ((n->in_entries[i] = from->entry))
        tni_ref_retain(&from->entry->node->refs);
    if ((n->call.leaves[i] = from->leaf))
        tni_array_retain(from->leaf);
}

/* `from` NULL: as the arrays say. */
static void node_inputs(tni_tape_node *n, tni_array *const *in, const tni_tape_origin *from, uint64_t keep)
{
    for (uint32_t i = 0; i < n->call.in_count; i++) {
        const tni_tape_origin source = from ? from[i] : tni_tape_origin_of(in[i]);

        source_take(n, i, &source);
        if (i >= 64 || keep >> i & 1u) {
            n->call.in[i] = in[i];
            tni_array_retain(in[i]);
        }
    }
}

void tni_tape_attach(tni_array *a, tni_tape_entry *e)
{
    tni_array_forget(a);
    tni_ref_retain(&e->node->refs);
    a->grad_entry = e;
}

static tn_status outputs_keep(tni_tape_node *n, tni_array *const *out, uint64_t keep)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < n->call.out_count && !st; i++)
        if (i >= 64 || keep >> i & 1u)
            st = tni_array_detach(out[i], &n->call.out[i]);
    return st;
}

/* All of them: their entries take over the one reference that there is. */
static void outputs_attach(tni_tape_node *n, tni_array *const *out)
{
    if (TN_UNLIKELY(!n->call.out_count)) {
        tni_tape_node_release(n);
        return;
    }
    atomic_store_explicit(&n->refs.count, n->call.out_count, memory_order_relaxed);
    for (uint32_t i = 0; i < n->call.out_count; i++) {
        if (TN_UNLIKELY(out[i]->grad_entry != NULL))
            tni_array_forget(out[i]);
        out[i]->grad_entry = &n->entries[i];
    }
}

/* `recorded`: bits of the outputs that depend on what is recorded. */
static tn_status node_outputs(tni_tape_node *n, tni_array *const *out, uint64_t keep, uint64_t recorded)
{
    const tn_status st = outputs_keep(n, out, keep);

    for (uint32_t i = 0; i < n->call.out_count && !st; i++)
        if (i < 64 && !(recorded >> i & 1u))
            tni_array_forget(out[i]);
        else
            tni_tape_attach(out[i], &n->entries[i]);
    return st;
}

tn_status tni_tape_record(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, tni_array *saved)
{
    tni_tape_node *n;
    tn_status st;

    if (!tni_tape_tracks(sig->in_count, in)) {
        tni_signature_release(sig);
        return TN_OK;
    }
    if (!(n = node_alloc(c, tni_tape_places(c, 1), sig->in_count, sig->out_count)))
        return TN_E_NOMEM;
    node_inputs(n, in, NULL, sig->need_in[0]);
    if ((st = outputs_keep(n, out, sig->need_out[0]))) {
        tni_tape_node_release(n);
        return st;
    }
    n->call.saved = saved;
    if (saved)
        tni_array_retain(saved);
    operator_take(n, sig, attrs);
    outputs_attach(n, out);
    return TN_OK;
}

tn_status tni_tape_record_function(tni_context *c, tni_function_record *call, uint32_t in_count,
                                   tni_array *const *in, tni_array *const *out)
{
    tni_tape_node *n = node_alloc(c, tni_tape_places(c, 1), in_count, call->out_count);
    tn_status st;

    if (!n) {
        tni_function_record_free(call);
        return TN_E_NOMEM;
    }
    n->call.function = call;
    node_inputs(n, in, NULL, 0);
    st = node_outputs(n, out, 0, UINT64_MAX);
    tni_tape_node_release(n);
    return st;
}

/* Bits of the arrays at ports `first` … that the backward reads; those beyond 63 stay all. */
static uint64_t read_later(const tni_program *p, uint32_t first, uint32_t count, bool by_index)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < count; i++) {
        const tni_port *port = &p->ports[first + i];

        if (port->read >> TNI_BACKWARD & 1u && (by_index ? port->index : i) < 64)
            bits |= (uint64_t)1 << (by_index ? port->index : i);
    }
    return bits;
}

static uint64_t recorded_of(const tni_compiled *e)
{
    uint64_t recorded = 0;

    for (uint32_t i = 0; i < e->graph->variable_count; i++)
        recorded |= e->modes[i] != TN_MODE_NONE ? e->leads[i] : 0;
    return recorded;
}

static tni_tape_node *cached_alloc(tni_compiled *e, uint64_t order, tni_array *const *in,
                                   const tni_tape_origin *from)
{
    const tni_program *p = e->program;
    tni_tape_node *n = node_alloc(e->ctx, order, e->graph->variable_count, p->output_count);

    if (!n)
        return NULL;
    n->call.cached = e;
    tni_compiled_retain(e);
    node_inputs(n, in, from, read_later(p, 0, p->input_count, true));
    return n;
}

tn_status tni_tape_record_cached(tni_compiled *compiled, tni_frame *frame, tni_array *const *in,
                                 tni_array *const *out)
{
    const tni_program *p = compiled->program;
    tni_tape_node *n = cached_alloc(compiled, tni_tape_places(compiled->ctx, 1), in, NULL);
    tn_status st;

    if (!n)
        return TN_E_NOMEM;
    st = node_outputs(n, out, read_later(p, p->input_count, p->output_count, false), recorded_of(compiled));
    if (!st)
        tni_frame_retain(n->call.frame = frame);
    tni_tape_node_release(n);
    return st;
}

/* ---- nodes whose program comes later ------------------------------------------------------------------- */

tn_status tni_tape_node_cached(tni_compiled *e, tni_frame *f, uint64_t order, tni_array *const *in,
                               const tni_tape_origin *from, tni_array *const *out, tni_tape_node **node,
                               uint64_t *recorded)
{
    const tni_program *p = e->program;
    tni_tape_node *n = cached_alloc(e, order, in, from);
    tn_status st = n ? TN_OK : TN_E_NOMEM;

    if (!st && (st = outputs_keep(n, out, read_later(p, p->input_count, p->output_count, false)))) {
        tni_tape_node_release(n);
        return st;
    }
    if (st)
        return st;
    tni_frame_retain(n->call.frame = f);
    *recorded = recorded_of(e);
    *node = n;
    return TN_OK;
}

tn_status tni_tape_defer(tni_context *c, uint64_t order, uint32_t in_count, const tni_tape_origin *from,
                         uint32_t out_count, tni_tape_node **out)
{
    tni_tape_node *n = node_alloc(c, order, in_count, out_count);

    if (!n || !(n->later = tni_zalloc(sizeof *n->later))) {
        tni_tape_node_release(n);
        return TN_E_NOMEM;
    }
    n->later->ctx = c;
    tni_var_init(&n->later->var);
    atomic_fetch_add(&c->exec->unsettled, 1);
    for (uint32_t i = 0; i < in_count; i++)
        source_take(n, i, &from[i]);
    *out = n;
    return TN_OK;
}

void tni_tape_settle(tni_tape_node *later, tni_tape_entry **unrolled)
{
    later->unrolled = unrolled;
    atomic_store_explicit(&later->later->settled, true, memory_order_release);
    atomic_fetch_sub(&later->later->ctx->exec->unsettled, 1);
}

bool tni_tape_settled(const tni_tape_node *n)
{
    return !n->later || atomic_load_explicit(&n->later->settled, memory_order_acquire);
}

tni_var *tni_tape_later_var(tni_tape_node *later)
{
    return &later->later->var;
}
