/*
 * Mirror: what backward reads of forward is computed again where the graph marks it for that, so that less is
 * kept between the two. An instruction that runs again has the kernel, the layouts, the threads and the draw
 * of the first time: the bits are the same. It stands right before its first reader.
 *
 * Left alone is what mutates or has effects, what reads memory that the program writes, and what reads or
 * makes the caller's outputs. Instructions that hang together run again only if their results take more bytes
 * than what has to be kept for them.
 */
#include <stdlib.h>
#include <string.h>

#include "compile/code.h"

typedef struct mirror {
    tni_code *c;
    tni_edit e;
    uint32_t first, values; /* the first instruction of backward; values that there were */
    uint8_t *written;       /* per root */
    uint8_t *read;          /* per root: backward reads it */
    uint8_t *needed;        /* per root: it does, or an instruction that runs again does */
    uint32_t *group;        /* per instruction of forward that runs again: one that it hangs together with */
    int64_t *gain;          /* per instruction that stands for a group: bytes that need not be kept */
    uint32_t *paid;         /* per root: the last group that it is kept for, and 1 */
    uint32_t *view;         /* per value that was there: its view of what is computed again; TNI_NONE */
    uint8_t *done;          /* per instruction of forward: it runs again */
    tni_vec list;           /* uint32_t: instructions to run again now */
} mirror;

/* ---- what may run again -------------------------------------------------------------------------------- */

static bool marked(const tni_code *c, const tni_instruction *in)
{
    const tni_gnode *node = &c->p->graph->nodes[in->node];

    if (in->flags & TNI_CODE_REORDER)
        return true;
    return !(in->flags & TNI_CODE_HELPER) && in->def == node->def && node->flags & TNI_GNODE_MIRROR;
}

static bool inputs_stay(const mirror *m, const tni_instruction *in)
{
    for (uint32_t k = 0; k < in->in_count; k++) {
        const tni_value *root = tni_code_value(m->c, tni_code_root(m->c, tni_code_operands(m->c, in)[k]));

        if (m->written[root->root])
            return false;
        if (root->place == TNI_PLACE_PORT &&
            ((tni_port *)tni_vec_at(&m->c->ports, root->port))->kind != TNI_PORT_INPUT)
            return false;
    }
    return true;
}

/* Results in memory of their own. What is only mutated elsewhere, and not here, counts as an input. */
static bool outputs_own(const mirror *m, uint32_t index)
{
    const tni_instruction *in = tni_code_at(m->c, index);

    for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++) {
        const uint32_t value = tni_code_operands(m->c, in)[o];
        const tni_value *v = tni_code_value(m->c, value);

        if (tni_code_modes(m->c, in)[o] == TN_MODE_NONE)
            continue;
        if (tni_code_modes(m->c, in)[o] != TN_MODE_WRITE || v->root != value || v->def != index ||
            v->place != TNI_PLACE_NONE || m->written[value])
            return false;
    }
    return true;
}

static bool may_run_again(const mirror *m, uint32_t index)
{
    const tni_instruction *in = tni_code_at(m->c, index);

    return tni_instruction_phase(in) == TNI_FORWARD && in->kind == TN_EXEC_KERNEL && marked(m->c, in) &&
           !in->def->op->effects && !in->link_count && !in->prepared->on_host &&
           !(in->prepared->kernel->flags & TN_KERNEL_ASYNC) &&
           !(in->prepared->plan.flags & TN_PLAN_RESIZES) && inputs_stay(m, in) && outputs_own(m, index);
}

/* ---- what does ----------------------------------------------------------------------------------------- */

static bool any_marked(const tni_code *c)
{
    const tni_graph *g = c->p->graph;
    bool any = false;

    for (uint32_t n = c->spec->first_node; n < g->node_count && !any; n++)
        any = (g->nodes[n].flags & TNI_GNODE_MIRROR) != 0;
    return any;
}

