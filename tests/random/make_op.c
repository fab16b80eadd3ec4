/*
 * One call of one operator: mostly as inference accepts it, then perhaps spoiled in a few places: an
 * attribute, a shape, a data type, the number of inputs. Also what surrounds the nodes of any case: heads,
 * gradients.
 */
#include "make.h"

#include <string.h>

/* ---- heads, gradients, flags --------------------------------------------------------------------------- */

static uint8_t form_given(fuzz_rng *r)
{
    static const uint8_t forms[] = {FUZZ_DENSE, FUZZ_GAPS, FUZZ_ROWS, FUZZ_TURNED, FUZZ_OFFSET};

    return fuzz_chance(r, 70) ? FUZZ_FORMS : FUZZ_PICK(r, forms);
}

static bool is_float(const fuzz_case *c, uint32_t entry)
{
    return tni_dtype_is_float(c->entries[entry].dtype);
}

void fuzz_make_flags(fuzz_case *c, fuzz_rng *r)
{
    static const uint8_t percent[] = {40, 10, 60, 40, 15, 30, 30, 30}; /* in the order of FUZZ_FLAGS */

    for (size_t i = 0; i < sizeof percent; i++)
        if (fuzz_chance(r, percent[i]))
            c->flags |= 1u << i;
}

static void gradients_draw(fuzz_case *c, fuzz_rng *r)
{
    for (uint32_t i = 0; i < c->variable_count; i++) {
        fuzz_variable *v = &c->variables[i];

        if (is_float(c, v->entry) ? fuzz_chance(r, 80) : fuzz_chance(r, 3)) {
            v->grad = fuzz_chance(r, 60) ? TN_MODE_WRITE : (uint8_t)fuzz_below(r, 3);
            v->grad_form = form_given(r);
        }
    }
    for (uint32_t h = 0; h < c->head_count; h++) {
        fuzz_head *head = &c->heads[h];

        head->backward = h == 0 || fuzz_chance(r, 60);
        head->grad = fuzz_chance(r, 40) ? FUZZ_VALUES : (uint8_t)fuzz_below(r, FUZZ_VALUES);
        head->seed = fuzz_next(r);
    }
}

/* An array of a variable that nobody else needs afterwards may take the result. */
static void over_draw(fuzz_case *c, fuzz_rng *r, fuzz_head *head)
{
    const fuzz_entry *e = &c->entries[head->entry];
    const uint32_t v = fuzz_below(r, c->variable_count);
    const fuzz_entry *to = &c->entries[c->variables[v].entry];

    if (e->node == FUZZ_NONE || to->dtype != e->dtype || to->shape.ndim != e->shape.ndim ||
        c->variables[v].form == FUZZ_STRETCHED || c->variables[v].state ||
        memcmp(to->shape.dim, e->shape.dim,
               (size_t)(e->shape.ndim > 0 ? e->shape.ndim : 0) * sizeof(int64_t)))
        return;
    for (uint32_t h = 0; h < c->head_count; h++)
        if (c->heads[h].over == v)
            return;
    if (!fuzz_case_needed(c, c->variables[v].entry, e->node))
        head->over = v;
}

void fuzz_make_rest(fuzz_case *c, fuzz_rng *r)
{
    for (uint32_t h = 0; h < c->head_count; h++) {
        c->heads[h].form = form_given(r);
        c->heads[h].over = FUZZ_NONE;
    }
    if (c->flags & FUZZ_RECORD)
        gradients_draw(c, r);
    else if (c->variable_count && c->head_count && fuzz_chance(r, 30))
        over_draw(c, r, &c->heads[fuzz_below(r, c->head_count)]);
}

/* ---- one operator -------------------------------------------------------------------------------------- */

static const tn_attr_def *attr_any(fuzz_rng *r, const tni_opdef *def)
{
    return def->attr_count ? &def->op->attrs[fuzz_below(r, def->attr_count)] : NULL;
}

static void attr_spoil(fuzz_case *c, fuzz_rng *r, const tni_opdef *def)
{
    const tn_attr_def *d = attr_any(r, def);
    fuzz_node *n = &c->nodes[0];
    uint32_t name, at;

    if (!d || fuzz_chance(r, 3)) { /* unknown ones, and such as are nobody's */
        name = fuzz_text(c, "%s", fuzz_chance(r, 50) ? "__lr_mult__" : "nothing");
        c->attrs[c->attr_count++] = (fuzz_attr){name, fuzz_text(c, "1")};
        n->attr_count++;
        return;
    }
    for (at = 0; at < n->attr_count; at++)
        if (!strcmp(fuzz_text_at(c, c->attrs[n->first_attr + at].name), d->name))
            break;
    if (at == n->attr_count || fuzz_chance(r, 2)) { /* perhaps a second time */
        name = fuzz_text(c, "%s", d->name);
        at = n->attr_count++;
        c->attrs[c->attr_count++].name = name;
    }
    c->attrs[n->first_attr + at].text = fuzz_attr_wild(c, r, d);
    if (d->flags & TN_ATTR_F_COUNT || d->type == TN_ATTR_T_TEXT) /* a net runs where its inputs lie */
        n->counted = false;
}

static void inputs_spoil(fuzz_case *c, fuzz_rng *r)
{
    fuzz_node *n = &c->nodes[0];

    n->counted = false;
    if (n->in_count && fuzz_chance(r, 50))
        n->in_count--;
    else if (n->in_count && c->edge_count < FUZZ_EDGES_MAX) {
        c->edges[c->edge_count++] = c->edges[n->first_edge];
        n->in_count++;
    }
}

static void spoil(fuzz_case *c, fuzz_rng *r, const tni_opdef *def)
{
    const fuzz_node *n = &c->nodes[0];
    const uint32_t at = n->in_count ? n->first_edge + fuzz_below(r, n->in_count) : 0;
    fuzz_entry *e = n->in_count ? &c->entries[c->edges[at]] : NULL;

    switch (fuzz_below(r, 10)) {
    case 0:
    case 1:
    case 2:
        if (e)
            fuzz_shape_wild(r, &e->shape);
        return;
    case 3:
        if (e)
            e->dtype = fuzz_dtype_any(r);
        return;
    case 4: /* one array twice */
        if (e && !c->variables[e->index].state &&
            !c->variables[c->entries[c->edges[n->first_edge]].index].state)
            c->edges[at] = c->edges[n->first_edge];
        return;
    case 5:
        if (fuzz_chance(r, 30))
            inputs_spoil(c, r);
        return;
    default:
        attr_spoil(c, r, def);
    }
}

void fuzz_make_op(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r)
{
    const tni_opdef *def = m->ops[c->number % m->op_count];
    const fuzz_feed none = {NULL, 0, 0};
    bool good = false;

    fuzz_make_flags(c, r);
    for (int i = 0; i < 64 && !c->node_count; i++) /* a call may have more arguments than a case */
        good = fuzz_node_make(c, r, def, &none, true);
    if (c->node_count && (!good || fuzz_chance(r, 35)))
        for (uint32_t i = 1 + fuzz_below(r, 3); i > 0; i--)
            spoil(c, r, def);
    for (uint32_t o = 0; c->node_count && o < c->nodes[0].out_count && o < FUZZ_HEADS_MAX; o++)
        c->heads[c->head_count++] = (fuzz_head){.entry = c->nodes[0].first_entry + o};
    fuzz_make_rest(c, r);
}
