/* Names of a symbol: arguments, auxiliary states, outputs. An auxiliary state is a variable that some node
 * mutates. */
#include <string.h>

#include "graph/walk.h"

typedef struct name_list {
    tni_str text;    /* names, each with its NUL */
    tni_vec offsets; /* of each name */
} name_list;

static tn_status list_add(name_list *list, const char *text)
{
    const uint64_t at = list->text.length;
    tn_status st = tni_str_add_bytes(&list->text, text, strlen(text) + 1);

    return st ? st : tni_vec_push(&list->offsets, &at);
}

/* One block: the pointers, then the texts. */
static tn_status list_take(const name_list *list, size_t *count, char ***names)
{
    const size_t head = (list->offsets.count + 1) * sizeof(char *);
    char **block = tni_alloc(head + list->text.length);

    if (!block)
        return TN_E_NOMEM;
    if (list->text.length)
        memcpy((char *)block + head, list->text.text, list->text.length);
    for (size_t i = 0; i < list->offsets.count; i++)
        block[i] = (char *)block + head + *(const uint64_t *)tni_vec_at(&list->offsets, i);
    block[list->offsets.count] = NULL;
    *count = list->offsets.count;
    *names = block;
    return TN_OK;
}

/* One byte per node of the walk: changed by some user. */
static tn_status aux_find(const tni_walk *w, uint8_t **out)
{
    uint8_t *aux = tni_calloc(w->count, 1);

    if (!aux)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < w->count; i++)
        for (uint32_t k = 0; k < w->nodes[i]->input_count; k++)
            if (tn_op_mutates(w->nodes[i]->def->op, w->nodes[i]->input_count, k))
                aux[tni_walk_index(w, w->nodes[i]->inputs[k].node)] = 1;
    *out = aux;
    return TN_OK;
}

static tn_status inputs_list(const tni_symbol *s, int32_t what, name_list *list)
{
    uint8_t *aux = NULL;
    tni_walk w;
    tn_status st = tni_walk_of(s, &w);

    if (st)
        return st;
    st = aux_find(&w, &aux);
    for (uint32_t i = 0; i < w.count && !st; i++)
        if (!w.nodes[i]->def && (what == TNI_LIST_INPUTS || aux[i] == (what == TNI_LIST_AUX)))
            st = list_add(list, tni_node_name(w.nodes[i]));
    tni_free(aux);
    tni_walk_fini(&w);
    return st;
}

/* "conv0_output", "bn_mean", "split0_output2"; a variable's own name. */
static tn_status output_name(const tni_entry *e, char *out, size_t size)
{
    const tni_node *n = e->node;
    char own[TN_NAME_MAX + 32];
    tni_args args;
    tn_status st;
    int length;

    if (!n->def) {
        length = snprintf(out, size, "%s", tni_node_name(n));
        return length < 0 || (size_t)length >= size ? tni_error(TN_E_ARG, "a name is too long") : TN_OK;
    }
    /* Inputs of an atomic symbol are still open; its attributes alone tell the names then. */
    st = tni_op_args(n->def, n->attrs, n->inputs ? (int64_t)n->input_count : -1, &args);
    if (!st)
        st = tni_op_output_name(n->def, &args, e->index, own, sizeof own);
    if (st)
        return st;
    length = snprintf(out, size, "%s%s%s", tni_node_name(n), *tni_node_name(n) ? "_" : "", own);
    return length < 0 || (size_t)length >= size ? tni_error(TN_E_ARG, "a name is too long") : TN_OK;
}

static tn_status outputs_list(const tni_symbol *s, name_list *list)
{
    char name[2 * TN_NAME_MAX + 64];
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->output_count && !st; i++)
        if (!(st = output_name(&s->outputs[i], name, sizeof name)))
            st = list_add(list, name);
    return st;
}

tn_status tni_symbol_list(tni_symbol *s, int32_t what, size_t *count, char ***names)
{
    name_list list;
    tn_status st;

    if (what < TNI_LIST_ARGUMENTS || what > TNI_LIST_INPUTS)
        return tni_error(TN_E_ARG, "%d is no kind of list", what);
    tni_str_init(&list.text, TN_TEXT_MAX);
    tni_vec_init(&list.offsets, sizeof(uint64_t), 2 * TN_GRAPH_NODES_MAX);
    st = what == TNI_LIST_OUTPUTS ? outputs_list(s, &list) : inputs_list(s, what, &list);
    if (!st)
        st = list_take(&list, count, names);
    tni_str_fini(&list.text);
    tni_vec_fini(&list.offsets);
    return st;
}

tn_status tni_symbol_find(tni_symbol *s, const char *name, uint32_t *index)
{
    const char *similar[3];
    char **names = NULL;
    size_t count = 0, found = 0;
    tn_status st = tni_symbol_list(s, TNI_LIST_OUTPUTS, &count, &names);

    if (st)
        return st;
    while (found < count && strcmp(names[found], name) != 0)
        found++;
    if (found < count)
        *index = (uint32_t)found;
    else if (tni_suggest(name, (const char *const *)names, similar) > 0)
        st = tni_error(TN_E_KEY, "no output \"%.80s\"; did you mean \"%.80s\"", name, similar[0]);
    else
        st = tni_error(TN_E_KEY, "no output \"%.80s\" among %zu", name, count);
    tni_free(names);
    return st;
}
