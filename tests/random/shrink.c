/*
 * Making a failing case smaller: edits that leave something out or make it plain, each tried on a copy and
 * kept if the copy fails in the same way. Shapes that no longer fit are refused both ways, so such a copy
 * does not fail.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 600

/* Does edit number `step` of its kind. False: there are no more. */
typedef bool (*edit_fn)(fuzz_case *c, uint32_t step);

static bool head_drop(fuzz_case *c, uint32_t step)
{
    if (step >= c->head_count || c->head_count == 1)
        return false;
    memmove(&c->heads[step], &c->heads[step + 1], (c->head_count - step - 1) * sizeof *c->heads);
    c->head_count--;
    return true;
}

/* Variables take the place of the outputs of a node; heads there go. */
static bool node_cut(fuzz_case *c, uint32_t step)
{
    const fuzz_node *n = &c->nodes[step];
    bool live[FUZZ_NODES_MAX];
    fuzz_rng r = {step};

    if (step >= c->node_count)
        return false;
    fuzz_case_live(c, live);
    if (!live[step])
        return true;
    for (uint32_t h = c->head_count; h-- > 0;)
        if (c->entries[c->heads[h].entry].node == step && !head_drop(c, h))
            return true; /* as it was */
    for (uint32_t o = 0; o < n->out_count; o++) {
        const fuzz_entry e = c->entries[n->first_entry + o];
        uint32_t to;

        if (!tn_shape_known(&e.shape) || e.dtype < 0 || c->variable_count == FUZZ_VARIABLES_MAX ||
            c->entry_count == FUZZ_ENTRIES_MAX)
            continue;
        to = fuzz_variable_add(c, &r, e.dtype, &e.shape);
        c->variables[c->variable_count - 1].form = FUZZ_DENSE;
        c->variables[c->variable_count - 1].values = FUZZ_SMALL;
        for (uint32_t i = 0; i < c->edge_count; i++)
            if (c->edges[i] == n->first_entry + o)
                c->edges[i] = to;
        for (uint32_t i = 0; i < c->node_count; i++) /* over a variable would be another thing */
            c->nodes[i].inplace = FUZZ_NONE;
    }
    return true;
}

static bool attr_drop(fuzz_case *c, uint32_t step)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        fuzz_node *n = &c->nodes[i];
        fuzz_attr *first = &c->attrs[n->first_attr];

        if (step < n->attr_count) {
            memmove(&first[step], &first[step + 1], (n->attr_count - step - 1) * sizeof *first);
            n->attr_count--;
            return true;
        }
        step -= n->attr_count;
    }
    return false;
}

static bool flag_clear(fuzz_case *c, uint32_t step)
{
    if (step == 16)
        c->mode = 0;
    else if (step < 16)
        c->flags &= ~(1u << step);
    return step <= 16;
}

static bool node_plain(fuzz_case *c, uint32_t step)
{
    if (step >= c->node_count)
        return false;
    c->nodes[step].inplace = FUZZ_NONE;
    return true;
}

static bool head_plain(fuzz_case *c, uint32_t step)
{
    fuzz_head *h = &c->heads[step / 4];

    if (step / 4 >= c->head_count)
        return false;
    if (step % 4 == 0)
        h->over = FUZZ_NONE;
    else if (step % 4 == 1)
        h->form = FUZZ_FORMS;
    else if (step % 4 == 2)
        h->grad = FUZZ_VALUES;
    else
        h->backward = false;
    return true;
}

static bool variable_plain(fuzz_case *c, uint32_t step)
{
    fuzz_variable *v = &c->variables[step / 5];

    if (step / 5 >= c->variable_count)
        return false;
    if (step % 5 == 0)
        v->grad = FUZZ_NO_GRAD;
    else if (step % 5 == 1)
        v->grad_form = FUZZ_FORMS;
    else if (step % 5 == 2)
        v->form = FUZZ_DENSE;
    else if (step % 5 == 3)
        v->values = FUZZ_SMALL;
    else if (v->grad == TN_MODE_ADD)
        v->grad = TN_MODE_WRITE;
    return true;
}

/* Where the dimension `from` stands, in all entries, it becomes `to`. */
static bool dims_less(fuzz_case *c, uint32_t step)
{
    int64_t sizes[16];
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->entry_count; i++)
        for (int32_t d = 0; d < c->entries[i].shape.ndim; d++) {
            const int64_t size = c->entries[i].shape.dim[d];
            uint32_t k = 0;

            while (k < count && sizes[k] != size)
                k++;
            if (k == count && count < 16 && size > 1)
                sizes[count++] = size;
        }
    if (step / 2 >= count)
        return false;
    for (uint32_t i = 0; i < c->entry_count; i++)
        for (int32_t d = 0; d < c->entries[i].shape.ndim; d++)
            if (c->entries[i].shape.dim[d] == sizes[step / 2])
                c->entries[i].shape.dim[d] = step % 2 ? 2 : 1;
    return true;
}

static bool rank_less(fuzz_case *c, uint32_t step)
{
    if (step > 1)
        return false;
    for (uint32_t i = 0; i < c->entry_count; i++) {
        tn_shape *s = &c->entries[i].shape;

        if (s->ndim <= 0)
            continue;
        s->ndim--;
        if (step)
            memmove(s->dim, s->dim + 1, (size_t)s->ndim * sizeof *s->dim);
    }
    return true;
}

static bool types_plain(fuzz_case *c, uint32_t step)
{
    if (step >= TN_I4)
        return false;
    for (uint32_t i = 0; i < c->entry_count; i++)
        if (c->entries[i].dtype == (int32_t)step)
            c->entries[i].dtype = TN_F32;
    return true;
}

static const edit_fn edits[] = {head_drop,  node_cut,       attr_drop, flag_clear, node_plain,
                                head_plain, variable_plain, dims_less, rank_less,  types_plain};

void fuzz_shrink(fuzz_case *c, bool (*fails)(const fuzz_case *c, void *arg), void *arg)
{
    fuzz_case *copy = malloc(sizeof *copy);
    uint32_t tries = 0;
    bool smaller = copy != NULL;

    while (smaller) {
        smaller = false;
        for (size_t k = 0; k < sizeof edits / sizeof *edits; k++)
            for (uint32_t step = 0; tries < TRIES_MAX; step++) {
                memcpy(copy, c, sizeof *c);
                if (!edits[k](copy, step))
                    break;
                if (!memcmp(copy, c, offsetof(fuzz_case, text)))
                    continue;
                tries++;
                if (!fails(copy, arg))
                    continue;
                memcpy(c, copy, sizeof *c);
                smaller = true;
            }
    }
    free(copy);
}
