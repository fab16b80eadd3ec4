/*
 * Continuations: the rest of a net, which is compiled when the first part has told the sizes.
 *
 * The rest is one asynchronous operation on the queue of host callbacks. From the push on it holds the
 * variables of all that the rest touches. When what it reads is there, it compiles the rest (or finds it),
 * gives the outputs their shapes and queues the program as a nest, over variables of its own that stand for
 * those which it holds. The end of the nest completes it. So nobody waits, whatever is pushed meanwhile comes
 * behind it, and a failure of any part of it reaches all that it writes.
 */
#include <string.h>

#include "exec/nest.h"
#include "exec/split.h"

#define OUTPUTS_RECORDED 64u /* bits say which of them a gradient leads to */

typedef struct rest_call {
    tni_context *ctx;
    tni_cached_op *op;
    tni_cached_key key;
    uint64_t draw;
    tni_bound *in, *out;         /* as those outside see them; arrays retained */
    tni_bound *in_own, *out_own; /* with the variables that stand for theirs */
    tni_var *own;                /* those; in the order of their first use */
    tni_array **arrays;          /* of `in` and `out` */
    tni_var **vars;              /* of the operation: reads, then writes */
    tni_bound *parts;            /* of a rest that has two parts again: outputs of these; arrays retained */
    uint32_t in_count, out_count, own_count, read_count, write_count, part_count;
    tni_tape_node *later;      /* stands for it on the tape; NULL: it is not recorded */
    tni_tape_origin *from;     /* per input; what it names is kept by `later` */
    uint8_t *modes;            /* per input: what is done to its gradient */
    uint64_t order, order_end; /* its places on the tape */
    tni_operation *running;
    tni_nest nest;
    struct rest_call *self; /* the payload */
} rest_call;

typedef struct part { /* a program about to be queued */
    tni_launch launch;
    tni_tape_node *node; /* on the tape; NULL: not recorded. One reference */
    uint64_t recorded;   /* bits of its outputs that are */
} part;

static tn_status rest_create(const tni_split_run *p, rest_call **out);
static void rest_destroy(rest_call *r);
static tni_task rest_task(rest_call *r);

/* ---- a program over bound arrays ----------------------------------------------------------------------- */

/* What is known by now becomes the shape of what was pending. */
static tn_status outputs_settle(const tni_program *p, const tni_bound *out)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->output_count && !st; i++) {
        const tn_shape *shape = &p->ports[p->input_count + i].shape;

        if (out[i].array->pending && tn_shape_known(shape))
            st = tni_array_settle(out[i].array, shape->ndim, shape->dim);
    }
    return st;
}

static tn_status launch_fill(const tni_compiled *e, const tni_bound *in, const tni_bound *out, tni_launch *l)
{
    const tni_program *p = e->program;
    tni_array **arrays = tni_calloc(p->port_count + 1u, sizeof(*arrays));
    tni_var **vars = tni_calloc(p->port_count + 1u, sizeof(*vars));

    l->arrays = arrays;
    l->vars = vars;
    if (!arrays || !vars)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->input_count + p->output_count; i++) {
        const tni_bound *b = i < p->input_count ? &in[p->ports[i].index] : &out[i - p->input_count];

        arrays[i] = b->array;
        vars[i] = b->var;
    }
    return TN_OK;
}

static bool any_mode(const uint8_t *modes, uint32_t count)
{
    for (uint32_t i = 0; modes && i < count; i++)
        if (modes[i] != TN_MODE_NONE)
            return true;
    return false;
}

/* Is some array that a gradient is wanted of there twice? */
static bool twins_find(tni_array *const *in, const uint8_t *modes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; modes[i] != TN_MODE_NONE && j < i; j++)
            if (in[j] == in[i])
                return true;
    return false;
}

static tn_status entry_find(tni_cached_op *op, const tni_cached_key *like, tni_array *const *in,
                            const uint8_t *modes, tni_specialization **out)
{
    tni_cached_key k = {.flags = like->flags, .device = like->device, .in = in};

    k.in_count = op->graph->variable_count;
    k.generation = tni_exec_generation(op->ctx);
    k.several = op->placed;
    for (uint32_t i = 0; i < k.in_count; i++)
        k.several |= in[i]->storage->device != k.device;
    if ((k.recorded = any_mode(modes, k.in_count))) {
        k.modes = modes;
        k.twins = twins_find(in, modes, k.in_count);
    }
    return tni_specialization_find(op, &k, out);
}

