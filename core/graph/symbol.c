/*
 * Symbols: lists of outputs of shared, reference-counted nodes. A node never changes once it is connected,
 * apart from its dict (tni_symbol_attr_set) and its count of mutations, so symbols share nodes freely and
 * cycles cannot arise. Releasing walks a list of dead nodes instead of calling itself: a chain of a million
 * nodes is no danger.
 */
#include <string.h>

#include "graph/walk.h"

#define DICT_MAX 4096u /* attributes of one node */

static atomic_uint_fast64_t created_next = 1;

/* ---- nodes --------------------------------------------------------------------------------------- */

tn_status tni_node_create(const tni_opdef *def, const tni_attrs *attrs, const char *name, tni_node **out)
{
    tni_node *n;

    if (name && strlen(name) > TN_NAME_MAX)
        return tni_error(TN_E_ARG, "a name of %zu bytes, at most %d are allowed", strlen(name), TN_NAME_MAX);
    n = tni_zalloc(sizeof *n);
    if (!n)
        return TN_E_NOMEM;
    if (name && !(n->name = tni_strdup(name))) {
        tni_free(n);
        return TN_E_NOMEM;
    }
    tni_ref_init(&n->refs);
    atomic_init(&n->mutations, 0);
    n->def = def;
    n->attrs = attrs ? tni_attrs_retain(attrs) : NULL;
    n->output_count = n->visible_count = 1;
    n->created = atomic_fetch_add_explicit(&created_next, 1, memory_order_relaxed);
    *out = n;
    return TN_OK;
}

tn_status tni_node_clone(const tni_node *n, const char *name, tni_node **out)
{
    tni_node *copy = NULL;
    tn_status st = tni_node_create(n->def, n->attrs, name, &copy);

    if (st)
        return st;
    if ((st = tni_node_dict_copy(copy, n)))
        goto cleanup;
    if (n->subgraph_count) {
        copy->subgraphs = tni_calloc(n->subgraph_count, sizeof *copy->subgraphs);
        if (!copy->subgraphs) {
            st = TN_E_NOMEM;
            goto cleanup;
        }
        for (uint32_t i = 0; i < n->subgraph_count; i++) {
            tni_symbol_retain(n->subgraphs[i]);
            copy->subgraphs[copy->subgraph_count++] = n->subgraphs[i];
        }
    }
    *out = copy; /* moved */
    return TN_OK;

cleanup:
    tni_node_release(copy);
    return st;
}

/* Counts of a node that is about to have `count` inputs. */
static tn_status outputs_count(tni_node *n, uint32_t count)
{
    tni_args args;
    tn_status st = tni_op_args(n->def, n->attrs, count, &args);

    if (st)
        return st;
    if (args.in_count != count)
        return tni_error(TN_E_ARG, "%s \"%.80s\" takes %u inputs, but has %u", n->def->op->name,
                         tni_node_name(n), args.in_count, count);
    n->output_count = args.out_count;
    n->visible_count = args.visible_count;
    return TN_OK;
}

tn_status tni_node_connect(tni_node *n, uint32_t count, const tni_entry *inputs)
{
    tn_status st = outputs_count(n, count);

    if (st)
        return st;
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i].node->def && tn_op_mutates(n->def->op, count, i))
            return tni_error(TN_E_ARG,
                             "%s \"%.80s\" changes its input %u, which must be a variable, not \"%.80s\"",
                             n->def->op->name, tni_node_name(n), i, tni_node_name(inputs[i].node));
    n->inputs = tni_calloc(count, sizeof *n->inputs);
    if (!n->inputs)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        tni_node *source = inputs[i].node;
        bool changes = tn_op_mutates(n->def->op, count, i);

        n->inputs[i] = inputs[i];
        tni_node_retain(source);
        if (changes)
            n->inputs[i].version =
                1u + atomic_fetch_add_explicit(&source->mutations, 1u, memory_order_relaxed);
        else if (!source->def)
            n->inputs[i].version = atomic_load_explicit(&source->mutations, memory_order_relaxed);
    }
    n->input_count = count;
    return TN_OK;
}

tni_node *tni_node_retain(tni_node *n)
{
    tni_ref_retain(&n->refs);
    return n;
}

