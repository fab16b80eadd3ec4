/*
 * Where everything of a program lies.
 *
 * Each entry has a root: itself, the root of what it views, or the root of an input that it overwrites in
 * place. A root lies in an external input, an external output or the arena. In the arena it lives from the
 * instruction that makes it to the last that touches any entry of that root; kept entries live to the end.
 */
#include "compile/place.h"

#include <string.h>

typedef struct placer {
    tni_program *p;
    const tni_program_spec *spec;
    uint32_t *first, *last; /* per root entry: instructions; first TNI_NONE: not made here */
    uint8_t *kept;          /* per root entry */
    tni_interval *intervals;
    uint32_t interval_count;
} placer;

static uint32_t root_of(const tni_program *p, uint32_t entry)
{
    while (p->places[entry].root != entry)
        entry = p->places[entry].root;
    return entry;
}

/* Nodes stand in topological order, so the input of a view has its root already. */
static void views_resolve(placer *w)
{
    tni_program *p = w->p;
    const tni_graph *g = p->graph;

    for (uint32_t e = 0; e < g->entry_count; e++) {
        const tni_gnode *node = &g->nodes[g->entry_node[e]];
        bool view = node->def && node->def->op->flags & TN_OP_VIEW &&
                    g->entry_node[e] >= w->spec->first_node && node->first_entry == e;

        p->places[e].root = view ? root_of(p, tni_graph_input(g, node, 0)) : e;
        p->places[e].interval = TNI_NONE;
        p->places[e].index = TNI_NONE;
    }
}

/* ---- ports ------------------------------------------------------------------------------------------- */

static void port_fill(const tni_program *p, tni_port *port, uint32_t entry)
{
    port->entry = entry;
    port->dtype = p->graph->dtypes[entry];
    port->shape = p->graph->shapes[entry];
    port->mode = TN_MODE_WRITE;
    port->last_use = TNI_NONE;
}

static bool entry_is_computed(const placer *w, uint32_t entry)
{
    uint32_t node = w->p->graph->entry_node[entry];

    return node >= w->spec->first_node && w->p->graph->nodes[node].def;
}

/* Blocks that forward nodes outside have saved: inputs of plain bytes, behind the others. */
static void saved_inputs_make(tni_program *p)
{
    for (uint32_t c = 0; c < p->code_count; c++) {
        tni_instruction *in = &p->code[c];
        const uint64_t bytes = tni_prepared_reads(in->prepared);

        if (!bytes || in->saved_of != TNI_NONE)
            continue;
        in->saved_input = p->input_count;
        p->saved_input_count++;
        p->inputs[p->input_count++] = (tni_port){.entry = TNI_NONE,
                                                 .saved_node = p->graph->nodes[in->node].forward,
                                                 .dtype = TN_U8,
                                                 .shape = {.ndim = 1, .dim = {(int64_t)bytes}},
                                                 .mode = TN_MODE_WRITE,
                                                 .last_use = c};
    }
}

/* Inputs: every variable of a whole program, in order; of a part, whatever its instructions read from
 * outside. */
static tn_status inputs_make(placer *w)
{
    tni_program *p = w->p;
    const tni_graph *g = p->graph;
    uint8_t *used = tni_calloc(g->entry_count + 1u, 1);

    p->inputs = tni_calloc((uint64_t)g->entry_count + p->code_count + 1u, sizeof *p->inputs);
    if (!used || !p->inputs) {
        tni_free(used);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < p->operand_count; i++)
        used[root_of(p, p->operands[i])] = 1;
    for (uint32_t v = 0; w->spec->first_node == 0 && v < g->variable_count; v++)
        used[g->nodes[g->variables[v]].first_entry] = 0;
    for (uint32_t v = 0; w->spec->first_node == 0 && v < g->variable_count; v++)
        port_fill(p, &p->inputs[p->input_count++], g->nodes[g->variables[v]].first_entry);
    for (uint32_t e = 0; e < g->entry_count; e++)
        if (used[e] && !entry_is_computed(w, e))
            port_fill(p, &p->inputs[p->input_count++], e);
    for (uint32_t i = 0; i < p->input_count; i++) {
        p->places[p->inputs[i].entry].kind = TNI_PLACE_INPUT;
        p->places[p->inputs[i].entry].index = i;
    }
    saved_inputs_make(p);
    tni_free(used);
    return TN_OK;
}