static void part_drop(const part *t)
{
    tni_frame_release(t->launch.frame);
    tni_free((void *)t->launch.arrays);
    tni_free((void *)t->launch.vars);
    tni_tape_node_release(t->node);
}

typedef struct part_spec {
    const tni_bound *in, *out;
    tni_array *const *arrays; /* of these, in this order */
    const tni_tape_origin *from;
    uint64_t draw, order;
} part_spec;

/* What it made, `part_drop` drops, also on failure. */
static tn_status part_make(tni_compiled *e, const part_spec *s, part *t)
{
    tn_status st;

    t->launch = (tni_launch){.phase = TNI_FORWARD, .draw = s->draw};
    if ((st = outputs_settle(e->program, s->out)) || (st = launch_fill(e, s->in, s->out, &t->launch)) ||
        (st = tni_frame_take(e->pool, e->recorded, &t->launch.frame)) || !e->recorded)
        return st;
    return tni_tape_node_cached(e, t->launch.frame, s->order, s->arrays, s->from,
                                s->arrays + e->graph->variable_count, &t->node, &t->recorded);
}

/* ---- both parts ---------------------------------------------------------------------------------------- */

typedef struct first_lists { /* of the first part */
    tni_bound *in;
    tni_array **arrays; /* of inputs and outputs */
    tni_tape_origin *from;
    uint8_t *modes;
} first_lists;

static void first_gather(const tni_split_run *p, const first_lists *l)
{
    const tni_graph *g = p->split->first->graph;

    for (uint32_t i = 0; i < g->variable_count; i++) {
        const uint32_t at = p->split->first_inputs[i];

        l->in[i] = p->in[at];
        l->arrays[i] = p->in[at].array;
        if (p->from)
            l->from[i] = p->from[at];
        l->modes[i] = p->modes ? p->modes[at] : TN_MODE_NONE;
    }
    for (uint32_t i = 0; i < g->head_count; i++)
        l->arrays[g->variable_count + i] = p->first[i].array;
}

static tn_status first_find(const tni_split_run *p, const first_lists *l, part *t)
{
    tni_cached_op *op = p->split->first;
    const part_spec spec = {.in = l->in,
                            .out = p->first,
                            .arrays = l->arrays,
                            .from = l->from,
                            .draw = p->draw,
                            .order = p->order};
    tni_specialization *entry = NULL;
    tn_status st;

    if (any_mode(l->modes, op->graph->variable_count) && op->graph->head_count > OUTPUTS_RECORDED)
        return tni_error(TN_E_UNSUPPORTED,
                         "%u values of a recorded net are read behind sizes that a run tells, "
                         "at most %u may be",
                         op->graph->head_count, OUTPUTS_RECORDED);
    if ((st = entry_find(op, p->key, l->arrays, l->modes, &entry)))
        return st;
    st = entry->compiled ? part_make(entry->compiled, &spec, t)
                         : tni_error(TN_E_INTERNAL, "the first part of a net has two parts");
    tni_specialization_release(entry);
    return st;
}

static void entries_take(const part *t, uint32_t count, tni_tape_entry **entries)
{
    for (uint32_t i = 0; t->node && i < count; i++)
        if (t->recorded >> i & 1u) {
            entries[i] = &t->node->entries[i];
            tni_tape_node_retain(t->node);
        }
}

static tn_status first_make(const tni_split_run *p, part *t)
{
    const tni_graph *g = p->split->first->graph;
    const uint64_t ins = g->variable_count + 1ull;
    const first_lists l = {.in = tni_calloc(ins, sizeof *l.in),
                           .arrays = tni_calloc(ins + g->head_count, sizeof(*l.arrays)),
                           .from = tni_calloc(ins, sizeof *l.from),
                           .modes = tni_calloc(ins, 1)};
    tn_status st = TN_E_NOMEM;

    if (l.in && l.arrays && l.from && l.modes) {
        first_gather(p, &l);
        if (!(st = first_find(p, &l, t)))
            entries_take(t, g->head_count, p->entries);
    }
    tni_free(l.in);
    tni_free((void *)l.arrays);
    tni_free(l.from);
    tni_free(l.modes);
    return st;
}

