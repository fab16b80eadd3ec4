/*
 * MXNet's -symbol.json, all versions from 0.8 on. jansson has checked the text behind our limits; here every
 * number is compared with its bound before it is used, inputs must come before their users, and unknown keys
 * are passed over. What older versions wrote differently is brought up to date node by node while reading
 * (mxnet_version of the file decides), so the symbol that comes out is as if 1.9 had written it.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "graph/json.h"

#define MADE_BYTES 512u         /* of a variable that an old file leaves out, with an empty dict */
#define MADE_ATTR_BYTES 128u    /* of each attribute that it takes over */
#define MADE_FACTOR 10u         /* such bytes per byte of the file, over the following */
#define MADE_EXTRA ((uint64_t)32 << 20)

typedef struct file { /* one file, with its subgraphs */
    tni_opset *ops;
    const char *name;
    uint64_t version;        /* 10901; 800 if the file has none */
    uint64_t made, made_max; /* estimate of what missing inputs cost */
    bool np_shape;
    bool gradients; /* it may name operators that gradients are made of: TNI_GRADIENTS */
} file;

typedef struct text_pair {
    const char *name, *text;
} text_pair;

typedef struct reader { /* one graph of the file */
    file *file;
    uint32_t depth;
    tni_node **nodes;           /* by their number in the file */
    int64_t *made, *draws;      /* their __creation_index__ and __random_index__, -1 none */
    uint32_t count;             /* read so far */
    tni_vec op_names, op_texts; /* attributes of the node at hand that its operator reads */
    tni_vec hidden;             /* text_pair: those that lie in its dict, or in an input's */
    bool zero_extents;          /* the node at hand says that 0 in its shape is 0 */
} reader;

static tn_status graph_read(file *f, const json_t *root, uint32_t depth, tni_symbol **out);

/* ---- errors -------------------------------------------------------------------------------------- */

/* This thread's error with the place before it; complaints about arguments are the file's fault here. */
static tn_status node_failed(const reader *r, uint32_t index, const char *name, tn_status st)
{
    tn_err err;

    if (st == TN_E_NOMEM)
        return st;
    tni_error_get(&err);
    return tni_error_number(err.number, st == TN_E_ARG ? TN_E_FORMAT : st,
                            "%.100s: node %u \"%.80s\": %.280s", r->file->name, index, name ? name : "",
                            err.message);
}

static tn_status graph_bad(const file *f, const char *what)
{
    return tni_error(TN_E_FORMAT, "%.200s: %s", f->name, what);
}

/* ---- small pieces -------------------------------------------------------------------------------- */