static void reads_note(const mirror *m)
{
    const tni_code *c = m->c;

    for (uint32_t i = m->first; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t k = 0; k < in->in_count + in->out_count; k++)
            m->read[tni_code_root(c, tni_code_operands(c, in)[k])] = 1;
    }
}

static bool makes_needed(const mirror *m, const tni_instruction *in)
{
    bool needed = false;

    for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++)
        needed |= m->needed[tni_code_operands(m->c, in)[o]];
    return needed;
}

/* The instruction that runs again and makes what an operand lies in; TNI_NONE: none. */
static uint32_t again_maker(const mirror *m, uint32_t operand)
{
    const uint32_t def = tni_code_value(m->c, tni_code_root(m->c, operand))->def;

    return def != TNI_NONE && def < m->first && m->group[def] != TNI_NONE ? def : TNI_NONE;
}

static uint32_t group_of(const mirror *m, uint32_t index)
{
    while (m->group[index] != index)
        index = m->group[index] = m->group[m->group[index]];
    return index;
}

/* From the last to the first, so that each knows all its readers. */
static void candidates_find(const mirror *m)
{
    for (uint32_t i = m->first; i-- > 0;) {
        const tni_instruction *in = tni_code_at(m->c, i);

        if (!makes_needed(m, in) || !may_run_again(m, i))
            continue;
        m->group[i] = i;
        for (uint32_t k = 0; k < in->in_count; k++)
            m->needed[tni_code_root(m->c, tni_code_operands(m->c, in)[k])] = 1;
    }
    for (uint32_t i = 0; i < m->first; i++) {
        const tni_instruction *in = tni_code_at(m->c, i);

        for (uint32_t k = 0; k < in->in_count && m->group[i] != TNI_NONE; k++) {
            const uint32_t from = again_maker(m, tni_code_operands(m->c, in)[k]);

            if (from != TNI_NONE)
                m->group[group_of(m, from)] = group_of(m, i);
        }
    }
}

/* Bytes that are kept for `group` alone. */
static int64_t price_of(const mirror *m, uint32_t operand, uint32_t group)
{
    const uint32_t root = tni_code_root(m->c, operand);
    const tni_value *v = tni_code_value(m->c, root);

    if (v->place != TNI_PLACE_NONE || m->read[root] || m->paid[root] == group + 1 ||
        again_maker(m, operand) != TNI_NONE)
        return 0;
    m->paid[root] = group + 1;
    return (int64_t)tni_value_bytes(v);
}

static void groups_weigh(const mirror *m)
{
    for (uint32_t i = 0; i < m->first; i++) {
        const tni_instruction *in = tni_code_at(m->c, i);
        const uint32_t *operand = tni_code_operands(m->c, in);
        const uint32_t group = m->group[i] == TNI_NONE ? TNI_NONE : group_of(m, i);

        for (uint32_t k = 0; k < in->in_count && group != TNI_NONE; k++)
            m->gain[group] -= price_of(m, operand[k], group);
        for (uint32_t o = in->in_count; o < in->in_count + in->out_count && group != TNI_NONE; o++)
            if (m->read[operand[o]] && tni_code_value(m->c, operand[o])->def == i)
                m->gain[group] += (int64_t)tni_value_bytes(tni_code_value(m->c, operand[o]));
    }
}

static void groups_drop(const mirror *m)
{
    for (uint32_t i = 0; i < m->first; i++)
        m->done[i] = m->group[i] != TNI_NONE && m->gain[group_of(m, i)] <= 0;
    for (uint32_t i = 0; i < m->first; i++) {
        m->group[i] = m->done[i] ? TNI_NONE : m->group[i];
        m->done[i] = 0;
    }
}

/* ---- running it again ---------------------------------------------------------------------------------- */

