/*
 * Composing: an atomic symbol gets its inputs, and variables for those that are missing; or variables of a
 * composed symbol are replaced. Both make new nodes and leave the given symbols as they are.
 */
#include <string.h>

#include "graph/walk.h"

typedef struct compose {
    size_t count;
    const char *const *keys;
    tni_symbol *const *args;
} compose;

static tn_status args_check(const tni_symbol *s, const compose *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (!c->args[i] || c->args[i]->ops != s->ops)
            return tni_error(TN_E_ARG, "argument %zu is missing or belongs to another context", i);
        if (c->args[i]->output_count != 1)
            return tni_error(TN_E_ARG, "argument %zu has %u outputs; take one of them", i,
                             c->args[i]->output_count);
        if (c->keys && !c->keys[i])
            return tni_error(TN_E_ARG, "argument %zu has no name", i);
    }
    return TN_OK;
}

static tn_status np_shape_inherit(const tni_symbol *s, const compose *c, tni_symbol *out)
{
    out->np_shape = s->np_shape;
    for (size_t i = 0; i < c->count; i++)
        out->np_shape = out->np_shape || c->args[i]->np_shape;
    return TN_OK;
}

/* ---- atomic symbols ------------------------------------------------------------------------------ */

static tn_status input_unknown(const tni_opdef *def, const tni_args *args, const char *key)
{
    tni_str text;
    tn_status st;
    char name[TN_NAME_MAX + 32];

    tni_str_init(&text, 1024);
    for (uint32_t i = 0; i < args->in_count && i < 8; i++)
        if (!tni_op_input_name(def, args, i, name, sizeof name))
            tni_str_addf(&text, "%s%s", i ? ", " : "", name);
    st = tni_error(TN_E_KEY, "%s has no input \"%.80s\"; it takes %.300s", def->op->name, key,
                   text.text ? text.text : "none");
    tni_str_fini(&text);
    return st;
}

static tn_status input_find(const tni_opdef *def, const tni_args *args, const char *key, uint32_t *out)
{
    char name[TN_NAME_MAX + 32];

    for (uint32_t i = 0; i < args->in_count; i++) {
        tn_status st = tni_op_input_name(def, args, i, name, sizeof name);

        if (st)
            return st;
        if (strcmp(name, key) == 0) {
            *out = i;
            return TN_OK;
        }
    }
    return input_unknown(def, args, key);
}

/* Puts the given arguments in their places; the others stay NULL. */
static tn_status inputs_place(const tni_node *n, const compose *c, const tni_args *args, tni_entry *inputs)
{
    if (c->count > args->in_count)
        return tni_error(TN_E_ARG, "%s takes %u inputs, but %zu are given", n->def->op->name, args->in_count,
                         c->count);
    for (size_t i = 0; i < c->count; i++) {
        uint32_t place = (uint32_t)i;
        tn_status st = c->keys ? input_find(n->def, args, c->keys[i], &place) : TN_OK;

        if (st)
            return st;
        if (inputs[place].node)
            return tni_error(TN_E_KEY, "%s: input \"%.80s\" is given twice", n->def->op->name, c->keys[i]);
        inputs[place] = c->args[i]->outputs[0];
    }
    return TN_OK;
}

/* A variable NAME_weight for an input that nobody gave; it takes over the node's attributes, as in MXNet. */
static tn_status input_make(const tni_node *n, const tni_args *args, uint32_t place, tni_entry *input)
{
    char own[TN_NAME_MAX + 32], name[2 * TN_NAME_MAX + 64];
    tni_node *v = NULL;
    tn_status st = tni_op_input_name(n->def, args, place, own, sizeof own);

    if (st)
        return st;
    snprintf(name, sizeof name, "%s%s%s", tni_node_name(n), *tni_node_name(n) ? "_" : "", own);
    if ((st = tni_node_create(NULL, NULL, name, &v)) || (st = tni_node_dict_copy(v, n))) {
        tni_node_release(v);
        return st;
    }
    *input = (tni_entry){v, 0, 0};
    return TN_OK;
}