/* An integer from 0 to limit - 1. */
static bool index_read(const json_t *j, uint64_t limit, uint32_t *out)
{
    json_int_t value = json_integer_value(j);

    if (!json_is_integer(j) || value < 0 || (uint64_t)value >= limit)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* [node, output] or [node, output, version] of a node that was read already. */
static bool entry_read(const reader *r, const json_t *j, tni_entry *out)
{
    uint32_t node = 0, index = 0, version = 0;

    if (!json_is_array(j) || json_array_size(j) < 2 || json_array_size(j) > 3 ||
        !index_read(json_array_get(j, 0), r->count, &node) ||
        !index_read(json_array_get(j, 1), r->nodes[node]->output_count, &index) ||
        (json_array_size(j) == 3 && !index_read(json_array_get(j, 2), UINT32_MAX, &version)))
        return false;
    *out = (tni_entry){r->nodes[node], index, version};
    return true;
}

/* ---- attributes ---------------------------------------------------------------------------------- */

static const char *const hidden_names[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring",
                                           "mirror_stage"};
#define HIDDEN_COUNT (sizeof hidden_names / sizeof *hidden_names)

/* The hidden name that `key` is, or ends with behind an underscore; NULL. *prefix: bytes before it. */
static const char *hidden_match(const char *key, size_t *prefix)
{
    size_t length = strlen(key);

    for (size_t i = 0; i < HIDDEN_COUNT; i++) {
        size_t part = strlen(hidden_names[i]);

        if (length < part || strcmp(key + length - part, hidden_names[i]) != 0)
            continue;
        *prefix = length - part;
        if (*prefix == 0 || (*prefix > 1 && key[*prefix - 1] == '_'))
            return hidden_names[i];
    }
    return NULL;
}

static bool is_dunder(const char *key)
{
    size_t length = strlen(key);

    return length > 4 && strncmp(key, "__", 2) == 0 && strcmp(key + length - 2, "__") == 0;
}

static tn_status attr_take(reader *r, bool variable, const char *key, const char *text)
{
    int64_t *const list = strcmp(key, TNI_CREATION_INDEX) == 0 ? r->made
                          : strcmp(key, TNI_RANDOM_INDEX) == 0 ? r->draws
                                                               : NULL;
    const text_pair pair = {key, text};
    size_t prefix;
    tn_status st;

    if (list)
        return tni_parse_i64(text, &list[r->count]) && list[r->count] >= 0
                   ? TN_OK
                   : tni_error(TN_E_FORMAT, "%s is \"%.40s\"", key, text);
    if (!variable && strcmp(key, TNI_ZERO_EXTENTS) == 0) {
        r->zero_extents = true;
        return TN_OK;
    }
    if (variable || is_dunder(key) || hidden_match(key, &prefix))
        return tni_vec_push(&r->hidden, &pair);
    st = tni_vec_push(&r->op_names, &key);
    return st ? st : tni_vec_push(&r->op_texts, &text);
}

/* `attrs` today, `attr` in 0.9 to 0.11, `param` and `attr` in 0.8; the first one that has a key counts. */
static tn_status attrs_read(reader *r, const json_t *node, bool variable)
{
    static const char *const members[] = {"attrs", "attr", "param"};

    r->op_names.count = r->op_texts.count = r->hidden.count = 0;
    r->zero_extents = false;
    for (size_t m = 0; m < 3; m++) {
        json_t *object = json_object_get(node, members[m]);
        const char *key;
        json_t *value;

        if (!object || json_is_null(object))
            continue;
        if (!json_is_object(object))
            return tni_error(TN_E_FORMAT, "\"%s\" is no object", members[m]);
        json_object_foreach(object, key, value)
        {
            bool before = false;
            tn_status st;

            for (size_t k = 0; k < m; k++)
                before = before || json_object_get(json_object_get(node, members[k]), key);
            if (before)
                continue;
            if (!json_is_string(value))
                return tni_error(TN_E_FORMAT, "attribute \"%.60s\" is no text", key);
            if ((st = attr_take(r, variable, key, json_string_value(value))))
                return st;
        }
    }
    return TN_OK;
}

/* argmax and argmin said "no axis" with -1 before 0.9.5. */
static void axis_upgrade(reader *r, const tni_opdef *def)
{
    if (r->file->version >= 905 ||
        (strcmp(def->op->name, "argmax") != 0 && strcmp(def->op->name, "argmin") != 0))
        return;
    for (size_t i = 0; i < r->op_names.count; i++) {
        const char **name = tni_vec_at(&r->op_names, i), **text = tni_vec_at(&r->op_texts, i);

        if (strcmp(*name, "axis") != 0 || strcmp(*text, "-1") != 0)
            continue;
        *name = *(const char **)tni_vec_at(&r->op_names, r->op_names.count - 1);
        *text = *(const char **)tni_vec_at(&r->op_texts, r->op_texts.count - 1);
        r->op_names.count--;
        r->op_texts.count--;
        return;
    }
}

#define SHAPE_TEXT_MAX (TN_NDIM_MAX * 22 + 3)

/* In MXNet's classic mode an extent of 0 says "not known" (InitShape): _zeros, _ones, _full and random
 * numbers take it from their users. Writes the shape with -1 for it into `text` and returns the place of the
 * attribute among r->op_texts; -1: there is none, or it needs no change. */
static int64_t shape_upgrade(const reader *r, const tni_opdef *def, char text[SHAPE_TEXT_MAX])
{
    tn_shape shape;
    size_t used = 1;

    if (r->file->np_shape || r->zero_extents || tni_json_shape(def) < 0)
        return -1;
    for (size_t i = 0; i < r->op_names.count; i++) {
        const char *const *name = tni_vec_at(&r->op_names, i), *const *given = tni_vec_at(&r->op_texts, i);

        if (strcmp(*name, "shape") != 0 || !strchr(*given, '0') || !tni_shape_parse(*given, false, &shape) ||
            shape.ndim < 1 || tn_shape_known(&shape))
            continue;
        memcpy(text, "(", 2);
        for (int32_t k = 0; k < shape.ndim; k++)
            used += (size_t)snprintf(text + used, SHAPE_TEXT_MAX - used, "%lld,", (long long)shape.dim[k]);
        (void)snprintf(text + used, SHAPE_TEXT_MAX - used, ")");
        return (int64_t)i;
    }
    return -1;
}

/* The attributes as this version reads them. The texts themselves stay as the file has them. */
static tn_status op_attrs_parse(reader *r, const tni_opdef *def, tni_attrs **out)
{
    char shape[SHAPE_TEXT_MAX];
    const int64_t at = shape_upgrade(r, def, shape);
    const char **slot = at < 0 ? NULL : tni_vec_at(&r->op_texts, (size_t)at), *given = slot ? *slot : NULL;
    tn_status st;

    if (slot)
        *slot = shape;
    st = tni_attrs_parse(def, r->op_names.count, r->op_names.data, r->op_texts.data, out);
    if (slot)
        *slot = given;
    return st;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/* "lr_mult" becomes "__lr_mult__" of the node, "weight_lr_mult" that of its input `weight`, if it is a
 * variable. */
static tn_status hidden_set(tni_node *n, const text_pair *pair)
{
    size_t prefix = 0;
    const char *match = is_dunder(pair->name) ? NULL : hidden_match(pair->name, &prefix);
    char key[40], own[TN_NAME_MAX + 32];
    tni_args args;

    if (!match)
        return tni_node_dict_set(n, pair->name, pair->text);
    snprintf(key, sizeof key, "__%s__", match);
    if (prefix == 0)
        return tni_node_dict_set(n, key, pair->text);
    if (!n->def || tni_op_args(n->def, n->attrs, n->input_count, &args))
        return TN_OK;
    for (uint32_t i = 0; i < args.in_count && i < n->input_count; i++)
        if (!tni_op_input_name(n->def, &args, i, own, sizeof own) && strlen(own) == prefix - 1 &&
            strncmp(own, pair->name, prefix - 1) == 0 && !n->inputs[i].node->def)
            return tni_node_dict_set(n->inputs[i].node, key, pair->text);
    return TN_OK;
}

static tn_status hidden_apply(const reader *r, tni_node *n)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < r->hidden.count && !st; i++)
        st = hidden_set(n, tni_vec_at(&r->hidden, i));
    return st;
}