void tni_dict_destroy(tni_map *dict)
{
    size_t cursor = 0;
    void *text;

    while (dict && tni_map_next(dict, &cursor, NULL, &text))
        tni_free(text);
    tni_map_destroy(dict);
}

static void node_free(tni_node *n)
{
    for (uint32_t i = 0; i < n->subgraph_count; i++)
        tni_symbol_release(n->subgraphs[i]);
    tni_free(n->subgraphs);
    tni_attrs_release(n->attrs);
    tni_dict_destroy(n->dict);
    tni_free(n->inputs);
    tni_free(n->name);
    tni_free(n);
}

void tni_node_release(tni_node *n)
{
    tni_node *dead = NULL;

    if (!n || !tni_ref_release(&n->refs))
        return;
    n->next_dead = NULL;
    dead = n;
    while (dead) {
        n = dead;
        dead = n->next_dead;
        for (uint32_t i = 0; i < n->input_count; i++) {
            tni_node *source = n->inputs[i].node;

            if (tni_ref_release(&source->refs)) {
                source->next_dead = dead;
                dead = source;
            }
        }
        node_free(n);
    }
}

/* ---- dicts --------------------------------------------------------------------------------------- */

tn_status tni_node_dict_set(tni_node *n, const char *key, const char *text)
{
    void *old = NULL;
    char *copy;
    tn_status st;

    if (!n->dict && (st = tni_map_create(DICT_MAX, &n->dict)))
        return st;
    copy = tni_strdup(text);
    if (!copy)
        return TN_E_NOMEM;
    tni_map_get(n->dict, key, &old);
    st = tni_map_set(n->dict, key, copy);
    tni_free(st ? copy : old);
    return st;
}

const char *tni_node_dict_get(const tni_node *n, const char *key)
{
    void *text;

    return n->dict && tni_map_get(n->dict, key, &text) ? text : NULL;
}

tn_status tni_node_dict_copy(tni_node *to, const tni_node *from)
{
    size_t cursor = 0;
    const char *key;
    void *text;
    tn_status st = TN_OK;

    while (!st && from->dict && tni_map_next(from->dict, &cursor, &key, &text))
        if (!tni_node_dict_get(to, key))
            st = tni_node_dict_set(to, key, text);
    return st;
}

static tn_status dict_fill_one(tni_node *n, const char *name, const char *given)
{
    int32_t index = tni_attr_index(n->def, name);
    tni_str text;
    tn_status st;

    if (index < 0)
        return TN_OK;
    if (n->def->op->attrs[index].type != TN_ATTR_T_DTYPE)
        return tni_node_dict_set(n, name, given);
    tni_str_init(&text, TN_TEXT_MAX);
    st = tni_attr_format(&n->def->op->attrs[index], n->attrs->values[index], &text);
    if (!st)
        st = tni_node_dict_set(n, name, text.text ? text.text : "");
    tni_str_fini(&text);
    return st;
}

tn_status tni_node_dict_fill(tni_node *n, size_t count, const char *const *names, const char *const *texts)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < count && !st; i++)
        st = dict_fill_one(n, names[i], texts[i]);
    return st;
}

tn_status tni_node_init_hints(tni_node *n)
{
    static const struct {
        const char *op, *init;
        uint32_t input;
    } hints[] = {
        {"BatchNorm", "[\"zero\", {}]", 3},
        {"BatchNorm", "[\"one\", {}]", 4},
        {"_contrib_BatchNormWithReLU", "[\"zero\", {}]", 3},
        {"_contrib_BatchNormWithReLU", "[\"one\", {}]", 4},
        {"_contrib_SyncBatchNorm", "[\"zero\", {}]", 3},
        {"_contrib_SyncBatchNorm", "[\"one\", {}]", 4},
        {"UpSampling", "[\"bilinear\", {}]", 1},
        {"LeakyReLU", "[\"Constant\", {\"value\": 0.25}]", 1},
    };
    tn_status st = TN_OK;

    for (size_t i = 0; i < sizeof hints / sizeof *hints && !st; i++) {
        tni_node *source;

        if (!n->def || strcmp(n->def->op->name, hints[i].op) != 0 || hints[i].input >= n->input_count)
            continue;
        source = n->inputs[hints[i].input].node;
        if (!source->def && !tni_node_dict_get(source, "__init__"))
            st = tni_node_dict_set(source, "__init__", hints[i].init);
    }
    return st;
}

