/*
 * Writes what MXNet 1.9 writes, byte for byte: nodes depth first from the heads, attributes by name, two
 * spaces of indentation, lists of up to ten numbers on one line, ", " before each further item.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/json.h"

#define SCOPES_MAX 512u /* objects and arrays within each other */
#define LINE_ITEMS 10u  /* lists longer than this go on several lines */

typedef struct writer { /* the text and the open objects and arrays */
    tni_str *out;
    uint32_t depth;
    bool np_shape;  /* in the file's attributes: 0 says 0 anyway */
    bool gradients; /* an operator that only gradients are made of was written */
    bool lines[SCOPES_MAX];
    uint32_t items[SCOPES_MAX];
} writer;

static void line_break(writer *w)
{
    if (w->depth > 0 && !w->lines[w->depth - 1])
        return;
    tni_str_add(w->out, "\n");
    for (uint32_t i = 0; i < w->depth; i++)
        tni_str_add(w->out, "  ");
}

static void scope_open(writer *w, const char *bracket, bool lines)
{
    tni_str_add(w->out, bracket);
    if (w->depth >= SCOPES_MAX) {
        w->out->status = tni_error(TN_E_UNSUPPORTED, "graphs nest too deep to be written");
        return;
    }
    w->lines[w->depth] = lines;
    w->items[w->depth++] = 0;
}

static void scope_close(writer *w, const char *bracket)
{
    bool lines;

    if (w->out->status)
        return;
    w->depth--;
    lines = w->lines[w->depth] && w->items[w->depth] > 0;
    if (lines) {
        tni_str_add(w->out, "\n");
        for (uint32_t i = 0; i < w->depth; i++)
            tni_str_add(w->out, "  ");
    }
    tni_str_add(w->out, bracket);
}

static void item_begin(writer *w)
{
    if (w->out->status)
        return;
    if (w->items[w->depth - 1]++ > 0)
        tni_str_add(w->out, ", ");
    line_break(w);
}

/* Escapes what MXNet escapes: quotes, backslashes and three controls. Other controls, which it would write as
 * they are, become \u001f, so that the file stays JSON. */
static void text_write(writer *w, const char *text)
{
    static const char special[] =
        "\"\\\n\r\t\1\2\3\4\5\6\7\b\v\f\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37";
    static const char letters[] = "\"\\nrt";

    tni_str_add(w->out, "\"");
    for (const char *p = text; *p;) {
        size_t plain = strcspn(p, special);
        const char *at;

        tni_str_add_bytes(w->out, p, plain);
        p += plain;
        if (!*p)
            break;
        at = strchr(special, *p++);
        if ((size_t)(at - special) < sizeof letters - 1)
            tni_str_addf(w->out, "\\%c", letters[at - special]);
        else
            tni_str_addf(w->out, "\\u%04x", (unsigned char)*at);
    }
    tni_str_add(w->out, "\"");
}

static void key_write(writer *w, const char *key)
{
    item_begin(w);
    text_write(w, key);
    tni_str_add(w->out, ": ");
}

static void entry_write(writer *w, uint32_t node, const tni_entry *e)
{
    item_begin(w);
    tni_str_addf(w->out, "[%u, %u, %u]", node, e->index, e->version);
}

/* ---- nodes --------------------------------------------------------------------------------------- */

typedef struct key_text {
    const char *key, *text;
} key_text;

static int key_compare(const void *a, const void *b)
{
    return strcmp(((const key_text *)a)->key, ((const key_text *)b)->key);
}

static tn_status pairs_collect(const tni_map *dict, key_text **out, size_t *count, size_t more)
{
    key_text *pairs = tni_calloc((dict ? tni_map_count(dict) : 0) + more, sizeof *pairs);
    size_t cursor = 0;
    const char *key;
    void *text;

    if (!pairs)
        return TN_E_NOMEM;
    *count = 0;
    while (dict && tni_map_next(dict, &cursor, &key, &text))
        pairs[(*count)++] = (key_text){key, text};
    *out = pairs;
    return TN_OK;
}

