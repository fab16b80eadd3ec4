/*
 * Sparse arrays: casts between storage types, rows that are kept; and a table of what other operators do with
 * them, as MXNet has it. Where 0 gives 0, an operator of elements runs on what is stored.
 */
#include <string.h>

#include "op/infer_help.h"
#include "tenon/plugin/op/optimizer.h"
#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/scalar.h"
#include "tenon/plugin/op/storage.h"
#include "tenon/plugin/op/unary.h"

/* ---- definitions --------------------------------------------------------------------------------------- */

/* A row_sparse array has rows, a csr one is a matrix. */
static tn_status cast_shape(tn_infer *i)
{
    const int64_t to = tn_value_int(i->attrs[TN_cast_storage_stype]);
    const int32_t ndim = i->in_shape[0]->ndim;

    if (ndim >= 0 && ((to == TN_STORAGE_CSR && ndim != 2) || (to == TN_STORAGE_ROW_SPARSE && ndim < 1)))
        return tni_infer_fail(i, TN_E_SHAPE, "an array of %d dimensions cannot be %s", ndim,
                              tni_storage_type_name((int32_t)to));
    return tni_shape_same(i);
}

static tn_status cast_storage(tn_infer *i)
{
    const int32_t to = (int32_t)tn_value_int(i->attrs[TN_cast_storage_stype]);

    i->out_storage[0] = to;
    if (i->in_storage[0] > TN_STORAGE_DENSE && to > TN_STORAGE_DENSE && i->in_storage[0] != to)
        i->in_storage[0] = TN_STORAGE_DENSE; /* by way of it */
    return TN_OK;
}

static tn_status retain_storage(tn_infer *i)
{
    if (i->in_storage[0] == TN_STORAGE_UNKNOWN)
        i->in_storage[0] = TN_STORAGE_ROW_SPARSE;
    if (i->in_storage[0] != TN_STORAGE_ROW_SPARSE || i->in_storage[1] > TN_STORAGE_DENSE)
        return tni_infer_fail(i, TN_E_UNSUPPORTED, "rows of row_sparse arrays are kept, by dense indices");
    i->in_storage[1] = TN_STORAGE_DENSE;
    i->out_storage[0] = TN_STORAGE_ROW_SPARSE;
    return TN_OK;
}

static tn_status rows_storage(tn_infer *i)
{
    i->in_storage[0] = i->in_storage[1] = TN_STORAGE_DENSE;
    i->out_storage[0] = TN_STORAGE_ROW_SPARSE;
    return TN_OK;
}

const tn_op *const tni_family_storage[] = {
    TNI_ROW("cast_storage", .doc = "The same elements in another storage type.",
            .aliases = TNI_NAMES("_sparse_cast_storage"), .attrs = TNI_ATTRS(cast_storage),
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = cast_shape,
            .storage = cast_storage, .gradients = "composed: data = _copy(dy)"),
    TNI_ROW("_sparse_retain", .doc = "The rows of a row_sparse array that indices name, in ascending order.",
            .shapes = "data:(N,D..) indices:(R) -> output:(N,D..)", .types = "indices:I",
            .storage = retain_storage, .flags = TN_OP_CHECKS_VALUES),
    /* The gradient of Embedding with sparse_grad. */
    TNI_ROW("_embedding_rows", .doc = "Sums of the rows of dy for each row that data names, and no others.",
            .attrs = TNI_ATTRS(embedding_rows), .flags = TN_OP_INTERNAL,
            .shapes = "dy:(I..,D) data:(I..) -> output:(input_dim,D)", .types = "data:I",
            .storage = rows_storage),
    NULL,
};

/* ---- the table ----------------------------------------------------------------------------------------- */

#define NEGATIVE 1u
#define ZERO 2u
#define POSITIVE 4u
#define ANY 7u

/* What is done with some operators. */
typedef struct stored_row {
    const char *const *ops;
    tni_stored_way way; /* where all inputs are of one sparse type */
    tni_stored_way mix; /* where some are dense */
    uint32_t scalar;    /* of those with a number: of which numbers 0 gives 0; else dense copies are made */
} stored_row;

