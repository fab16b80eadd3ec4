/*
 * What a backward variant reads of its forward: values that this, its lender, keeps or has in arrays. Where
 * it keeps nothing, the lender's backward computes them again (pass mirror), and so does the variant, by the
 * same instructions.
 */
#include <stdlib.h>
#include <string.h>

#include "compile/code.h"

typedef struct copier {
    tni_code *c;
    const tni_program *from;
    tni_vec list; /* uint32_t: instructions of the lender */
} copier;

static const tni_instruction *maker_of(const copier *k, uint32_t theirs)
{
    const tni_value *v = &k->from->values[theirs];

    if (v->again != TNI_NONE)
        v = &k->from->values[v->again];
    return v->def != TNI_NONE && k->from->code[v->def].flags & TNI_CODE_AGAIN ? &k->from->code[v->def] : NULL;
}

/* A value like one of the lender's, which need not live as long. */
static tn_status like_add(const copier *k, uint32_t theirs, uint32_t *out)
{
    tni_value like = k->from->values[theirs];
    const uint64_t bytes = (uint64_t)(like.tensor.ndim > 0 ? like.tensor.ndim : 0) * sizeof(int64_t);
    int64_t *shape = tni_arena_alloc(k->c->p->memory, bytes + 1);
    tn_status st;

    if (!shape)
        return TN_E_NOMEM;
    memcpy(shape, like.tensor.shape, bytes);
    like.tensor.shape = shape;
    if (!(st = tni_code_value_add(k->c, &like, out)))
        tni_code_window_like(k->c, *out, &like);
    return st;
}

/* In the caller's array, which must be as the forward found it. */
static tn_status port_find(const copier *k, uint32_t theirs, uint32_t *out)
{
    const tni_value *v = &k->from->values[theirs];
    const tni_port *port = &k->from->ports[v->port];
    const tni_graph *g = k->c->p->graph;
    const uint32_t entry = g->nodes[g->variables[port->index]].first_entry, value = k->c->value_of[entry];
    tn_status st = tni_code_outside(k->c, entry);

    if (st)
        return st;
    ((tni_port *)tni_vec_at(&k->c->ports, tni_code_value(k->c, value)->port))->again = v->port + 1;
    *out = value;
    if (v->root == theirs || (st = like_add(k, theirs, out)))
        return st;
    tni_code_value(k->c, *out)->root = value;
    tni_code_value(k->c, *out)->delta = v->delta;
    return TN_OK;
}

void tni_code_lend(tni_value *v, const tni_value *theirs, const tni_value *root)
{
    v->place = TNI_PLACE_LENT;
    v->arena = root->arena;
    v->offset = root->offset + theirs->delta;
    v->tensor.layout = theirs->tensor.layout;
}

static tn_status kept_find(const copier *k, uint32_t theirs, uint32_t *out)
{
    const tni_value *v = &k->from->values[theirs];
    tn_status st;

    if (!tni_value_crosses(k->from, theirs))
        return tni_error(TN_E_INTERNAL, "a value that is computed again reads one that was not kept");
    if (!(st = like_add(k, theirs, out)))
        tni_code_lend(tni_code_value(k->c, *out), v, &k->from->values[v->root]);
    return st;
}

/* The value here that stands for one that an instruction of the lender reads. */
static tn_status value_find(const copier *k, uint32_t theirs, uint32_t *out)
{
    const tni_value *v = &k->from->values[theirs];
    uint32_t *known = &k->c->lent_of[theirs];
    tn_status st;

    if (*known == TNI_NONE && v->again != TNI_NONE) { /* a view of what is computed again */
        if (!(st = like_add(k, theirs, known))) {
            tni_code_value(k->c, *known)->root = k->c->lent_of[v->again];
            tni_code_value(k->c, *known)->delta = v->delta;
        }
    } else if (*known == TNI_NONE && v->place == TNI_PLACE_SHAPE) {
        if (!(st = like_add(k, theirs, known)))
            tni_code_value(k->c, *known)->place = TNI_PLACE_SHAPE;
    } else if (*known == TNI_NONE) {
        st = v->place == TNI_PLACE_PORT ? port_find(k, theirs, known) : kept_find(k, theirs, known);
    } else {
        st = TN_OK;
    }
    *out = *known;
    return st;
}

