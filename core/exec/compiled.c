/*
 * Compiled graphs. The forward of a recorded call and its default backward (gradients arrive at all
 * differentiable heads, all recorded inputs want one) are one program. Any other backward is a variant: a
 * program of its own over the same kept values. The forward's plan never depends on a variant.
 */
#include <string.h>

#include "exec/compiled.h"
#include "exec/internal.h"

struct tni_backward_variant {
    tni_backward_variant *next;
    uint8_t *heads, *modes;
    bool predict; /* and the forward trained */
    tni_program *program;
    tni_frame_pool *pool;
};

static void variant_destroy(tni_backward_variant *v)
{
    if (!v)
        return;
    tni_frame_pool_close(v->pool);
    tni_program_release(v->program);
    tni_free(v);
}

void tni_compiled_retain(tni_compiled *e)
{
    tni_ref_retain(&e->refs);
}

void tni_compiled_release(tni_compiled *e)
{
    if (!e || !tni_ref_release(&e->refs))
        return;
    while (e->variants) {
        tni_backward_variant *next = e->variants->next;

        variant_destroy(e->variants);
        e->variants = next;
    }
    tni_frame_pool_close(e->values_pool);
    tni_program_release(e->values);
    tni_frame_pool_close(e->pool);
    tni_program_release(e->program);
    tni_mutex_fini(&e->lock);
    for (uint32_t h = 0; e->refused && h < e->graph->head_count; h++)
        tni_free(e->refused[h]);
    tni_free(e->refused);
    tni_free(e->no_gradient);
    tni_graph_destroy(e->graph);
    tni_free(e);
}

/* ---- a graph with its gradient --------------------------------------------------------------------- */

typedef struct joint { /* the lists that a gradient is made from and into */
    tni_graph *graph;
    uint32_t *lists;
    uint32_t *heads, *which, *head_vars; /* per head that a gradient arrives at; which: its number */
    uint32_t *wanted, *grads, *index;    /* per gradient; index: its variable */
    uint32_t *olds;                      /* per gradient: the variable node of its old value; TNI_NONE */
    uint32_t *head_of;                   /* per variable of the joint graph: as in tni_program_spec */
    uint8_t *modes, *adds;               /* per gradient */
    tni_device **devices;                /* per gradient: of its variable */
    uint32_t head_count, wanted_count, forward_nodes;
} joint;

static void joint_fini(joint *j)
{
    tni_free(j->lists);
    tni_free(j->devices);
    tni_graph_destroy(j->graph);
}

static tn_status joint_init(joint *j, const tni_graph *g)
{
    const uint64_t heads = g->head_count + 1ull, variables = g->variable_count + 1ull;

    *j = (joint){.forward_nodes = g->node_count};
    if (!(j->lists = tni_calloc(4 * heads + 8 * variables, sizeof *j->lists)) ||
        !(j->devices = tni_calloc(variables, sizeof(*j->devices))))
        return TN_E_NOMEM;
    j->heads = j->lists;
    j->which = j->heads + heads;
    j->head_vars = j->which + heads;
    j->wanted = j->head_vars + heads;
    j->grads = j->wanted + variables;
    j->index = j->grads + variables;
    j->olds = j->index + variables;
    j->head_of = j->olds + variables;
    j->modes = (uint8_t *)(j->head_of + 2 * variables + heads);
    j->adds = j->modes + variables;
    memset(j->olds, 0xff, variables * sizeof *j->olds);
    return tni_graph_copy(g, &j->graph);
}

