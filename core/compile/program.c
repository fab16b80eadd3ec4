/*
 * Building a program: a graph is lowered, then the passes of passes.list run over it in order, each followed
 * by the verifier in builds with assertions.
 */
#include <string.h>

#include "compile/code.h"

#define PASSES_OFF "compile.passes_off"
#define STRIDES_BYTES_MAX ((size_t)1 << 32) /* of all values of one program */

#define NEEDED 0u
#define EXACT 1u
#define BOUNDED 2u

static const struct pass_row {
    const char *name, *text;
    uint32_t kind;
    tn_status (*run)(tni_code *c);
} passes[] = {
#define TNI_PASS(name, kind, text) {#name, text, kind, tni_pass_##name},
#include "compile/passes.list"
#undef TNI_PASS
};
#define PASS_COUNT (sizeof passes / sizeof *passes)

/* Those that compile.passes_off may name, for people. */
static void switched_text(char *out, size_t size)
{
    size_t length = 0;

    for (size_t k = 0; k < PASS_COUNT && length < size; k++)
        if (passes[k].kind != NEEDED)
            length +=
                (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "", passes[k].name);
}

tn_status tni_passes_check(const tni_options *o)
{
    char item[64], switched[256];

    for (size_t i = 0; i < tni_option_list_count(o, PASSES_OFF); i++) {
        bool known = false;

        if (tni_option_list_item(o, PASSES_OFF, i, item, sizeof item))
            item[0] = '\0';
        for (size_t k = 0; k < PASS_COUNT; k++)
            known |= passes[k].kind != NEEDED && !strcmp(passes[k].name, item);
        if (known)
            continue;
        switched_text(switched, sizeof switched);
        return tni_error(TN_E_ARG, "%s: \"%.60s\" is no pass that can be left out; those are %s", PASSES_OFF,
                         item, switched);
    }
    return TN_OK;
}

void tni_instruction_fini(tni_instruction *i)
{
    tni_prepared_release(i->prepared);
    tni_attrs_release(i->attrs);
}

void tni_program_retain(tni_program *p)
{
    tni_ref_retain(&p->refs);
}

void tni_program_release(tni_program *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    for (uint32_t i = 0; i < p->code_count; i++)
        tni_instruction_fini(&p->code[i]);
    tni_graph_destroy(p->graph);
    tni_arena_destroy(p->memory);
    tni_free(p->values);
    tni_free(p->code);
    tni_free(p->operands);
    tni_free(p->slots);
    tni_free(p->modes);
    tni_free(p->value_of);
    tni_free(p->code_of);
    tni_free(p->links);
    tni_free(p->ports);
    tni_free(p->segments);
    tni_free(p->uses);
    tni_free(p->edges);
    tni_free(p->bindings);
    tni_free(p->releases);
    tni_free(p->arenas);
    tni_free(p->notes);
    tni_free(p->borders);
    tni_free(p);
}

static tn_status code_init(tni_code *c, tni_program *p, tni_selector *s, const tni_program_spec *spec)
{
    const uint32_t entries = p->graph ? p->graph->entry_count : 0,
                   nodes = p->graph ? p->graph->node_count : 0;

    *c = (tni_code){.p = p, .selector = s, .spec = spec};
    tni_vec_init(&c->values, sizeof(tni_value), 8u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&c->code, sizeof(tni_instruction), 2u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&c->operands, sizeof(uint32_t), UINT32_MAX / 2);
    tni_vec_init(&c->modes, 1, UINT32_MAX / 2);
    tni_vec_init(&c->links, sizeof(tni_attr_link), 4u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&c->ports, sizeof(tni_port), 4u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&c->borders, sizeof(tni_border), 4u * TN_GRAPH_NODES_MAX);
    c->value_of = tni_calloc(entries + 1u, sizeof *c->value_of);
    c->code_of = tni_alloc((nodes + 1ull) * sizeof *c->code_of);
    c->gradient_port = tni_alloc((spec->gradient_count + 1ull) * sizeof *c->gradient_port);
    if (!c->value_of || !c->code_of || !c->gradient_port)
        return TN_E_NOMEM;
    memset(c->gradient_port, 0xff, (spec->gradient_count + 1ull) * sizeof *c->gradient_port);
    memset(c->code_of, 0xff, (nodes + 1ull) * sizeof *c->code_of);
    return tni_arena_create(STRIDES_BYTES_MAX, &p->memory);
}