static tn_status inputs_fill(tni_node *n, const compose *c, const tni_args *args)
{
    tni_entry *inputs = tni_calloc(args->in_count, sizeof *inputs);
    uint8_t *made = tni_calloc(args->in_count, 1);
    tn_status st = inputs && made ? inputs_place(n, c, args, inputs) : TN_E_NOMEM;

    for (uint32_t i = 0; i < args->in_count && !st; i++) {
        if (inputs[i].node)
            continue;
        st = input_make(n, args, i, &inputs[i]);
        made[i] = st == TN_OK;
    }
    if (!st)
        st = tni_node_connect(n, args->in_count, inputs);
    if (!st)
        st = tni_node_init_hints(n);
    for (uint32_t i = 0; i < args->in_count && inputs && made; i++)
        if (made[i])
            tni_node_release(inputs[i].node);
    tni_free(inputs);
    tni_free(made);
    return st;
}

/* A variadic operator counts its inputs in an attribute: it is set from what is given. */
static tn_status count_set(tni_node *n, size_t given)
{
    tni_attrs *with = NULL;
    char text[24];
    tn_status st;

    if (!n->def->variadic || n->def->count_attr < 0 ||
        (n->attrs->given[n->def->count_attr / 64] >> (n->def->count_attr % 64) & 1))
        return TN_OK;
    st = tni_attrs_with(n->attrs, (uint32_t)n->def->count_attr, (tn_value)given, &with);
    if (st)
        return st;
    tni_attrs_release(n->attrs);
    n->attrs = with;
    snprintf(text, sizeof text, "%zu", given);
    return tni_node_dict_set(n, n->def->op->attrs[n->def->count_attr].name, text);
}

static tn_status node_make(const tni_node *atomic, const char *name, const compose *c, tni_node **out)
{
    char *given = NULL;
    tni_node *n = NULL;
    tni_args args;
    tn_status st;

    if (!name && !atomic->name) {
        if ((st = tni_name_auto(atomic->def->op->name, &given)))
            return st;
        name = given;
    }
    if ((st = tni_node_clone(atomic, name ? name : atomic->name, &n)) || (st = count_set(n, c->count)) ||
        (st = tni_op_args(n->def, n->attrs, n->def->count_attr >= 0 ? -1 : (int64_t)c->count, &args)) ||
        (st = inputs_fill(n, c, &args)))
        goto cleanup;
    *out = n; /* moved */
    n = NULL;

cleanup:
    tni_node_release(n);
    tni_free(given);
    return st;
}

static tn_status atomic_compose(const tni_symbol *s, const char *name, const compose *c, tni_symbol **out)
{
    tni_entry *outputs = NULL;
    tni_node *n = NULL;
    tn_status st = node_make(s->outputs[0].node, name, c, &n);

    if (st)
        return st;
    outputs = tni_calloc(n->visible_count, sizeof *outputs);
    if (!outputs)
        st = TN_E_NOMEM;
    for (uint32_t i = 0; !st && i < n->visible_count; i++)
        outputs[i] = (tni_entry){n, i, 0};
    if (!st)
        st = tni_symbol_create(s->ops, n->visible_count, outputs, out);
    if (!st)
        st = np_shape_inherit(s, c, *out);
    tni_free(outputs);
    tni_node_release(n);
    return st;
}

/* ---- substitution -------------------------------------------------------------------------------- */

typedef struct rebuild {
    tni_walk walk;
    tni_entry *entry; /* per node: what stands for it now; index counts from there */
    uint32_t variables;
} rebuild;

/* Which argument replaces variable number `index`, called `name`; count: none. */
static size_t replacement(const compose *c, uint32_t index, const char *name)
{
    if (!c->keys)
        return index < c->count ? index : c->count;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->keys[i], name) == 0)
            return i;
    return c->count;
}