/* Appends the backward nodes that `k` asks for. */
static tn_status joint_make(joint *j, const tni_backward_key *k)
{
    tni_graph *g = j->graph;
    const uint32_t variables = g->variable_count;
    tni_gradient_spec spec = {.heads = j->heads, .wanted = j->wanted, .adds = j->adds, .olds = j->olds};
    tn_status st;

    for (uint32_t h = 0; h < g->head_count; h++)
        if (k->heads[h]) {
            j->which[j->head_count] = h;
            j->heads[j->head_count++] = g->heads[h];
        }
    for (uint32_t v = 0; v < variables; v++)
        if (k->modes[v] != TN_MODE_NONE) {
            j->index[j->wanted_count] = v;
            j->devices[j->wanted_count] = g->nodes[g->variables[v]].device;
            j->modes[j->wanted_count] = k->modes[v];
            j->adds[j->wanted_count] = k->modes[v] == TN_MODE_ADD;
            j->wanted[j->wanted_count++] = g->variables[v];
        }
    spec.head_count = j->head_count;
    spec.wanted_count = j->wanted_count;
    if ((st = tni_graph_gradient(g, &spec, j->head_vars, j->grads)))
        return st;
    for (uint32_t i = 0; i < j->head_count; i++)
        if (j->head_vars[i] != TNI_NONE)
            j->head_of[g->nodes[j->head_vars[i]].variable] = j->which[i];
    for (uint32_t i = 0; i < j->wanted_count; i++)
        if (j->olds[i] != TNI_NONE) { /* the sum begins with it, so the port is written */
            j->head_of[g->nodes[j->olds[i]].variable] = i;
            j->modes[i] = TN_MODE_WRITE;
        }
    return TN_OK;
}

/* A program of the joint graph, which it takes: whole, or the backward part over what `lender` keeps. */
static tn_status joint_compile(const tni_compiled *e, joint *j, const tni_program *lender, bool predict,
                               tni_program **out)
{
    tni_program_spec spec = {.graph = j->graph,
                             .device = e->device,
                             .threads = tni_exec_threads(e->ctx),
                             .flags = e->flags,
                             .first_node = lender ? j->forward_nodes : 0,
                             .backward_node = j->forward_nodes,
                             .head_of = j->head_of,
                             .gradient_count = j->wanted_count,
                             .gradients = j->grads,
                             .gradient_index = j->index,
                             .gradient_modes = j->modes,
                             .gradient_devices = j->devices,
                             .lender = lender,
                             .bulk = {e->bulk[0], e->bulk[1]}};
    tn_status st;

    if (!lender)
        spec.flags |= TN_NODE_RECORDED;
    if (predict)
        spec.flags &= (uint16_t)~TN_NODE_TRAIN;
    j->graph = NULL; /* also on failure */
    if (!(st = tni_program_create(e->ctx->selector, &spec, out)))
        tni_exec_program_made(e->ctx);
    return st;
}

static tn_status backward_compile(const tni_compiled *e, const tni_backward_key *k, const tni_program *lender,
                                  tni_program **out)
{
    joint j;
    tn_status st = joint_init(&j, e->graph);

    if (!st)
        tni_graph_mirror(j.graph, tni_option_bool(e->ctx->options, "compile.mirror"));
    if (!st && !(st = joint_make(&j, k)) && !(st = tni_graph_infer(j.graph, false)))
        st = joint_compile(e, &j, lender, lender && k->predict, out);
    joint_fini(&j);
    return st;
}

static tn_status pool_create(const tni_compiled *e, tni_program *p, tni_frame_pool **out)
{
    const tn_status st = tni_frame_pool_create(e->ctx, p, out);

    if (!st && e->keeps)
        tni_frame_pool_keep(*out);
    return st;
}

/* ---- making ---------------------------------------------------------------------------------------- */

static tn_status forward_compile(const tni_compiled *e, const uint8_t *constants, tni_program **out)
{
    tni_program_spec spec = {.device = e->device,
                             .constants = constants,
                             .threads = tni_exec_threads(e->ctx),
                             .flags = e->flags,
                             .backward_node = e->graph->node_count,
                             .bulk = {e->bulk[0], e->bulk[1]}};
    tn_status st;

    if (!(st = tni_graph_copy(e->graph, &spec.graph)) &&
        !(st = tni_program_create(e->ctx->selector, &spec, out)))
        tni_exec_program_made(e->ctx);
    return st;
}