/* Whether extents of 0 in the node's shape must say of themselves that they are no unknown ones. */
static bool zero_extents(const writer *w, const tni_node *n)
{
    const int32_t attr = n->def && n->attrs ? tni_json_shape(n->def) : -1;
    const tn_tuple *shape = attr < 0 || w->np_shape ? NULL : tn_value_pointer(n->attrs->values[attr]);

    for (int64_t i = 0; shape && i < shape->count; i++)
        if (shape->item[i] == 0)
            return true;
    return false;
}

/* `order`: the node's number by creation, TNI_NONE if the file shows it. */
static tn_status attrs_write(writer *w, const tni_node *n, uint32_t order)
{
    char number[16];
    key_text *pairs = NULL;
    size_t count = 0;
    tn_status st = pairs_collect(n->dict, &pairs, &count, 2);

    if (st)
        return st;
    if (order != TNI_NONE) {
        snprintf(number, sizeof number, "%u", order);
        pairs[count++] = (key_text){TNI_CREATION_INDEX, number};
    }
    if (zero_extents(w, n))
        pairs[count++] = (key_text){TNI_ZERO_EXTENTS, "1"};
    if (count > 0) {
        qsort(pairs, count, sizeof *pairs, key_compare);
        key_write(w, "attrs");
        scope_open(w, "{", count > 1);
        for (size_t i = 0; i < count; i++) {
            key_write(w, pairs[i].key);
            text_write(w, pairs[i].text);
        }
        scope_close(w, "}");
    }
    tni_free(pairs);
    return TN_OK;
}

static tn_status graph_write(writer *w, const tni_symbol *s, bool outermost);

static tn_status node_write(writer *w, const tni_walk *walk, const tni_node *n, uint32_t order)
{
    tn_status st;

    w->gradients = w->gradients || (n->def && n->def->op->flags & TN_OP_BACKWARD);
    item_begin(w);
    scope_open(w, "{", true);
    key_write(w, "op");
    text_write(w, n->def ? n->def->op->name : "null");
    key_write(w, "name");
    text_write(w, tni_node_name(n));
    if ((st = attrs_write(w, n, order)))
        return st;
    key_write(w, "inputs");
    scope_open(w, "[", n->input_count > LINE_ITEMS);
    for (uint32_t i = 0; i < n->input_count; i++)
        entry_write(w, tni_walk_index(walk, n->inputs[i].node), &n->inputs[i]);
    scope_close(w, "]");
    if (n->subgraph_count) {
        key_write(w, "subgraphs");
        scope_open(w, "[", true);
        for (uint32_t i = 0; i < n->subgraph_count && !st; i++) {
            item_begin(w);
            st = graph_write(w, n->subgraphs[i], false);
        }
        scope_close(w, "]");
    }
    scope_close(w, "}");
    return st ? st : w->out->status;
}

/* ---- order of creation --------------------------------------------------------------------------- */

/* Per node: its number by creation among the operators,
 * TNI_NONE where its place in the file says the same. */
static tn_status creation_order(const tni_walk *walk, uint32_t **out)
{
    uint32_t *order = tni_alloc((walk->count + 1ull) * sizeof *order);
    uint32_t number = 0;
    tni_walk made = {0};
    tn_status st = order ? tni_walk_by_creation(walk, &made) : TN_E_NOMEM;

    for (uint32_t i = 0; i < made.count && !st; i++)
        order[tni_walk_index(walk, made.nodes[i])] = made.nodes[i]->def ? number++ : TNI_NONE;
    number = 0;
    for (uint32_t i = 0; i < walk->count && !st; i++)
        if (walk->nodes[i]->def && order[i] == number++)
            order[i] = TNI_NONE;
    tni_walk_fini(&made);
    if (st)
        tni_free(order);
    else
        *out = order;
    return st;
}