static tn_status outputs_make(placer *w)
{
    tni_program *p = w->p;

    p->outputs = tni_calloc(p->graph->head_count + 1u, sizeof *p->outputs);
    if (!p->outputs)
        return TN_E_NOMEM;
    p->output_count = p->graph->head_count;
    for (uint32_t i = 0; i < p->output_count; i++) {
        uint32_t entry = p->graph->heads[i];

        port_fill(p, &p->outputs[i], entry);
        p->outputs[i].mode = w->spec->modes ? w->spec->modes[i] : TN_MODE_WRITE;
        p->places[entry].kind = TNI_PLACE_OUTPUT; /* heads_copy made each a fresh result */
        p->places[entry].index = i;
    }
    return TN_OK;
}

/* ---- lives ------------------------------------------------------------------------------------------- */

static void touch(placer *w, uint32_t entry, uint32_t at, bool makes)
{
    uint32_t root = root_of(w->p, entry);

    if (makes && w->first[root] == TNI_NONE)
        w->first[root] = at;
    if (w->last[root] == TNI_NONE || w->last[root] < at)
        w->last[root] = at;
}

static void lives_make(placer *w)
{
    tni_program *p = w->p;

    memset(w->first, 0xff, sizeof *w->first * p->graph->entry_count);
    memset(w->last, 0xff, sizeof *w->last * p->graph->entry_count);
    for (uint32_t c = 0; c < p->code_count; c++) {
        const tni_instruction *in = &p->code[c];

        for (uint32_t k = 0; k < in->in_count + in->out_count; k++)
            touch(w, p->operands[in->first_operand + k], c, k >= in->in_count);
    }
    for (uint32_t i = 0; i < w->spec->keep_count; i++) {
        uint32_t root = root_of(p, w->spec->keep[i]);

        w->kept[root] = 1;
        w->last[root] = p->code_count;
    }
    for (uint32_t i = 0; i < p->input_count; i++)
        if (p->inputs[i].entry != TNI_NONE)
            p->inputs[i].last_use = w->last[p->inputs[i].entry];
    for (uint32_t i = 0; i < p->output_count; i++)
        p->outputs[i].last_use = w->last[p->outputs[i].entry];
}

/* ---- in place ---------------------------------------------------------------------------------------- */

/* May `out` of instruction `c` take over the memory of its input `in`? */
static bool may_share(const placer *w, uint32_t c, uint32_t out, uint32_t in)
{
    const tni_program *p = w->p;
    const tni_instruction *code = &p->code[c];
    const uint32_t *operand = p->operands + code->first_operand;
    uint32_t from = root_of(p, operand[in]), to = operand[code->in_count + out];

    if (p->places[from].kind != TNI_PLACE_NONE || p->places[to].kind != TNI_PLACE_NONE ||
        p->places[to].root != to || w->first[from] == TNI_NONE)
        return false;
    if (w->last[from] != c || w->kept[from] || w->first[to] != c ||
        p->tensors[from].bytes != p->tensors[to].bytes)
        return false;
    for (uint32_t k = 0; k < code->in_count + code->out_count; k++)
        if (k != in && k != code->in_count + out && root_of(p, operand[k]) == from &&
            !(k < code->in_count && code->def->op->flags & TN_OP_POINTWISE))
            return false;
    return true;
}

static void inplace_share(placer *w)
{
    tni_program *p = w->p;

    for (uint32_t c = 0; c < p->code_count; c++) {
        const tni_instruction *code = &p->code[c];

        for (uint32_t o = 0; o < code->out_count; o++) {
            int32_t in = code->prepared->plan.inplace[o];
            uint32_t from, to;

            if (in < 0 || (uint32_t)in >= code->in_count || !may_share(w, c, o, (uint32_t)in))
                continue;
            from = root_of(p, p->operands[code->first_operand + (uint32_t)in]);
            to = p->operands[code->first_operand + code->in_count + o];
            p->places[to].root = from;
            w->last[from] = w->last[to];
            w->kept[from] = w->kept[to];
        }
    }
}

/* ---- arena ------------------------------------------------------------------------------------------- */

static uint32_t interval_add(placer *w, uint64_t bytes, uint32_t first, uint32_t last)
{
    w->intervals[w->interval_count] = (tni_interval){.bytes = bytes, .first = first, .last = last};
    return w->interval_count++;
}

/* Saved blocks live to the last backward here that reads them; recorded ones to the end. */
static void saved_plan(placer *w)
{
    tni_program *p = w->p;

    for (uint32_t c = 0; c < p->code_count; c++) {
        tni_instruction *in = &p->code[c];

        if (in->prepared->plan.saved_bytes)
            in->saved = interval_add(w, in->prepared->plan.saved_bytes, c,
                                     w->spec->flags & TN_NODE_RECORDED ? p->code_count : c);
        else if (in->saved_of != TNI_NONE && w->intervals[p->code[in->saved_of].saved].last < c)
            w->intervals[p->code[in->saved_of].saved].last = c;
    }
}