static tn_status variable_read(const reader *r, const char *name, tni_node **out)
{
    tni_node *n = NULL;
    tn_status st = tni_node_create(NULL, NULL, name, &n);

    if (!st && (st = hidden_apply(r, n))) {
        tni_node_release(n);
        return st;
    }
    *out = n;
    return st;
}

/* Before 0.9 files held no auxiliary states: inputs that are missing at the end become variables. */
static tn_status missing_make(reader *r, const tni_node *n, uint32_t place, const tni_args *args,
                              tni_entry *out)
{
    char own[TN_NAME_MAX + 32], name[2 * TN_NAME_MAX + 64];
    tni_node *v = NULL;
    tn_status st;

    r->file->made += MADE_BYTES + MADE_ATTR_BYTES * (n->dict ? tni_map_count(n->dict) : 0);
    if (r->file->made > r->file->made_max)
        return tni_error(TN_E_FORMAT, "more inputs are missing than a model has");
    if ((st = tni_op_input_name(n->def, args, place, own, sizeof own)))
        return st;
    snprintf(name, sizeof name, "%s_%s", tni_node_name(n), own);
    if ((st = tni_node_create(NULL, NULL, name, &v)) || (st = tni_node_dict_copy(v, n))) {
        tni_node_release(v);
        return st;
    }
    *out = (tni_entry){v, 0, 0};
    return TN_OK;
}