/* ---- symbols ------------------------------------------------------------------------------------- */

tn_status tni_symbol_create(tni_opset *ops, uint32_t count, const tni_entry *outputs, tni_symbol **out)
{
    tni_symbol *s = tni_zalloc(sizeof *s);

    if (!s || !(s->outputs = tni_calloc(count, sizeof *s->outputs))) {
        tni_free(s);
        return TN_E_NOMEM;
    }
    tni_ref_init(&s->refs);
    s->ops = ops;
    for (uint32_t i = 0; i < count; i++) {
        s->outputs[i] = outputs[i];
        tni_node_retain(outputs[i].node);
    }
    s->output_count = count;
    *out = s;
    return TN_OK;
}

/* A symbol of all visible outputs of one node. [takes] n, on success only. */
static tn_status symbol_of_node(tni_opset *ops, tni_node *n, tni_symbol **out)
{
    tni_entry *outputs = tni_calloc(n->visible_count, sizeof *outputs);
    tn_status st = TN_E_NOMEM;

    if (outputs) {
        for (uint32_t i = 0; i < n->visible_count; i++)
            outputs[i] = (tni_entry){n, i, 0};
        st = tni_symbol_create(ops, n->visible_count, outputs, out);
    }
    if (!st)
        tni_node_release(n); /* the symbol holds it now */
    tni_free(outputs);
    return st;
}

void tni_symbol_retain(tni_symbol *s)
{
    tni_ref_retain(&s->refs);
}

void tni_symbol_release(tni_symbol *s)
{
    if (!s || !tni_ref_release(&s->refs))
        return;
    for (uint32_t i = 0; i < s->output_count; i++)
        tni_node_release(s->outputs[i].node);
    tni_free(s->outputs);
    tni_dict_destroy(s->graph_attrs);
    tni_free(s);
}

tn_status tni_symbol_variable(tni_opset *ops, const char *name, tni_symbol **out)
{
    tni_node *n = NULL;
    tn_status st;

    if (!name || !*name)
        return tni_error(TN_E_ARG, "a variable needs a name");
    st = tni_node_create(NULL, NULL, name, &n);
    if (!st && (st = symbol_of_node(ops, n, out)))
        tni_node_release(n);
    return st;
}

static bool hidden_key(const char *name)
{
    size_t length = strlen(name);

    return length > 4 && strncmp(name, "__", 2) == 0 && strcmp(name + length - 2, "__") == 0;
}

tn_status tni_symbol_atomic(tni_opset *ops, const char *op, size_t count, const char *const *names,
                            const char *const *texts, const char *name, tni_symbol **out)
{
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    tni_node *n = NULL;
    tn_status st;

    if ((st = tni_opset_find_offered(ops, op, &def)) ||
        (st = tni_attrs_parse(def, count, names, texts, &attrs)) ||
        (st = tni_node_create(def, attrs, name, &n)) || (st = tni_node_dict_fill(n, count, names, texts)))
        goto cleanup;
    for (size_t i = 0; i < count && !st; i++)
        if (hidden_key(names[i]))
            st = tni_node_dict_set(n, names[i], texts[i]);
    if (st)
        goto cleanup;
    st = symbol_of_node(ops, n, out);
    if (!st)
        n = NULL; /* moved */

cleanup:
    tni_node_release(n);
    tni_attrs_release(attrs);
    return st;
}

