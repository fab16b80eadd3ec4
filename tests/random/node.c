/*
 * One node that fits: attributes and inputs are drawn until the operator's own inference accepts them. It is
 * asked with some inputs known, fills in what follows, and is asked again once the rest was guessed.
 */
#include "make.h"

#include <string.h>

#define TRIES_MAX 16u
#define INPUTS_MAX 80u

typedef struct trial { /* one node that is being drawn */
    const tni_opdef *def;
    tni_attrs *attrs;
    tni_args args;
    tn_shape shapes[2 * INPUTS_MAX];
    tn_shape *in[INPUTS_MAX], *out[INPUTS_MAX];
    int32_t in_dtype[INPUTS_MAX], out_dtype[INPUTS_MAX];
    uint32_t from[INPUTS_MAX]; /* entries; FUZZ_NONE: a new variable */
} trial;

/* ---- attributes ---------------------------------------------------------------------------------------- */

static void attr_add(fuzz_case *c, uint32_t name, uint32_t text)
{
    c->attrs[c->attr_count++] = (fuzz_attr){name, text};
}

/* Attributes that must be given, and some of the others. A variadic operator gets `count` inputs. */
static void attrs_draw(fuzz_case *c, fuzz_rng *r, const tni_opdef *def, const tn_shape *like, uint32_t count)
{
    const uint32_t percent = fuzz_chance(r, 30) ? 0 : 40;

    for (uint32_t i = 0; i < def->attr_count; i++) {
        const tn_attr_def *d = &def->op->attrs[i];
        uint32_t name;

        if (d->flags & TN_ATTR_F_COUNT) {
            name = fuzz_text(c, "%s", d->name);
            attr_add(c, name, fuzz_text(c, "%u", count));
        } else if (!d->default_text || fuzz_chance(r, percent)) {
            name = fuzz_text(c, "%s", d->name);
            attr_add(c, name, fuzz_attr_fit(c, r, d, like));
        }
    }
}

static tn_status attrs_read(const fuzz_case *c, uint32_t first, const tni_opdef *def, tni_attrs **out)
{
    const char *names[128], *texts[128];
    uint32_t count = c->attr_count - first;

    for (uint32_t i = 0; i < count; i++) {
        names[i] = fuzz_text_at(c, c->attrs[first + i].name);
        texts[i] = fuzz_text_at(c, c->attrs[first + i].text);
    }
    return tni_attrs_parse(def, count, names, texts, out);
}

/* ---- inference ----------------------------------------------------------------------------------------- */

static tn_status infer(const fuzz_case *c, trial *t)
{
    const uint32_t flags =
        (c->flags & FUZZ_NP_SHAPE ? TN_INFER_NP_SHAPE : 0u) | (c->flags & FUZZ_TRAIN ? TN_INFER_TRAIN : 0u);
    tn_status st = tni_op_infer_dtype(t->def, t->attrs, &t->args, t->in_dtype, t->out_dtype);

    for (int round = 0; round < 2 && !st; round++)
        st = tni_op_infer_shape(t->def, t->attrs, &t->args, flags, t->in, t->out);
    return st;
}

static void known(const fuzz_case *c, trial *t, uint32_t i, uint32_t entry)
{
    t->from[i] = entry;
    *t->in[i] = c->entries[entry].shape;
    t->in_dtype[i] = c->entries[entry].dtype;
}

static void trial_init(trial *t)
{
    for (uint32_t i = 0; i < INPUTS_MAX; i++) {
        t->in[i] = &t->shapes[i];
        t->out[i] = &t->shapes[INPUTS_MAX + i];
        t->in[i]->ndim = t->out[i]->ndim = TN_NDIM_UNKNOWN;
        t->in_dtype[i] = t->out_dtype[i] = TN_DTYPE_UNKNOWN;
        t->from[i] = FUZZ_NONE;
    }
}

/* What inference left open: shapes related to the first input's, the data types of indices or the same. What
 * follows from the guess of one input is inferred before that of the next one. */
static void guess(const fuzz_case *c, fuzz_rng *r, trial *t)
{
    static const int32_t indices[] = {TN_I32, TN_I64, TN_F32};

    for (uint32_t i = 0; i < t->args.in_count && i < INPUTS_MAX; i++) {
        if (t->in[i]->ndim < 0 && t->in[0]->ndim < 0)
            fuzz_shape_fit(r, t->in[i]);
        else if (t->in[i]->ndim < 0)
            fuzz_shape_like(r, t->in[0], t->in[i]);
        for (int32_t d = 0; d < t->in[i]->ndim; d++)
            if (t->in[i]->dim[d] < 0)
                t->in[i]->dim[d] = 1 + (int64_t)fuzz_below(r, fuzz_chance(r, 80) ? 4 : 12);
        if (t->in_dtype[i] < 0)
            t->in_dtype[i] = i && fuzz_chance(r, 50) ? FUZZ_PICK(r, indices) : t->in_dtype[0];
        if (t->in_dtype[i] < 0)
            t->in_dtype[i] = TN_F32;
        if (i < t->args.in_count - 1 && t->args.in_count < 8)
            (void)infer(c, t);
    }
}

static bool sizes_fit(const trial *t)
{
    for (uint32_t i = 0; i < t->args.in_count; i++)
        if (!tn_shape_known(t->in[i]) || fuzz_elements(t->in[i]) > FUZZ_ELEMENTS_MAX)
            return false;
    for (uint32_t i = 0; i < t->args.out_count; i++)
        if (fuzz_elements(t->out[i]) > FUZZ_ELEMENTS_MAX)
            return false;
    return true;
}

/* ---- the node ------------------------------------------------------------------------------------------ */