/* Connects `n` to the `count` entries of `given` and to variables for what an old file leaves out. */
static tn_status node_connect(reader *r, tni_node *n, uint32_t count, const tni_entry *given)
{
    bool variadic = n->def->variadic;
    tni_entry *inputs = NULL;
    uint32_t total = count;
    tni_args args;
    tn_status st = tni_op_args(n->def, n->attrs, count, &args);

    if (st)
        return st;
    if (r->file->version < 900 && !variadic && args.in_count > count)
        total = args.in_count;
    inputs = tni_calloc(total, sizeof *inputs);
    if (!inputs)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = given[i];
    for (uint32_t i = count; i < total && !st; i++)
        st = missing_make(r, n, i, &args, &inputs[i]);
    if (!st)
        st = tni_node_connect(n, total, inputs);
    for (uint32_t i = 0; i < total && !st; i++)
        n->inputs[i].version = inputs[i].version; /* as the file has it */
    if (!st && r->file->version < 904)
        st = tni_node_init_hints(n);
    for (uint32_t i = count; i < total; i++)
        tni_node_release(inputs[i].node);
    tni_free(inputs);
    return st;
}

static tn_status inputs_read(reader *r, const json_t *node, tni_node *n)
{
    const json_t *list = json_object_get(node, "inputs");
    size_t count = json_array_size(list);
    tni_entry *inputs;
    tn_status st = TN_OK;

    if (!json_is_array(list) || count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_FORMAT, "\"inputs\" is no list of at most %d", TN_NODE_INPUTS_MAX);
    inputs = tni_calloc(count, sizeof *inputs);
    if (!inputs)
        return TN_E_NOMEM;
    for (size_t i = 0; i < count && !st; i++)
        if (!entry_read(r, json_array_get(list, i), &inputs[i]))
            st = tni_error(TN_E_FORMAT, "input %zu is no output of a node before it", i);
    if (!st)
        st = node_connect(r, n, (uint32_t)count, inputs);
    tni_free(inputs);
    return st;
}

static tn_status subgraphs_read(reader *r, const json_t *node, tni_node *n)
{
    const json_t *list = json_object_get(node, "subgraphs");
    size_t count = json_array_size(list);
    tn_status st = TN_OK;

    if (!list)
        return TN_OK;
    if (!json_is_array(list) || count > TN_NODE_INPUTS_MAX || r->depth + 1 >= TNI_BODIES_DEPTH_MAX)
        return tni_error(TN_E_FORMAT, "\"subgraphs\" is no list of at most %d, or nests deeper than %u",
                         TN_NODE_INPUTS_MAX, TNI_BODIES_DEPTH_MAX);
    n->subgraphs = tni_calloc(count, sizeof *n->subgraphs);
    if (!n->subgraphs)
        return TN_E_NOMEM;
    for (size_t i = 0; i < count && !st; i++) {
        st = graph_read(r->file, json_array_get(list, i), r->depth + 1, &n->subgraphs[i]);
        n->subgraph_count += st == TN_OK;
    }
    return st;
}

static tn_status operator_read(reader *r, const json_t *node, const char *op, const char *name,
                               tni_node **out)
{
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    tni_node *n = NULL;
    tn_status st = r->file->gradients ? tni_opset_find_kept(r->file->ops, op, &def)
                                      : tni_opset_find_offered(r->file->ops, op, &def);

    if (st)
        return st;
    axis_upgrade(r, def);
    if ((st = op_attrs_parse(r, def, &attrs)) || (st = tni_node_create(def, attrs, name, &n)) ||
        (st = tni_node_dict_fill(n, r->op_names.count, r->op_names.data, r->op_texts.data)) ||
        (st = inputs_read(r, node, n)) || (st = hidden_apply(r, n)) || (st = subgraphs_read(r, node, n)))
        goto cleanup;
    *out = n; /* moved */
    n = NULL;

cleanup:
    tni_node_release(n);
    tni_attrs_release(attrs);
    return st;
}

/* Control dependencies order nodes without data between them; only their bounds are checked. */
static bool control_ok(const reader *r, const json_t *node)
{
    const json_t *list = json_object_get(node, "control_deps");
    uint32_t id;

    for (size_t i = 0; i < json_array_size(list); i++)
        if (!index_read(json_array_get(list, i), r->count, &id))
            return false;
    return !list || json_is_array(list);
}