/* ---- the graph ----------------------------------------------------------------------------------- */

static void variables_write(writer *w, const tni_walk *walk)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < walk->count; i++)
        count += !walk->nodes[i]->def;
    key_write(w, "arg_nodes");
    scope_open(w, "[", count > LINE_ITEMS);
    for (uint32_t i = 0; i < walk->count; i++)
        if (!walk->nodes[i]->def) {
            item_begin(w);
            tni_str_addf(w->out, "%u", i);
        }
    scope_close(w, "]");
}

static void rows_write(writer *w, const tni_walk *walk)
{
    uint64_t row = 0;

    key_write(w, "node_row_ptr");
    scope_open(w, "[", walk->count + 1 > LINE_ITEMS);
    for (uint32_t i = 0; i <= walk->count; i++) {
        item_begin(w);
        tni_str_addf(w->out, "%llu", (unsigned long long)row);
        row += i < walk->count ? walk->nodes[i]->output_count : 0;
    }
    scope_close(w, "]");
}

/* Version, np_shape, gradients, and what the file had besides; by name. */
static tn_status graph_attrs_write(writer *w, const tni_symbol *s)
{
    char version[32];
    key_text *pairs = NULL;
    size_t count = 0;
    tn_status st = pairs_collect(s->graph_attrs, &pairs, &count, 3);

    if (st)
        return st;
    snprintf(version, sizeof version, "[\"int\", %d]", TNI_MXNET_VERSION);
    pairs[count++] = (key_text){"mxnet_version", version};
    if (s->np_shape)
        pairs[count++] = (key_text){"is_np_shape", "[\"int\", 1]"};
    if (w->gradients)
        pairs[count++] = (key_text){TNI_GRADIENTS, "[\"int\", 1]"};
    qsort(pairs, count, sizeof *pairs, key_compare);
    key_write(w, "attrs");
    scope_open(w, "{", count > 1);
    for (size_t i = 0; i < count; i++) {
        key_write(w, pairs[i].key);
        tni_str_add(w->out, pairs[i].text);
    }
    scope_close(w, "}");
    tni_free(pairs);
    return TN_OK;
}

static tn_status graph_write(writer *w, const tni_symbol *s, bool outermost)
{
    uint32_t *order = NULL;
    tni_walk walk;
    tn_status st = tni_walk_of(s, &walk);

    if (st)
        return st;
    st = creation_order(&walk, &order);
    scope_open(w, "{", true);
    key_write(w, "nodes");
    scope_open(w, "[", true);
    for (uint32_t i = 0; i < walk.count && !st; i++)
        st = node_write(w, &walk, walk.nodes[i], order[i]);
    scope_close(w, "]");
    variables_write(w, &walk);
    rows_write(w, &walk);
    key_write(w, "heads");
    scope_open(w, "[", s->output_count > LINE_ITEMS);
    for (uint32_t i = 0; i < s->output_count; i++)
        entry_write(w, tni_walk_index(&walk, s->outputs[i].node), &s->outputs[i]);
    scope_close(w, "]");
    if (!st && outermost)
        st = graph_attrs_write(w, s);
    scope_close(w, "}");
    tni_free(order);
    tni_walk_fini(&walk);
    return st ? st : w->out->status;
}

tn_status tni_symbol_to_json(tni_symbol *s, tni_str *out)
{
    writer *w = tni_zalloc(sizeof *w);
    tn_status st;

    if (!w)
        return TN_E_NOMEM;
    w->out = out;
    w->np_shape = s->np_shape;
    st = graph_write(w, s, true);
    tni_free(w);
    return st;
}

tn_status tni_symbol_save(tni_symbol *s, const char *path)
{
    tni_str text;
    tn_status st;

    tni_str_init(&text, TN_JSON_BYTES_MAX);
    st = tni_symbol_to_json(s, &text);
    if (!st)
        st = tni_file_write_all(path, text.text, text.length);
    tni_str_fini(&text);
    return st;
}