tn_status tni_code_again(tni_code *c, const tni_instruction *of, tni_instruction *out)
{
    const tn_plan *plan = &of->prepared->plan;
    tni_device *d = tni_code_device(c, of);
    tni_instruction made = *of;
    tn_status st = TN_OK;

    made.flags |= TNI_CODE_BACKWARD | TNI_CODE_HELPER | TNI_CODE_AGAIN;
    made.workspace = made.saved = TNI_NONE;
    if (plan->workspace_bytes)
        st = tni_code_block_add(c, d, tni_workspace_bytes(plan), &made.workspace);
    if (!st && plan->saved_bytes) /* nobody reads it: that of the first time is kept */
        st = tni_code_block_add(c, d, plan->saved_bytes, &made.saved);
    if (st)
        return st;
    tni_prepared_retain(made.prepared);
    made.attrs = tni_attrs_retain(made.attrs);
    *out = made;
    return TN_OK;
}

/* What stands for an operand in backward. */
static tn_status operand_find(mirror *m, uint32_t operand, uint32_t *out)
{
    const uint32_t root = tni_code_root(m->c, operand);
    const tni_value like = *tni_code_value(m->c, operand);
    tni_value *made;
    tn_status st;

    *out = operand;
    if (again_maker(m, operand) == TNI_NONE)
        return TN_OK;
    *out = operand == root ? tni_code_value(m->c, root)->again : m->view[operand];
    if (*out != TNI_NONE)
        return TN_OK;
    if ((st = tni_code_value_add(m->c, &like, out)))
        return st;
    tni_code_window_like(m->c, *out, &like);
    made = tni_code_value(m->c, *out);
    made->root = made->again = tni_code_value(m->c, root)->again;
    made->delta = like.delta;
    m->view[operand] = *out;
    return TN_OK;
}

static tn_status inputs_find(mirror *m, const tni_instruction *in, uint32_t *operands)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < in->in_count + in->out_count; k++)
        operands[k] = tni_code_operands(m->c, in)[k];
    for (uint32_t k = 0; k < in->in_count && !st; k++)
        st = operand_find(m, operands[k], &operands[k]);
    return st;
}

/* The caller's array must be as it was. */
static void ports_mark(const mirror *m, const tni_instruction *in, const uint32_t *operands)
{
    for (uint32_t k = 0; k < in->in_count; k++) {
        const tni_value *root = tni_code_value(m->c, tni_code_root(m->c, operands[k]));

        if (root->place == TNI_PLACE_PORT)
            ((tni_port *)tni_vec_at(&m->c->ports, root->port))->again = root->port + 1;
    }
}

static tn_status instruction_add(mirror *m, uint32_t index, uint32_t *operands)
{
    const tni_instruction in = *tni_code_at(m->c, index);
    tni_instruction made;
    tn_status st = inputs_find(m, &in, operands);

    for (uint32_t o = in.in_count; o < in.in_count + in.out_count && !st; o++) {
        const tni_value like = *tni_code_value(m->c, operands[o]);
        const uint32_t of = operands[o];

        if (like.def == index && !(st = tni_code_value_add(m->c, &like, &operands[o])))
            tni_code_value(m->c, of)->again = operands[o];
    }
    if (st || (st = tni_code_again(m->c, &in, &made)))
        return st;
    made.flags |= TNI_CODE_FRESH;
    ports_mark(m, &made, operands);
    if ((st = tni_edit_add(&m->e, &made, operands, tni_code_modes(m->c, &in))))
        tni_instruction_fini(&made);
    m->c->rewrites++;
    return st;
}

static int by_index(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static tn_status makers_list(mirror *m, const tni_instruction *in)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < in->in_count && !st; k++) {
        const uint32_t maker = again_maker(m, tni_code_operands(m->c, in)[k]);

        if (maker == TNI_NONE || m->done[maker])
            continue;
        m->done[maker] = 1;
        st = tni_vec_push(&m->list, &maker);
    }
    return st;
}