static tn_status node_read(reader *r, const json_t *node)
{
    const json_t *op = json_object_get(node, "op"), *name = json_object_get(node, "name");
    const char *text = json_string_value(name);
    bool variable = json_is_string(op) && strcmp(json_string_value(op), "null") == 0;
    tni_node *n = NULL;
    tn_status st;

    r->made[r->count] = r->draws[r->count] = -1;
    if (!json_is_string(op) || !json_is_string(name))
        st = tni_error(TN_E_FORMAT, "\"op\" or \"name\" is missing");
    else if (!control_ok(r, node))
        st = tni_error(TN_E_FORMAT, "\"control_deps\" names a node that does not come before it");
    else if (variable && json_array_size(json_object_get(node, "inputs")) > 0)
        st = tni_error(TN_E_FORMAT, "a variable has inputs");
    else if (!(st = attrs_read(r, node, variable)))
        st = variable ? variable_read(r, text, &n) : operator_read(r, node, json_string_value(op), text, &n);
    if (st)
        return node_failed(r, r->count, text, st);
    r->nodes[r->count++] = n;
    return TN_OK;
}

/* ---- order of creation --------------------------------------------------------------------------- */

typedef struct making {
    int64_t order;
    uint64_t created;
    tni_node *node;
} making;

static int order_compare(const void *a, const void *b)
{
    const making *x = a, *y = b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->created < y->created ? -1 : x->created > y->created;
}

static bool any_index(const reader *r, const int64_t *list)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (list[i] >= 0)
            return true;
    return false;
}

/* Nodes were made in another order than the file has them: they exchange their numbers of creation. Of all
 * operators those without an index were made where they stand; of random nodes alone all have one. */
static tn_status creation_restore(const reader *r)
{
    const bool all = any_index(r, r->made);
    uint32_t count = 0;
    uint64_t *created;
    making *nodes;

    if (!all && !any_index(r, r->draws))
        return TN_OK;
    nodes = tni_calloc(r->count, sizeof *nodes);
    created = tni_calloc(r->count, sizeof *created);
    if (!nodes || !created) {
        tni_free(nodes);
        tni_free(created);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        tni_node *n = r->nodes[i];

        if (all ? !n->def : !tni_node_random(n))
            continue;
        created[count] = n->created;
        nodes[count] = (making){all ? r->made[i] : r->draws[i], n->created, n};
        if (all && nodes[count].order < 0)
            nodes[count].order = count;
        count++;
    }
    if (count)
        qsort(nodes, count, sizeof *nodes, order_compare);
    for (uint32_t i = 0; i < count; i++)
        nodes[i].node->created = created[i];
    tni_free(nodes);
    tni_free(created);
    return TN_OK;
}

/* ---- the graph ----------------------------------------------------------------------------------- */

static tn_status heads_read(const reader *r, const json_t *root, tni_symbol **out)
{
    const json_t *list = json_object_get(root, "heads");
    size_t count = json_array_size(list);
    tni_entry *heads;
    tn_status st = TN_OK;

    if (!json_is_array(list) || count == 0 || count > TN_GRAPH_NODES_MAX)
        return graph_bad(r->file, "\"heads\" is missing or empty");
    heads = tni_calloc(count, sizeof *heads);
    if (!heads)
        return TN_E_NOMEM;
    for (size_t i = 0; i < count && !st; i++)
        if (!entry_read(r, json_array_get(list, i), &heads[i]))
            st = tni_error(TN_E_FORMAT, "%.200s: head %zu is no output of a node", r->file->name, i);
    if (!st)
        st = tni_symbol_create(r->file->ops, (uint32_t)count, heads, out);
    tni_free(heads);
    return st;
}

static tn_status variables_check(const reader *r, const json_t *root)
{
    const json_t *list = json_object_get(root, "arg_nodes");
    uint32_t id = 0;

    if (list && !json_is_array(list))
        return graph_bad(r->file, "\"arg_nodes\" is no list");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!index_read(json_array_get(list, i), r->count, &id) || r->nodes[id]->def)
            return tni_error(TN_E_FORMAT, "%.200s: \"arg_nodes\"[%zu] is no variable", r->file->name, i);
    return TN_OK;
}

