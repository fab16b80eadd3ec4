/*
 * The topological order of a symbol. Depth first with a stack of our own, so a chain of a million nodes is no
 * danger; a node is entered once, at its first sight, which gives exactly the order that MXNet writes to
 * files. The order of creation is the same walk with the nodes as its roots, the first made first: a node
 * that was substituted into an older one still comes before it.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/walk.h"

#define SLOTS_FIRST 64u

typedef struct frame {
    tni_node *node;
    uint32_t next; /* input to look at */
} frame;

typedef struct seen { /* nodes entered so far */
    const tni_node **slots;
    size_t slot_count, count;
} seen;

static uint64_t pointer_hash(const void *p)
{
    uint64_t x = (uint64_t)(uintptr_t)p >> 4;

    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 29);
}

static bool seen_place(seen *s, const tni_node *n)
{
    size_t at = (size_t)pointer_hash(n) & (s->slot_count - 1);

    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1))
        if (s->slots[at] == n)
            return false;
    s->slots[at] = n;
    s->count++;
    return true;
}

/* *fresh: the node was not there before. */
static tn_status seen_add(seen *s, const tni_node *n, bool *fresh)
{
    if ((s->count + 1) * 2 > s->slot_count) {
        seen larger = {.slot_count = s->slot_count ? s->slot_count * 2 : SLOTS_FIRST};

        larger.slots = tni_calloc(larger.slot_count, sizeof *larger.slots);
        if (!larger.slots)
            return TN_E_NOMEM;
        for (size_t i = 0; i < s->slot_count; i++)
            if (s->slots[i])
                seen_place(&larger, s->slots[i]);
        tni_free(s->slots);
        *s = larger;
    }
    *fresh = seen_place(s, n);
    return TN_OK;
}

static tn_status table_build(tni_walk *w)
{
    uint32_t slot_count = SLOTS_FIRST;

    while (slot_count < w->count * 2)
        slot_count *= 2;
    w->slots = tni_alloc((uint64_t)slot_count * sizeof *w->slots);
    if (!w->slots)
        return TN_E_NOMEM;
    memset(w->slots, 0xff, slot_count * sizeof *w->slots);
    w->slot_count = slot_count;
    for (uint32_t i = 0; i < w->count; i++) {
        size_t at = (size_t)pointer_hash(w->nodes[i]) & (slot_count - 1);

        while (w->slots[at] != TNI_NONE)
            at = (at + 1) & (slot_count - 1);
        w->slots[at] = i;
    }
    return TN_OK;
}

static tn_status enter(tni_vec *stack, seen *s, tni_node *n)
{
    const frame f = {.node = n};
    bool fresh = false;
    tn_status st = seen_add(s, n, &fresh);

    return st || !fresh ? st : tni_vec_push(stack, &f);
}

typedef struct order { /* a walk on its way */
    tni_vec stack, nodes;
    seen met;
} order;

static void order_init(order *o)
{
    memset(o, 0, sizeof *o);
    tni_vec_init(&o->stack, sizeof(frame), TN_GRAPH_NODES_MAX);
    tni_vec_init(&o->nodes, sizeof(tni_node *), TN_GRAPH_NODES_MAX);
}

static void order_fini(order *o)
{
    tni_free(o->met.slots);
    tni_vec_fini(&o->stack);
    tni_vec_fini(&o->nodes);
}

/* Appends what `root` needs and was not met before, then `root`. */
static tn_status order_add(order *o, tni_node *root)
{
    tn_status st = enter(&o->stack, &o->met, root);

    while (!st && o->stack.count > 0) {
        frame *top = tni_vec_at(&o->stack, o->stack.count - 1);

        if (top->next < top->node->input_count) {
            st = enter(&o->stack, &o->met, top->node->inputs[top->next++].node);
        } else {
            st = tni_vec_push(&o->nodes, &top->node);
            o->stack.count--;
        }
    }
    return st;
}

static tn_status order_finish(order *o, tni_walk *out)
{
    tn_status st;

    out->nodes = o->nodes.data;
    out->count = (uint32_t)o->nodes.count;
    o->nodes.data = NULL; /* moved */
    if ((st = table_build(out)))
        tni_walk_fini(out);
    return st;
}

tn_status tni_walk_of(const tni_symbol *s, tni_walk *out)
{
    order o;
    tn_status st = TN_OK;

    memset(out, 0, sizeof *out);
    order_init(&o);
    for (uint32_t i = 0; i < s->output_count && !st; i++)
        st = order_add(&o, s->outputs[i].node);
    if (!st)
        st = order_finish(&o, out);
    order_fini(&o);
    return st;
}

/* ---- order of creation --------------------------------------------------------------------------- */

/* Operators that stand in the order of their creation already: the usual case. */
static bool is_by_creation(const tni_walk *w)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < w->count; i++) {
        if (!w->nodes[i]->def)
            continue;
        if (w->nodes[i]->created < last)
            return false;
        last = w->nodes[i]->created;
    }
    return true;
}

static int created_compare(const void *a, const void *b)
{
    const tni_node *x = *(tni_node *const *)a, *y = *(tni_node *const *)b;

    return x->created < y->created ? -1 : x->created > y->created;
}

tn_status tni_walk_by_creation(const tni_walk *w, tni_walk *out)
{
    tni_node **roots = tni_calloc(w->count, sizeof(*roots));
    uint32_t count = 0, variables;
    bool sorted = is_by_creation(w);
    order o;
    tn_status st = roots ? TN_OK : TN_E_NOMEM;

    memset(out, 0, sizeof *out);
    order_init(&o);
    for (uint32_t i = 0; i < w->count && !st; i++)
        if (sorted || !w->nodes[i]->def)
            roots[count++] = w->nodes[i];
    variables = count;
    for (uint32_t i = 0; i < w->count && !st && !sorted; i++)
        if (w->nodes[i]->def)
            roots[count++] = w->nodes[i];
    if (!st && !sorted)
        qsort(roots + variables, count - variables, sizeof(*roots), created_compare);
    for (uint32_t i = 0; i < count && !st; i++)
        st = order_add(&o, roots[i]);
    if (!st)
        st = order_finish(&o, out);
    order_fini(&o);
    tni_free(roots);
    return st;
}

void tni_walk_fini(tni_walk *w)
{
    tni_free(w->nodes);
    tni_free(w->slots);
    memset(w, 0, sizeof *w);
}

uint32_t tni_walk_index(const tni_walk *w, const tni_node *n)
{
    size_t at = (size_t)pointer_hash(n) & (w->slot_count - 1);

    for (; w->slots[at] != TNI_NONE; at = (at + 1) & (w->slot_count - 1))
        if (w->nodes[w->slots[at]] == n)
            return w->slots[at];
    return TNI_NONE;
}