tn_status tni_graph_leads(const tni_graph *g, uint64_t *leads)
{
    uint64_t *of_node = tni_calloc(g->node_count + 1u, sizeof *of_node);

    if (!of_node)
        return TN_E_NOMEM;
    for (uint32_t h = 0; h < g->head_count && h < 64; h++)
        of_node[g->entry_node[g->heads[h]]] |= (uint64_t)1 << h;
    for (uint32_t n = g->node_count; n-- > 0;)
        for (uint32_t i = 0; i < g->nodes[n].input_count; i++)
            of_node[g->entry_node[tni_graph_input(g, &g->nodes[n], i)]] |= of_node[n];
    for (uint32_t v = 0; v < g->variable_count; v++)
        leads[v] = of_node[g->variables[v]];
    tni_free(of_node);
    return TN_OK;
}

/* Does a gradient of head `h` reach any of the wanted variables? */
static tn_status head_reaches(const tni_compiled *e, uint32_t h, uint8_t *one, bool *reaches)
{
    joint j;
    tn_status st = joint_init(&j, e->graph);

    one[h] = 1;
    if (!st)
        st = joint_make(&j, &(tni_backward_key){.heads = one, .modes = e->modes});
    for (uint32_t i = 0; i < j.wanted_count && !st; i++)
        *reaches |= j.grads[i] != TNI_NONE;
    one[h] = 0;
    joint_fini(&j);
    return st;
}

/* Every head of a floating type; of others, such as labels that were found,
 * those that a gradient leads from. */
static tn_status default_heads(const tni_compiled *e)
{
    uint8_t *one = tni_calloc(e->graph->head_count + 1u, 1);
    tn_status st = one ? TN_OK : TN_E_NOMEM;

    for (uint32_t h = 0; h < e->graph->head_count && !st; h++) {
        bool reaches = tni_dtype_is_float(e->graph->dtypes[e->graph->heads[h]]);

        if (!reaches && (st = head_reaches(e, h, one, &reaches)) != TN_E_NOMEM)
            st = TN_OK; /* whoever asks there is told */
        e->heads[h] = reaches;
    }
    tni_free(one);
    return st;
}

/* This thread's error, kept. */
static tn_status refusal_keep(tn_err **out)
{
    if (!(*out = tni_alloc(sizeof **out)))
        return TN_E_NOMEM;
    tni_error_get(*out);
    return TN_OK;
}

/* Heads whose backward is refused take no part in the default one; whoever asks there is told. */
static tn_status heads_choose(tni_compiled *e, bool *any)
{
    uint8_t *one = tni_calloc(e->graph->head_count + 1u, 1);
    tn_status st = TN_OK;

    e->refused = tni_calloc(e->graph->head_count + 1u, sizeof *e->refused);
    if (!one || !e->refused)
        st = TN_E_NOMEM;
    for (uint32_t h = 0; h < e->graph->head_count && !st; h++) {
        tni_program *p = NULL;

        if (!e->heads[h])
            continue;
        one[h] = 1;
        st = backward_compile(e, &(tni_backward_key){.heads = one, .modes = e->modes}, NULL, &p);
        tni_program_release(p);
        *any |= e->heads[h] = st == TN_OK;
        if (st && st != TN_E_NOMEM)
            st = refusal_keep(&e->refused[h]);
        one[h] = 0;
    }
    tni_free(one);
    return st;
}

/* What the backward is refused for, its recorded call is not: call by call only a backward is. */
static tn_status recorded_compile(tni_compiled *e)
{
    const tni_backward_key key = {.heads = e->heads, .modes = e->modes};
    bool any = false;
    tn_status st = default_heads(e);

    if (st || (st = backward_compile(e, &key, NULL, &e->program)) == TN_OK || st == TN_E_NOMEM)
        return st;
    if ((st = refusal_keep(&e->no_gradient)) || (st = heads_choose(e, &any)))
        return st;
    tni_error_clear();
    if (!any)
        return forward_compile(e, NULL, &e->program);
    tni_free(e->no_gradient);
    e->no_gradient = NULL;
    return backward_compile(e, &key, NULL, &e->program);
}