static tn_status reader_init(reader *r, file *f, uint32_t depth, size_t count)
{
    *r = (reader){.file = f, .depth = depth};
    tni_vec_init(&r->op_names, sizeof(char *), TN_NODE_INPUTS_MAX);
    tni_vec_init(&r->op_texts, sizeof(char *), TN_NODE_INPUTS_MAX);
    tni_vec_init(&r->hidden, sizeof(text_pair), TN_NODE_INPUTS_MAX);
    r->nodes = tni_calloc(count, sizeof *r->nodes);
    r->made = tni_calloc(count, sizeof *r->made);
    r->draws = tni_calloc(count, sizeof *r->draws);
    return r->nodes && r->made && r->draws ? TN_OK : TN_E_NOMEM;
}

static void reader_fini(reader *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        tni_node_release(r->nodes[i]);
    tni_free(r->nodes);
    tni_free(r->made);
    tni_free(r->draws);
    tni_vec_fini(&r->op_names);
    tni_vec_fini(&r->op_texts);
    tni_vec_fini(&r->hidden);
}

static tn_status graph_read(file *f, const json_t *root, uint32_t depth, tni_symbol **out)
{
    const json_t *nodes = json_object_get(root, "nodes");
    size_t count = json_array_size(nodes);
    reader r;
    tn_status st;

    if (!json_is_array(nodes) || count == 0 || count > TN_GRAPH_NODES_MAX)
        return graph_bad(f, "\"nodes\" is missing, empty or too long");
    st = reader_init(&r, f, depth, count);
    for (size_t i = 0; i < count && !st; i++)
        st = node_read(&r, json_array_get(nodes, i));
    if (!st && !(st = variables_check(&r, root)) && !(st = creation_restore(&r)) &&
        !(st = heads_read(&r, root, out)))
        (*out)->np_shape = f->np_shape;
    reader_fini(&r);
    return st;
}

/* ---- the file ------------------------------------------------------------------------------------ */

/* {"mxnet_version": ["int", 10901], ...}: kept for writing, apart from what we write ourselves. */
static tn_status graph_attrs_read(file *f, const json_t *root, tni_map **kept)
{
    json_t *attrs = json_object_get(root, "attrs"), *value;
    const char *key;
    tn_status st = TN_OK;

    if (!json_is_object(attrs))
        return attrs ? graph_bad(f, "\"attrs\" is no object") : TN_OK;
    json_object_foreach(attrs, key, value)
    {
        json_int_t number = json_integer_value(json_array_get(value, 1));
        bool is_int = json_array_size(value) == 2 && json_is_integer(json_array_get(value, 1));

        if (strcmp(key, "mxnet_version") == 0 && (!is_int || number < 0))
            return graph_bad(f, "\"mxnet_version\" is no [\"int\", number]");
        if (strcmp(key, "mxnet_version") == 0)
            f->version = (uint64_t)number;
        else if (strcmp(key, "is_np_shape") == 0)
            f->np_shape = is_int && number != 0;
        else if (strcmp(key, TNI_GRADIENTS) == 0)
            f->gradients = is_int && number != 0;
        else
            st = tni_json_keep(kept, key, value);
        if (st)
            return st;
    }
    return st;
}

tn_status tni_json_keep(tni_map **map, const char *key, const json_t *value)
{
    char *dumped, *copy = NULL;
    tn_status st;

    if (!*map && (st = tni_map_create(TN_NODE_INPUTS_MAX, map)))
        return st;
    dumped = json_dumps(value, JSON_ENCODE_ANY);
    if (dumped)
        copy = tni_strdup(dumped);
    free(dumped); /* jansson's, from malloc */
    if (!copy)
        return tni_error(TN_E_NOMEM, "out of memory while reading JSON");
    st = tni_map_set(*map, key, copy);
    if (st)
        tni_free(copy);
    return st;
}