tn_status tni_split_queue(const tni_split_run *p)
{
    part first = {.node = NULL};
    tni_launch_group g = {.launches = &first.launch, .count = 1, .last_count = 1};
    rest_call *r = NULL;
    tni_task task;
    tn_status st;

    if (!(st = first_make(p, &first)) && !(st = rest_create(p, &r))) {
        task = rest_task(r);
        g.last = &task;
        if ((st = tni_launch_all(p->split->ctx, &g)))
            rest_destroy(r);
    }
    part_drop(&first);
    return st;
}

/* ---- the rest: making ---------------------------------------------------------------------------------- */

/* Per variable of the rest: does some node change it? */
static void mutated_mark(const tni_graph *g, bool train, uint8_t *mutated)
{
    for (uint32_t n = 0; n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];

        if (!node->def || (node->def->op->flags & TN_OP_MUTATES_TRAINING && !train))
            continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            const tni_gnode *from = &g->nodes[g->entry_node[tni_graph_input(g, node, i)]];

            while (from->def && from->def->op->flags & TN_OP_VIEW)
                from = &g->nodes[g->entry_node[tni_graph_input(g, from, 0)]];
            if (tn_op_mutates(node->def->op, node->input_count, i) && !from->def)
                mutated[from->variable] = 1;
        }
    }
}

/* The variable that stands for that of `b`: equal ones have one. */
static tni_var *own_of(rest_call *r, const tni_bound *all, uint32_t at)
{
    for (uint32_t k = 0; k < at; k++)
        if (all[k].var == all[at].var)
            return r->in_own[k].var;
    return &r->own[r->own_count++];
}

static tn_status vars_make(rest_call *r)
{
    const uint32_t all = r->in_count + r->out_count;
    uint8_t *mutated = tni_calloc(all + 1u, 1);

    if (!mutated)
        return TN_E_NOMEM;
    mutated_mark(r->op->graph, r->key.flags & TN_NODE_TRAIN, mutated);
    memset(mutated + r->in_count, 1, r->out_count);
    for (uint32_t i = 0; i < all; i++) {
        r->in_own[i] = (tni_bound){r->in[i].array, own_of(r, r->in, i)};
        if (!mutated[i])
            r->vars[r->read_count++] = r->in[i].var;
    }
    for (uint32_t i = 0; i < all; i++)
        if (mutated[i])
            r->vars[r->read_count + r->write_count++] = r->in[i].var;
    if (r->later)
        r->vars[r->read_count + r->write_count++] = tni_tape_later_var(r->later);
    tni_free(mutated);
    return TN_OK;
}

static void rest_destroy(rest_call *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->in && i < r->in_count + r->out_count; i++)
        tni_array_release(r->in[i].array);
    for (uint32_t i = 0; i < r->part_count; i++)
        tni_array_release(r->parts[i].array);
    for (uint32_t i = 0; i < r->own_count; i++)
        tni_var_fini(&r->own[i]);
    tni_nest_fini(&r->nest);
    tni_cached_op_release(r->op);
    tni_tape_node_release(r->later);
    tni_free(r->in);
    tni_free(r->parts);
    tni_free(r->own);
    tni_free((void *)r->arrays);
    tni_free(r->from);
    tni_free(r->modes);
    tni_free(r);
}

static tn_status rest_alloc(const tni_split_run *p, rest_call **out)
{
    const tni_graph *g = p->split->rest->graph;
    const uint32_t all = g->variable_count + g->head_count;
    rest_call *r = tni_zalloc(sizeof *r);

    if (!r)
        return TN_E_NOMEM;
    tni_nest_init(&r->nest, p->split->ctx);
    r->ctx = p->split->ctx;
    tni_cached_op_retain(r->op = p->split->rest);
    r->key = (tni_cached_key){.flags = p->key->flags, .device = p->key->device};
    r->draw = p->draw;
    r->order = p->order + 1;
    r->order_end = p->order_end;
    r->in = tni_calloc(2ull * all + 1, sizeof *r->in);
    r->own = tni_calloc(all + 1u, sizeof *r->own);
    r->arrays = tni_calloc(2ull * all + 2, sizeof(*r->arrays));
    r->from = tni_calloc(all + 1u, sizeof *r->from);
    r->modes = tni_calloc(all + 1u, 1);
    if (!r->in || !r->own || !r->arrays || !r->from || !r->modes) {
        rest_destroy(r);
        return TN_E_NOMEM;
    }
    r->in_count = g->variable_count;
    r->out_count = g->head_count;
    r->out = r->in + r->in_count;
    r->in_own = r->in + all;
    r->out_own = r->in_own + r->in_count;
    r->vars = (tni_var **)(r->arrays + all);
    *out = r;
    return TN_OK;
}

