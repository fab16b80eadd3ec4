/*
 * Gradients that are row_sparse. A use of a weight that gives it some rows alone is a stage of its own:
 * behind all other stages it calls an operator over what arrives there. Other uses give dense arrays, which
 * are cast. Contributions are added one by one; the sum becomes the new gradient of its leaf.
 */
#include "autograd/rows.h"

#include <inttypes.h>
#include <string.h>

/* Uses of input 1 as a weight that depend on input 0 alone. */
static const struct use {
    const char *op, *when; /* when: this attribute is set; NULL: always */
    bool csr;              /* input 0 is to be such a matrix */
} uses[] = {
    {"Embedding", "sparse_grad", false},
    {"_contrib_SparseEmbedding", NULL, false},
    {"dot", NULL, true},
};

static bool is_set(const tni_tape_call *n, const char *attr)
{
    return n->attrs->values[tni_attr_index(n->attrs->def, attr)] != 0;
}

static const struct use *use_of(const tni_tape_call *n)
{
    const tni_opdef *def = n->attrs ? n->attrs->def : NULL;

    for (size_t i = 0; def && i < sizeof uses / sizeof *uses; i++)
        if (!strcmp(def->op->name, uses[i].op) && (!uses[i].when || is_set(n, uses[i].when)))
            return &uses[i];
    return NULL;
}

/* The leaf that input `i` is, or is a dense copy of. */
static uint32_t leaf_behind(const tni_tape_walk *w, uint32_t node, uint32_t i)
{
    const tni_tape_edge e = tni_tape_source(w, node, i);
    const tni_tape_call *n = tni_tape_at(w, e.node == TNI_NONE ? node : e.node);

    if (e.node == TNI_NONE)
        return tni_tape_leaf(w, n->leaves[i]);
    return n->attrs && !strcmp(n->attrs->def->op->name, "cast_storage") ? leaf_behind(w, e.node, 0)
                                                                        : TNI_NONE;
}

uint32_t tni_rows_leaf(const tni_tape_walk *w, uint32_t node)
{
    const tni_tape_call *n = tni_tape_at(w, node);
    const struct use *use = w->wanted ? NULL : use_of(n);
    uint32_t leaf;

    if (!use || tni_tape_source(w, node, 0).node != TNI_NONE || tni_tape_leaf(w, n->leaves[0]) != TNI_NONE ||
        !n->in[0] || use->csr != (n->in[0]->storage_type == TN_STORAGE_CSR))
        return TNI_NONE;
    leaf = leaf_behind(w, node, 1);
    return leaf != TNI_NONE && tni_grad_is_rows(*(tni_array *const *)tni_vec_at(&w->leaves, leaf)) ? leaf
                                                                                                  : TNI_NONE;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Outside of any recording. */
static tn_status invoke(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in,
                        const char *name, const char *text, tni_array **out)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->recording;
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    tni_site *site = NULL;
    tn_status st;

    scope->recording = false;
    if (!(st = tni_opset_find(c->ops, op, &def)) &&
        !(st = tni_attrs_parse(def, name ? 1 : 0, &name, &text, &attrs)) &&
        !(st = tni_site_of(c, def, attrs, &site)))
        st = tni_invoke(site, in_count, in, 1, out);
    scope->recording = before;
    tni_site_release(site);
    tni_attrs_release(attrs);
    return st;
}

tn_status tni_rows_dense(tni_context *c, tni_array *a, tni_array **out)
{
    return invoke(c, "cast_storage", 1, &a, "stype", "default", out);
}

tn_status tni_rows_add(tni_context *c, tni_array *part, tni_array **sum)
{
    tni_array *rows = NULL, *in[2], *both = NULL;
    tn_status st = TN_OK;

    if (part->storage_type == TN_STORAGE_ROW_SPARSE)
        tni_array_retain(rows = part);
    else
        st = invoke(c, "cast_storage", 1, &part, "stype", "row_sparse", &rows);
    if (!st && *sum) {
        in[0] = *sum;
        in[1] = rows;
        st = invoke(c, "elemwise_add", 2, in, NULL, NULL, &both);
        tni_array_release(rows);
        rows = both;
    }
    if (st)
        return st;
    tni_array_release(*sum);
    *sum = rows;
    return TN_OK;
}

tn_status tni_rows_give(tni_context *c, const tni_tape_call *n, const tni_array *leaf, tni_array *dy,
                        tni_array **sum)
{
    tni_array *csr[] = {n->in[0], dy}, *ids[] = {dy, n->in[0]}, *made = NULL;
    char rows[24];
    tn_status st;

    (void)snprintf(rows, sizeof rows, "%" PRId64, leaf->shape[0]);
    if (use_of(n)->csr)
        st = invoke(c, "dot", 2, csr, "transpose_a", is_set(n, "transpose_a") ? "False" : "True", &made);
    else
        st = invoke(c, "_embedding_rows", 2, ids, "input_dim", rows, &made);
    if (!st)
        st = tni_rows_add(c, made, sum);
    tni_array_release(made);
    return st;
}