tn_status tni_symbol_from_json(tni_opset *ops, const char *name, const char *text, uint64_t bytes,
                               tni_symbol **out)
{
    file f = {.ops = ops, .name = name, .version = 800, .made_max = bytes * MADE_FACTOR + MADE_EXTRA};
    tni_map *kept = NULL;
    json_t *root = NULL;
    tni_symbol *s = NULL;
    tn_status st = tni_json_parse(name, text, bytes, &root);

    if (st)
        return st;
    if (!json_is_object(root))
        st = graph_bad(&f, "a symbol is a JSON object");
    if (st || (st = graph_attrs_read(&f, root, &kept)) || (st = graph_read(&f, root, 0, &s)))
        goto cleanup;
    s->graph_attrs = kept; /* moved */
    kept = NULL;
    *out = s;

cleanup:
    tni_dict_destroy(kept);
    json_decref(root);
    return st;
}

static tn_status text_read(const char *path, char **text, uint64_t *bytes)
{
    tn_status st = tni_file_read_all(path, TN_JSON_BYTES_MAX, text, bytes);

    if (st || (*text)[strspn(*text, " \t\r\n")] == '{' ||
        !(st = tni_kind_check(path, TNI_KIND_SYMBOL, *text, *bytes)))
        return st;
    tni_free(*text);
    *text = NULL;
    return st;
}

tn_status tni_symbol_load(tni_opset *ops, const char *path, tni_symbol **out)
{
    char *text = NULL;
    uint64_t bytes = 0;
    tn_status st = text_read(path, &text, &bytes);

    if (!st)
        st = tni_symbol_from_json(ops, path, text, bytes, out);
    tni_free(text);
    return st;
}

/* ---- its operators, known or not ----------------------------------------------------------------- */

static tn_status uses_tell(file *f, const json_t *root, uint32_t depth, tni_operator_fn fn, void *arg);

static tn_status use_tell(reader *r, const json_t *node, uint32_t index, tni_operator_fn fn, void *arg)
{
    const char *op = json_string_value(json_object_get(node, "op")),
               *name = json_string_value(json_object_get(node, "name"));
    const json_t *inner;
    tn_status st = TN_OK;
    size_t i;

    if (op && strcmp(op, "null") != 0 && !(st = attrs_read(r, node, false))) /* others: for tni_symbol_load */
        st = fn(arg, &(tni_operator_use){op, name ? name : "", index, r->depth, r->op_names.count,
                                         r->op_names.data, r->op_texts.data});
    if (st)
        return node_failed(r, index, name, st);
    json_array_foreach(json_object_get(node, "subgraphs"), i,
                       inner) if ((st = uses_tell(r->file, inner, r->depth + 1, fn, arg))) return st;
    return TN_OK;
}

static tn_status uses_tell(file *f, const json_t *root, uint32_t depth, tni_operator_fn fn, void *arg)
{
    const json_t *nodes = json_object_get(root, "nodes");
    const size_t count = json_array_size(nodes);
    reader r;
    tn_status st;

    if (!json_is_array(nodes) || count == 0 || count > TN_GRAPH_NODES_MAX || depth >= TNI_BODIES_DEPTH_MAX)
        return graph_bad(f, "\"nodes\" is missing, empty or too long");
    st = reader_init(&r, f, depth, count);
    for (size_t i = 0; i < count && !st; i++)
        st = use_tell(&r, json_array_get(nodes, i), (uint32_t)i, fn, arg);
    reader_fini(&r);
    return st;
}

tn_status tni_json_operators(const char *name, const char *text, uint64_t bytes, tni_operator_fn fn,
                             void *arg)
{
    file f = {.name = name};
    json_t *root = NULL;
    tn_status st = tni_json_parse(name, text, bytes, &root);

    if (!st)
        st = uses_tell(&f, root, 0, fn, arg);
    json_decref(root);
    return st;
}

tn_status tni_json_operators_load(const char *path, tni_operator_fn fn, void *arg)
{
    char *text = NULL;
    uint64_t bytes = 0;
    tn_status st = text_read(path, &text, &bytes);

    if (!st)
        st = tni_json_operators(path, text, bytes, fn, arg);
    tni_free(text);
    return st;
}