/* The union of parts: np_shape if one of them has it. */
tn_status tni_symbol_group(size_t count, tni_symbol *const *parts, tni_symbol **out)
{
    tni_vec outputs;
    tn_status st = TN_OK;

    if (count == 0)
        return tni_error(TN_E_ARG, "a group needs at least one symbol");
    tni_vec_init(&outputs, sizeof(tni_entry), TN_GRAPH_NODES_MAX);
    for (size_t i = 0; i < count && !st; i++) {
        if (!parts[i] || parts[i]->ops != parts[0]->ops)
            st = tni_error(TN_E_ARG, "part %zu of the group is missing or belongs to another context", i);
        for (uint32_t k = 0; !st && k < parts[i]->output_count; k++)
            st = tni_vec_push(&outputs, &parts[i]->outputs[k]);
    }
    if (!st)
        st = tni_symbol_create(parts[0]->ops, (uint32_t)outputs.count, outputs.data, out);
    for (size_t i = 0; i < count && !st; i++)
        (*out)->np_shape = (*out)->np_shape || parts[i]->np_shape;
    tni_vec_fini(&outputs);
    return st;
}

static tn_status symbol_of_entries(const tni_symbol *s, const tni_vec *entries, tni_symbol **out)
{
    tn_status st = tni_symbol_create(s->ops, (uint32_t)entries->count, entries->data, out);

    if (!st)
        (*out)->np_shape = s->np_shape;
    return st;
}

tn_status tni_symbol_internals(tni_symbol *s, tni_symbol **out)
{
    tni_vec outputs;
    tni_walk w;
    tn_status st = tni_walk_of(s, &w);

    if (st)
        return st;
    tni_vec_init(&outputs, sizeof(tni_entry), 2 * TN_GRAPH_NODES_MAX);
    for (uint32_t i = 0; i < w.count && !st; i++)
        for (uint32_t k = 0; k < w.nodes[i]->visible_count && !st; k++)
            st = tni_vec_push(&outputs, &(tni_entry){w.nodes[i], k, 0});
    if (!st)
        st = symbol_of_entries(s, &outputs, out);
    tni_vec_fini(&outputs);
    tni_walk_fini(&w);
    return st;
}

tn_status tni_symbol_children(tni_symbol *s, tni_symbol **out)
{
    tni_vec outputs;
    tn_status st = TN_OK;

    tni_vec_init(&outputs, sizeof(tni_entry), 2 * TN_GRAPH_NODES_MAX);
    for (uint32_t i = 0; i < s->output_count && !st; i++) {
        const tni_node *n = s->outputs[i].node;

        if (i > 0 && n == s->outputs[i - 1].node)
            continue; /* several outputs of one node */
        for (uint32_t k = 0; k < n->input_count && !st; k++)
            st = tni_vec_push(&outputs, &n->inputs[k]);
    }
    if (!st && outputs.count == 0)
        *out = NULL;
    else if (!st)
        st = symbol_of_entries(s, &outputs, out);
    tni_vec_fini(&outputs);
    return st;
}

tn_status tni_symbol_output(tni_symbol *s, uint32_t index, tni_symbol **out)
{
    tn_status st;

    if (index >= s->output_count)
        return tni_error(TN_E_ARG, "output %u, but the symbol has %u", index, s->output_count);
    st = tni_symbol_create(s->ops, 1, &s->outputs[index], out);
    if (!st)
        (*out)->np_shape = s->np_shape;
    return st;
}

/* The one node behind all outputs of `s`; NULL if there are several. */
static tni_node *head_of(const tni_symbol *s)
{
    for (uint32_t i = 1; i < s->output_count; i++)
        if (s->outputs[i].node != s->outputs[0].node)
            return NULL;
    return s->outputs[0].node;
}

tn_status tni_symbol_attr_get(tni_symbol *s, const char *key, const char **out)
{
    const tni_node *n = head_of(s);

    if (!n)
        return tni_error(TN_E_ARG, "attribute \"%s\" of a group: take one of its outputs", key);
    *out = strcmp(key, "name") == 0 ? tni_node_name(n) : tni_node_dict_get(n, key);
    return TN_OK;
}

tn_status tni_symbol_attr_set(tni_symbol *s, const char *key, const char *text)
{
    tni_node *n = head_of(s);

    if (!n || !key || !text)
        return tni_error(TN_E_ARG, "an attribute is set on one node, with a key and a text");
    if (n->def && tni_attr_index(n->def, key) >= 0)
        return tni_error(TN_E_STATE, "%s of %s was fixed when the node was made", key, n->def->op->name);
    return tni_node_dict_set(n, key, text);
}