static tn_status node_rebuild(rebuild *r, uint32_t i)
{
    const tni_node *n = r->walk.nodes[i];
    tni_entry *inputs = tni_calloc(n->input_count, sizeof *inputs);
    tni_node *copy = NULL;
    bool changed = false;
    tn_status st = inputs ? TN_OK : TN_E_NOMEM;

    for (uint32_t k = 0; k < n->input_count && !st; k++) {
        const tni_entry *now = &r->entry[tni_walk_index(&r->walk, n->inputs[k].node)];

        changed = changed || now->node != n->inputs[k].node;
        inputs[k] = now->node == n->inputs[k].node
                        ? n->inputs[k]
                        : (tni_entry){now->node, now->index + n->inputs[k].index, 0};
    }
    if (!st && changed) {
        st = tni_node_clone(n, n->name, &copy);
        if (!st && (st = tni_node_connect(copy, n->input_count, inputs))) {
            tni_node_release(copy);
            copy = NULL;
        }
    }
    if (!st)
        r->entry[i] = (tni_entry){copy ? copy : tni_node_retain((tni_node *)n), 0, 0};
    tni_free(inputs);
    return st;
}

static tn_status rebuild_node(rebuild *r, const compose *c, uint32_t i, uint8_t *used)
{
    tni_node *n = r->walk.nodes[i];
    size_t arg;

    if (n->def)
        return node_rebuild(r, i);
    arg = replacement(c, r->variables++, tni_node_name(n));
    if (arg == c->count) {
        r->entry[i] = (tni_entry){tni_node_retain(n), 0, 0};
        return TN_OK;
    }
    used[arg] = 1;
    r->entry[i] = c->args[arg]->outputs[0];
    tni_node_retain(r->entry[i].node);
    return TN_OK;
}

static tn_status rebuild_finish(const rebuild *r, const tni_symbol *s, tni_symbol **out)
{
    tni_entry *outputs = tni_calloc(s->output_count, sizeof *outputs);
    tn_status st;

    if (!outputs)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->output_count; i++) {
        outputs[i] = r->entry[tni_walk_index(&r->walk, s->outputs[i].node)];
        outputs[i].index += s->outputs[i].index;
    }
    st = tni_symbol_create(s->ops, s->output_count, outputs, out);
    tni_free(outputs);
    return st;
}

static tn_status all_used(const compose *c, const uint8_t *used)
{
    for (size_t i = 0; i < c->count; i++)
        if (!used[i])
            return c->keys ? tni_error(TN_E_KEY, "the symbol has no variable \"%.80s\"", c->keys[i])
                           : tni_error(TN_E_ARG, "%zu symbols are given for fewer variables", c->count);
    return TN_OK;
}

static tn_status substitute(const tni_symbol *s, const compose *c, tni_symbol **out)
{
    rebuild r = {0};
    tni_walk depth_first = {0};
    uint8_t *used = tni_calloc(c->count, 1);
    tn_status st = used ? tni_walk_of(s, &depth_first) : TN_E_NOMEM;

    if (!st) /* new nodes are made now, in the order in which the old ones were: as if the symbol
              * was called */
        st = tni_walk_by_creation(&depth_first, &r.walk);
    if (!st && !(r.entry = tni_calloc(r.walk.count, sizeof *r.entry)))
        st = TN_E_NOMEM;
    for (uint32_t i = 0; i < r.walk.count && !st; i++)
        st = rebuild_node(&r, c, i, used);
    if (!st && !(st = all_used(c, used)) && !(st = rebuild_finish(&r, s, out)))
        st = np_shape_inherit(s, c, *out);
    for (uint32_t i = 0; i < r.walk.count && r.entry; i++)
        tni_node_release(r.entry[i].node);
    tni_free(r.entry);
    tni_walk_fini(&r.walk);
    tni_walk_fini(&depth_first);
    tni_free(used);
    return st;
}

tn_status tni_symbol_compose(tni_symbol *s, const char *name, size_t count, const char *const *keys,
                             tni_symbol *const *args, tni_symbol **out)
{
    const compose c = {count, keys, args};
    const tni_node *head = s->outputs[0].node;
    tn_status st = args_check(s, &c);

    if (st)
        return st;
    if (s->output_count == 1 && head->def && !head->inputs)
        return atomic_compose(s, name, &c, out);
    if (name && *name)
        return tni_error(TN_E_ARG, "a composed symbol cannot be named \"%.80s\"", name);
    return substitute(s, &c, out);
}