tn_status tni_compiled_create(const tni_compiled_spec *spec, tni_compiled **out)
{
    static atomic_uint_fast64_t ids;
    const tni_graph *g = spec->graph;
    tni_compiled *e =
        tni_zalloc(sizeof *e + g->variable_count * sizeof *e->leads + g->head_count + g->variable_count + 2u);
    tn_status st;

    if (!e || tni_mutex_init(&e->lock)) {
        tni_graph_destroy(spec->graph);
        tni_free(e);
        return TN_E_NOMEM;
    }
    tni_ref_init(&e->refs);
    e->id = atomic_fetch_add(&ids, 1) + 1;
    e->ctx = spec->ctx;
    e->graph = spec->graph;
    e->device = spec->device;
    e->flags = spec->flags;
    e->recorded = spec->modes != NULL;
    e->keeps = spec->keeps;
    memcpy(e->bulk, spec->bulk, sizeof e->bulk);
    e->leads = (uint64_t *)(e + 1);
    e->heads = (uint8_t *)(e->leads + g->variable_count);
    e->modes = e->heads + g->head_count + 1u;
    if (spec->modes)
        memcpy(e->modes, spec->modes, g->variable_count);
    st = e->recorded ? tni_graph_leads(g, e->leads) : TN_OK;
    if (!st)
        st = e->recorded ? recorded_compile(e) : forward_compile(e, spec->constants, &e->program);
    if (st || (st = pool_create(e, e->program, &e->pool)))
        tni_compiled_release(e);
    else
        *out = e;
    return st;
}

/* ---- backwards --------------------------------------------------------------------------------------- */

static bool key_equal(const tni_compiled *e, const uint8_t *heads, const uint8_t *modes,
                      const tni_backward_key *k)
{
    return !memcmp(heads, k->heads, e->graph->head_count) &&
           !memcmp(modes, k->modes, e->graph->variable_count);
}

static tn_status variant_create(tni_compiled *e, const tni_backward_key *k, tni_backward_variant **out)
{
    const uint32_t heads = e->graph->head_count, variables = e->graph->variable_count;
    tni_backward_variant *v = tni_zalloc(sizeof *v + heads + variables + 2u);
    tn_status st;

    if (!v)
        return TN_E_NOMEM;
    v->heads = (uint8_t *)(v + 1);
    v->modes = v->heads + heads + 1u;
    memcpy(v->heads, k->heads, heads);
    memcpy(v->modes, k->modes, variables);
    v->predict = k->predict;
    if ((st = backward_compile(e, k, e->program, &v->program)) || (st = pool_create(e, v->program, &v->pool)))
        variant_destroy(v);
    else
        *out = v;
    return st;
}

/* The first asker compiles, the others wait. Variants stay as long as the compiled graph. */
static tn_status variant_find(tni_compiled *e, const tni_backward_key *k, tni_backward_variant **out)
{
    tni_backward_variant *v;
    tn_status st = TN_OK;

    tni_mutex_lock(&e->lock);
    for (v = e->variants; v && !(v->predict == k->predict && key_equal(e, v->heads, v->modes, k));
         v = v->next)
        ;
    if (!v && !(st = variant_create(e, k, &v))) {
        v->next = e->variants;
        e->variants = v;
    }
    tni_mutex_unlock(&e->lock);
    *out = v;
    return st;
}

tn_status tni_compiled_refusal(const tni_compiled *e, uint64_t heads)
{
    for (uint32_t h = 0; e->refused && h < e->graph->head_count; h++)
        if ((h >= 64 || heads >> h & 1u) && e->refused[h]) {
            tni_error_set(e->refused[h]);
            return e->refused[h]->code;
        }
    return TN_OK;
}