/* Everything that an instruction of backward needs and that is not there yet, in the order of forward. */
static tn_status needs_add(mirror *m, uint32_t index, uint32_t *operands)
{
    tn_status st;

    m->list.count = 0;
    st = makers_list(m, tni_code_at(m->c, index));
    for (size_t i = 0; i < m->list.count && !st; i++)
        st = makers_list(m, tni_code_at(m->c, *(uint32_t *)tni_vec_at(&m->list, i)));
    if (!st && m->list.count > 1)
        qsort(m->list.data, m->list.count, sizeof(uint32_t), by_index);
    for (size_t i = 0; i < m->list.count && !st; i++)
        st = instruction_add(m, *(uint32_t *)tni_vec_at(&m->list, i), operands);
    return st;
}

/* Backward reads what is computed again; forward stays as it is. */
static tn_status code_edit(mirror *m)
{
    tni_code *c = m->c;
    uint32_t *operands, most = 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->code.count; i++)
        if (tni_code_at(c, i)->in_count + tni_code_at(c, i)->out_count > most)
            most = tni_code_at(c, i)->in_count + tni_code_at(c, i)->out_count;
    if (!(operands = tni_calloc(most + 1u, sizeof *operands)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < c->code.count && !st; i++) {
        const tni_instruction in = *tni_code_at(c, i);

        if (i < m->first)
            st = tni_edit_keep(&m->e, i);
        else if (!(st = needs_add(m, i, operands)) && !(st = inputs_find(m, &in, operands)))
            st = tni_edit_add(&m->e, &in, operands, tni_code_modes(c, &in));
    }
    tni_free(operands);
    return st;
}

/* Views know where what they lie in is found. */
static void views_note(const mirror *m)
{
    for (uint32_t v = 0; v < m->values; v++) {
        const uint32_t root = tni_code_root(m->c, v);

        if (root != v)
            tni_code_value(m->c, v)->again = tni_code_value(m->c, root)->again;
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static tn_status mirror_init(mirror *m, tni_code *c)
{
    const uint64_t values = c->values.count + 1, code = c->code.count + 1;

    *m = (mirror){.c = c, .values = (uint32_t)c->values.count};
    tni_vec_init(&m->list, sizeof(uint32_t), c->code.max);
    while (m->first < c->code.count && !tni_instruction_backward(tni_code_at(c, m->first)))
        m->first++;
    m->read = tni_calloc(values, 1);
    m->needed = tni_calloc(values, 1);
    m->paid = tni_calloc(values, sizeof *m->paid);
    m->view = tni_alloc(values * sizeof *m->view);
    m->group = tni_alloc(code * sizeof *m->group);
    m->gain = tni_calloc(code, sizeof *m->gain);
    m->done = tni_calloc(code, 1);
    if (!m->read || !m->needed || !m->paid || !m->view || !m->group || !m->gain || !m->done)
        return TN_E_NOMEM;
    memset(m->view, 0xff, values * sizeof *m->view);
    memset(m->group, 0xff, code * sizeof *m->group);
    return tni_code_written(c, &m->written);
}

static void mirror_fini(mirror *m)
{
    tni_free(m->written);
    tni_free(m->read);
    tni_free(m->needed);
    tni_free(m->paid);
    tni_free(m->view);
    tni_free(m->group);
    tni_free(m->gain);
    tni_free(m->done);
    tni_vec_fini(&m->list);
}

tn_status tni_pass_mirror(tni_code *c)
{
    mirror m;
    tn_status st;

    if (c->spec->first_node || !any_marked(c))
        return TN_OK;
    if (!(st = mirror_init(&m, c)) && m.first < c->code.count) {
        reads_note(&m);
        memcpy(m.needed, m.read, c->values.count);
        candidates_find(&m);
        groups_weigh(&m);
        groups_drop(&m);
        tni_edit_begin(&m.e, c);
        st = code_edit(&m);
        views_note(&m);
        st = tni_edit_end(&m.e, st);
    }
    mirror_fini(&m);
    return st;
}