static void arrays_bind(rest_call *r, const tni_split_run *p)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const uint32_t from = i < r->in_count ? p->split->rest_inputs[i] : 0, first = from & ~TNI_OF_FIRST;

        if (i >= r->in_count) {
            r->in[i] = p->rest[i - r->in_count];
        } else if (from & TNI_OF_FIRST) {
            r->in[i] = p->first[first];
            r->from[i].entry = p->entries[first];
            r->modes[i] = p->entries[first] ? TN_MODE_WRITE : TN_MODE_NONE;
        } else {
            r->in[i] = p->in[from];
            if (p->from)
                r->from[i] = p->from[from];
            r->modes[i] = p->modes ? p->modes[from] : TN_MODE_NONE;
        }
        tni_array_retain(r->arrays[i] = r->in[i].array);
    }
}

/* What stands for it on the tape until its program is known. */
static tn_status tape_hold(rest_call *r, const tni_split_run *p)
{
    tni_tape_entry **entries = p->entries + p->split->first->graph->head_count;
    uint64_t recorded = 0;
    tn_status st;

    for (uint32_t i = 0; i < r->in_count; i++)
        recorded |= r->modes[i] != TN_MODE_NONE ? p->split->rest_leads[i] : 0;
    if (!recorded) { /* no gradient leads through it: it runs as if nothing were recorded */
        memset(r->modes, TN_MODE_NONE, r->in_count);
        return TN_OK;
    }
    if ((st = tni_tape_defer(r->ctx, r->order, r->in_count, r->from, r->out_count, &r->later)))
        return st;
    for (uint32_t i = 0; i < r->out_count; i++)
        if (recorded >> i & 1u) {
            entries[i] = &r->later->entries[i];
            tni_tape_node_retain(r->later);
        }
    return TN_OK;
}

static tn_status rest_create(const tni_split_run *p, rest_call **out)
{
    rest_call *r = NULL;
    tn_status st = rest_alloc(p, &r);

    if (st)
        return st;
    arrays_bind(r, p);
    if ((st = tape_hold(r, p)) || (st = vars_make(r)))
        rest_destroy(r);
    else
        *out = r;
    return st;
}

/* ---- the rest: running --------------------------------------------------------------------------------- */

static void nest_done(void *arg, tn_status status, const tn_err *err)
{
    const rest_call *r = arg;

    tni_engine_complete(r->running, status, err); /* it lives until its run has returned, too */
}

static void entries_release(tni_tape_entry **entries, uint32_t count)
{
    for (uint32_t i = 0; entries && i < count; i++)
        tni_tape_entry_release(entries[i]);
    tni_free((void *)entries);
}

/* From now on a backward goes through what stands there: nobody needs to wait for the rest to run. */
static void tape_settle(rest_call *r, tni_run *run, tni_tape_entry **entries)
{
    tni_tape_settle(r->later, entries);
    tni_engine_release_at(run, r->read_count + r->write_count - 1);
}

static tn_status program_queue(rest_call *r, tni_compiled *e, tni_run *run)
{
    const part_spec spec = {.in = r->in_own,
                            .out = r->out_own,
                            .arrays = r->arrays,
                            .from = r->from,
                            .draw = r->draw,
                            .order = r->order};
    tni_tape_entry **entries = r->later ? tni_calloc(r->out_count + 1u, sizeof(*entries)) : NULL;
    part t = {.node = NULL};
    tn_status st = r->later && !entries ? TN_E_NOMEM : part_make(e, &spec, &t);

    if (entries)
        entries_take(&t, r->out_count, entries);
    if (st) {
        part_drop(&t);
    } else {
        tni_tape_node_release(t.node); /* the entries hold it */
        if (!(st = tni_nest_add(&r->nest, &t.launch)))
            st = tni_nest_push(&r->nest, r->key.device, "program");
    }
    if (!st && r->later)
        tape_settle(r, run, entries);
    else
        entries_release(entries, r->out_count);
    return st;
}