tn_status tni_compiled_reach(const tni_compiled *e, const tni_backward_key *k, uint8_t *reached)
{
    uint64_t heads = 0;
    joint j;
    tn_status st;

    for (uint32_t h = 0; h < e->graph->head_count && h < 64; h++)
        heads |= (uint64_t)(k->heads[h] != 0) << h;
    if ((st = tni_compiled_refusal(e, heads)))
        return st;
    if (!(st = joint_init(&j, e->graph)))
        st = joint_make(&j, k);
    for (uint32_t i = 0; i < j.wanted_count && !st; i++)
        reached[j.index[i]] = j.grads[i] != TNI_NONE;
    joint_fini(&j);
    return st;
}

tn_status tni_compiled_backward(tni_compiled *e, const tni_backward_key *k, tni_frame *forward,
                                tni_backward_run *out)
{
    tni_backward_key key = *k;
    tni_backward_variant *v = NULL;
    tn_status st;

    *out = (tni_backward_run){.phase = TNI_BACKWARD};
    key.predict = k->predict && e->flags & TN_NODE_TRAIN;
    if (!k->retain && !key.predict && !tni_frame_lent(forward) && key_equal(e, e->heads, e->modes, k)) {
        tni_frame_retain(out->frame = forward);
        return TN_OK;
    }
    if ((st = variant_find(e, &key, &v)) || (st = tni_frame_take(v->pool, false, &out->frame)))
        return st;
    out->lender = forward;
    return TN_OK;
}

/* ---- values inside ----------------------------------------------------------------------------------- */

static tn_status values_compile(tni_compiled *e, uint32_t count, const uint32_t *entries,
                                tni_array *const *arrays)
{
    uint32_t *index = tni_calloc(count, sizeof *index);
    uint8_t *modes = tni_calloc(count, 1);
    tni_device **devices = tni_calloc(count, sizeof(*devices));
    tni_program_spec spec = {.device = e->device,
                             .threads = tni_exec_threads(e->ctx),
                             .flags = e->flags,
                             .first_node = e->graph->node_count,
                             .backward_node = e->graph->node_count,
                             .gradient_count = count,
                             .gradients = entries,
                             .gradient_index = index,
                             .gradient_modes = modes,
                             .gradient_devices = devices,
                             .lender = e->program};
    tn_status st = index && modes && devices ? tni_graph_copy(e->graph, &spec.graph) : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++) {
        index[i] = i;
        modes[i] = TN_MODE_WRITE;
        devices[i] = arrays[i]->storage->device;
    }
    if (!st && !(st = tni_program_create(e->ctx->selector, &spec, &e->values))) {
        tni_exec_program_made(e->ctx);
        if ((st = tni_frame_pool_create(e->ctx, e->values, &e->values_pool))) {
            tni_program_release(e->values);
            e->values = NULL;
        }
    }
    tni_free(index);
    tni_free(devices);
    tni_free(modes);
    return st;
}

tn_status tni_compiled_values(tni_compiled *e, uint32_t count, const uint32_t *entries, tni_frame *forward,
                              tni_array *const *inputs, tni_array *const *arrays)
{
    tni_launch l = {.lender = forward, .phase = TNI_BACKWARD, .name = "values"};
    tni_array **at = NULL;
    tn_status st = TN_OK;

    tni_mutex_lock(&e->lock);
    if (!e->values)
        st = values_compile(e, count, entries, arrays);
    tni_mutex_unlock(&e->lock);
    if (st || (st = tni_frame_take(e->values_pool, false, &l.frame)))
        return st;
    at = tni_frame_arrays(l.frame, l.phase);
    for (uint32_t i = 0; i < e->values->port_count; i++)
        if (e->values->ports[i].kind == TNI_PORT_GRADIENT)
            at[i] = arrays[e->values->ports[i].index];
        else if (e->values->ports[i].kind == TNI_PORT_INPUT)
            at[i] = inputs[e->values->ports[i].index];
    l.arrays = at;
    st = tni_launch_all(e->ctx, &(tni_launch_group){.launches = &l, .count = 1});
    tni_frame_release(l.frame);
    return st;
}