static const stored_row rows[] = {
    {TNI_NAMES("zeros_like", "abs", "sign", "round", "rint", "ceil", "floor", "trunc", "fix", "sqrt", "cbrt",
               "square", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1",
               "log1p", "degrees", "radians", "negative", "relu", "_copy", "Cast", "make_loss", "BlockGrad",
               "clip", "_contrib_round_ste", "_contrib_sign_ste"),
     TNI_STORED_VALUES, TNI_STORED_NONE, 0},
    {TNI_NAMES("_mul_scalar", "_div_scalar", "_scatter_plus_scalar", "_scatter_minus_scalar"),
     TNI_STORED_VALUES, TNI_STORED_NONE, ANY},
    {TNI_NAMES("_equal_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, NEGATIVE | POSITIVE},
    {TNI_NAMES("_not_equal_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, ZERO},
    {TNI_NAMES("_greater_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, ZERO | POSITIVE},
    {TNI_NAMES("_greater_equal_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, POSITIVE},
    {TNI_NAMES("_lesser_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, NEGATIVE | ZERO},
    {TNI_NAMES("_lesser_equal_scalar"), TNI_STORED_VALUES, TNI_STORED_NONE, NEGATIVE},
    {TNI_NAMES("_plus_scalar", "_minus_scalar", "sum", "mean"), TNI_STORED_DENSE, TNI_STORED_NONE, 0},
    {TNI_NAMES("elemwise_add", "elemwise_sub", "_grad_add"), TNI_STORED_ALIGNED, TNI_STORED_DENSE, 0},
    {TNI_NAMES("elemwise_mul"), TNI_STORED_ALIGNED, TNI_STORED_MASKED, 0},
    {TNI_NAMES("elemwise_div", "broadcast_add", "broadcast_sub", "Embedding"), TNI_STORED_NONE,
     TNI_STORED_DENSE, 0},
    {TNI_NAMES("_scatter_elemwise_div"), TNI_STORED_MASKED, TNI_STORED_MASKED, 0},
    {TNI_NAMES("_maximum", "_minimum", "_hypot", "add_n"), TNI_STORED_ALIGNED, TNI_STORED_NONE, 0},
    {TNI_NAMES("norm"), TNI_STORED_NUMBER, TNI_STORED_NONE, 0},
    {TNI_NAMES("FullyConnected"), TNI_STORED_NONE, TNI_STORED_PRODUCT, 0},
    {TNI_NAMES("sgd_update", "sgd_mom_update", "mp_sgd_update", "mp_sgd_mom_update", "adam_update",
               "ftrl_update", "_sparse_adagrad_update"),
     TNI_STORED_NONE, TNI_STORED_ROWS, 0},
};

static const stored_row *row_of(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *const *name = rows[i].ops; *name; name++)
            if (!strcmp(*name, op))
                return &rows[i];
    return NULL;
}

/* 0 goes through clip, and through what is done with a number, for some attributes. */
static bool keeps_zero(const tni_opdef *def, const tni_attrs *attrs, const stored_row *row)
{
    double number;

    if (!strcmp(def->op->name, "clip"))
        return tni_attr_float(attrs->values, TN_clip_a_min) <= 0 &&
               tni_attr_float(attrs->values, TN_clip_a_max) >= 0;
    if (!row->scalar)
        return true;
    number = tni_attr_float(attrs->values, (uint32_t)tni_attr_index(def, "scalar"));
    return row->scalar & (number < 0 ? NEGATIVE : number > 0 ? POSITIVE : ZERO);
}

/* The gradient alone is sparse, and rows that it does not store stay as they are. */
static tni_stored_way update_way(const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                                 const int32_t *storage)
{
    const int32_t lazy = tni_attr_index(def, "lazy_update");

    for (uint32_t i = 0; i < in_count; i++)
        if ((storage[i] != TN_STORAGE_DENSE) != (i == 1) || (i == 1 && storage[i] != TN_STORAGE_ROW_SPARSE))
            return TNI_STORED_NONE;
    return lazy >= 0 && !tni_attr_bool(attrs->values, (uint32_t)lazy) ? TNI_STORED_DENSE : TNI_STORED_ROWS;
}

static tni_stored_way number_way(const tni_attrs *attrs)
{
    return tni_tuple_count(tni_attr_tuple(attrs->values, TN_norm_axis)) || attrs->values[TN_norm_keepdims]
               ? TNI_STORED_DENSE
               : TNI_STORED_NUMBER;
}

tni_stored_way tni_op_stored(const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                             const int32_t *storage, int32_t *out)
{
    const stored_row *row = row_of(def->op->name);
    int32_t sparse = TN_STORAGE_DENSE;
    bool mixed = false, several = false;
    tni_stored_way way;

    for (uint32_t i = 0; i < in_count; i++) {
        several |= storage[i] != TN_STORAGE_DENSE && sparse != TN_STORAGE_DENSE && storage[i] != sparse;
        mixed |= storage[i] == TN_STORAGE_DENSE;
        if (sparse == TN_STORAGE_DENSE)
            sparse = storage[i];
    }
    *out = TN_STORAGE_DENSE;
    if (!row || several)
        return TNI_STORED_NONE;
    way = mixed ? row->mix : row->way;
    if (way == TNI_STORED_ROWS)
        return update_way(def, attrs, in_count, storage);
    if (way == TNI_STORED_NUMBER)
        return number_way(attrs);
    if (way == TNI_STORED_PRODUCT)
        return sparse == TN_STORAGE_CSR && storage[0] != storage[1] ? way : TNI_STORED_NONE;
    if (way == TNI_STORED_VALUES && !keeps_zero(def, attrs, row))
        return TNI_STORED_NONE;
    if (way >= TNI_STORED_VALUES)
        *out = sparse;
    return way;
}
