/*
 * Gradients that are row_sparse, and those of products with a csr matrix. A use of a weight that gives it
 * some rows alone, or whose gradient is such a product, is a stage of its own: behind all other stages it
 * calls operators over what arrives there. Other uses give dense arrays, which are cast. Contributions are
 * added one by one; the sum becomes the new gradient of its leaf.
 */
#include "autograd/rows.h"

#include <inttypes.h>
#include <string.h>

/* Uses of an input as a weight whose gradient is made of the others, and of the weight itself, alone. */
static const struct use {
    const char *op, *when; /* when: this attribute is set; NULL: always */
    uint32_t weight, other;
    bool csr; /* the other input is to be such a matrix; then dense gradients are made, too */
} uses[] = {
    {"Embedding", "sparse_grad", 1, 0, false},
    {"_contrib_SparseEmbedding", NULL, 1, 0, false},
    {"dot", NULL, 1, 0, true},
    {"dot", NULL, 0, 1, true},
    {"_square_sum", NULL, 0, 0, false},
};

static bool is_set(const tni_tape_call *n, const char *attr)
{
    return n->attrs->values[tni_attr_index(n->attrs->def, attr)] != 0;
}

static bool fits(const struct use *u, const tni_tape_call *n)
{
    const tni_array *other = n->in[u->other];

    return other && (u->when  ? is_set(n, u->when)
                     : u->csr ? other->storage_type == TN_STORAGE_CSR
                              : u->weight || other->storage_type == TN_STORAGE_ROW_SPARSE);
}

static const struct use *use_of(const tni_tape_call *n)
{
    const tni_opdef *def = n->attrs ? n->attrs->def : NULL;

    for (size_t i = 0; def && i < sizeof uses / sizeof *uses; i++)
        if (!strcmp(def->op->name, uses[i].op) && fits(&uses[i], n))
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

    if (!use || (use->other != use->weight && (tni_tape_source(w, node, use->other).node != TNI_NONE ||
                                               tni_tape_leaf(w, n->leaves[use->other]) != TNI_NONE)))
        return TNI_NONE;
    leaf = leaf_behind(w, node, use->weight);
    return leaf != TNI_NONE &&
                   (use->csr || tni_grad_is_rows(*(tni_array *const *)tni_vec_at(&w->leaves, leaf)))
               ? leaf
               : TNI_NONE;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Outside of any recording; `pairs`: names and texts in turn, NULL behind. */
static tn_status invoke(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in,
                        const char *const *pairs, tni_array **out)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->recording;
    const char *names[3], *texts[3];
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    tni_site *site = NULL;
    size_t count = 0;
    tn_status st;

    for (; pairs[2 * count]; count++) {
        names[count] = pairs[2 * count];
        texts[count] = pairs[2 * count + 1];
    }
    scope->recording = false;
    if (!(st = tni_opset_find(c->ops, op, &def)) &&
        !(st = tni_attrs_parse(def, count, names, texts, &attrs)) &&
        !(st = tni_site_of(c, def, attrs, &site)))
        st = tni_invoke(site, in_count, in, 1, out);
    scope->recording = before;
    tni_site_release(site);
    tni_attrs_release(attrs);
    return st;
}

#define ATTRS(...) ((const char *const[]){__VA_ARGS__, NULL})

tn_status tni_rows_dense(tni_context *c, tni_array *a, tni_array **out)
{
    return invoke(c, "cast_storage", 1, &a, ATTRS("stype", "default"), out);
}

tn_status tni_rows_add(tni_context *c, tni_array *part, tni_array **sum)
{
    tni_array *rows = NULL, *in[2], *both = NULL;
    tn_status st = TN_OK;

    if (part->storage_type == TN_STORAGE_ROW_SPARSE)
        tni_array_retain(rows = part);
    else
        st = invoke(c, "cast_storage", 1, &part, ATTRS("stype", "row_sparse"), &rows);
    if (!st && *sum) {
        in[0] = *sum;
        in[1] = rows;
        st = invoke(c, "elemwise_add", 2, in, ATTRS(NULL), &both);
        tni_array_release(rows);
        rows = both;
    }
    if (st)
        return st;
    tni_array_release(*sum);
    *sum = rows;
    return TN_OK;
}

/* Of y = lhs · rhs, each transposed or not: the product of the csr one and dy in the order that it needs. */
static tn_status of_product(tni_context *c, const tni_tape_call *n, uint32_t csr, tni_array *dy, bool rows,
                            tni_array **out)
{
    static const char *const texts[] = {"False", "True"};
    const bool own = is_set(n, csr ? "transpose_a" : "transpose_b"); /* of the weight */
    const bool other = is_set(n, csr ? "transpose_b" : "transpose_a");
    const bool first = own == (csr != 0); /* the csr one comes first */
    const bool turned = own ? other : !other;
    tni_array *in[] = {first ? n->in[csr] : dy, first ? dy : n->in[csr]};

    return invoke(c, "dot", 2, in,
                  ATTRS("transpose_a", texts[first ? turned : own], "transpose_b",
                        texts[first ? own : turned], "forward_stype", rows && first ? "None" : "default"),
                  out);
}

/* Of the sums of squares along an axis: 2 x dy, at the rows of x. */
static tn_status of_squares(tni_context *c, const tni_tape_call *n, tni_array *dy, tni_array **out)
{
    const tn_tuple *axis = tn_value_pointer(n->attrs->values[tni_attr_index(n->attrs->def, "axis")]);
    const bool across = (axis->item[0] & 1) != is_set(n, "exclude"); /* 1 or -1: one number for each row */
    tni_array *a[5] = {NULL}, *pair[2];
    tn_status st = invoke(c, "Reshape", 1, &dy, ATTRS("shape", across ? "(-1,1)" : "(1,-1)"), &a[0]);

    pair[0] = a[0];
    pair[1] = n->in[0]->aux[0];
    if (!st && across)
        st = invoke(c, "take", 2, pair, ATTRS("axis", "0"), &a[1]);
    if (!st && !(st = tni_array_values(n->in[0], &a[2]))) {
        pair[0] = a[2];
        pair[1] = across ? a[1] : a[0];
        st = invoke(c, "broadcast_mul", 2, pair, ATTRS(NULL), &a[3]);
    }
    if (!st && !(st = invoke(c, "_mul_scalar", 1, &a[3], ATTRS("scalar", "2"), &a[4])))
        st = tni_sparse_with(n->in[0], a[4], out);
    for (int i = 0; i < 5; i++)
        tni_array_release(a[i]);
    return st;
}

tn_status tni_rows_give(tni_context *c, const tni_tape_call *n, const tni_array *leaf, tni_array *dy,
                        tni_array **out)
{
    const struct use *use = use_of(n);
    tni_array *ids[] = {dy, n->in[0]}, *dense = NULL;
    char rows[24];
    tn_status st = TN_OK;

    (void)snprintf(rows, sizeof rows, "%" PRId64, leaf->shape[0]);
    if (dy->storage_type != TN_STORAGE_DENSE && !(st = tni_rows_dense(c, dy, &dense)))
        dy = ids[0] = dense;
    if (!st)
        st = use->csr      ? of_product(c, n, use->other, dy, tni_grad_is_rows(leaf), out)
             : use->weight ? invoke(c, "_embedding_rows", 2, ids, ATTRS("input_dim", rows), out)
                           : of_squares(c, n, dy, out);
    tni_array_release(dense);
    return st;
}