static void state_note(fuzz_variable *v)
{
    v->state = true;
    if (v->form == FUZZ_STRETCHED)
        v->form = FUZZ_DENSE; /* each element is written apart */
}

static void node_add(fuzz_case *c, fuzz_rng *r, const trial *t, uint32_t first_attr)
{
    const tn_op *op = t->def->op;
    const uint32_t visible = t->attrs ? t->args.visible_count : 1;
    uint32_t aliases = 0;
    fuzz_node n = {.first_attr = first_attr,
                   .attr_count = c->attr_count - first_attr,
                   .in_count = t->args.in_count,
                   .out_count = visible,
                   .inplace = FUZZ_NONE,
                   .counted = true,
                   .view = (op->flags & TN_OP_VIEW) != 0};
    uint32_t entries[INPUTS_MAX];

    while (op->aliases && op->aliases[aliases])
        aliases++;
    n.op = aliases && fuzz_chance(r, 10) ? fuzz_text(c, "%s", op->aliases[fuzz_below(r, aliases)])
                                         : fuzz_text(c, "%s", op->name);
    for (uint32_t i = 0; i < n.in_count; i++) {
        entries[i] = t->from[i] == FUZZ_NONE ? fuzz_variable_add(c, r, t->in_dtype[i], t->in[i]) : t->from[i];
        if (tn_op_mutates(op, n.in_count, i) && t->from[i] == FUZZ_NONE)
            state_note(&c->variables[c->variable_count - 1]);
    }
    n.first_edge = c->edge_count;
    for (uint32_t i = 0; i < n.in_count; i++)
        c->edges[c->edge_count++] = entries[i];
    n.first_entry = c->entry_count;
    for (uint32_t o = 0; o < visible; o++)
        fuzz_entry_add(c, c->node_count, o, t->out_dtype[o], t->out[o]);
    c->nodes[c->node_count++] = n;
}

static bool room_for(const fuzz_case *c, const trial *t)
{
    const uint32_t in = t->args.in_count, out = t->args.visible_count;

    return in <= INPUTS_MAX && t->args.out_count <= INPUTS_MAX && c->node_count < FUZZ_NODES_MAX &&
           c->variable_count + in <= FUZZ_VARIABLES_MAX && c->edge_count + in <= FUZZ_EDGES_MAX &&
           c->entry_count + in + out <= FUZZ_ENTRIES_MAX && c->attr_count + 32 <= FUZZ_ATTRS_MAX;
}

/* Inputs from the feed; the first one decides the rest, so it is drawn before the attributes. */
static void inputs_draw(fuzz_case *c, fuzz_rng *r, trial *t, const fuzz_feed *feed)
{
    for (uint32_t i = 1; i < t->args.in_count && i < INPUTS_MAX; i++) {
        const bool state = tn_op_mutates(t->def->op, t->args.in_count, i); /* is nobody else's */

        if (feed->count && !state && fuzz_chance(r, feed->percent))
            known(c, t, i, feed->entries[fuzz_below(r, feed->count)]);
        else if (i < 64 && !state && fuzz_chance(r, 5) && t->in[0]->ndim >= 0)
            fuzz_shape_like(r, t->in[0], t->in[i]);
    }
}

static bool attempt(fuzz_case *c, fuzz_rng *r, trial *t, const fuzz_feed *feed, uint32_t first_attr)
{
    const uint32_t few = 1 + fuzz_below(r, 4), count = fuzz_chance(r, 2) ? 60 + fuzz_below(r, 15) : few;
    const bool has_input = t->def->input_count || t->def->variadic;

    trial_init(t);
    if (has_input && feed->count && !(t->def->op->mutates & 1u) && fuzz_chance(r, feed->percent)) {
        known(c, t, 0, feed->entries[fuzz_below(r, feed->count)]);
    } else if (has_input) {
        if (fuzz_chance(r, 90)) /* else it follows from attributes, or is guessed */
            fuzz_shape_fit(r, t->in[0]);
        t->in_dtype[0] = fuzz_dtype_fit(r);
    }
    attrs_draw(c, r, t->def, t->in[0], t->def->variadic ? count : 0);
    t->args = (tni_args){.in_count = has_input, .out_count = 1, .visible_count = 1};
    if (attrs_read(c, first_attr, t->def, &t->attrs) ||
        tni_op_args(t->def, t->attrs, t->def->variadic ? (int64_t)count : -1, &t->args) || !room_for(c, t)) {
        if (t->in[0]->ndim < 0)
            fuzz_shape_fit(r, t->in[0]);
        return false;
    }
    inputs_draw(c, r, t, feed);
    if (!infer(c, t)) {
        guess(c, r, t);
        if (!infer(c, t) && sizes_fit(t))
            return true;
    }
    guess(c, r, t); /* a case that is refused needs arrays, too */
    return false;
}

bool fuzz_node_make(fuzz_case *c, fuzz_rng *r, const tni_opdef *def, const fuzz_feed *feed, bool keep)
{
    static trial t;
    const fuzz_mark mark = fuzz_case_mark(c);
    bool done = false;

    t.def = def;
    for (uint32_t i = 0; i < TRIES_MAX && !done; i++) {
        fuzz_case_cut(c, &mark);
        tni_attrs_release(t.attrs);
        t.attrs = NULL;
        done = attempt(c, r, &t, feed, mark.attrs);
    }
    if ((done || keep) && room_for(c, &t) && (done || t.args.in_count == 0 || tn_shape_known(t.in[0]))) {
        node_add(c, r, &t, mark.attrs);
        if (!t.attrs)
            c->nodes[c->node_count - 1].counted = false;
    } else {
        fuzz_case_cut(c, &mark);
        done = false;
    }
    tni_attrs_release(t.attrs);
    t.attrs = NULL;
    return done;
}