/* A rest of two parts: its outputs are theirs, and what else the first one gives is made here. */
static tn_status parts_bind(rest_call *r, const tni_split *s)
{
    const uint32_t firsts = s->first->graph->head_count;
    tn_status st = TN_OK;

    for (uint32_t h = 0; h < s->head_count; h++) {
        const uint32_t at = s->heads[h];
        tni_bound *b = &r->parts[at & TNI_OF_FIRST ? at & ~TNI_OF_FIRST : firsts + at];

        *b = r->out_own[h];
        tni_array_retain(b->array);
    }
    for (uint32_t i = 0; i < r->part_count && !st; i++) {
        tni_bound *b = &r->parts[i];

        if (!b->array && !(st = tni_array_spec_make(r->ctx, &s->specs[i], r->key.device, &b->array)))
            st = tni_nest_hold(&r->nest, b->var = tni_array_var(b->array));
    }
    return st;
}

static tn_status parts_nest(rest_call *r, const tni_split_run *p)
{
    part first = {.node = NULL};
    rest_call *inner = NULL;
    tni_task task;
    tn_status st;

    if ((st = first_make(p, &first)) || (st = rest_create(p, &inner))) {
        part_drop(&first);
        return st;
    }
    task = rest_task(inner);
    r->nest.task = &task;
    tni_tape_node_release(first.node);
    if ((st = tni_nest_add(&r->nest, &first.launch)) ||
        (st = tni_nest_push(&r->nest, r->key.device, "program")))
        rest_destroy(inner);
    return st;
}

/* Entries of the outputs of both parts become those of the outputs of the whole. */
static void entries_join(const tni_split *s, tni_tape_entry *const *entries, tni_tape_entry **whole)
{
    for (uint32_t h = 0; h < s->head_count; h++) {
        const uint32_t at = s->heads[h];

        whole[h] = entries[at & TNI_OF_FIRST ? at & ~TNI_OF_FIRST : s->first->graph->head_count + at];
        if (whole[h])
            tni_tape_node_retain(whole[h]->node);
    }
}

static tn_status parts_run(rest_call *r, tni_split *s, tni_run *run)
{
    const uint32_t firsts = s->first->graph->head_count, all = firsts + s->rest->graph->head_count;
    tni_tape_entry **whole = tni_calloc(s->head_count + 1u, sizeof(*whole));
    tni_split_run p = {.split = s,
                       .key = &r->key,
                       .draw = r->draw,
                       .in = r->in_own,
                       .from = r->from,
                       .modes = r->modes,
                       .order = r->order,
                       .order_end = r->order_end,
                       .entries = tni_calloc(all + 1u, sizeof(*p.entries))};
    tn_status st = TN_E_NOMEM;

    if (r->later && r->order + 1 >= r->order_end)
        st =
            tni_error(TN_E_UNSUPPORTED, "sizes in a recorded net depend on each other, more than %u in a row",
                      TNI_TAPE_LEVELS);
    else if ((r->parts = tni_calloc(all + 1u, sizeof *r->parts)) && whole && p.entries) {
        r->part_count = all;
        p.first = r->parts;
        p.rest = r->parts + firsts;
        if (!(st = parts_bind(r, s)))
            st = parts_nest(r, &p);
    }
    if (!st && r->later) {
        entries_join(s, p.entries, whole);
        tape_settle(r, run, whole);
        whole = NULL;
    }
    tni_free((void *)whole);
    entries_release(p.entries, all);
    return st;
}

static tn_status rest_run(void *payload, tni_run *run)
{
    rest_call *r = *(rest_call **)payload;
    tni_specialization *entry = NULL;
    tn_status st;

    r->running = run->op;
    r->nest.done = nest_done;
    r->nest.arg = r;
    for (uint32_t i = 0; i < r->own_count; i++)
        if ((st = tni_nest_hold(&r->nest, &r->own[i])))
            return st;
    if ((st = entry_find(r->op, &r->key, r->arrays, r->modes, &entry)))
        return st;
    atomic_fetch_add_explicit(&r->ctx->exec->cuts, 1, memory_order_relaxed);
    st = entry->compiled ? program_queue(r, entry->compiled, run) : parts_run(r, entry->split, run);
    tni_specialization_release(entry);
    return st ? st : TN_PENDING;
}

static void rest_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    rest_destroy(*(rest_call **)payload);
}

static tni_task rest_task(rest_call *r)
{
    r->self = r;
    return (tni_task){.run = rest_run,
                      .done = rest_done,
                      .payload = &r->self,
                      .payload_bytes = sizeof r->self,
                      .flags = TNI_TASK_HOST_CALL | TNI_TASK_ASYNC,
                      .reads = r->vars,
                      .read_count = r->read_count,
                      .writes = r->vars + r->read_count,
                      .write_count = r->write_count,
                      .name = "program"};
}