/* Whatever happened, all of it ends up owned by the program. */
static void code_finish(tni_code *c)
{
    tni_program *p = c->p;

    p->values = c->values.data;
    p->value_count = (uint32_t)c->values.count;
    p->code = c->code.data;
    p->code_count = (uint32_t)c->code.count;
    p->operands = c->operands.data;
    p->operand_count = (uint32_t)c->operands.count;
    p->modes = c->modes.data;
    p->links = c->links.data;
    p->link_count = (uint32_t)c->links.count;
    p->ports = c->ports.data;
    p->port_count = (uint32_t)c->ports.count;
    p->value_of = c->value_of;
    p->code_of = c->code_of;
    tni_free(c->gradient_port);
    tni_free(c->border_of);
    tni_free(c->shape_of);
    tni_free(c->lent_of);
    p->borders = c->borders.data;
    p->border_count = (uint32_t)c->borders.count;
}

static bool listed(const tni_options *o, const char *pass)
{
    char item[64];

    for (size_t i = 0; i < tni_option_list_count(o, PASSES_OFF); i++)
        if (!tni_option_list_item(o, PASSES_OFF, i, item, sizeof item) && !strcmp(item, pass))
            return true;
    return false;
}

/* Calls of one operator are made as they are. */
static bool left_out(const tni_code *c, const struct pass_row *pass)
{
    if (pass->kind == NEEDED)
        return false;
    return !c->p->graph || (pass->kind == BOUNDED && c->p->flags & TN_NODE_THREAD_INVARIANT) ||
           listed(tni_selector_options(c->selector), pass->name);
}

static tn_status pass_run(tni_code *c, size_t index, tni_pass_note *note)
{
    const struct pass_row *pass = &passes[index];
    const uint32_t before = (uint32_t)c->code.count;
    tn_status st;

    *note = (tni_pass_note){.name = pass->name,
                            .text = pass->text,
                            .bounded = pass->kind == BOUNDED,
                            .before = before,
                            .after = before};
    if ((note->off = left_out(c, pass)))
        return TN_OK;
    c->rewrites = 0;
    st = pass->run(c);
#ifndef NDEBUG
    if (!st)
        st = tni_code_verify(c, pass->name);
#endif
    note->after = (uint32_t)c->code.count;
    note->rewrites = c->rewrites;
    return st;
}

static tn_status passes_run(tni_code *c)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < PASS_COUNT; i++) {
        c->layouts |= !strcmp(passes[i].name, "layout") && !left_out(c, &passes[i]);
        c->constants |= !strcmp(passes[i].name, "constants") && !left_out(c, &passes[i]);
    }
    if (!(c->p->notes = tni_calloc(PASS_COUNT, sizeof *c->p->notes)))
        return TN_E_NOMEM;
    c->p->note_count = PASS_COUNT;
    for (size_t i = 0; i < PASS_COUNT && !st; i++)
        st = pass_run(c, i, &c->p->notes[i]);
    return st;
}

/* A call of one operator has no limit. */
static void bulk_set(tni_program *p, const tni_program_spec *spec, const tni_options *o)
{
    static const char *const keys[] = {"compile.bulk_forward", "compile.bulk_backward"};

    for (int i = 0; i < 2 && p->graph; i++)
        p->bulk[i] = spec->bulk[i] ? spec->bulk[i] : (uint32_t)tni_option_int(o, keys[i]);
}

tn_status tni_program_make(tni_selector *s, const tni_program_spec *spec,
                           tn_status (*lower)(tni_code *c, void *arg), void *arg, tni_program **out)
{
    static atomic_uint_fast64_t ids;
    tni_program *p = tni_zalloc(sizeof *p);
    tni_code c;
    tn_status st;

    if (!p) {
        tni_graph_destroy(spec->graph);
        return TN_E_NOMEM;
    }
    tni_ref_init(&p->refs);
    p->graph = spec->graph;
    p->device = spec->device;
    p->threads = spec->threads;
    p->flags = spec->flags;
    p->random_count = p->graph ? p->graph->random_count : 0;
    bulk_set(p, spec, tni_selector_options(s));
    if (spec->lender) {
        p->lender_segments = spec->lender->phases[TNI_FORWARD].segment_count;
        p->lender_arenas = spec->lender->arena_count;
    }
    p->id = atomic_fetch_add(&ids, 1) + 1;
    if (!(st = code_init(&c, p, s, spec)) && !(st = lower(&c, arg)))
        st = passes_run(&c);
    code_finish(&c);
    if (st)
        tni_program_release(p);
    else
        *out = p;
    return st;
}

static tn_status graph_lower(tni_code *c, void *arg)
{
    (void)arg;
    return tni_code_lower(c);
}

tn_status tni_program_create(tni_selector *s, tni_program_spec *spec, tni_program **out)
{
    return tni_program_make(s, spec, graph_lower, NULL, out);
}