static void saved_settle(placer *w)
{
    tni_program *p = w->p;

    for (uint32_t c = 0; c < p->code_count; c++) {
        tni_instruction *in = &p->code[c];
        const uint32_t saved = in->saved_of == TNI_NONE ? in->saved : p->code[in->saved_of].saved;

        if (saved != TNI_NONE)
            in->saved_offset = w->intervals[saved].offset;
    }
}

static tn_status arena_plan(placer *w)
{
    tni_program *p = w->p;
    tn_status st;

    w->intervals =
        tni_calloc((uint64_t)p->graph->entry_count + 2ull * p->code_count + 1u, sizeof *w->intervals);
    if (!w->intervals)
        return TN_E_NOMEM;
    for (uint32_t e = 0; e < p->graph->entry_count; e++)
        if (p->places[e].root == e && p->places[e].kind == TNI_PLACE_NONE && w->first[e] != TNI_NONE)
            p->places[e].interval = interval_add(w, p->tensors[e].bytes, w->first[e], w->last[e]);
    for (uint32_t c = 0; c < p->code_count; c++)
        if (p->code[c].prepared->plan.workspace_bytes)
            p->code[c].workspace = interval_add(w, tni_workspace_bytes(&p->code[c].prepared->plan), c, c);
    saved_plan(w);
    st = tni_plan_offsets(w->intervals, w->interval_count, p->device->host ? 64 : 256, &p->arena_bytes,
                          &p->arena_bound);
    for (uint32_t e = 0; !st && e < p->graph->entry_count; e++)
        if (p->places[e].interval != TNI_NONE) {
            p->places[e].kind = TNI_PLACE_ARENA;
            p->places[e].offset = w->intervals[p->places[e].interval].offset;
        }
    for (uint32_t c = 0; !st && c < p->code_count; c++)
        if (p->code[c].workspace != TNI_NONE)
            p->code[c].workspace_offset = w->intervals[p->code[c].workspace].offset;
    if (!st)
        saved_settle(w);
    return st;
}

/* Entries follow their roots; the list of what must be bound at every call is made. */
static tn_status followers_settle(placer *w)
{
    tni_program *p = w->p;

    p->external = tni_calloc(p->graph->entry_count + 1u, sizeof *p->external);
    if (!p->external)
        return TN_E_NOMEM;
    for (uint32_t e = 0; e < p->graph->entry_count; e++) {
        uint32_t root = root_of(p, e);

        p->places[e].kind = p->places[root].kind;
        p->places[e].index = p->places[root].index;
        p->places[e].offset = p->places[root].offset;
        p->places[e].root = root;
        if (p->places[e].kind == TNI_PLACE_INPUT || p->places[e].kind == TNI_PLACE_OUTPUT)
            p->external[p->external_count++] = e;
    }
    return TN_OK;
}

/* Inputs that are mutated, and outputs that the core has to add up for a kernel that cannot. */
static void writes_note(tni_program *p)
{
    for (uint32_t c = 0; c < p->code_count; c++) {
        tni_instruction *in = &p->code[c];

        in->skip_empty = !(in->prepared->kernel->flags & TN_KERNEL_EMPTY_OK);
        for (uint32_t k = 0; k < in->out_count; k++) {
            const uint32_t at = in->first_operand + in->in_count + k;
            const tni_place *place = &p->places[p->operands[at]];

            in->skip_empty &= tn_tensor_count(&p->tensors[p->operands[at]]) == 0;
            if (place->kind == TNI_PLACE_INPUT)
                p->inputs[place->index].written = true;
            if (p->modes[at] == TN_MODE_ADD && !in->prepared->adds)
                in->add_by_core = true;
        }
    }
}

tn_status tni_program_place(tni_program *p, const tni_program_spec *spec)
{
    placer w = {.p = p, .spec = spec};
    tn_status st;

    p->places = tni_calloc(p->graph->entry_count + 1u, sizeof *p->places);
    w.first = tni_calloc(p->graph->entry_count + 1u, sizeof *w.first);
    w.last = tni_calloc(p->graph->entry_count + 1u, sizeof *w.last);
    w.kept = tni_calloc(p->graph->entry_count + 1u, 1);
    if (!p->places || !w.first || !w.last || !w.kept) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    views_resolve(&w);
    if ((st = inputs_make(&w)) || (st = outputs_make(&w)))
        goto cleanup;
    lives_make(&w);
    inplace_share(&w);
    if ((st = arena_plan(&w)) || (st = followers_settle(&w)))
        goto cleanup;
    writes_note(p);

cleanup:
    tni_free(w.first);
    tni_free(w.last);
    tni_free(w.kept);
    tni_free(w.intervals);
    return st;
}