static tn_status instruction_copy(const copier *k, uint32_t index)
{
    tni_code *c = k->c;
    const tni_instruction *of = &k->from->code[index];
    const uint32_t *theirs = k->from->operands + of->first_operand;
    tni_instruction made;
    uint32_t value;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < of->in_count + of->out_count && !st; o++)
        if (o < of->in_count || k->from->values[theirs[o]].def != index)
            st = value_find(k, theirs[o], &value);
        else
            st = like_add(k, theirs[o], &c->lent_of[theirs[o]]);
    if (st || (st = tni_code_again(c, of, &made)))
        return st;
    made.first_operand = (uint32_t)c->operands.count;
    for (uint32_t o = 0; o < of->in_count + of->out_count && !st; o++) {
        value = c->lent_of[theirs[o]];
        if (o >= of->in_count && k->from->values[theirs[o]].def == index)
            tni_code_value(c, value)->def = (uint32_t)c->code.count;
        st = tni_code_operand_push(c, value, k->from->modes[of->first_operand + o]);
    }
    if (st || (st = tni_vec_push(&c->code, &made)))
        tni_instruction_fini(&made);
    return st;
}

/* An instruction of the lender is there if its first result is. */
static tn_status maker_list(copier *k, uint32_t theirs)
{
    const tni_instruction *in = maker_of(k, theirs);
    uint32_t index, *known;

    if (!in)
        return TN_OK;
    index = (uint32_t)(in - k->from->code);
    known = &k->c->lent_of[k->from->operands[in->first_operand + in->in_count]];
    if (*known != TNI_NONE)
        return TN_OK;
    *known = TNI_NONE - 1u; /* listed */
    return tni_vec_push(&k->list, &index);
}

static int by_index(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static tn_status makers_copy(copier *k, uint32_t theirs)
{
    tn_status st = maker_list(k, theirs);

    for (size_t i = 0; i < k->list.count && !st; i++) {
        const tni_instruction *in = &k->from->code[*(uint32_t *)tni_vec_at(&k->list, i)];

        for (uint32_t o = 0; o < in->in_count && !st; o++)
            st = maker_list(k, k->from->operands[in->first_operand + o]);
    }
    if (!st && k->list.count > 1)
        qsort(k->list.data, k->list.count, sizeof(uint32_t), by_index);
    for (size_t i = 0; i < k->list.count && !st; i++)
        st = instruction_copy(k, *(uint32_t *)tni_vec_at(&k->list, i));
    return st;
}

static tn_status lent_again(tni_code *c, uint32_t theirs, uint32_t value)
{
    const tni_value *v = &c->spec->lender->values[theirs];
    copier k = {.c = c, .from = c->spec->lender};
    tn_status st;

    if (!c->lent_of) {
        if (!(c->lent_of = tni_alloc((k.from->value_count + 1ull) * sizeof *c->lent_of)))
            return TN_E_NOMEM;
        memset(c->lent_of, 0xff, (k.from->value_count + 1ull) * sizeof *c->lent_of);
    }
    tni_vec_init(&k.list, sizeof(uint32_t), c->code.max);
    if (!(st = makers_copy(&k, v->again))) {
        tni_code_value(c, value)->root = c->lent_of[v->again];
        tni_code_value(c, value)->delta = v->delta;
        tni_code_value(c, value)->tensor.layout = v->tensor.layout;
        tni_code_window_like(c, value, v);
    }
    tni_vec_fini(&k.list);
    return st;
}

/* The array that stood at the lender's port: of another shape, where the value is a view of it. */
static tn_status lent_port_add(tni_code *c, const tni_port *theirs, uint32_t value)
{
    tn_status st = tni_code_port_add(c, theirs->kind, theirs->index, value, TN_MODE_WRITE);

    if (!st)
        ((tni_port *)tni_vec_at(&c->ports, c->ports.count - 1))->shape = theirs->shape;
    return st;
}

/* Something computed by the lender: in its kept bytes, in an array that its caller gave, or again here. */
tn_status tni_code_lent(tni_code *c, uint32_t entry)
{
    const tni_program *from = c->spec->lender;
    const uint32_t number = from->value_of[entry];
    const tni_value *theirs = &from->values[number], *root = &from->values[theirs->root];
    tni_value *v = tni_code_value(c, c->value_of[entry]);

    if (theirs->again != TNI_NONE)
        return lent_again(c, number, c->value_of[entry]);
    if (tni_value_crosses(from, number) &&
        tni_is_row_major(v->tensor.ndim, v->tensor.shape, theirs->tensor.stride)) {
        tni_code_lend(v, theirs, root);
        return TN_OK;
    }
    v->tensor.layout = theirs->tensor.layout;
    if (root->place == TNI_PLACE_PORT && !(theirs->flags & TNI_VALUE_WINDOW))
        return lent_port_add(c, &from->ports[root->port], c->value_of[entry]);
    return tni_error(TN_E_INTERNAL, "a backward pass reads node \"%.200s\", which its forward did not keep",
                     from->graph->nodes[from->graph->entry_node[entry]].name);
}
